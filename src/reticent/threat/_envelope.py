"""Curves that a few proven inequalities leave: Hellinger affinity, revealed masks, and the best of several.

All curves here are symmetric (equal to their own inverse), so ``log delta`` at thresholds ``l >= 0``
says everything; the other half follows by exchanging the hypotheses.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr

from reticent import _check
from reticent.composition.polygon import convex_chain
from reticent.tradeoff import TradeOff
from reticent.tradeoff._logs import log1mexp, log_sub
from reticent.tradeoff.base import LogErrors

LogDelta = Callable[[np.ndarray], np.ndarray]
"""log delta at thresholds ``l >= 0`` of a symmetric curve, or an upper bound on it."""

_LARGEST_MU = 60.0
_GROUPS = 80
_TAIL = 1e-15


class SymmetricTradeOff(TradeOff):
    """A curve equal to its own inverse, known where its slope is at most -1."""

    @property
    def reversed(self) -> TradeOff:
        """The curve itself."""
        return self

    @abstractmethod
    def _steep_point(self, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(log alpha, log power) where the slope is ``-e^size``, ``size >= 0``."""

    def errors(self, log_ratio: ArrayLike) -> LogErrors:
        ratio = np.asarray(log_ratio, dtype=float)
        low = ratio < 0.0
        alpha, power = self._steep_point(np.abs(ratio))
        beyond, beta = log1mexp(alpha), log1mexp(power)
        # Below zero the roles change: there the false negatives are what the false positives are above.
        return LogErrors(
            fpr=np.where(low, beta, alpha),
            tnr=np.where(low, power, beyond),
            fnr=np.where(low, alpha, beta),
            tpr=np.where(low, beyond, power),
        )


class AffinityTradeOff(SymmetricTradeOff):
    """All that a Hellinger affinity ``rho = int sqrt(PQ)`` allows: beta = sin^2(arcsin rho - arcsin sqrt alpha).

    A test turns (P, Q) into two Bernoulli laws whose affinity sqrt(alpha (1 - beta)) + sqrt((1 - alpha) beta)
    is at least rho; with alpha = sin^2 a and beta = sin^2 b this reads sin(a + b) >= rho. The advantage is
    sqrt(1 - rho^2), and at false positive rate 0 the power is 1 - rho^2.

    Attributes:
        log_rho: natural logarithm of the affinity, <= 0; -inf allows everything.
    """

    def __init__(self, log_rho: float) -> None:
        self.log_rho = float(_check.log_probabilities(log_rho=log_rho))

    def log_delta(self, epsilon: ArrayLike) -> np.ndarray:
        """With w = 1 - rho^2 and k = e^l: delta^2 - (1 - k) delta - k w = 0, positive root."""
        epsilon = _check.reals(epsilon=epsilon)
        size = np.abs(epsilon)
        positive = self._log_delta(size)
        with np.errstate(divide="ignore"):
            mirrored = np.logaddexp(np.log(-np.expm1(-size)), positive - size)
        return np.where(epsilon >= 0, positive, mirrored)

    def _log_delta(self, size: np.ndarray) -> np.ndarray:
        if self.log_rho == 0.0:
            return np.full(size.shape, -np.inf)
        gap, root = self._gap_and_root(size)
        return np.minimum(math.log(2.0) + self._log_w - _log(root + gap), 0.0)

    def _steep_point(self, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.log_rho == 0.0:
            return np.full(size.shape, -np.inf), np.full(size.shape, -np.inf)
        gap, root = self._gap_and_root(size)
        x, rho2 = np.exp(-size), math.exp(2.0 * self.log_rho)
        # alpha = -d delta / dk = (delta - w) / (k root), and delta - w = w (1 + x - root) / (root + gap) * ...,
        # where 1 + x - root = 4 x rho^2 / (1 + x + root) does not cancel.
        alpha = self._log_w + _log(4.0 * x * rho2 / (1.0 + x + root)) - _log((root + gap) * root) - size
        alpha = np.minimum(alpha, 0.0)
        return alpha, np.minimum(np.logaddexp(self._log_delta(size), size + alpha), 0.0)

    @property
    def _log_w(self) -> float:
        return float(log1mexp(np.asarray(2.0 * self.log_rho)))

    def _gap_and_root(self, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        gap = -np.expm1(-size)
        return gap, np.sqrt(gap**2 + 4.0 * np.exp(self._log_w - size))

    def __repr__(self) -> str:
        return f"AffinityTradeOff(log_rho={self.log_rho!r})"


class TangentEnvelope(SymmetricTradeOff):
    """The strongest curve that several upper bounds on ``log delta`` prove together.

    On a grid of thresholds each bound gives a line ``beta >= 1 - delta - e^l alpha`` below the true
    curve; the upper envelope of all lines is convex and still below it, so nothing is claimed that a
    single bound does not prove, whatever the grid. The grid is geometric with ratio 1.018 below 1 and has steps of
    0.02 up to 40, so that curves wider than 1e-6 lose at most 1e-3, relative, in delta and in power.

    Attributes:
        log_deltas: upper bounds on log delta; each must come from a symmetric guarantee.
    """

    def __init__(self, log_deltas: Sequence[LogDelta]) -> None:
        sizes = np.concatenate(
            [[0.0], np.geomspace(1e-7, 1.0, 900), np.arange(1.02, 40.0, 0.02), np.geomspace(40, 600, 60)]
        )
        values = np.min([bound(sizes) for bound in log_deltas], axis=0)
        self._sizes, self._deltas, self._slopes = _lower_hull(sizes, np.minimum(values, 0.0))

    def log_delta(self, epsilon: ArrayLike) -> np.ndarray:
        epsilon = _check.reals(epsilon=epsilon)
        size = np.abs(epsilon)
        alpha, power = self._steep_point(size)
        with np.errstate(invalid="ignore"):
            positive = log_sub(power, np.where(np.isneginf(alpha), -np.inf, size + alpha))
        k = np.minimum(np.searchsorted(self._sizes, size), len(self._sizes) - 1)
        positive = np.where(self._sizes[k] == size, self._deltas[k], positive)
        with np.errstate(divide="ignore"):
            mirrored = np.logaddexp(np.log(-np.expm1(-size)), positive - size)
        return np.where(epsilon >= 0, positive, mirrored)

    def log_power(self, log_alpha: ArrayLike) -> np.ndarray:
        """Least of all tangents, in logarithms: nothing cancels at small ``alpha``."""
        log_alpha = _check.log_probabilities(log_alpha=log_alpha)
        steep = np.min(np.logaddexp(self._deltas, self._sizes + log_alpha[..., None]), axis=-1)
        return np.minimum(np.minimum(steep, log1mexp(self._flat_beta(log_alpha))), 0.0)

    def log_beta(self, log_alpha: ArrayLike) -> np.ndarray:
        log_alpha = _check.log_probabilities(log_alpha=log_alpha)
        steep = np.min(np.logaddexp(self._deltas, self._sizes + log_alpha[..., None]), axis=-1)
        return np.maximum(log1mexp(np.minimum(steep, 0.0)), self._flat_beta(log_alpha))

    def _flat_beta(self, log_alpha: np.ndarray) -> np.ndarray:
        """log beta from the mirrored tangents: alpha >= 1 - delta - e^l beta."""
        missing = log_sub(log1mexp(log_alpha)[..., None], self._deltas)
        return np.max(missing - self._sizes, axis=-1)

    def _steep_point(self, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        k = np.clip(np.searchsorted(self._sizes, size, side="right") - 1, 0, len(self._sizes) - 1)
        alpha = self._slopes[k]
        with np.errstate(invalid="ignore"):
            rise = np.where(np.isneginf(alpha), -np.inf, self._sizes[k] + alpha)
        return alpha, np.minimum(np.logaddexp(self._deltas[k], rise), 0.0)

    def __repr__(self) -> str:
        return f"TangentEnvelope({len(self._sizes)} tangents)"


def _lower_hull(sizes: np.ndarray, deltas: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Vertices of the lower convex hull of (e^size, delta) and log(-slope) to the right of each."""
    while True:
        run, drop = log_sub(sizes[1:], sizes[:-1]), log_sub(deltas[:-1], deltas[1:])
        kept = convex_chain(run, drop)
        if len(kept) == len(sizes):
            return sizes, deltas, np.append(drop - run, -np.inf)
        sizes, deltas = sizes[kept], deltas[kept]


def gaussian_log_delta(mu: float) -> LogDelta:
    """log delta of G_mu, rounded up; ``mu`` beyond 60, infinity included, counts as no privacy.

    The plain difference Phi(-a) - e^l Phi(-a - mu), a = l/mu - mu/2, with what its cancellation can cost added:
    hundreds of these make up one mixture, and the exact form takes a thousand times as long.
    """
    if not mu <= _LARGEST_MU:
        return lambda sizes: np.zeros(sizes.shape)
    if mu == 0.0:
        return lambda sizes: np.full(sizes.shape, -np.inf)

    def bound(sizes: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            a = sizes / mu - 0.5 * mu
            first, second = log_ndtr(-a), sizes + log_ndtr(-a - mu)
        gap = -np.expm1(np.minimum(second - first, 0.0))
        rounding = 1e-15 * (np.abs(first) + sizes + np.abs(a) + 4.0)
        # Beyond rounding the difference is unknown: the first term alone bounds it.
        return np.minimum(first + _log(np.minimum(gap + rounding, 1.0)), 0.0)

    return bound


def revealed_mask_log_delta(unit: float, steps: int, rate: float) -> LogDelta:
    """E_K of the Gaussian delta with mu = unit sqrt(K), K ~ Binomial(steps, rate): the mask is revealed.

    Counts are grouped and each group takes its largest count, mass beyond the last group counts as no
    privacy: the value is never below the expectation.
    """
    counts, weights, lost = _grouped_binomial(steps, rate)

    def bound(sizes: np.ndarray) -> np.ndarray:
        total = np.full(sizes.shape, lost)
        for count, weight in zip(counts, weights, strict=True):
            total = total + weight * np.exp(gaussian_log_delta(unit * math.sqrt(count))(sizes))
        return _log(total)

    return bound


def _grouped_binomial(steps: int, rate: float) -> tuple[np.ndarray, np.ndarray, float]:
    """(largest count of each group >= 1, probability of the group, probability left out)."""
    from scipy.stats import binom  # takes a second to import, and few questions need it

    law = binom(steps, rate)
    low, high = max(int(law.ppf(_TAIL)), 1), max(int(law.isf(_TAIL)), 1)
    tops = np.unique(np.linspace(low, high, min(_GROUPS, high - low + 1)).astype(int))
    tops[-1] = high
    cumulative = law.cdf(tops)
    weights = np.diff(cumulative, prepend=law.cdf(0))
    return tops, np.maximum(weights, 0.0), float(law.sf(high))


def total_square_log_delta(unit: float, total: float, rate: float) -> LogDelta:
    """The mask is revealed and only the sum of squared changes is known.

    Given the mask, mu^2 = unit^2 * sum of b_t r_t^2 =: unit^2 v with mean rate * total and v <= total. As a
    function of v, delta is 0 at 0, first convex, then concave, so the largest expectation mixes v = 0
    with one other value: m * sup over v in [m, total] of delta(v) / v at the mean m.
    """
    mean = rate * total
    values = np.geomspace(mean, total, 120) if rate < 1.0 else np.array([mean])

    def bound(sizes: np.ndarray) -> np.ndarray:
        best = gaussian_log_delta(unit * math.sqrt(mean))(sizes)
        for left, right in pairwise(values):
            best = np.maximum(best, math.log(mean / left) + gaussian_log_delta(unit * math.sqrt(right))(sizes))
        return np.minimum(best, 0.0)

    return bound


def _log(x: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(x)

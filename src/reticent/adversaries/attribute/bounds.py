"""Curves that a few proven inequalities allow: Hellinger affinity, revealed masks, and the best of several.

All curves here are symmetric (equal to their own inverse), so ``log delta`` at thresholds ``l >= 0``
says everything; the other half follows by exchanging the hypotheses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from reticent.kernel.curves import GaussianTradeOff, TradeOff, binomial
from reticent.kernel.curves._logs import log1mexp, log_of
from reticent.kernel.curves.capped import above_none
from reticent.kernel.curves.polygon import Polygon, symmetric_above

LogDelta = Callable[[np.ndarray], np.ndarray]
"""log delta at thresholds ``l >= 0`` of a symmetric curve, or an upper bound on it."""

_ROUNDING = 1e-12  # of a logarithm: ten times what a Gaussian curve errs by
_LARGEST_MU = 60.0  # beyond, nothing is private
_HELPS = 1e-9  # in log delta: by which another bound is below the worst case
_GROUPS = 100  # of the counts of a revealed mask
_RARE = 1e-18  # counts with less probability count as no privacy
_VALUES = 120  # of the sum of squared changes that are tried
_SIZES = np.concatenate(  # thresholds, in nats: ratio 1.018 below 1, steps of 0.02 up to 40
    [[0.0], np.geomspace(1e-7, 1.0, 900), np.arange(1.02, 40.0, 0.02), np.geomspace(40, 600, 60)]
)


def affinity_log_delta(log_rho: float) -> LogDelta:
    """All that a Hellinger affinity ``rho = int sqrt(PQ)`` allows: beta = sin^2(arcsin rho - arcsin sqrt alpha).

    A test turns (P, Q) into two Bernoulli laws whose affinity sqrt(alpha (1 - beta)) + sqrt((1 - alpha) beta)
    is at least rho; with alpha = sin^2 a and beta = sin^2 b this reads sin(a + b) >= rho. With w = 1 - rho^2 and
    k = e^l the tangent has delta^2 - (1 - k) delta - k w = 0, positive root.

    Args:
        log_rho: natural logarithm of the affinity, <= 0; -inf allows everything.
    """
    log_w = float(log1mexp(np.asarray(2.0 * log_rho)))

    def bound(sizes: np.ndarray) -> np.ndarray:
        gap = -np.expm1(-sizes)
        root = np.sqrt(gap**2 + 4.0 * np.exp(log_w - sizes))
        return np.minimum(math.log(2.0) + log_w - log_of(root + gap), 0.0)

    return bound if log_rho < 0.0 else lambda sizes: np.full(sizes.shape, -np.inf)


def tangent_envelope(log_deltas: Sequence[LogDelta]) -> Polygon:
    """The strongest curve that several upper bounds on ``log delta`` prove together.

    Each bound gives a line ``beta >= 1 - delta - e^l alpha`` at each threshold of ``_SIZES``, and its mirror image. The
    polygon of all lines is still below the true curve: nothing is claimed that a single bound does not prove,
    whatever the thresholds. Curves wider than 1e-6 lose at most 1e-3, relative, in delta and in power.

    Args:
        log_deltas: upper bounds on log delta; each must come from a symmetric guarantee.
    """
    values = np.minimum(np.min([bound(_SIZES) for bound in log_deltas], axis=0), 0.0)
    return symmetric_above(_SIZES, values)


def no_more_than_worst(worst: TradeOff, log_deltas: Sequence[LogDelta]) -> TradeOff:
    """What several upper bounds on ``log delta`` and the worst case prove together; the worst case where none helps.

    The polygon of ``tangent_envelope`` lies a little above its bounds between its thresholds, and 5 % in epsilon
    beyond 40 nats. So the worst case has a say at its own vertices, too.

    Args:
        worst: the symmetric curve of the worst case, on the safe side.
        log_deltas: as for ``tangent_envelope``.
    """
    known = worst.log_delta(_SIZES)
    if not any(np.any(bound(_SIZES) < known - _HELPS) for bound in log_deltas):
        return worst
    return above_none([tangent_envelope([worst.log_delta, *log_deltas]), worst])


def gaussian_log_delta(mu: float) -> LogDelta:
    """log delta of G_mu, rounded up; ``mu`` beyond 60, infinity included, counts as no privacy."""
    if not mu <= _LARGEST_MU:
        return lambda sizes: np.zeros(sizes.shape)
    curve = GaussianTradeOff(mu)
    return lambda sizes: np.minimum(curve.log_delta(sizes) + _ROUNDING, 0.0)


def revealed_mask_log_delta(unit: float, steps: int, rate: float) -> LogDelta:
    """E_K of the Gaussian delta with mu = unit sqrt(K), K ~ Binomial(steps, rate): the mask is revealed.

    Each group of counts takes its largest, counts outside of all groups count as no privacy, and probabilities are
    rounded up: the value is never below the expectation.

    By RETICENT:attribute-mask.
    """
    law = binomial.grouped(steps, rate, _GROUPS, _RARE)
    some = law.high > 0  # who is never drawn shows nothing
    counts, weights = law.high[some].tolist(), np.exp(law.log_most[some])
    lost = math.exp(law.log_above) + math.exp(law.log_below)

    def bound(sizes: np.ndarray) -> np.ndarray:
        total = np.full(sizes.shape, lost)
        for count, weight in zip(counts, weights, strict=True):
            total = total + weight * np.exp(gaussian_log_delta(unit * math.sqrt(count))(sizes))
        return log_of(np.minimum(total, 1.0))

    return bound


def total_square_log_delta(unit: float, total: float, rate: float) -> LogDelta:
    """The mask is revealed and only the sum of squared changes is known.

    Given the mask, mu^2 = unit^2 * sum of b_t r_t^2 =: unit^2 v with mean rate * total and v <= total. As a
    function of v, delta is 0 at 0, first convex, then concave, so the largest expectation mixes v = 0
    with one other value: m * sup over v in [m, total] of delta(v) / v at the mean m.
    """
    mean = rate * total
    values = np.geomspace(mean, total, _VALUES) if rate < 1.0 else np.array([mean])

    def bound(sizes: np.ndarray) -> np.ndarray:
        best = gaussian_log_delta(unit * math.sqrt(mean))(sizes)
        for left, right in pairwise(values):
            best = np.maximum(best, math.log(mean / left) + gaussian_log_delta(unit * math.sqrt(right))(sizes))
        return np.minimum(best, 0.0)

    return bound

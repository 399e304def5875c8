"""The one idea of reticent: a trade-off curve, known through its likelihood-ratio thresholds.

The attacker tests H0 (data law P: the target is absent) against H1 (law Q: the target is present).
Reject H0 when ``L = log dQ/dP`` of the observation exceeds a threshold ``l``:

    false positive rate  alpha(l) = P(L > l),      false negative rate  beta(l) = Q(L <= l).

By Neyman and Pearson these points and the segments between them are the whole curve, and the slope
of the curve at the threshold ``l`` is ``-e^l``. Hence delta(epsilon) = 1 - beta - e^epsilon alpha at
``l = epsilon``: no derivative is ever taken numerically. A subclass gives ``errors``; everything else
follows from it, and a subclass overrides what it knows in closed form.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from reticent import _check
from reticent.tradeoff._logs import log1mexp, log_sub

_LARGEST_LOG_RATIO = 2.0**60
_LOG_HALF = -0.6931471805599453


class LogErrors(NamedTuple):
    """Natural logarithms of the four rates of one threshold test; arrays of one shape."""

    fpr: np.ndarray
    """log alpha = log P(L > l)."""
    tnr: np.ndarray
    """log(1 - alpha) = log P(L <= l)."""
    fnr: np.ndarray
    """log beta = log Q(L <= l)."""
    tpr: np.ndarray
    """log(1 - beta) = log Q(L > l)."""


class TradeOff(ABC):
    """A convex, non-increasing map from false positive rate to least false negative rate.

    Every method is vectorised: the result has the shape of the argument. ``log_*`` methods take and
    return natural logarithms and keep relative accuracy where the plain ones underflow.
    """

    @abstractmethod
    def errors(self, log_ratio: ArrayLike) -> LogErrors:
        """The four log rates of the test "log likelihood ratio > ``log_ratio``".

        Args:
            log_ratio: thresholds, any shape. At +inf and -inf: the limit, so that an atom of the
                likelihood ratio at +inf still counts as rejected there. At an atom either end of the
                segment that it spans may be returned; both lie on the curve.
        """

    @property
    def reversed(self) -> TradeOff:
        """The same experiment with H0 and H1 exchanged: the inverse function of this curve."""
        return Reversed(self)

    def log_beta(self, log_alpha: ArrayLike) -> np.ndarray:
        """Logarithm of the smallest false negative rate at false positive rate ``e^log_alpha``."""
        return self._at(_check.log_probabilities(log_alpha=log_alpha))[0]

    def log_power(self, log_alpha: ArrayLike) -> np.ndarray:
        """Logarithm of the largest true positive rate at false positive rate ``e^log_alpha``."""
        return self._at(_check.log_probabilities(log_alpha=log_alpha))[1]

    def beta(self, alpha: ArrayLike) -> np.ndarray:
        """Smallest false negative rate (type II error) at false positive rate ``alpha``."""
        return np.exp(self.log_beta(_log(_check.probabilities(alpha=alpha))))

    def power(self, alpha: ArrayLike) -> np.ndarray:
        """Largest true positive rate at false positive rate ``alpha``: ``1 - beta`` without cancellation."""
        return np.exp(self.log_power(_log(_check.probabilities(alpha=alpha))))

    def log_delta(self, epsilon: ArrayLike) -> np.ndarray:
        """Logarithm of ``delta(epsilon)``; see ``delta``. -inf where delta is 0."""
        epsilon = _check.reals(epsilon=epsilon)
        size = np.abs(epsilon)
        result = np.empty(epsilon.shape)
        positive = epsilon >= 0
        if np.any(positive):
            result[positive] = self._log_delta_above(size[positive])
        if not np.all(positive):
            # delta(-e) = 1 - e^-e + e^-e delta_reversed(e): both terms >= 0.
            mirror = size[~positive]
            result[~positive] = np.logaddexp(log1mexp(-mirror), self.reversed._log_delta_above(mirror) - mirror)
        return result

    def _log_delta_above(self, epsilon: np.ndarray) -> np.ndarray:
        """log delta for epsilon >= 0, the half line that subclasses know in closed form."""
        rates = self.errors(epsilon)
        with np.errstate(invalid="ignore"):
            cost = np.where(np.isneginf(rates.fpr), -np.inf, epsilon + rates.fpr)
        return log_sub(rates.tpr, cost)

    def delta(self, epsilon: ArrayLike) -> np.ndarray:
        """Hockey-stick divergence ``sup_A Q(A) - e^epsilon P(A)`` for any real ``epsilon``.

        Equals ``sup_alpha 1 - beta(alpha) - e^epsilon alpha``; the supremum is attained by the test
        that thresholds the log likelihood ratio at ``epsilon``.
        """
        return np.exp(self.log_delta(epsilon))

    def _at(self, log_alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(log beta, log power) at ``log_alpha``: solve for the threshold, then follow the segment."""
        low, high = adjacent_thresholds(self.errors, log_alpha)
        return follow_segment(log_alpha, self.errors(low), self.errors(high))


class Reversed(TradeOff):
    """H0 and H1 of ``curve`` exchanged; as a function of alpha, the inverse of ``curve``."""

    def __init__(self, curve: TradeOff) -> None:
        self.curve = curve

    def errors(self, log_ratio: ArrayLike) -> LogErrors:
        rates = self.curve.errors(-np.asarray(log_ratio, dtype=float))
        return LogErrors(fpr=rates.fnr, tnr=rates.tpr, fnr=rates.fpr, tpr=rates.tnr)

    @property
    def reversed(self) -> TradeOff:
        return self.curve

    def __repr__(self) -> str:
        return f"Reversed({self.curve!r})"


def _log(x: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(x)


def adjacent_thresholds(
    errors: Callable[[np.ndarray], LogErrors], log_alpha: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Thresholds ``low <= high`` with alpha(low) >= alpha >= alpha(high) and no double between them.

    Equal where a threshold meets ``log_alpha`` to rounding, or where the curve ends before it.
    Regula falsi with halved weights (Illinois) on the smaller of alpha and 1 - alpha; every third
    step bisects, so that jumps of alpha (atoms of the likelihood ratio) are found to the last bit.
    """
    miss = _miss(errors, log_alpha)
    tolerance = 1e-15 * np.maximum(1.0, np.abs(np.minimum(log_alpha, log1mexp(log_alpha))))
    low, high, f_low, f_high = _enclose(miss, log_alpha.shape)
    last = np.zeros(log_alpha.shape)
    for k in range(600):
        trial = _middle(low, high) if k % 3 == 0 else _secant(low, high, f_low, f_high)
        active = (trial > low) & (trial < high)
        if not np.any(active):
            break
        f = miss(trial)
        met = np.abs(f) <= tolerance
        above, below = active & ((f >= 0) | met), active & ((f < 0) | met)
        f_high = np.where(above & (last == 1), 0.5 * f_high, f_high)
        f_low = np.where(below & (last == -1), 0.5 * f_low, f_low)
        low, f_low = np.where(above, trial, low), np.where(above, f, f_low)
        high, f_high = np.where(below, trial, high), np.where(below, f, f_high)
        last = np.where(above, 1.0, np.where(below, -1.0, last))
    none, all_ = log_alpha == -np.inf, log_alpha == 0.0
    low, high = (np.where(none, np.inf, np.where(all_, -np.inf, end)) for end in (low, high))
    return low, high


def _miss(errors: Callable[[np.ndarray], LogErrors], log_alpha: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """ratio -> log alpha(ratio) - log alpha, by the complement where alpha > 1/2; decreasing."""
    log_rest = log1mexp(log_alpha)
    upper = log_alpha > _LOG_HALF

    def miss(ratio: np.ndarray) -> np.ndarray:
        rates = errors(ratio)
        with np.errstate(invalid="ignore"):
            value = np.where(upper, log_rest - rates.tnr, rates.fpr - log_alpha)
        return np.where(np.isnan(value), 0.0, np.clip(value, -1e300, 1e300))

    return miss


def _enclose(
    miss: Callable[[np.ndarray], np.ndarray], shape: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    low, high = np.full(shape, -1.0), np.full(shape, 1.0)
    f_low, f_high = miss(low), miss(high)
    for _ in range(15):
        short_low = (f_low < 0) & (low > -_LARGEST_LOG_RATIO)
        short_high = (f_high > 0) & (high < _LARGEST_LOG_RATIO)
        if not (np.any(short_low) or np.any(short_high)):
            break
        high, f_high = np.where(short_low, low, high), np.where(short_low, f_low, f_high)
        low, f_low = np.where(short_high, high, low), np.where(short_high, f_high, f_low)
        low, high = np.where(short_low, 16 * low, low), np.where(short_high, 16 * high, high)
        f_low, f_high = np.where(short_low, miss(low), f_low), np.where(short_high, miss(high), f_high)
    # The curve ends before alpha: an atom at plus or minus infinity.
    low, high = np.where(f_high > 0, high, low), np.where(f_low < 0, low, high)
    return low, high, f_low, f_high


def _middle(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """A point between that halves the number of binary digits left, whatever the scale."""
    small, large = np.minimum(np.abs(low), np.abs(high)), np.maximum(np.abs(low), np.abs(high))
    geometric = np.sqrt(large) * np.sqrt(np.maximum(small, 1e-8 * large))
    scaled = np.where(high > 0, geometric, -geometric)
    straddles = (low < 0) & (high > 0)
    return np.where(straddles, 0.0, np.where(large > 4 * small, scaled, 0.5 * (low + high)))


def _secant(low: np.ndarray, high: np.ndarray, f_low: np.ndarray, f_high: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        point = low + (high - low) * (f_low / (f_low - f_high))
    return np.where((point > low) & (point < high), point, 0.5 * (low + high))


def follow_segment(log_alpha: np.ndarray, low: LogErrors, high: LogErrors) -> tuple[np.ndarray, np.ndarray]:
    """(log beta, log power) on the segment from ``high`` (smaller alpha) to ``low`` (larger alpha).

    Interpolating in alpha is exact: tests between two adjacent thresholds randomise between them.
    """
    upper = log_alpha > _LOG_HALF
    log_rest = log1mexp(log_alpha)
    run = np.where(upper, log_sub(high.tnr, low.tnr), log_sub(low.fpr, high.fpr))
    flat = np.isneginf(run)
    run = np.where(flat, 0.0, run)
    beyond_high = np.where(upper, log_sub(high.tnr, log_rest), log_sub(log_alpha, high.fpr))
    before_low = np.where(upper, log_sub(log_rest, low.tnr), log_sub(low.fpr, log_alpha))
    to_low = np.where(flat, 0.0, np.minimum(beyond_high - run, 0.0))
    to_high = np.where(flat, -np.inf, np.minimum(before_low - run, 0.0))
    log_beta = np.logaddexp(to_low + low.fnr, to_high + high.fnr)
    log_power = np.logaddexp(to_low + low.tpr, to_high + high.tpr)
    return np.minimum(log_beta, 0.0), np.minimum(log_power, 0.0)

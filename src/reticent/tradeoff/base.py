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
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from reticent import _check
from reticent.tradeoff._logs import log1mexp, log_sub

_LARGEST_LOG_RATIO = 2.0**60


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
            log_ratio: thresholds, any shape, infinities allowed.
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
        rates = self.errors(epsilon)
        positive = log_sub(rates.tpr, size + rates.fpr)
        # Below zero: delta(-e) = 1 - e^-e + e^-e (1 - alpha - e^e beta), both terms >= 0.
        mirrored = np.logaddexp(log1mexp(-size), log_sub(rates.tnr, size + rates.fnr) - size)
        return np.where(epsilon >= 0, positive, mirrored)

    def delta(self, epsilon: ArrayLike) -> np.ndarray:
        """Hockey-stick divergence ``sup_A Q(A) - e^epsilon P(A)`` for any real ``epsilon``.

        Equals ``sup_alpha 1 - beta(alpha) - e^epsilon alpha``; the supremum is attained by the test
        that thresholds the log likelihood ratio at ``epsilon``.
        """
        return np.exp(self.log_delta(epsilon))

    def _at(self, log_alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(log beta, log power) at ``log_alpha``: bisect the threshold, then follow the segment."""
        low, high = self._bracket(log_alpha)
        return _interpolate(log_alpha, self.errors(low), self.errors(high))

    def _bracket(self, log_alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Adjacent thresholds ``low < high`` with alpha(low) >= alpha >= alpha(high)."""
        low, high = np.full(log_alpha.shape, -1.0), np.full(log_alpha.shape, 1.0)
        for _ in range(60):
            grow_low = (self.errors(low).fpr < log_alpha) & (low > -_LARGEST_LOG_RATIO)
            grow_high = (self.errors(high).fpr > log_alpha) & (high < _LARGEST_LOG_RATIO)
            if not (np.any(grow_low) or np.any(grow_high)):
                break
            low, high = np.where(grow_low, 2 * low, low), np.where(grow_high, 2 * high, high)
        for _ in range(200):
            middle = 0.5 * (low + high)
            if not np.any((middle > low) & (middle < high)):
                break
            above = self.errors(middle).fpr >= log_alpha
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return low, high


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


def _interpolate(log_alpha: np.ndarray, low: LogErrors, high: LogErrors) -> tuple[np.ndarray, np.ndarray]:
    """Follow the segment from ``high`` (smaller alpha) to ``low`` (larger alpha), in logarithms.

    Interpolating in alpha is exact: tests between two adjacent thresholds randomise between them.
    """
    run = log_sub(low.fpr, high.fpr)
    degenerate = np.isneginf(run)
    run = np.where(degenerate, 0.0, run)
    to_low = np.where(degenerate, 0.0, np.minimum(log_sub(log_alpha, high.fpr) - run, 0.0))
    to_high = np.where(degenerate, -np.inf, np.minimum(log_sub(low.fpr, log_alpha) - run, 0.0))
    log_beta = np.logaddexp(to_low + low.fnr, to_high + high.fnr)
    log_power = np.logaddexp(to_low + low.tpr, to_high + high.tpr)
    return np.minimum(log_beta, 0.0), np.minimum(log_power, 0.0)

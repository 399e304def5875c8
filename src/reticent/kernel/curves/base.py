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

import math
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtri_exp

from reticent.kernel import checks
from reticent.kernel.curves._logs import LOG_HALF, log1mexp, log_of, log_sub
from reticent.kernel.curves._thresholds import adjacent_thresholds

_SEARCHED, _SEARCH_STEPS = 33, 30  # rates whose thresholds are searched for the largest shift; steps of the search
_ZOOMS = (301, 33, 33, 33)  # thresholds of the grids that close in on it


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

    @classmethod
    def of(cls, fpr: np.ndarray, fnr: np.ndarray) -> LogErrors:
        """Both errors and their complements, which lose digits where an error is next to 1.

        Args:
            fpr, fnr: log alpha and log beta, of one shape.
        """
        return cls(fpr=fpr, tnr=log1mexp(fpr), fnr=fnr, tpr=log1mexp(fnr))

    @classmethod
    def joined(cls, *parts: LogErrors) -> LogErrors:
        """Several along the first axis."""
        return cls(*(np.concatenate(rates) for rates in zip(*parts, strict=True)))

    def at(self, where: Any) -> LogErrors:
        """Those at ``where``: an index, slice or mask, as numpy takes it."""
        return LogErrors(*(rate[where] for rate in self))

    @property
    def exchanged(self) -> LogErrors:
        """The same test with H0 and H1, accepting and rejecting exchanged; the order stays."""
        return LogErrors(fpr=self.fnr, tnr=self.tpr, fnr=self.fpr, tpr=self.tnr)


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

    @property
    def proven_mu(self) -> float:
        """A mu for which G_mu lies on or below this curve at *every* error rate; infinite where none is known.

        Subclasses say what they can prove; it need not be the smallest.
        """
        return math.inf

    def largest_shift(self, lowest: float) -> float:
        """Largest -Phi^-1(alpha) - Phi^-1(beta) where Phi^-1(alpha) is in [``lowest``, 0], near enough for an estimate.

        On a segment it is largest at an end: the points with at most a given shift lie above a Gaussian curve, which is
        convex. So thresholds are searched for few rates, and the tests of the thresholds between them are looked at.
        """
        quantiles = np.linspace(lowest, 0.0, _SEARCHED)
        log_alpha = log_ndtr(quantiles)
        low, high = adjacent_thresholds(self.errors, log_alpha, _SEARCH_STEPS)
        log_beta, _ = follow_segment(log_alpha, self.errors(low), self.errors(high))
        best, grid = float(np.max(shift(log_alpha, log_beta))), 0.5 * (low + high)
        for points in _ZOOMS:
            if not math.isfinite(best):
                break
            grid = np.interp(np.linspace(0.0, 1.0, points), np.linspace(0.0, 1.0, len(grid)), grid)
            rates = self.errors(grid)
            inside = (rates.fpr >= log_alpha[0]) & (rates.fpr <= log_alpha[-1])
            shifts = shift(np.where(inside, rates.fpr, 0.0), np.where(inside, rates.fnr, 0.0))
            top = int(np.argmax(shifts))
            best, grid = max(best, float(shifts[top])), grid[[max(top - 1, 0), min(top + 1, points - 1)]]
        return best

    def log_beta(self, log_alpha: ArrayLike) -> np.ndarray:
        """Logarithm of the smallest false negative rate at false positive rate ``e^log_alpha``.

        Raises:
            ParameterError: ``log_alpha`` is above 0 or NaN.
        """
        return self._at(checks.log_probabilities(log_alpha=log_alpha))[0]

    def log_power(self, log_alpha: ArrayLike) -> np.ndarray:
        """Logarithm of the largest true positive rate at false positive rate ``e^log_alpha``.

        Raises:
            ParameterError: ``log_alpha`` is above 0 or NaN.
        """
        return self._at(checks.log_probabilities(log_alpha=log_alpha))[1]

    def beta(self, alpha: ArrayLike) -> np.ndarray:
        """Smallest false negative rate (type II error) at false positive rate ``alpha``.

        Raises:
            ParameterError: ``alpha`` is outside [0, 1] or NaN.
        """
        return np.exp(self.log_beta(log_of(checks.probabilities(alpha=alpha))))

    def __call__(self, alpha: ArrayLike) -> np.ndarray:
        """The same as ``beta``: a curve is the function that papers call f."""
        return self.beta(alpha)

    def power(self, alpha: ArrayLike) -> np.ndarray:
        """Largest true positive rate at false positive rate ``alpha``: ``1 - beta`` without cancellation.

        Raises:
            ParameterError: ``alpha`` is outside [0, 1] or NaN.
        """
        return np.exp(self.log_power(log_of(checks.probabilities(alpha=alpha))))

    def rates(self, alpha: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """``beta`` and ``power`` at ``alpha``, by one search for the thresholds.

        Raises:
            ParameterError: ``alpha`` is outside [0, 1] or NaN.
        """
        log_beta, log_power = self._at(log_of(checks.probabilities(alpha=alpha)))
        return np.exp(log_beta), np.exp(log_power)

    def log_delta(self, epsilon: ArrayLike) -> np.ndarray:
        """Logarithm of ``delta(epsilon)``; see ``delta``. -inf where delta is 0.

        Raises:
            ParameterError: ``epsilon`` is NaN.
        """
        epsilon = checks.reals(epsilon=epsilon)
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
        return self.curve.errors(-np.asarray(log_ratio, dtype=float)).exchanged

    @property
    def reversed(self) -> TradeOff:
        return self.curve

    @property
    def proven_mu(self) -> float:
        """That of the curve: G_mu is its own inverse."""
        return self.curve.proven_mu

    def __repr__(self) -> str:
        return f"Reversed({self.curve!r})"


def shift(log_fpr: np.ndarray, log_fnr: np.ndarray) -> np.ndarray:
    """-Phi^-1(alpha) - Phi^-1(beta): the mu of the Gaussian curve through this point."""
    return -ndtri_exp(log_fpr) - ndtri_exp(log_fnr)


def follow_segment(log_alpha: np.ndarray, low: LogErrors, high: LogErrors) -> tuple[np.ndarray, np.ndarray]:
    """(log beta, log power) on the segment from ``high`` (smaller alpha) to ``low`` (larger alpha).

    Interpolating in alpha is exact: tests between two adjacent thresholds randomise between them.

    Args:
        log_alpha: natural logarithms of false positive rates between those of the two ends.
        low, high: log rates at the ends, of the same shape.
    """
    upper = log_alpha > LOG_HALF
    log_rest = log1mexp(log_alpha)
    run = np.where(upper, log_sub(high.tnr, low.tnr), log_sub(low.fpr, high.fpr))
    flat = np.isneginf(run)
    run = np.where(flat, 0.0, run)
    beyond_high = np.where(upper, log_sub(high.tnr, log_rest), log_sub(log_alpha, high.fpr))
    before_low = np.where(upper, log_sub(log_rest, low.tnr), log_sub(low.fpr, log_alpha))
    to_low = np.where(flat, 0.0, np.minimum(beyond_high - run, 0.0))
    to_high = np.where(flat, -np.inf, np.minimum(before_low - run, 0.0))
    log_beta = np.minimum(np.logaddexp(to_low + low.fnr, to_high + high.fnr), 0.0)
    log_power = np.minimum(np.logaddexp(to_low + low.tpr, to_high + high.tpr), 0.0)
    # Both shares add up to 1 but for rounding. So the smaller rate decides: of the other, 1 - 6e-16 would mean 1.
    return (
        np.where(log_power < LOG_HALF, log1mexp(log_power), log_beta),
        np.where(log_beta < LOG_HALF, log1mexp(log_beta), log_power),
    )

"""Claims that an audit tests, maps from false positive rate to least false negative rate; and evidence against them.

The three families are nested: a larger parameter allows a stronger attacker, so whatever rejects one
member rejects every smaller one and the lower bound is the end of the rejected range.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from scipy.special import ndtr, ndtri

from reticent.kernel.curves import TradeOff
from reticent.kernel.curves.polygon import log_deltas, polygon_above

_SMALLEST_RATE = np.log(1e-40)
_LARGEST_LOG_RATIO = 500.0
_POINTS = 4001


class Tested(Protocol):
    """A convex, non-increasing curve that may be evaluated from below (the safe side) only."""

    def beta(self, alpha: np.ndarray) -> np.ndarray:
        """Least false negative rates that are allowed, or less, at false positive rates ``alpha``."""

    def __hash__(self) -> int: ...


Ordering = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Rates (alpha, beta) to a number, non-increasing in both: which pairs of counts tell more."""


def probits(alpha: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """The mu that error rates would give, capped below: the ordering for claims of any shape."""
    return np.maximum(-ndtri(alpha) - ndtri(beta), -1e3)


class Evidence(ABC):
    """What scores show of an attack, at a share of the significance."""

    theorem: ClassVar[str]

    @abstractmethod
    def p_value(self, claim: Tested) -> float:
        """Probability, at most, of scores this telling if the release satisfies ``claim``."""

    @property
    @abstractmethod
    def perfect(self) -> Evidence:
        """The same sizes without a single error."""

    def test(self, significance: float, ordering: Ordering = probits) -> Callable[[Tested], bool]:
        """Whether a claim is rejected at ``significance``, in (0, 1), for many claims.

        Args:
            ordering: which counts tell more, where both errors are counted.
        """
        return lambda claim: self.p_value(claim) <= significance

    def rejects(self, claim: Tested, significance: float) -> bool:
        """Whether this is too telling for the claim."""
        return self.test(significance)(claim)


Shares = tuple[tuple[Evidence, float], ...]
"""Pieces of evidence, each with its share of the significance."""


@dataclass(frozen=True, slots=True)
class ApproximateDP:
    """(epsilon, delta) in both directions: Proposition 2.5 of DONG2022."""

    epsilon: float
    delta: float

    def beta(self, alpha: np.ndarray) -> np.ndarray:
        """Least false negative rates that are allowed, of the shape of ``alpha``."""
        steep = 1.0 - self.delta - np.exp(self.epsilon) * alpha
        flat = np.exp(-self.epsilon) * (1.0 - self.delta - alpha)
        return np.maximum(np.maximum(steep, flat), 0.0)


@dataclass(frozen=True, slots=True)
class GaussianClaim:
    """G_mu, for every ``mu >= 0``."""

    mu: float

    def beta(self, alpha: np.ndarray) -> np.ndarray:
        """Least false negative rates that are allowed, of the shape of ``alpha``."""
        return ndtr(-ndtri(alpha) - self.mu)


class TangentTable:
    """The polygon of a curve's tangents at many thresholds, never above the curve: its corners, looked up fast.

    Between the ends of the thresholds the loss is quadratic in the spacing; beyond them the polygon falls to 0, which
    is safe.
    """

    def __init__(self, curve: TradeOff) -> None:
        thresholds = _thresholds(curve)
        corners = polygon_above(thresholds, log_deltas(curve, thresholds)).vertices
        self._alpha, self._beta = np.exp(corners.fpr), np.exp(corners.fnr)

    def beta(self, alpha: np.ndarray) -> np.ndarray:
        """No more than the curve, and at least 0; of the shape of ``alpha``."""
        return np.interp(alpha, self._alpha, self._beta)


def _thresholds(curve: TradeOff) -> np.ndarray:
    """Thresholds dense both on the linear and on the logarithmic scale, up to rates of 1e-40."""
    edges = np.minimum(1e-3 * 2.0 ** np.arange(20), _LARGEST_LOG_RATIO)
    far = np.maximum(curve.errors(edges).fpr, curve.errors(-edges).fnr) < _SMALLEST_RATE
    edge = edges[np.argmax(far)] if np.any(far) else _LARGEST_LOG_RATIO
    linear = np.linspace(-edge, edge, _POINTS)
    logarithmic = edge * np.logspace(-5, 0, _POINTS // 2)
    return np.unique(np.concatenate([linear, logarithmic, -logarithmic]))


def largest_rejected(rejects: Callable[[float], bool], limit: float, tolerance: float = 1e-6) -> float:
    """The end of the rejected range of a nested family, from below; 0 if even 0 is not rejected.

    Args:
        rejects: whether the family member with this parameter is rejected; True up to some point.
        limit: a parameter that is not rejected.
        tolerance: relative width at which bisection stops.
    """
    if not rejects(0.0):
        return 0.0
    low, high = 0.0, min(1.0, limit)
    while high < limit and rejects(high):
        low, high = high, 2.0 * high
    return end_between(rejects, low, high, tolerance)


def end_between(rejects: Callable[[float], bool], low: float, high: float, tolerance: float = 1e-6) -> float:
    """The end of the rejected range, from below, where ``low`` is rejected and ``high`` is not."""
    while high - low > tolerance * max(high, 1e-3):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if rejects(middle) else (low, middle)
    return low

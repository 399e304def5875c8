"""A polygon and a smooth curve that both hold: no chord of the polygon says more than the smooth curve does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from reticent.kernel.curves.base import LogErrors, TradeOff
from reticent.kernel.curves.piecewise import PolygonTradeOff
from reticent.kernel.curves.polygon import strictest


class Capped(TradeOff):
    """Each number is the smaller risk of two curves that both bound it.

    A polygon lies between its tangents above a smooth curve that it was made of, however close they are. So a weaker
    attacker, whom the polygon bounds, would be stated above a stronger one, whose curve is smooth.

    Attributes:
        curve: a pessimistic curve.
        cap: another one.
    """

    def __init__(self, curve: TradeOff, cap: TradeOff) -> None:
        self.curve, self.cap = curve, cap

    def errors(self, log_ratio: ArrayLike) -> LogErrors:
        """Those of the curve with the smaller delta at the threshold, so that none is larger than the true ones."""
        capped = self.cap.log_delta(log_ratio) < self.curve.log_delta(log_ratio)
        pairs = zip(self.cap.errors(log_ratio), self.curve.errors(log_ratio), strict=True)
        return LogErrors(*(np.where(capped, cap, own) for cap, own in pairs))

    def _at(self, log_alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        (beta, power), (cap_beta, cap_power) = self.curve._at(log_alpha), self.cap._at(log_alpha)
        return np.maximum(beta, cap_beta), np.minimum(power, cap_power)

    def _log_delta_above(self, epsilon: np.ndarray) -> np.ndarray:
        return np.minimum(self.curve._log_delta_above(epsilon), self.cap._log_delta_above(epsilon))

    @property
    def proven_mu(self) -> float:
        """The smaller of both."""
        return min(self.curve.proven_mu, self.cap.proven_mu)

    def largest_shift(self, lowest: float) -> float:
        """The smaller of both."""
        return min(self.curve.largest_shift(lowest), self.cap.largest_shift(lowest))

    @property
    def reversed(self) -> TradeOff:
        return Capped(self.curve.reversed, self.cap.reversed)

    def __repr__(self) -> str:
        return f"Capped({self.curve!r}, {self.cap!r})"


def above_none(curves: Sequence[TradeOff]) -> TradeOff:
    """``strictest``, whose chords state more risk than no smooth one of them: for what is read, and not composed.

    Args:
        curves: pessimistic ones that all hold; at least one.
    """
    found: TradeOff = strictest(curves)
    for curve in curves:
        found = found if isinstance(curve, PolygonTradeOff) else Capped(found, curve)
    return found

"""Any trade-off curve as a dominating pair."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from reticent.kernel.curves import PolygonTradeOff, TradeOff
from reticent.kernel.errors import ParameterError
from reticent.kernel.pairs.base import Pair


@dataclass(frozen=True)
class CurvePair(Pair):
    """Two laws with a known trade-off curve.

    Attributes:
        trade_off: H0 = absent; give the same object for equal releases, so that they are counted together.
        bounds: the largest privacy loss and the largest of its negative; infinite where none is known.

    Raises:
        ParameterError: ``bounds`` are not two numbers.
    """

    trade_off: TradeOff
    bounds: tuple[float, float] = (math.inf, math.inf)

    def __post_init__(self) -> None:
        if np.shape(self.bounds) != (2,) or not all(bound >= 0.0 for bound in self.bounds):
            wanted = "two numbers >= 0, the largest privacy loss and the largest of its negative"
            raise ParameterError("bounds", self.bounds, wanted)

    @property
    def curve(self) -> TradeOff:
        return self.trade_off

    @property
    def largest_losses(self) -> tuple[float, float]:
        """As stated in ``bounds``."""
        return self.bounds

    @property
    def proven_mu_is_least(self) -> bool:
        """Of a polygon the least mu is that of a vertex."""
        return isinstance(self.trade_off, PolygonTradeOff)

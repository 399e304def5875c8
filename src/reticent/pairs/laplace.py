"""Laplace noise on a scalar sum, sampled or not."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from reticent.curves import LaplaceTradeOff
from reticent.kernel.curves import TradeOff, subsampled
from reticent.kernel.pairs.base import Drawn

_OVERFLOW = 700.0  # exponent from which e^x - 1 is e^x, and next to which it overflows


@dataclass(frozen=True)
class LaplacePair(Drawn):
    """Laplace noise of scale ``noise_multiplier``, moved by ``shift`` with probability ``sample_rate``.

    Attributes:
        noise_multiplier: scale of the noise, > 0 (its standard deviation is sqrt(2) times that).
        sample_rate: probability that the target takes part, in (0, 1].
        shift: distance of the two means when it takes part, >= 0.
    """

    noise_multiplier: float
    sample_rate: float
    shift: float

    @cached_property
    def curve(self) -> TradeOff:
        return subsampled(LaplaceTradeOff(self.shift / self.noise_multiplier), self.sample_rate)

    @property
    def largest_losses(self) -> tuple[float, float]:
        """Both finite: Laplace noise moves no density by more than exp(shift / noise)."""
        reach, rate = self.shift / self.noise_multiplier, self.sample_rate
        if rate == 1.0:
            return reach, reach
        forward = math.log1p(rate * math.expm1(reach)) if reach < _OVERFLOW else reach + math.log(rate)
        return forward, min(-math.log1p(rate * math.expm1(-reach)), -self.log_absent)

    @property
    def proven_mu_is_least(self) -> bool:
        return self.sample_rate == 1.0

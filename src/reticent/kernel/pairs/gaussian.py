"""Gaussian noise on a sum, sampled or not."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from reticent.kernel.curves import GaussianTradeOff, TradeOff, subsampled, symmetrised
from reticent.kernel.pairs.base import Drawn
from reticent.kernel.pairs.gaussian_mixture import GaussianMixture


@dataclass(frozen=True)
class GaussianPair(Drawn):
    """N(0, noise^2) against the same, moved by ``shift`` with probability ``sample_rate``.

    Attributes:
        noise_multiplier: standard deviation of the noise, > 0.
        sample_rate: probability that the target takes part, in (0, 1].
        shift: distance of the two means when it takes part, > 0.
    """

    noise_multiplier: float
    sample_rate: float
    shift: float

    @cached_property
    def curve(self) -> TradeOff:
        return subsampled(GaussianTradeOff(self.unsampled_mu), self.sample_rate)

    @property
    def largest_losses(self) -> tuple[float, float]:
        """Unbounded upwards; downwards a release cannot show more than that it was not sampled."""
        return math.inf, -self.log_absent

    @property
    def mixture(self) -> GaussianMixture | None:
        return GaussianMixture(self.noise_multiplier / self.shift, (self.sample_rate,))

    @property
    def unsampled_mu(self) -> float:
        return self.shift / self.noise_multiplier


@dataclass(frozen=True)
class SymmetrisedGaussianPair(GaussianPair):
    """A sampled Gaussian pair, the worse of both directions: sampling without replacement, sizes agree."""

    @cached_property
    def curve(self) -> TradeOff:
        return symmetrised(subsampled(GaussianTradeOff(self.unsampled_mu), self.sample_rate))

    @property
    def largest_losses(self) -> tuple[float, float]:
        """Unbounded in both directions."""
        return math.inf, math.inf

    @property
    def mixture(self) -> None:
        """None: no transform of the worse of two directions is known."""

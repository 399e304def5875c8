"""Which pair dominates one Gaussian sum in which each record is included independently."""

from __future__ import annotations

from reticent.kernel.pairs.antipodal import AntipodalGaussianPair
from reticent.kernel.pairs.base import Drawn
from reticent.kernel.pairs.disclosure import Disclosure
from reticent.kernel.pairs.gaussian import GaussianPair
from reticent.kernel.pairs.neighbouring import Neighbouring


def poisson_gaussian(noise_multiplier: float, sample_rate: float, neighbouring: Neighbouring) -> Drawn:
    """Proposition 30 of ZHU2022, and docs/theory/replace-dominance.md under replacement.

    Args:
        noise_multiplier: standard deviation of the noise over the clip norm, >= 0.
        sample_rate: probability of one record, in (0, 1].
    """
    if noise_multiplier == 0.0:
        return Disclosure(sample_rate)
    if neighbouring is Neighbouring.REPLACE and sample_rate < 1.0:
        return AntipodalGaussianPair(noise_multiplier, sample_rate)
    return GaussianPair(noise_multiplier, sample_rate, neighbouring.sensitivity)

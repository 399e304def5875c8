"""The worst-case advantage of a run in a fraction of a millisecond: what figures and benchmarks ask many times."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import erf

from reticent.accountants.profile import WorstCaseProfile
from reticent.accountants.step_losses import LEAST_NOISE, QUICK
from reticent.kernel import checks
from reticent.kernel.accountants import certified_advantage
from reticent.kernel.pairs import Neighbouring

_ROOT_EIGHT = 2.8284271247461903


def advantage(noise_multiplier: float, sample_rate: float, steps: int, neighbouring: Neighbouring) -> float:
    """Worst-case advantage of a Poisson-sampled DP-SGD run: an estimate with an error below 1e-8.

    Where the fast rule does not vouch for that, the upper end of the certified enclosure (slower).

    Args:
        noise_multiplier: >= 0.
        sample_rate: in (0, 1].
        steps: >= 1.
        neighbouring: between which data sets.

    Raises:
        ParameterError: an argument is outside its domain.
    """
    noise, rate = checks.non_negative(noise_multiplier=noise_multiplier), checks.rate(sample_rate=sample_rate)
    checks.count(steps=steps)
    if noise > 0.0 and rate == 1.0:
        return float(erf(neighbouring.sensitivity * math.sqrt(steps) / (noise * _ROOT_EIGHT)))
    if noise > LEAST_NOISE:
        with np.errstate(all="ignore"):
            profile = WorstCaseProfile(noise, rate, steps, neighbouring, 0.0, QUICK)
        if profile.sure and profile.reliable:
            return profile.advantage()
    return certified_advantage(noise, rate, steps, neighbouring)[1]

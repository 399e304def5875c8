"""Certified risks of the worst case at one point, without composing the whole curve."""

from __future__ import annotations

from reticent.calibrate.targets import Advantage, BayesSecurity, Success, Target
from reticent.composition import certified_advantage
from reticent.mechanism import DPSGD, Mechanism, Neighbouring, Sampler
from reticent.threat import Adversary, Interval, Membership, Method, WorstCase

_CURVE_WIDTH = 6e-7  # how much the polygon of the whole curve may claim above the point value
_LEAST = 0.02  # advantages below are left to the whole curve: there the allowance would cost slack


def point_risk(
    mechanism: Mechanism, target: Target, adversary: Adversary, neighbouring: Neighbouring, method: Method
) -> Interval | None:
    """Enclosure of the risk with a bound that the claimed curve keeps as well; None where there is none.

    The bound is the certified advantage plus the width that ``compose`` aims for, so that reading the whole
    curve at the same release again gives no more.
    """
    worst = isinstance(adversary, WorstCase) or (isinstance(adversary, Membership) and method is Method.EXACT)
    if not (worst and isinstance(mechanism, DPSGD) and mechanism.sampler is Sampler.POISSON):
        return None
    half = isinstance(target, Success) and target.prior == 0.5
    if not (half or isinstance(target, Advantage | BayesSecurity)) or mechanism.noise_multiplier < 0.1:
        return None
    lower, upper = certified_advantage(mechanism.noise_multiplier, mechanism.sample_rate, mechanism.steps, neighbouring)
    if upper - lower > 1e-6 or upper < _LEAST:
        return None
    upper = min(upper + _CURVE_WIDTH, 1.0)
    if isinstance(target, BayesSecurity):
        return Interval(1.0 - upper, 1.0 - upper, 1.0 - lower)
    if half:
        lower, upper = 0.5 + 0.5 * lower, 0.5 + 0.5 * upper
    return Interval(lower, upper, upper)

"""Risks that are claimed without composing the whole curve: formulas, and enclosures at one threshold.

A bound taken at one threshold is tighter than the polygon that ``compose`` draws through many. What is claimed
here is the bound plus what that polygon may add, so that the whole curve, read at the same release, never says more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property

import numpy as np

from reticent.calibrate.estimate import Profile, epsilon_of, power_of
from reticent.calibrate.targets import (
    Advantage,
    BayesSecurity,
    EpsilonAtDelta,
    Reconstruction,
    Success,
    Target,
    TprAtFpr,
)
from reticent.composition import Composed, certified_advantage, closed_forms
from reticent.mechanism import DPSGD, Mechanism, Neighbouring, Sampler
from reticent.threat import Adversary, Interval, Membership, Method, WorstCase
from reticent.tradeoff import from_advantage

_FORMS = {
    Method.CLT: closed_forms.clt_mu,
    Method.CLOSED_FORM: closed_forms.rho_form_mu,
    Method.PUBLISHED: closed_forms.published_mu,
}
_LEAST_NOISE = 0.1
_SMOOTH = 0.1  # kurtosis below which compose integrates the characteristic function throughout
_ROUGHEST = 5.0  # kurtosis above which a point is no cheaper than the curve
_BETWEEN = 1e-5  # relative: what chords between thresholds add to delta
_ON_LATTICE = 7.5e-5  # relative: what the lattice adds where compose falls back to it
_LATTICE_WIDTH = 1.5e-6
_APART = 5e-3  # distance of the thresholds around an optimum, in standard deviations of the loss


def formula_of(release: Mechanism, adversary: Adversary, neighbouring: Neighbouring, method: Method) -> float | None:
    """mu of the Gaussian curve that ``Membership`` proposes by ``method``; None where it is not such a curve."""
    if not (_by_formula(release, adversary, method) and method in _FORMS and isinstance(release, DPSGD)):
        return None
    return float(_FORMS[method](release.noise_multiplier, release.sample_rate, release.steps, neighbouring))


def formula_risk(
    release: Mechanism, target: Target, adversary: Adversary, neighbouring: Neighbouring, method: Method
) -> float | None:
    """The risk by the closed form of ``method``, as ``Membership`` claims it; None where it has none."""
    mu = formula_of(release, adversary, neighbouring, method)
    if mu is not None:
        return target.of_mu(max(mu, 1e-300))
    if method is Method.PROVEN and isinstance(release, DPSGD) and _by_formula(release, adversary, method):
        run = release.noise_multiplier, release.sample_rate, release.steps
        return target.measure(from_advantage(float(closed_forms.proven_bracket(*run, neighbouring).upper)))
    return None


def point_risk(
    release: Mechanism, target: Target, adversary: Adversary, neighbouring: Neighbouring, method: Method
) -> Interval | None:
    """Enclosure of the risk with a bound that the claimed curve keeps as well; None where there is none."""
    worst = isinstance(adversary, WorstCase) or (isinstance(adversary, Membership) and method is Method.EXACT)
    if not (worst and isinstance(release, DPSGD) and release.sampler is Sampler.POISSON):
        return None
    if release.noise_multiplier < _LEAST_NOISE or release.sample_rate == 1.0:
        return None
    point = _Point(release, neighbouring)
    match target:
        case Advantage():
            return point.delta(0.0)
        case BayesSecurity():
            return _mapped(point.delta(0.0), lambda delta: 1.0 - delta)
        case Success(prior=prior):
            rarer = min(prior, 1.0 - prior)
            threshold = math.log1p(-rarer) - math.log(rarer)
            return _mapped(point.delta(threshold), lambda delta: 1.0 - rarer + rarer * delta)
        case EpsilonAtDelta(delta=delta):
            return point.epsilon(delta)
        case TprAtFpr(fpr=fpr) | Reconstruction(baseline=fpr):
            return point.power(fpr, target)
        case _:
            return None


class _Point:
    """The worst case of one release at single thresholds; every ``value`` is the upper end with its allowance."""

    def __init__(self, release: DPSGD, neighbouring: Neighbouring) -> None:
        self.run = release.noise_multiplier, release.sample_rate, release.steps
        self.neighbouring = neighbouring
        self.composed = Composed(release, neighbouring)

    @cached_property
    def profile(self) -> Profile:
        """Estimates, to know where to look."""
        return Profile(*self.run, self.neighbouring)

    def delta(self, epsilon: float) -> Interval | None:
        """The larger of both directions' delta at ``epsilon``, any real number."""
        if epsilon < 0.0:
            grown = math.exp(epsilon)
            return _mapped(self.delta(-epsilon), lambda delta: 1.0 - grown + grown * delta)
        if not self._worth_asking(epsilon):
            return None
        lower, upper = certified_advantage(*self.run, self.neighbouring) if epsilon == 0.0 else self._at(epsilon)
        allowed = self._allowance(upper, epsilon)
        if allowed is None or upper - lower > 1e-6:
            return None
        return Interval(lower, min(upper + allowed, 1.0), upper)

    def _worth_asking(self, epsilon: float) -> bool:
        if not (self.profile.reliable and self.profile.kurtosis <= _ROUGHEST):
            return False
        return epsilon == 0.0 or self._allowance(float(self.profile.delta(np.array([epsilon]))[0]), epsilon) is not None

    def _at(self, epsilon: float) -> tuple[float, float]:
        with np.errstate(all="ignore"):
            return self.composed.delta(epsilon)

    def _allowance(self, delta: float, epsilon: float) -> float | None:
        """How much the polygon may lie above the point; None where that would cost slack."""
        if self.profile.kurtosis < _SMOOTH:
            return 1e-8 + 1e-6 * delta if epsilon == 0.0 else _BETWEEN * delta
        if delta >= _LATTICE_WIDTH / _ON_LATTICE:
            return _LATTICE_WIDTH
        return _ON_LATTICE * delta if delta >= 1e-3 else None

    def epsilon(self, delta: float) -> Interval | None:
        """An epsilon with at most ``delta``, next to the least: from where the estimate has it, outwards."""
        if not self.profile.reliable:
            return None
        near, slope = epsilon_of(self.profile, delta)
        pad = 2.0 * _BETWEEN / slope if near > 0.0 else 0.0
        for _ in range(3):
            found = self.delta(near + pad)
            if found is None:
                return None
            if found.value <= delta:
                break
            pad += 1.5 * math.log(found.value / delta) / slope + _BETWEEN / slope
        else:
            return None
        below = self.delta(near - pad) if near > pad else None
        lower = near - pad if below is not None and below.lower > delta else 0.0
        return Interval(lower, near + pad, near + pad)

    def power(self, fpr: float, target: Target) -> Interval | None:
        """The largest true positive rate at ``fpr``, by the tangent delta(l) + e^l fpr near the best l.

        Every l gives a bound. The lower end is convexity in e^l: the tangents through the outer two of three
        neighbouring points stay below the curve of bounds between them.
        """
        if not self.profile.reliable:
            return None
        _, best = power_of(self.profile.delta, fpr, self.profile.largest)
        here = self._tangent(best, fpr)
        if here is None or not target.met_by(here.value):
            return here
        apart = -math.expm1(-_APART * self.profile.spread)
        sides = [self._tangent(best + math.log1p(way * apart), fpr) for way in (-1.0, 1.0)]
        lower = fpr
        if all(side is not None and side.lower >= here.upper for side in sides):
            lower = max(lower, 2.0 * here.lower - max(side.upper for side in sides if side is not None))
        return Interval(lower, here.value, here.upper)

    def _tangent(self, threshold: float, fpr: float) -> Interval | None:
        added = math.exp(threshold) * fpr
        return _mapped(self.delta(threshold), lambda delta: min(delta + added, 1.0))


def _by_formula(release: Mechanism, adversary: Adversary, method: Method) -> bool:
    if not (isinstance(release, DPSGD) and release.sampler is Sampler.POISSON and release.noise_multiplier > 0.0):
        return False
    return isinstance(adversary, Membership) and method is not Method.EXACT


def _mapped(found: Interval | None, risk: Callable[[float], float]) -> Interval | None:
    """``found`` through a monotone map; the claim stays the claim."""
    if found is None:
        return None
    ends = sorted((risk(found.lower), risk(found.upper)))
    return Interval(ends[0], risk(found.value), ends[1])

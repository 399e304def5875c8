"""Risks that are claimed without composing the whole curve: formulas, and enclosures at one threshold.

A bound taken at one threshold is tighter than the polygon that ``compose`` draws through many. What is claimed
here is the bound plus what that polygon may add, so that the whole curve, read at the same release, never says more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property

import numpy as np

from reticent.calibrate.targets import (
    Advantage,
    BayesSecurity,
    EpsilonAtDelta,
    Mu,
    Reconstruction,
    Success,
    Target,
    TprAtFpr,
)
from reticent.composition import Composed, WorstCaseProfile, certified_advantage, closed_forms, mu_limits
from reticent.mechanism import DPSGD, Gaussian, Mechanism, Neighbouring, Sampler
from reticent.threat import Adversary, Interval, Membership, Method, Mixed, Relaxed, WorstCase
from reticent.tradeoff import from_advantage

FORMS = {
    Method.CLT: closed_forms.clt_mu,
    Method.CLOSED_FORM: closed_forms.rho_form_mu,
    Method.PUBLISHED: closed_forms.published_mu,
}
_LEAST_NOISE = 0.1
_SMOOTH = 1.0  # kurtosis of the loss above which points other than 0 cost as much as the curve
_ROUGHEST = 5.0  # and above which the curve has routes of its own
_AT_ZERO, _BETWEEN = 1e-6, 1e-5  # relative: what chords between its thresholds add to delta
_ROUGH_AT_ZERO = 5e-5
_ROUNDING = 1e-10
_APART = 5e-3  # distance of the thresholds around an optimum, in standard deviations of the loss


def formula_of(release: Mechanism, adversary: Adversary, neighbouring: Neighbouring, method: Method) -> float | None:
    """mu of the Gaussian curve that ``Membership`` proposes by ``method``; None where it is not such a curve."""
    if not (_by_formula(release, adversary, method) and method in FORMS and isinstance(release, DPSGD)):
        return None
    return float(FORMS[method](release.noise_multiplier, release.sample_rate, release.steps, neighbouring))


def formula_risk(
    release: Mechanism, target: Target, adversary: Adversary, neighbouring: Neighbouring, method: Method
) -> float | None:
    """The risk by the closed form of ``method``, as ``Membership`` claims it; None where it has none."""
    mu = formula_of(release, adversary, neighbouring, method)
    if mu is not None:
        return target.of_mu(max(mu, 1e-300))
    if isinstance(target, Mu):
        return None
    if method is Method.PROVEN and isinstance(release, DPSGD) and _by_formula(release, adversary, method):
        run = release.noise_multiplier, release.sample_rate, release.steps
        upper = float(closed_forms.proven_bracket(*run, neighbouring).upper)
        return upper if isinstance(target, Advantage) else target.measure(from_advantage(upper))
    return None


def point_risk(
    release: Mechanism, target: Target, adversary: Adversary, neighbouring: Neighbouring, method: Method
) -> Interval | None:
    """Enclosure of the risk with a bound that the claimed curve keeps as well; None where there is none."""
    if isinstance(target, Mu):
        return _mu(release, adversary, neighbouring, method)
    worst = isinstance(adversary, WorstCase) or (isinstance(adversary, Membership) and method is Method.EXACT)
    if not (worst and isinstance(release, DPSGD) and release.sampler is Sampler.POISSON and release.records == 1):
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


def _mu(release: Mechanism, adversary: Adversary, neighbouring: Neighbouring, method: Method) -> Interval | None:
    """mu of all who know no less than the direction: the release alone says it, but for bounded losses."""
    same = isinstance(adversary, WorstCase | Relaxed | Mixed) or (
        isinstance(adversary, Membership) and method is Method.EXACT
    )
    if not same or not isinstance(release, Gaussian | DPSGD):
        return None
    lower, upper = mu_limits(release, neighbouring)
    return Interval(lower, upper, upper)


class _Point:
    """The worst case of one release at single thresholds; every ``value`` is the upper end with its allowance."""

    def __init__(self, release: DPSGD, neighbouring: Neighbouring) -> None:
        self.run = release.noise_multiplier, release.sample_rate, release.steps
        self.neighbouring = neighbouring
        self.composed = Composed(release, neighbouring)

    @cached_property
    def profile(self) -> WorstCaseProfile:
        """Estimates, to know where to look."""
        return WorstCaseProfile(*self.run, self.neighbouring)

    def delta(self, epsilon: float) -> Interval | None:
        """The larger of both directions' delta at ``epsilon``, any real number."""
        if epsilon < 0.0:
            grown = math.exp(epsilon)
            return _mapped(self.delta(-epsilon), lambda delta: 1.0 - grown + grown * delta)
        if not self.profile.reliable or self.profile.kurtosis > (_ROUGHEST if epsilon == 0.0 else _SMOOTH):
            return None
        with np.errstate(all="ignore"):
            certified = certified_advantage(*self.run, self.neighbouring) if epsilon == 0.0 else None
            ends = certified or self.composed.delta(epsilon)
        if ends[1] - ends[0] > 1e-6:
            return None
        allowed = _BETWEEN if epsilon > 0.0 else _AT_ZERO if self.profile.kurtosis <= _SMOOTH else _ROUGH_AT_ZERO
        if epsilon == 0.0:  # and no more where the curve is next to certainty
            allowed = allowed * (1.0 - ends[1]) + _ROUNDING
        return Interval(ends[0], min(ends[1] * (1.0 + allowed), 1.0), ends[1])

    def epsilon(self, delta: float) -> Interval | None:
        """An epsilon with at most ``delta``, next to the least: from where the estimate has it, outwards."""
        if not self.profile.reliable:
            return None
        near, slope = self.profile.epsilon(delta)
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
        _, best = self.profile.power(fpr)
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
    if release.records > 1:
        return False
    return isinstance(adversary, Membership) and method is not Method.EXACT


def _mapped(found: Interval | None, risk: Callable[[float], float]) -> Interval | None:
    """``found`` through a monotone map; the claim stays the claim."""
    if found is None:
        return None
    ends = sorted((risk(found.lower), risk(found.upper)))
    return Interval(ends[0], risk(found.value), ends[1])

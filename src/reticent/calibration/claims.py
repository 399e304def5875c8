"""Risks that are claimed without composing the whole curve: formulas, and enclosures at one threshold.

A bound taken at one threshold is tighter than the polygon that ``compose`` draws through many. What is claimed
here is the bound plus what that polygon may add, so that the whole curve, read at the same release, never says more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from reticent.accountants.profile import WorstCaseProfile
from reticent.adversaries.relaxed.sign import Part, unknown_sign
from reticent.calibration.targets import Advantage, Mu, Target, mapped
from reticent.kernel.accountants import Composed, mu_limits
from reticent.kernel.adversaries import Adversary, Method
from reticent.kernel.curves import from_advantage
from reticent.kernel.curves.enclosure import Interval
from reticent.kernel.mechanisms import DPSGD, Mechanism
from reticent.kernel.pairs import Neighbouring

_LEAST_NOISE = 0.1
_SMOOTH = 1.0  # kurtosis of the loss above which points other than 0 cost as much as the curve
_ROUGHEST = 5.0  # and above which the curve has routes of its own
_AT_ZERO, _BETWEEN = 1e-6, 1e-5  # relative: what chords between its thresholds add to delta
_ROUGH_AT_ZERO = 5e-5
_ROUNDING = 1e-10
_WIDE = 1e-6  # of delta: what is known no better has to be composed
_FURTHER, _TRIES = 1.5, 3  # how far past the estimated step an epsilon is looked for, and how often
_LEAST_MU = 1e-300  # instead of 0
_APART = 5e-3  # distance of the thresholds around an optimum, in standard deviations of the loss


@dataclass(frozen=True, slots=True)
class Attack:
    """Who attacks, and how that is evaluated.

    Attributes:
        adversary: who attacks.
        neighbouring: between which data sets.
        method: how the adversary's curve is evaluated.
    """

    adversary: Adversary
    neighbouring: Neighbouring
    method: Method

    @property
    def exact(self) -> bool:
        """Whether the curve is the worst case's."""
        return self.adversary.is_worst_by(self.method)

    def claim(self, release: Mechanism, target: Target) -> Interval | None:
        """The risk that the attacker's curve keeps as well, without that curve; None where it has to be composed."""
        run = _sampled(release)
        stated = None if run is None else self.adversary.stated(run, self.neighbouring, self.method)
        if stated is not None and stated.mu is not None:
            value = target.of_mu(max(stated.mu, _LEAST_MU))
            return Interval(value, value, value)
        if isinstance(target, Mu):
            return self._mu(release)
        if stated is not None:
            line = isinstance(target, Advantage)
            value = stated.advantage if line else target.measure(from_advantage(stated.advantage))
            return Interval(value, value, value)
        if run is None or not self.exact or run.noise_multiplier < _LEAST_NOISE or run.sample_rate == 1.0:
            return None
        return target.at(Points(run, self.neighbouring))

    def at_most(self, release: Mechanism, target: Target) -> float | None:
        """A risk that the attacker's whole curve never exceeds, in less time; None where there is none."""
        fixed = self.adversary.hidden in ((None, 1.0), (1, 1.0)) and self.method is not Method.PUBLISHED
        run = release.training
        drawn = run is not None and run.sampler.independent and run.noise_multiplier > 0.0
        if not (fixed and drawn) or self.neighbouring is Neighbouring.REPLACE:
            return None
        return target.measure(unknown_sign(release, part=Part.CLAIM).pessimistic)

    def _mu(self, release: Mechanism) -> Interval | None:
        """mu of all who know no less than the direction: the release alone says it, but for bounded losses."""
        kept = self.adversary.keeps_mu and self.method is not Method.PUBLISHED
        if not (self.exact or kept) or release.sums is None:
            return None
        lower, upper = mu_limits(release, self.neighbouring)
        return Interval(lower, upper, upper)


def _sampled(release: Mechanism) -> DPSGD | None:
    """The run with noise that closed forms are known for."""
    run = release.training
    return run if run is not None and run.singly_sampled and run.noise_multiplier > 0.0 else None


class Points:
    """The worst case of one release at single points: each ``value`` is the upper end with its allowance; or None.

    Attributes:
        run: noise multiplier, sample rate and steps.
        neighbouring: between which data sets.
        composed: what is asked for proven numbers.
    """

    def __init__(self, release: DPSGD, neighbouring: Neighbouring) -> None:
        self.run = release.noise_multiplier, release.sample_rate, release.steps
        self.neighbouring = neighbouring
        self.composed = Composed(release, neighbouring)

    @cached_property
    def profile(self) -> WorstCaseProfile:
        """Estimates, to know where to look."""
        return WorstCaseProfile(*self.run, self.neighbouring)

    @cached_property
    def quick(self) -> WorstCaseProfile:
        """An estimate of the advantage alone."""
        return WorstCaseProfile.of_advantage(*self.run, self.neighbouring)

    def delta(self, epsilon: float) -> Interval | None:
        """The larger of both directions' delta at ``epsilon``, any real number."""
        if epsilon == 0.0 and (known := self.composed.known_advantage) is not None:
            return Interval(known[0], known[1], known[1])  # what the whole curve says, too
        if epsilon < 0.0:
            grown = math.exp(epsilon)
            return mapped(self.delta(-epsilon), lambda delta: 1.0 - grown + grown * delta)
        profile = self.quick if epsilon == 0.0 else self.profile
        if not profile.reliable or profile.kurtosis > (_ROUGHEST if epsilon == 0.0 else _SMOOTH):
            return None
        with np.errstate(all="ignore"):
            ends = self.composed.delta(epsilon)
        if ends[1] - ends[0] > _WIDE:
            return None
        allowed = _BETWEEN if epsilon > 0.0 else _AT_ZERO if profile.kurtosis <= _SMOOTH else _ROUGH_AT_ZERO
        if epsilon == 0.0:  # and no more where the curve is next to certainty
            allowed = allowed * (1.0 - ends[1]) + _ROUNDING
        return Interval(ends[0], min(ends[1] * (1.0 + allowed), 1.0), ends[1])

    def epsilon(self, delta: float) -> Interval | None:
        """An epsilon with at most ``delta``, next to the least: from where the estimate has it, outwards."""
        if not self.profile.reliable:
            return None
        near, slope = self.profile.epsilon(delta)
        pad = 2.0 * _BETWEEN / slope if near > 0.0 else 0.0
        for _ in range(_TRIES):
            found = self.delta(near + pad)
            if found is None:
                return None
            if found.value <= delta:
                break
            pad += _FURTHER * math.log(found.value / delta) / slope + _BETWEEN / slope
        else:
            return None
        below = self.delta(near - pad) if near > pad else None
        lower = near - pad if below is not None and below.lower > delta else 0.0
        return Interval(lower, near + pad, near + pad)

    def power(self, fpr: float, enough: Callable[[float], bool]) -> Interval | None:
        """The largest true positive rate at ``fpr``, by the tangent delta(l) + e^l fpr near the best l.

        Every l gives a bound. The lower end is convexity in e^l: the tangents through the outer two of three
        neighbouring points stay below the curve of bounds between them.

        Args:
            enough: whether a claimed rate is of use; a rate that is not needs no lower end.
        """
        if not self.profile.reliable:
            return None
        best = float(self.profile.power(np.array([fpr]))[1][0])
        here = self._tangent(best, fpr)
        if here is None or not enough(here.value):
            return here
        apart = -math.expm1(-_APART * self.profile.spread)
        sides = [self._tangent(best + math.log1p(way * apart), fpr) for way in (-1.0, 1.0)]
        lower = fpr
        if all(side is not None and side.lower >= here.upper for side in sides):
            lower = max(lower, 2.0 * here.lower - max(side.upper for side in sides if side is not None))
        return Interval(lower, here.value, here.upper)

    def _tangent(self, threshold: float, fpr: float) -> Interval | None:
        added = math.exp(threshold) * fpr
        return mapped(self.delta(threshold), lambda delta: min(delta + added, 1.0))

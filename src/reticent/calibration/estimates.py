"""Cheap estimates of what attackers reach: they steer a search, and nothing is claimed by them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from reticent.accountants import closed_forms
from reticent.accountants.profile import WorstCaseProfile
from reticent.accountants.rough import rough_curve
from reticent.accountants.tangents import power_of
from reticent.adversaries.relaxed.dimension import relaxed_estimate
from reticent.adversaries.relaxed.sign import quick_sign_estimate
from reticent.calibration.gaussian import LARGEST_MU, clipped, mu_at
from reticent.calibration.scale import log_clt_mu
from reticent.calibration.targets import EpsilonAtDelta, Target
from reticent.kernel.accountants.one_direction import one_run
from reticent.kernel.adversaries.base import Hidden
from reticent.kernel.errors import NumericalError
from reticent.kernel.mechanisms import DPSGD, Mechanism
from reticent.kernel.pairs import Neighbouring

_LEAST_NOISE = 0.01  # below, the risk is that of being sampled at all
_ROUGHEST = 5.0  # kurtosis of the loss from which what is claimed comes from a lattice
_LEAST_DELTA = 1e-15  # whose logarithm is taken
_NEAREST, _PER_MU, _LARGEST_MU = 3.0, 6.0, 10.0  # the largest threshold looked at: 3 + 6 mu, with mu at most 10
_AROUND, _PLACES, _ZOOMS = np.array([0.25, 3.0]), 25, 2  # of an epsilon: shares of the target, and a grid between
_UNDERFLOW = 1e-300
_SPLITS = np.linspace(0.0, 1.0, 9)  # shares of the first of two thresholds, under replacement

Delta = Callable[[np.ndarray], np.ndarray]
"""From epsilon >= 0 to delta."""


class Tried(NamedTuple):
    """A Poisson-sampled run at one value of the unknown.

    Attributes:
        noise, rate: as of ``DPSGD``.
        steps: any real number: searches ask between whole ones.
        records: of the person, each drawn by itself.
    """

    noise: float
    rate: float
    steps: float
    records: int = 1

    @property
    def run(self) -> DPSGD:
        """With a whole number of steps."""
        noise, steps = max(self.noise, _LEAST_NOISE), max(1, round(self.steps))
        return DPSGD(noise, self.rate, steps, records_per_user=self.records if self.records > 1 else None)


def worst_log_mu(target: Target, tried: Tried, neighbouring: Neighbouring) -> float:
    """log of the mu at which a Gaussian curve would agree with the worst case on what the target asks."""
    noise, rate, steps, records = tried
    if rate >= 1.0:
        return math.log(clipped(float(closed_forms.rho_form_mu(noise / records, rate, steps, neighbouring))))
    with np.errstate(all="ignore"):
        if target.threshold == 0.0:
            profile = WorstCaseProfile.of_advantage(max(noise, _LEAST_NOISE), rate, steps, neighbouring, records)
            if profile.reliable:
                return _log_mu_at(0.0, profile.advantage())
        else:
            profile = _worst(tried, neighbouring, target.threshold)
            if profile.reliable and profile.kurtosis < _ROUGHEST:
                return _agreeing(target, profile.delta, profile.largest)
    return composed_log_mu(target, tried.run, neighbouring)


def averaged_log_mu(target: Target, lacks: Hidden, tried: Tried, neighbouring: Neighbouring) -> float:
    """The same of an attacker who lacks a direction, in all runs or in some.

    Args:
        lacks: which direction.
    """
    relaxed = _unknown_direction(target, lacks.dimension, tried, neighbouring) if tried.rate < 1.0 else None
    if relaxed is None:
        return worst_log_mu(target, tried, neighbouring)
    with np.errstate(all="ignore"):
        if neighbouring is not Neighbouring.REPLACE and lacks.share == 1.0:
            return _claimed(target, relaxed, _furthest(tried.rate * math.sqrt(tried.steps) / tried.noise))
        worst = _worst(tried, neighbouring, _beyond(target))
        told = worst.delta if worst.reliable else relaxed
        both, share = _least(relaxed, told), lacks.share
        return _claimed(target, lambda x: share * both(x) + (1.0 - share) * told(x), worst.largest)


def schedule_log_mu(target: Target, runs: Mechanism, neighbouring: Neighbouring) -> float:
    """The same for one unknown sign in several runs of DP-SGD; the central limit theorem where there is no estimate.

    Args:
        runs: a ledger of them.
    """
    near = log_clt_mu(runs, neighbouring)
    delta = quick_sign_estimate(runs)
    return near if delta is None else _claimed(target, delta, _furthest(math.exp(near)))


def _beyond(target: Target) -> float | None:
    """The last threshold that ``_claimed`` looks at."""
    return None if target.threshold is None else _AROUND[1] * target.threshold


def selected_log_mu(epsilon: float, best: Mechanism, neighbouring: Neighbouring) -> float:
    """The same for the best of several runs, by its delta at one threshold."""
    (part,) = best.parts_under(neighbouring)
    return _log_mu_at(epsilon, part.pair.quick_delta(one_run, epsilon))


def composed_log_mu(target: Target, release: Mechanism, neighbouring: Neighbouring) -> float:
    """The same for any noisy steps, from one coarse lattice.

    Args:
        release: with noise; next to none counts as the largest mu.
    """
    try:
        curve = rough_curve(release, neighbouring)
    except NumericalError:
        return math.log(LARGEST_MU)
    return math.log(target.equivalent_mu(target.measure(curve)))


def _worst(tried: Tried, neighbouring: Neighbouring, largest: float | None) -> WorstCaseProfile:
    noise, rate, steps, records = tried
    return WorstCaseProfile(max(noise, _LEAST_NOISE), rate, steps, neighbouring, largest, records=records)


def _unknown_direction(target: Target, dimension: int | None, tried: Tried, neighbouring: Neighbouring) -> Delta | None:
    """delta of the attacker who lacks the direction; None where there is no estimate, or nothing beyond the worst."""
    replaced = neighbouring is Neighbouring.REPLACE
    if replaced and dimension is None:
        return None
    if (dimension or 1) > 1:
        curve = relaxed_estimate(tried.run, dimension or 1, None if replaced else target.threshold, target.at_fpr)
        delta: Delta | None = curve.delta
    else:
        delta = quick_sign_estimate(tried.run)
    return chained(delta) if delta is not None and replaced else delta


def chained(delta: Delta) -> Delta:
    """Two steps, each of which has at most ``delta``."""

    def both(epsilon: np.ndarray) -> np.ndarray:
        first = np.multiply.outer(_SPLITS, epsilon)
        ways = [delta(one) + np.exp(one) * delta(epsilon - one) for one in first]
        return np.minimum(np.min(ways, axis=0), 1.0)

    return both


def _least(one: Delta, other: Delta) -> Delta:
    return lambda epsilon: np.minimum(one(epsilon), other(epsilon))


def _furthest(mu: float) -> float:
    """The largest threshold at which the tangents of a power are looked for."""
    return _NEAREST + _PER_MU * min(mu, _LARGEST_MU)


def _claimed(target: Target, delta: Delta, largest: float) -> float:
    """As ``_agreeing``; of an epsilon as it is claimed: beside a Gaussian curve it moves otherwise than delta does."""
    if isinstance(target, EpsilonAtDelta) and (found := epsilon_allowed(delta, target)) is not None:
        return math.log(target.equivalent_mu(found))
    return _agreeing(target, delta, largest)


def _agreeing(target: Target, delta: Delta, largest: float) -> float:
    """log mu of the Gaussian curve that agrees with ``delta`` on the target."""
    epsilon = target.threshold
    if epsilon is None:
        power = float(power_of(delta, np.array([target.at_fpr]), largest)[0][0])
        return math.log(target.equivalent_mu(target.of_power(power)))
    return _log_mu_at(epsilon, float(delta(np.array([epsilon]))[0]))


def epsilon_allowed(delta: Delta, target: EpsilonAtDelta) -> float | None:
    """Where ``delta`` is what the target allows: what is claimed moves as this does; None if that is far away."""
    low, high = _AROUND * target.value
    for _ in range(_ZOOMS):
        grid = np.linspace(low, high, _PLACES)
        logs = np.log(np.maximum(delta(grid), _UNDERFLOW))
        place = int(np.searchsorted(-logs, -math.log(target.delta)))
        if not 0 < place < len(grid):
            return None
        low, high = float(grid[place - 1]), float(grid[place])
    return float(np.interp(-math.log(target.delta), -logs[place - 1 : place + 1], [low, high]))


def _log_mu_at(epsilon: float, delta: float) -> float:
    """log mu of the Gaussian curve that passes through this point."""
    return math.log(mu_at(epsilon, math.log(max(delta, _LEAST_DELTA))))

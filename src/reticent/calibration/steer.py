"""Where a search starts, and the cheap functions that steer it before anything is claimed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from reticent.accountants import WorstCaseProfile, closed_forms
from reticent.accountants.tangents import power_of
from reticent.adversaries import Relaxed
from reticent.adversaries.relaxed.dimension import relaxed_estimate
from reticent.adversaries.relaxed.sign import common_sign_estimate
from reticent.calibration._gaussian import clipped, mu_at
from reticent.calibration.claims import Attack
from reticent.calibration.scale import NoiseScale, log_clt_mu, scale_near
from reticent.calibration.targets import Mu, Target
from reticent.calibration.unknowns import MeanRuns, NoiseMultiplier, OfOneRun, Unknown
from reticent.mechanisms import (
    DPSGD,
    Gaussian,
    Laplace,
    Ledger,
    MatrixMechanism,
    Mechanism,
    Neighbouring,
    Sampler,
    Selection,
)

_LEAST_NOISE = 0.01  # below, the risk is that of being sampled at all
_LEAST_CLT, _LEAST_PLAIN = 0.2, 1e-3  # noise below which the central limit theorem, or a Gaussian, says nothing
_LEAST_DELTA = 1e-15  # whose logarithm is taken
_OF_THE_BEST = 0.6  # mu of one run, of that of the best, about
_USUAL_RUNS, _PER_LOG_RUNS = (
    10.0,
    0.15,
)  # where the number of runs is looked for first, and how log mu grows with its log
_NEAREST, _PER_MU, _LARGEST_MU = 3.0, 6.0, 10.0  # the largest threshold looked at: 3 + 6 mu, with mu at most 10

Estimate = Callable[[float], float]
"""From a value of the unknown to log(equivalent mu)."""


def start_of(mechanism: Mechanism, unknown: Unknown, mu: float, neighbouring: Neighbouring) -> tuple[float, float]:
    """(u, slope of log mu in u) where the central limit theorem has ``mu``; u as in ``solve``: risk grows with it.

    Args:
        mechanism: the release; its value of the unknown does not matter.
        unknown: what is searched.
        mu: > 0, of the Gaussian curve that the target allows.
        neighbouring: between which data sets.
    """
    if isinstance(unknown, MeanRuns):
        return math.log(_USUAL_RUNS), _PER_LOG_RUNS
    if isinstance(mechanism, Selection) and isinstance(unknown, OfOneRun):
        return start_of(mechanism.base, unknown.inner, _OF_THE_BEST * mu, neighbouring)
    sign = 1.0 if unknown.risk_grows else -1.0
    size = neighbouring.sensitivity
    if isinstance(unknown, NoiseScale):
        scale, slope = scale_near(mechanism, mu, neighbouring)
        return -math.log(scale), slope
    match mechanism:
        case DPSGD(sample_rate=rate, steps=steps, noise_multiplier=noise) if mechanism.records > 1:
            one = replace(
                mechanism, records_per_user=1, draws_per_step=None, noise_multiplier=noise / mechanism.records
            )
            u, slope = start_of(one, unknown, mu, neighbouring)
            return (u - math.log(mechanism.records) if isinstance(unknown, NoiseMultiplier) else u), slope
        case DPSGD(sample_rate=rate, steps=steps, noise_multiplier=noise):
            if isinstance(unknown, NoiseMultiplier):
                ratio = (mu / rate) ** 2 / steps
                if neighbouring is Neighbouring.REPLACE:
                    s, slope = math.asinh(0.25 * ratio), math.hypot(1.0, 4.0 / ratio)
                else:
                    s, slope = math.log1p(ratio), 1.0 + 1.0 / ratio
                return sign * -0.5 * math.log(s), s * slope
            unit = float(closed_forms.clt_mu(max(noise, _LEAST_CLT), 1.0, 1, neighbouring))
            if unknown.name == "steps":
                return 2.0 * math.log(mu / (unit * rate)), 0.5
            u = math.log(mu / (unit * math.sqrt(steps)))
            return (u if unknown.name == "sample_rate" else u + math.log(mechanism.dataset_size or 1)), 1.0
        case MatrixMechanism(noise_multiplier=noise) if isinstance(unknown, NoiseMultiplier) and noise > 0.0:
            u, slope = start_of(mechanism.equivalent(), unknown, mu, neighbouring)
            return u + sign * math.log(noise / mechanism.equivalent().noise_multiplier), slope
        case Gaussian(noise_multiplier=noise, releases=count) | Laplace(noise_multiplier=noise, releases=count):
            if isinstance(unknown, NoiseMultiplier):
                return sign * math.log(size * math.sqrt(count) / mu), 1.0
            return 2.0 * math.log(mu * max(noise, _LEAST_PLAIN) / size), 0.5
        case _:
            return 0.0, 1.0


def steering(mechanism: Mechanism, unknown: Unknown, target: Target, attack: Attack) -> Estimate | None:
    """A cheap substitute for the claim, or None where there is none.

    Args:
        mechanism: the release; its value of the unknown does not matter.
        unknown: what is searched.
        target: what has to be reached.
        attack: who attacks.
    """
    if isinstance(attack.adversary, Relaxed) and attack.adversary.reacts:
        return None
    if isinstance(mechanism, Ledger) and isinstance(attack.adversary, Relaxed) and not isinstance(target, Mu):
        sampled = all(isinstance(part, DPSGD) for part in mechanism.parts)
        if not sampled or attack.neighbouring is Neighbouring.REPLACE:
            return None
        return lambda x: _schedule_log_mu(target, unknown.put(mechanism, x), attack.neighbouring)
    if not (isinstance(mechanism, DPSGD) and mechanism.sampler is Sampler.POISSON) or isinstance(target, Mu):
        return None
    if isinstance(unknown, NoiseScale) or mechanism.records > 1:  # there is no estimate
        return None
    form = attack.formula(unknown.put(mechanism, 1.0)) if unknown.whole else None
    if form is not None:
        # Real unknowns need no steering: there the formula is the claim itself. Here it is asked between whole numbers.
        return lambda x: math.log(clipped(form(*_release(unknown, mechanism, x))))
    if attack.exact:
        return lambda x: _log_mu(target, _release(unknown, mechanism, x), attack.neighbouring)
    replaced = attack.neighbouring is Neighbouring.REPLACE
    if isinstance(attack.adversary, Relaxed) and not replaced and mechanism.sample_rate < 1:
        dimension = attack.adversary.dimension or 1
        if dimension > 1:
            return lambda x: _dimension_log_mu(target, _release(unknown, mechanism, x), dimension)
        return lambda x: _relaxed_log_mu(target, _release(unknown, mechanism, x), attack.neighbouring)
    return None


def _release(unknown: Unknown, mechanism: Mechanism, value: float) -> tuple[float, float, float]:
    """(noise, rate, steps) with the unknown at ``value``, whole numbers left as they come."""
    if not isinstance(mechanism, DPSGD):
        raise TypeError(mechanism)
    noise, rate, steps = mechanism.noise_multiplier, mechanism.sample_rate, float(mechanism.steps)
    match unknown.name:
        case "noise_multiplier":
            noise = value
        case "sample_rate":
            rate = min(value, 1.0)
        case "batch_size":
            rate = min(value / (mechanism.dataset_size or 1), 1.0)
        case _:
            steps = max(value, 1.0)
    return noise, rate, steps


def _log_mu(target: Target, release: tuple[float, float, float], neighbouring: Neighbouring) -> float:
    """log of the mu at which a Gaussian curve would agree with the estimate on what the target asks."""
    noise, rate, steps = release
    noise = max(noise, _LEAST_NOISE)
    epsilon = target.threshold
    if rate < 1.0:
        with np.errstate(all="ignore"):
            if epsilon == 0.0:
                return _log_mu_at(0.0, WorstCaseProfile.of_advantage(noise, rate, steps, neighbouring).advantage())
            profile = WorstCaseProfile(noise, rate, steps, neighbouring, epsilon)
            return _agreeing(target, profile.delta, profile.largest)
    return math.log(clipped(float(closed_forms.rho_form_mu(noise, rate, steps, neighbouring))))


def _relaxed_log_mu(target: Target, release: tuple[float, float, float], neighbouring: Neighbouring) -> float:
    """The same against the attacker that lacks the sign; the worst case where no estimate can be had."""
    noise, rate, steps = release
    delta = common_sign_estimate(DPSGD(noise, rate, max(1, round(steps)))) if rate < 1.0 else None
    if delta is None:
        return _log_mu(target, release, neighbouring)
    return _agreeing(target, delta, _furthest(rate * math.sqrt(steps) / noise))


def _schedule_log_mu(target: Target, runs: Mechanism, neighbouring: Neighbouring) -> float:
    """The same for several runs of DP-SGD; the central limit theorem where no estimate can be had."""
    near = log_clt_mu(runs, neighbouring)
    delta = common_sign_estimate(runs) if isinstance(runs, Ledger) else None
    return near if delta is None else _agreeing(target, delta, _furthest(math.exp(near)))


def _dimension_log_mu(target: Target, release: tuple[float, float, float], dimension: int) -> float:
    """The same against the attacker that lacks a direction in several dimensions."""
    noise, rate, steps = release
    run = DPSGD(max(noise, _LEAST_NOISE), rate, max(1, round(steps)))
    epsilon = target.threshold
    curve = relaxed_estimate(run, dimension, epsilon, target.at_fpr)
    if epsilon is None:
        return math.log(clipped(target.equivalent_mu(target.measure(curve))))
    return math.log(mu_at(epsilon, float(curve.log_delta(epsilon))))


def _furthest(mu: float) -> float:
    """The largest threshold at which the tangents of a power are looked for."""
    return _NEAREST + _PER_MU * min(mu, _LARGEST_MU)


def _agreeing(target: Target, delta: Callable[[np.ndarray], np.ndarray], largest: float) -> float:
    """log mu of the Gaussian curve that agrees with ``delta`` on the target."""
    epsilon = target.threshold
    if epsilon is None:
        power = float(power_of(delta, np.array([target.at_fpr]), largest)[0][0])
        return math.log(target.equivalent_mu(target.of_power(power)))
    return _log_mu_at(epsilon, float(delta(np.array([epsilon]))[0]))


def _log_mu_at(epsilon: float, delta: float) -> float:
    """log mu of the Gaussian curve that passes through this point."""
    return math.log(mu_at(epsilon, math.log(max(delta, _LEAST_DELTA))))

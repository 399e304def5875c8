"""Where a search starts, and the cheap functions that steer it before anything is claimed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from reticent.calibrate._gaussian import clipped, mu_at
from reticent.calibrate.points import FORMS, formula_of
from reticent.calibrate.targets import (
    Advantage,
    BayesSecurity,
    EpsilonAtDelta,
    Mu,
    Success,
    Target,
    TprAtFpr,
)
from reticent.calibrate.unknowns import NoiseMultiplier, Unknown
from reticent.composition import WorstCaseProfile, closed_forms
from reticent.composition.common_sign import common_sign_estimate
from reticent.composition.profile import power_of
from reticent.mechanism import DPSGD, Gaussian, Laplace, MatrixMechanism, Mechanism, Neighbouring, Sampler
from reticent.threat import Adversary, Membership, Method, Relaxed, WorstCase

_LEAST_NOISE = 0.01  # below, the risk is that of being sampled at all

Estimate = Callable[[float], float]
"""From a value of the unknown to log(equivalent mu)."""


def start_of(mechanism: Mechanism, unknown: Unknown, mu: float, neighbouring: Neighbouring) -> tuple[float, float]:
    """(u, slope of log mu in u) where the central limit theorem has ``mu``; u as in ``solve``: risk grows with it."""
    sign = 1.0 if unknown.risk_grows else -1.0
    size = neighbouring.sensitivity
    match mechanism:
        case DPSGD(sample_rate=rate, steps=steps, noise_multiplier=noise) if mechanism.records > 1:
            one = replace(mechanism, records_per_user=1, noise_multiplier=noise / mechanism.records)
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
            unit = float(closed_forms.clt_mu(max(noise, 0.2), 1.0, 1, neighbouring))
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
            return 2.0 * math.log(mu * max(noise, 1e-3) / size), 0.5
        case _:
            return 0.0, 1.0


def steering(
    mechanism: Mechanism,
    unknown: Unknown,
    target: Target,
    adversary: Adversary,
    neighbouring: Neighbouring,
    method: Method,
) -> Estimate | None:
    """A cheap stand-in for the claim, or None where there is none."""
    if not (isinstance(mechanism, DPSGD) and mechanism.sampler is Sampler.POISSON) or isinstance(target, Mu):
        return None
    if mechanism.records > 1:
        return None
    if unknown.whole and formula_of(unknown.put(mechanism, 1.0), adversary, neighbouring, method) is not None:
        # Real unknowns need no steering: there the formula is the claim itself. Here it is asked between whole numbers.
        form = FORMS[method]
        return lambda x: math.log(clipped(float(form(*_release(unknown, mechanism, x), neighbouring))))
    exact = isinstance(adversary, WorstCase) or (isinstance(adversary, Membership) and method is Method.EXACT)
    if exact:
        return lambda x: _log_mu(target, _release(unknown, mechanism, x), neighbouring)
    relaxed = isinstance(adversary, Relaxed) and neighbouring is not Neighbouring.REPLACE and mechanism.sample_rate < 1
    if relaxed and isinstance(target, Advantage | BayesSecurity | Success | EpsilonAtDelta | TprAtFpr):
        return lambda x: _relaxed_log_mu(target, _release(unknown, mechanism, x), neighbouring)
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
    epsilon = _threshold(target)
    if rate < 1.0:
        with np.errstate(all="ignore"):
            profile = WorstCaseProfile(noise, rate, steps, neighbouring, epsilon)
            return _agreeing(target, profile.delta, profile.largest)
    return math.log(clipped(float(closed_forms.rho_form_mu(noise, rate, steps, neighbouring))))


def _relaxed_log_mu(target: Target, release: tuple[float, float, float], neighbouring: Neighbouring) -> float:
    """The same against the attacker that lacks the sign; the worst case where no estimate can be had."""
    noise, rate, steps = release
    delta = common_sign_estimate(DPSGD(noise, rate, max(1, round(steps)))) if rate < 1.0 else None
    if delta is None:
        return _log_mu(target, release, neighbouring)
    return _agreeing(target, delta, 3.0 + 6.0 * min(rate * math.sqrt(steps) / noise, 10.0))


def _agreeing(target: Target, delta: Callable[[np.ndarray], np.ndarray], largest: float) -> float:
    """log mu of the Gaussian curve that agrees with ``delta`` on the target."""
    epsilon = _threshold(target)
    if epsilon is None:
        fpr = target.fpr if isinstance(target, TprAtFpr) else getattr(target, "baseline", 0.5)
        return math.log(target.equivalent_mu(power_of(delta, fpr, largest)[0]))
    return math.log(mu_at(epsilon, math.log(max(float(delta(np.array([epsilon]))[0]), 1e-15))))


def _threshold(target: Target) -> float | None:
    """The one threshold that the target asks about, by symmetry at least 0; None for rates."""
    match target:
        case Advantage() | BayesSecurity():
            return 0.0
        case Success(prior=prior):
            return abs(math.log1p(-prior) - math.log(prior))
        case EpsilonAtDelta(value=epsilon):
            return epsilon
        case _:
            return None

"""Where a search starts, and the cheap functions that steer it before anything is claimed."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from reticent.calibrate.estimate import Profile
from reticent.calibrate.targets import (
    Advantage,
    BayesSecurity,
    EpsilonAtDelta,
    Reconstruction,
    Success,
    Target,
    TprAtFpr,
)
from reticent.calibrate.unknowns import NoiseMultiplier, Unknown
from reticent.composition import advantage, closed_forms
from reticent.composition.common_sign import common_sign_estimate
from reticent.mechanism import DPSGD, Gaussian, Laplace, Mechanism, Neighbouring, Sampler
from reticent.threat import Adversary, Membership, Method, Relaxed, WorstCase
from reticent.tradeoff import GaussianTradeOff

Estimate = Callable[[float], float]
"""From a value of the unknown to log(equivalent mu)."""

_FORMS = {
    Method.CLT: closed_forms.clt_mu,
    Method.CLOSED_FORM: closed_forms.rho_form_mu,
    Method.PUBLISHED: closed_forms.published_mu,
}


def start_of(mechanism: Mechanism, unknown: Unknown, target: Target, neighbouring: Neighbouring) -> tuple[float, float]:
    """(u, slope of log mu in u) from the central limit theorem; u as in ``solve``: risk grows with it."""
    mu = target.equivalent_mu(target.value)
    sign = 1.0 if unknown.risk_grows else -1.0
    size = neighbouring.sensitivity
    match mechanism:
        case DPSGD(sample_rate=rate, steps=steps, noise_multiplier=noise):
            if isinstance(unknown, NoiseMultiplier):
                ratio = (mu / rate) ** 2 / steps
                s = math.asinh(0.25 * ratio) if neighbouring is Neighbouring.REPLACE else math.log1p(ratio)
                return sign * -0.5 * math.log(s), max(1.0, s)
            unit = float(closed_forms.clt_mu(max(noise, 0.2), 1.0, 1, neighbouring))
            if unknown.name == "steps":
                return 2.0 * math.log(mu / (unit * rate)), 0.5
            u = math.log(mu / (unit * math.sqrt(steps)))
            return (u if unknown.name == "sample_rate" else u + math.log(mechanism.dataset_size or 1)), 1.0
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
    if not (isinstance(mechanism, DPSGD) and mechanism.sampler is Sampler.POISSON):
        return None
    if is_formula(mechanism, adversary, method):
        return lambda x: math.log(max(formula_mu(unknown.put(mechanism, x), neighbouring, method), 1e-12))
    exact = isinstance(adversary, WorstCase) or (isinstance(adversary, Membership) and method is Method.EXACT)
    if exact and isinstance(target, Advantage | BayesSecurity | Success | EpsilonAtDelta | TprAtFpr | Reconstruction):
        return lambda x: _log_mu(target, _release(unknown, mechanism, x), neighbouring)
    relaxed = isinstance(adversary, Relaxed) and neighbouring is not Neighbouring.REPLACE and mechanism.sample_rate < 1
    if relaxed and isinstance(target, Advantage | BayesSecurity | Success | EpsilonAtDelta | TprAtFpr):
        return lambda x: _relaxed_log_mu(target, _release(unknown, mechanism, x), neighbouring)
    return None


def is_formula(mechanism: Mechanism, adversary: Adversary, method: Method) -> bool:
    """Whether the adversary's curve is a Gaussian one with a mu in closed form."""
    sampled = isinstance(mechanism, DPSGD) and mechanism.sampler is Sampler.POISSON
    return sampled and isinstance(adversary, Membership) and method in _FORMS


def formula_mu(mechanism: Mechanism, neighbouring: Neighbouring, method: Method) -> float:
    """mu of the closed form that ``Membership`` uses for ``method``."""
    if not isinstance(mechanism, DPSGD):
        raise TypeError(mechanism)
    return float(_FORMS[method](mechanism.noise_multiplier, mechanism.sample_rate, mechanism.steps, neighbouring))


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
            steps = value
    return noise, rate, steps


def _log_mu(target: Target, release: tuple[float, float, float], neighbouring: Neighbouring) -> float:
    """log of the mu at which a Gaussian curve would agree with the estimate on what the target asks."""
    noise, rate, steps = release
    epsilon = _threshold(target)
    if epsilon == 0.0 and noise > 0.15 and rate < 1.0:
        value = advantage(noise, rate, max(1, round(steps)), neighbouring)
        return math.log(min(max(float(closed_forms.mu_at(value)), 1e-12), 60.0))
    clt = float(closed_forms.clt_mu(noise, rate, steps, neighbouring))
    if rate == 1.0 or noise < 0.15:
        return math.log(min(max(float(closed_forms.rho_form_mu(noise, rate, steps, neighbouring)), 1e-12), 60.0))
    largest = abs(epsilon) if epsilon is not None else 3.0 + 6.0 * min(clt, 10.0)
    profile = Profile(noise, rate, steps, neighbouring, min(largest, 40.0))
    if not profile.reliable:
        return math.log(min(max(float(closed_forms.rho_form_mu(noise, rate, steps, neighbouring)), 1e-12), 60.0))
    if epsilon is None:
        return _log_mu_of_power(target, profile.delta, largest)
    delta = float(profile.delta(np.array([abs(epsilon)]))[0])
    return _mu_with(lambda curve: float(curve.log_delta(abs(epsilon))), math.log(max(delta, 1e-15)))


def _relaxed_log_mu(target: Target, release: tuple[float, float, float], neighbouring: Neighbouring) -> float:
    """The same against the attacker that lacks the sign; the worst case where no estimate can be had."""
    noise, rate, steps = release
    delta = common_sign_estimate(DPSGD(noise, rate, max(1, round(steps)))) if rate < 1.0 else None
    if delta is None:
        return _log_mu(target, release, neighbouring)
    epsilon = _threshold(target)
    if epsilon is None:
        return _log_mu_of_power(target, delta, 3.0 + 6.0 * min(rate * math.sqrt(steps) / noise, 10.0))
    value = float(delta(np.array([abs(epsilon)]))[0])
    return _mu_with(lambda curve: float(curve.log_delta(abs(epsilon))), math.log(max(value, 1e-15)))


def _threshold(target: Target) -> float | None:
    match target:
        case Advantage() | BayesSecurity():
            return 0.0
        case Success(prior=prior):
            return math.log1p(-prior) - math.log(prior)
        case EpsilonAtDelta(value=epsilon):
            return epsilon
        case _:
            return None


def _log_mu_of_power(target: Target, delta: Callable[[np.ndarray], np.ndarray], largest: float) -> float:
    """TPR at a small FPR: the least of delta(l) + e^l FPR over thresholds l >= 0."""
    fpr = target.fpr if isinstance(target, TprAtFpr) else getattr(target, "baseline", 0.5)
    left, right = 0.0, largest
    power = 1.0
    for _ in range(4):
        grid = np.linspace(left, right, 41)
        values = delta(grid) + np.exp(grid) * fpr
        best = int(np.argmin(values))
        power = min(power, float(values[best]))
        left, right = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, 40)])
    return math.log(target.equivalent_mu(power))


def _mu_with(measure: Callable[[GaussianTradeOff], float], wanted: float) -> float:
    """log mu with measure(G_mu) = wanted, by bisection; measure grows with mu."""
    low, high = math.log(1e-12), math.log(60.0)
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if measure(GaussianTradeOff(math.exp(middle))) < wanted else (low, middle)
        if high - low < 1e-9:
            break
    return 0.5 * (low + high)

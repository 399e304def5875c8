"""Where a search starts, and the cheap functions that steer it before anything is claimed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache

from reticent.accountants import closed_forms
from reticent.calibration.claims import Attack
from reticent.calibration.estimates import (
    Tried,
    averaged_log_mu,
    composed_log_mu,
    schedule_log_mu,
    selected_log_mu,
    worst_log_mu,
)
from reticent.calibration.scale import NoiseScale, scale_near
from reticent.calibration.targets import Mu, Target
from reticent.calibration.unknowns import MeanRuns, NoiseMultiplier, Unknown
from reticent.kernel.accountants.one_direction import steps_of
from reticent.kernel.mechanisms import DPSGD, Mechanism
from reticent.kernel.pairs import Neighbouring

_LEAST_CLT, _LEAST_PLAIN = 0.2, 1e-3  # noise below which the central limit theorem, or a Gaussian, says nothing
_OF_THE_BEST = 0.6  # mu of one run, of that of the best, about
_USUAL_RUNS = 10.0  # where the number of runs is looked for first
_PER_LOG_RUNS = 0.15  # how log mu grows with its log

Estimate = Callable[[float], float]
"""From a value of the unknown to log(equivalent mu)."""


def start_of(mechanism: Mechanism, unknown: Unknown, mu: float, neighbouring: Neighbouring) -> tuple[float, float]:
    """(u, slope of log mu in u) where the central limit theorem has ``mu``; u as in ``solve``: risk grows with it.

    Args:
        mechanism: the release; its value of the unknown does not matter.
        mu: > 0, of the Gaussian curve that the target allows.
    """
    if isinstance(unknown, MeanRuns):
        return math.log(_USUAL_RUNS), _PER_LOG_RUNS
    if mechanism.runs is not None:
        return start_of(mechanism.base, unknown, _OF_THE_BEST * mu, neighbouring)
    sign = 1.0 if unknown.risk_grows else -1.0
    size = neighbouring.sensitivity
    if isinstance(unknown, NoiseScale):
        scale, slope = scale_near(mechanism, mu, neighbouring)
        return -math.log(scale), slope
    run, noise, same = mechanism.training, mechanism.noise_multiplier, mechanism.equivalent()
    if run is not None:
        return _start_of_run(run, unknown, mu, neighbouring)
    if isinstance(unknown, NoiseMultiplier) and noise and same is not mechanism:
        u, slope = start_of(same, unknown, mu, neighbouring)
        return u + sign * math.log(noise / (same.noise_multiplier or noise)), slope
    if noise is None or same is not mechanism:
        return 0.0, 1.0
    if isinstance(unknown, NoiseMultiplier):
        return sign * math.log(size * math.sqrt(mechanism.releases) / mu), 1.0
    return 2.0 * math.log(mu * max(noise, _LEAST_PLAIN) / size), 0.5


def _start_of_run(run: DPSGD, unknown: Unknown, mu: float, neighbouring: Neighbouring) -> tuple[float, float]:
    """Of several records of one person, from that of one record."""
    rate, steps, noise = run.sample_rate, run.steps, run.noise_multiplier
    if run.records > 1:
        alone = replace(run, records_per_user=1, sampler=run.sampler.drawn_once(), copies=None)
        u, slope = _start_of_run(replace(alone, noise_multiplier=noise / run.records), unknown, mu, neighbouring)
        return (u - math.log(run.records) if isinstance(unknown, NoiseMultiplier) else u), slope
    if isinstance(unknown, NoiseMultiplier):
        ratio = (mu / rate) ** 2 / steps
        if neighbouring is Neighbouring.REPLACE:
            s, slope = math.asinh(0.25 * ratio), math.hypot(1.0, 4.0 / ratio)
        else:
            s, slope = math.log1p(ratio), 1.0 + 1.0 / ratio
        return 0.5 * math.log(s), s * slope
    unit = float(closed_forms.clt_mu(max(noise, _LEAST_CLT), 1.0, 1, neighbouring))
    if unknown.name == "steps":
        return 2.0 * math.log(mu / (unit * rate)), 0.5
    u = math.log(mu / (unit * math.sqrt(steps)))
    return (u if unknown.name == "sample_rate" else u + math.log(run.dataset_size or 1)), 1.0


def steering(mechanism: Mechanism, unknown: Unknown, target: Target, attack: Attack) -> Estimate | None:
    """A cheap substitute for the claim, or None where there is none.

    Args:
        mechanism: the release; its value of the unknown does not matter.
    """
    lacks = attack.adversary.hidden
    if isinstance(target, Mu):
        return None
    if len(mechanism.parts) > 1:
        sampled = mechanism.trainings and lacks and lacks.share == 1.0
        if not sampled or attack.neighbouring is Neighbouring.REPLACE:
            return None
        return lambda x: schedule_log_mu(target, unknown.put(mechanism, x), attack.neighbouring)
    if mechanism.runs is not None:
        epsilon = target.threshold
        if epsilon is None or unknown.whole or not attack.exact:
            return None
        return lambda x: selected_log_mu(epsilon, unknown.put(mechanism, x), attack.neighbouring)
    run = mechanism.training
    if run is None:
        return None
    if not run.sampler.independent:
        epochs = unknown.whole and run.sampler.allocated  # they count as soon as they are started: a staircase
        if epochs or not attack.exact or not _composed_slowly(run, attack.neighbouring):
            return None
        composed = cache(lambda x: composed_log_mu(target, unknown.put(mechanism, x), attack.neighbouring))
        return _between_whole(composed) if unknown.whole else composed
    if attack.exact:
        return lambda x: worst_log_mu(target, _tried(unknown, run, x), attack.neighbouring)
    if lacks and run.sample_rate < 1.0:
        return lambda x: averaged_log_mu(target, lacks, _tried(unknown, run, x), attack.neighbouring)
    return None


def _between_whole(estimate: Estimate) -> Estimate:
    """Straight lines in log(value) between an estimate's values at whole numbers."""

    def between(x: float) -> float:
        below = max(math.floor(x), 1)
        share = math.log(max(x, 1.0) / below) / math.log1p(1.0 / below)
        ahead = estimate(float(below + 1)) if share > 0.0 else 0.0
        return (1.0 - share) * estimate(float(below)) + share * ahead

    return between


def _composed_slowly(run: DPSGD, neighbouring: Neighbouring) -> bool:
    """Whether no transform is known for its steps, with any noise, so that each claim takes lattices."""
    noisy, _ = steps_of(replace(run, noise_multiplier=1.0), neighbouring)
    return any(step.pair.mu is None and step.pair.mixture is None for step in noisy)


def _tried(unknown: Unknown, run: DPSGD, value: float) -> Tried:
    """With the unknown at ``value``; whole numbers are left as they come."""
    noise, rate, steps = run.noise_multiplier, run.sample_rate, float(run.steps)
    match unknown.name:
        case "noise_multiplier":
            noise = value
        case "noise_scale":
            noise *= value
        case "sample_rate":
            rate = min(value, 1.0)
        case "batch_size":
            rate = min(value / (run.dataset_size or 1), 1.0)
        case _:
            steps = max(value, 1.0)
    return Tried(noise, rate, steps, run.records)

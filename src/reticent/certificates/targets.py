"""Whether a run that was to meet a target has the noise that meets it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from reticent.adversaries import WorstCase
from reticent.calibration.spelling import target_of
from reticent.errors import ParameterError, ReticentError
from reticent.mechanisms import DPSGD, Neighbouring
from reticent.records.rules import Found
from reticent.records.run_ledger import PublicLedger
from reticent.records.watch_faults import Fault
from reticent.records.watched_run import PublicWatchedRun

_SLACK = 0.01
"""Relative difference of two searches for the same noise."""


def misses_its_target(ledger: PublicLedger) -> Found:
    """Where the configuration asks for the least noise under a target: whether that is the noise that ran.

    A run whose steps differ is not looked at: its stages are compared with the schedule.
    """
    target = ledger.config.get("target")
    if target is None or ledger.stages or ledger.config.get("schedule"):
        return
    planned = ledger.one_run()
    if not isinstance(target, dict) or not isinstance(planned, DPSGD):
        yield "config.target", "is no target"
        return
    try:
        least = _least_noise(target, replace(planned, steps=ledger.planned_steps), ledger.contraction)
    except (ReticentError, KeyError, TypeError, ValueError) as error:
        yield "config.target", f"cannot be met ({error})"
        return
    if not math.isclose(least, ledger.noise_multiplier, rel_tol=_SLACK):
        yield "noise_multiplier", f"is not the least that meets the target, which is {least:.6g}"


def exceeds_its_stop(run: PublicWatchedRun) -> Found:
    """Where the watch itself is to have stopped a loop at a risk: whether the steps until there keep to it.

    Faults that were seen after the plan was made change what is accounted for, so their numbers are not looked at.
    """
    plan = run.planned
    if plan is None or plan.stop_at is None:
        return
    try:
        target = target_of(plan.stop_at)
    except ParameterError:
        yield "planned.stop_at", "is no risk at which a loop can stop"
        return
    seen = (Fault.OTHER_BATCHES, Fault.PUBLIC_DRAWS)
    if len(run.segments) > 1 or any(fault.voids or fault in seen for fault in run.faults):
        return
    alone = run.model_copy(update={"earlier": ()})
    risk = target.of(WorstCase().assess(alone.mechanism())).value
    if not target.met_by(risk * (1.0 - _SLACK if target.grows_with_risk else 1.0 + _SLACK)):
        yield "planned.stop_at", f"is {plan.stop_at}, and {plan.steps} steps do not keep to it"


def _least_noise(target: dict[str, Any], run: DPSGD, contraction: float | None) -> float:
    from reticent.adversaries import ADVERSARIES, FinalModel
    from reticent.calibration import NoiseMultiplier
    from reticent.calibration.solve import calibrate
    from reticent.calibration.targets import target_in

    wanted, named = target_in(target), str(target["adversary"])
    who = FinalModel(contraction) if named == FinalModel.name else ADVERSARIES[named]()
    return calibrate(run, NoiseMultiplier(), wanted, who, Neighbouring(target["neighbouring"])).value

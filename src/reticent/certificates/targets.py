"""Whether a run that was to meet a target has the noise that meets it."""

from __future__ import annotations

import math
from typing import Any

from reticent.adversaries import WorstCase
from reticent.calibration.spelling import target_of
from reticent.errors import ParameterError, ReticentError
from reticent.mechanisms import Mechanism, Neighbouring
from reticent.records.ledger import RunLedger
from reticent.records.plan import planned_segments
from reticent.records.rules import Found
from reticent.records.watch_faults import Fault

_ROUNDED = 1e-8
"""Relative difference of one search for the same noise on two kinds of processor: a hundred times what was seen."""
_SPELLED = 1e-5
"""Relative difference of a risk and its six digits, with which a ledger spells it."""


def misses_its_target(ledger: RunLedger) -> Found:
    """Where the configuration asks for the least noise under a target: whether that is the noise that ran."""
    target = ledger.asked.get("target")
    if target is None:
        return
    if not isinstance(target, dict):
        yield "config.target", "is no target"
        return
    try:
        least = least_noise(target, _planned(ledger), ledger.contraction)
    except (ReticentError, ArithmeticError, KeyError, TypeError, ValueError) as error:
        yield "config.target", f"cannot be met ({error})"
        return
    if not math.isclose(least, ledger.first.noise_multiplier, rel_tol=_ROUNDED):
        yield "segments.0.noise_multiplier", f"is not the least that meets the target, which is {least:.6g}"


def _planned(ledger: RunLedger) -> Mechanism:
    """The run as it was planned, with noise 1 in its first step."""
    segments = planned_segments(ledger.asked, ledger.dataset_size, 1.0)
    return ledger.model_copy(update={"segments": segments, "planned": None}).one_run()


def exceeds_its_stop(run: RunLedger) -> Found:
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
    if not target.met_by(risk * (1.0 - _SPELLED if target.grows_with_risk else 1.0 + _SPELLED)):
        yield "planned.stop_at", f"is {plan.stop_at}, and {plan.steps} steps do not keep to it"


def least_noise(target: dict[str, Any], run: Mechanism, contraction: float | None) -> float:
    """The least noise multiplier of the first step with which a run that has noise 1 there meets a target.

    Args:
        target: as a configuration states it.
        contraction: of the updates of a run that releases its last model only.

    Raises:
        UnreachableError: no noise meets it.
        ParameterError, UnsupportedError: as for ``calibrate``.
    """
    from reticent.adversaries import ADVERSARIES
    from reticent.calibration.scale import all_noise
    from reticent.calibration.solve import calibrate
    from reticent.calibration.targets import target_in

    wanted, who = target_in(target), ADVERSARIES[str(target["adversary"])].knowing(contraction=contraction)
    return calibrate(run, all_noise(run), wanted, who, Neighbouring(target["neighbouring"])).value

"""Whether a run that was to meet a target has the noise that meets it."""

from __future__ import annotations

import math
from typing import Any

from reticent.facts.base import Found
from reticent.facts.plan import planned_segments
from reticent.kernel.errors import ReticentError
from reticent.kernel.mechanisms import Mechanism
from reticent.kernel.pairs import Neighbouring
from reticent.records.ledger import RunLedger

_ROUNDED = 1e-8
"""Relative difference of one search for the same noise on two kinds of processor: a hundred times what was seen."""


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
    return ledger.model_copy(update={"segments": segments}).one_run()


def least_noise(target: dict[str, Any], run: Mechanism, contraction: float | None) -> float:
    """The least noise multiplier of the first step with which a run that has noise 1 there meets a target.

    Args:
        target: as a configuration states it.
        contraction: of the updates of a run that releases its last model only.

    Raises:
        UnreachableError: no noise meets it.
        ParameterError, UnsupportedError: as for ``calibrate``.
    """
    from reticent.calibration.scale import all_noise
    from reticent.calibration.solve import calibrate
    from reticent.calibration.targets import target_in
    from reticent.kernel.adversaries import ADVERSARIES

    wanted, who = target_in(target), ADVERSARIES[str(target["adversary"])].knowing(contraction=contraction)
    return calibrate(run, all_noise(run), wanted, who, Neighbouring(target["neighbouring"])).value

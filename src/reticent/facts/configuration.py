"""What a configuration of ``reticent train`` says is what ran."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from reticent.facts.base import Fact, Found, Severity, section
from reticent.facts.plan import OF_A_STAGE, planned_segments, sampler_of, told
from reticent.facts.planned_steps import planned
from reticent.facts.steps import Segment
from reticent.kernel.errors import ParameterError

if TYPE_CHECKING:
    from reticent.records.ledger import RunLedger

_EXACT = 1e-9
"""Relative difference of two ways to compute one number."""

OWN = "own"
"""The name of a data set that the user brings, in a configuration."""

SETTINGS = frozenset(
    (
        *("model", "final_model", "average_last", "augmentation", "device", "randomness", "trace"),
        *("noise_multiplier", "target", "max_grad_norm", "clipping", "divisor", "records_per_user", "schedule"),
        *("sampler", "sample_rate", "batch_size", "physical_batch_size", "epochs", "steps"),
        *("optimiser", "learning_rate", "learning_rate_schedule", "momentum", "weight_decay"),
    )
)
"""Settings that do not depend on the records: they are published as they are."""
HANDLED = frozenset({"data", "seed", "sensitive"})
"""Settings that are published in part."""
_ALWAYS_ASKED = ("max_grad_norm", "sampler", "randomness", "optimiser")
_ONE_OF = (("noise_multiplier", "target"), ("sample_rate", "batch_size"), ("steps", "epochs"))
PARTS_OF_DATA = {
    *("name", "table", "path", "features", "normalise_features"),
    *("train_fraction", "train_size", "split_seed"),
}
"""What a configuration can say about the records."""


def _stated(run: RunLedger) -> Found:
    """Every setting is one that a configuration has, and each is there: noise or target, rate or batch, ..."""
    for name in sorted(set(run.asked) - SETTINGS - HANDLED):
        yield "config", f"has {name[:40]!r}, which no configuration has"
    if not set(section(run.asked, "data")) <= PARTS_OF_DATA:
        yield "config.data", "has something that no configuration has"
    for pair in _ONE_OF:
        if sum(run.asked.get(name) is not None for name in pair) != 1:
            yield f"config.{pair[0]}", f"must be stated, or {pair[1]}: one of them, as every configuration has it"
    for name in _ALWAYS_ASKED:
        if run.asked.get(name) is None:
            yield f"config.{name}", "must be stated, as every configuration has it"


def _done(run: RunLedger) -> Found:
    """The settings that the configuration makes are those that ran, as far as the run came."""
    config, ran, plan = run.asked, run.every_segment, planned(run)
    done = {
        "randomness": run.environment.randomness,
        "optimiser": " around ".join(run.environment.optimiser),
        "records_per_user": run.records_per_user,
    }
    for name, was in done.items():
        if config.get(name) != was:
            yield f"config.{name}", f"is not what ran: {name} is {was}"
    try:
        wanted = planned_segments(config, run.dataset_size, ran[0].noise_multiplier)
        sampler = sampler_of(config, wanted[0].sample_rate or 1.0)
    except ParameterError as error:
        yield f"config.{error.name}", f"must be {error.allowed}"
        return
    if plan is None or plan.steps != _steps(wanted):
        yield "facts.planned-steps", f"are not the {_steps(wanted)} of the configuration"
    elif run.steps > plan.steps:
        yield "segments", f"hold {run.steps} steps, more than the {plan.steps} planned"
    else:
        made = told(_joined(_begun(wanted, run.steps)), sampler, config.get("clipping", "flat"))
        for name, value in made.items():
            if not _alike(getattr(run, name), value):
                yield name, "is not what the configuration makes"


def _steps(parts: Iterable[Segment]) -> int:
    return sum(part.steps for part in parts)


def _begun(planned: Iterable[Segment], steps: int) -> list[Segment]:
    """The first so many steps."""
    found: list[Segment] = []
    for part in planned:
        left = steps - _steps(found)
        if left > 0:
            found.append(part.model_copy(update={"steps": min(part.steps, left)}))
    return found


def _joined(parts: Iterable[Segment]) -> list[Segment]:
    """Neighbours that are equal but for their steps as one."""
    found: list[Segment] = []
    for part in parts:
        if found and all(_alike(getattr(found[-1], name), getattr(part, name)) for name in OF_A_STAGE):
            part = part.model_copy(update={"steps": found.pop().steps + part.steps})
        found.append(part)
    return found


def _alike(a: Any, b: Any) -> bool:
    """Whether two facts are the same, but for the rounding of numbers."""
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=_EXACT)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_alike, a, b))
    if isinstance(a, BaseModel) and type(a) is type(b):
        return all(_alike(getattr(a, name), getattr(b, name)) for name in type(a).model_fields)
    return bool(a == b)


CONFIGURATION = Fact("configuration", Severity.NOTE, trained=(_stated, _done))

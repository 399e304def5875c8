"""What the parts of a ledger say about each other: a ledger that contradicts itself is refused."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from reticent.certificate.schema import Edition
from reticent.mechanism import Sampler
from reticent.mechanism.run_ledger import (
    MOST_STAGES,
    OF_A_STAGE,
    PublicLedger,
    Randomness,
    RunWarning,
    StageRecord,
    first_problem,
)
from reticent.mechanism.watched_run import PublicWatchedRun

_ASKED_AND_DONE = {
    "noise_multiplier": "noise_multiplier",
    "max_grad_norm": "max_grad_norm",
    "sample_rate": "sample_rate",
    "divisor": "divisor",
    "sampler": "sampler",
    "randomness": "randomness",
    "optimiser": "optimiser",
    "steps": "planned_steps",
    "records_per_user": "records_per_user",
}


def demanded_warnings(ledger: PublicLedger) -> tuple[RunWarning, ...]:
    """The warnings that follow from the facts of the ledger, whether it lists them or not."""
    public_size = ledger.config.get("divisor") is None or ledger.config.get("sample_rate") is None
    cases = (
        (ledger.sampler is Sampler.SHUFFLED, RunWarning.SHUFFLED_NOT_POISSON),
        (ledger.sampler is Sampler.FIXED_SIZE, RunWarning.FIXED_SIZE_NOT_POISSON),
        (ledger.randomness is Randomness.REPRODUCIBLE, RunWarning.REPRODUCIBLE_NOISE),
        (not ledger.noisy, RunWarning.NO_NOISE),
        (public_size, RunWarning.SIZE_TREATED_AS_PUBLIC),
        (ledger.steps < ledger.planned_steps, RunWarning.STOPPED_EARLY),
        (_schema_from_records(ledger), RunWarning.SCHEMA_FROM_RECORDS),
    )
    return tuple(warning for applies, warning in cases if applies)


def _schema_from_records(ledger: PublicLedger) -> bool:
    data = ledger.config.get("data")
    table = data.get("table") if isinstance(data, dict) else None
    return isinstance(table, dict) and bool(table.get("derived"))


def contradictions(ledger: PublicLedger | PublicWatchedRun, edition: Edition) -> Iterator[tuple[str, str]]:
    """Pairs of a path inside the ledger and what is wrong there."""
    if isinstance(ledger, PublicWatchedRun):
        yield from ledger.contradictions()
        return
    whole = ledger.sample_rate * ledger.data.dataset_size
    if not math.isclose(ledger.expected_batch_size, whole, rel_tol=1e-9):
        yield "expected_batch_size", f"is not sample_rate times dataset_size, which is {whole:g}"
    if ledger.steps > ledger.planned_steps:
        yield "steps", f"exceeds the {ledger.planned_steps} planned"
    listed = sum(math.prod(parameter.shape) for parameter in ledger.parameters)
    if ledger.num_parameters > listed:
        yield "num_parameters", f"exceeds the {listed} coordinates listed under parameters"
    for asked, done in _ASKED_AND_DONE.items():
        wanted = ledger.config.get(asked)
        if wanted is not None and wanted != getattr(ledger, done):
            yield f"config.{asked}", f"is not what ran: {done} is {getattr(ledger, done)}"
    yield from _schedule(ledger)
    for warning in demanded_warnings(ledger):
        if warning not in ledger.warnings:
            yield "warnings", f"lacks {warning.value}, which the facts of the run demand"
    if len(set(ledger.warnings)) < len(ledger.warnings):
        yield "warnings", "repeats a warning"
    yield from _seeds(ledger, edition)


_Whole = Annotated[int, Field(ge=1, le=2**53)]
_Number = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]


class _Asked(BaseModel):
    """What a configuration asks for from one step on."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    at: _Whole
    noise_multiplier: _Number | None = None
    noise_factor: _Number | None = None
    max_grad_norm: _Number | None = None
    sample_rate: _Number | None = None
    batch_size: _Whole | None = None


_SCHEDULE = TypeAdapter(Annotated[tuple[_Asked, ...], Field(max_length=MOST_STAGES)])


def _schedule(ledger: PublicLedger) -> Iterator[tuple[str, str]]:
    """Whether the stages that ran are those that the configuration asks for."""
    try:
        asked = _SCHEDULE.validate_python(ledger.config.get("schedule") or ())
    except ValidationError as error:
        yield "config.schedule", f"is no schedule: {first_problem(error)}"
        return
    if any(later.at <= first.at for first, later in pairwise(asked)):
        yield "config.schedule", "is no schedule: at must grow from stage to stage"
        return
    first = StageRecord(steps=ledger.steps, **{name: getattr(ledger, name) for name in OF_A_STAGE})
    ran, planned = _joined(ledger.stages or (first,)), _joined(_planned(ledger, first, asked))
    if len(ran) != len(planned):
        yield "config.schedule", f"is not what ran: different parts: {len(planned)} asked for, {len(ran)} ran"
        return
    for index, (done, wanted) in enumerate(zip(ran, planned, strict=True)):
        for name in ("steps", *OF_A_STAGE):
            was, asks = getattr(done, name), getattr(wanted, name)
            if not math.isclose(was, asks, rel_tol=1e-9):
                yield "config.schedule", f"is not what ran: {name} of part {index + 1} is {was:g}, it asks for {asks:g}"
                return


def _planned(ledger: PublicLedger, first: StageRecord, asked: tuple[_Asked, ...]) -> Iterator[StageRecord]:
    """The stages of a schedule, as far as the run came; what a stage leaves out stays as it was."""
    size, divisor, now, start = ledger.data.dataset_size, ledger.config.get("divisor"), first, 0
    for stage in (stage for stage in asked if stage.at < ledger.steps):
        yield now.model_copy(update={"steps": stage.at - start})
        noise = stage.noise_multiplier if stage.noise_factor is None else first.noise_multiplier * stage.noise_factor
        rate = stage.sample_rate if stage.batch_size is None else stage.batch_size / size
        rate = now.sample_rate if rate is None else rate
        new = {"noise_multiplier": noise, "max_grad_norm": stage.max_grad_norm, "sample_rate": rate}
        new["divisor"] = rate * size if divisor is None else first.divisor
        now, start = now.model_copy(update={k: v for k, v in new.items() if v is not None}), stage.at
    yield now.model_copy(update={"steps": ledger.steps - start})


def _joined(stages: Iterable[StageRecord]) -> list[StageRecord]:
    """Neighbours that are equal but for their steps as one."""
    found: list[StageRecord] = []
    for stage in stages:
        if found and all(math.isclose(getattr(found[-1], n), getattr(stage, n), rel_tol=1e-9) for n in OF_A_STAGE):
            stage = stage.model_copy(update={"steps": found.pop().steps + stage.steps})
        found.append(stage)
    return found


def _seeds(ledger: PublicLedger, edition: Edition) -> Iterator[tuple[str, str]]:
    seeds, kept = ledger.seeds, ledger.randomness is Randomness.REPRODUCIBLE
    shown = kept and edition is Edition.COMPLETE
    for name in ("sampling", "noise"):
        if (getattr(seeds, name) is not None) != shown:
            yield f"seeds.{name}", "is missing" if shown else "has no place here"
    if (seeds.initialisation is None) != (kept and edition is Edition.PUBLIC):
        yield "seeds.initialisation", "is missing" if seeds.initialisation is None else "has no place here"

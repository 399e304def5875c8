"""The steps that a configuration of ``reticent train`` asks for: the trainer takes them, a ledger is held to them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from reticent.facts.steps import MOST_STEPS, ClippingRecord, Drawn, SamplerRecord, Segment, Source
from reticent.io.models import Closed, Count, NonNegative, Positive, Rate
from reticent.kernel.errors import ParameterError
from reticent.kernel.samplers import Sampler
from reticent.kernel.samplers.epochs import batches_of_a_pass
from reticent.samplers.named import called

MOST_STAGES = 64
"""Stages of one run: each costs a composition of its own."""
OF_A_STAGE = ("noise_multiplier", "max_grad_norm", "sample_rate", "divisor")
"""What may differ between stages."""


class StageConfig(Closed):
    """What changes from one step on; what is left out stays as it was.

    Attributes:
        at: number of the first step that it holds for, counted from 0.
        noise_multiplier: noise standard deviation over the clip norm of this stage, on the sum.
        noise_factor: instead of it, times the noise of the first step; with a ``target`` the only way.
        max_grad_norm: clip norm (L2).
        sample_rate, batch_size: whichever of the two the configuration gives.
    """

    at: Annotated[int, Field(ge=1, lt=MOST_STEPS)]
    noise_multiplier: NonNegative | None = None
    noise_factor: Positive | None = None
    max_grad_norm: Positive | None = None
    sample_rate: Rate | None = None
    batch_size: Count | None = None

    @model_validator(mode="after")
    def _something_changes(self) -> StageConfig:
        if self.model_fields_set <= {"at"}:
            raise ValueError("must say what changes")
        if self.noise_multiplier is not None and self.noise_factor is not None:
            raise ValueError("only one of noise_multiplier and noise_factor may be given")
        return self

    @property
    def changes_batches(self) -> bool:
        """Whether records are drawn otherwise from here on."""
        return self.sample_rate is not None or self.batch_size is not None

    @property
    def changes_noise(self) -> bool:
        """Whether the noise is another from here on."""
        return self.noise_multiplier is not None or self.noise_factor is not None


class _Asked(BaseModel):
    """The settings that steps follow from. A text in them is not a number, as it is none to the mechanism."""

    model_config = ConfigDict(frozen=True)

    noise_multiplier: NonNegative | None = None
    max_grad_norm: Positive
    sample_rate: Rate | None = None
    batch_size: Count | None = None
    steps: Count | None = None
    epochs: Positive | None = None
    divisor: Positive | None = None
    schedule: Annotated[tuple[StageConfig, ...], Field(max_length=MOST_STAGES)] | None = None


def planned_segments(config: Mapping[str, Any], records: int | None, noise: float = 1.0) -> tuple[Segment, ...]:
    """All steps that a configuration asks for, as equal ones in order, each with all four of ``OF_A_STAGE``.

    Args:
        config: as JSON data.
        records: training records; None where they are secret, and rate and divisor are in the configuration.
        noise: multiplier of the first step, where the configuration states a target instead.

    Raises:
        ParameterError: a batch is larger than the data, a stage begins after the last step, or something is no setting.
    """
    asked = _read(config)
    if records is None and None in (asked.sample_rate, asked.divisor):
        raise ParameterError("divisor", None, "given, and sample_rate, where the number of records is not", shown=False)
    rate = _rate(asked, records)
    drawn = sampler_of(config, rate)
    steps = asked.steps or drawn.steps_in(_given("epochs", asked.epochs), rate, MOST_STEPS)
    now = Segment(
        noise_multiplier=noise if asked.noise_multiplier is None else asked.noise_multiplier,
        steps=steps,
        sample_rate=rate,
        max_grad_norm=asked.max_grad_norm,
        divisor=rate * (records or 0) * drawn.uses if asked.divisor is None else asked.divisor,
    )
    first, start, found = now, 0, list[Segment]()
    for stage in _schedule(asked, steps):
        found.append(now.model_copy(update={"steps": stage.at - start}))
        now, start = _changed(now, stage, first, records, asked.divisor), stage.at
    return (*found, now.model_copy(update={"steps": steps - start}))


def told(ran: Sequence[Segment], sampler: Sampler, clipping: str) -> dict[str, Any]:
    """How a ledger of ``reticent train`` states these steps: draws, clipping, divisor, and what changed along the run.

    Args:
        ran: equal steps in order, each with all four of ``OF_A_STAGE``.
        sampler: how their batches were drawn.
        clipping: as the configuration names it.
    """
    rates = [part.sample_rate for part in ran if part.sample_rate is not None]
    norms = [part.max_grad_norm for part in ran if part.max_grad_norm is not None]
    divisors = {part.divisor for part in ran}
    usual = {
        "sample_rate": max(rates),
        "max_grad_norm": min(norms),
        "divisor": divisors.pop() if len(divisors) == 1 else None,
    }
    return {
        "sampler": SamplerRecord(
            drawn=Drawn(str(sampler.drawn)),
            source=Source.SEEN,
            name=sampler.name,
            sample_rate=usual["sample_rate"],
            batches_per_epoch=batches_of_a_pass(max(rates)) if sampler.in_passes else None,
            times_per_epoch=sampler.uses if sampler.in_passes else None,
        ),
        "clipping": ClippingRecord(kind=clipping, source=Source.SEEN, smallest=min(norms), largest=max(norms)),
        "divisor": usual["divisor"],
        "segments": tuple(
            part.model_copy(update={name: None for name, value in usual.items() if getattr(part, name) == value})
            for part in ran
        ),
    }


def sampler_of(config: Mapping[str, Any], rate: float) -> Sampler:
    """How the batches of a configuration are drawn; of a pass the last batch is kept."""
    return called(config.get("sampler")).in_batches(batches_of_a_pass(rate))


def _read(config: Mapping[str, Any]) -> _Asked:
    known = {name: config[name] for name in _Asked.model_fields if name in config}
    try:
        return _Asked.model_validate_json(json.dumps(known), strict=True)
    except ValidationError as error:
        name = str(error.errors()[0]["loc"][0])
        raise ParameterError(name, known.get(name), "a setting that a configuration can have", shown=False) from None


def _given(name: str, value: Any) -> Any:
    if value is None:
        raise ParameterError(name, None, "given", shown=False)
    return value


def _rate(asked: _Asked, records: int | None) -> float:
    if asked.sample_rate is not None:
        return asked.sample_rate
    if asked.batch_size is None or records is None or asked.batch_size > records:
        raise ParameterError("batch_size", asked.batch_size, f"at most the {records} training records")
    return asked.batch_size / records


def _schedule(asked: _Asked, steps: int) -> tuple[StageConfig, ...]:
    stages = asked.schedule or ()
    if any(later.at <= first.at for first, later in pairwise(stages)):
        raise ParameterError("schedule.at", [stage.at for stage in stages], "growing from stage to stage")
    for stage in stages:
        if stage.at >= steps:
            raise ParameterError("schedule.at", stage.at, f"below {steps}, the number of steps")
    return stages


def _changed(now: Segment, stage: StageConfig, first: Segment, records: int | None, divisor: float | None) -> Segment:
    """What holds from a stage on: what it leaves out stays as it was."""
    noise = stage.noise_multiplier if stage.noise_factor is None else first.noise_multiplier * stage.noise_factor
    rate = stage.sample_rate
    if stage.batch_size is not None:
        if records is None or stage.batch_size > records:
            allowed = f"at most the {records} training records"
            raise ParameterError("schedule.batch_size", stage.batch_size, allowed)
        rate = stage.batch_size / records
    new = {"noise_multiplier": noise, "max_grad_norm": stage.max_grad_norm, "sample_rate": rate}
    if divisor is None and rate is not None and records is not None:
        new["divisor"] = rate * records
    return now.model_copy(update={name: value for name, value in new.items() if value is not None})

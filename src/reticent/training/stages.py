"""Noise, sample rate and clip norm that change along a run: stages, each from one step to the next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING

import numpy as np

from reticent.errors import ParameterError
from reticent.mechanisms import DPSGD, Mechanism
from reticent.mechanisms.ledger import together
from reticent.records.run_parts import OF_A_STAGE, StageRecord, stages_asked
from reticent.training.randomness import Source

if TYPE_CHECKING:
    from reticent.training.config import TrainConfig
    from reticent.training.loop import Settings


def staged(config: TrainConfig, settings: Settings, dataset_size: int) -> Settings:
    """``settings`` with the stages of the configuration, each with what it does not change from the one before.

    Raises:
        ParameterError: a stage begins after the last step, or its batch is larger than the data.
    """
    stages, now = [], settings
    first = StageRecord(steps=settings.steps, **{name: getattr(settings, name) for name in OF_A_STAGE})
    for asked, stage in stages_asked(first, config.schedule, dataset_size, config.divisor):
        if asked.at >= settings.steps:
            raise ParameterError("schedule.at", asked.at, f"below {settings.steps}, the number of steps")
        batch = now.batch_size if asked.batch_size is None else asked.batch_size
        if asked.batch_size is not None and asked.batch_size > dataset_size:
            allowed = f"at most the {dataset_size} training records"
            raise ParameterError("schedule.batch_size", asked.batch_size, allowed)
        now = replace(now, batch_size=batch, **{name: getattr(stage, name) for name in OF_A_STAGE})
        stages.append((asked.at, now))
    return replace(settings, stages=tuple(stages))


def batches_of(settings: Settings, source: Source, dataset_size: int) -> Iterator[np.ndarray]:
    """An endless stream of batches, drawn in each stage with its own rate or size."""

    def drawn(now: Settings) -> Iterator[np.ndarray]:
        return now.sampler.batches(source, dataset_size, now.sample_rate, now.batch_size)

    parts = [(0, settings), *settings.stages]
    if all((s.sample_rate, s.batch_size) == (settings.sample_rate, settings.batch_size) for _, s in parts):
        return drawn(settings)
    lengths = [later - first for (first, _), (later, _) in pairwise(parts)]
    begun = (islice(drawn(now), length) for (_, now), length in zip(parts, lengths, strict=False))
    return chain(chain.from_iterable(begun), drawn(parts[-1][1]))


def release_of(settings: Settings, records_per_user: int | None = None) -> Mechanism:
    """What the run would release as it is planned; one mechanism where its steps are equal or fill epochs."""
    starts = [(0, settings), *settings.stages]
    ends = [at for at, _ in starts[1:]] + [settings.steps]
    parts = tuple(
        DPSGD(now.noise_multiplier, now.sample_rate, end - at, sampler=now.sampler, records_per_user=records_per_user)
        for (at, now), end in zip(starts, ends, strict=True)
    )
    if settings.sampler.in_passes:  # over whole epochs only the clip norm may change
        return replace(parts[0], steps=settings.steps)
    return together(parts)


class StageLog:
    """What ran, step by step, as equal stages."""

    def __init__(self) -> None:
        self._ran: list[tuple[tuple[float, ...], int]] = []  # what ``OF_A_STAGE`` names, and for how many steps

    def add(self, settings: Settings, noise_multiplier: float, max_grad_norm: float, divisor: float) -> None:
        """Count one step; noise, norm and divisor are those that the optimizer really used."""
        now = noise_multiplier, max_grad_norm, settings.sample_rate, divisor
        before = self._ran.pop()[1] if self._ran and self._ran[-1][0] == now else 0
        self._ran.append((now, before + 1))

    def stages(self) -> tuple[StageRecord, ...]:
        """The stages, in order; none where all steps are equal."""
        if len(self._ran) < 2:
            return ()
        return tuple(StageRecord(steps=steps, **dict(zip(OF_A_STAGE, now, strict=True))) for now, steps in self._ran)

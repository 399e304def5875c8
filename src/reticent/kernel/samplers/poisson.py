"""Poisson sampling: each record by a coin of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, ClassVar

import numpy as np

from reticent.kernel import checks
from reticent.kernel.messages import Message
from reticent.kernel.pairs import Neighbouring, Part
from reticent.kernel.proofs import Kind
from reticent.kernel.registry import described
from reticent.kernel.samplers.base import (
    LOADER,
    Run,
    Sampler,
    Uniform,
    by_coins,
    of_draws,
    rarely_exceeded,
)


@dataclass(frozen=True, slots=True, repr=False)
class Poisson(Sampler):
    """Each record independently with probability ``sample_rate``; batch sizes vary.

    Attributes:
        draws_per_step: how many independent draws, each at ``sample_rate``, are summed before the noise of one step
            (micro-batches, workers); None is 1.
    """

    draws_per_step: int | None = field(default=None, metadata=described("Poisson draws summed before the noise."))

    name: ClassVar[str] = "poisson"
    title: ClassVar[str] = "Poisson"
    sentence: ClassVar[Message | str] = Message("sampler.poisson")
    condition: ClassVar[Kind] = of_draws("poisson-draws", LOADER)
    independent: ClassVar[bool] = True
    at_rate: ClassVar[bool] = True
    game: ClassVar[bool] = True
    attained: ClassVar[bool] = True
    drawn: ClassVar[str | None] = "poisson"

    def __post_init__(self) -> None:
        if self.draws_per_step is not None:
            checks.count(draws_per_step=self.draws_per_step)

    @property
    def draws(self) -> int:
        return self.draws_per_step or 1

    def drawn_once(self) -> Poisson:
        return Poisson()

    def parts(self, run: Run, neighbouring: Neighbouring, *, attained: bool) -> tuple[Part, ...]:
        """Attained by gradients that are 0 but for the target's, u; under replacement by -u against u."""
        return by_coins(run.noise_multiplier, run.sample_rate, run.steps, neighbouring)

    @classmethod
    def of_process(cls, held: Mapping[str, Any]) -> dict[str, Any] | None:
        if "sample_rate" not in held or held["truncated_batch_size"] is not None:
            return None
        draws = checks.count(num_workers=held["num_workers"]) if "num_workers" in held else None
        return {"sample_rate": held["sample_rate"], "sampler": cls(draws)}

    def largest_batch(self, run: Run) -> int:
        return rarely_exceeded(run, run.sample_rate)

    def batches(self, source: Uniform, records: int, sample_rate: float, size: int | None) -> Iterator[np.ndarray]:
        """By the rate; batches may be empty."""
        return (np.flatnonzero(source.uniform(records) < sample_rate) for _ in count())


INDEPENDENT: Sampler = Poisson()
"""Each record by a coin of its own: what is meant where nothing is said."""

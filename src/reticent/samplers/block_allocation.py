"""Random allocation by blocks: one step of each block of an epoch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import ClassVar

import numpy as np

from reticent.errors import UnsupportedError
from reticent.pairs import Neighbouring, Part
from reticent.samplers.base import Run, Uniform, batch_within
from reticent.samplers.passes import Passes
from reticent.samplers.random_allocation import RandomAllocation, allocated_pair, allocated_part, allocation


@dataclass(frozen=True, slots=True, repr=False)
class BlockAllocation(RandomAllocation):
    """Each record in one step of each block of an epoch, by uniform draws of its own.

    Attributes:
        uses_per_epoch: how many blocks of steps an epoch has, as equal as they can be; None is 1.
    """

    name: ClassVar[str] = "block-allocation"
    title: ClassVar[str] = "one step of each block"
    sentence: ClassVar[str] = "In each pass over the data, chance puts each record into one step of each block."
    drawn: ClassVar[str | None] = None

    def of_persons(self, run: Run) -> bool:
        return run.noise_multiplier > 0.0

    def parts(self, run: Run, neighbouring: Neighbouring, *, attained: bool) -> tuple[Part, ...]:
        """A block is an epoch: FELDMAN2025:Lemma 3.2 leaves floor(t/k) steps to each, and lower ends the most.

        Attained by gradients that are 0 but for the target's, in blocks that are as long.
        """
        if run.noise_multiplier == 0.0:
            return Passes.parts(self, run, neighbouring, attained=attained)
        epochs, steps = self.epochs(run, attained=attained), self.counted(run, attained=attained)
        bins = -(-steps // self.uses) if attained else steps // self.uses
        pair = allocated_pair(run.noise_multiplier, bins, run.records, neighbouring is Neighbouring.REPLACE)
        part = allocated_part(pair, epochs * self.uses, "FELDMAN2025:Lemma 3.2")
        return (part,) if epochs else ()

    @classmethod
    def planned(cls, batches: int, memory: int | None) -> BlockAllocation:
        """No plan says how many blocks there are.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError("steps are drawn in blocks, whose number is not stated")

    def impossible(self, sizes: Sequence[int], records: int, sample_rate: float) -> str | None:
        return RandomAllocation.impossible(self, sizes, records * self.uses, sample_rate)

    def batches(self, source: Uniform, records: int, sample_rate: float, size: int | None) -> Iterator[np.ndarray]:
        """In each block of each epoch each record draws one of its batches."""
        steps = -(-records // batch_within(size, records))
        blocks = [len(block) for block in np.array_split(np.arange(steps), self.uses)]
        return (batch for _ in count() for block in blocks for batch in allocation(source, records, block))

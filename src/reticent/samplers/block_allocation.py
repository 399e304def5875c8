"""Random allocation by blocks: one step of each block of an epoch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import ClassVar

import numpy as np

from reticent.kernel import checks
from reticent.kernel.messages import Message
from reticent.kernel.pairs import Neighbouring, Part
from reticent.kernel.proofs import Kind
from reticent.kernel.registry import described
from reticent.kernel.samplers.base import Run, Uniform, batch_within, of_draws, rarely_exceeded
from reticent.samplers.passes import Passes
from reticent.samplers.random_allocation import RandomAllocation, allocated, allocation, epochs_of


@dataclass(frozen=True, slots=True, repr=False)
class BlockAllocation(RandomAllocation):
    """Each record in one step of each block of an epoch, by uniform draws of its own, anew in each epoch.

    Attributes:
        uses_per_epoch: how many blocks an epoch is cut into, as equal as they can be, the longer ones first.
    """

    uses_per_epoch: int = field(kw_only=True, metadata=described("Uses of a record per pass, for allocation."))

    name: ClassVar[str] = "block-allocation"
    title: ClassVar[str] = "one step of each block"
    sentence: ClassVar[Message | str] = Message("sampler.block-allocation")
    exposed: ClassVar[Message | str] = Message("exposed.step-of-block")
    condition: ClassVar[Kind] = of_draws(
        "block-allocation-draws",
        "Read the code that assigns records to steps: in each block of each epoch one uniform draw each.",
    )
    drawn: ClassVar[str | None] = None
    k_of_t: ClassVar[str] = "block"

    def __post_init__(self) -> None:
        Passes.__post_init__(self)
        checks.count(uses_per_epoch=self.uses_per_epoch)

    def _blocks(self, steps: int) -> list[int]:
        """How many steps each block of an epoch has."""
        short, longer = divmod(steps, self.uses)
        return [short + 1] * longer + [short] * (self.uses - longer)

    def of_persons(self, run: Run) -> bool:
        return run.noise_multiplier > 0.0

    def parts(self, run: Run, neighbouring: Neighbouring, *, attained: bool) -> tuple[Part, ...]:
        """A block is an epoch of random allocation. Attained by gradients that are 0 but for the target's."""
        if run.noise_multiplier == 0.0:
            return Passes.parts(self, run, neighbouring, attained=attained)
        epochs = epochs_of(run, attained=attained)
        blocks = self._blocks(self.batches_of(run.sample_rate, attained=attained))
        noise, records, replaced = run.noise_multiplier, run.records, neighbouring is Neighbouring.REPLACE
        key = "RETICENT:block-allocation"
        each = Counter(blocks).items() if epochs else ()
        return tuple(allocated(epochs * many, noise, bins, records, replaced, key) for bins, many in each)

    def largest_batch(self, run: Run) -> int:
        return rarely_exceeded(run, 1.0 / min(self._blocks(self.batches_of(run.sample_rate))))

    def batches(self, source: Uniform, records: int, sample_rate: float, size: int | None) -> Iterator[np.ndarray]:
        """In each block of each epoch each record draws one of its batches."""
        blocks = self._blocks(-(-records // batch_within(size, records)))
        return (batch for _ in count() for steps in blocks for batch in allocation(source, records, steps))

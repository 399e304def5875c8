"""Fixed batches in a fixed order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import ClassVar

import numpy as np

from reticent.kernel.messages import Message
from reticent.kernel.pairs import Neighbouring, Part
from reticent.kernel.proofs import Kind
from reticent.kernel.samplers.base import Run, Uniform, batch_within, by_coins
from reticent.samplers.passes import Passes
from reticent.samplers.shuffled import Shuffled


@dataclass(frozen=True, slots=True, repr=False)
class Cyclic(Passes):
    """Fixed batches in a fixed order: each record once per epoch, no amplification."""

    name: ClassVar[str] = "cyclic"
    title: ClassVar[str] = "cyclic"
    sentence: ClassVar[Message | str] = Message("sampler.cyclic")
    condition: ClassVar[Kind] = Shuffled.condition
    in_order: ClassVar[bool] = True
    attained: ClassVar[bool] = True
    drawn: ClassVar[str | None] = "in-order"
    warning: ClassVar[str | None] = "in-order-not-poisson"

    def unless_whole(self) -> Shuffled:
        return Shuffled(self.batches_per_epoch)

    def parts(self, run: Run, neighbouring: Neighbouring, *, attained: bool) -> tuple[Part, ...]:
        """Attained by a record of the first batch, in epochs that are certain."""
        epochs = -(-run.steps // self.batches_of(run.sample_rate, attained=attained))
        return by_coins(run.noise_multiplier, 1.0, epochs, neighbouring, *self.theorems(run))

    def batches(self, source: Uniform, records: int, sample_rate: float, size: int | None) -> Iterator[np.ndarray]:
        """The records as they lie."""
        size = batch_within(size, records)
        starts = (start for _ in count() for start in range(0, records, size))
        return (np.arange(start, min(start + size, records)) for start in starts)

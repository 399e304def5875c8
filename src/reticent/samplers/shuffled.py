"""A permutation per epoch, cut into batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from reticent.kernel.messages import Message
from reticent.kernel.proofs import Kind
from reticent.kernel.samplers.base import LOADER, Uniform, batch_within, of_draws, permutations
from reticent.samplers.passes import Passes


@dataclass(frozen=True, slots=True, repr=False)
class Shuffled(Passes):
    """A permutation per epoch cut into batches: each record once per epoch, no amplification."""

    name: ClassVar[str] = "shuffled"
    title: ClassVar[str] = "shuffled"
    sentence: ClassVar[Message | str] = Message("sampler.shuffled")
    condition: ClassVar[Kind] = of_draws("shuffled-draws", LOADER)
    game: ClassVar[bool] = True
    drawn: ClassVar[str | None] = "shuffled"
    warning: ClassVar[str | None] = "shuffled-not-poisson"

    def batches(self, source: Uniform, records: int, sample_rate: float, size: int | None) -> Iterator[np.ndarray]:
        """The last one of an epoch may be smaller."""
        size, orders = batch_within(size, records), permutations(source, records)
        return (np.sort(order[start : start + size]) for order in orders for start in range(0, records, size))

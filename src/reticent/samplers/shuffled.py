"""A permutation per epoch, cut into batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from reticent.proofs import Kind
from reticent.samplers.base import LOADER, Uniform, batch_within, of_draws, permutations
from reticent.samplers.passes import Passes
from reticent.text import Said


@dataclass(frozen=True, slots=True, repr=False)
class Shuffled(Passes):
    """A permutation per epoch cut into batches: each record once per epoch, no amplification."""

    name: ClassVar[str] = "shuffled"
    title: ClassVar[str] = "shuffled"
    sentence: ClassVar[str] = Said(
        "The data are put into a random order and cut into batches, anew in each pass.",
        de="Die Daten werden in jedem Durchgang neu gemischt und in Stapel zerlegt.",
        fr="À chaque passage, les données sont mélangées de nouveau et découpées en lots.",
    )
    condition: ClassVar[Kind] = of_draws(
        "shuffled-draws",
        "Each record is in at most one batch of each pass over the data, and all passes that the steps touch are "
        "counted.",
        LOADER,
        de="Jeder Datensatz ist in höchstens einem Stapel jedes Durchgangs durch die Daten, und alle Durchgänge, die "
        "die Schritte berühren, sind gezählt.",
        fr="Chaque enregistrement est dans un lot au plus de chaque passage sur les données, et tous les passages que "
        "les étapes touchent sont comptés.",
    )
    game: ClassVar[bool] = True
    drawn: ClassVar[str | None] = "shuffled"
    warning: ClassVar[str | None] = "shuffled-not-poisson"

    def batches(self, source: Uniform, records: int, sample_rate: float, size: int | None) -> Iterator[np.ndarray]:
        """The last one of an epoch may be smaller."""
        size, orders = batch_within(size, records), permutations(source, records)
        return (np.sort(order[start : start + size]) for order in orders for start in range(0, records, size))

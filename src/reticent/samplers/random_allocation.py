"""Random allocation: each record draws its own step, by itself (docs/theory/sampling.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, ClassVar, Self

import numpy as np

from reticent import pairs
from reticent.kernel import checks
from reticent.kernel.errors import ParameterError
from reticent.kernel.messages import Figure, Message
from reticent.kernel.pairs import GaussianPair, Neighbouring, Pair, Part
from reticent.kernel.proofs import Kind
from reticent.kernel.registry import described
from reticent.kernel.samplers.base import Run, Sampler, Uniform, batch_within, of_draws, rarely_exceeded
from reticent.samplers.passes import Passes


@dataclass(frozen=True, slots=True, repr=False)
class Allocation(Passes):
    """Each record in one hidden step of each epoch, by a uniform draw of its own."""

    allocated: ClassVar[bool] = True
    note: ClassVar[Message | str] = Message("sampler.allocation.note", steps=Figure(""))
    exposed: ClassVar[Message | str] = Message("exposed.step-of-epoch")
    public_places: ClassVar[bool] = False

    def of_persons(self, run: Run) -> bool:
        return run.noise_multiplier > 0.0 and self.uses == 1

    def releases(self, run: Run) -> int:
        return Passes.releases(self, run) * self.uses

    def notes(self, run: Run) -> tuple[Message, ...]:
        return Sampler.notes(self, run)

    def largest_batch(self, run: Run) -> int:
        return rarely_exceeded(run, self.uses / self.batches_of(run.sample_rate))


@dataclass(frozen=True, slots=True, repr=False)
class RandomAllocation(Allocation):
    """Each record in one step of each epoch, by a uniform draw of its own, anew in each epoch.

    Attributes:
        uses_per_epoch: in how many steps of an epoch a record is used, drawn without replacement; None is 1. An epoch
            has 1 / sample_rate steps all the same, so a batch holds as many times that share of the data.
    """

    uses_per_epoch: int | None = field(default=None, metadata=described("Uses of a record per pass, for allocation."))

    name: ClassVar[str] = "random-allocation"
    title: ClassVar[str] = "random allocation"
    sentence: ClassVar[Message | str] = Message("sampler.random-allocation")
    condition: ClassVar[Kind] = of_draws(
        "allocation-draws", "Draw with rt.random_allocation(loader), or let reticent train with that sampler."
    )
    drawn: ClassVar[str | None] = "random-allocation"
    k_of_t: ClassVar[str] = "total"
    """What opake calls it."""

    def __post_init__(self) -> None:
        Passes.__post_init__(self)
        if self.uses_per_epoch is not None and checks.count(uses_per_epoch=self.uses_per_epoch) == 1:
            object.__setattr__(self, "uses_per_epoch", None)  # there is one way to say so

    @property
    def uses(self) -> int:
        return self.uses_per_epoch or 1

    @classmethod
    def of_uses(cls, uses: int) -> Self | None:
        return cls(uses_per_epoch=uses)

    def check(self, run: Run) -> None:
        """A record is in no more steps than an epoch has.

        Raises:
            ParameterError: it would be.
        """
        Passes.check(self, run)
        self._fits(self.batches_of(run.sample_rate))

    def _fits(self, steps: int) -> None:
        if self.uses > steps:
            raise ParameterError("uses_per_epoch", self.uses, "at most the steps of an epoch", shown=False)

    @classmethod
    def of_process(cls, held: Mapping[str, Any]) -> dict[str, Any] | None:
        if held.get("allocation") != cls.k_of_t:
            return None
        steps, uses = checks.count(n_steps=held["n_steps"]), checks.count(k=held["k"])
        return {"sample_rate": 1.0 / steps, "steps": steps, "sampler": cls(steps, uses_per_epoch=uses)}

    def parts(self, run: Run, neighbouring: Neighbouring, *, attained: bool) -> tuple[Part, ...]:
        """FELDMAN2025:Theorem 3.1; several uses of a record in an epoch by its Lemma 3.2, which only dominates.

        Attained by gradients that are 0 but for the target's.
        """
        noise, uses, replaced = run.noise_multiplier, self.uses, neighbouring is Neighbouring.REPLACE
        if noise == 0.0 or (uses > 1 and replaced):
            return Passes.parts(self, run, neighbouring, attained=attained)
        epochs, keys = epochs_of(run, attained=attained), ("FELDMAN2025:Lemma 3.2",) if uses > 1 else ()
        if epochs == 0 or (attained and uses > 1):
            return ()
        bins = self.batches_of(run.sample_rate, attained=attained) // uses
        return (allocated(epochs * uses, noise, bins, run.records, replaced, *keys),)

    def batches(self, source: Uniform, records: int, sample_rate: float, size: int | None) -> Iterator[np.ndarray]:
        """In each epoch anew, each record draws from as many batches as there are of this size; some may be empty."""
        steps = -(-records // batch_within(size, records))
        self._fits(steps)
        return (batch for _ in count() for batch in allocation(source, records, steps, self.uses))


def epochs_of(run: Run, *, attained: bool) -> int:
    """How many count: an epoch that was broken off only dominates."""
    batches = run.sampler.batches_of(run.sample_rate, attained=attained)
    return run.steps // batches if attained else -(-run.steps // batches)


def allocated(
    epochs: int, noise: float, bins: int, records: int, replaced: bool, *keys: str, redrawn: bool = False
) -> Part:
    """Epochs in which chance puts each record into a step.

    Args:
        epochs: how many.
        noise: over the clip norm.
        bins: steps, of which each record has one.
        records: of one person.
        replaced: whether they are replaced rather than added.
        keys: theorems that are needed beside those of an epoch.
        redrawn: whether a record's step may be drawn several times.
    """
    pair: Pair
    if bins == 1:
        pair = GaussianPair(noise, 1.0, records * (2.0 if replaced else 1.0))
    elif records == 1 and not replaced:
        pair = pairs.AllocatedGaussianPair(noise, bins)
    else:
        pair = pairs.AllocatedPersonPair(noise, bins, records, replaced, redrawn)
        keys = (*keys, "RETICENT:allocation-chain")
    return Part(pair, epochs, ("FELDMAN2025:Theorem 3.1", "RETICENT:allocation-enclosure", *keys))


def allocation(source: Uniform, records: int, steps: int, uses: int = 1) -> list[np.ndarray]:
    """One epoch: for each of ``steps`` the records in it, increasing. Each record draws its own steps, uniformly.

    Of each record a new step is drawn below a limit that grows up to ``steps``; one that it has already makes way for
    the last below the limit (Floyd 1987). So each set of ``uses`` steps is as likely as any other: the whole part of a
    uniform number times the limit has a probability of 1 / limit up to 2^-52.
    """
    drawn = np.empty((uses, records), dtype=np.int64)
    for use, limit in enumerate(range(steps - uses + 1, steps + 1)):
        step = (source.uniform(records) * limit).astype(np.int64)
        drawn[use] = np.where(np.any(drawn[:use] == step, axis=0), limit - 1, step)
    steps_of = drawn.T.ravel()
    order = np.argsort(steps_of, kind="stable")
    return np.split(order // uses, np.searchsorted(steps_of[order], np.arange(1, steps)))

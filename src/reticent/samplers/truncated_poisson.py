"""Poisson batches that are cut where they are too large (docs/theory/sampling.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from reticent import pairs
from reticent.kernel import checks
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.messages import Figure, Message
from reticent.kernel.pairs import (
    Disclosure,
    GaussianPair,
    Neighbouring,
    Part,
    SymmetrisedGaussianPair,
    poisson_gaussian,
)
from reticent.kernel.proofs import Kind
from reticent.kernel.registry import described
from reticent.kernel.samplers.base import Run, Sampler, of_draws, rarely_exceeded


@dataclass(frozen=True, slots=True, repr=False)
class TruncatedPoisson(Sampler):
    """Each record independently; of a batch with more than ``max_batch_size`` records, this many are kept, uniformly.

    Attributes:
        max_batch_size: the size at which batches are cut; the run states ``dataset_size``.
    """

    max_batch_size: int = field(metadata=described("Size at which truncated batches are cut."))

    name: ClassVar[str] = "truncated-poisson"
    title: ClassVar[str] = "Poisson, cut"
    sentence: ClassVar[Message | str] = Message("sampler.truncated-poisson")
    condition: ClassVar[Kind] = of_draws(
        "truncated-draws", "Read the code that cuts batches: it must choose uniformly, without a look at the records."
    )
    note: ClassVar[Message | str] = Message("sampler.truncated-poisson.note", max_batch_size=Figure(""))
    displaces: ClassVar[bool] = True
    attained: ClassVar[bool] = True
    counts_records: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.count(max_batch_size=self.max_batch_size)

    def check(self, run: Run) -> None:
        """How often a batch is cut follows from the number of records.

        Raises:
            ParameterError: the run does not state it.
        """
        if run.dataset_size is None:
            raise ParameterError("dataset_size", None, f"given with the sampler {self.name}", shown=False)

    def parts(self, run: Run, neighbouring: Neighbouring, *, attained: bool) -> tuple[Part, ...]:
        """A public coin says whether the batch is full without the target.

        Args:
            run: as it is.
            neighbouring: between which data sets.
            attained: the other records have gradients 0, so that nobody sees whether a batch is full.
        """
        noise, rate = run.noise_multiplier, run.sample_rate
        share, full_rate = saturation(rate, run.dataset_size or 1, self.max_batch_size)
        keys = ("RETICENT:truncated-dominance",)
        used = (1.0 - share) * rate + share * full_rate
        if noise == 0.0:
            return (Part(Disclosure(used, displaces=True), run.steps, keys),)
        if attained:
            return (Part(poisson_gaussian(noise, used, neighbouring), run.steps, keys),)
        below = poisson_gaussian(noise, rate, neighbouring)
        if share == 0.0:
            return (Part(below, run.steps, keys),)
        ordered = neighbouring is Neighbouring.ADD_REMOVE
        shifted = GaussianPair if ordered else SymmetrisedGaussianPair
        return (Part(pairs.MixedPair(below, shifted(noise, full_rate, 2.0), share), run.steps, keys),)

    @classmethod
    def planned(cls, batches: int, memory: int | None) -> TruncatedPoisson:
        if memory is None:
            raise UnsupportedError("batches are cut at the memory, which is not stated")
        return cls(memory)

    def largest_batch(self, run: Run) -> int:
        return min(self.max_batch_size, run.dataset_size or 1)

    def largest_draw(self, run: Run) -> int:
        return rarely_exceeded(run, run.sample_rate)

    def event(self, run: Run) -> Any:
        from dp_accounting import dp_event

        sizes = run.dataset_size or 1, run.sample_rate, self.max_batch_size
        return dp_event.TruncatedSubsampledGaussianDpEvent(*sizes, run.noise_multiplier)

    @classmethod
    def of_event(cls, event: Any) -> tuple[dict[str, Any], Any] | None:
        from dp_accounting import dp_event

        if not isinstance(event, dp_event.TruncatedSubsampledGaussianDpEvent):
            return None
        fields = {
            "sample_rate": checks.rate(sampling_probability=event.sampling_probability),
            "dataset_size": checks.count(dataset_size=event.dataset_size),
            "sampler": cls(checks.count(truncated_batch_size=event.truncated_batch_size)),
        }
        return fields, dp_event.GaussianDpEvent(event.noise_multiplier)

    @classmethod
    def of_process(cls, held: Mapping[str, Any]) -> dict[str, Any] | None:
        if held.get("truncated_batch_size") is None or "num_workers" in held:
            return None
        fields = {name: held[name] for name in ("sample_rate", "dataset_size")}
        return {**fields, "sampler": cls(held["truncated_batch_size"])}


def saturation(rate: float, records: int, most: int) -> tuple[float, float]:
    """(probability that ``most`` of the other records are drawn, or more; of the target to be in the batch then).

    Args:
        rate: probability of each coin, in (0, 1].
        records: the target counted.
        most: the size at which batches are cut.
    """
    from scipy.special import bdtrc  # lists of mechanisms are read without it

    if most >= records:
        return 0.0, rate
    if rate == 1.0:
        return 1.0, most / records
    share = float(bdtrc(most - 1, records - 1, rate))
    if not share > 0.0:
        return 0.0, rate
    return share, min(float(bdtrc(most, records, rate)) * most / (share * records), rate)

"""Batches of fixed size, drawn anew in each step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from reticent.kernel import checks, pairs
from reticent.kernel.errors import UnsupportedError
from reticent.kernel.messages import Message
from reticent.kernel.pairs import Neighbouring, Part
from reticent.kernel.proofs import Kind
from reticent.kernel.samplers.base import LOADER, Run, Sampler, Uniform, batch_within, of_draws, permutations


@dataclass(frozen=True, slots=True, repr=False)
class FixedSize(Sampler):
    """Exactly ``batch_size`` records uniformly without replacement, anew in each step."""

    name: ClassVar[str] = "fixed-size"
    title: ClassVar[str] = "fixed size"
    sentence: ClassVar[Message | str] = Message("sampler.fixed-size")
    condition: ClassVar[Kind] = of_draws("fixed-size-draws", LOADER)
    note: ClassVar[Message | str] = Message("sampler.fixed-size.note")
    at_rate: ClassVar[bool] = True
    displaces: ClassVar[bool] = True
    game: ClassVar[bool] = True
    attained: ClassVar[bool] = True
    drawn: ClassVar[str | None] = "fixed-size"
    warning: ClassVar[str | None] = "fixed-size-not-poisson"

    def parts(self, run: Run, neighbouring: Neighbouring, *, attained: bool) -> tuple[Part, ...]:
        """The target takes another record's place, so the sum moves by up to 2 under every relation.

        Args:
            run: as it is.
            neighbouring: between which data sets.
            attained: all other gradients are opposite to the target's, which a full batch without the target would
                contradict; under zero-out they are zero.
        """
        noise, rate, sizes_agree = run.noise_multiplier, run.sample_rate, neighbouring is not Neighbouring.ADD_REMOVE
        if attained and not sizes_agree and rate == 1.0:
            return ()
        shift = neighbouring.sensitivity if attained and sizes_agree else 2.0
        key = "DONG2022:Theorem 4.2" if sizes_agree else "RETICENT:fixed-size-dominance"
        key = "DONG2022:Definition 2.3" if rate == 1.0 else key
        if noise == 0.0:
            return (Part(pairs.Disclosure(rate, displaces=True), run.steps, (key,)),)
        shifted = pairs.SymmetrisedGaussianPair if sizes_agree and not attained else pairs.GaussianPair
        return (Part(shifted(noise, rate, shift), run.steps, (key,)),)

    def batches(self, source: Uniform, records: int, sample_rate: float, size: int | None) -> Iterator[np.ndarray]:
        size = batch_within(size, records)
        return (np.sort(order[:size]) for order in permutations(source, records))

    def event(self, run: Run) -> Any:
        """Sampling without replacement.

        Raises:
            UnsupportedError: the run does not state its sizes.
        """
        from dp_accounting import dp_event

        if run.dataset_size is None or run.batch_size is None:
            raise UnsupportedError("SampledWithoutReplacementDpEvent needs dataset_size and batch_size")
        inner = dp_event.GaussianDpEvent(run.noise_multiplier)
        return dp_event.SampledWithoutReplacementDpEvent(run.dataset_size, run.batch_size, inner)

    @classmethod
    def of_event(cls, event: Any) -> tuple[dict[str, Any], Any] | None:
        from dp_accounting import dp_event

        if not isinstance(event, dp_event.SampledWithoutReplacementDpEvent):
            return None
        size = checks.count(source_dataset_size=event.source_dataset_size)
        batch = checks.count(sample_size=event.sample_size)
        rate = checks.rate(sample_rate=batch / size)
        return {"sample_rate": rate, "batch_size": batch, "dataset_size": size, "sampler": cls()}, event.event

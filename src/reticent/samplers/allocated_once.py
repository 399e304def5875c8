"""Random allocation that is drawn once, and kept for all epochs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from reticent.kernel import checks
from reticent.kernel.messages import Message
from reticent.kernel.pairs import Neighbouring, Part
from reticent.kernel.proofs import Kind
from reticent.kernel.samplers.base import Run, of_draws
from reticent.samplers.passes import Passes
from reticent.samplers.random_allocation import Allocation, allocated, epochs_of


@dataclass(frozen=True, slots=True, repr=False)
class AllocatedOnce(Allocation):
    """Each record in one step of an epoch, by a uniform draw of its own, and in the same step of each later epoch."""

    name: ClassVar[str] = "allocated-once"
    title: ClassVar[str] = "allocated once"
    sentence: ClassVar[Message | str] = Message("sampler.allocated-once")
    condition: ClassVar[Kind] = of_draws(
        "kept-allocation-draws", "Read the code that assigns records to steps: one uniform draw each, before training."
    )

    def keeps(self, run: Run) -> bool:
        return run.noise_multiplier > 0.0 and self.batches_of(run.sample_rate) > 1

    def parts(self, run: Run, neighbouring: Neighbouring, *, attained: bool) -> tuple[Part, ...]:
        """All epochs of one step, as one epoch. Attained by gradients that are 0 but for the target's."""
        if run.noise_multiplier == 0.0:
            return Passes.parts(self, run, neighbouring, attained=attained)
        return self.joined([run], neighbouring, attained=attained)

    @classmethod
    def of_process(cls, held: Mapping[str, Any]) -> dict[str, Any] | None:
        if "num_bins" not in held:
            return None
        bins = checks.count(num_bins=held["num_bins"])
        return {"sample_rate": 1.0 / bins, "steps": held["n_steps"], "sampler": cls(bins)}

    def joined(self, runs: Sequence[Run], neighbouring: Neighbouring, *, attained: bool = False) -> tuple[Part, ...]:
        """Runs whose hidden steps were drawn once: with one draw, or each with its own.

        Two draws may have to do with each other in any way. By RETICENT:kept-allocation the worst is one draw for all,
        in as few steps as the shortest epoch has. That is of one record: with draws of their own, records of one person
        meet in some runs and not in others.
        """
        precision = math.hypot(*(epochs_of(run, attained=attained) ** 0.5 / run.noise_multiplier for run in runs))
        shortest = min(run.sampler.batches_of(run.sample_rate, attained=attained) for run in runs)
        records, replaced = max(run.records for run in runs), neighbouring is Neighbouring.REPLACE
        if precision == 0.0:
            return ()
        several, key = min(len(runs), records) > 1, "RETICENT:kept-allocation"
        return (allocated(1, 1.0 / precision, shortest, records, replaced, key, redrawn=several),)

"""Random allocation that is drawn once, and kept for all epochs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from reticent import _check
from reticent.pairs import Neighbouring, Part
from reticent.proofs import Bearing, Kind
from reticent.samplers.base import Run
from reticent.samplers.passes import Passes
from reticent.samplers.random_allocation import Allocation, allocated_pair, allocated_part
from reticent.text import Said


@dataclass(frozen=True, slots=True, repr=False)
class AllocatedOnce(Allocation):
    """Each record in one step of an epoch, by a uniform draw of its own, and in the same step of each later epoch."""

    name: ClassVar[str] = "allocated-once"
    title: ClassVar[str] = "allocated once"
    sentence: ClassVar[str] = Said(
        "Chance puts each record into a step, the same in each pass over the data.",
        de="Der Zufall teilt jeden Datensatz einem Schritt zu, in jedem Durchgang durch die Daten demselben.",
        fr="Le hasard affecte chaque enregistrement à une étape, la même à chaque passage sur les données.",
    )
    condition: ClassVar[Kind] = Kind(
        "kept-allocation-draws",
        Said(
            "Each record is put into one step of every epoch by one uniform draw of its own, made before training, "
            "that no other record influences.",
            de="Jeder Datensatz wird durch eine einzige eigene gleichverteilte Ziehung vor dem Training auf einen "
            "Schritt jeder Epoche verteilt; kein anderer Datensatz beeinflusst sie.",
            fr="Chaque enregistrement est placé dans une étape de chaque époque par un seul tirage uniforme qui lui "
            "est propre, fait avant l’entraînement et qu’aucun autre enregistrement n’influence.",
        ),
        Bearing.RELEASE,
        "Read the code that assigns records to steps: one uniform draw each, before training.",
    )

    def keeps(self, run: Run) -> bool:
        return run.noise_multiplier > 0.0 and self.batches_of(run.sample_rate) > 1

    def parts(self, run: Run, neighbouring: Neighbouring, *, attained: bool) -> tuple[Part, ...]:
        """All epochs of one step, as one epoch. Attained by gradients that are 0 but for the target's."""
        if run.noise_multiplier == 0.0:
            return Passes.parts(self, run, neighbouring, attained=attained)
        epochs = self.epochs(run, attained=attained)
        if epochs == 0:
            return ()
        bins, noise = self.counted(run, attained=attained), run.noise_multiplier / math.sqrt(epochs)
        return _kept([noise], bins, run.records, neighbouring)

    @classmethod
    def of_process(cls, held: Mapping[str, Any]) -> dict[str, Any] | None:
        if "num_bins" not in held:
            return None
        bins = _check.count(num_bins=held["num_bins"])
        return {"sample_rate": 1.0 / bins, "steps": held["n_steps"], "sampler": cls(bins)}

    def joined(self, runs: Sequence[Run], neighbouring: Neighbouring) -> tuple[Part, ...]:
        epochs = [-(-run.steps // run.sampler.batches_of(run.sample_rate)) for run in runs]
        noises = [run.noise_multiplier / math.sqrt(count) for run, count in zip(runs, epochs, strict=True)]
        shortest = min(run.sampler.batches_of(run.sample_rate) for run in runs)
        return _kept(noises, shortest, max(run.records for run in runs), neighbouring)


def _kept(noises: Sequence[float], batches: int, records: int, neighbouring: Neighbouring) -> tuple[Part, ...]:
    """Runs whose hidden steps were drawn once: with one draw, or each with its own.

    Two draws may have to do with each other in any way. By RETICENT:kept-allocation the worst is one draw for all, in
    as few steps as the shortest epoch has. That is of one record: with draws of their own, records of one person meet
    in some runs and not in others.

    Args:
        noises: of each run, as if it were one epoch.
        batches: of the shortest epoch.
        records: of one person.
        neighbouring: between which data sets.
    """
    noise = 1.0 / math.hypot(*(1.0 / each for each in noises))
    pair = allocated_pair(noise, batches, records, neighbouring is Neighbouring.REPLACE, min(len(noises), records) > 1)
    return (allocated_part(pair, 1, "RETICENT:kept-allocation"),)

"""Named reasons to read the numbers of a run of ``reticent train`` with care."""

from __future__ import annotations

from enum import StrEnum


class RunWarning(StrEnum):
    """Named reasons to read a run's numbers with care."""

    SHUFFLED_NOT_POISSON = "shuffled-not-poisson"
    FIXED_SIZE_NOT_POISSON = "fixed-size-not-poisson"
    REPRODUCIBLE_NOISE = "reproducible-noise"
    NO_NOISE = "no-noise"
    SIZE_TREATED_AS_PUBLIC = "size-treated-as-public"
    STOPPED_EARLY = "stopped-early"
    SCHEMA_FROM_RECORDS = "schema-from-records"

    @property
    def text(self) -> str:
        """One sentence for people."""
        return _WARNING_TEXTS[self]

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return _REMEDIES[self]


_WARNING_TEXTS = {
    RunWarning.SHUFFLED_NOT_POISSON: "The records were shuffled and cut into batches. No proof says that this hides "
    "who was in which batch, so the numbers take no credit for it.",
    RunWarning.FIXED_SIZE_NOT_POISSON: "Every batch had the same size. The numbers use the proof for such batches, "
    "which protects less than random batch sizes.",
    RunWarning.REPRODUCIBLE_NOISE: "The noise came from a seed. Anyone who knows the seed can take the noise away: no "
    "number here covers that.",
    RunWarning.NO_NOISE: "No noise was added: there is no differential privacy guarantee.",
    RunWarning.SIZE_TREATED_AS_PUBLIC: "The number of records is treated as public, and a rate that follows "
    "from it as the same without a record. If the count could give a person away (a ward with one patient more), that "
    "is not covered.",
    RunWarning.STOPPED_EARLY: "Training stopped before the planned number of steps. The moment may depend on what "
    "was released, so all planned steps are counted. If it came from a look at the records, such as their loss, it "
    "gives away more than any number here says.",
    RunWarning.SCHEMA_FROM_RECORDS: "Bounds or categories of some columns were read off the records. They may show "
    "something about one of them, and no number here covers that. Declare them before training.",
}

_REMEDIES = {
    RunWarning.SHUFFLED_NOT_POISSON: "Set sampler: poisson, or random-allocation to keep passes over the data.",
    RunWarning.FIXED_SIZE_NOT_POISSON: "Set sampler: poisson.",
    RunWarning.REPRODUCIBLE_NOISE: "Set randomness: fresh, and train again.",
    RunWarning.NO_NOISE: "Set a noise multiplier above 0, or a target.",
    RunWarning.SIZE_TREATED_AS_PUBLIC: "Nothing is to be done if the number may be known.",
    RunWarning.STOPPED_EARLY: "Plan no more steps than you need, and train again.",
    RunWarning.SCHEMA_FROM_RECORDS: "Declare bounds and categories in a schema that was written without the records.",
}

"""How batches were drawn. Only what was proven for a sampler may be claimed for it."""

from __future__ import annotations

from enum import StrEnum

MU_NOTE = (
    "mu covers every error rate, and hidden draws never lower it below that of adding the record in {}: the smallest "
    "false positive rates decide it."
)
EVERY_STEP, ONE_STEP = "every step", "one step of every epoch"
FIXED_SIZE_NOTE = (
    "Batches of fixed size: a drawn record takes another one's place, so it moves the sum by up to 2 (BALLE2018); "
    "sample_rate is the batch size over the data size, the target counted."
)
TRUNCATED_NOTE = (
    "Batches cut at {}: in a batch that is full without the target, a drawn target takes another one's place and moves "
    "the sum by up to 2. dataset_size counts the target."
)
ALLOCATED_NOTE = (
    "Random allocation: {} steps per epoch. An epoch that was started counts in full, and fewer steps per epoch are "
    "the safe side where their number was not stated. Data sets that differ by a replaced record, or by several "
    "records of one person, count as a chain of neighbours."
)


class Sampler(StrEnum):
    """How the records of one step are chosen; what may be claimed for each is in docs/theory/sampling.md."""

    POISSON = "poisson"
    """Each record independently with probability ``sample_rate``; batch sizes vary."""
    TRUNCATED_POISSON = "truncated-poisson"
    """The same; of a batch with more than ``max_batch_size`` records, this many are kept, drawn uniformly."""
    FIXED_SIZE = "fixed-size"
    """Exactly ``batch_size`` records uniformly without replacement, anew in each step."""
    RANDOM_ALLOCATION = "random-allocation"
    """Each record in one step of each epoch, by a uniform draw of its own, anew in each epoch."""
    ALLOCATED_ONCE = "allocated-once"
    """The same, but drawn once: in each epoch a record is in the same step."""
    SHUFFLED = "shuffled"
    """A permutation per epoch cut into batches: each record once per epoch, no amplification."""
    CYCLIC = "cyclic"
    """Fixed batches in a fixed order: each record once per epoch, no amplification."""

    @property
    def in_passes(self) -> bool:
        """Whether a record is in exactly one step of each epoch: who sees the step sees one release of it."""
        return self in (Sampler.RANDOM_ALLOCATION, Sampler.ALLOCATED_ONCE, Sampler.SHUFFLED, Sampler.CYCLIC)

    @property
    def allocated(self) -> bool:
        """Whether that step is drawn for each record by itself, and hidden."""
        return self in (Sampler.RANDOM_ALLOCATION, Sampler.ALLOCATED_ONCE)

    @property
    def displaces(self) -> bool:
        """Whether a drawn record may take the place of another one."""
        return self in (Sampler.FIXED_SIZE, Sampler.TRUNCATED_POISSON)

    @property
    def tells_all(self) -> bool:
        """Whether nothing below the worst case is proven for attackers who lack a direction."""
        return self.displaces or self.allocated

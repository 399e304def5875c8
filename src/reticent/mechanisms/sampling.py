"""How batches were drawn. Only what was proven for a sampler may be claimed for it."""

from __future__ import annotations

from enum import StrEnum

MU_NOTE = (
    "mu speaks about every error rate, and sampling cannot lower it: at the smallest false positive rates the curve "
    "is as close as one likes to that of a run in which every step uses the record."
)
FIXED_SIZE_NOTE = (
    "Batches of fixed size: a drawn record takes another one's place, so it moves the sum by up to 2 (BALLE2018); "
    "sample_rate is the batch size over the data size, the target counted."
)


class Sampler(StrEnum):
    """How the records of one step are chosen; what may be claimed for each is in docs/sampling.md."""

    POISSON = "poisson"
    """Each record independently with probability ``sample_rate``; batch sizes vary."""
    FIXED_SIZE = "fixed-size"
    """Exactly ``batch_size`` records uniformly without replacement, anew in each step."""
    SHUFFLED = "shuffled"
    """A permutation per epoch cut into batches: each record once per epoch, no amplification."""

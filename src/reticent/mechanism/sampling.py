"""How batches were drawn. Only what was proven for a sampler may be claimed for it."""

from __future__ import annotations

from enum import StrEnum


class Sampler(StrEnum):
    """How the records of one step are chosen."""

    POISSON = "poisson"
    """Each record independently with probability ``sample_rate``; batch sizes vary."""
    FIXED_SIZE = "fixed-size"
    """Exactly ``batch_size`` records uniformly without replacement, anew in each step."""
    SHUFFLED = "shuffled"
    """A permutation per epoch cut into batches: each record once per epoch, no amplification."""

"""How records are drawn, where noise came from, and where a fact of a watched loop comes from."""

from __future__ import annotations

from enum import StrEnum


class Drawn(StrEnum):
    """How the records of a batch are drawn."""

    POISSON = "poisson"
    SHUFFLED = "shuffled"
    RANDOM_ALLOCATION = "random-allocation"
    IN_ORDER = "in-order"
    WEIGHTED = "weighted"
    WITH_REPLACEMENT = "with-replacement"
    DISTRIBUTED = "distributed"
    FIXED_SIZE = "fixed-size"
    UNKNOWN = "unknown"


class Source(StrEnum):
    """Where a fact comes from."""

    SEEN = "seen"
    DECLARED = "declared"
    UNKNOWN = "unknown"


class Randomness(StrEnum):
    """Where the noise of a watched loop came from."""

    SECURE = "secure generator"
    DEFAULT = "torch, default generator"
    OF_PROGRAM = "torch, generator of the program"
    NOT_SEEN = "not seen"

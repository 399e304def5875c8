"""Equal steps, how their batches were drawn and their gradients clipped, and where their noise came from."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import model_validator

from reticent.facts.base import Word
from reticent.io.models import Closed, Count, NonNegative, Positive, Rate, Terse

MOST_STEPS = 1_000_000
"""Steps of one run: its ledger is written and read in seconds."""


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
    """Where masks and noise of ``reticent train`` come from."""

    FRESH = "fresh"
    """The operating system's secure generator; nothing of it is kept, so nobody can draw it again."""
    REPRODUCIBLE = "reproducible"
    """A seed: anybody who knows it can subtract the noise, so the guarantee holds only against others."""


class Generator(StrEnum):
    """Where the noise of a watched loop came from."""

    SECURE = "secure generator"
    DEFAULT = "torch, default generator"
    OF_PROGRAM = "torch, generator of the program"
    NOT_SEEN = "not seen"


class SamplerRecord(Terse):
    """How batches were drawn.

    Attributes:
        drawn: the kind of draw.
        source: whether the sampler itself was looked at.
        name: the class of the sampler, or what was declared.
        sample_rate: probability of one record per batch, under Poisson sampling and with batches of a fixed size; where
            ``reticent train`` draws passes, the share of the data in one batch.
        batch_size: records in one full batch, where that is fixed.
        dataset_size: records to draw from, if known.
        batches_per_epoch: batches in one pass over the data, if passes exist.
        times_per_epoch: how often one record can be drawn in one pass; None where passes bound nothing.
        drop_last: whether the last incomplete batch is left out; None where there is none.
        copies: positions of the data at which one and the same record lies, at most; left out of the file where each
            record lies at one.
    """

    drawn: Drawn
    source: Source
    name: Word
    sample_rate: Rate | None = None
    batch_size: Count | None = None
    dataset_size: Count | None = None
    batches_per_epoch: Count | None = None
    times_per_epoch: Count | None = None
    drop_last: bool | None = None
    copies: Count | None = None

    left_out = ("copies",)

    @property
    def most_uses(self) -> int:
        """How often one record can be in a batch, or in a pass over the data."""
        if self.drawn in (Drawn.WEIGHTED, Drawn.WITH_REPLACEMENT):
            return self.batch_size or 1
        return self.times_per_epoch or 1

    @model_validator(mode="after")
    def _poisson_has_a_rate(self) -> SamplerRecord:
        if self.drawn in (Drawn.POISSON, Drawn.FIXED_SIZE) and self.sample_rate is None:
            raise ValueError("sample_rate goes with poisson and fixed-size")
        return self


class ClippingRecord(Closed):
    """How gradients were clipped.

    Attributes:
        kind: ``flat``, ``normalise`` (every gradient gets the clip norm), ``per-layer``, ``adaptive``, ``automatic`` or
            ``unknown``.
        source: whether the optimizer was looked at.
        smallest, largest: clip norms over the steps, L2 over all parameters; None where they are not known.
    """

    kind: Literal["flat", "normalise", "per-layer", "adaptive", "automatic", "unknown"]
    source: Source
    smallest: Positive | None = None
    largest: Positive | None = None


class Segment(Terse):
    """Equal steps. What one does not state is as in the whole run.

    Attributes:
        noise_multiplier: noise standard deviation over the norm to which gradients were clipped, on the sum.
        steps: noisy updates, empty batches included.
        sample_rate: of these steps, where it is not that of the sampler, because it changed.
        max_grad_norm: clip norm (L2) of these steps, where it changed and was seen.
        divisor: what the noisy sum was divided by, where it changed and was seen.
        batches: most batches that one of these steps added up.
        passes: passes over the data from which these steps drew, started ones included; None if not seen.
        mixed_passes: most passes from which one of these steps drew.
    """

    noise_multiplier: NonNegative
    steps: Count
    sample_rate: Rate | None = None
    max_grad_norm: Positive | None = None
    divisor: Positive | None = None
    batches: Count = 1
    passes: Count | None = None
    mixed_passes: Count = 1

    left_out = ("sample_rate", "max_grad_norm", "divisor", "batches", "passes", "mixed_passes")

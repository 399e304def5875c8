"""Parts of a ledger: equal steps, draws, clipping, the records, where it ran, quality, and what is private."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, model_validator

from reticent.io.commitments import commit
from reticent.io.models import (
    Closed,
    Count,
    Finite,
    NonNegative,
    Positive,
    Rate,
    Sha256,
    Share,
    Terse,
    Whole,
)
from reticent.records.rules import Versions, Word

MOST_STEPS = 1_000_000
"""Steps of one run: its ledger is written and read in seconds."""

Name = Annotated[str, Field(max_length=300)]


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


class PlannedSteps(Closed):
    """How many noisy steps there were to be at most.

    Attributes:
        steps: as many.
        stop_at: the risk at which the watch itself stops the loop, as it was typed: then no step beyond these can be
            taken. None where somebody only says how many there will be.
    """

    steps: Count
    stop_at: str | None = None

    @model_validator(mode="after")
    def _target_in_short(self) -> PlannedSteps:
        if self.stop_at is not None and not 0 < len(self.stop_at) <= 100:
            raise ValueError("stop_at must be a target such as advantage=0.1")
        return self


class PublicData(Closed):
    """Which records were used, without what would show something about one of them.

    Attributes:
        name, source, notes: as in ``DataRecord``, of a published data set, or where the issuer consents.
        commitment: to the records, as ``DataRecord.committed`` makes it; nobody learns anything from it.
        dataset_size: number of training records; None where the training kept it secret.
        test_size: of a published data set.
        feature_shape, classes: as in ``DataRecord``.
    """

    name: Annotated[str, Field(max_length=200)] | None
    source: Annotated[str, Field(max_length=1000)] | None
    commitment: Sha256
    dataset_size: Count | None
    test_size: Whole | None
    feature_shape: tuple[Count, ...]
    classes: Count
    notes: tuple[str, ...] = ()


class DataRecord(Closed):
    """Which records were used. Private: with it, a guess of the records can be confirmed.

    Attributes:
        name: of the data set.
        source: where it came from.
        content_hash: SHA-256 over features, labels and split as the model saw them.
        salt: 32 random bytes, drawn for this run; see ``reticent.io.commitments``.
        dataset_size: number of training records.
        test_size: number of test records.
        feature_shape: of one record.
        classes: number of labels.
        notes: what a reader must know about the data.
    """

    name: str
    source: str
    content_hash: Sha256
    salt: Sha256
    dataset_size: Count
    test_size: Whole
    feature_shape: tuple[Count, ...]
    classes: Count
    notes: tuple[str, ...] = ()

    def committed(self, name: str, digest: str | None = None) -> str:
        """The commitment that is published instead of a digest.

        Args:
            name: what the digest is of: ``training-data``, ``table-file`` or ``table-schema``.
            digest: 64 hexadecimal digits; by default the content hash.
        """
        return commit(self.salt, name, bytes.fromhex(self.content_hash if digest is None else digest))


class ParameterRecord(Closed):
    """One trained tensor, in the order in which flat vectors hold them.

    Attributes:
        name: as the module spells it.
        shape: of the tensor; () for a number.
    """

    name: str
    shape: tuple[Whole, ...]


class Seeds(Closed):
    """Seeds that were used; None where the operating system's generator was used, or the seed is kept secret.

    Attributes:
        initialisation, split, sampling, noise: whole numbers >= 0, one for each source of randomness.
    """

    initialisation: Whole | None
    split: Whole | None
    sampling: Whole | None
    noise: Whole | None


class Utility(Closed):
    """Quality on the test records; None without test records, and for a loss that is not finite.

    They take no part in training, so these numbers do not weaken the guarantee of the training records.
    They are computed from the test records without noise, so no guarantee covers those.

    Attributes:
        test_accuracy: share of right answers, in [0, 1].
        test_loss: mean over the records.
        largest_class: share of the largest class: the accuracy of who always names it.
    """

    test_accuracy: Share | None
    test_loss: Finite | None
    largest_class: Share | None = None

    def __str__(self) -> str:
        """The accuracy beside that of who learnt nothing."""
        if self.test_accuracy is None or self.largest_class is None:
            return "no test records"
        return f"test accuracy {self.test_accuracy:.4f}; {self.largest_class:.4f} always naming the largest class"


class Environment(Terse):
    """Where and with what it ran.

    Attributes:
        optimiser: classes of the private optimizer and of the one inside it, or the name in the configuration.
        device: where the model lay.
        randomness: where noise came from; of ``reticent train`` the draws, too.
        seeds: that were used; left out of the file where nobody looked.
        versions: by package.
    """

    optimiser: tuple[Word, ...]
    device: Word
    randomness: Randomness | Generator
    seeds: Seeds | None = None
    versions: Versions

    left_out = ("seeds",)


class MeasuredChange(Closed):
    """What a recorder accumulated about one attribute: the fields of its ``SensitivityRecord``.

    Attributes:
        steps: noisy updates seen.
        scope: whose gradients were compared.
        squared_change, published_squared_change: sums over steps of squared distances of clipped gradients.
        mask_term, largest_mask_term: sum over steps of the mask term, and the largest of a step.
        noise_multiplier: at which mask terms were evaluated.
        budget: largest ``mask_term`` that a filter allowed, fixed before training, or None.
    """

    steps: Count
    scope: Name
    squared_change: NonNegative
    mask_term: NonNegative
    largest_mask_term: NonNegative
    published_squared_change: NonNegative | None
    noise_multiplier: Positive
    budget: NonNegative | None = None


class Diagnostics(Terse):
    """Computed from the training records without noise: not covered by any guarantee.

    Attributes:
        batch_sizes: realised number of records, one per step; None where it was not seen.
        clipped: records whose gradient norm exceeded the clip norm, one per step; None where it was not measured; empty
            where the steps are hidden (``final_model``).
        seconds: wall time of the loop.
        train_accuracy: share of training records classified correctly by the final model, where that was asked.
        sensitivity: what was recorded about one attribute, if that was asked for and could be measured.
        start_salt: of the commitment to the start weights.
    """

    batch_sizes: Annotated[tuple[Whole | None, ...], Field(max_length=MOST_STEPS)]
    clipped: Annotated[tuple[Whole | None, ...], Field(max_length=MOST_STEPS)]
    seconds: Finite
    train_accuracy: Share | None = None
    sensitivity: MeasuredChange | None = None
    start_salt: Sha256 | None = None

    left_out = ("train_accuracy", "sensitivity", "start_salt")

    @model_validator(mode="after")
    def _consistent(self) -> Diagnostics:
        if self.clipped and len(self.clipped) != len(self.batch_sizes):
            raise ValueError("clipped and batch_sizes must have one entry per step")
        for clipped, size in zip(self.clipped, self.batch_sizes, strict=False):
            if clipped is not None and size is not None and clipped > size:
                raise ValueError("clipped must not exceed batch_sizes")
        return self

"""Parts of a run's ledger: the records, the tensors, the seeds, the quality, the stages, and what is private."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

from pydantic import Field, model_validator

from reticent.io.commitments import commit
from reticent.io.models import Closed, Count, Finite, NonNegative, Positive, Rate, Sha256, Share, Whole

MOST_STEPS = 1_000_000
"""Steps of one run: its ledger is written and read in seconds."""
OF_A_STAGE = ("noise_multiplier", "max_grad_norm", "sample_rate", "divisor")
"""What may differ between stages."""
MOST_STAGES = 64
"""Stages of one run: each costs a composition of its own."""


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


class Diagnostics(Closed):
    """Computed from the training records without noise: not covered by any guarantee.

    Attributes:
        batch_sizes: realised number of records, one per step.
        clipped: records whose gradient norm exceeded ``max_grad_norm``, one count per step; empty where the steps are
            hidden (``final_model``).
        train_accuracy: share of training records classified correctly by the final model.
        seconds: wall time of the training loop.
    """

    batch_sizes: Annotated[tuple[Whole, ...], Field(max_length=MOST_STEPS)]
    clipped: Annotated[tuple[Whole, ...], Field(max_length=MOST_STEPS)]
    train_accuracy: Share
    seconds: Finite

    @model_validator(mode="after")
    def _consistent(self) -> Diagnostics:
        if self.clipped and len(self.clipped) != len(self.batch_sizes):
            raise ValueError("clipped and batch_sizes must have one entry per step")
        if any(c > b for c, b in zip(self.clipped, self.batch_sizes, strict=False)):
            raise ValueError("clipped must not exceed batch_sizes")
        return self


class StageRecord(Closed):
    """Equal steps of a run whose noise, rate or clip norm changed.

    Attributes:
        steps: noisy updates executed, empty batches included.
        noise_multiplier, max_grad_norm, sample_rate, divisor: as in ``PublicLedger``, in these steps.
    """

    steps: Count
    noise_multiplier: NonNegative
    max_grad_norm: Positive
    sample_rate: Rate
    divisor: Positive


class StageConfig(Closed):
    """What changes from one step on; what is left out stays as it was.

    Attributes:
        at: number of the first step that it holds for, counted from 0.
        noise_multiplier: noise standard deviation over the clip norm of this stage, on the sum.
        noise_factor: instead of it, times the noise of the first step; with a ``target`` the only way.
        max_grad_norm: clip norm (L2).
        sample_rate, batch_size: whichever of the two the configuration gives.
    """

    at: Annotated[int, Field(ge=1, lt=MOST_STEPS)]
    noise_multiplier: NonNegative | None = None
    noise_factor: Positive | None = None
    max_grad_norm: Positive | None = None
    sample_rate: Rate | None = None
    batch_size: Count | None = None

    @model_validator(mode="after")
    def _something_changes(self) -> StageConfig:
        if self.model_fields_set <= {"at"}:
            raise ValueError("must say what changes")
        if self.noise_multiplier is not None and self.noise_factor is not None:
            raise ValueError("only one of noise_multiplier and noise_factor may be given")
        return self

    @property
    def changes_batches(self) -> bool:
        """Whether records are drawn otherwise from here on."""
        return self.sample_rate is not None or self.batch_size is not None

    @property
    def changes_noise(self) -> bool:
        """Whether the noise is another from here on."""
        return self.noise_multiplier is not None or self.noise_factor is not None


def stages_asked(
    first: StageRecord, asked: Iterable[StageConfig], records: int | None, divisor: float | None
) -> Iterator[tuple[StageConfig, StageRecord]]:
    """What holds from each stage on; what a stage leaves out stays as it was, and steps are those of ``first``.

    Args:
        first: before the first of them.
        asked: in order.
        records: training records.
        divisor: that the configuration states; None where it is the expected batch.
    """
    now = first
    for stage in asked:
        noise = stage.noise_multiplier if stage.noise_factor is None else first.noise_multiplier * stage.noise_factor
        rate = stage.sample_rate if stage.batch_size is None else min(stage.batch_size / (records or 1), 1.0)
        rate = now.sample_rate if rate is None else rate
        new = {"noise_multiplier": noise, "max_grad_norm": stage.max_grad_norm, "sample_rate": rate}
        new["divisor"] = rate * records if divisor is None and records is not None else first.divisor
        now = now.model_copy(update={name: value for name, value in new.items() if value is not None})
        yield stage, now

"""Parts of a ledger: the records, the tensors, where it ran, quality, and what is private."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from reticent.facts.base import Word
from reticent.facts.steps import MOST_STEPS, Generator, Randomness
from reticent.io.commitments import commit
from reticent.io.models import (
    Closed,
    Count,
    Finite,
    Sha256,
    Share,
    Terse,
    Whole,
)
from reticent.mechanisms.sensitivity import SensitivityRecord

Name = Annotated[str, Field(max_length=300)]
Versions = Annotated[
    dict[
        Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,60}$")],
        Annotated[str, Field(pattern=r"^[A-Za-z0-9.+!_-]{1,80}$")],
    ],
    Field(max_length=64),
]
"""Versions of libraries, by name."""


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
    sensitivity: SensitivityRecord | None = None
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

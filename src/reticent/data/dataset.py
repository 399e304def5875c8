"""A data set as the model sees it, with the meaning of its columns."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np

from reticent.kernel import checks
from reticent.kernel.errors import ParameterError
from reticent.kernel.text import one_of


class ColumnKind(StrEnum):
    """How one attribute of a person is spread over columns of the features."""

    NUMERIC = "numeric"
    ONE_HOT = "one-hot"
    BINARY = "binary"


@dataclass(frozen=True)
class ColumnGroup:
    """One attribute of a person: its columns and the values that it can take.

    Attributes:
        name: the attribute, as ``Dataset.group`` finds it.
        kind: how it is encoded.
        columns: column indices in the flat features, in the order of ``encoded``'s second axis.
        values: the raw values that the attribute can take (numbers or labels); for a continuous
            attribute a public grid over its range that includes both ends.
        encoded: the same values in the scale of the model, float32, shape (values, columns).
    """

    name: str
    kind: ColumnKind
    columns: tuple[int, ...]
    values: tuple[float | str, ...]
    encoded: np.ndarray

    def __post_init__(self) -> None:
        expected = (len(self.values), len(self.columns))
        if self.encoded.shape != expected or not self.values:
            raise ParameterError("encoded", self.encoded.shape, f"an array of shape {expected} with at least one row")


@dataclass(frozen=True)
class Dataset:
    """Features, labels and a split; arrays are read-only.

    Attributes:
        name: the data set, as the registry and the ledger call it.
        source: where the records come from and under which licence, one sentence.
        features: float32, shape (records, ...), in the scale of the model. Every record was encoded on
            its own by constants fixed in the code, so no record influences the encoding of another.
        labels: int64, shape (records,), in [0, classes).
        classes: number of classes.
        train: indices of the training records.
        test: indices of the test records; disjoint from ``train``.
        groups: meaning of the columns, or empty where columns carry none (images).
        keys: uint64, shape (records, 2): hashes of what is kept together (a person, or the record alone) and of the
            record; None for a published file, whose records are known by their place. A split follows them.
        split_seed: seed of a random split, or None for a published one.
        notes: what a reader of results must know.
        origin: where the features were computed from other records: SHA-256 over those records and what was computed.
            The content hash then covers it instead of the features, whose last digits depend on the machine.
    """

    name: str
    source: str
    features: np.ndarray
    labels: np.ndarray
    classes: int
    train: np.ndarray
    test: np.ndarray
    groups: tuple[ColumnGroup, ...] = ()
    keys: np.ndarray | None = None
    split_seed: int | None = None
    notes: tuple[str, ...] = ()
    origin: str = ""

    def __post_init__(self) -> None:
        count = len(self.features)
        if self.features.dtype != np.float32 or not np.all(np.isfinite(self.features)):
            raise ParameterError("features", self.features.dtype, "finite float32 numbers")
        if self.labels.shape != (count,) or self.labels.dtype != np.int64:
            raise ParameterError("labels", self.labels.shape, f"int64 of shape ({count},)")
        if np.any(self.labels < 0) or np.any(self.labels >= self.classes):
            raise ParameterError("labels", (int(self.labels.min()), int(self.labels.max())), f"in [0, {self.classes})")
        used = np.concatenate([self.train, self.test])
        if len(self.train) == 0 or len(np.unique(used)) != len(used) or used.min() < 0 or used.max() >= count:
            raise ParameterError("train", len(self.train), "a non-empty set of records, disjoint from the test records")
        for array in (self.features, self.labels, self.train, self.test):
            array.setflags(write=False)

    @property
    def feature_shape(self) -> tuple[int, ...]:
        """Shape of one record's features."""
        return tuple(int(n) for n in self.features.shape[1:])

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 over features, labels and split: 64 hexadecimal digits."""
        digest = hashlib.sha256(self.origin.encode())
        for array in (*((self.features,) if not self.origin else ()), self.labels, self.train, self.test):
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def group(self, name: str) -> ColumnGroup:
        """The attribute called ``name``.

        Raises:
            ParameterError: there is none; the message lists those there are.
        """
        for group in self.groups:
            if group.name == name:
                return group
        raise ParameterError("attribute", name, one_of(name, [g.name for g in self.groups]))

    @classmethod
    def pooled(cls, train_fraction: float, *, features: np.ndarray, **facts: Any) -> Dataset:
        """A data set without a published split: divided by seed 0; ``split`` makes another.

        Args:
            train_fraction: as for ``split``.
            features: of all records.
            facts: the other fields, but for the split.
        """
        whole = cls(features=features, train=np.arange(len(features)), test=np.arange(0), **facts)
        return whole.split(train_fraction, seed=0)

    def split(self, train_fraction: float, seed: int) -> Dataset:
        """Split the pool anew at random.

        The pool is the training records of a published split, whose test records are left out, or all
        records of a split that was itself random. With ``keys`` each record, or person, is drawn by a hash of itself
        and ``seed``, and stands in the order of these hashes. So a table with a record more has the same training
        records in the same order, and at most that one more. A published file is cut by places: nobody can be
        removed from it, and a neighbour is a training set with one record more or less.

        Args:
            train_fraction: share of the pool to train on, in (0, 1); rounded down, or on average with ``keys``.
            seed: of the draw; recorded, and may be public.

        Raises:
            ParameterError: nobody is left to train on.
        """
        share = checks.open_fraction(train_fraction=train_fraction)
        pool = np.sort(self.train if self.split_seed is None else np.concatenate([self.train, self.test]))
        if self.keys is None:
            order, last = np.random.default_rng(seed).permutation(pool), int(share * len(pool))
            sides = np.sort(order[:last]), np.sort(order[last:])
        else:
            drawn = np.array([hashed(str(key).encode(), seed) for key in self.keys[pool, 0]], dtype=np.uint64)
            order = np.lexsort((self.keys[pool, 1], drawn))
            last = int(np.searchsorted(drawn[order], np.uint64(share * 2.0**64)))
            sides = pool[order[:last]], pool[order[last:]]
        if last == 0:
            raise ParameterError("train_fraction", share, f"a share of these {len(pool)} records that is not empty")
        return replace(self, train=sides[0], test=sides[1], split_seed=seed)

    def subset(self, train_size: int) -> Dataset:
        """Only the first ``train_size`` training records: without one of them another comes in.

        So of a table that somebody may be removed from, draw a share with ``split`` instead.

        Raises:
            ParameterError: ``train_size`` is below 1 or above the number of training records.
        """
        if checks.count(train_size=train_size) > len(self.train):
            raise ParameterError("train_size", train_size, f"at most {len(self.train)}")
        return replace(self, train=self.train[:train_size].copy())


def hashed(content: bytes, seed: int = 0) -> int:
    """64 bits that follow from ``content`` and ``seed`` alone."""
    return int.from_bytes(hashlib.blake2b(content, digest_size=8, key=seed.to_bytes(8, "big")).digest(), "big")


def to_unit(raw: np.ndarray, low: Any, high: Any) -> np.ndarray:
    """Numbers clipped to ``low`` and ``high``, and mapped from there to [-1, 1]; float32."""
    return (2.0 * (np.clip(raw, low, high) - low) / (high - low) - 1.0).astype(np.float32)


def numeric_group(name: str, column: int, values: Sequence[float], encoded: np.ndarray) -> ColumnGroup:
    """A numeric attribute in one column."""
    rows = np.asarray(encoded, dtype=np.float32).reshape(-1, 1)
    return ColumnGroup(name, ColumnKind.NUMERIC, (column,), tuple(float(v) for v in values), rows)


def one_hot_group(name: str, first: int, values: Sequence[str]) -> ColumnGroup:
    """A categorical attribute as one column per value."""
    columns = tuple(range(first, first + len(values)))
    return ColumnGroup(name, ColumnKind.ONE_HOT, columns, tuple(values), np.eye(len(values), dtype=np.float32))


def binary_group(name: str, column: int) -> ColumnGroup:
    """A yes-or-no attribute in one column of 0 and 1."""
    return ColumnGroup(name, ColumnKind.BINARY, (column,), (0.0, 1.0), np.array([[0.0], [1.0]], dtype=np.float32))

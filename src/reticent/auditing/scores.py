"""What an attack hands to the statistics: one score per record, higher is more member-like."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from reticent.kernel import checks
from reticent.kernel.errors import ParameterError

ONE = "one number for each record, larger for members, such as minus its loss; class probabilities are several"
"""What a score is, for who gives something else."""
MetaValue = str | int | float | bool | None


class Design(StrEnum):
    """How the scores came about; it decides which bounds are proven for them."""

    INDEPENDENT = "independent"
    """Scores are independent of each other: one run or one independent noise draw for each."""
    ONE_RUN = "one-run"
    """One run holds all canaries; each was included or not by its own fair coin."""
    POPULATION = "population"
    """Records of one trained model: members share the training run, so their scores may depend on each other."""


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of members and of non-members; only their order matters.

    Attributes:
        member: scores of records that took part, one dimension, at least one, finite.
        non_member: scores of records that did not, likewise.
        meta: what produced them: names to strings, numbers, booleans or None (``attack``, ``seed``, ...).
        design: how the scores came about.

    The arrays are copied as float64 and made read-only.

    Raises:
        ParameterError: an array is empty, not one-dimensional, not numeric or not finite; or ``meta`` holds something
            else than plain values.
    """

    member: np.ndarray
    non_member: np.ndarray
    meta: Mapping[str, MetaValue] = field(default_factory=dict)
    design: Design = Design.POPULATION

    def __post_init__(self) -> None:
        member = _clean("member", self.member)
        non_member = _clean("non_member", self.non_member)
        checks.strict_member(Design, design=self.design)
        object.__setattr__(self, "member", member)
        object.__setattr__(self, "non_member", non_member)
        object.__setattr__(self, "meta", MappingProxyType(_plain(self.meta)))

    def __len__(self) -> int:
        return len(self.member) + len(self.non_member)


def digest(member: np.ndarray, non_member: np.ndarray) -> int:
    """A number that follows from the sorted scores alone: the same scores give the same audit, in any order.

    Zeros lose their signs first: processors sort -0.0 and 0.0 in different orders.
    """
    first, second = ((part + 0.0).tobytes() for part in (member, non_member))
    return int.from_bytes(hashlib.sha256(first + b"|" + second).digest(), "big")


def _clean(name: str, values: ArrayLike) -> np.ndarray:
    given = np.asarray(values)
    if given.ndim != 1 or given.dtype.kind not in "fiu":
        raise ParameterError(name, f"{given.dtype} of shape {given.shape}", f"one-dimensional and numeric: {ONE}")
    if given.size == 0:
        raise ParameterError(name, "no score", "at least one score")
    clean = given.astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(clean))
    if bad.size:
        among = f"{bad.size} of {clean.size} that are not, first {clean[bad[0]]} at index {bad[0]}"
        raise ParameterError(name, among, "finite scores")
    clean.setflags(write=False)
    return clean


def _plain(meta: Mapping[str, MetaValue]) -> dict[str, MetaValue]:
    for key, value in meta.items():
        plain = isinstance(key, str) and isinstance(value, str | int | float | None)
        if not plain or (isinstance(value, float) and not np.isfinite(value)):
            raise ParameterError("meta", {key: value}, "names to strings, finite numbers, booleans or None")
    return dict(meta)

"""Finite-sample intervals for proportions and distribution functions.

Everything here is exact or conservative for every sample size; nothing is asymptotic except ``delong``
in ``roc``, which says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from reticent.kernel import checks
from reticent.kernel.proofs import Claim


@dataclass(frozen=True, slots=True)
class Measured:
    """A result of an audit: a dataclass that can be written down.

    Attributes:
        claim: what it may be taken for.
    """

    claim: ClassVar[Claim] = Claim.EMPIRICAL

    def to_json(self) -> dict[str, object]:
        """All fields, and ``claim``, as plain values: strings, finite numbers, lists and None."""
        return {name: _plain(getattr(self, name)) for name in sorted(["claim", *(f.name for f in fields(self))])}


def _plain(value: object) -> object:
    match value:
        case tuple():
            return list(value)
        case np.ndarray():
            return value.tolist()
    return str(value) if isinstance(value, StrEnum) else value


class Validity(StrEnum):
    """For which sample sizes the stated confidence holds."""

    FINITE_SAMPLE = "finite-sample"
    """Coverage is at least the confidence for every sample size, proven in docs/theory/auditing.md."""
    ASYMPTOTIC = "asymptotic"
    """Coverage tends to the confidence as the samples grow."""


@dataclass(frozen=True, slots=True)
class ConfidenceInterval(Measured):
    """A measured number with a two-sided confidence interval.

    Attributes:
        lower, upper: ends of the interval.
        value: the point estimate.
        confidence: probability, over repetitions of the whole audit, that the interval covers.
        validity: whether that holds for every sample size.
        method: the construction, in a few words.
    """

    lower: float
    value: float
    upper: float
    confidence: float
    validity: Validity
    method: str


def upper_proportion(successes: ArrayLike, trials: ArrayLike, significance: ArrayLike) -> np.ndarray:
    """Clopper-Pearson upper end: exceeds the true proportion with probability >= 1 - ``significance``.

    Args:
        successes: counts, any shape, 0 to ``trials``.
        trials: counts >= 1, broadcast.
        significance: probability of error of this one end, in (0, 1), broadcast.
    """
    k, n, a = np.broadcast_arrays(*(np.asarray(x, dtype=float) for x in (successes, trials, significance)))
    full = k >= n
    return np.where(full, 1.0, betaincinv(np.where(full, 1.0, k + 1.0), np.where(full, 1.0, n - k), 1.0 - a))


def lower_proportion(successes: ArrayLike, trials: ArrayLike, significance: ArrayLike) -> np.ndarray:
    """Clopper-Pearson lower end: at most the true proportion with probability >= 1 - ``significance``."""
    k, n, a = np.broadcast_arrays(*(np.asarray(x, dtype=float) for x in (successes, trials, significance)))
    none = k <= 0
    return np.where(none, 0.0, betaincinv(np.where(none, 1.0, k), np.where(none, 1.0, n - k + 1.0), a))


def dkw_radius(trials: int, significance: float) -> float:
    """Half width of a band around an empirical distribution function that covers the true one everywhere.

    Dvoretzky, Kiefer and Wolfowitz with the constant of Massart (1990): the largest distance exceeds
    ``r`` with probability at most 2 exp(-2 n r^2), for every distribution, with ties or without.
    """
    checks.count(trials=trials)
    return math.sqrt(math.log(2.0 / checks.open_fraction(significance=significance)) / (2.0 * trials))

"""Choosing the threshold of an attack without spoiling the confidence, and testing a claim at it.

A threshold picked on the scores that are then counted makes an interval too short. Five valid rules, as types:
``Given``, ``Bonferroni``, ``Split``, ``Ranks`` and ``NormalScores``. Each turns scores into pieces of evidence, and
each piece tests a claimed curve at its own share of the significance.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np
from scipy.special import bdtr, betaincinv, ndtr

from reticent.auditing.claims import Evidence, Ordering, Shares, Tested
from reticent.auditing.intervals import upper_proportion
from reticent.auditing.joint import FixedCounts
from reticent.auditing.normal_scores import OrderCounts
from reticent.auditing.scores import Scores
from reticent.kernel import checks
from reticent.kernel.errors import ParameterError

_CELLS = 1024
_REACH = 8.0
ALL_RANKS = 0.95
"""Of the significance of ``NormalScores``: what the test of all ranks may spend."""
_FEW = 8


@dataclass(frozen=True, slots=True)
class RankCounts(Evidence):
    """Misses among members above the ``rank``-th largest non-member score.

    The true false positive rate there is stochastically at most Beta(rank, n - rank + 1), ties or not,
    whatever the scores are; given the threshold the misses are binomial. Hence, for every claim f,

        p = E[ P(Binomial(members, f(U)) <= misses) ],   U ~ Beta(rank, n - rank + 1)

    is a valid p-value (proof in docs/theory/auditing.md). It is summed from above on cells of U.

    Attributes:
        threshold: the ``rank``-th largest non-member score.
        rank: fixed before the scores are seen, 1 to ``non_members``.
        non_members, members: sample sizes.
        false_negatives: members at or below the threshold.
    """

    theorem: ClassVar[str] = "RETICENT:audit-ranks"
    threshold: float
    rank: int
    non_members: int
    false_negatives: int
    members: int

    def p_value(self, claim: Tested) -> float:
        """Probability, at most, of misses this few if the release satisfies ``claim``: by RETICENT:audit-ranks."""
        edges, mass = beta_cells(self.rank, self.non_members)
        # The summand grows with the rate, so the upper edge of each cell bounds it from above.
        chance = bdtr(float(self.false_negatives), self.members, np.clip(claim.beta(edges), 0.0, 1.0))
        return min(1.0, float(mass @ chance))

    @property
    def perfect(self) -> RankCounts:
        return replace(self, false_negatives=0)


@lru_cache(maxsize=256)
def beta_cells(rank: int, trials: int) -> tuple[np.ndarray, np.ndarray]:
    """Upper edges of 1,025 cells of Beta(rank, trials - rank + 1) and their probabilities, the tail included."""
    x = np.linspace(-_REACH, _REACH, _CELLS)
    edges = np.append(betaincinv(rank, trials - rank + 1.0, ndtr(x)), 1.0)
    mass = np.diff(ndtr(x), prepend=0.0, append=1.0)
    return edges, mass


class ThresholdRule(ABC):
    """How thresholds are chosen; ``str`` spells it as ``--rule`` of the command line takes it."""

    @abstractmethod
    def evidence(self, scores: Scores, objective: Ordering) -> Shares:
        """What the thresholds show, and how much of the significance each piece may spend.

        Args:
            objective: what a rule that chooses by the scores goes for.
        """


@dataclass(frozen=True, slots=True)
class Given(ThresholdRule):
    """One threshold fixed before any of these scores was seen."""

    threshold: float

    def __post_init__(self) -> None:
        checks.finite(threshold=self.threshold)

    def __str__(self) -> str:
        return _spelled("given", self.threshold)

    def evidence(self, scores: Scores, objective: Ordering) -> Shares:
        return _shared([count(scores.member, scores.non_member, self.threshold)])


@dataclass(frozen=True, slots=True)
class Bonferroni(ThresholdRule):
    """Several thresholds fixed before any of these scores was seen; they share the significance equally.

    Attributes:
        candidates: thresholds on the scale of the scores; at least one, finite.
    """

    candidates: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.candidates or not np.all(np.isfinite(self.candidates)):
            raise ParameterError("candidates", self.candidates, "at least one finite threshold")

    def __str__(self) -> str:
        return _spelled("bonferroni", *self.candidates)

    def evidence(self, scores: Scores, objective: Ordering) -> Shares:
        return _shared([count(scores.member, scores.non_member, t) for t in self.candidates])


class BetweenValues(Bonferroni):
    """Above each value but the largest of scores that have few, as answers have: the default for those.

    Coins among equal scores would spend what a threshold between two values has. Holds where the attack can give no
    other scores: its thresholds are then known beforehand.
    """

    @classmethod
    def of(cls, scores: Scores) -> BetweenValues | None:
        """The rule for these scores; None where they have one value or many."""
        values = np.unique(np.concatenate([scores.member, scores.non_member]))
        few = 1 < len(values) <= min(_FEW, len(scores) // 2)
        return cls(tuple(values[:-1].tolist())) if few else None


@dataclass(frozen=True, slots=True)
class Split(ThresholdRule):
    """The best threshold on a random part of the scores, counted on the rest.

    Attributes:
        fraction: share of both samples that is spent on the choice, strictly between 0 and 1.
        rng: decides which scores are spent; the choice of the seed must not look at the result.
    """

    fraction: float
    rng: np.random.Generator = field(repr=False)

    def __post_init__(self) -> None:
        checks.open_fraction(fraction=self.fraction)

    def __str__(self) -> str:
        return _spelled("split", self.fraction)

    def evidence(self, scores: Scores, objective: Ordering) -> Shares:
        """Errors of the unspent scores, at the threshold that is best for ``objective`` on the spent ones."""
        member = _part(scores.member, self.fraction, self.rng, "member")
        non_member = _part(scores.non_member, self.fraction, self.rng, "non_member")
        threshold = _best_threshold(member[0], non_member[0], objective)
        return _shared([count(member[1], non_member[1], threshold)])


@dataclass(frozen=True, slots=True)
class Ranks(ThresholdRule):
    """Thresholds at ranks of the non-member scores that are fixed before the scores are seen.

    Needs no scale, spends no score on the choice and tests at the full share of the significance: the default for
    epsilon and the advantage, where one threshold says most. Several levels share the significance equally.

    Attributes:
        levels: false positive rates to aim at, each strictly between 0 and 1.
    """

    levels: tuple[float, ...] = (0.01, 0.1, 0.3)

    def __post_init__(self) -> None:
        if not self.levels:
            raise ParameterError("levels", self.levels, "at least one false positive rate")
        for level in self.levels:
            checks.open_fraction(levels=level)

    def __str__(self) -> str:
        return _spelled("ranks", *self.levels)

    def evidence(self, scores: Scores, objective: Ordering) -> Shares:
        ordered = np.sort(scores.non_member)[::-1]
        return _shared([_at_rank(scores.member, ordered, rank_for(level, len(ordered))) for level in self.levels])


@dataclass(frozen=True, slots=True)
class NormalScores(ThresholdRule):
    """All thresholds at once, by the ranks of all scores; a twentieth of the significance is left to ``Ranks()``.

    Nearest to what known noise would allow wherever the curve is smooth, so it is the default for mu and for claims.
    Its own p-value is at least 1/2000; ``Ranks`` finds the smaller ones.
    """

    def __str__(self) -> str:
        return "normal-scores"

    def evidence(self, scores: Scores, objective: Ordering) -> Shares:
        ranks = ((piece, (1.0 - ALL_RANKS) * share) for piece, share in Ranks().evidence(scores, objective))
        return ((OrderCounts.of(scores), ALL_RANKS), *ranks)


def _spelled(name: str, *values: float) -> str:
    return f"{name}:{','.join(f'{float(value)!r}' for value in values)}"


def _shared(pieces: Sequence[Evidence]) -> Shares:
    """Each piece with an equal part."""
    return tuple((piece, 1.0 / len(pieces)) for piece in pieces)


def rank_for(level: float, trials: int) -> int:
    """The rank whose expected false positive rate, rank / (trials + 1), is nearest to ``level``."""
    return min(max(1, round(level * (trials + 1))), trials)


def count(member: np.ndarray, non_member: np.ndarray, threshold: float) -> FixedCounts:
    """Errors of "member if strictly above ``threshold``"."""
    false_positives = int(np.count_nonzero(non_member > threshold))
    misses = int(np.count_nonzero(member <= threshold))
    return FixedCounts(float(threshold), false_positives, len(non_member), misses, len(member))


def _at_rank(member: np.ndarray, ordered: np.ndarray, rank: int) -> RankCounts:
    threshold = float(ordered[rank - 1])
    misses = int(np.count_nonzero(member <= threshold))
    return RankCounts(threshold, rank, len(ordered), misses, len(member))


def _part(values: np.ndarray, fraction: float, rng: np.random.Generator, name: str) -> tuple[np.ndarray, np.ndarray]:
    """(spent on the choice, counted), both without order."""
    size = round(fraction * len(values))
    if not 0 < size < len(values):
        raise ParameterError(name, f"{len(values)} scores", f"enough scores to split at {fraction:g}")
    order = rng.permutation(len(values))
    return values[order[:size]], values[order[size:]]


def _best_threshold(member: np.ndarray, non_member: np.ndarray, objective: Ordering) -> float:
    pooled = np.unique(np.concatenate([member, non_member]))
    between = 0.5 * pooled[:-1] + 0.5 * pooled[1:] if len(pooled) > 1 else pooled
    candidates = between[np.unique(np.linspace(0, len(between) - 1, 513).astype(int))]
    above = len(non_member) - np.searchsorted(np.sort(non_member), candidates, side="right")
    missed = np.searchsorted(np.sort(member), candidates, side="right")
    # A mild level keeps the choice away from thresholds that only a lucky count recommends.
    alpha = upper_proportion(above, len(non_member), 0.05)
    beta = upper_proportion(missed, len(member), 0.05)
    return float(candidates[np.argmax(objective(alpha, beta))])

"""Every threshold at once: a test of a claimed curve by the normal scores of all ranks.

No threshold is chosen, so none has to be paid for. The statistic grows when any member rises above any non-member;
hence its law is largest for the attack whose rates are exactly the claimed curve, and that law is drawn
(docs/theory/auditing.md, after van der Waerden's test and the Monte Carlo tests of Barnard and of Besag and Clifford).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np
from scipy.special import ndtri

from reticent.auditing import ties
from reticent.auditing.claims import Evidence, Tested
from reticent.auditing.intervals import lower_proportion
from reticent.auditing.scores import Scores, digest

DRAWS = 1999
"""Samples of a claim that are drawn."""
_ORDERS = 40
"""Random orders of equal scores."""
_MOST = 64
"""Order statistics of each side that are looked at; a larger sample is thinned to so many."""
_TIE = 1e-9


@dataclass(frozen=True, slots=True)
class OrderCounts(Evidence):
    """How members and non-members lie among each other.

    Attributes:
        statistic: sum of the normal scores of the members' ranks that nineteen of twenty orders of equal scores reach.
        non_members, members: sample sizes.
        seed: of the drawn law; a digest of the scores.
    """

    theorem: ClassVar[str] = "RETICENT:audit-normal-scores"
    statistic: float
    non_members: int
    members: int
    seed: int

    @classmethod
    def of(cls, scores: Scores) -> OrderCounts:
        """The order of ``scores``."""
        member, other = np.sort(scores.member), np.sort(scores.non_member)
        values = np.concatenate([member, other])
        orders = [np.argsort(values, kind="stable")]
        if np.intersect1d(member, other).size:
            rng, group = np.random.default_rng([digest(member, other), 2]), np.unique(values, return_inverse=True)[1]
            orders = [np.argsort(group + 0.5 * rng.random(len(values))) for _ in range(_ORDERS)]
        statistic = ties.reached(np.array([_of_order(order, len(member)) for order in orders]))
        return cls(statistic, len(other), len(member), digest(member, other))

    def p_value(self, claim: Tested) -> float:
        """Share of drawn samples, this one included, whose members stand out as much under ``claim``.

        Theorem RETICENT:audit-normal-scores.
        """
        drawn = _statistics(claim, self.seed, self.non_members, self.members)
        as_much = np.count_nonzero(drawn >= self.statistic - _TIE)
        return min(1.0, (1 + as_much) / (1 + DRAWS) / ties.SHARE)

    @property
    def perfect(self) -> OrderCounts:
        """The same sizes, and every member above every non-member."""
        sides = np.zeros((1, len(kept_ranks(self.non_members)))), np.ones((1, len(kept_ranks(self.members))))
        return replace(self, statistic=float(_statistic(*sides)[0]))


def normal_scores_power(claim: Tested, truth: Tested, non_members: int, members: int, significance: float) -> float:
    """Probability, at least, that the test refutes ``claim`` if the scores follow ``truth``; drawn, at 99.9%.

    No two scores are equal.
    """
    law = np.sort(_statistics(claim, 0, non_members, members))[::-1]
    refused = int(ties.SHARE * significance * (1 + DRAWS)) - 1
    if refused < 0:
        return 0.0
    found = np.count_nonzero(_statistics(truth, 1, non_members, members) > law[refused] + _TIE)
    return float(lower_proportion(found, DRAWS, 1e-3))


@lru_cache(maxsize=64)  # the bounds of one audit, and what perfect leakage would give, ask for the same claims
def _statistics(claim: Tested, seed: int, non_members: int, members: int) -> np.ndarray:
    """Drawn statistics of an attack whose rates are exactly those of ``claim``."""
    false_positives, quantiles = _drawn(seed, non_members, members)
    return _statistic(np.clip(claim.beta(false_positives[:, ::-1]), 0.0, 1.0), quantiles)


def _statistic(others: np.ndarray, mine: np.ndarray) -> np.ndarray:
    """For each row, both sorted: the sum of the normal scores of the ranks of ``mine`` in both together."""
    size = others.shape[1] + mine.shape[1]
    # Two runs that are sorted already merge in linear time, and where both are equal ``mine`` comes last.
    order = np.argsort(np.concatenate([others, mine], axis=1), axis=1, kind="stable")
    scores = ndtri((np.arange(size) + 0.5) / size)
    return np.asarray((order >= others.shape[1]) @ scores)


def _of_order(order: np.ndarray, members: int) -> float:
    """The statistic of all scores in this order, from the bottom; the first ``members`` of them are the members'."""
    place = np.empty(len(order))
    place[order] = np.arange(len(order))
    mine, theirs = np.sort(place[:members]), np.sort(place[members:])
    pooled = theirs[kept_ranks(len(theirs)) - 1], mine[kept_ranks(len(mine)) - 1]
    return float(_statistic(*(part[None] for part in pooled))[0])


def kept_ranks(size: int) -> np.ndarray:
    """Ranks from the bottom, 1 to ``size``: all, or ``_MOST`` evenly spread ones; they mirror themselves."""
    if size <= _MOST:
        return np.arange(1, size + 1)
    half = ((np.arange(_MOST // 2) + 0.5) * size / _MOST).astype(int) + 1
    return np.concatenate([half, size + 1 - half[::-1]])


@lru_cache(maxsize=2)
def _drawn(seed: int, non_members: int, members: int) -> tuple[np.ndarray, np.ndarray]:
    """(false positive rates at the non-members' order statistics, miss rates at the members'), rows rising."""
    rng = np.random.default_rng([seed, 1])
    return order_statistics(rng, non_members), order_statistics(rng, members)


def order_statistics(rng: np.random.Generator, size: int) -> np.ndarray:
    """The kept order statistics of uniform samples of ``size``: sums of gamma variables over their total."""
    shapes = np.diff(kept_ranks(size), prepend=0, append=size + 1)
    sums = np.cumsum(rng.standard_gamma(shapes, size=(DRAWS, len(shapes))), axis=1)
    return np.asarray(sums[:, :-1] / sums[:, -1:])

"""How strong an attacker an audit of this size could have found."""

from __future__ import annotations

from dataclasses import dataclass

from reticent.auditing import Design, NormalScores, Ranks, Scores
from reticent.auditing.claims import TangentTable
from reticent.auditing.normal_scores import normal_scores_power
from reticent.auditing.planning import rank_power
from reticent.auditing.thresholds import ALL_RANKS, BetweenValues
from reticent.kernel.curves import GaussianTradeOff
from reticent.kernel.risk import advantage

POWER = 0.8
"""Probability with which the attacker would have been noticed."""

_LARGEST_MU = 16.0


@dataclass(frozen=True, slots=True)
class Detectable:
    """The weakest Gaussian attack that an audit tells from guessing.

    Attributes:
        mu: of its curve.
        advantage: of the same curve, in [0, 1].
        power: probability, at least, that such an audit notices it.
    """

    mu: float
    advantage: float
    power: float


def detectable(scores: Scores, confidence: float, rule: object = None) -> Detectable | None:
    """The weakest attack on a Gaussian curve that this many scores tell from guessing with probability 0.8.

    Looks at sizes, thresholds, and whether the scores have few values, and not at the scores. The test is that of
    ``NormalScores``, the default, or of the best of the levels of ``Ranks``; for others the default ranks are used.

    Returns:
        None for the design of one run, whose test is another one (``reticent plan-audit`` sizes it), and where
        not even the strongest attack would be noticed.
    """
    if scores.design is Design.ONE_RUN:
        return None
    rule = rule or BetweenValues.of(scores)
    by_order = rule is None or isinstance(rule, NormalScores)
    levels = rule.levels if isinstance(rule, Ranks) else Ranks().levels
    members, others = len(scores.member), len(scores.non_member)
    guessing, share = TangentTable(GaussianTradeOff(0.0)), (1.0 - confidence) / len(levels)

    def power(mu: float) -> float:
        truth = TangentTable(GaussianTradeOff(mu))
        if by_order:
            significance = ALL_RANKS * (1.0 - confidence)
            return normal_scores_power(guessing, truth, others, members, significance)
        return max(rank_power(guessing, truth, members, others, level, share) for level in levels)

    if power(_LARGEST_MU) < POWER:
        return None
    low, high = 0.0, _LARGEST_MU
    while high - low > 1e-3 * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if power(middle) >= POWER else (middle, high)
    return Detectable(high, advantage(GaussianTradeOff(high)), power(high))

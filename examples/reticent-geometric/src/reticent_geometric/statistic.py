"""The advantage at one threshold that was fixed beforehand."""

from __future__ import annotations

from reticent.auditing import Asked, Given, LowerBound, Scores, Statistic, audit_advantage


class AdvantageAtZero(Statistic):
    """The advantage of accusing at a score above 0: for scores that are log likelihood ratios."""

    name = "advantage-at-zero"

    def bound(self, scores: Scores, asked: Asked) -> LowerBound:
        return audit_advantage(scores, Given(0.0), asked.confidence)

"""How much noise can there have been at most? A family of claimed curves as the null, instead of a Gaussian one.

The family gives a curve for every noise multiplier, for instance the enclosed worst case of DP-SGD with the run's rate
and steps. More noise leaks less, so the family is nested: scores that refute one noise multiplier refute every larger
one. What follows holds if the release is a member of the family; ``audit_epsilon_if_gaussian`` is the same for Gaussian
curves, which sampled releases do not have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reticent import _check
from reticent.auditing.one_run import Guesses
from reticent.auditing.scores import Design, Scores
from reticent.auditing.thresholds import ThresholdRule
from reticent.auditing.verdict import audit_claim_as_scored
from reticent.curves import TradeOff
from reticent.risk import epsilon_at_delta

_SPAN = 16.0
_FARTHEST = 1000.0


@dataclass(frozen=True, slots=True)
class NoiseBound:
    """What the scores say about the noise.

    Attributes:
        noise_multiplier: the release has less noise than this, with the confidence; infinite if nothing is refuted.
        epsilon: at ``delta``, of the curve at that noise: the release has more. 0 if nothing is refuted.
        delta: as asked.
        confidence: probability that the statement is true, at least.
    """

    noise_multiplier: float
    epsilon: float
    delta: float
    confidence: float


def audit_noise(
    scores: Scores,
    curve_of: Callable[[float], TradeOff],
    claimed: float,
    delta: float,
    *,
    optimistic_of: Callable[[float], TradeOff] | None = None,
    rule: ThresholdRule | None = None,
    guesses: Guesses | None = None,
    confidence: float = 0.95,
    tolerance: float = 0.02,
) -> NoiseBound:
    """Upper bound on the noise multiplier, and the lower bound on epsilon that follows, within a family of releases.

    Args:
        scores: of canaries.
        curve_of: the curve at a noise multiplier, or one below it; more noise must leak less.
        claimed: where the search begins; it goes from a sixteenth to sixteen times as much, and up to 4,096 times
            where less refutes nothing.
        delta: for epsilon, strictly between 0 and 1.
        optimistic_of: the curve at a noise multiplier, or one above it, for reading epsilon; by default
            ``curve_of``, which is then exact.
        rule: how thresholds are chosen.
        guesses: for one run; by default planned from the curve at ``claimed``.
        confidence: in (0, 1).
        tolerance: relative width at which the search stops.

    Raises:
        ParameterError: a number is outside its domain.
    """
    delta, low = _check.open_fraction(delta=delta), _check.positive(claimed=claimed) / _SPAN
    high, significance = claimed * _SPAN, 1.0 - _check.open_fraction(confidence=confidence)
    made = guesses
    if scores.design is Design.ONE_RUN and made is None:
        made = Guesses.planned(len(scores), curve_of(claimed), confidence)

    def refuted(noise: float) -> bool:
        return audit_claim_as_scored(scores, curve_of(noise), rule, made, confidence).p_value <= significance

    while not refuted(high):
        if high > claimed * _FARTHEST:
            return NoiseBound(np.inf, 0.0, delta, confidence)
        high *= _SPAN
    while high > low * (1.0 + _check.positive(tolerance=tolerance)):
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if refuted(middle) else (middle, high)
    return NoiseBound(high, float(epsilon_at_delta((optimistic_of or curve_of)(high), delta)), delta, confidence)

"""A claimed curve against measured scores: consistent, inconsistent, or no power to tell."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy.special import ndtri

from reticent.auditing.claims import GaussianClaim, Shares, TangentTable, Tested
from reticent.auditing.intervals import Measured
from reticent.auditing.joint import SMALLEST_P
from reticent.auditing.lower_bounds import notes_on, perfect
from reticent.auditing.one_run import THEOREMS, Guesses, count_guesses, curve_p_value
from reticent.auditing.scores import Scores
from reticent.auditing.thresholds import BetweenValues, NormalScores, ThresholdRule
from reticent.kernel import checks
from reticent.kernel.curves import GaussianTradeOff, TradeOff
from reticent.kernel.proofs.references import cite
from reticent.kernel.text import digits


class Finding(StrEnum):
    """What an audit says about a claim."""

    CONSISTENT = "consistent"
    """The attack works, and no better than the claim allows."""
    INCONSISTENT = "inconsistent"
    """The attack does better than any attack could if the claim were true."""
    NO_POWER = "no power"
    """Silence that says nothing: even perfect leakage would not have been noticed, or the attack was not
    shown to be better than guessing."""


@dataclass(frozen=True, slots=True)
class Verdict(Measured):
    """The finding and the evidence for it.

    Attributes:
        finding: see ``Finding``.
        p_value: probability, at most, of scores this telling if the claim is true; corrected for the
            number of thresholds.
        confidence: the confidence asked for; inconsistent means ``p_value <= 1 - confidence``.
        refuted_at: largest confidence at which the claim is refuted, ``1 - p_value``; None unless inconsistent.
        guessing_p_value: the same p-value for the claim "no leakage at all".
        perfect_p_value: the p-value that perfect leakage would have given.
        reason: one sentence for people.
        theorems: keys of ``reticent.kernel.proofs.references``.
        notes: conditions, one sentence each.
        e_value: evidence against the claim, at most 1 on the average if it is true. Those of several audits multiply,
            if each has randomness of its own; a product of ``1 / (1 - confidence)`` refutes.
        stopped_at: of a sequential audit, the pair of scores after which the claim was refuted.
    """

    finding: Finding
    p_value: float
    confidence: float
    refuted_at: float | None
    guessing_p_value: float
    perfect_p_value: float
    reason: str
    theorems: tuple[str, ...]
    notes: tuple[str, ...] = ()
    e_value: float = 1.0
    stopped_at: int | None = None


def audit_claim(
    scores: Scores, curve: TradeOff, rule: ThresholdRule | None = None, confidence: float = 0.95
) -> Verdict:
    """Test the claim that no attack beats ``curve`` (H0: absent, H1: present) with independent scores.

    ``INCONSISTENT`` is wrong with probability at most ``1 - confidence``. ``CONSISTENT`` is not a proof
    of the claim: a better attack may refute it.

    Args:
        scores: scores, higher for members.
        curve: the claimed trade-off curve, for instance ``assessment.curve`` of a threat model.
        rule: how thresholds are chosen; by default between the values of scores that have few, otherwise
            ``NormalScores()``.
        confidence: in (0, 1).

    Raises:
        ParameterError: ``confidence`` is not in (0, 1).
    """
    table, guessing = TangentTable(curve), GaussianClaim(0.0)
    rule = rule or BetweenValues.of(scores) or NormalScores()
    pieces = rule.evidence(scores, lambda a, b: _excess(table, a, b))
    return judge_p_values(
        _combined(pieces, table),
        _combined(pieces, guessing),
        _combined(perfect(pieces), table),
        confidence,
        tuple(dict.fromkeys(piece.theorem for piece, _ in pieces)),
        notes_on(scores.design, rule),
    )


def audit_claim_one_run(
    scores: Scores, curve: TradeOff, guesses: Guesses | None = None, confidence: float = 0.95
) -> Verdict:
    """Test the claim that ``curve`` holds in both directions with one run of fair-coin canaries.

    Args:
        scores: with ``Design.ONE_RUN``; they may depend on each other in any way.
        curve: the claimed curve; it is symmetrised first.
        guesses: fixed in advance; by default ``Guesses.planned``, from the claim and the number of canaries.
        confidence: in (0, 1).
    """
    counts = count_guesses(scores, guesses or Guesses.planned(len(scores), curve, confidence))
    return judge_p_values(
        curve_p_value(counts, curve),
        curve_p_value(counts, GaussianTradeOff(0.0)),
        curve_p_value(counts.perfect, curve),
        confidence,
        THEOREMS,
        (),
    )


def judge_p_values(
    p_value: float,
    guessing: float,
    perfect: float,
    confidence: float,
    theorems: tuple[str, ...],
    notes: tuple[str, ...],
) -> Verdict:
    """The finding that follows from the p-values of the claim, of guessing, and of perfect leakage."""
    significance = 1.0 - checks.open_fraction(confidence=confidence)
    refuted_at = None
    if p_value <= significance:
        finding, refuted_at = Finding.INCONSISTENT, 1.0 - p_value
        p = digits(p_value, 2, up=True)
        reason = f"The attack does better than the claim allows: the claim is refuted, p-value at most {p}."
    elif perfect > significance:
        finding = Finding.NO_POWER
        reason = "With so few scores even perfect leakage would not refute the claim."
    elif guessing > significance:
        finding = Finding.NO_POWER
        reason = "The attack was not shown to be better than guessing, so it does not test the claim."
    else:
        finding = Finding.CONSISTENT
        reason = "The attack works, and no better than the claim allows; a better attack may still refute it."
    e_value = e_value_of(p_value)
    return Verdict(finding, p_value, confidence, refuted_at, guessing, perfect, reason, cite(*theorems), notes, e_value)


def e_value_of(p_value: float) -> float:
    """What a p-value is worth as evidence that multiplies: 0.3 p^-0.7, at most 1 on the average under the claim.

    By RETICENT:audit-sequential.
    """
    return float(0.3 * p_value**-0.7)


def _combined(pieces: Shares, claim: Tested) -> float:
    smallest = min(piece.p_value(claim) / share for piece, share in pieces)
    return min(1.0, max(smallest, SMALLEST_P))


def _excess(claim: Tested, alpha: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """How far (alpha, beta) lies below the claim, on the probit scale: comparable in the tails."""
    limit = 40.0
    return np.clip(ndtri(claim.beta(alpha)), -limit, limit) - np.clip(ndtri(beta), -limit, limit)

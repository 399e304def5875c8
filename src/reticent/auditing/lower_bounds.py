"""Lower bounds on epsilon, mu and advantage with a stated confidence.

Each says: with probability at least ``confidence`` over repetitions of the audit, the release is not
more private than the bound. The proofs are in docs/theory/auditing.md; they need independent scores
(``Design.INDEPENDENT``). For ``Design.POPULATION`` they describe this attack on independently drawn
records and neglect what members of one run share; every result then says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from reticent.auditing.claims import (
    ApproximateDP,
    GaussianClaim,
    Ordering,
    Shares,
    Tested,
    largest_rejected,
    probits,
)
from reticent.auditing.intervals import Measured
from reticent.auditing.joint import FixedCounts
from reticent.auditing.normal_scores import OrderCounts
from reticent.auditing.scores import Design, Scores
from reticent.auditing.thresholds import BetweenValues, NormalScores, RankCounts, Ranks, ThresholdRule
from reticent.kernel import checks
from reticent.kernel.curves import GaussianTradeOff
from reticent.kernel.proofs.references import cite

_LARGEST_EPSILON = 500.0
_LARGEST_MU = 60.0
SMALL_EPSILON = 0.1
SMALL_ADVANTAGE = 0.05
"""Up to these, the test of mu decides: the three bounds are positive together or not at all."""
_NOTHING = 1e-300
_DRAWN = 1e-3
"""Relative width to which a bound from a drawn law is searched."""
_SHARED_RUN = "The records share one training run; the confidence neglects the dependence this may cause."
_ONE_RUN = "All canaries share one run; the confidence holds if their scores are independent given the data."
_FEW_VALUES = "The scores have few values, and thresholds lie between them; holds if the attack can give no others."


class Quantity(StrEnum):
    """What is bounded from below."""

    EPSILON = "epsilon"
    MU = "mu"
    ADVANTAGE = "advantage"


_IF_GAUSSIAN = "DONG2022:Definition 2.3"
"""The key of a bound that holds for Gaussian curves alone."""


@dataclass(frozen=True, slots=True)
class LowerBound(Measured):
    """A quantity that the release exceeds, with a confidence.

    Attributes:
        quantity: what is bounded.
        value: the bound, finite and >= 0; 0 says nothing.
        ceiling: what perfect leakage would have given with as many scores: no value can be larger.
        confidence: probability that the bound is at most the truth, at least.
        rule: how thresholds were chosen, in words.
        delta: the delta that goes with epsilon, else None.
        thresholds: the thresholds that were counted.
        theorems: keys of ``reticent.kernel.proofs.references``.
        notes: conditions, one sentence each.
    """

    quantity: Quantity
    value: float
    ceiling: float
    confidence: float
    rule: str
    delta: float | None
    thresholds: tuple[float, ...]
    theorems: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What is bounded, where, and under which condition: no two bounds of a report have the same title."""
        where = "" if self.delta is None else f" at delta {self.delta:g}"
        return f"{self.quantity}{where}{', if the curve is Gaussian' if _IF_GAUSSIAN in self.theorems else ''}"


@dataclass(frozen=True, slots=True)
class _Family:
    """A nested family of claims.

    Attributes:
        quantity: the parameter.
        member: the claim with this parameter.
        of_rates: the parameter that a pair (alpha, beta) of rates would give.
        limit: a parameter that no finite sample can reject.
        small: claims up to this parameter are tested as those of mu are, the others by the family's own test.
        delta: the delta that goes with epsilon.
    """

    quantity: Quantity
    member: Callable[[float], Tested]
    of_rates: Ordering
    limit: float
    small: float = 0.0
    delta: float | None = None


def audit_epsilon(
    scores: Scores, delta: float, rule: ThresholdRule | None = None, confidence: float = 0.95
) -> LowerBound:
    """Lower bound on epsilon at ``delta``: the release is not (value, delta)-differentially private.

    Args:
        scores: of independent canaries, records or runs.
        delta: in [0, 1).
        rule: how to choose thresholds; by default between the values of scores that have few, otherwise
            ``NormalScores()`` up to epsilon 0.1, and ``Ranks()`` beyond.
        confidence: in (0, 1).

    Raises:
        ParameterError: ``delta`` or ``confidence`` is outside its domain.
    """
    delta = checks.fraction(delta=delta)
    family = _Family(
        Quantity.EPSILON,
        lambda e: ApproximateDP(e, delta),
        lambda a, b: least_epsilon(a, b, delta),
        _LARGEST_EPSILON,
        SMALL_EPSILON,
        delta,
    )
    return _bound(family, scores, rule, confidence)


def audit_mu(scores: Scores, rule: ThresholdRule | None = None, confidence: float = 0.95) -> LowerBound:
    """Lower bound on mu: the release is not ``value``-GDP. ``NormalScores()`` by default; else as ``audit_epsilon``."""
    family = _Family(Quantity.MU, GaussianClaim, probits, _LARGEST_MU)
    return _bound(family, scores, rule or BetweenValues.of(scores) or NormalScores(), confidence)


def audit_advantage(scores: Scores, rule: ThresholdRule | None = None, confidence: float = 0.95) -> LowerBound:
    """Lower bound on the largest advantage, TPR - FPR; as ``audit_epsilon``, with 0.05 in place of epsilon 0.1."""
    family = _Family(
        Quantity.ADVANTAGE, lambda a: ApproximateDP(0.0, a), lambda a, b: 1.0 - a - b, 1.0, SMALL_ADVANTAGE
    )
    return _bound(family, scores, rule, confidence)


def audit_epsilon_if_gaussian(
    scores: Scores, delta: float, rule: ThresholdRule | None = None, confidence: float = 0.95
) -> LowerBound:
    """Lower bound on epsilon at ``delta`` by way of mu, *if the true curve is a Gaussian one*.

    Far tighter than ``audit_epsilon`` at small ``delta``, because the bound on mu may come from any
    threshold. Not a bound for releases with another curve, and the result says so.
    """
    delta = checks.open_fraction(delta=delta)
    mu = audit_mu(scores, rule, confidence)
    notes = ("Holds only if the trade-off curve of the release is Gaussian.", *mu.notes)
    return replace(
        mu,
        quantity=Quantity.EPSILON,
        value=gaussian_epsilon(mu.value, delta),
        ceiling=gaussian_epsilon(mu.ceiling, delta),
        delta=delta,
        theorems=cite(_IF_GAUSSIAN, *mu.theorems),
        notes=notes,
    )


def gaussian_epsilon(mu: float, delta: float) -> float:
    """epsilon(delta) of G_mu, rounded down; 0 where delta(0) is at most ``delta``."""
    curve, target = GaussianTradeOff(mu), np.log(delta)
    return largest_rejected(lambda e: bool(curve.log_delta(e) > target), _LARGEST_MU**2, 1e-9)


def least_epsilon(alpha: np.ndarray, beta: np.ndarray, delta: float) -> np.ndarray:
    """Least epsilon with which (alpha, beta) agrees; far below 0 where every epsilon does."""
    first = np.log(np.maximum(1.0 - delta - beta, _NOTHING) / alpha)
    second = np.log(np.maximum(1.0 - delta - alpha, _NOTHING) / beta)
    return np.maximum(first, second)


def _bound(family: _Family, scores: Scores, rule: ThresholdRule | None, confidence: float) -> LowerBound:
    """By RETICENT:audit-thresholds, RETICENT:audit-ranks or RETICENT:audit-normal-scores; a union bound over pieces."""
    significance = 1.0 - checks.open_fraction(confidence=confidence)

    def shown_by(chosen: ThresholdRule) -> Shares:
        return tuple((piece, share * significance) for piece, share in chosen.evidence(scores, family.of_rates))

    rule = rule or BetweenValues.of(scores)
    own = shown_by(rule or Ranks())
    first = own if rule else shown_by(NormalScores())
    pieces = tuple(piece for piece, _ in (*own, *(() if rule else first)))
    return LowerBound(
        family.quantity,
        _value(family, first, own),
        _value(family, perfect(first), perfect(own)),
        confidence,
        str(rule) if rule else f"{NormalScores()}, ranks",
        family.delta,
        tuple(dict.fromkeys(piece.threshold for piece in pieces if isinstance(piece, FixedCounts | RankCounts))),
        cite(*dict.fromkeys(piece.theorem for piece in pieces)),
        notes_on(scores.design, rule),
    )


def perfect(pieces: Shares) -> Shares:
    """The evidence of an attack that makes no error."""
    return tuple((piece.perfect, share) for piece, share in pieces)


def _value(family: _Family, first: Shares, own: Shares) -> float:
    """The largest parameter up to which every claim is rejected: small ones by ``first``, the others by ``own``.

    Each claim has one test at the full significance, chosen before the scores are seen. So the claim that is true is
    rejected with probability at most that, and without its rejection the bound does not exceed it.
    """
    if family.small and not any(piece.rejects(family.member(family.small), share) for piece, share in first):
        return _end(family, first, probits, family.small)
    return max(family.small, _end(family, own, family.of_rates, family.limit))


def _end(family: _Family, pieces: Shares, ordering: Ordering, limit: float) -> float:
    """The end of what any piece of evidence rejects. One that does not reject the largest so far ends before it."""
    best = 0.0
    for piece, share in pieces:
        rejects = _of_parameters(family, piece.test(share, ordering))
        if best == 0.0 or rejects(best):
            tolerance = _DRAWN if isinstance(piece, OrderCounts) else 1e-6
            best = max(best, largest_rejected(rejects, limit, tolerance))
    return best


def _of_parameters(family: _Family, test: Callable[[Tested], bool]) -> Callable[[float], bool]:
    """Whether the claim with a parameter is rejected."""
    return lambda parameter: test(family.member(parameter))


def notes_on(design: Design, rule: ThresholdRule | None = None) -> tuple[str, ...]:
    """What the reader must know about the dependence of the scores, and about the choice of thresholds."""
    notes = {Design.INDEPENDENT: (), Design.ONE_RUN: (_ONE_RUN,), Design.POPULATION: (_SHARED_RUN,)}[design]
    return (*notes, _FEW_VALUES) if isinstance(rule, BetweenValues) else notes

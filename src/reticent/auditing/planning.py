"""How many canaries, models or runs an audit needs, by exact binomial power.

The audit is to refute a claimed curve when the release really has another, weaker one. Power is the
probability of that, computed from the very tests of ``thresholds`` and ``one_run``; it is exact for
independent, continuous scores of the best attack, and an upper limit for any weaker attack.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

import numpy as np
from scipy.special import bdtr

from reticent.auditing.claims import TangentTable, Tested
from reticent.auditing.intervals import Measured
from reticent.auditing.one_run import GuessCounts
from reticent.auditing.one_run import rejects as one_run_rejects
from reticent.auditing.thresholds import RankCounts, beta_cells, rank_for
from reticent.auditing.ties import SHARE
from reticent.kernel import checks
from reticent.kernel.curves import TradeOff, symmetrised
from reticent.kernel.errors import UnsupportedError
from reticent.kernel.proofs import Claim
from reticent.kernel.proofs.references import cite

_LARGEST = 1 << 20
_LARGEST_ONE_RUN = 1 << 14


class Unit(StrEnum):
    """What is counted."""

    MODELS = "models"
    """Independent trainings, half with the target and half without; one score each. Runs alike."""
    CANARIES = "canaries"
    """Canaries whose scores are independent given the data: half included, half left out."""
    ONE_RUN = "one-run canaries"
    """Fair-coin canaries of one run, all guessed, with a proof that needs no independence."""


@dataclass(frozen=True, slots=True)
class Plan(Measured):
    """The smallest audit that reaches a power.

    Attributes:
        unit: what ``needed`` counts.
        needed: total number, members and non-members together.
        power: probability that this audit refutes the claim; at least the power asked for.
        level: false positive rate of the threshold to use: ``Ranks((level,))``; None for one run.
        confidence: of the test.
        theorems: keys of ``reticent.kernel.proofs.references``.
        claim: ``Claim.ESTIMATE``: power holds for the stated truth and the best attack on it.
    """

    unit: Unit
    needed: int
    power: float
    level: float | None
    confidence: float
    theorems: tuple[str, ...]
    claim: ClassVar[Claim] = Claim.ESTIMATE


def plan_audit(
    claimed: TradeOff, truth: TradeOff, unit: Unit = Unit.CANARIES, confidence: float = 0.95, power: float = 0.8
) -> Plan:
    """Size an audit that tells ``truth`` from ``claimed``.

    Power is not quite monotone in the size (counts are whole); the size returned reaches the power,
    and the next smaller one on the search path does not.

    Args:
        claimed: the curve to be refuted.
        truth: the curve the release is feared to have, below ``claimed`` somewhere.
        unit: what to count.
        power: probability of success wanted, in (0, 1).

    Raises:
        UnsupportedError: the truth is nowhere below the claim, or no audit of a million scores (one run:
            sixteen thousand canaries) reaches the power.
    """
    significance = 1.0 - checks.open_fraction(confidence=confidence)
    power = checks.open_fraction(power=power)
    level, excess = best_level(claimed, truth)
    if excess <= 1e-9:
        raise UnsupportedError("the truth is nowhere below the claimed curve: no audit can distinguish them")
    if unit is Unit.ONE_RUN:
        table, accuracy = TangentTable(symmetrised(claimed)), _accuracy(truth)
        needed, reached = _smallest(lambda n: _one_run_power(table, accuracy, n, significance), power, _LARGEST_ONE_RUN)
        return Plan(unit, needed, reached, None, confidence, cite("RETICENT:audit-one-run-fdp"))
    claim, real = TangentTable(claimed), TangentTable(truth)
    half, reached = _smallest(lambda n: rank_power(claim, real, n, n, level, significance), power, _LARGEST // 2)
    return Plan(unit, 2 * half, reached, level, confidence, cite("RETICENT:audit-ranks"))


def best_level(claimed: TradeOff, truth: TradeOff) -> tuple[float, float]:
    """(false positive rate at which the curves are easiest to tell apart, signal there in standard errors).

    For equal samples: the difference of the betas against its asymptotic standard error. Both
    curves are public, so choosing the level so does not look at any score.
    """
    claim, real = TangentTable(claimed), TangentTable(truth)

    def signal(alpha: np.ndarray) -> np.ndarray:
        above, below = claim.beta(alpha), np.maximum(real.beta(alpha), 1e-12)
        slope = np.gradient(above, alpha)
        return (above - below) / np.sqrt(below * (1.0 - below) + slope**2 * alpha * (1.0 - alpha) + 1e-12)

    alpha = np.exp(np.linspace(np.log(1e-4), np.log(0.9), 2001))
    values = signal(alpha)
    best = int(np.argmax(values))
    return float(alpha[best]), float(values[best])


def rank_power(
    claimed: Tested, truth: Tested, members: int, non_members: int, level: float, significance: float
) -> float:
    """Probability that ``Ranks((level,))`` refutes ``claimed`` if the scores follow ``truth``."""
    rank = rank_for(level, non_members)
    critical = _largest_count(
        lambda misses: RankCounts(0.0, rank, non_members, misses, members).rejects(claimed, significance), members
    )
    if critical < 0:
        return 0.0
    edges, mass = beta_cells(rank, non_members)
    # Lower edges, so that the power is not overstated.
    lower = np.concatenate([[0.0], edges[:-1]])
    return float(mass @ bdtr(float(critical), members, np.clip(truth.beta(lower), 0.0, 1.0)))


def _one_run_power(claimed: Tested, accuracy: float, canaries: int, significance: float) -> float:
    def refuted(errors: int) -> bool:
        return one_run_rejects(GuessCounts(canaries, canaries, canaries - errors), claimed, SHARE * significance)

    wrong = _largest_count(refuted, canaries)
    return 0.0 if wrong < 0 else float(bdtr(float(wrong), canaries, 1.0 - accuracy))


def _accuracy(truth: TradeOff) -> float:
    """Share of right guesses at the threshold where the likelihood ratio is 1."""
    rates = truth.errors(np.array([0.0]))
    return float(0.5 * (np.exp(rates.tnr[0]) + np.exp(rates.tpr[0])))


def _largest_count(holds: Callable[[int], bool], most: int) -> int:
    """The largest count up to ``most`` for which a monotone condition holds; -1 if not even for 0."""
    return bisect_left(range(most + 1), True, key=lambda count: not holds(count)) - 1


def _smallest(power_at: Callable[[int], float], wanted: float, most: int) -> tuple[int, float]:
    size = 2
    while (reached := power_at(size)) < wanted:
        if size >= most:
            raise UnsupportedError(f"no audit with {most} scores on each side reaches a power of {wanted:g}")
        size = min(2 * size, most)
    low, high = size // 2, size
    while high - low > max(1, high // 200):
        middle = (low + high) // 2
        at_middle = power_at(middle)
        low, high, reached = (low, middle, at_middle) if at_middle >= wanted else (middle, high, reached)
    return high, reached

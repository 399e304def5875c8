"""Audits of a single run: many canaries, each included by its own fair coin, and guesses about the coins.

The scores need not be independent: the proofs (docs/theory/auditing.md, after STEINKE2023 and
MAHLOUJIFAR2024) use only the coins and the guarantee under test. The numbers of guesses are fixed
before the scores are seen; choosing the best of several on the same scores makes the bound invalid.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import bdtrc, betaincinv, ndtr

from reticent.auditing.claims import (
    ApproximateDP,
    GaussianClaim,
    TangentTable,
    Tested,
    end_between,
    largest_rejected,
)
from reticent.auditing.joint import SMALLEST_P
from reticent.auditing.lower_bounds import LowerBound, Quantity
from reticent.auditing.scores import Design, Scores
from reticent.auditing.ties import SHARE, Edge, right_guesses
from reticent.kernel import checks
from reticent.kernel.curves import GaussianTradeOff, TradeOff, symmetrised
from reticent.kernel.errors import ParameterError
from reticent.kernel.proofs.references import cite

_STALLED = 1.0 + 1e-12
"""Growth below rounding counts as none: on the side of not rejecting."""
_LARGEST_EPSILON = 100.0
_LARGEST_MU = 60.0
_SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 1.0 / 3.0, 0.5, 0.8, 1.0)
_ENOUGH_CANARIES = 100_000  # beyond them the best share hardly changes
_GRID = 256
THEOREMS = ("RETICENT:audit-one-run-fdp", "RETICENT:audit-one-run-binomial")
_EPSILONS = np.concatenate([[0.0], np.geomspace(0.01, 20.0, 40)])


@dataclass(frozen=True, slots=True)
class Guesses:
    """How often to guess, fixed before the scores are seen.

    Attributes:
        members: how many of the largest scores are guessed to be included.
        non_members: how many of the smallest are guessed to be left out.
    """

    members: int
    non_members: int

    def __post_init__(self) -> None:
        if min(self.members, self.non_members) < 0 or self.members + self.non_members < 1:
            raise ParameterError("guesses", (self.members, self.non_members), "counts >= 0, at least one guess")

    @classmethod
    def share(cls, canaries: int, share: float) -> Guesses:
        """Guess on the outer ``share`` of the canaries, half of it on each side."""
        each = max(1, int(0.5 * checks.rate(share=share) * canaries))
        return cls(each, each)

    @classmethod
    def planned(cls, canaries: int, curve: TradeOff | None = None, confidence: float = 0.95) -> Guesses:
        """The share with the largest lower bound on mu, if the canaries leak by ``curve`` and no more.

        Nothing but the claim and the number of canaries decides, so the choice is made before the scores are seen.

        Args:
            canaries: how many take part by a coin.
            curve: the claim under test; G_1 by default.
        """
        curve = GaussianTradeOff(1.0) if curve is None else curve
        return cls.share(canaries, _best_share(min(canaries, _ENOUGH_CANARIES), curve, confidence))


@dataclass(frozen=True, slots=True)
class GuessCounts:
    """Outcome of the guesses.

    Attributes:
        canaries: all canaries, guessed or not.
        guesses: number of guesses made.
        correct: how many were right, in nineteen of twenty orders of equal scores.
    """

    canaries: int
    guesses: int
    correct: int

    def __post_init__(self) -> None:
        if not 0 <= self.correct <= self.guesses <= self.canaries:
            counts = self.canaries, self.guesses, self.correct
            raise ParameterError("counts", counts, "correct <= guesses <= canaries")

    @property
    def perfect(self) -> GuessCounts:
        """The same without a single error."""
        return GuessCounts(self.canaries, self.guesses, self.guesses)

    @property
    def rule(self) -> str:
        """What was counted, in words."""
        return f"{self.correct} of {self.guesses} guesses right, {self.canaries} canaries in one run"


def count_guesses(scores: Scores, guesses: Guesses) -> GuessCounts:
    """Guess and count.

    Raises:
        ParameterError: the scores are not from one run with fair coins, or there are more guesses than
            canaries.
    """
    if scores.design is not Design.ONE_RUN:
        raise ParameterError("design", str(scores.design), "one-run: fair inclusion coins are what the proof needs")
    total, made = len(scores), guesses.members + guesses.non_members
    if made > total:
        raise ParameterError("guesses", made, f"at most the {total} canaries")
    edges = (
        Edge.of(scores.member, scores.non_member, guesses.members),
        Edge.of(-scores.non_member, -scores.member, guesses.non_members),
    )
    return GuessCounts(total, made, right_guesses(*edges))


def binomial_p_value(counts: GuessCounts, epsilon: float, delta: float) -> float:
    """Probability, at most, of this many correct guesses under (epsilon, delta)-DP. By RETICENT:audit-one-run-binomial.

    The correct guesses are at most B + F. B is Binomial(guesses, q) with q = e^epsilon / (1 + e^epsilon). F counts
    guesses that delta turned; its mean is at most canaries * delta * (1 - q), and it may depend on B in any way. The
    largest P(B + F >= correct) spends that mean where B is nearest to ``correct`` (docs/theory/auditing.md).
    """
    epsilon, delta = checks.non_negative(epsilon=epsilon), checks.fraction(delta=delta)
    wrong = 1.0 / (1.0 + np.exp(epsilon))
    budget = counts.canaries * delta * wrong * (1.0 + 1e-9)
    # How far B is lifted: the least k whose cost, E[correct - B; correct - k <= B < correct], exceeds the budget.
    if _cost(counts, counts.correct, wrong) <= budget:
        return 1.0
    lifts = range(1, counts.correct + 1)
    lifted = bisect_left(lifts, True, key=lambda lift: _cost(counts, lift, wrong) > budget)
    rest = (budget - _cost(counts, lifted, wrong)) / (lifted + 1)
    return min(1.0, _at_least(counts.guesses, counts.correct - lifted, wrong) + max(0.0, rest))


def _at_least(trials: int, successes: int, wrong: float) -> float:
    """P(Binomial(trials, 1 - wrong) >= successes)."""
    return 1.0 if successes <= 0 else float(bdtrc(float(successes - 1), trials, 1.0 - wrong))


def _cost(counts: GuessCounts, lifted: int, wrong: float) -> float:
    """E[correct - B; correct - lifted <= B < correct], by w P(B = w) = n q P(Binomial(n - 1, q) = w - 1)."""
    v, n = counts.correct, counts.guesses
    mass = _at_least(n, v - lifted, wrong) - _at_least(n, v, wrong)
    first = n * (1.0 - wrong) * (_at_least(n - 1, v - lifted - 1, wrong) - _at_least(n - 1, v - 1, wrong))
    return max(0.0, v * mass - first)


def audit_epsilon_one_run(
    scores: Scores, delta: float, guesses: Guesses | None = None, confidence: float = 0.95
) -> LowerBound:
    """Lower bound on epsilon at ``delta`` from one run: the larger of two, by binomial guesses and by f-DP.

    Both tests refuse a claim from some number of correct guesses on. So both together are one of them, and the larger
    bound needs no correction.

    Args:
        scores: with ``Design.ONE_RUN``.
        delta: in [0, 1).
        guesses: fixed in advance; ``Guesses.planned`` by default.
        confidence: in (0, 1).
    """
    delta, significance = checks.fraction(delta=delta), SHARE * (1.0 - checks.open_fraction(confidence=confidence))
    counts = count_guesses(scores, guesses or Guesses.planned(len(scores), None, confidence))
    value, ceiling = (_epsilon_bound(each, delta, significance) for each in (counts, counts.perfect))
    return LowerBound(Quantity.EPSILON, value, ceiling, confidence, counts.rule, delta, (), cite(*THEOREMS[::-1]))


@lru_cache(maxsize=256)
def _epsilon_bound(counts: GuessCounts, delta: float, significance: float) -> float:
    by_curve = largest_rejected(lambda e: rejects(counts, ApproximateDP(e, delta), significance), _LARGEST_EPSILON)
    return max(by_curve, _binomial_epsilon(counts, delta, significance))


def _binomial_epsilon(counts: GuessCounts, delta: float, significance: float) -> float:
    """The largest epsilon that ``binomial_p_value`` refuses; a p-value for it is one for every smaller epsilon.

    The p-value is not monotone: a larger epsilon allows more guesses and leaves less to delta.
    """
    if counts.correct == 0:
        return 0.0
    right = betaincinv(counts.correct, counts.guesses - counts.correct + 1.0, significance)
    if right <= 0.5:
        return 0.0

    def refused(epsilon: float) -> bool:
        return binomial_p_value(counts, epsilon, delta) <= significance

    grid = np.linspace(0.0, min(np.log(right / (1.0 - right)), _LARGEST_EPSILON), _GRID).tolist()
    low = next((epsilon for epsilon in reversed(grid) if refused(epsilon)), None)
    return 0.0 if low is None else end_between(refused, low, low + grid[1])


def audit_mu_one_run(scores: Scores, guesses: Guesses | None = None, confidence: float = 0.95) -> LowerBound:
    """Lower bound on mu from one run, by f-DP, or by guesses where that is larger; as ``audit_epsilon_one_run``."""
    significance = SHARE * (1.0 - checks.open_fraction(confidence=confidence))
    counts = count_guesses(scores, guesses or Guesses.planned(len(scores), None, confidence))
    value, ceiling = (_mu_bound(each, significance) for each in (counts, counts.perfect))
    return LowerBound(Quantity.MU, value, ceiling, confidence, counts.rule, None, (), cite(*THEOREMS))


def rejects(counts: GuessCounts, claim: Tested, significance: float) -> bool:
    """Whether this many correct guesses have probability at most ``significance`` under ``claim``.

    The recursion of MAHLOUJIFAR2024, derived anew in docs/theory/auditing.md. ``claim`` must be its own inverse: it
    holds in both directions.
    """
    return bool(mass_needed(counts, claim, np.array([significance]))[0] > 1.0)


def curve_p_value(counts: GuessCounts, curve: TradeOff) -> float:
    """Probability, at most, of this many right guesses if ``curve`` holds in both directions; not below 1e-12.

    The smallest of what f-DP says and of what binomial guesses say of the curve's epsilon and delta, for several
    epsilon: each bounds the same probability. By RETICENT:audit-one-run-fdp and RETICENT:audit-one-run-binomial.
    """
    both = symmetrised(curve)
    delta = np.minimum(np.exp(both.log_delta(_EPSILONS)), 1.0)
    pairs = zip(_EPSILONS.tolist(), delta.tolist(), strict=True)
    by_guesses = min(binomial_p_value(counts, epsilon, d) for epsilon, d in pairs)
    p = min(one_run_p_value(counts, TangentTable(both)), by_guesses)
    return min(1.0, max(SMALLEST_P, p / SHARE))


def one_run_p_value(counts: GuessCounts, claim: Tested) -> float:
    """The least significance at which ``rejects``, rounded up; not below 1e-12. By RETICENT:audit-one-run-fdp."""
    low, high = np.log(SMALLEST_P), 0.0
    for _ in range(3):
        grid = np.linspace(low, high, 64)
        possible = np.flatnonzero(mass_needed(counts, claim, np.exp(grid)) <= 1.0)
        if not possible.size:
            return SMALLEST_P
        if possible[-1] == len(grid) - 1:
            return float(np.exp(high))
        low, high = grid[possible[-1]], grid[possible[-1] + 1]
    return float(np.exp(high))


def mass_needed(counts: GuessCounts, claim: Tested, tail: np.ndarray) -> np.ndarray:
    """Least total probability of a law of the correct guesses W with P(W >= correct) = ``tail``.

    N[j] = P(W >= j) must satisfy, for j = correct, correct - 1, ..., 1 and m canaries, r guesses,

        (r - j + 1) N[j - 1] - sum over w >= j of N[w]  >=  m G((j N[j] + sum over w > j of N[w]) / m),

    where G(y) = f^-1(1 - y) is the least false positive rate at true positive rate y. Above 1 the tail
    is impossible. As soon as N[j - 1] need not exceed N[j], nothing below needs to either: j N[j] plus the sum
    beyond no longer changes, and both sides of the quotient grow by N[j] and by 1. So the recursion may stop there.
    """
    m, r = float(counts.canaries), counts.guesses
    at_least, beyond = tail.astype(float), np.zeros_like(tail, dtype=float)
    for j in range(counts.correct, 0, -1):
        reached = np.clip((j * at_least + beyond) / m, 0.0, 1.0)
        beyond = beyond + at_least
        needed = (m * claim.beta(1.0 - reached) + beyond) / (r - j + 1)
        if np.all((at_least > 1.0) | (needed <= at_least * _STALLED)):
            break
        at_least = np.maximum(at_least, needed)
    return at_least


@lru_cache(maxsize=64)
def _best_share(canaries: int, curve: TradeOff, confidence: float) -> float:
    """Of ``_SHARES``, the one with the largest bound on mu at the counts that ``curve`` makes us expect."""
    alpha = np.concatenate([np.logspace(-8, -2, 500), np.linspace(0.01, 1, 500)])
    hits = 1.0 - TangentTable(symmetrised(curve)).beta(alpha)
    bounds = []
    for share in _SHARES:
        at = float(np.interp(share, alpha + hits, alpha))
        made = Guesses.share(canaries, share)
        made_all = min(made.members + made.non_members, canaries)
        right = int(made_all * (share - at) / share)
        counts = GuessCounts(canaries, made_all, min(right, made_all))
        bounds.append(_mu_bound(counts, 1.0 - confidence, 1e-3))
    return _SHARES[int(np.argmax(bounds))] if max(bounds) > 0.0 else 0.2


def _mu_bound(counts: GuessCounts, significance: float, tolerance: float = 1e-6) -> float:
    """The larger of two: G_mu by f-DP, and by binomial guesses at epsilon 0, where its delta is its advantage."""

    def by_guesses(mu: float) -> bool:
        return binomial_p_value(counts, 0.0, float(2.0 * ndtr(0.5 * mu) - 1.0)) <= significance

    def by_curve(mu: float) -> bool:
        return rejects(counts, GaussianClaim(mu), significance)

    return max(largest_rejected(test, _LARGEST_MU, tolerance) for test in (by_curve, by_guesses))

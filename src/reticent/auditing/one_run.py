"""Audits of a single run: many canaries, each included by its own fair coin, and guesses about the coins.

The scores need not be independent: the proofs (docs/auditing.md, after STEINKE2023 and
MAHLOUJIFAR2024) use only the coins and the guarantee under test. The numbers of guesses are fixed
before the scores are seen; choosing the best of several on the same scores makes the bound invalid.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtr

from reticent import _check
from reticent.auditing._claims import ApproximateDP, GaussianClaim, Tested, largest_rejected
from reticent.auditing.lower_bounds import LowerBound, Quantity
from reticent.auditing.scores import Design, Scores
from reticent.errors import ParameterError
from reticent.proofs.references import cite

SMALLEST_P = 1e-12
"""No p-value is reported below this."""
_STALLED = 1.0 + 1e-12
"""Growth below rounding counts as none: on the side of not rejecting."""
_LARGEST_EPSILON = 100.0
_LARGEST_MU = 60.0


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
        each = max(1, int(0.5 * _check.rate(share=share) * canaries))
        return cls(each, each)


@dataclass(frozen=True, slots=True)
class GuessCounts:
    """Outcome of the guesses.

    Attributes:
        canaries: all canaries, guessed or not.
        guesses: number of guesses made.
        correct: how many were right; a tie at the edge of the guessed sets counts as wrong while it can.
    """

    canaries: int
    guesses: int
    correct: int

    def __post_init__(self) -> None:
        if not 0 <= self.correct <= self.guesses <= self.canaries:
            raise ParameterError(
                "counts", (self.canaries, self.guesses, self.correct), "correct <= guesses <= canaries"
            )


def count_guesses(scores: Scores, guesses: Guesses) -> GuessCounts:
    """Guess and count.

    Raises:
        ParameterError: the scores are not from one run with fair coins, or there are more guesses than
            canaries.
    """
    if scores.design is not Design.ONE_RUN:
        raise ParameterError("design", str(scores.design), "one-run: fair inclusion coins are what the proof needs")
    total = len(scores)
    if guesses.members + guesses.non_members > total:
        raise ParameterError("guesses", guesses.members + guesses.non_members, f"at most the {total} canaries")
    values = np.concatenate([scores.member, scores.non_member])
    included = np.arange(total) < len(scores.member)
    # Ties: non-members are taken first from above and members first from below, so that no order of
    # the file can help; an order blind to the coins would count at least as many right.
    order = np.lexsort((included, -values))
    right = np.count_nonzero(included[order[: guesses.members]])
    order = np.lexsort((~included, values))
    right += np.count_nonzero(~included[order[: guesses.non_members]])
    return GuessCounts(total, guesses.members + guesses.non_members, int(right))


def binomial_p_value(counts: GuessCounts, epsilon: float, delta: float) -> float:
    """Probability, at most, of so many correct guesses under (epsilon, delta)-DP.

    P(Binomial(guesses, q) >= correct) + canaries * delta * (1 - q), q = e^epsilon / (1 + e^epsilon). The first
    term is that of STEINKE2023; the second is the one derived here, for guesses that may depend on the
    output in any way.

    By RETICENT:audit-one-run-binomial.
    """
    epsilon, delta = _check.non_negative(epsilon=epsilon), _check.fraction(delta=delta)
    wrong = 1.0 / (1.0 + np.exp(epsilon))
    tail = float(bdtr(float(counts.guesses - counts.correct), counts.guesses, wrong))
    return min(1.0, tail + counts.canaries * delta * wrong)


def audit_epsilon_one_run(
    scores: Scores, delta: float, guesses: Guesses | None = None, confidence: float = 0.95
) -> LowerBound:
    """Lower bound on epsilon at ``delta`` from one run, by binomial guesses.

    Args:
        scores: with ``Design.ONE_RUN``.
        delta: in [0, 1); canaries * delta must be well below the significance.
        guesses: fixed in advance; the outer third of the canaries by default.
        confidence: in (0, 1).
    """
    delta = _check.fraction(delta=delta)
    significance = 1.0 - _check.open_fraction(confidence=confidence)
    counts = count_guesses(scores, _default(guesses, scores))

    def value(seen: GuessCounts) -> float:
        return largest_rejected(lambda e: binomial_p_value(seen, e, delta) <= significance, _LARGEST_EPSILON)

    return _result(Quantity.EPSILON, value, counts, confidence, delta, "RETICENT:audit-one-run-binomial")


def audit_mu_one_run(scores: Scores, guesses: Guesses | None = None, confidence: float = 0.95) -> LowerBound:
    """Lower bound on mu from one run, by the recursion for f-DP. Arguments as for ``audit_epsilon_one_run``."""
    significance = 1.0 - _check.open_fraction(confidence=confidence)
    counts = count_guesses(scores, _default(guesses, scores))

    def value(seen: GuessCounts) -> float:
        return largest_rejected(lambda mu: rejects(seen, GaussianClaim(mu), significance), _LARGEST_MU)

    return _result(Quantity.MU, value, counts, confidence, None, "RETICENT:audit-one-run-fdp")


def audit_epsilon_one_run_f_dp(
    scores: Scores, delta: float, guesses: Guesses | None = None, confidence: float = 0.95
) -> LowerBound:
    """Lower bound on epsilon at ``delta`` from one run, by the recursion with the curve of (epsilon, delta)."""
    delta = _check.fraction(delta=delta)
    significance = 1.0 - _check.open_fraction(confidence=confidence)
    counts = count_guesses(scores, _default(guesses, scores))

    def value(seen: GuessCounts) -> float:
        return largest_rejected(lambda e: rejects(seen, ApproximateDP(e, delta), significance), _LARGEST_EPSILON)

    return _result(Quantity.EPSILON, value, counts, confidence, delta, "RETICENT:audit-one-run-fdp")


def rejects(counts: GuessCounts, claim: Tested, significance: float) -> bool:
    """Whether so many correct guesses have probability at most ``significance`` under ``claim``.

    The recursion of MAHLOUJIFAR2024, derived anew in docs/auditing.md. ``claim`` must be its own inverse: it holds in
    both directions.
    """
    return bool(_mass_needed(counts, claim, np.array([significance]))[0] > 1.0)


def one_run_p_value(counts: GuessCounts, claim: Tested) -> float:
    """The least significance at which ``rejects``, rounded up; not below 1e-12.

    By RETICENT:audit-one-run-fdp.
    """
    low, high = np.log(SMALLEST_P), 0.0
    for _ in range(3):
        grid = np.linspace(low, high, 64)
        possible = np.flatnonzero(_mass_needed(counts, claim, np.exp(grid)) <= 1.0)
        if not possible.size:
            return SMALLEST_P
        if possible[-1] == len(grid) - 1:
            return float(np.exp(high))
        low, high = grid[possible[-1]], grid[possible[-1] + 1]
    return float(np.exp(high))


def _mass_needed(counts: GuessCounts, claim: Tested, tail: np.ndarray) -> np.ndarray:
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


def _default(guesses: Guesses | None, scores: Scores) -> Guesses:
    return Guesses.share(len(scores), 1.0 / 3.0) if guesses is None else guesses


def _result(
    quantity: Quantity,
    value: Callable[[GuessCounts], float],
    counts: GuessCounts,
    confidence: float,
    delta: float | None,
    theorem: str,
) -> LowerBound:
    perfect = GuessCounts(counts.canaries, counts.guesses, counts.guesses)
    rule = f"{counts.correct} of {counts.guesses} guesses right, {counts.canaries} canaries in one run"
    return LowerBound(quantity, value(counts), value(perfect), confidence, rule, delta, (), cite(theorem))

"""Paired canaries: of each pair exactly one takes part, by a secret fair coin; guesses about the coins of one run.

A pair's coin replaces one record by another, so everything here is about *replacement* of a record. The proof is that
of one run (RETICENT:audit-one-run-binomial, RETICENT:audit-one-run-fdp) with pairs for canaries: it needs the coins and
the guarantee between the two values of a coin, and nothing of the scores. All pairs have a canary in the run, so none
of them is spent on an empty place; of two canaries with opposite gradients the coin moves the release twice as far.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reticent import _check
from reticent.auditing.lower_bounds import LowerBound
from reticent.auditing.one_run import GuessCounts, Guesses, epsilon_bound, mu_bound
from reticent.auditing.ties import Edge, right_guesses
from reticent.auditing.verdict import Verdict, judge_counts
from reticent.curves import GaussianTradeOff, TradeOff
from reticent.errors import ParameterError

_REPLACED = "About replacing one record by another: the coin of a pair does that."


@dataclass(frozen=True, eq=False)
class PairedCanaries:
    """Scores of both canaries of each pair; higher is more member-like.

    Attributes:
        included: of the canary that took part, one for each pair.
        left_out: of the other one of the same pair.

    Raises:
        ParameterError: the arrays are not finite, one-dimensional and of the same length, or all pairs are tied.
    """

    included: np.ndarray
    left_out: np.ndarray

    def __post_init__(self) -> None:
        included, left_out = (np.asarray(part, dtype=float) for part in (self.included, self.left_out))
        if included.ndim != 1 or included.shape != left_out.shape or not included.size:
            raise ParameterError("left_out", left_out.shape, f"one score for each pair, {included.shape}")
        if not np.isfinite(included - left_out).all():
            raise ParameterError("scores", "NaN or infinity", "finite scores")
        if not np.any(included != left_out):
            raise ParameterError("scores", "the same in every pair", "at least one pair whose scores differ")
        object.__setattr__(self, "included", included)
        object.__setattr__(self, "left_out", left_out)

    def __len__(self) -> int:
        return len(self.included)

    def counts(self, guesses: int) -> GuessCounts:
        """Guess the pairs whose scores differ most, for the canary with the higher one, and count.

        How far the two scores lie apart does not tell which of them took part. Among pairs that differ equally no
        order is chosen (``reticent.auditing.ties``), and where both scores are equal a guess is right half of the time.

        Args:
            guesses: how many, fixed before the scores are seen.

        Raises:
            ParameterError: not between 1 and the number of pairs.
        """
        if not 1 <= _check.count(guesses=guesses) <= len(self):
            raise ParameterError("guesses", guesses, f"at most the {len(self)} pairs")
        lead = self.included - self.left_out
        differ = min(guesses, int(np.count_nonzero(lead)))
        edge = Edge.of(lead[lead > 0.0], -lead[lead < 0.0], differ)
        return GuessCounts(len(self), guesses, right_guesses(edge, fair=guesses - differ))


def audit_epsilon_paired(
    pairs: PairedCanaries, delta: float, guesses: int | None = None, confidence: float = 0.95
) -> LowerBound:
    """Lower bound on epsilon at ``delta`` when one record is replaced by another.

    Args:
        pairs: from one run.
        delta: in [0, 1).
        guesses: fixed in advance; by default planned for a release that is sqrt(2)-GDP under replacement.
        confidence: in (0, 1).
    """
    _check.fraction(delta=delta)
    return epsilon_bound(_counted(pairs, guesses, None, confidence), delta, confidence, (_REPLACED,))


def audit_mu_paired(pairs: PairedCanaries, guesses: int | None = None, confidence: float = 0.95) -> LowerBound:
    """Lower bound on mu when one record is replaced by another; else as ``audit_epsilon_paired``."""
    return mu_bound(_counted(pairs, guesses, None, confidence), confidence, (_REPLACED,))


def audit_claim_paired(
    pairs: PairedCanaries, curve: TradeOff, guesses: int | None = None, confidence: float = 0.95
) -> Verdict:
    """Test the claim that ``curve`` holds, in both directions, when one record is replaced by another.

    Args:
        pairs: from one run; their scores may depend on each other in any way.
        curve: the claimed curve, for instance ``assess(mechanism, Neighbouring.REPLACE).curve``.
        guesses: fixed in advance; by default planned from the claim and the number of pairs.
        confidence: in (0, 1).
    """
    return judge_counts(_counted(pairs, guesses, curve, confidence), curve, confidence, (_REPLACED,))


def _counted(pairs: PairedCanaries, guesses: int | None, curve: TradeOff | None, confidence: float) -> GuessCounts:
    _check.open_fraction(confidence=confidence)
    if guesses is None:
        planned = Guesses.planned(len(pairs), GaussianTradeOff(2.0**0.5) if curve is None else curve, confidence)
        guesses = min(len(pairs), planned.members + planned.non_members)
    return pairs.counts(guesses)

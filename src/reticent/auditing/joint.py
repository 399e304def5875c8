"""Both error counts of one threshold at once: an exact unconditional test of a claimed curve.

Clopper-Pearson ends of both errors at half the level each hold together far more often than stated,
because both errors rarely are unlucky together. Here those ends only order the pairs of counts (by the
epsilon, mu or advantage they give), and the chance of a pair at least as telling is taken at its largest
over all true rates that the claim allows, with the false positive rate kept in its own confidence
interval (Berger and Boos 1994), which costs a tenth of the significance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np
from scipy.special import bdtr

from reticent.auditing.claims import Evidence, Ordering, Tested, probits
from reticent.auditing.intervals import lower_proportion, upper_proportion
from reticent.kernel.curves import binomial

_TIE = 1e-9
_SPENT = 0.1
"""Share of the significance for the interval of the false positive rate."""
_CELLS = 96
_BLOCKS = 320
_NEGLECTED = 1e-17
"""Blocks less probable than this are counted as telling without looking."""
SMALLEST_P = 1e-12
"""No p-value is reported below this."""


@dataclass(frozen=True, slots=True)
class FixedCounts(Evidence):
    """Errors at a threshold that does not depend on the counted scores.

    Attributes:
        threshold: "member" is guessed for scores strictly above it.
        false_positives, non_members: counts on the side of H0.
        false_negatives, members: counts on the side of H1.
    """

    theorem: ClassVar[str] = "RETICENT:audit-thresholds"
    threshold: float
    false_positives: int
    non_members: int
    false_negatives: int
    members: int

    def p_value(self, claim: Tested) -> float:
        """The least significance at which the claim is rejected, from above; 1 if it never is."""
        if not self.rejects(claim, 1.0 - SMALLEST_P):
            return 1.0
        if self.rejects(claim, SMALLEST_P):
            return SMALLEST_P
        low, high = np.log(SMALLEST_P), 0.0
        while high - low > 1e-3:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self.rejects(claim, float(np.exp(middle))) else (middle, high)
        return float(np.exp(high))

    @property
    def perfect(self) -> FixedCounts:
        return replace(self, false_positives=0, false_negatives=0)

    def test(self, significance: float, ordering: Ordering = probits) -> Callable[[Tested], bool]:
        """Whether counts at least this telling are improbable for every pair of rates the claim allows.

        Everything is rounded towards not rejecting: rates on a cell are replaced by the pair of its ends that
        makes telling counts most likely, and counts of false positives are treated in blocks by their first one.
        """
        upper, starts, mass, alpha = _seen(self.false_positives, self.non_members, significance)

        def told(misses: np.ndarray) -> np.ndarray:
            return ordering(alpha[: len(misses)], upper_proportion(misses, self.members, 0.5 * significance))

        end = upper_proportion(self.false_negatives, self.members, 0.5 * significance)
        misses = _most_misses(told, len(starts), self.members, float(ordering(alpha[-1], end)))
        cell, block = np.nonzero((mass > _NEGLECTED) & (misses >= 0.0))
        mass, misses = mass[cell, block], misses[block]

        def rejects(claim: Tested) -> bool:
            beta = np.clip(claim.beta(upper), 0.0, 1.0)
            telling = mass * bdtr(misses, self.members, beta[cell])
            chance = np.bincount(cell, telling, minlength=_CELLS) + _BLOCKS * _NEGLECTED
            return bool(np.max(chance) <= (1.0 - _SPENT) * significance)

        return rejects


@lru_cache(maxsize=64)  # the bounds of one audit ask for the same counts again, at the same significances
def _seen(
    false_positives: int, non_members: int, significance: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """What one side gives, whatever tells more: (upper ends of its rates, blocks, their masses, ends of intervals)."""
    half = 0.5 * _SPENT * significance
    low, high = (float(f(false_positives, non_members, half)) for f in (lower_proportion, upper_proportion))
    rates = np.sin(np.linspace(np.arcsin(low**0.5), np.arcsin(high**0.5), _CELLS + 1)) ** 2
    starts, mass = binomial.shared_blocks(rates[:-1], non_members, _BLOCKS)
    ends = upper_proportion(np.append(starts, false_positives), non_members, 0.5 * significance)
    return rates[1:], starts, mass, ends


def _most_misses(telling: Callable[[np.ndarray], np.ndarray], blocks: int, members: int, observed: float) -> np.ndarray:
    """For each block the largest count of misses that is at least as telling as observed; -1 if none is."""
    low, high = np.full(blocks, -1), np.full(blocks, members + 1)
    while np.any(high - low > 1):
        middle = np.maximum((low + high) // 2, 0)
        enough = telling(middle) >= observed - _TIE
        open_ = high - low > 1
        low, high = np.where(open_ & enough, middle, low), np.where(open_ & ~enough, middle, high)
    return low.astype(float)

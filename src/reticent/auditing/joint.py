"""Both error counts of one threshold at once: an exact unconditional test of a claimed curve.

Clopper-Pearson ends of both errors at half the level each hold together far more often than stated,
because both errors rarely are unlucky together. Here those ends only order the pairs of counts (by the
epsilon, mu or advantage they give), and the chance of a pair at least as telling is taken at its largest
over all true rates that the claim allows, with the false positive rate kept in its own confidence
interval (Berger and Boos 1994), which costs a tenth of the significance.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.special import bdtr, ndtri

from reticent.auditing.claims import Tested
from reticent.auditing.intervals import lower_proportion, upper_proportion
from reticent.curves import binomial

Ordering = Callable[[np.ndarray, np.ndarray], np.ndarray]

_TIE = 1e-9
_SPENT = 0.1
"""Share of the significance for the interval of the false positive rate."""
_CELLS = 96
_BLOCKS = 320
_NEGLECTED = 1e-17
"""Blocks less probable than this are counted as telling without looking."""


class JointTest:
    """The test for one pair of counts at one significance; ``rejects`` may be asked for many claims.

    Args:
        false_positives, non_members: counts on the side of H0.
        false_negatives, members: counts on the side of H1.
        significance: of the whole test.
        ordering: (alpha, beta) to a number, non-increasing in both: which pairs of counts tell more.

    Everything is rounded towards not rejecting: rates on a cell are replaced by the pair of its ends that
    makes telling counts most likely, and counts of false positives are treated in blocks by their first one.
    """

    def __init__(
        self,
        false_positives: int,
        non_members: int,
        false_negatives: int,
        members: int,
        significance: float,
        ordering: Ordering,
    ) -> None:
        self._members = members
        self._level = (1.0 - _SPENT) * significance
        self._upper, starts, mass, alpha = _seen(false_positives, non_members, significance)

        def telling(misses: np.ndarray) -> np.ndarray:
            return ordering(alpha[: len(misses)], upper_proportion(misses, members, 0.5 * significance))

        end = upper_proportion(false_negatives, members, 0.5 * significance)
        observed = float(ordering(alpha[-1], end))
        misses = _most_misses(telling, len(starts), members, observed)
        self._cell, block = np.nonzero((mass > _NEGLECTED) & (misses >= 0.0))
        self._mass, self._misses = mass[self._cell, block], misses[block]

    def rejects(self, claim: Tested) -> bool:
        """Whether counts at least this telling are improbable for every pair of rates the claim allows."""
        beta = np.clip(claim.beta(self._upper), 0.0, 1.0)
        telling = self._mass * bdtr(self._misses, self._members, beta[self._cell])
        chance = np.bincount(self._cell, telling, minlength=_CELLS) + _BLOCKS * _NEGLECTED
        return bool(np.max(chance) <= self._level)


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


def probits(alpha: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """The mu that error rates would give, capped below: the ordering for claims of any shape."""
    return np.maximum(-ndtri(alpha) - ndtri(beta), -1e3)


def _most_misses(telling: Callable[[np.ndarray], np.ndarray], blocks: int, members: int, observed: float) -> np.ndarray:
    """For each block the largest count of misses that is at least as telling as observed; -1 if none is."""
    low, high = np.full(blocks, -1), np.full(blocks, members + 1)
    while np.any(high - low > 1):
        middle = np.maximum((low + high) // 2, 0)
        enough = telling(middle) >= observed - _TIE
        open_ = high - low > 1
        low, high = np.where(open_ & enough, middle, low), np.where(open_ & ~enough, middle, high)
    return low.astype(float)

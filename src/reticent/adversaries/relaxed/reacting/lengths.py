"""One direction of any length: a record that pushes more often shows less of a mean, and more of a square.

With lengths c and a = E c^2, over laws pi of u with KL(pi || uniform) <= I, and for every mu >= 0:

    E_pi c <u, e> <= E_pi max(<u, e> + mu, 0) - mu a,        |E_pi c^2 u u'|^2 <= a^2 / d + (R(I) / d)^2,

as c w + mu c^2 is convex in c, and by Donsker and Varadhan. So both terms of a step are not largest for the same a.
docs/theory/relaxed/reacting.md has the proofs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from reticent.adversaries.relaxed.dimension.overlap_law import OverlapLaw, overlap_law
from reticent.adversaries.relaxed.reacting.learnt import FORMS, ROUND_UP, learnt, least_mean, log_form
from reticent.kernel.curves._logs import LOG_2

SQUARES = np.append(0.0, np.linspace(0.4, 1.0, 31))  # a: ends of cells
_SHIFTS = np.geomspace(0.05, 4.0, 14)  # mu, in units of 1 / sqrt(d)
_TILTS = 120  # values of L
_LEAST_TILT, _LARGEST_TILT = 1e-4, 30.0  # in units of sqrt(d) and of d


@dataclass(frozen=True, slots=True)
class Lengths:
    """Bounds for each cell of a (rows) at each of ``learnt``'s nats (columns).

    Attributes:
        mean: of E <g, g'>.
        overlap: of E <g, g'>^2.
    """

    mean: np.ndarray
    overlap: np.ndarray


@lru_cache(maxsize=16)
def lengths(dimension: int) -> Lengths:
    """The bounds in ``dimension`` dimensions."""
    known, law, d = learnt(dimension), overlap_law(dimension), float(dimension)
    tilts = np.geomspace(_LEAST_TILT * np.sqrt(d), _LARGEST_TILT * d, _TILTS)
    shifts = _SHIFTS / np.sqrt(d)
    shifted = np.array([least_mean(known.nats, tilts, _log_mean(law, tilts, mu), 1.0 + mu) for mu in shifts])
    low, high = SQUARES[:-1], SQUARES[1:]
    mean = np.min(shifted[None] - (shifts * low[:, None])[:, :, None], axis=1)
    mean = np.minimum(np.maximum(mean, 0.0), known.positive) ** 2
    forms = np.log(2.0 * np.exp(log_form(FORMS)) - 1.0 + FORMS / np.sqrt(2.0))
    gained = least_mean(known.nats, FORMS, forms, d)
    overlap = (high[:, None] ** 2 + gained**2 / d) / d * ROUND_UP
    return Lengths(np.minimum(mean, known.half_square), np.minimum(overlap, known.overlap))


def _log_mean(law: OverlapLaw, tilts: np.ndarray, shift: float) -> np.ndarray:
    """log E exp(L max(<u, e> + mu, 0)), from above: the mean over both signs is convex in |<u, e>| and grows."""
    same, opposite = (tilts[:, None] * np.maximum(shift + sign * law.nodes, 0.0) for sign in (1.0, -1.0))
    at_zero = tilts * shift
    both = np.logaddexp(same, opposite) - LOG_2 - at_zero[:, None]
    return at_zero + np.logaddexp(0.0, law.log_excess(np.maximum(both, 0.0)))

"""How far the direction can show once an attacker has learnt I nats about it: Donsker and Varadhan.

For every law pi of u with KL(pi || uniform) <= I and every f, E_pi f <= (I + log E e^{L f}) / L for all L > 0. So

    phi(I) bounds E_pi max(<u, e>, 0) for every e,      Q(I) bounds E_pi <u, e>^2,
    H(I)   bounds E_pi max(<u, e>, 0)^2,
    N(I)   bounds E_pi |M'u| for every M with |M| = 1, and so for max(M'u, 0), entry by entry,
    S(I)   bounds E <u, u'>^2 for independent u, u' of law pi: Q(I), and 1/d plus what forms without trace gain.

Every L gives a bound, so a grid of them does. docs/theory/relaxed/reacting.md has the proofs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from reticent.adversaries.relaxed.dimension.overlap_law import OverlapLaw, mean_positive_part, overlap_law
from reticent.kernel.curves._logs import LOG_2

_TILTS = 400  # values of L
_LEAST_TILT, _LARGEST_TILT = 1e-7, 1e2  # in units of sqrt(d) and d; of d and d for squares
_NATS = 2500  # values of I
_LEAST_NATS, _MOST_NATS = 1e-13, 1e3
_PER_DIMENSION = 50.0  # nats per dimension, from which on all is known
ROUND_UP = 1.0 + 1e-7  # weights of nodes, and logarithms of what is nearly 1
_TANGENTS, _FEW_TILTS = np.array([0.5, 0.7, 0.9, 1.1, 1.4, 2.0]), 150  # tau in units of 1 / sqrt(d); values of L
FORMS = np.append(np.geomspace(1e-6, 0.3, 300), np.linspace(0.301, 0.4999, 100))  # L / d of forms without trace


@dataclass(frozen=True, slots=True)
class Learnt:
    """Bounds at each of ``nats``, all increasing.

    Attributes:
        nats: I, from 0.
        positive: phi(I).
        square: Q(I).
        half_square: H(I).
        length, half_length: N(I), of M'u and of its part above 0.
        overlap: S(I).
    """

    nats: np.ndarray
    positive: np.ndarray
    square: np.ndarray
    half_square: np.ndarray
    length: np.ndarray
    half_length: np.ndarray
    overlap: np.ndarray


@lru_cache(maxsize=32)
def learnt(dimension: int) -> Learnt:
    """The bounds in ``dimension`` dimensions."""
    law, d = overlap_law(dimension), float(dimension)
    nats = np.append(0.0, np.geomspace(_LEAST_NATS, max(_MOST_NATS, _PER_DIMENSION * d), _NATS))
    tilts = np.geomspace(_LEAST_TILT * np.sqrt(d), _LARGEST_TILT * d, _TILTS)
    positive = least_mean(nats, tilts, np.logaddexp(0.0, _log_excess(law, tilts, law.nodes) - LOG_2))
    positive[0] = min(mean_positive_part(dimension) * ROUND_UP, positive[0])
    tilts = np.geomspace(_LEAST_TILT * d, _LARGEST_TILT * d, _TILTS)
    log_excess = _log_excess(law, tilts, law.nodes**2)
    square = least_mean(nats, tilts, np.logaddexp(0.0, log_excess))
    half_square = least_mean(nats, tilts, np.logaddexp(0.0, log_excess - LOG_2))
    square[0], half_square[0] = min(ROUND_UP / d, square[0]), min(0.5 * ROUND_UP / d, half_square[0])
    gained = least_mean(nats, FORMS, np.log1p(2.0 * np.expm1(log_form(FORMS))), most=d)
    overlap = np.minimum(square, (1.0 + gained**2 / d) / d * ROUND_UP)
    length, half_length = _least_lengths(law, nats)
    return Learnt(nats, positive, square, half_square, length, half_length, overlap)


def _log_excess(law: OverlapLaw, tilts: np.ndarray, values: np.ndarray) -> np.ndarray:
    return law.log_excess(tilts[:, None] * values)


def log_form(share: np.ndarray) -> np.ndarray:
    """m(theta) = (-log(1 - 2 theta) - 2 theta) / 2: for forms without trace, |M| = 1.

    Args:
        share: theta = L / d, in (0, 1/2).
    """
    return 0.5 * (-np.log1p(-2.0 * share) - 2.0 * share)


def _least_lengths(law: OverlapLaw, nats: np.ndarray) -> np.ndarray:
    """N(I), of M'u and of its part above 0.

    sqrt(q) <= h(q), h a tangent up to tau^2 and sqrt(q) beyond; e^{L h} is convex in q where L tau >= 1. So among all M
    one column is the worst: q = <u, e>^2; or, of the part above 0, 0 for half of all directions.
    """
    d, best = float(law.dimension), np.ones((2, len(nats)))
    for tangent in _TANGENTS / np.sqrt(d):
        tilts = np.geomspace(1.0 / tangent, _LARGEST_TILT * d + 1.0 / tangent, _FEW_TILTS)
        above = np.where(law.nodes < tangent, 0.5 * law.nodes**2 / tangent, law.nodes - 0.5 * tangent)
        log_excess = _log_excess(law, tilts, above)
        for known, opposite in zip(best, (0.0, LOG_2), strict=True):
            log_means = 0.5 * tilts * tangent + np.logaddexp(0.0, log_excess - opposite)
            np.minimum(known, least_mean(nats, tilts, log_means), out=known)
    return best


def least_mean(nats: np.ndarray, tilts: np.ndarray, log_means: np.ndarray, most: float = 1.0) -> np.ndarray:
    """min over L of (I + log E e^{L f}) / L, at most ``most``, at each I.

    Args:
        nats: I, shape (n,).
        tilts: L, shape (m,).
        log_means: log E e^{L f}, from above, shape (m,).
        most: of f.
    """
    lines = np.multiply.outer(nats, 1.0 / tilts)
    lines += log_means / tilts
    return np.minimum(lines.min(axis=1) * ROUND_UP, most)

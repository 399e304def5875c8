"""How far the direction can show once an attacker has learnt I nats about it: Donsker and Varadhan.

For every law pi of u with KL(pi || uniform) <= I and every f, E_pi f <= (I + log E e^{L f}) / L for all L > 0. So

    phi(I) bounds E_pi max(<u, e>, 0) for every e,      Q(I) bounds E_pi <u, e>^2,
    S(I)   bounds E <u, u'>^2 for independent u, u' of law pi: Q(I), and 1/d plus what forms without trace gain.

Every L gives a bound, so a grid of them does. docs/relaxed-reacting.md has the proofs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from reticent.composition.relaxed_dimension.overlap_law import OverlapLaw, mean_positive_part, overlap_law
from reticent.tradeoff._logs import LOG_2

_TILTS = 400  # values of L
_LEAST_TILT, _LARGEST_TILT = 1e-7, 1e2  # in units of sqrt(d) and d; of d and d for squares
_NATS = 2500  # values of I
_LEAST_NATS, _MOST_NATS = 1e-13, 1e3
_PER_DIMENSION = 50.0  # nats per dimension, from which on all is known
_ROUND_UP = 1.0 + 1e-7  # weights of nodes, and logarithms of what is nearly 1
_FORMS = np.append(np.geomspace(1e-6, 0.3, 300), np.linspace(0.301, 0.4999, 100))  # L / d of forms without trace


@dataclass(frozen=True, slots=True)
class Learnt:
    """Bounds at each of ``nats``, all increasing.

    Attributes:
        nats: I, from 0.
        positive: phi(I).
        square: Q(I).
        overlap: S(I).
    """

    nats: np.ndarray
    positive: np.ndarray
    square: np.ndarray
    overlap: np.ndarray


@lru_cache(maxsize=32)
def learnt(dimension: int) -> Learnt:
    """The bounds in ``dimension`` dimensions.

    Args:
        dimension: >= 1.
    """
    law, d = overlap_law(dimension), float(dimension)
    nats = np.append(0.0, np.geomspace(_LEAST_NATS, max(_MOST_NATS, _PER_DIMENSION * d), _NATS))
    tilts = np.geomspace(_LEAST_TILT * np.sqrt(d), _LARGEST_TILT * d, _TILTS)
    half = np.logaddexp(0.0, _log_excess(law, tilts, law.nodes) - LOG_2)
    positive = _least(nats, tilts, half)
    positive[0] = min(mean_positive_part(dimension) * _ROUND_UP, positive[0])
    tilts = np.geomspace(_LEAST_TILT * d, _LARGEST_TILT * d, _TILTS)
    square = _least(nats, tilts, np.logaddexp(0.0, _log_excess(law, tilts, law.nodes**2)))
    square[0] = min(_ROUND_UP / d, square[0])
    form = 0.5 * (-np.log1p(-2.0 * _FORMS) - 2.0 * _FORMS)
    gained = _least(nats, _FORMS, np.log1p(2.0 * np.expm1(form)), most=d)
    overlap = np.minimum(square, (1.0 + gained**2 / d) / d * _ROUND_UP)
    return Learnt(nats, positive, square, overlap)


def _log_excess(law: OverlapLaw, tilts: np.ndarray, values: np.ndarray) -> np.ndarray:
    return law.log_excess(tilts[:, None] * values)


def _least(nats: np.ndarray, tilts: np.ndarray, log_means: np.ndarray, most: float = 1.0) -> np.ndarray:
    """min over L of (I + log E e^{L f}) / L, at most ``most``, at each I."""
    return np.minimum(np.min((nats[:, None] + log_means) / tilts, axis=1) * _ROUND_UP, most)

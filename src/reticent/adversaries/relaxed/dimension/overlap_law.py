"""The law of |<u, u'>| for two uniform directions, as finitely many nodes from above.

Means of convex functions over a cell are at most those of the chord, which needs the mass of the cell and the mean of
|<u, u'>| inside. So the sum over nodes is at least the mean of every function that is convex and grows in |<u, u'>|.
By symmetry <u, u'> is positive with probability one half, with the same law.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import betainc, betaincc

from reticent.kernel.curves._logs import HUGE, cell_masses, log_expm1, log_of

_NEAR, _FAR, _WIDTH = 700, 300, 9.0  # cells up to this many standard deviations, and beyond, in proportion
_SHARE = 1e-6  # of a cell's mass that is moved to its worse end, for what cancels in the mean inside a cell
_BETA_ERROR = 1e-11  # relative, of a beta tail
_GONE = 1e-250  # tails below are bounded in logarithms
_KNOWN = 1e3  # times its error that a mass must be for its mean to be used
_SERIES = 300.0  # dimensions from which a ratio of gamma functions is a series


@dataclass(frozen=True, slots=True)
class OverlapLaw:
    """Nodes of |<u, u'>| and the logarithms of their weights, from above.

    Attributes:
        dimension: of the space, >= 1.
        nodes: increasing, in [0, 1].
        log_weights: of each node.
    """

    dimension: int
    nodes: np.ndarray
    log_weights: np.ndarray

    def log_excess(self, exponents: np.ndarray) -> np.ndarray:
        """log of an upper bound on E (e^f - 1), f >= 0 convex and growing in |<u, u'>|.

        Args:
            exponents: f at each node, last axis.
        """
        logs = self.log_weights + log_expm1(exponents)
        top = np.clip(logs.max(axis=-1, keepdims=True), -HUGE, HUGE)
        return np.asarray(top[..., 0] + log_of(np.exp(logs - top).sum(axis=-1)))


@lru_cache(maxsize=32)
def overlap_law(dimension: int) -> OverlapLaw:
    """The law in ``dimension`` dimensions.

    Args:
        dimension: >= 1; in one dimension the overlap is 1.
    """
    if dimension == 1:
        return OverlapLaw(1, np.ones(1), np.zeros(1))
    near = min(_WIDTH / math.sqrt(dimension), 1.0)
    edges = np.linspace(0.0, near, _NEAR + 1)
    if near < 1.0:
        edges = np.append(edges[:-1], np.geomspace(near, 1.0, _FAR + 1))
    edges[-1] = 1.0
    low, high = _log_chords(edges, dimension)
    weights = np.logaddexp(np.append(low, -np.inf), np.append(-np.inf, high))
    return OverlapLaw(dimension, edges, weights)


def mean_positive_part(dimension: int) -> float:
    """b_d = E max(<u, u'>, 0) = Gamma(d/2) / (2 sqrt(pi) Gamma((d+1)/2)), about 1/sqrt(2 pi d).

    Args:
        dimension: >= 1.
    """
    z = 0.5 * dimension
    if dimension < _SERIES:
        ratio = math.gamma(z) / math.gamma(z + 0.5)
    else:
        ratio = (1.0 + (1.0 + (1.0 - (5.0 + 21.0 / (32.0 * z)) / (8.0 * z)) / (16.0 * z)) / (8.0 * z)) / math.sqrt(z)
    return ratio / (2.0 * math.sqrt(math.pi))


def _log_chords(edges: np.ndarray, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """log of weights on both ends of each cell: the mean of a convex function over it is at most that of the chord.

    Where tails underflow, P(|<u, u'>| > c) <= (1 - c^2)^(d/2 - 1).
    """
    mass, doubt = increments(edges, dimension)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = 0.5 * (dimension - 1.0) * np.log1p(-(edges**2))
        part = 2.0 * mean_positive_part(dimension) * np.exp(logs[:-1]) * -np.expm1(np.diff(logs))
    mass = mass + doubt
    inside = np.divide(part, mass, out=edges[1:].copy(), where=mass > _KNOWN * doubt)
    share = np.clip((inside - edges[:-1]) / np.diff(edges) + _SHARE, 0.0, 1.0)
    gone = doubt < _GONE * _BETA_ERROR
    far = (0.5 * dimension - 1.0) * np.log1p(-(edges[:-1] ** 2))
    return np.where(gone, -np.inf, log_of(mass * (1.0 - share))), np.where(gone, far, log_of(mass * share))


def increments(edges: np.ndarray, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Mass of |<u, u'>| in each cell, from the smaller tail, and a bound on its error.

    Args:
        edges: of the cells, increasing, in [0, 1].
        dimension: >= 2.
    """
    cdf, sf = (tail(0.5, 0.5 * (dimension - 1.0), edges**2) for tail in (betainc, betaincc))  # the square is beta
    return np.maximum(cell_masses(cdf, sf), 0.0), _BETA_ERROR * np.minimum(cdf[1:], sf[:-1])

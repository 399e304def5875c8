"""Data sets that are several moves apart: the trade-off curve of a chain of neighbours (group privacy)."""

from __future__ import annotations

import numpy as np

from reticent.kernel.curves._logs import LOG_HALF, log1mexp
from reticent.kernel.curves.base import LogErrors
from reticent.kernel.curves.piecewise import PolygonTradeOff
from reticent.kernel.curves.polygon import Polygon, log_deltas, polygon_above, polygon_through

_ROUNDING = 1e-12  # relative: what error rates are lowered by
MOST_EDGES = 8000
"""Edges of a chain."""
_FINEST = 2.0**-30
"""Between slopes that are kept, at least."""


def chained(first: PolygonTradeOff, second: PolygonTradeOff) -> Polygon:
    """beta = second(1 - first(alpha)): from the first data set to the third, by one that lies between.

    A test at level alpha of the first has at most the power 1 - first(alpha) at the middle. That is its level there, so
    its power at the third is at most 1 - second(1 - first(alpha)). Of two polygons it is the polygon of both sets of
    vertices, read at the middle. Rounding lowers it. By RETICENT:allocation-chain and, where directions are unknown, by
    RETICENT:chain.

    Args:
        first: H0 = the first data set, H1 = the middle.
        second: H0 = the middle, H1 = the third.
    """
    rejected = np.concatenate([first.vertices.tpr, second.vertices.fpr])  # probability under the middle
    accepted = np.concatenate([first.vertices.fnr, second.vertices.tnr])
    fpr, tnr = first.reversed._at(accepted)
    fnr, tpr = second._at(rejected)
    found = polygon_through(LogErrors(*_lowered(fpr, tnr), *_lowered(fnr, tpr)))
    return found if len(found.log_slopes) <= MOST_EDGES else _with_fewer_edges(found)


def _lowered(rate: np.ndarray, rest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """log of a rate and of its complement, the rate a little lower: the safe side."""
    few = rate < LOG_HALF
    less, more = rate - _ROUNDING, np.minimum(rest + _ROUNDING, 0.0)
    return np.where(few, less, log1mexp(more)), np.where(few, log1mexp(np.minimum(less, 0.0)), more)


def _with_fewer_edges(curve: Polygon) -> Polygon:
    """Tangents at slopes of an even grid, near those of the edges: on or below.

    Another processor, on which some edges are rounded away, takes nearly the same slopes; where the number of cells is
    next to ``MOST_EDGES``, it may take every second one.
    """
    slopes = curve.log_slopes[np.isfinite(curve.log_slopes)]
    pitch, cells = _FINEST, np.unique(np.append(np.floor(slopes / _FINEST), 0.0))
    while len(cells) > MOST_EDGES:
        pitch, cells = 2.0 * pitch, np.unique(np.floor(0.5 * cells))
    kept = pitch * cells
    return polygon_above(kept, log_deltas(curve, kept))

"""True positive rates of a curve that is known by its delta: the least of tangents."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Grid = tuple[np.ndarray, np.ndarray]
"""Thresholds from 0 to the largest, and delta there."""

_WIDE, _NARROW, _CLOSER = 40, 12, 0.1  # cells of the grids around an optimum, on either side of 0 and then; of these
_NO_RATE = 4.0  # what is larger is no true positive rate
_NEXT = 1e-6  # of the largest threshold: next to 0
_FIRST = np.concatenate([[0.0, _NEXT], np.linspace(0.0, 1.0, _WIDE + 1)[1:]])
_ZOOM = np.linspace(0.0, 1.0, _NARROW + 1)
_THREE, _FIVE = np.arange(-1, 2), np.arange(-2.0, 3.0)
_NEWTON = 2  # steps
_TWELFTHS = [[0, 0, 12, 0, 0], [1, -8, 0, 8, -1], [-1, 16, -30, 16, -1], [-6, 12, 0, -12, 6], [12, -48, 72, -48, 12]]
_DERIVATIVES = np.array(_TWELFTHS).T / 12.0  # of the polynomial through values at these places, in the middle one


def first_grid(delta: Callable[[np.ndarray], np.ndarray], largest: float) -> Grid:
    """What both ``power_of`` and a search for a root begin with."""
    grid = largest * _FIRST
    return grid, delta(grid)


def power_of(
    delta: Callable[[np.ndarray], np.ndarray], fpr: np.ndarray, largest: float, known: Grid | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """(true positive rates at ``fpr``, thresholds l of their tangents): the least of delta(l) + e^l fpr over l.

    That is convex in e^l, and smooth but for a bend at 0: one grid for all, ``known`` where it was asked before, a
    narrower one for each, and a polynomial through five places around the least of a parabola.
    """

    def tangents(grid: np.ndarray, deltas: np.ndarray) -> np.ndarray:
        grown = np.exp(grid)
        values = np.where(grid < 0.0, 1.0 - grown + grown * deltas, deltas) + grown * fpr[:, None]
        return np.minimum(values, _NO_RATE)

    half, deltas = known or first_grid(delta, largest)
    grid = np.concatenate([-half[:0:-1], half])
    place = tangents(grid, np.concatenate([deltas[:0:-1], deltas])).argmin(axis=1)
    bend = place == _WIDE + 1  # its neighbours are next to 0: otherwise 0 is not inside of where to look
    left, right = grid[np.maximum(place - 1, 0)], grid[np.minimum(place + 1, len(grid) - 1)]
    width = (right - left) / _NARROW
    grid = left[:, None] + (right - left)[:, None] * _ZOOM
    values = tangents(grid, delta(np.abs(grid).ravel()).reshape(grid.shape))
    place = np.maximum(np.minimum(values.argmin(axis=1), _NARROW - 1), 1)
    before, at, after = values[np.arange(len(values)), place + _THREE[:, None]]
    bent = np.maximum(before - 2.0 * at + after, 1e-300)
    middle = left + (place + np.maximum(np.minimum(0.5 * (before - after) / bent, 0.8), -0.8)) * width
    grid = middle[:, None] + (_CLOSER * width)[:, None] * _FIVE
    shift, least = _least_of_five(tangents(grid, delta(np.abs(grid).ravel()).reshape(grid.shape)))
    best = middle + _CLOSER * shift * width
    return np.minimum(np.where(bend, deltas[0] + fpr, least), 1.0), np.where(bend, 0.0, best)


def _least_of_five(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(place, value) of the least of polynomials through ``values``, shape (n, 5), at -2 to 2, nearly parabolas."""
    at, slope, curve, third, fourth = (values @ _DERIVATIVES).T
    curve, x = np.maximum(curve, 1e-300), np.zeros(len(values))
    for _ in range(_NEWTON):
        bent = np.maximum(curve + x * (third + 0.5 * x * fourth), 0.5 * curve)
        x = x - (slope + x * (curve + x * (0.5 * third + x * fourth / 6.0))) / bent
        x = np.maximum(np.minimum(x, 2.0), -2.0)
    return x, at + x * (slope + x * (0.5 * curve + x * (third / 6.0 + x * fourth / 24.0)))

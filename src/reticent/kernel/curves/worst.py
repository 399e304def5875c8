"""The add/remove guarantee: the worse of a curve and its inverse at each threshold."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from reticent.kernel.curves._thresholds import halved
from reticent.kernel.curves.base import LogErrors, TradeOff, follow_segment

_TIE = 1e-11
"""log delta differences below this count as ties: they are rounding."""
_PER_DECADE = 24
"""Thresholds of the grid on which the lead is found."""
_SCALES = 4.0 ** np.arange(-30, 21)
"""Thresholds among which the range that matters is looked for."""
_MOVES, _UNDERFLOW = 1e-4, -737.0
"""Changes of log delta that matter, and log of the smallest delta that does (1e-320)."""


_HALVINGS = 60
"""Of a cell of the grid: to the last bit."""


class Symmetrised(TradeOff):
    """The lower convex envelope of a curve and its inverse: the guarantee for add and remove alike.

    At each threshold the curve with the larger delta is followed; where the lead changes, the
    threshold test jumps and the segment in between is the common tangent. Unlike the recipe of
    taking a maximum of a curve and its inverse, this is right whichever direction dominates.

    The lead is found on a grid of thresholds, 24 per decade, and each change is refined to the last
    bit; two changes inside one grid cell would be missed. ``log_delta`` does not depend on the grid.

    Attributes:
        curves: the curve and its inverse.
    """

    def __init__(self, curve: TradeOff) -> None:
        self.curves = curve, curve.reversed

    @cached_property
    def _leads(self) -> tuple[np.ndarray, np.ndarray]:
        """(thresholds at which the lead changes, increasing; which curve leads before, between and after them)."""
        borders, leading = _changes(self.curves)
        # Of thresholds l and -l each direction leads at one.
        return np.concatenate([-borders[::-1], [0.0], borders]), np.concatenate([1 - leading[::-1], leading])

    def errors(self, log_ratio: ArrayLike) -> LogErrors:
        borders, leading = self._leads
        lead = leading[np.searchsorted(borders, np.asarray(log_ratio, dtype=float), side="right")]
        both = (curve.errors(log_ratio) for curve in self.curves)
        return LogErrors(*(np.where(lead, second, first) for first, second in zip(*both, strict=True)))

    @cached_property
    def _gaps(self) -> list[tuple[LogErrors, LogErrors]]:
        """Of each change of the lead: the tests of the curve before and of the one after; between them is a tangent."""
        borders, leading = self._leads
        return [
            (self.curves[before].errors(border), self.curves[after].errors(border))
            for border, before, after in zip(borders, leading[:-1], leading[1:], strict=True)
        ]

    def _at(self, log_alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """By the curve that leads, and in the gaps by tangents."""
        log_beta, log_power = np.empty(log_alpha.shape), np.empty(log_alpha.shape)
        ends = [-end.fpr for gap in self._gaps for end in gap]
        place = np.searchsorted(ends, -log_alpha)  # leads and gaps by turns
        for k in np.unique(place):
            here = place == k
            if k % 2:
                found = follow_segment(log_alpha[here], *self._gaps[k // 2])
            else:
                found = self.curves[self._leads[1][k // 2]]._at(log_alpha[here])
            log_beta[here], log_power[here] = found
        return log_beta, log_power

    @property
    def proven_mu(self) -> float:
        """The larger of both: G_mu is convex, so it lies below their envelope where it lies below each."""
        return max(curve.proven_mu for curve in self.curves)

    def _log_delta_above(self, epsilon: np.ndarray) -> np.ndarray:
        return np.max([curve._log_delta_above(epsilon) for curve in self.curves], axis=0)

    @property
    def reversed(self) -> TradeOff:
        return self

    def __repr__(self) -> str:
        return f"Symmetrised({self.curves[0]!r})"


def symmetrised(curve: TradeOff) -> TradeOff:
    """The add/remove guarantee of an add curve: lower convex envelope of it and its inverse.

    Never the maximum of the two, which the literature's recipe selects for Laplace noise (KAISSIS2023:R6)
    and which overstates beta by up to 0.13.
    """
    return curve if curve.reversed is curve else Symmetrised(curve)


def _changes(curves: Sequence[TradeOff]) -> tuple[np.ndarray, np.ndarray]:
    """``Symmetrised._leads`` at thresholds above 0."""
    grid = _grid(curves)
    lead = _settled(np.array([curve._log_delta_above(grid) for curve in curves]))
    changes = np.flatnonzero(np.diff(lead))
    borders = [_crossing(curves[lead[i]], curves[lead[i + 1]], grid[i], grid[i + 1]) for i in changes]
    return np.array(borders), lead[np.append(0, changes + 1)]


def _grid(curves: Sequence[TradeOff]) -> np.ndarray:
    """Thresholds over the range in which a delta above 1e-320 changes by more than 1e-4 of itself."""
    steps = _SCALES
    logs = np.array([curve._log_delta_above(steps) for curve in curves])
    with np.errstate(invalid="ignore"):
        moving = (logs[:, :-1] - logs[:, 1:] > _MOVES) & (logs[:, :-1] > _UNDERFLOW)
    active = np.flatnonzero(np.any(moving, axis=0))
    if active.size == 0:
        return steps[:1]
    low, high = np.log10(steps[max(active[0] - 2, 0)]), np.log10(steps[active[-1] + 1])
    return np.logspace(low, high, int((high - low) * _PER_DECADE) + 2)


def _settled(logs: np.ndarray) -> np.ndarray:
    """Index of the largest row per column; ties take the index of the next decided column."""
    order = np.sort(logs, axis=0)
    with np.errstate(invalid="ignore"):
        decided = order[-1] - order[-2] > _TIE
    lead = np.argmax(logs, axis=0)
    known = np.flatnonzero(decided)
    if known.size == 0:
        return np.zeros(lead.shape, dtype=int)
    following = np.searchsorted(known, np.arange(lead.size), side="left")
    return lead[known[np.minimum(following, known.size - 1)]]


def _crossing(before: TradeOff, after: TradeOff, low: float, high: float) -> float:
    """Threshold where ``after`` takes the lead, to the last bit."""

    def leads(point: np.ndarray) -> np.ndarray:
        at = np.reshape(point, 1)
        return np.reshape(before._log_delta_above(at) >= after._log_delta_above(at), np.shape(point))

    return float(halved(leads, low, high, _HALVINGS)[1])

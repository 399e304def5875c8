"""Rare large losses apart from the many small ones, each composed on a lattice that fits it.

A step whose loss stays within (-B, B] is small, any other large. Stronger than T steps: T draws of the small loss
and, beside them, T draws of "small, or which large loss"; each step is one of the two. Weaker: the same with k draws
of the small loss fewer, unless more than k steps are large. The small losses are composed in two stages, a small
share of the steps first: what one stage found is one step of the next, so each grid is as fine as its losses need.
Every stage is the lattice of ``lattice`` with its error terms; dominance survives composition. Derivation:
docs/composition.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from reticent.accountants.lattice import lattice_above, lattice_below
from reticent.accountants.steps import Curves, masses
from reticent.curves import LogErrors, TradeOff
from reticent.curves._logs import log_sub
from reticent.curves.polygon import Polygon, Sides, polygon_through
from reticent.errors import NumericalError

_STAGE = 300  # of how many equal parts the second stage consists
_ROOM = 2.0  # standard deviations of the sum of all small losses that one of them may have
_FAILED = math.log(1e-10)  # log of the probability that more steps are large than are counted
_SIZES = np.geomspace(1e-12, 30.0, 1200)
_MOST_LARGE = 200  # large losses that are counted one by one

_Side = Callable[[Curves, float, int], Polygon]  # one side of a lattice: steps, aimed width, points


class Within(TradeOff):
    """A step, given that its loss lies in (-``size``, ``size``].

    Attributes:
        curve: the step.
        size: B.
        p_outside, q_outside: how probable other losses are under either law.
        shift: the loss of the news that this one is small.

    Raises:
        NumericalError: large losses are not rare: a half or more under either law.
    """

    def __init__(self, curve: TradeOff, size: float) -> None:
        self.curve, self.size = curve, size
        self._ends = ends = curve.errors(np.array([-size, size]))
        self.p_outside = math.exp(ends.tnr[0]) + math.exp(ends.fpr[1])
        self.q_outside = math.exp(ends.fnr[0]) + math.exp(ends.tpr[1])
        if not max(self.p_outside, self.q_outside) < 0.5:
            raise NumericalError("split lattice: large losses are not rare")
        self._p_log, self._q_log = math.log1p(-self.p_outside), math.log1p(-self.q_outside)
        self.shift = self._q_log - self._p_log

    def errors(self, log_ratio: ArrayLike) -> LogErrors:
        rates, ends = self.curve.errors(np.clip(np.asarray(log_ratio) + self.shift, -self.size, self.size)), self._ends
        return LogErrors(
            fpr=np.minimum(log_sub(rates.fpr, ends.fpr[1]) - self._p_log, 0.0),
            tnr=np.minimum(log_sub(rates.tnr, ends.tnr[0]) - self._p_log, 0.0),
            fnr=np.minimum(log_sub(rates.fnr, ends.fnr[0]) - self._q_log, 0.0),
            tpr=np.minimum(log_sub(rates.tpr, ends.tpr[1]) - self._q_log, 0.0),
        )


class Outside(TradeOff):
    """The same step where a small loss is only known to be small."""

    def __init__(self, small: Within) -> None:
        self.small = small

    def errors(self, log_ratio: ArrayLike) -> LogErrors:
        ratio, size, shift = np.asarray(log_ratio), self.small.size, self.small.shift
        below, above = (ratio >= -size) & (ratio < shift), (ratio >= shift) & (ratio < size)
        return self.small.curve.errors(np.where(below, -size, np.where(above, size, ratio)))


def compose_split(curve: TradeOff, count: int, width: float, points: int) -> Sides:
    """Polygons around ``count`` steps with the one-step ``curve``, one direction.

    Args:
        curve: H0 = absent, H1 = present.
        count: how often the step ran.
        width: aimed distance between the two, in beta.
        points: of each lattice.

    Raises:
        NumericalError: large losses are not rare, or a lattice cannot follow.
    """
    small = Within(curve, _boundary(curve, count))
    large, most = Outside(small), _most_large(small, count)
    above = _staged(lattice_above, small, count, width, points)
    below = _staged(lattice_below, small, count - most, width, points)
    return Sides(
        lattice_above([(above, 1), (large, count)], width, points),
        _weakened(lattice_below([(below, 1), (large, count)], width, points), _FAILED),
    )


def _staged(side: _Side, small: Within, count: int, width: float, points: int) -> Polygon:
    """``count`` small losses: some of them first, their sum so many times, and those that are left over."""
    first = count // _STAGE
    if first < 2:
        return side([(small, count)], width, points)
    stage = side([(small, first)], width / _STAGE, points)
    times, left = divmod(count, first)
    return side([(stage, times), *([(small, left)] if left else [])], width, points)


def _boundary(curve: TradeOff, count: int) -> float:
    """B, as large as ``_ROOM`` deviations of the sum of all losses within it."""
    rates, back = curve.errors(_SIZES), curve.errors(-_SIZES)
    mass = 0.5 * (masses(rates.fpr, rates.tnr) + masses(rates.tpr, rates.fnr))
    mass += 0.5 * (masses(back.tnr, back.fpr) + masses(back.fnr, back.tpr))
    deviation = np.sqrt(count * np.cumsum(mass * _SIZES[1:] ** 2))
    short = np.flatnonzero(_SIZES[1:] < _ROOM * deviation)
    if len(short) == 0 or short[-1] + 2 == len(_SIZES):
        raise NumericalError("split lattice: no boundary between small and large losses")
    return float(_SIZES[short[-1] + 2])


def _most_large(small: Within, count: int) -> int:
    """k with P(more than k of ``count`` steps are large) at most e^``_FAILED``, by Chernoff, under either law."""
    mean = max(count * max(small.p_outside, small.q_outside), 1e-300)
    for most in range(min(_MOST_LARGE, count)):
        more = most + 1
        if more > mean and more - mean - more * math.log(more / mean) <= _FAILED:
            return most
    raise NumericalError("split lattice: too many large losses")


def _weakened(curve: Polygon, log_failure: float) -> Polygon:
    """With probability e^``log_failure`` either error more."""
    rates = curve.vertices
    fpr, fnr = (np.minimum(np.logaddexp(rate, log_failure), 0.0) for rate in (rates.fpr, rates.fnr))
    return polygon_through(LogErrors.of(fpr, fnr))

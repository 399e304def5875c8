"""Rare large losses apart from the many small ones, each composed on a lattice that fits it.

A step whose loss stays within (-B, B] is small, any other large. Stronger than T steps: T draws of the small loss
and also T draws of "small, or which large loss"; each step is one of the two. Weaker: the same with k draws
of the small loss fewer, unless more than k steps are large. The small losses are composed in two stages, a small
share of the steps first: what one stage found is one step of the next, so each grid is as fine as its losses need.
Every stage is the lattice of ``lattice`` with its error terms; dominance survives composition. Derivation:
docs/theory/composition.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from reticent.kernel.accountants.lattice import FinerLattice, Lattice
from reticent.kernel.accountants.route import Answer, Route
from reticent.kernel.accountants.steps import Step, Steps
from reticent.kernel.curves import LogErrors, TradeOff
from reticent.kernel.curves._logs import log_sub
from reticent.kernel.curves.polygon import Polygon, polygon_through
from reticent.kernel.errors import NumericalError
from reticent.kernel.pairs import CurvePair, LossMasses

if TYPE_CHECKING:
    from reticent.kernel.accountants.enclose import Findings

_STAGE = 300  # of how many equal parts the second stage consists
_SIZES = np.geomspace(1e-12, 30.0, 1200)
_MOST_LARGE = 200  # large losses that are counted one by one

_Side = Callable[[Lattice, Steps], Polygon]  # one side of a lattice


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


@dataclass(frozen=True, slots=True)
class Split(Route):
    """Rare large losses and the many small ones, on lattices of their own.

    Attributes:
        width: distance between the two curves that is aimed at, in false negative rates.
        points: of each lattice.
        room: standard deviations of the sum of all small losses that one of them may have.
        failed: log of the probability that more steps are large than are counted.
    """

    width: float
    points: int
    room: float = 2.0
    failed: float = math.log(1e-10)

    name: ClassVar[str] = "split lattices"
    priority: ClassVar[int] = 40
    replaces: ClassVar[tuple[type[Route], ...]] = (FinerLattice,)

    @classmethod
    def planned(cls, found: Findings) -> Iterator[Route]:
        """Where one lattice of all losses would be costly: it leaves out a few steps."""
        accuracy = found.accuracy
        whole = found.steps[0].count * accuracy.finer(found.answers.get(Lattice), accuracy.first_points)
        if found.wide and whole >= accuracy.split_work:
            yield cls(accuracy.aimed, accuracy.split_points)

    def serves(self, steps: Steps) -> bool:
        return len(steps) == 1

    def answer(self, steps: Steps) -> Answer:
        """Polygons around equal steps, one direction.

        Raises:
            NumericalError: large losses are not rare, or a lattice cannot follow.
        """
        (step,) = steps
        small = Within(step.curve, _boundary(step.curve, step.count, self.room))
        lattice = Lattice(self.width, self.points)
        large, most = Step(CurvePair(Outside(small)), step.count), most_large(small, step.count, self.failed)
        above = _staged(Lattice.above, lattice, small, step.count)
        below = _staged(Lattice.below, lattice, small, step.count - most)
        weaker = lattice.below([Step(CurvePair(below), 1), large])
        return Answer((lattice.above([Step(CurvePair(above), 1), large]),), (_weakened(weaker, self.failed),))


def _staged(side: _Side, lattice: Lattice, small: Within, count: int) -> Polygon:
    """``count`` small losses in stages: the sum of a few, the sum of as many stages as fit, and the rest."""
    first, one = count // _STAGE, CurvePair(small)
    if first < 2:
        return side(lattice, [Step(one, count)])
    stage = side(replace(lattice, width=lattice.width / _STAGE), [Step(one, first)])
    times, left = divmod(count, first)
    return side(lattice, [Step(CurvePair(stage), times), *([Step(one, left)] if left else [])])


def _boundary(curve: TradeOff, count: int, room: float) -> float:
    """B, as large as ``room`` deviations of the sum of all losses within it."""
    ahead, back = LossMasses.of(curve, _SIZES), LossMasses.of(curve, -_SIZES[::-1])
    mass = 0.5 * (ahead.p + ahead.q)
    mass += 0.5 * (back.p + back.q)[::-1]
    deviation = np.sqrt(count * np.cumsum(mass * _SIZES[1:] ** 2))
    short = np.flatnonzero(_SIZES[1:] < room * deviation)
    if len(short) == 0 or short[-1] + 2 == len(_SIZES):
        raise NumericalError("split lattice: no boundary between small and large losses")
    return float(_SIZES[short[-1] + 2])


def most_large(small: Within, count: int, failed: float) -> int:
    """k with P(more than k of ``count`` steps are large) at most e^``failed``, by Chernoff, under either law.

    Raises:
        NumericalError: no k that is small enough is one.
    """
    mean = max(count * max(small.p_outside, small.q_outside), 1e-300)
    for most in range(min(_MOST_LARGE, count)):
        more = most + 1
        if more > mean and more - mean - more * math.log(more / mean) <= failed:
            return most
    raise NumericalError("split lattice: too many large losses")


def _weakened(curve: Polygon, log_failure: float) -> Polygon:
    """With probability e^``log_failure`` either error more."""
    rates = curve.vertices
    fpr, fnr = (np.minimum(np.logaddexp(rate, log_failure), 0.0) for rate in (rates.fpr, rates.fnr))
    return polygon_through(LogErrors.of(fpr, fnr))

"""Routes by a lattice: losses rounded to a grid. What they compute is in ``lattice_sums``, loaded when it is asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from reticent.kernel.accountants.grouped import fewer_below, stronger
from reticent.kernel.accountants.route import Answer, Route
from reticent.kernel.accountants.steps import Steps, enclosed, weaker

if TYPE_CHECKING:
    from reticent.kernel.accountants.enclose import Findings
    from reticent.kernel.curves.polygon import Polygon

MOST_KINDS = 256
"""Kinds of steps that a lattice takes one by one; more are grouped, and finer grids are then of little use."""


@dataclass(frozen=True, slots=True)
class Lattice(Route):
    """Losses rounded to a grid, composed by FFT. A grid contains two atoms of the losses if it can, one always.

    Attributes:
        width: distance between the two curves that is aimed at, in false negative rates; it is not guaranteed.
        points: of the largest grid.
        tail: probability that may be left outside of the grid, on the safe side: rates far below it are lost, and
            what is left is resolved more finely.
        depth: share of the exponents of the window by which masses are tilted once more, so that tails of many steps
            keep their digits; 0: not.
    """

    width: float = 5e-7
    points: int = 2**20
    tail: float = 1e-15
    depth: float = 0.0

    name: ClassVar[str] = "lattice"
    priority: ClassVar[int] = 30

    @property
    def title(self) -> str:
        return f"lattice of {self.points} points"

    @classmethod
    def planned(cls, found: Findings) -> Iterator[Route]:
        """Where the advantage is wide or a tail is short; with all digits of tails where no finer one would help."""
        accuracy = found.accuracy
        if enclosed(found.steps):
            aimed = min(accuracy.aimed, accuracy.aimed_share * found.advantage)
            yield cls(aimed, accuracy.enclosed_points, accuracy.missed_deep, accuracy.depth)
        elif found.short or found.wide:
            yield cls(accuracy.aimed, accuracy.first_points, accuracy.missed)

    def answer(self, steps: Steps) -> Answer:
        """Polygons around the composition of ``steps``, one direction.

        Raises:
            NumericalError: rounding would swamp the result (more than 1e-3), or the grid cannot hold it.
        """
        from reticent.kernel.accountants.lattice_sums import optimistic, pessimistic, planned

        over = stronger(steps, MOST_KINDS)
        plan = planned(over, self)
        if over is steps and not enclosed(steps):
            return Answer((pessimistic(steps, plan),), (optimistic(steps, plan),))
        return Answer((pessimistic(over, plan),), (self.below(weaker(fewer_below(steps, MOST_KINDS))),))

    def above(self, steps: Steps) -> Polygon:
        """The pessimistic curve alone; see ``answer``."""
        from reticent.kernel.accountants.lattice_sums import pessimistic, planned

        return pessimistic(steps, planned(steps, self))

    def below(self, steps: Steps) -> Polygon:
        """The optimistic curve alone; see ``answer``."""
        from reticent.kernel.accountants.lattice_sums import optimistic, planned

        return optimistic(steps, planned(steps, self))


class FinerLattice(Lattice):
    """Lattices each finer than the one before, until the advantage is known."""

    __slots__ = ()

    name: ClassVar[str] = "finer lattice"
    priority: ClassVar[int] = 50

    @classmethod
    def planned(cls, found: Findings) -> Iterator[Route]:
        """As fine as the lattices before show that it takes."""
        accuracy = found.accuracy
        if not found.wide or len(found.steps) > MOST_KINDS:
            return
        points = accuracy.finer(found.answers.get(Lattice), accuracy.first_points)
        yield cls(accuracy.aimed, points, accuracy.missed_more)
        if found.wide and points <= accuracy.cheap_points:
            yield cls(accuracy.aimed, accuracy.finer(found.answers.get(cls), points), accuracy.missed_more)

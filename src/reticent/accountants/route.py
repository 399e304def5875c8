"""What a route is: one way from kinds of steps to curves on both sides of their composition."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

from reticent.accountants.steps import Steps
from reticent.curves.polygon import Polygon, Sides
from reticent.errors import NumericalError
from reticent.registry import Registry


class Answer(NamedTuple):
    """Curves around the composition, one direction: H0 = absent. Each holds by itself.

    Attributes:
        above: pessimistic ones, of attackers at least as strong.
        below: optimistic ones, of attackers at most as strong.
        left_out: which tails are not followed, and why; for people.
    """

    above: tuple[Polygon, ...]
    below: tuple[Polygon, ...]
    left_out: str = ""

    @property
    def sides(self) -> Sides:
        """The one curve on each side, of a route that has no more."""
        return Sides(*self.above, *self.below)

    @property
    def width(self) -> float:
        """Between the bounds on the advantage."""
        return float(min(c.delta(0.0) for c in self.above) - max(c.delta(0.0) for c in self.below))


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A route that could not answer.

    Attributes:
        reason: for people.
    """

    reason: str


class Route(ABC):
    """One way. A subclass is a frozen dataclass whose fields are its accuracy; its docstring names their units.

    Attributes:
        name: for people.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def name(self) -> str:
        """See the class."""

    def serves(self, steps: Steps) -> bool:
        """Whether it can be asked about such steps at all."""
        return True

    @abstractmethod
    def answer(self, steps: Steps) -> Answer:
        """Curves around the composition of ``steps``.

        Raises:
            NumericalError: it cannot say.
        """

    def enclose(self, steps: Steps) -> Answer | Unanswered:
        """``answer``, or why there is none."""
        try:
            return self.answer(steps)
        except NumericalError as error:
            return Unanswered(str(error))


ROUTES: Registry[Route] = Registry("route", "reticent.routes", Route)
"""Of other packages; each is made without arguments. ``enclose`` asks them where its own leave the advantage wide."""

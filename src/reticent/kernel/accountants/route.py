"""What a route is: one way from kinds of steps to curves on both sides of their composition."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

import numpy as np

from reticent.kernel.accountants.steps import Steps
from reticent.kernel.curves import LogErrors
from reticent.kernel.curves.polygon import Polygon, Sides
from reticent.kernel.pairs.base import Ends
from reticent.kernel.registry import Registry

if TYPE_CHECKING:
    from reticent.kernel.accountants.enclose import Findings


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


class Single(Protocol):
    """A composition that answers for one threshold, without its whole curve; one direction: H0 = absent."""

    @property
    def symmetric(self) -> bool:
        """Whether both directions have the same curve."""

    def delta(self, threshold: float) -> Ends | None:
        """Around delta at ``threshold`` >= 0, or around the reversed delta at minus one below 0; None: not known."""

    def points(self, thresholds: np.ndarray) -> LogErrors | None:
        """Rates of tests at most as strong as those at ``thresholds``, all of one sign; None: not known."""


class Route(ABC):
    """One way. A subclass is a frozen dataclass whose fields are its accuracy; its docstring names their units.

    Attributes:
        name: in the list of routes.
        priority: in which order routes are asked: the smallest first.
        always: whether it is asked whatever is known. How close is close enough follows from the advantage that such
            routes find: see ``Accuracy.of``.
        close: whether its curves are close as far out as they reach.
        replaces: routes that are not asked where it has answered.
    """

    __slots__ = ()

    name: ClassVar[str]
    priority: ClassVar[int] = 100
    always: ClassVar[bool] = False
    close: ClassVar[bool] = True
    replaces: ClassVar[tuple[type[Route], ...]] = ()

    @property
    def title(self) -> str:
        """For people: its name, and what matters of its accuracy."""
        return self.name

    @classmethod
    def planned(cls, found: Findings) -> Iterator[Route]:
        """With which accuracy it is asked, once or more often, after what was found: where the advantage is wide."""
        if found.wide:
            yield cls()

    @classmethod
    def single(cls, steps: Steps) -> Single | None:
        """What answers for one threshold of such steps in milliseconds; None where this route has nothing like it."""
        return None

    @classmethod
    def advantage(cls, steps: Steps) -> Ends | None:
        """(lower, upper) around delta(0) of such steps, in less than a millisecond; None where this route has no such.

        Raises:
            NumericalError: it has, and it failed for these steps.
        """
        return None

    def serves(self, steps: Steps) -> bool:
        """Whether it can be asked about such steps at all."""
        return True

    @abstractmethod
    def answer(self, steps: Steps) -> Answer:
        """Curves around the composition of ``steps``.

        Raises:
            NumericalError: it cannot say.
        """


ROUTES: Registry[Route] = Registry("route", "reticent.routes", Route, "reticent.accountants")
"""By name. They are asked in the order of their priority."""

"""The portfolio: kinds of steps, composed and enclosed by the cheapest routes that are enough. It names none."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from reticent.kernel.accountants.grouped import MANY
from reticent.kernel.accountants.route import ROUTES, Answer, Route
from reticent.kernel.accountants.steps import Steps, enclosed
from reticent.kernel.curves.enclosure import Attempt
from reticent.kernel.curves.polygon import Polygon, hull, strictest
from reticent.kernel.errors import NumericalError
from reticent.kernel.messages import Figure, Message
from reticent.kernel.stopping import checkpoint


@dataclass(frozen=True, slots=True)
class Accuracy:
    """When enough is known, and what lattices may cost.

    Attributes:
        disclosed: advantage from which on bounds have said all that matters.
        width: of the advantage: beyond it the next route is tried as well.
        relative: the same, as a share of the advantage: what is small is known to some digits too.
        wide: of the advantage: worth a note.
        deepest: log of delta that a curve should reach.
        aimed: distance of the curves of a lattice, in false negative rates.
        first_points, cheap_points, most_points: of the first lattice, of one that may be followed by another, of any.
        split_points: of each of the split lattices.
        enclosed_points, aimed_share: of the lattice of steps that are known from both sides only, and its ``aimed`` as
            a share of the advantage.
        split_work: steps times points of the whole lattice from which on split ones are tried.
        missed, missed_more: probability that the window of the first lattice, and of others, may miss.
        missed_deep, depth: the same of a lattice that keeps the digits of its tails, and its ``depth``.
    """

    disclosed: float = 1.0 - 1e-10
    width: float = 1e-6
    relative: float = 1e-3
    wide: float = 1e-3
    deepest: float = -27.0
    aimed: float = 5e-8
    first_points: int = 2**16
    cheap_points: int = 2**18
    most_points: int = 2**20
    split_points: int = 2**17
    enclosed_points: int = 2**18
    aimed_share: float = 1.5e-7
    split_work: int = 10**4 * 2**20
    missed: float = 1e-15
    missed_more: float = 1e-9
    missed_deep: float = 1e-24
    depth: float = 0.6

    def of(self, advantage: float) -> Accuracy:
        """The same where the advantage is at most ``advantage``."""
        width = min(self.width, self.relative * advantage)
        return self if width == self.width else replace(self, width=width, aimed=self.aimed * width / self.width)

    def finer(self, coarse: Answer | None, points: int) -> int:
        """Points that narrow a lattice of ``points`` to ``width``: that falls with the square of the spacing."""
        if coarse is None:
            return self.most_points
        if self.width == 0.0:  # a share of an advantage that is 0
            return points
        wider = max(coarse.width / self.width, 1.0)  # both sides may meet, and rounding may even cross them
        doublings = math.ceil(math.log(wider, 4.0))
        return min(points * 2 ** max(doublings, 1), self.most_points)


CURVE = Accuracy()
"""Of every curve that a number is read off."""


@dataclass
class Findings:
    """What the routes found so far, one direction: H0 = absent.

    Attributes:
        steps: what is composed.
        accuracy: when enough is known.
        above, below: curves on the safe side and on the other; each holds by itself.
        short: whether no close curve reaches as far out as curves shall.
        answers: the last of each route.
        trace: what was asked, in order.
    """

    steps: Steps
    accuracy: Accuracy
    above: list[Polygon]
    below: list[Polygon] = field(default_factory=list)
    short: bool = True
    answers: dict[type[Route], Answer] = field(default_factory=dict)
    trace: list[Attempt] = field(default_factory=list)

    @property
    def pessimistic(self) -> Polygon:
        """The curve that obeys all that was found, on the safe side."""
        return strictest(self.above)

    @property
    def optimistic(self) -> Polygon:
        """What the best of all tests that were found attains."""
        return hull(self.below)

    @property
    def width(self) -> float:
        """Between the bounds on the advantage."""
        return Answer(tuple(self.above), tuple(self.below)).width

    @property
    def advantage(self) -> float:
        """What it is at most."""
        return min(float(curve.delta(0.0)) for curve in self.above)

    @property
    def wide(self) -> bool:
        """Whether the advantage is to be known better, and can be: steps may be known from both sides only."""
        return self.width > self.accuracy.width and not enclosed(self.steps)

    def notes(self, accuracy: Accuracy) -> tuple[Message, ...]:
        """For people, where the advantage stays unresolved: what the routes had to say."""
        if self.width < accuracy.wide:
            return ()
        why = "; ".join(dict.fromkeys(attempt.failure for attempt in self.trace if attempt.failure))
        width = Figure(f"{self.width:.1g}")
        return (Message("note.wide", width=width, reasons=why or "no computation is finer"),)

    def ask(self, route: Route) -> None:
        """Add what ``route`` finds; nothing where it does not serve, or cannot: then ``trace`` has the reason."""
        checkpoint()
        if not route.serves(self.steps):
            return
        try:
            answer = route.answer(self.steps)
        except NumericalError as error:
            self.trace.append(Attempt(route.title, failure=str(error)))
            return
        self.above += answer.above
        self.below += answer.below
        self.answers[type(route)] = answer
        self.trace.append(Attempt(route.title, answer.width, answer.left_out))
        # Of many kinds of steps a short tail is left as it is: a lattice takes each kind by itself.
        if route.close and (len(self.steps) > MANY or answer.above[0].reaches(self.accuracy.deepest)):
            self.short = False


def enclose(steps: Steps, *always_above: Polygon, accuracy: Accuracy = CURVE) -> Findings:
    """Ask the routes in the order of their priority: those that are always asked, then others until enough is known.

    Args:
        steps: what is composed.
        always_above: more curves on the safe side.
        accuracy: when enough is known.
    """
    found = Findings(steps, accuracy, list(always_above))
    kinds = sorted(ROUTES.values(), key=lambda kind: kind.priority)
    for kind in (kind for kind in kinds if kind.always):
        found.ask(kind())
    if max(curve.delta(0.0) for curve in found.below) >= accuracy.disclosed:
        return found
    found.accuracy = accuracy.of(found.advantage)
    for kind in (kind for kind in kinds if not kind.always):
        if not any(kind in one.replaces for one in found.answers):
            for route in kind.planned(found):
                found.ask(route)
    return found

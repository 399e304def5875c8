"""The portfolio: kinds of steps, composed and enclosed by the cheapest routes that are enough."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from reticent.accountants.bounds import Bounds
from reticent.accountants.grouped import MANY
from reticent.accountants.lattice import MOST_KINDS, Lattice
from reticent.accountants.route import ROUTES, Answer, Route, Unanswered
from reticent.accountants.split import Split
from reticent.accountants.steps import Steps, enclosed
from reticent.accountants.transform import Transform
from reticent.curves.enclosure import Attempt
from reticent.curves.polygon import Polygon, hull, strictest
from reticent.stopping import checkpoint

_UNRESOLVED = "The numerical error of the worst case is large here: its advantage is known within {:.1g} only ({})."


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
        missed_deep, depth: the same of a lattice that keeps the digits of its tails, and its ``Lattice.depth``.
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
        above, below: curves on the safe side and on the other; each holds by itself.
        trace: what was asked, in order.
    """

    steps: Steps
    above: list[Polygon]
    below: list[Polygon] = field(default_factory=list)
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

    def notes(self, accuracy: Accuracy) -> tuple[str, ...]:
        """For people, where the advantage stays unresolved: what the routes had to say."""
        if self.width < accuracy.wide:
            return ()
        why = "; ".join(dict.fromkeys(attempt.failure for attempt in self.trace if attempt.failure))
        return (_UNRESOLVED.format(self.width, why or "no computation is finer"),)

    def ask(self, route: Route) -> Answer | None:
        """Add what ``route`` finds; None where it does not serve, or cannot: then ``trace`` has the reason."""
        checkpoint()
        if not route.serves(self.steps):
            return None
        answer = route.enclose(self.steps)
        if isinstance(answer, Unanswered):
            self.trace.append(Attempt(route.name, failure=answer.reason))
            return None
        self.above += answer.above
        self.below += answer.below
        self.trace.append(Attempt(route.name, answer.width, answer.left_out))
        return answer


def enclose(steps: Steps, *always_above: Polygon, accuracy: Accuracy = CURVE) -> Findings:
    """Cheap bounds; characteristic functions; lattices while the advantage is wide or a tail is short; other routes.

    Of many kinds of steps a short tail is left as it is: a lattice takes each kind by itself.

    Args:
        steps: what is composed.
        always_above: more curves on the safe side.
        accuracy: when enough is known.
    """
    found = Findings(steps, list(always_above))
    found.ask(Bounds())
    exact = found.ask(Transform())
    if max(curve.delta(0.0) for curve in found.below) >= accuracy.disclosed:
        return found
    advantage = min(float(curve.delta(0.0)) for curve in found.above)
    accuracy = accuracy.of(advantage)
    if enclosed(steps):  # a finer lattice would not narrow what the steps are known by
        aimed = min(accuracy.aimed, accuracy.aimed_share * advantage)
        found.ask(Lattice(aimed, accuracy.enclosed_points, accuracy.missed_deep, accuracy.depth))
        return found
    short = exact is None or not (len(steps) > MANY or exact.above[0].reaches(accuracy.deepest))
    if short or found.width > accuracy.width:
        _latticed(found, accuracy)
    for kind in ROUTES.values() if found.width > accuracy.width else ():
        found.ask(kind())
    return found


def _latticed(found: Findings, accuracy: Accuracy) -> None:
    """Lattices, each finer than the one before, until the advantage is known."""
    coarse = found.ask(Lattice(accuracy.aimed, accuracy.first_points, accuracy.missed))
    points = accuracy.finer(coarse, accuracy.first_points)
    if found.width <= accuracy.width or len(found.steps) > MOST_KINDS:
        return
    if found.ask(Split(accuracy.aimed, accuracy.split_points, accuracy.split_work, points)) is not None:
        return
    finer = found.ask(Lattice(accuracy.aimed, points, accuracy.missed_more))
    if found.width > accuracy.width and points <= accuracy.cheap_points:
        found.ask(Lattice(accuracy.aimed, accuracy.finer(finer, points), accuracy.missed_more))

"""From noisy steps to the enclosed curve of their composition, by the cheapest routes that are close enough."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from reticent.accountants.bounds import CheapBounds, loudest_step, mask_revealed
from reticent.accountants.lattice import compose_lattice
from reticent.accountants.split import compose_split
from reticent.accountants.steps import Step
from reticent.accountants.transform import transform_of
from reticent.curves.enclosure import Route
from reticent.curves.polygon import Polygon, Sides, hull, strictest
from reticent.errors import NumericalError

DISCLOSED = 1.0 - 1e-10  # advantage at which the cheap bounds have said all that matters
_DEEP = -27.0  # log of delta, 2e-12, that a curve should reach
_WIDTH = 1e-6  # of the advantage: beyond it the next route is tried as well
_WIDE = 1e-3  # of the advantage: worth a note
_UNRESOLVED = "The numerical error of the worst case is large here: its advantage is known within {:.1g} only ({})."
_FIRST_POINTS, _CHEAP_POINTS, _MOST_POINTS = 2**16, 2**18, 2**20  # of lattices
_SPLIT_POINTS = 2**17  # of each of the split ones
_AIMED = 5e-8  # width of the advantage on a lattice that is fine enough
_MANY = 10**4 * 2**20  # steps times points from which on split lattices are tried: they leave out a few steps
_MISSED, _MISSED_MORE = 1e-15, 1e-9  # probability that a lattice's window may miss: more resolves the rest finer


@dataclass
class Findings:
    """What the routes found so far, one direction: H0 = absent.

    Attributes:
        above, below: curves on the safe side and on the other; each holds by itself.
        routes: what was asked, in order.
    """

    above: list[Polygon]
    below: list[Polygon]
    routes: list[Route] = field(default_factory=list)

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
        return float(min(c.delta(0.0) for c in self.above) - max(c.delta(0.0) for c in self.below))

    @property
    def notes(self) -> tuple[str, ...]:
        """For people, where the advantage stays unresolved: what the routes had to say."""
        if self.width < _WIDE:
            return ()
        why = "; ".join(dict.fromkeys(route.failure for route in self.routes if route.failure))
        return (_UNRESOLVED.format(self.width, why or "no computation is finer"),)

    def ask(self, name: str, route: Callable[[], Sides]) -> Sides | None:
        """Add what ``route`` finds; None, and the reason in ``routes``, where it cannot.

        Args:
            name: for people.
            route: asked for both sides.
        """
        try:
            sides = route()
        except NumericalError as error:
            self.routes.append(Route(name, failure=str(error)))
            return None
        self.above.append(sides.above)
        self.below.append(sides.below)
        self.routes.append(Route(name, sides.width))
        return sides


def enclose(noisy: Sequence[Step], *always_above: Polygon) -> Findings:
    """Cheap bounds; characteristic functions; and lattices while the advantage is wide or a tail is short.

    ``always_above`` are more curves on the safe side.

    Args:
        noisy: kinds of steps.
        always_above: more curves on the safe side.
    """
    steps = [(step.curve(), step.count) for step in noisy]
    cheap = CheapBounds(steps, [step.pair.largest_losses for step in noisy])
    found = Findings([*cheap.above(), *mask_revealed(noisy), *always_above], [cheap.below(), loudest_step(steps)])
    found.routes.append(Route("bounds", found.width))

    def lattice(points: int, missed: float) -> Sides | None:
        apart = max(noisy, key=lambda step: step.count).atoms_apart
        return found.ask(f"lattice of {points} points", lambda: compose_lattice(steps, _AIMED, points, apart, missed))

    def split() -> bool:
        return found.ask("split lattices", lambda: compose_split(*steps[0], _AIMED, _SPLIT_POINTS)) is not None

    transform = transform_of(tuple(noisy))
    exact = None if transform is None else found.ask("transform", transform.polygons)
    if exact is not None and transform is not None and transform.refused:
        found.routes[-1] = replace(found.routes[-1], failure="; ".join(transform.refused))
    if max(curve.delta(0.0) for curve in found.below) >= DISCLOSED:
        return found
    if exact is None or found.width > _WIDTH or not exact.above.reaches(_DEEP):
        coarse = lattice(_FIRST_POINTS, _MISSED)
        points = _finer(coarse, _FIRST_POINTS)
        if found.width > _WIDTH and not (len(steps) == 1 and steps[0][1] * points >= _MANY and split()):
            finer = lattice(points, _MISSED_MORE)
            if found.width > _WIDTH and points <= _CHEAP_POINTS:
                lattice(_finer(finer, points), _MISSED_MORE)
    return found


def _finer(coarse: Sides | None, points: int) -> int:
    """Points that narrow a lattice of ``points`` to ``_WIDTH``: the width falls with the square of the spacing."""
    if coarse is None:
        return _MOST_POINTS
    doublings = math.ceil(math.log(coarse.width / _WIDTH, 4.0))
    return min(points * 2 ** max(doublings, 1), _MOST_POINTS)

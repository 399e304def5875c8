"""Polygons and point values from contours: which line to integrate on for which threshold."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from reticent.accountants.contour import Contour, Enclosed, build_contour
from reticent.accountants.contour_plan import Effort, Plan, Planned
from reticent.accountants.cut_moments import SampledStep
from reticent.accountants.readings import Block, read
from reticent.accountants.route import Answer, Route
from reticent.accountants.steps import Step, Steps
from reticent.curves import LogErrors
from reticent.curves.polygon import Sides, mirrored, polygon_above, polygon_through
from reticent.errors import NumericalError

_STEP = 1e-7  # standard deviations of the loss between the two deltas whose difference gives an error rate
_MAX_SPANS = 24
_HOPELESS = 1e-3
_APART = 1.0  # spread from which on 1 - delta is followed as well as delta


_CURVE, _POINT = Effort(4_000_000, 30.0, 1e-9, 2e-15), Effort(30_000_000, 44.0, 1e-11, 3e-16)
_Key = tuple[float, float, float, Effort]  # the same
_EASED = 0.6  # of what the last contour had to resolve: where the next one starts
_SHARED = 0.01  # standard deviations to either side of a single value whose contour serves others as well
_OUTWARDS = 1.4  # factor from one contour to the next, for a single value that is not tight yet
_ATTEMPTS = 4  # of these
_TIGHT_OF_MANY = 1e-6  # ``Transform.tight`` for these
_INNER = 0.9  # of the outermost contour: further in, another contour would not be tighter
_FIRST_REACH = 40.0  # of the nodes of a contour, where they are not too many: few are cheap
_SETTLED = 0.1  # share of the errors that more nodes would take away
_REFINED, _REFINEMENTS = 3.0, 6  # factor of the reach of the nodes, and how often
_STUCK, _LITTLE = 300.0, 0.9  # reach from which on more nodes must take away a tenth of the errors
_SPAN, _PER_SPAN = 1.5, 500  # length of a span of thresholds, in standard deviations of the loss; how many it has


@dataclass(frozen=True, slots=True)
class Transform(Route):
    """Contour integrals of the composed transform.

    Attributes:
        curve: effort for each of several contours.
        point: effort for the one or few contours of a single value.
        tight: relative width of a single value that is enough.
        deepest: log of delta at which curves end.
        left_out: log of the probability of rare large losses that Chernoff exponents are spared.
        planned: digits that moments and saddle points are planned for.
    """

    curve: Effort = _CURVE
    point: Effort = _POINT
    tight: float = 1e-8
    deepest: float = -41.0
    left_out: float = -41.0
    planned: float = 46.0

    @property
    def name(self) -> str:
        return "transform"

    def serves(self, steps: Steps) -> bool:
        return transform_of(steps) is not None

    def answer(self, steps: Steps) -> Answer:
        """Polygons around sampled Gaussian steps, one direction; far tails that no contour reaches are left out.

        Raises:
            NumericalError: the nodes cannot follow the oscillation, or a step is no sampled Gaussian.
        """
        if (spectral := transform_of(steps, self)) is None:
            raise NumericalError("characteristic function: a step is not a sampled Gaussian")
        above, below = spectral.polygons()
        return Answer((above,), (below,), "; ".join(spectral.refused))


TRANSFORM = Transform()
"""Where nobody asks for another accuracy."""


@dataclass(frozen=True)
class SpectralComposition:
    """Sampled Gaussian steps and one plain Gaussian release, composed; H0 = absent.

    Attributes:
        steps: the sampled steps.
        plain: GDP parameter of everything that was not sampled, 0 if nothing.
        accuracy: what is aimed at, and may be spent.
        refused: why tails of ``polygons`` are left out, once it was called.

    Raises:
        NumericalError: from any method, where the certificate cannot be had.
    """

    steps: Sequence[SampledStep]
    plain: float = 0.0
    accuracy: Transform = TRANSFORM
    _contours: dict[_Key, Contour] = field(default_factory=dict, compare=False, repr=False)
    _reaches: dict[Effort, float] = field(default_factory=dict, compare=False, repr=False)  # of the last contour
    _serving: list[tuple[float, float, Contour]] = field(default_factory=list, compare=False, repr=False)
    refused: list[str] = field(default_factory=list, compare=False, repr=False)

    @cached_property
    def plan(self) -> Plan:
        """Where contours go."""
        return Plan(self.steps, self.plain, self.accuracy.deepest, self.accuracy.left_out)

    @property
    def symmetric(self) -> bool:
        """Whether the composed curve is its own inverse."""
        return self.plan.symmetric

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Enclosure of delta(epsilon) of this direction, epsilon >= 0; relative, not only absolute."""
        return self._tightest(float(epsilon), Contour.delta)

    def reversed_delta(self, epsilon: float) -> tuple[float, float]:
        """The same for H0 and H1 exchanged, epsilon >= 0; of a symmetric composition it is ``delta``."""
        return self._tightest(-float(epsilon), Contour.reversed_delta)

    def delta_by_polygons(self, threshold: float) -> tuple[float, float] | None:
        """``delta`` at ``threshold`` >= 0, ``reversed_delta`` at minus it, by the contour that ``polygons`` had there.

        It does not depend on what was asked before. Beyond the contours delta is at most what it is at their end; None
        before ``polygons`` was called.
        """
        threshold = float(threshold)  # phases are made from its bytes
        contour, inner = self._serves(threshold), threshold
        if contour is None:
            ends = [(edge, one) for low, high, one in self._serving for edge in (low, high)]
            inside = [end for end in ends if 0.0 <= end[0] / threshold < 1.0]
            if not inside:
                return None
            inner, contour = max(inside, key=lambda end: abs(end[0]))
        with np.errstate(all="ignore"):
            found = (contour.delta if threshold >= 0.0 else contour.reversed_delta)(np.array([inner]))
        return float(found.lower[0]) if inner == threshold else 0.0, float(found.upper[0])

    def points_by_polygons(self, thresholds: np.ndarray) -> LogErrors | None:
        """Rates of tests at most as strong as those at ``thresholds``, all of one sign, by the same contour."""
        contour = self._serves(float(thresholds[0]))
        if contour is None:
            return None
        with np.errstate(all="ignore"):
            return read(contour, thresholds, self.plan.spread > _APART).points

    def _serves(self, threshold: float) -> Contour | None:
        return next((contour for low, high, contour in self._serving if low <= threshold <= high), None)

    def _tightest(self, threshold: float, value: Callable[[Contour, np.ndarray], Enclosed]) -> tuple[float, float]:
        """Intersection of enclosures from contours ever further out, until they are tight or end.

        A contour serves its neighbourhood.
        """
        lower, upper = 0.0, 1.0
        c, low, high = self._neighbourhood(threshold)
        limit = float(self.plan.exponents[-2])
        tight = _TIGHT_OF_MANY if self.plan.many else self.accuracy.tight
        with np.errstate(all="ignore"):
            for attempt in range(_ATTEMPTS):
                try:
                    bounds = value(self._contour(c, low, high, self.accuracy.point), np.array([threshold]))
                except NumericalError:
                    if attempt == 0:
                        raise
                    continue
                lower, upper = max(lower, float(bounds.lower[0])), min(upper, float(bounds.upper[0]))
                if upper - lower <= tight * lower or c < _INNER * self.plan.rightmost:
                    break
                c = min(_OUTWARDS * c, limit)
        return lower, upper

    def _neighbourhood(self, threshold: float) -> tuple[float, float, float]:
        """(c, lowest, highest threshold) of the first contour that was built around ``threshold``, or of a new one."""
        for c, low, high, effort in self._contours:
            if effort == self.accuracy.point and low <= threshold <= high:
                return c, low, high
        room = _SHARED * self.plan.spread
        return self.plan.saddle(threshold), threshold - room, threshold + room

    def polygons(self) -> Sides:
        """Polygons around this direction; far tails that no contour reaches are left out."""
        with np.errstate(all="ignore"):
            blocks = self._computed()
        *bounds, points = zip(*blocks, strict=True)
        thresholds, log_delta, log_rest = (np.concatenate(each) for each in bounds)
        points = LogErrors.joined(*points).at(slice(None, None, -1))
        if self.symmetric:
            thresholds = mirrored(-thresholds, thresholds)
            log_delta, log_rest = mirrored(log_delta, log_delta), mirrored(log_rest, log_rest)
            points = LogErrors.joined(points, points.exchanged.at(slice(-2, None, -1)))
        return Sides(polygon_above(thresholds, log_delta, log_rest), polygon_through(points))

    def _computed(self) -> list[Block]:
        """The blocks that can be had, among them those next to threshold 0.

        Outwards from 0; where a contour cannot be had, the last one serves the rest of its side.
        """
        planned = self.plan.blocks()
        self._serving.clear()
        before = self._outwards([block for block in reversed(planned) if block[2] <= 0.0])
        return [*reversed(before), *self._outwards([block for block in planned if block[1] >= 0.0])]

    def _outwards(self, planned: list[Planned]) -> list[Block]:
        found: list[Block] = []
        last, failed = 0.5, False
        for c, low, high in planned:
            if not failed:
                try:
                    found.append(self._block(c, low, high))
                    last = c
                    continue
                except NumericalError as error:
                    self.refused.append(f"thresholds {low:.3g} to {high:.3g}: {error}")
                    failed = True
            try:
                found.append(self._block(last, low, high))
            except NumericalError:
                if not found:
                    raise
                break
        return found

    def _contour(self, c: float, low: float, high: float, effort: Effort | None = None) -> Contour:
        key = (c, low, high, effort or self.accuracy.curve)
        if key not in self._contours:
            self._contours[key] = self._built(*key)
        return self._contours[key]

    def _built(self, c: float, low: float, high: float, effort: Effort) -> Contour:
        """Nodes are refined until the quadrature error is at rounding level; the next contour starts there."""
        need = self.plan.reach(c, self.accuracy.planned)
        reach = max(need, _EASED * self._reaches.get(effort, 0.0), _FIRST_REACH)
        step = _STEP * min(self.plan.spread, 1.0)

        def build(reach: float) -> Contour:
            laws = self.plan.laws(abs(c) + 1.0, reach, effort)
            return build_contour(laws, self.plan.moments, c, low, high, effort.digits, step)

        try:
            best = build(reach)
        except NumericalError:
            if reach == need:
                raise
            best, reach = build(need), need
        goal = effort.goal + effort.rounding * sum(step.count for step in self.steps)
        factor = _REFINED
        for _ in range(_REFINEMENTS):
            if best.errors.sum() < goal or best.unresolved < _SETTLED * best.errors.sum():
                break
            try:
                finer = build(factor * reach)
            except NumericalError:  # too many nodes: as many as may be, if fewer were not asked for already
                if factor < _REFINED:
                    break
                factor = math.sqrt(_REFINED)
                continue
            reach *= factor
            stuck, best = reach > _STUCK and finer.errors.sum() > _LITTLE * best.errors.sum(), finer
            if stuck:
                break
        self._reaches[effort] = reach
        if not best.errors.sum() <= _HOPELESS:
            raise NumericalError("characteristic function: the nodes cannot follow the oscillation")
        return best

    def _block(self, c: float, low: float, high: float) -> Block:
        alone = self.plan.many and self.plan.rightmost == 0.5
        contour = self._contour(c, *self.plan.ends) if alone else self._contour(c, low, high)
        # Each block owns its end nearer to 0; the block right of 0 owns 0.
        spans = min(max(1, int(np.ceil((high - low) / (_SPAN * self.plan.spread)))), _MAX_SPANS)
        thresholds = np.linspace(low, high, spans * _PER_SPAN + 1)
        thresholds = thresholds[:-1] if low >= 0.0 else thresholds[1:]
        if high == 0.0:
            thresholds = thresholds[:-1]
        block = read(contour, thresholds, self.plan.spread > _APART)
        self._serving.append((low, high, contour))
        return block


def transform_of(steps: Steps, accuracy: Transform = TRANSFORM) -> SpectralComposition | None:
    """The composed transform of ``steps``, once; None where a step is not a sampled Gaussian."""
    return _transform_of(tuple(steps), accuracy)


@lru_cache(maxsize=64)
def _transform_of(steps: tuple[Step, ...], accuracy: Transform) -> SpectralComposition | None:
    plain, sampled = 0.0, []
    for step in steps:
        if step.pair.mu is not None:
            plain = math.hypot(plain, math.sqrt(step.count) * step.pair.mu)
        elif (one := step.pair.mixture) is not None:
            sampled.append(SampledStep(one.noise_multiplier, float(one.weights[0]), one.antipodal, step.count))
        else:
            return None
    return SpectralComposition(tuple(sampled), plain, accuracy)

"""Polygons and point values from contours: which line to integrate on for which threshold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import ClassVar, NamedTuple

import numpy as np

from reticent.accountants.contour import Contour, build_contour
from reticent.accountants.contour_plan import DIGITS, Plan, Planned
from reticent.accountants.cut_moments import SampledStep
from reticent.accountants.readings import Block, read
from reticent.kernel.accountants.route import Answer, Route, Single
from reticent.kernel.accountants.steps import Step, Steps
from reticent.kernel.curves import LogErrors
from reticent.kernel.curves.polygon import Sides, mirrored, polygon_above, polygon_through
from reticent.kernel.errors import NumericalError
from reticent.kernel.pairs.base import Ends

_GOAL, _ROUNDING = 1e-9, 2e-15  # sum of the errors of all frequencies at which nodes are fine enough; more per step
_PLANNED = 46.0  # digits that the reach of the first nodes is planned for
_STEP = 1e-7  # standard deviations of the loss between the two deltas whose difference gives an error rate
_MAX_SPANS = 24
_HOPELESS = 1e-3
_APART = 1.0  # spread from which on 1 - delta is followed as well as delta
_FIRST_REACH = 40.0  # of the nodes of a contour, where they are not too many: few are cheap
_SETTLED = 0.1  # share of the errors that more nodes would take away
_REFINED, _REFINEMENTS = 3.0, 6  # factor of the reach of the nodes, and how often
_STUCK, _LITTLE = 300.0, 0.9  # reach from which on more nodes must take away a tenth of the errors
_SPAN, _PER_SPAN = 1.5, 500  # length of a span of thresholds, in standard deviations of the loss; how many it has


@dataclass(frozen=True, slots=True)
class Transform(Route):
    """Contour integrals of the composed transform; its accuracy is one for all."""

    name: ClassVar[str] = "transform"
    priority: ClassVar[int] = 20
    always: ClassVar[bool] = True

    @classmethod
    def single(cls, steps: Steps) -> Single | None:
        spectral = transform_of(steps)
        return spectral if spectral is not None and spectral.steps else None

    @classmethod
    def advantage(cls, steps: Steps) -> Ends | None:
        if len(steps) != 1 or (law := steps[0].pair.mixture) is None or steps[0].pair.mu is not None:
            return None
        from reticent.pairs.advantage_alone import certified  # costly to load

        return certified(law, steps[0].count)

    def serves(self, steps: Steps) -> bool:
        return transform_of(steps) is not None

    def answer(self, steps: Steps) -> Answer:
        """Polygons around sampled Gaussian steps, one direction; far tails that no contour reaches are left out.

        Raises:
            NumericalError: the nodes cannot follow the oscillation, or a step is no sampled Gaussian.
        """
        if (spectral := transform_of(steps)) is None:
            raise NumericalError("characteristic function: a step is not a sampled Gaussian")
        above, below = spectral.polygons()
        return Answer((above,), (below,), "; ".join(spectral.left_out))


class Served(NamedTuple):
    """Thresholds from ``low`` to ``high``, and the contour that answers for them."""

    low: float
    high: float
    contour: Contour


@dataclass(frozen=True)
class SpectralComposition:
    """Sampled Gaussian steps and one plain Gaussian release, composed; H0 = absent.

    A contour is built for its own thresholds, so no answer depends on what was asked before.

    Attributes:
        steps: the sampled steps.
        plain: GDP parameter of everything that was not sampled, 0 if nothing.

    Raises:
        NumericalError: from any method, where the certificate cannot be had.
    """

    steps: Sequence[SampledStep]
    plain: float = 0.0
    _contours: dict[Planned, Contour | str] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def plan(self) -> Plan:
        """Where contours go."""
        return Plan(self.steps, self.plain)

    @property
    def symmetric(self) -> bool:
        """Whether both directions have the same curve."""
        return self.plan.symmetric

    @cached_property
    def _planned(self) -> list[Planned]:
        return self.plan.blocks()

    def delta(self, threshold: float) -> tuple[float, float] | None:
        """Around delta at ``threshold`` >= 0, or around the reversed delta at minus one below 0.

        By the contour of its neighbourhood. Beyond all contours delta is at most what it is at their end; None where
        there is no contour on this side, as on the other half of a symmetric composition.
        """
        threshold = float(threshold)  # phases are made from its bytes
        contour, inner = self._serves(threshold), threshold
        if contour is None:
            if not (inside := self._ends_before(threshold)):
                return None
            inner, contour = max(inside, key=lambda end: abs(end[0]))
        with np.errstate(all="ignore"):
            found = (contour.delta if threshold >= 0.0 else contour.reversed_delta)(np.array([inner]))
        return float(found.lower[0]) if inner == threshold else 0.0, float(found.upper[0])

    def points(self, thresholds: np.ndarray) -> LogErrors | None:
        """Rates of tests at most as strong as those at ``thresholds``, all of one sign, by the contour of the first."""
        contour = self._serves(float(thresholds[0]))
        if contour is None:
            return None
        with np.errstate(all="ignore"):
            return read(contour, thresholds, self.plan.spread > _APART).points

    def _serves(self, threshold: float) -> Contour | None:
        """The contour that was planned for ``threshold``; where it cannot be had, the one that serves instead.

        None where the one next to threshold 0 cannot be had either: there are no polygons then, and whoever knows less
        than the worst case is bounded by these.
        """
        with np.errstate(all="ignore"), suppress(NumericalError):
            ahead = threshold >= 0.0
            side = [one for one in self._planned if (one[1] >= 0.0) == ahead]
            for c, low, high in side:
                if low <= threshold <= high:
                    self._contour(*side[0 if ahead else -1])
                    with suppress(NumericalError):
                        return self._contour(c, low, high)
                    return next((one.contour for one in self._serving[0] if one[:2] == (low, high)), None)
        return None

    def _ends_before(self, threshold: float) -> list[tuple[float, Contour]]:
        """Ends of what contours serve, between 0 and ``threshold``."""
        with suppress(NumericalError):
            ends = [(edge, one.contour) for one in self._serving[0] for edge in one[:2]]
            return [end for end in ends if threshold != 0.0 and 0.0 <= end[0] / threshold < 1.0]
        return []

    @property
    def left_out(self) -> list[str]:
        """Why tails of ``polygons`` are left out."""
        return self._serving[1]

    @cached_property
    def _serving(self) -> tuple[list[Served], list[str]]:
        """The contours that can be had, among them those next to threshold 0, and why others cannot.

        Outwards from 0; where a contour cannot be had, the last one serves the rest of its side.
        """
        reasons: list[str] = []
        with np.errstate(all="ignore"):
            back = self._outwards([block for block in reversed(self._planned) if block[2] <= 0.0], reasons)
            ahead = self._outwards([block for block in self._planned if block[1] >= 0.0], reasons)
        return [*reversed(back), *ahead], reasons

    def _outwards(self, planned: list[Planned], reasons: list[str]) -> list[Served]:
        found: list[Served] = []
        last, failed = 0.5, False
        for c, low, high in planned:
            if not failed:
                try:
                    found.append(Served(low, high, self._contour(c, low, high)))
                    last = c
                    continue
                except NumericalError as error:
                    reasons.append(f"thresholds {low:.3g} to {high:.3g}: {error}")
                    failed = True
            try:
                found.append(Served(low, high, self._contour(last, low, high)))
            except NumericalError:
                if not found:
                    raise
                break
        return found

    def polygons(self) -> Sides:
        """Polygons around this direction; far tails that no contour reaches are left out."""
        with np.errstate(all="ignore"):
            blocks = [self._block(*one) for one in self._serving[0]]
        *bounds, points = zip(*blocks, strict=True)
        thresholds, log_delta, log_rest = (np.concatenate(each) for each in bounds)
        points = LogErrors.joined(*points).at(slice(None, None, -1))
        if self.plan.symmetric:
            thresholds = mirrored(-thresholds, thresholds)
            log_delta, log_rest = mirrored(log_delta, log_delta), mirrored(log_rest, log_rest)
            points = LogErrors.joined(points, points.exchanged.at(slice(-2, None, -1)))
        return Sides(polygon_above(thresholds, log_delta, log_rest), polygon_through(points))

    def _block(self, low: float, high: float, contour: Contour) -> Block:
        # Each block owns its end nearer to 0; the block right of 0 owns 0.
        spans = min(max(1, int(np.ceil((high - low) / (_SPAN * self.plan.spread)))), _MAX_SPANS)
        thresholds = np.linspace(low, high, spans * _PER_SPAN + 1)
        thresholds = thresholds[:-1] if low >= 0.0 else thresholds[1:]
        if high == 0.0:
            thresholds = thresholds[:-1]
        return read(contour, thresholds, self.plan.spread > _APART)

    def _contour(self, c: float, low: float, high: float) -> Contour:
        if self.plan.many and self.plan.rightmost == 0.5:  # one serves both sides
            low, high = self.plan.ends
        key = (c, low, high)
        if key not in self._contours:
            try:
                self._contours[key] = self._built(*key)
            except NumericalError as error:
                self._contours[key] = str(error)
        found = self._contours[key]
        if isinstance(found, str):
            raise NumericalError(found)
        return found

    def _built(self, c: float, low: float, high: float) -> Contour:
        """Nodes are refined until the quadrature error is at rounding level."""
        need = self.plan.reach(c, _PLANNED)
        reach = max(need, _FIRST_REACH)
        step = _STEP * min(self.plan.spread, 1.0)

        def build(reach: float) -> Contour:
            laws = self.plan.laws(abs(c) + 1.0, reach, fine=True)
            return build_contour(laws, self.plan.moments, c, low, high, DIGITS + self.plan.small_digits, step)

        try:
            best = build(reach)
        except NumericalError:
            if reach == need:
                raise
            best, reach = build(need), need
        goal = _GOAL + _ROUNDING * sum(step.count for step in self.steps)
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
        if not best.errors.sum() <= _HOPELESS:
            raise NumericalError("characteristic function: the nodes cannot follow the oscillation")
        return best


def transform_of(steps: Steps) -> SpectralComposition | None:
    """The composed transform of ``steps``, once; None where a step is not a sampled Gaussian."""
    return _transform_of(tuple(steps))


@lru_cache(maxsize=64)
def _transform_of(steps: tuple[Step, ...]) -> SpectralComposition | None:
    plain, sampled = 0.0, []
    for step in steps:
        if step.pair.mu is not None:
            plain = math.hypot(plain, math.sqrt(step.count) * step.pair.mu)
        elif (one := step.pair.mixture) is not None:
            sampled.append(SampledStep(one.noise_multiplier, float(one.weights[0]), one.antipodal, step.count))
        else:
            return None
    return SpectralComposition(tuple(sampled), plain)

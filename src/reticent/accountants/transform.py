"""Polygons and point values from contours: which line to integrate on for which threshold."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from reticent.accountants.contour import Contour, Enclosed, Laws, Moments, build_contour, chernoff_moments
from reticent.accountants.cut_moments import SampledStep, cut_moments
from reticent.accountants.readings import Block, read
from reticent.accountants.route import Answer, Route
from reticent.accountants.steps import Step, Steps
from reticent.curves import LogErrors
from reticent.curves.polygon import Sides, mirrored, polygon_above, polygon_through
from reticent.errors import NumericalError
from reticent.pairs.sampled_gaussian import SampledGaussian, argument_reach, strips
from reticent.pairs.transforms import Law, PlainGaussian

_STEP = 1e-7  # standard deviations of the loss between the two deltas whose difference gives an error rate
_MAX_SPANS = 24
_HOPELESS = 1e-3
_NOT_SMALL = 5.0  # -log of the spread from which on delta is so small that more digits are needed
_LOUD = 16.0  # spread beyond which thresholds between 0 and what tells the hypotheses apart are left out
_APART = 1.0  # spread from which on 1 - delta is followed as well as delta
_TOLD = 9.0  # standard deviations below the mean of the loss at which these begin


class Effort(NamedTuple):
    """What a contour may cost and what it must reach.

    Attributes:
        work: nodes times frequencies.
        digits: aliases, truncation and the nodes left out are planned below e^-digits of the quantities' scale.
        goal: sum of the errors of all frequencies at which nodes are fine enough; ``rounding`` is added per step.
        extended: in extended precision, where the platform has it.
    """

    work: int
    digits: float
    goal: float
    rounding: float
    extended: bool = False


_CURVE, _POINT = Effort(4_000_000, 30.0, 1e-9, 2e-15), Effort(30_000_000, 44.0, 1e-11, 3e-16)
_Planned = tuple[float, float, float]  # c, lowest and highest threshold
_Key = tuple[float, float, float, Effort]  # the same
_HALF_BLOCK = 1.4  # standard deviations to either side that one contour serves
_EASED = 0.6  # of what the last contour had to resolve: where the next one starts
_ROOM = 1.0  # standard deviations of the loss by which Chernoff exponents must exceed 1, or losses are cut off
_FURTHEST = 80.0  # standard deviations of the loss up to which Chernoff exponents are asked
_RIGHT, _LEFT, _CUT = 40, 32, 48  # Chernoff exponents: above 1/2, below, and on either side of cut moments
_FIRST_RIGHT, _FIRST, _LEAST_FURTHEST = 1.05, 0.55, 0.6  # the first of them over 1/2; distances from 1/2
_LEAST_TOP = 1.5  # the largest exponent is at least so large
_TOPS = np.array([1.0, 0.75, 0.5])  # shares of it, where the moments beyond are out of reach
_OUTER = 0.35  # of the way from 1/2 to the last Chernoff exponent: contours do not go further
_AWAY = 0.25  # standard deviations of the loss between a contour and the poles 0 and 1
_CENTRAL = 7.5  # standard deviations that the contour between the poles serves where no other fits
_SHARED = 0.01  # standard deviations to either side of a single value whose contour serves others as well
_OUTWARDS = 1.4  # factor from one contour to the next, for a single value that is not tight yet
_ATTEMPTS = 5  # of these; the last in extended precision
_INNER = 0.9  # of the outermost contour: further in, another contour would not be tighter
_FIRST_REACH = 40.0  # of the nodes of a contour, where they are not too many: few are cheap
_SETTLED = 0.1  # share of the errors that more nodes would take away
_REFINED, _REFINEMENTS = 3.0, 6  # factor of the reach of the nodes, and how often
_STUCK, _LITTLE = 300.0, 0.9  # reach from which on more nodes must take away a tenth of the errors
_SPAN = 1.5  # length of a span of thresholds, in standard deviations of the loss
_CLOSE = 0.05  # standard deviations of the loss, inverted: how close a saddle point is followed
_HALF_STEPS = 200  # of a deviation, to the end of a tail
_MOST_CONTOURS = 60  # to either side, and halvings of a search for a saddle point
_EXPLOSION = 60.0  # log of a moment that rare large losses dominate


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
        per_block: thresholds of the polygons for each span of a contour.
    """

    curve: Effort = _CURVE
    point: Effort = _POINT
    tight: float = 1e-8
    deepest: float = -41.0
    left_out: float = -41.0
    planned: float = 46.0
    per_block: int = 500

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
            raise NumericalError("characteristic function: a step is no sampled Gaussian")
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

    @property
    def symmetric(self) -> bool:
        """Whether the composed curve is its own inverse."""
        return all(step.antipodal for step in self.steps)

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
            return read(contour, thresholds, self._spread > _APART).points

    def _serves(self, threshold: float) -> Contour | None:
        return next((contour for low, high, contour in self._serving if low <= threshold <= high), None)

    def _tightest(self, threshold: float, value: Callable[[Contour, np.ndarray], Enclosed]) -> tuple[float, float]:
        """Intersection of enclosures from contours ever further out, until they are tight or end.

        Where rounding is what is left, the same again in extended precision. A contour serves its neighbourhood.
        """
        lower, upper = 0.0, 1.0
        c, low, high = self._neighbourhood(threshold)
        limit = float(self._exponents[-2])
        best = (1.0, c)
        with np.errstate(all="ignore"):
            for attempt in range(_ATTEMPTS):
                extended = attempt == _ATTEMPTS - 1
                try:
                    effort = self.accuracy.point._replace(extended=extended)
                    contour = self._contour(best[1] if extended else c, low, high, effort)
                    bounds = value(contour, np.array([threshold]))
                except NumericalError:
                    if attempt == 0:
                        raise
                    continue
                best = min(best, (float(bounds.upper[0] - bounds.lower[0]), c))
                lower, upper = max(lower, float(bounds.lower[0])), min(upper, float(bounds.upper[0]))
                if upper - lower <= self.accuracy.tight * lower or c < _INNER * self._rightmost:
                    break
                c = min(_OUTWARDS * c, limit)
        return lower, upper

    def _neighbourhood(self, threshold: float) -> tuple[float, float, float]:
        """(c, lowest, highest threshold) of the first contour that was built around ``threshold``, or of a new one."""
        for c, low, high, effort in self._contours:
            if effort == self.accuracy.point and low <= threshold <= high:
                return c, low, high
        room = _SHARED * self._spread
        return self._saddle(threshold), threshold - room, threshold + room

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
        planned = self._blocks()
        self._serving.clear()
        before = self._outwards([block for block in reversed(planned) if block[2] <= 0.0])
        return [*reversed(before), *self._outwards([block for block in planned if block[1] >= 0.0])]

    def _outwards(self, planned: list[_Planned]) -> list[Block]:
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

    @cached_property
    def _spread(self) -> float:
        """Standard deviation of the loss at c = 1/2, for planning."""
        return float(np.sqrt(self._cumulants(0.5)[1]))

    @cached_property
    def _small_digits(self) -> float:
        """Digits by which delta is smaller than others: what is left out must be smaller by them as well."""
        return max(-math.log(self._spread) - _NOT_SMALL, 0.0)

    @cached_property
    def _moments(self) -> Moments:
        """Chernoff exponents on both sides, up to where rare large losses take over."""
        furthest = 0.5 + _FURTHEST / self._spread
        explosion = max(min(furthest, min((_explosion(step) for step in self.steps), default=np.inf)), _LEAST_TOP)
        low = 0.5 - _FURTHEST / self._spread
        left = 0.5 - np.geomspace(_FIRST, max(0.5 - low, _LEAST_FURTHEST), _LEFT)
        for top in explosion * _TOPS:
            if top < 1.0 + _ROOM / self._spread:
                break
            right = 0.5 + (top - 0.5) * np.geomspace(0.5 / (top - 0.5) * _FIRST_RIGHT, 1.0, _RIGHT)
            try:
                found = self._whole_moments(top, left, right)
            except NumericalError:  # out of reach of the nodes
                continue
            if found.exponents[np.isfinite(found.logs)].max(initial=0.0) >= 1.0 + _ROOM / self._spread:
                return found
        return self._cut_moments(furthest)

    @cached_property
    def _exponents(self) -> np.ndarray:
        """Those Chernoff exponents at which there is a bound."""
        return self._moments.exponents[np.isfinite(self._moments.logs)]

    def _whole_moments(self, top: float, left: np.ndarray, right: np.ndarray) -> Moments:
        laws = self._laws(top, 0.0)
        if self.symmetric:
            logs = chernoff_moments(laws, right).logs
            return Moments(np.concatenate([1.0 - right[::-1], right]), np.concatenate([logs[::-1], logs]))
        return chernoff_moments(laws, np.concatenate([left[::-1], right]))

    def _cut_moments(self, furthest: float) -> Moments:
        """Chernoff exponents where rare large losses make the moments explode: those losses are left out."""
        right = 0.5 + np.geomspace(_FIRST, furthest - 0.5, _CUT)
        exponents = np.concatenate([1.0 - right[::-1], right])
        left_out = self.accuracy.left_out - self._small_digits - math.log(len(self.steps))
        parts = [cut_moments(step, exponents, left_out) for step in self.steps]
        logs, lost = np.sum([part[0] for part in parts], axis=0), sum(part[1] for part in parts)
        return Moments(exponents, logs + PlainGaussian(self.plain).log_moment(exponents), lost)

    def _laws(self, largest: float, reach: float, effort: Effort | None = None) -> Laws:
        laws: list[tuple[Law, int]] = []
        for s in self.steps:
            law = SampledGaussian(s.noise_multiplier, s.rate, s.antipodal, s.count, reach, max(largest, 1.0))
            if effort is not None:
                digits = effort.digits - 2.0 + self._small_digits
                law = replace(law, digits=digits, extended=effort.extended, work=effort.work)
            laws.append((law, s.count))
        return [*laws, (PlainGaussian(self.plain), 1)] if self.plain > 0.0 else laws

    @cached_property
    def _planning_laws(self) -> Laws:
        return self._laws(float(self._moments.exponents[-1]), 0.0)

    def _cumulants(self, c: float) -> tuple[float, float]:
        """Mean and variance of the composed loss under the law tilted by c."""
        laws = self._laws(1.0, 0.0) if c == 0.5 else self._planning_laws
        if self.symmetric and c < 0.5:
            mean, variance = self._cumulants(1.0 - c)
            return -mean, variance
        pairs = [(count, law.moments(c)) for law, count in laws]
        return sum(n * m for n, (m, _) in pairs), sum(n * v for n, (_, v) in pairs)

    def _saddle(self, threshold: float) -> float:
        """A contour near the saddle point of ``threshold`` that keeps away from the poles 0 and 1."""
        if self._rightmost == 0.5:
            return 0.5
        low, high = float(self._exponents[1]), self._rightmost
        for _ in range(_MOST_CONTOURS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self._cumulants(middle)[0] < threshold else (low, middle)
            if high - low < _CLOSE / self._spread:
                break
        c, away = 0.5 * (low + high), _AWAY / self._spread
        if threshold >= 0.0:
            return max(c, 1.0 + away, 0.5 + away) if abs(c - 0.5) > 0.5 - away else c
        return min(c, -away, 0.5 - away) if abs(c - 0.5) > 0.5 - away else c

    @cached_property
    def _rightmost(self) -> float:
        """Largest c for contours: Chernoff needs room beyond it, and rare large losses limit Chernoff.

        1/2 where the losses are so small that no contour between the poles and that limit fits them: then
        the one between the poles serves all thresholds, at the price of many frequencies.
        """
        finite = self._exponents
        least = 1.0 + _AWAY / self._spread
        if self._moments.lost > 0.0:
            return 0.5
        if len(finite) < 4 or finite[-2] <= 1.0:
            raise NumericalError("characteristic function: rare large losses leave no room for Chernoff bounds")
        if least > finite[-2]:
            return 0.5
        return float(max(min(finite[-2], 0.5 + _OUTER * (finite[-1] - 0.5)), least))

    def _contour(self, c: float, low: float, high: float, effort: Effort | None = None) -> Contour:
        key = (c, low, high, effort or self.accuracy.curve)
        if key not in self._contours:
            self._contours[key] = self._built(*key)
        return self._contours[key]

    def _built(self, c: float, low: float, high: float, effort: Effort) -> Contour:
        """Nodes are refined until the quadrature error is at rounding level; the next contour starts there."""
        variance = self._cumulants(c)[1]
        need = max((_reach(step, variance, self.accuracy.planned) for step in self.steps), default=0.0)
        reach = max(need, _EASED * self._reaches.get(effort, 0.0), _FIRST_REACH)
        step = _STEP * min(self._spread, 1.0)

        def build(reach: float) -> Contour:
            laws = self._laws(abs(c) + 1.0, reach, effort)
            return build_contour(laws, self._moments, c, low, high, effort.digits, step)

        try:
            best = build(reach)
        except NumericalError:
            if reach == need:
                raise
            best, reach = build(need), need
        goal = effort.goal + effort.rounding * sum(step.count for step in self.steps)
        for _ in range(_REFINEMENTS):
            if best.errors.sum() < goal or best.unresolved < _SETTLED * best.errors.sum():
                break
            reach *= _REFINED
            try:
                finer = build(reach)
            except NumericalError:
                break
            stuck, best = reach > _STUCK and finer.errors.sum() > _LITTLE * best.errors.sum(), finer
            if stuck:
                break
        self._reaches[effort] = reach
        if not best.errors.sum() <= _HOPELESS:
            raise NumericalError("characteristic function: the nodes cannot follow the oscillation")
        return best

    def _blocks(self) -> list[_Planned]:
        """(c, lowest threshold, highest threshold) per contour, in order; 0 is a border."""
        if self._rightmost == 0.5:
            reach = _CENTRAL * self._spread
            return [(0.5, 0.0, reach)] if self.symmetric else [(0.5, -reach, 0.0), (0.5, 0.0, reach)]
        blocks: list[_Planned] = []
        edges = {1: 0.0, -1: 0.0}
        for side in (1,) if self.symmetric else (1, -1):
            limit = self._rightmost if side > 0 else self._exponents[1]
            c, variance = 0.5 - side * _HALF_BLOCK / self._spread, self._spread**2
            for _ in range(_MOST_CONTOURS):
                c += side * 2.0 * _HALF_BLOCK / np.sqrt(variance)
                if blocks and self._spread > _LOUD:
                    least = 0.5 + side * (0.5 - _TOLD / self._spread)
                    if side * (least - c) > 0.0:
                        c, edges[side] = least, self._cumulants(least)[0] - side * _HALF_BLOCK * self._spread
                c = min(c, float(limit)) if side > 0 else max(c, float(limit))
                mean, variance = self._cumulants(c)
                edge = mean + side * _HALF_BLOCK * np.sqrt(variance)
                if c == limit:
                    edge = self._tail_end(edge, side)
                if side * (edge - edges[side]) > 0:
                    blocks.append((c, *sorted((edges[side], edge))))
                    edges[side] = edge
                if self._log_tail(edge, side) < self.accuracy.deepest or c == limit:
                    break
        return sorted(blocks, key=lambda block: block[1])

    def _tail_end(self, threshold: float, side: int) -> float:
        """The first threshold from ``threshold`` on, in steps of half a deviation, where the tail ends."""
        for _ in range(_HALF_STEPS):
            if self._log_tail(threshold, side) < self.accuracy.deepest:
                break
            threshold += side * 0.5 * self._spread
        return threshold

    def _log_tail(self, threshold: float, side: int) -> float:
        moments = self._moments
        exponents, logs = moments.right(1.0, 1.0) if side > 0 else moments.left(0.0, 0.0)
        offset = 1.0 if side > 0 else 0.0
        return float(np.min(logs + (offset - exponents) * threshold))

    def _block(self, c: float, low: float, high: float) -> Block:
        contour = self._contour(c, low, high)
        # Each block owns its end nearer to 0; the block right of 0 owns 0.
        spans = min(max(1, int(np.ceil((high - low) / (_SPAN * self._spread)))), _MAX_SPANS)
        thresholds = np.linspace(low, high, spans * self.accuracy.per_block + 1)
        thresholds = thresholds[:-1] if low >= 0.0 else thresholds[1:]
        if high == 0.0:
            thresholds = thresholds[:-1]
        block = read(contour, thresholds, self._spread > _APART)
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


def _reach(step: SampledStep, variance: float, digits: float) -> float:
    """The largest frequency times loss that matters, before anything is known of the errors."""
    angles = strips(step.noise_multiplier, digits)[-1:]
    return float(argument_reach(step.noise_multiplier, step.rate, step.antipodal, variance, angles)[0])


def _explosion(step: SampledStep) -> float:
    """Exponent c beyond which count * rate^c e^(c (c - 1) / (2 s^2)) exceeds e^``_EXPLOSION``."""
    variance = step.noise_multiplier**2
    linear = -np.log(step.rate) + 0.5 / variance
    return float((linear + np.sqrt(linear**2 + 2.0 / variance * max(_EXPLOSION - np.log(step.count), 1.0))) * variance)

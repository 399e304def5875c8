"""Where contours go: moments of the composed loss, saddle points, and which thresholds each contour serves.

Moments are bounds, and part of the certificate. Everything else is a plan: a bad one costs time or width.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from reticent.accountants.contour import Laws, Moments, chernoff_moments
from reticent.accountants.cut_moments import SampledStep, cut_moments
from reticent.kernel.accountants.grouped import MANY
from reticent.kernel.errors import NumericalError
from reticent.kernel.pairs.columns import Numbers
from reticent.pairs.sampled_gaussian import SampledGaussian
from reticent.pairs.strips import argument_reach, strips
from reticent.pairs.transforms import Law, PlainGaussian

_NOT_SMALL = 5.0  # -log of the spread from which on delta is so small that more digits are needed
_LOUD = 16.0  # spread beyond which thresholds between 0 and what tells the hypotheses apart are left out
_TOLD = 9.0  # standard deviations below the mean of the loss at which these begin
_HALF_BLOCK = 1.4  # standard deviations to either side that one contour serves
_ROOM = 1.0  # standard deviations of the loss by which Chernoff exponents must exceed 1, or losses are cut off
_FURTHEST = 80.0  # standard deviations of the loss up to which Chernoff exponents are asked
_RIGHT, _LEFT, _CUT = 40, 32, 48  # Chernoff exponents: above 1/2, below, and on either side of cut moments
_FEWER = 4  # times fewer of them, and of their cells, for many kinds of steps
_FIRST_RIGHT, _FIRST, _LEAST_FURTHEST = 1.05, 0.55, 0.6  # the first of them over 1/2; distances from 1/2
_LEAST_TOP = 1.5  # the largest exponent is at least so large
_TOPS = np.array([1.0, 0.75, 0.5])  # shares of it, where the moments beyond are out of reach
_OUTER = 0.35  # of the way from 1/2 to the last Chernoff exponent: contours do not go further
_AWAY = 0.25  # standard deviations of the loss between a contour and the poles 0 and 1
_CENTRAL = 7.5  # standard deviations that the contour between the poles serves where no other fits
_END = -30.0  # log of delta at which the tails of that contour end, where it is the only one
FOLLOWED, _QUIET = 1000, 1.0  # kinds of steps beyond which it is the only one, and spread up to which it is
_HALF_STEPS = 200  # of a deviation, to the end of a tail
_MOST_CONTOURS = 60  # to either side, and halvings of a search for a saddle point
_WORK = 4_000_000  # nodes times frequencies, of a contour
DIGITS = 30.0
"""Aliases, truncation and the nodes left out are planned below e^-digits of the quantities' scale."""
_DEEPEST = -41.0  # log of delta at which curves end
_LEFT_OUT = -41.0  # log of the probability of rare large losses that Chernoff exponents are spared
_EXPLOSION = 60.0  # log of a moment that rare large losses dominate


Planned = tuple[float, float, float]
"""c, lowest and highest threshold."""


@dataclass(frozen=True)
class Plan:
    """Sampled Gaussian steps and one plain Gaussian release, composed; H0 = absent.

    Attributes:
        steps: the sampled steps.
        plain: GDP parameter of everything that was not sampled, 0 if nothing.
    """

    steps: Sequence[SampledStep]
    plain: float

    @property
    def symmetric(self) -> bool:
        """Whether the composed curve is its own inverse."""
        return all(step.antipodal for step in self.steps)

    @property
    def many(self) -> bool:
        """Whether there are so many kinds of steps that fewer Chernoff exponents must do, and no lattice follows."""
        return len(self.steps) > MANY

    @cached_property
    def spread(self) -> float:
        """Standard deviation of the loss at c = 1/2, for planning."""
        return float(np.sqrt(self.cumulants(0.5)[1]))

    @cached_property
    def small_digits(self) -> float:
        """Digits by which delta is smaller than others: what is left out must be smaller by them as well."""
        return max(-math.log(self.spread) - _NOT_SMALL, 0.0)

    @cached_property
    def moments(self) -> Moments:
        """Chernoff exponents on both sides, up to where rare large losses take over."""
        furthest = 0.5 + _FURTHEST / self.spread
        explosion = max(min(furthest, min((_explosion(step) for step in self.steps), default=np.inf)), _LEAST_TOP)
        low = 0.5 - _FURTHEST / self.spread
        few = _FEWER if len(self.steps) > FOLLOWED else 1
        left = 0.5 - np.geomspace(_FIRST, max(0.5 - low, _LEAST_FURTHEST), _LEFT // few)
        for top in explosion * _TOPS:
            if top < 1.0 + _ROOM / self.spread:
                break
            right = 0.5 + (top - 0.5) * np.geomspace(0.5 / (top - 0.5) * _FIRST_RIGHT, 1.0, _RIGHT // few)
            try:
                found = self._whole_moments(top, left, right)
            except NumericalError:  # out of reach of the nodes
                continue
            if found.exponents[np.isfinite(found.logs)].max(initial=0.0) >= 1.0 + _ROOM / self.spread:
                return found
        return self._cut_moments(furthest)

    @cached_property
    def exponents(self) -> np.ndarray:
        """Those Chernoff exponents at which there is a bound."""
        return self.moments.exponents[np.isfinite(self.moments.logs)]

    def _whole_moments(self, top: float, left: np.ndarray, right: np.ndarray) -> Moments:
        laws = self.laws(top, 0.0)
        if self.symmetric:
            logs = chernoff_moments(laws, right).logs
            return Moments(np.concatenate([1.0 - right[::-1], right]), np.concatenate([logs[::-1], logs]))
        return chernoff_moments(laws, np.concatenate([left[::-1], right]))

    def _cut_moments(self, furthest: float) -> Moments:
        """Chernoff exponents where rare large losses make the moments explode: those losses are left out."""
        few = _FEWER if self.many else 1
        right = 0.5 + np.geomspace(_FIRST, furthest - 0.5, _CUT // few)
        exponents = np.concatenate([1.0 - right[::-1], right])
        left_out = _LEFT_OUT - self.small_digits - math.log(len(self.steps))
        parts = [cut_moments(step, exponents, left_out, few) for step in self.steps]
        logs, lost = np.sum([part[0] for part in parts], axis=0), sum(part[1] for part in parts)
        return Moments(exponents, logs + PlainGaussian(self.plain).log_moment(exponents), lost)

    def laws(self, largest: float, reach: float, *, fine: bool = False) -> Laws:
        """(loss of one step, how many times it ran), with nodes that serve a question.

        Args:
            largest: exponent that will be asked for.
            reach: largest frequency times loss.
            fine: for a contour, not for moments.
        """
        laws: list[tuple[Law, Numbers]] = []
        for noise, rate, antipodal, count in self._kinds:
            law = SampledGaussian(noise, rate, antipodal, count, reach, max(largest, 1.0))
            if fine:
                digits = DIGITS - 2.0 + 2.0 * self.small_digits + math.log(len(self.steps))
                law = replace(law, digits=digits, work=_WORK)
            laws += [(block, block.count) for block in (law.blocks() if np.ndim(count) else [law])]
        return [*laws, (PlainGaussian(self.plain), 1)] if self.plain > 0.0 else laws

    @cached_property
    def _kinds(self) -> list[tuple[Numbers, Numbers, bool, Numbers]]:
        """(noise, rate, antipodal, count) of the kinds of either pair: numbers of one, else columns."""
        found: list[tuple[Numbers, Numbers, bool, Numbers]] = []
        for antipodal in (False, True):
            kinds = [(s.noise_multiplier, s.rate, s.count) for s in self.steps if s.antipodal == antipodal]
            if len(kinds) == 1:
                noise, rate, count = kinds[0]
                found.append((noise, rate, antipodal, count))
            elif kinds:
                noises, rates, counts = (np.array(each)[:, None] for each in zip(*kinds, strict=True))
                found.append((noises, rates, antipodal, counts))
        return found

    def reach(self, c: float, digits: float) -> float:
        """The largest frequency times loss that matters at c, before anything is known of the errors."""
        variance, reach = self.cumulants(c)[1], 0.0
        for noise, rate, antipodal, _ in self._kinds:
            angle = np.atleast_2d(strips(noise, digits)[-1])
            reach = max(reach, float(argument_reach(noise, rate, antipodal, variance, angle).max()))
        return reach

    @cached_property
    def _planning_laws(self) -> Laws:
        return self.laws(float(self.moments.exponents[-1]), 0.0)

    def cumulants(self, c: float) -> tuple[float, float]:
        """Mean and variance of the composed loss under the law tilted by c."""
        laws = self.laws(1.0, 0.0) if c == 0.5 else self._planning_laws
        if self.symmetric and c < 0.5:
            mean, variance = self.cumulants(1.0 - c)
            return -mean, variance
        pairs = [(count, *law.moments(c)) for law, count in laws]
        return float(sum(np.sum(n * m) for n, m, _ in pairs)), float(sum(np.sum(n * v) for n, _, v in pairs))

    @cached_property
    def rightmost(self) -> float:
        """Largest c for contours: Chernoff needs room beyond it, and rare large losses limit Chernoff.

        1/2 where the losses are so small that no contour between the poles and that limit fits them: then
        the one between the poles serves all thresholds, at the price of many frequencies. Likewise for thousands of
        kinds of steps, where a contour costs more than the digits of deep tails are worth.

        Raises:
            NumericalError: rare large losses leave no room for Chernoff bounds.
        """
        finite = self.exponents
        least = 1.0 + _AWAY / self.spread
        if self.moments.lost > 0.0 or (len(self.steps) > FOLLOWED and self.spread < _QUIET):
            return 0.5
        if len(finite) < 4 or finite[-2] <= 1.0:
            raise NumericalError("characteristic function: rare large losses leave no room for Chernoff bounds")
        if least > finite[-2]:
            return 0.5
        return float(max(min(finite[-2], 0.5 + _OUTER * (finite[-1] - 0.5)), least))

    @cached_property
    def ends(self) -> tuple[float, float]:
        """Lowest and highest threshold that the contour between the poles serves where no other fits."""
        reach = _CENTRAL * self.spread
        if not self.many:
            return -reach, reach
        return self._tail_end(-reach, -1, _END), self._tail_end(reach, 1, _END)

    def blocks(self) -> list[Planned]:
        """(c, lowest threshold, highest threshold) per contour, in order; 0 is a border."""
        if self.rightmost == 0.5:
            low, high = self.ends
            return [(0.5, 0.0, high)] if self.symmetric else [(0.5, low, 0.0), (0.5, 0.0, high)]
        blocks: list[Planned] = []
        edges = {1: 0.0, -1: 0.0}
        for side in (1,) if self.symmetric else (1, -1):
            limit = self.rightmost if side > 0 else self.exponents[1]
            c, variance = 0.5 - side * _HALF_BLOCK / self.spread, self.spread**2
            for _ in range(_MOST_CONTOURS):
                c += side * 2.0 * _HALF_BLOCK / np.sqrt(variance)
                if blocks and self.spread > _LOUD:
                    least = 0.5 + side * (0.5 - _TOLD / self.spread)
                    if side * (least - c) > 0.0:
                        c, edges[side] = least, self.cumulants(least)[0] - side * _HALF_BLOCK * self.spread
                c = min(c, float(limit)) if side > 0 else max(c, float(limit))
                mean, variance = self.cumulants(c)
                edge = mean + side * _HALF_BLOCK * np.sqrt(variance)
                if c == limit:
                    edge = self._tail_end(edge, side, _DEEPEST)
                if side * (edge - edges[side]) > 0:
                    blocks.append((c, *sorted((edges[side], edge))))
                    edges[side] = edge
                if self._log_tail(edge, side) < _DEEPEST or c == limit:
                    break
        return sorted(blocks, key=lambda block: block[1])

    def _tail_end(self, threshold: float, side: int, deepest: float) -> float:
        """The first threshold from ``threshold`` on, in steps of half a deviation, where the tail ends."""
        for _ in range(_HALF_STEPS):
            if self._log_tail(threshold, side) < deepest:
                break
            threshold += side * 0.5 * self.spread
        return threshold

    def _log_tail(self, threshold: float, side: int) -> float:
        moments = self.moments
        exponents, logs = moments.right(1.0, 1.0) if side > 0 else moments.left(0.0, 0.0)
        offset = 1.0 if side > 0 else 0.0
        return float(np.min(logs + (offset - exponents) * threshold, initial=np.inf))


def _explosion(step: SampledStep) -> float:
    """Exponent c beyond which count * rate^c e^(c (c - 1) / (2 s^2)) exceeds e^``_EXPLOSION``."""
    variance = step.noise_multiplier**2
    linear = -np.log(step.rate) + 0.5 / variance
    return float((linear + np.sqrt(linear**2 + 2.0 / variance * max(_EXPLOSION - np.log(step.count), 1.0))) * variance)

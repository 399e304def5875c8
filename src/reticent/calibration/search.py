"""A bracketed secant search for the edge between safe and unsafe values of one parameter."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

_MAX_EVALUATIONS = 80
_FIRST_STEP = 0.5  # of u, where there is no bracket yet; it doubles
_FLATTEST = 1e-3  # slope of a secant below which it tells nothing


@dataclass
class Edge:
    """Search state in u = log(parameter), oriented so that risk grows with u.

    ``gap(u)`` is log(equivalent mu) minus that of the target: at most 0 where the target is met. It is
    increasing; the search keeps the largest safe and the smallest unsafe u seen and never leaves them.

    Attributes:
        gap: the function.
        low: smallest u allowed.
        high: largest u allowed.
        tolerance: aimed distance to the root in u.
        safe, unsafe: (u, gap) next to the edge on either side, once seen.
        seen: all (u, gap), in order.
        root: where ``find`` expects it, if it did not look there.
    """

    gap: Callable[[float], float]
    low: float
    high: float
    tolerance: float
    safe: tuple[float, float] | None = None
    unsafe: tuple[float, float] | None = None
    seen: list[tuple[float, float]] = field(default_factory=list)
    root: float | None = None

    def probe(self, u: float) -> float:
        """Evaluate at ``u`` and update the bracket."""
        value = self.gap(u)
        self.seen.append((u, value))
        if value <= 0.0:
            if self.safe is None or u > self.safe[0]:
                self.safe = (u, value)
        elif self.unsafe is None or u < self.unsafe[0]:
            self.unsafe = (u, value)
        return value

    def find(self, start: float, slope: float) -> None:
        """Close in on the root from ``start`` with the guess ``slope`` of the gap.

        Afterwards ``root`` is known, or ``safe`` and ``unsafe`` are within the tolerance of it, as far as their gaps
        tell, or one of them is None because an end of the range was reached.
        """
        u, step = min(max(start, self.low), self.high), _FIRST_STEP
        for _ in range(_MAX_EVALUATIONS):
            value = self.probe(u)
            if abs(value) <= self.tolerance * slope or self.width <= self.tolerance:
                return
            before, slope = slope, self.last_slope(slope)
            following = u - value / slope
            # A step is wrong by less than its slope has changed: then its end need not be looked at.
            if slope != before and abs(following - u) * abs(slope / before - 1.0) <= self.tolerance:
                self.root = self.guarded(following)
                return
            if not math.isfinite(following):
                following = u - math.copysign(step, value)
            if abs(following - u) > step and (self.safe is None or self.unsafe is None):
                following, step = u - math.copysign(step, value), 2.0 * step
            following = self.guarded(following)
            if following == u:
                return
            u = following

    @property
    def width(self) -> float:
        """Between the largest safe and the smallest unsafe u; infinite where one is missing."""
        return math.inf if self.safe is None or self.unsafe is None else self.unsafe[0] - self.safe[0]

    def last_slope(self, guess: float) -> float:
        """Secant through the last two values; the guess where they do not tell."""
        if len(self.seen) < 2:
            return guess
        (a, fa), (b, fb) = self.seen[-2:]
        slope = (fb - fa) / (b - a) if b != a else math.nan
        return slope if math.isfinite(slope) and slope > _FLATTEST else guess

    def guarded(self, u: float) -> float:
        """``u`` moved inside the bracket, if there is one; bisection where the secant would leave it."""
        low = self.low if self.safe is None else self.safe[0]
        high = self.high if self.unsafe is None else self.unsafe[0]
        if self.safe is not None and self.unsafe is not None and not low < u < high:
            return 0.5 * (low + high)
        return min(max(u, low), high)

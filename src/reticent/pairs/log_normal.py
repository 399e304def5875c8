"""The Laplace transform of a log-normal of mean 1: few nodes on a shifted line, whatever the frequency.

docs/theory/sampling.md, section "From above and from below", has the proof.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from reticent.kernel.curves._logs import EPS
from reticent.kernel.curves.sums import products, roundings, weighted

DIGITS = 58.0
"""e^-58: what the rule in z may be off by."""
FURTHEST = 11.0
"""Deviations beyond which no node lies."""
_WIDEST = 2.0  # shift of the line of nodes: the normal density grows by e^(shift^2 / 2) there
_MOST_NODES = 4096

ROUNDINGS_OF_A_TERM = 48.0
"""In half eps: of exponentials, their arguments and products."""


class Line(NamedTuple):
    """Nodes on a line below the real axis, where e^{-pr} does not oscillate.

    Attributes:
        places: real parts of the nodes, evenly spaced.
        step: their distance.
        shift: how far below the axis they lie.
        deviation: of the logarithm of the log-normal.
    """

    places: np.ndarray
    step: float
    shift: float
    deviation: float

    @property
    def heights(self) -> np.ndarray:
        """Of the normal density at the real parts, times the step."""
        return self.step * np.exp(-0.5 * self.places**2) / np.sqrt(2.0 * np.pi)

    @property
    def values(self) -> np.ndarray:
        """The log-normal at the real parts."""
        return np.exp(self.deviation * self.places - 0.5 * self.deviation**2)

    @property
    def moved(self) -> np.ndarray:
        """The log-normal on the line, less 1."""
        logs = self.deviation * self.places - 0.5 * self.deviation**2 - 1j * self.deviation * self.shift
        return np.expm1(logs)

    @property
    def grown(self) -> float:
        """By how much the density is larger on the line."""
        return float(np.exp(0.5 * self.shift**2))

    @property
    def missed(self) -> float:
        """Error of the rule, and what lies beyond the nodes of a function that is at most 2 or the variable itself."""
        edges = 2.0 * (1.0 + np.exp(2.0 * self.shift**2))
        beyond = 4.0 * self.grown * float(ndtr(-(FURTHEST - 2.0 * self.step)))
        return float(edges / np.expm1(2.0 * np.pi * self.shift / self.step)) + beyond

    @property
    def least_angle(self) -> float:
        """Re(p r) is at least this share of |p r| on the line, for all p in the first quadrant."""
        turned = self.deviation * self.shift
        return float(min(np.sin(turned), np.cos(turned)))


def line_of(deviation: float) -> Line | None:
    """The line for a log-normal; None where it would need too many nodes.

    Twice the shift turns the variable by at most a quarter, so that e^{-pr} stays below 1 up to there and the rule in a
    strip of half that width is exact to e^-58.
    """
    shift = min(np.pi / (4.0 * deviation), _WIDEST)
    step = 2.0 * np.pi * shift / (DIGITS + 2.0 * shift**2)
    first, last = int(np.floor(-FURTHEST / step)), int(np.ceil((FURTHEST + deviation) / step))
    if last - first >= _MOST_NODES:
        return None
    return Line(step * np.arange(first, last + 1), step, shift, deviation)


class Transform(NamedTuple):
    """E e^{-py} - 1 and E r e^{-py}, y = r less the origin, at p = damping + i n pitch, with bounds on their errors."""

    less_one: np.ndarray
    weighted: np.ndarray
    error: np.ndarray
    weighted_error: np.ndarray


def transform(line: Line, damping: float, pitch: float, count: int, origin: float) -> Transform:
    """At ``count`` frequencies: each is a coarse and a fine one, and e^{-pr} - 1 is u + v + uv of both.

    Args:
        damping: real part of p, > 0.
        pitch: of the imaginary parts.
        count: how many, from 0 on.
        origin: 1, or 0 where p becomes large.
    """
    fine = int(np.sqrt(count)) + 1
    coarse = -(-count // fine)
    moved, heights = line.moved + (1.0 - origin), line.heights * line.grown
    weights = heights * np.exp(1j * line.shift * line.places)
    u = np.expm1(-np.multiply.outer(damping + 1j * pitch * fine * np.arange(coarse), moved))
    v = np.expm1(-np.multiply.outer(1j * pitch * np.arange(fine), moved))
    both = weighted(u, weights)[:, None] + weighted(v, weights)[None, :] + products(u * weights, v)
    tilted = products((u + 1.0) * (weights * (line.moved + 1.0)), v + 1.0)
    size, grown = np.abs(damping + 1j * pitch * np.arange(count)), np.exp(origin * damping)
    first, apart = float(heights @ line.values), float(heights @ np.abs(moved))
    both_moments = float((heights * line.values) @ np.abs(moved))
    own, tilted_own = 3.0 * size * apart, first + size * both_moments
    if origin == 0.0:  # |x| e^(-|x| angle) is at most 1 / angle
        own = np.minimum(own, 8.0 * float(heights.sum()) / line.least_angle)
        tilted_own = np.minimum(tilted_own, first * (1.0 + 1.0 / line.least_angle))
    off = EPS * (roundings(len(moved), 2) + ROUNDINGS_OF_A_TERM + 8.0 * (1.0 + 4.0 * line.deviation**2 + line.shift**2))
    return Transform(
        both.ravel()[:count],
        tilted.ravel()[:count],
        grown * (line.missed + off * own),
        grown * (line.missed + off * tilted_own),
    )


class Decay:
    """log of bounds on |E e^{-p(r - 1)}|: along a line below the axis the modulus is that at a real argument.

    Args:
        line: of the nodes; its real parts serve the real arguments.
        count: power that is taken: the shifts that matter are about its root.
    """

    def __init__(self, line: Line, count: int) -> None:
        most = min(0.5 * np.pi / line.deviation, 9.0)
        self.shifts = np.geomspace(min(1.0 / np.sqrt(count), 0.5 * most), most, 40)
        self.line = line
        reach = 2.0 * line.shift
        self.error = 2.0 * np.exp(0.5 * reach**2) / np.expm1(2.0 * np.pi * reach / line.step)
        self.error += 2.0 * float(ndtr(-(FURTHEST - 2.0 * line.step)))

    def real(self, arguments: np.ndarray) -> np.ndarray:
        """log of E e^{-qr}, from above, at real q >= 0."""
        # The log-normal is off by a few roundings of its logarithm.
        lower = np.maximum(arguments, 0.0) * (1.0 - 64.0 * EPS * (1.0 + self.line.deviation**2))
        means = weighted(np.exp(-np.multiply.outer(lower, self.line.values)), self.line.heights)
        rounding = EPS * (roundings(len(self.line.places)) + ROUNDINGS_OF_A_TERM)
        return np.log(means * (1.0 + rounding) + self.error)

    def beyond(self, damping: float, frequency: float) -> float:
        """The bound for p with this real part, and imaginary parts from ``frequency`` on."""
        turned = self.line.deviation * self.shifts
        real = self.real(damping * np.cos(turned) + frequency * np.sin(turned))
        return damping + float(np.min(0.5 * self.shifts**2 + real))

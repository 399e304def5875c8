"""One step of the attacker who lacks a sign, and what a route finds after all steps.

The observation y is in units of the noise: N(0, 1) under "absent", moved by +m or -m where the target was sampled,
m = 1/noise_multiplier. The losses are l+- = log(1 - p + p exp(+-m y - m^2/2)), natural logarithms of "present with
that sign" over "absent". Routes use a = (l+ - l-)/2, odd in y, and b = (l+ + l-)/2, even in y. With A and B their
sums over the steps the likelihood ratio of "one unknown sign" is e^B cosh A.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from reticent.adversaries.relaxed.sign.noise import GaussianSign, odd_and_even
from reticent.curves import LogErrors
from reticent.curves._logs import TINY, log_of
from reticent.curves._sums import products, weighted
from reticent.curves.polygon import Sides, polygon_above, polygon_through
from reticent.errors import NumericalError

REACH = 9.5  # standard deviations of y past twice the shift that quadrature nodes cover
_MOST_NODES = 4_000_000  # of one quadrature
_MOST_CELLS = 600_000  # of a net of frequencies
_MOST_WORK = 2e8  # cells times nodes of one proof: about a fifth of a second
_SLACK = 1e-5  # error of moduli on coarse nodes
_LEAST_DEVIATION = 1e-150  # instead of 0
_FIRST_CELL, _GROWTH = 0.02, 1.06  # of a net: times the mean absolute deviation; from one cell to the next
_WIDEST, _WIDEST_MANY, _MANY = 12.0, 30.0, 1000  # cells over the first: of few steps, and from this many steps on


class FoldedNodes(NamedTuple):
    """Trapezoid rule on y >= 0.

    Attributes:
        weight: masses under "absent", both signs of y folded together.
        a, b: the losses there.
    """

    weight: np.ndarray
    a: np.ndarray
    b: np.ndarray

    @classmethod
    def of(cls, step: GaussianSign, spacing: float, reach: float = REACH) -> FoldedNodes:
        """Nodes ``spacing`` apart up to ``reach`` beyond twice the slope.

        Args:
            step: with one record.
            spacing: in standard deviations of the noise, > 0.
            reach: in the same units.

        Raises:
            NumericalError: too little noise for any number of nodes that fits.
        """
        count = (reach + 2.0 * step.slope) / spacing
        if not count < _MOST_NODES:
            raise NumericalError(f"common-sign composition: {count:.3g} nodes would be needed")
        y = np.arange(math.ceil(count) + 1) * spacing
        weight = np.exp(-0.5 * y * y) * (2.0 * spacing / math.sqrt(2.0 * math.pi))
        weight[0] *= 0.5
        return cls(weight, *odd_and_even(step, y))

    def square(self) -> float:
        """E a^2 under "absent"."""
        return float(self.weight @ self.a**2)

    def log_moment(self, s: float, w: float) -> float:
        """log E e^{s b + w a} of one step under "absent", real arguments."""
        top = s * self.b + abs(w) * np.abs(self.a)
        logs = top + log_of(self.weight)
        shift = float(np.max(logs))
        terms = np.exp(logs - shift) * 0.5 * (1.0 + np.exp(-2.0 * abs(w) * np.abs(self.a)))
        return shift + math.log(float(np.sum(terms)))


class TiltedLaw(NamedTuple):
    """One step under a tilted probability. Pairs are in the order of the frequencies: of b, then of a.

    Attributes:
        even, odd: masses on y >= 0 of both signs of y together, and their difference.
        a, b: the losses there.
        variance, covariance: of b and of a, and between them.
        fourth, absolute: central fourth moments; mean absolute deviations.
    """

    even: np.ndarray
    odd: np.ndarray
    a: np.ndarray
    b: np.ndarray
    variance: tuple[float, float]
    covariance: float
    fourth: tuple[float, float]
    absolute: tuple[float, float]

    @classmethod
    def of(cls, nodes: FoldedNodes, line: float, lift: float) -> TiltedLaw:
        """Under e^{line b + lift (a + b)} times "absent"; ``lift`` 1 is "present with +".

        Args:
            nodes: of one step.
            line: real part of s, < 0.
            lift: 0 for "absent", 1 for "present".
        """
        base = nodes.weight * np.exp((line + lift) * nodes.b)
        even, odd = base * np.cosh(lift * nodes.a), base * np.sinh(lift * nodes.a)
        total = even.sum()
        even, odd = even / total, odd / total
        mean_a, b = float(odd @ nodes.a), nodes.b - float(even @ nodes.b)
        up, down = 0.5 * (even + odd), 0.5 * (even - odd)
        x, y = nodes.a - mean_a, -nodes.a - mean_a
        variance = float(even @ b**2), float(up @ x**2 + down @ y**2)
        fourth = float(even @ b**4), float(up @ x**4 + down @ y**4)
        absolute = float(even @ np.abs(b)), float(up @ np.abs(x) + down @ np.abs(y))
        return cls(even, odd, nodes.a, b, variance, float((up * x + down * y) @ b), fourth, absolute)

    @property
    def signs(self) -> tuple[float, ...]:
        """Of w, in the order of ``largest_squares`` and ``moduli``; one where both show the same."""
        return (1.0, -1.0) if np.any(self.odd) else (1.0,)

    def largest_squares(self, t: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Upper bounds on |E e^{i(t b +- w a)}|^2 in each cell of the net ``t`` x ``w``, by sign; in [1e-300, 1]."""
        t_low, t_high, w_low, w_high = t[:-1], t[1:], w[:-1], w[1:]
        slack = 0.5 * ((t_high - t_low) * self.absolute[0])[:, None] + 0.5 * ((w_high - w_low) * self.absolute[1])
        near = np.stack([self._near(t_low, t_high, w_low, w_high, sign) for sign in self.signs])
        far = (self.moduli(0.5 * (t_low + t_high), 0.5 * (w_low + w_high)) + slack + _SLACK) ** 2
        return np.asarray(np.clip(np.minimum(near, far), TINY, 1.0))

    def _near(
        self, t_low: np.ndarray, t_high: np.ndarray, w_low: np.ndarray, w_high: np.ndarray, sign: float
    ) -> np.ndarray:
        """1 - var + (2 mu_4 + 6 var^2)/24 over each cell: its low corner bounds var, its high one the rest."""
        (var_b, var_a), cov = self.variance, sign * self.covariance
        low = var_b * t_low[:, None] ** 2 + var_a * w_low[None, :] ** 2
        low = low + 2.0 * (cov * t_low[:, None] * w_low[None, :] if cov > 0 else cov * np.outer(t_high, w_high))
        high = (np.sqrt(var_b) * t_high[:, None] + np.sqrt(var_a) * w_high[None, :]) ** 2
        # Minkowski in L4: E (t b + w a)^4 <= (t |b|_4 + w |a|_4)^4.
        fourth = (self.fourth[0] ** 0.25 * t_high[:, None] + self.fourth[1] ** 0.25 * w_high[None, :]) ** 4
        return 1.0 - low + (2.0 * fourth + 6.0 * high**2) / 24.0

    def moduli(self, t: np.ndarray, w: np.ndarray) -> np.ndarray:
        """|E e^{i(t b +- w a)}| on the grid ``t`` x ``w``, of shape (signs, len(t), len(w))."""
        phase, angle = np.outer(t, self.b), np.outer(self.a, w)
        waves, cosines = (np.cos(phase), np.sin(phase)), np.cos(angle)
        real, imag = ((wave * self.even) @ cosines for wave in waves)
        if len(self.signs) == 1:
            return np.hypot(real, imag)[None]
        sines = np.sin(angle)
        imag_odd, real_odd = ((wave * self.odd) @ sines for wave in waves)
        return np.stack([np.hypot(real - sign * real_odd, imag + sign * imag_odd) for sign in self.signs])


class TransformTable(NamedTuple):
    """One kind of step, ready for its transforms.

    Attributes:
        nodes: of one step.
        steps: how often it runs.
        even, odd: e^b cosh a and e^b sinh a at the nodes.
        cosines, sines: of w a, a row for each node.
        missing: mean of 1 - cos(w a) under "absent", and weighted by ``even``.
    """

    nodes: FoldedNodes
    steps: int
    even: np.ndarray
    odd: np.ndarray
    cosines: np.ndarray
    sines: np.ndarray
    missing: tuple[np.ndarray, np.ndarray]

    @classmethod
    def of(cls, nodes: FoldedNodes, steps: int, w: np.ndarray) -> TransformTable:
        """At the frequencies ``w`` of a.

        Args:
            nodes, steps: see the class.
            w: shape (n,).
        """
        angle, grown = np.outer(nodes.a, w), np.exp(nodes.b)
        even, odd = grown * np.cosh(nodes.a), grown * np.sinh(nodes.a)
        half = 2.0 * np.sin(0.5 * angle) ** 2
        missing = weighted(half.T, nodes.weight), weighted(half.T, nodes.weight * even)
        return cls(nodes, steps, even, odd, np.cos(angle), np.sin(angle), missing)

    def log_powers(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """log phi^T under "absent", and under "present" with + and with -; rows ``s``, complex, columns w."""
        weight = self.nodes.weight
        growth = np.expm1(np.outer(s, self.nodes.b))
        absent = products(growth * weight, self.cosines.T) - self.missing[0]
        even = products(growth * (weight * self.even), self.cosines.T) - self.missing[1]
        odd = 1j * products((1.0 + growth) * (weight * self.odd), self.sines.T)
        return self.steps * _log1p(absent), self.steps * _log1p(even + odd), self.steps * _log1p(even - odd)


class OutsideBound(NamedTuple):
    """Bounds on the product of |E e^{i(t b + w a)}|^steps in the cells of a net.

    Attributes:
        t, w: upper ends of the cells, in frequencies of b and of a.
        logs: of the bounds; of shape (len(t), len(w)).
    """

    t: np.ndarray
    w: np.ndarray
    logs: np.ndarray

    @classmethod
    def of(cls, laws: Sequence[tuple[TiltedLaw, int]], ends: tuple[float, float]) -> OutsideBound | None:
        """Over [0, ends]; None if the proof takes too long.

        Near the origin by |E e^{iX}|^2 <= 1 - var X + (2 mu_4 + 6 var^2)/24 (cos x <= 1 - x^2/2 + x^4/24 for the
        symmetrised X); further out on a net of points, between which each modulus moves by at most the distance.

        Args:
            laws: of one step of each kind, and how often it runs.
            ends: the frequencies of b and of a that matter.
        """
        spread = max(_LEAST_DEVIATION, *(law.absolute[0] for law, _ in laws)), max(law.absolute[1] for law, _ in laws)
        widest = _WIDEST if sum(steps for _, steps in laws) < _MANY else _WIDEST_MANY
        t, w = (_net(end, _FIRST_CELL / size, widest) for end, size in zip(ends, spread, strict=True))
        cells = len(t) * len(w)
        if cells > _MOST_CELLS or cells * sum(len(law.a) for law, _ in laws) > _MOST_WORK:
            return None
        logs = sum(0.5 * steps * np.log(law.largest_squares(t, w)) for law, steps in laws)
        return cls(t[1:], w[1:], np.max(logs, axis=0))

    def largest(self, box: tuple[float, float]) -> float:
        """Bound on the product outside ``box``: frequencies of b and of a that are summed."""
        beyond = (self.t[:, None] > box[0]) | (self.w > box[1])
        return math.exp(min(float(np.max(np.where(beyond, self.logs, -np.inf))), 0.0))


def _net(end: float, first: float, widest: float) -> np.ndarray:
    """0 < ... < end with steps of ``first`` that grow up to ``widest`` times that."""
    points, width = [0.0], first
    while points[-1] < end and len(points) < _MOST_CELLS:
        points.append(points[-1] + width)
        width = min(width * _GROWTH, widest * first)
    return np.array(points)


@dataclass(frozen=True, slots=True)
class CertifiedRates:
    """What a route certifies after all steps, by threshold; arrays of one length.

    Attributes:
        thresholds: l, log likelihood ratios, increasing, 0 among them.
        delta: upper bounds on E_P (LR - e^l)_+ where l >= 0, on E_P (1 - e^{-l} LR)_+ where l < 0; in (0, 1].
        fpr, fnr: upper bounds on both errors of one legal test per threshold.
    """

    thresholds: np.ndarray
    delta: np.ndarray
    fpr: np.ndarray
    fnr: np.ndarray

    def sides(self) -> Sides:
        """The tangents of ``delta`` on one side, the chords of the tests on the other."""
        with np.errstate(divide="ignore"):
            rates = LogErrors(np.log(self.fpr), np.log1p(-self.fpr), np.log(self.fnr), np.log1p(-self.fnr))
        above = polygon_above(self.thresholds, np.log(self.delta))
        return Sides(above, polygon_through(rates.at(slice(None, None, -1))))


def _log1p(z: np.ndarray) -> np.ndarray:
    x, y = z.real, z.imag
    with np.errstate(divide="ignore"):
        return 0.5 * np.log1p(np.maximum(x * (2.0 + x) + y * y, -1.0)) + 1j * np.arctan2(y, 1.0 + x)

"""One step of the attacker who lacks a sign, and what a route finds after all steps.

The observation y is in units of the noise: N(0, 1) under "absent", moved by +m or -m where the target was sampled,
m = 1/noise_multiplier. The losses are l+- = log(1 - p + p exp(+-m y - m^2/2)), natural logarithms of "present with
that sign" over "absent". Routes use a = (l+ - l-)/2, odd in y, and b = (l+ + l-)/2, even in y. With A and B their
sums over the steps the likelihood ratio of "one unknown sign" is e^B cosh A.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from reticent.adversaries.relaxed.sign.noise import GaussianSign, odd_and_even
from reticent.kernel.curves import LogErrors
from reticent.kernel.curves._logs import log_of
from reticent.kernel.curves.polygon import Polygon, Sides, polygon_above, polygon_through
from reticent.kernel.curves.sums import products, weighted
from reticent.kernel.errors import NumericalError
from reticent.kernel.stopping import checkpoint

REACH = 9.5  # standard deviations of y past twice the shift that quadrature nodes cover
_MOST_NODES = 4_000_000  # of one quadrature
_MOST_CELLS = 600_000  # of a net of frequencies
_UP = 1.0 + 1e-9  # for the rounding of a sum of bounds
_MOST_WORK = 2e8  # cells times nodes of one proof: about a fifth of a second
_SLACK = 1e-5  # error of moduli on coarse nodes
_LEAST_DEVIATION = 1e-150  # instead of 0
_FIRST_CELL, _GROWTH = 0.4, 1.05  # of a net: over the deviation of all steps; from one cell to the next
_WIDEST = 0.2  # cell, over the least deviation of one step
_SHARES = 0.7, 0.2, 1e-2, 1e-4, 0.0  # of the observations that are left out as rare, one after the other
_NOTHING = -55.0  # log of a bound that needs no better one
_LEFT = 1e-60  # of a share of the observations after all steps, at most


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
        even, odd: masses on y >= 0 of both signs of y together, 1 in total, and their difference.
        a, b: the losses there.
        deviation: standard deviations of b and of a.
    """

    even: np.ndarray
    odd: np.ndarray
    a: np.ndarray
    b: np.ndarray
    deviation: tuple[float, float]

    @classmethod
    def of(cls, nodes: FoldedNodes, line: float, lift: float) -> TiltedLaw:
        """Under e^{line b + lift (a + b)} times "absent"; ``lift`` 1 is "present with +".

        Args:
            line: real part of s, < 0.
            lift: 0 for "absent", 1 for "present".
        """
        base = nodes.weight * np.exp((line + lift) * nodes.b)
        return cls._of(base * np.cosh(lift * nodes.a), base * np.sinh(lift * nodes.a), nodes.a, nodes.b)

    @classmethod
    def _of(cls, even: np.ndarray, odd: np.ndarray, a: np.ndarray, b: np.ndarray) -> TiltedLaw:
        total = even.sum()
        even, odd = even / total, odd / total
        spread = even @ (b - even @ b) ** 2, even @ a**2 - (odd @ a) ** 2
        deviations = (max(math.sqrt(max(float(square), 0.0)), _LEAST_DEVIATION) for square in spread)
        return cls(even, odd, a, b, (*deviations,))  # type: ignore[arg-type]

    def near(self, share: float) -> tuple[float, TiltedLaw]:
        """(mass of the observations next to 0, at least 1 - ``share``; the law given these)."""
        last = int(np.searchsorted(np.cumsum(self.even), 1.0 - share)) + 1
        even, odd, a, b = (x[:last] for x in (self.even, self.odd, self.a, self.b))
        return min(float(even.sum()), 1.0), self._of(even, odd, a, b)

    @property
    def signs(self) -> tuple[float, ...]:
        """Of w, in the order of ``moduli``; one where both show the same."""
        return (1.0, -1.0) if np.any(self.odd) else (1.0,)

    def largest(self, t: np.ndarray, w: np.ndarray, mass: float) -> np.ndarray:
        """Upper bounds on |E e^{i(t b +- w a)}| for both signs in each cell of the net ``t`` x ``w``.

        This is the law of observations of ``mass``; the others may add all of theirs to the modulus.

        With X the difference of two independent copies of the phase, D = sqrt(1 - |E e^{i..}|^2) is sqrt(2) times the
        L2 norm of sin(X / 2), which moves by no more than that of X / 2 does, from the middle of a cell to its ends.
        """
        moduli = self.moduli(0.5 * (t[1:] + t[:-1]), 0.5 * (w[1:] + w[:-1])).max(axis=0)
        moved = np.add.outer(0.5 * np.diff(t) * self.deviation[0], 0.5 * np.diff(w) * self.deviation[1])
        apart = np.maximum(np.sqrt(np.maximum(1.0 - moduli**2, 0.0)) - moved, 0.0)
        inside = np.minimum(np.sqrt(np.maximum(1.0 - apart**2, 0.0)), moduli + moved)
        return np.asarray(1.0 - mass + mass * inside + _SLACK)

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


class LogPower(NamedTuple):
    """log of powers: of their moduli, and their phases."""

    size: np.ndarray
    phase: np.ndarray


class TransformTable(NamedTuple):
    """One kind of step, ready for its transforms under one law.

    Attributes:
        nodes: of one step.
        steps: how often it runs.
        even, odd: masses on y >= 0 of both signs of y together, and their difference.
        cosines, sines: of w a, a row for each node.
        missing: mean of 1 - cos(w a).
    """

    nodes: FoldedNodes
    steps: int
    even: np.ndarray
    odd: np.ndarray
    cosines: np.ndarray
    sines: np.ndarray
    missing: np.ndarray

    @classmethod
    def of(cls, nodes: FoldedNodes, steps: int, w: np.ndarray, lift: float) -> TransformTable:
        """At the frequencies ``w`` of a.

        Args:
            w: shape (n,).
            lift: 0 for "absent", 1 for "present".
        """
        angle, grown = np.outer(nodes.a, w), nodes.weight * np.exp(lift * nodes.b)
        even, odd = grown * np.cosh(lift * nodes.a), grown * np.sinh(lift * nodes.a)
        missing = weighted(2.0 * np.sin(0.5 * angle).T ** 2, even)
        return cls(nodes, steps, even, odd, np.cos(angle), np.sin(angle), missing)

    def powers(self, s: np.ndarray, count: int) -> list[LogPower]:
        """log phi^T at rows ``s``, complex, and the first ``count`` frequencies of a; of "present" with + and -."""
        growth = np.expm1(np.outer(s, self.nodes.b))
        real, imag = _parts(growth * self.even, self.cosines[:, :count])
        real = real - self.missing[:count]
        if not np.any(self.odd):
            return [_log_power(real, imag, self.steps)]
        imag_odd, real_odd = _parts((1.0 + growth) * self.odd, self.sines[:, :count])
        return [_log_power(real - sign * real_odd, imag + sign * imag_odd, self.steps) for sign in (1.0, -1.0)]


Laws = Callable[[tuple[float, float]], Sequence[TiltedLaw]]
"""From frequencies of b and of a to one step of each kind, resolved up to them."""


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
    def of(cls, laws: Laws, counts: Sequence[int], ends: tuple[float, float]) -> OutsideBound | None:
        """Over [0, ends]; None if there are too many cells.

        First by few observations, whose phases turn slowly; by more of them only where these do not suffice.

        Args:
            laws: of one step of each kind, on nodes that resolve phases up to the frequencies that it is given.
            counts: how often each kind runs.
            ends: the frequencies of b and of a that matter.
        """
        shares = [share for share in _SHARES if share ** sum(counts) < _LEFT]
        rough = laws((0.0, 0.0))
        narrow = [law.near(shares[0])[1].deviation for law in rough]
        first = [_FIRST_CELL / math.sqrt(sum(counts)) / max(law.deviation[k] for law in rough) for k in (0, 1)]
        widest = [_WIDEST / min(each[k] for each in narrow) for k in (0, 1)]
        t, w = (_net(*axis) for axis in zip(ends, first, widest, strict=True))
        rows, columns = len(t) - 1, len(w) - 1
        if rows * columns > _MOST_CELLS:
            return None
        best = np.zeros((len(counts), rows, columns))
        for share in shares:
            checkpoint()
            inner, fine = np.s_[:rows, :columns], laws((float(t[rows]), float(w[columns])))
            near = [law.near(share) for law in fine]
            if rows * columns * sum(len(law.a) for _, law in near) > _MOST_WORK:
                break  # more observations are more work
            for known, (mass, law), count in zip(best, near, counts, strict=True):
                found = count * np.log(law.largest(t[: rows + 1], w[: columns + 1], mass))
                known[inner] = np.minimum(known[inner], found)
            left = np.argwhere(best.sum(axis=0)[inner] > _NOTHING)
            if not len(left):
                break
            rows, columns = (int(most) + 1 for most in left.max(axis=0))
        return cls(t[1:], w[1:], best.sum(axis=0))

    def summed(self, spacing: tuple[float, float], allowed: float) -> tuple[np.ndarray, float]:
        """(of each cell in t, the frequency of a up to which to sum; bound on the rest, as a sum times ``spacing``).

        The cells with the least bounds are left out, as many as ``allowed`` lets. A cell holds at most one point more
        than its sides over the spacings.

        Args:
            spacing: of the frequencies of b and of a.
            allowed: of the rest.
        """
        sides = np.diff(self.t, prepend=0.0) + spacing[0], np.diff(self.w, prepend=0.0) + spacing[1]
        rest = np.exp(self.logs) * np.outer(*sides)
        order = np.argsort(rest, axis=None)
        left_out = np.cumsum(rest.ravel()[order])
        kept = np.ones(rest.shape, dtype=bool)
        kept.ravel()[order[: np.searchsorted(left_out, allowed)]] = False
        last = np.where(kept.any(axis=1), kept.shape[1] - np.argmax(kept[:, ::-1], axis=1), 0)
        return np.append(0.0, self.w)[last], float(rest[~kept].sum()) * _UP


def _net(end: float, first: float, widest: float) -> np.ndarray:
    """0 < ... < end with steps of ``first`` that grow up to ``widest``."""
    points, width = [0.0], first
    while points[-1] < end and len(points) < _MOST_CELLS:
        points.append(points[-1] + width)
        width = max(min(width * _GROWTH, widest), first)
    return np.array(points)


@dataclass(frozen=True, slots=True)
class CertifiedBounds:
    """What a route certifies after all steps, by threshold; arrays of one length.

    Attributes:
        thresholds: l, log likelihood ratios, increasing, 0 among them.
        delta: upper bounds on E_P (LR - e^l)_+ where l >= 0, on E_P (1 - e^{-l} LR)_+ where l < 0; in (0, 1].
        tests: upper bounds on both errors, false positives first, of one legal test per threshold. They take as long
            again, and a search asks for them at its answer only.
    """

    thresholds: np.ndarray
    delta: np.ndarray
    tests: Callable[[], tuple[np.ndarray, np.ndarray]]

    @property
    def above(self) -> Polygon:
        """The tangents of ``delta``."""
        return polygon_above(self.thresholds, np.log(self.delta))

    def sides(self) -> Sides:
        """These on one side, the chords of the tests on the other."""
        fpr, fnr = self.tests()
        with np.errstate(divide="ignore"):
            rates = LogErrors(np.log(fpr), np.log1p(-fpr), np.log(fnr), np.log1p(-fnr))
        return Sides(self.above, polygon_through(rates.at(slice(None, None, -1))))


def _parts(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Real and imaginary part of complex rows times real columns."""
    return products(np.stack([left.real, left.imag]), right.T)


def _log_power(x: np.ndarray, y: np.ndarray, steps: int) -> LogPower:
    """log (1 + x + i y)^steps."""
    with np.errstate(divide="ignore"):
        size = 0.5 * steps * np.log1p(np.maximum(x * (2.0 + x) + y * y, -1.0))
    return LogPower(size, steps * np.arctan2(y, 1.0 + x))

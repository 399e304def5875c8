"""One step of the attacker who lacks a sign, and what a route finds after all steps.

The observation y is in units of the noise: N(0, 1) under "absent", moved by +m or -m where the target was sampled,
m = 1/noise_multiplier. The losses are l+- = log(1 - p + p exp(+-m y - m^2/2)), natural logarithms of "present with
that sign" over "absent". Routes use a = (l+ - l-)/2, odd in y, and b = (l+ + l-)/2, even in y. With A and B their
sums over the steps the likelihood ratio of "one unknown sign" is e^B cosh A.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from reticent.composition.pairs.gaussian_mixture import log_mixture
from reticent.composition.polygon import Polygon, polygon_above, polygon_through
from reticent.errors import NumericalError
from reticent.tradeoff import LogErrors
from reticent.tradeoff._logs import log1mexp

_MOST_NODES = 4_000_000
REACH = 9.5  # standard deviations of y past twice the shift that quadrature nodes cover


class Nodes(NamedTuple):
    """Trapezoid rule on y >= 0: weights under "absent" with both signs of y folded together, and the losses there."""

    weight: np.ndarray
    a: np.ndarray
    b: np.ndarray

    def log_moment(self, s: float, w: float) -> float:
        """log E e^{s b + w a} of one step under "absent", real arguments."""
        top = s * self.b + abs(w) * np.abs(self.a)
        shift = float(np.max(top + np.log(np.maximum(self.weight, 1e-320))))
        terms = self.weight * np.exp(top - shift) * 0.5 * (1.0 + np.exp(-2.0 * abs(w) * np.abs(self.a)))
        return shift + math.log(float(np.sum(terms)))


@dataclass(frozen=True, slots=True)
class SignStep:
    """One Poisson-sampled step.

    Attributes:
        rate: p, in (0, 1).
        slope: m, the clip norm over the standard deviation of the noise; > 0.
    """

    rate: float
    slope: float

    def loss(self, y: np.ndarray) -> np.ndarray:
        """l+ at real or complex ``y``, of its shape; l- is ``loss(-y)``."""
        exponent = self.slope * y - 0.5 * self.slope**2
        if np.iscomplexobj(y):  # in the strip of the quadrature, near the real axis
            with np.errstate(over="ignore"):
                return np.log1p(self.rate * np.expm1(exponent))
        return log_mixture([self.rate], [exponent])

    def losses(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(a, b) at real or complex ``y``."""
        up, down = self.loss(y), self.loss(-y)
        return 0.5 * (up - down), 0.5 * (up + down)

    def nodes(self, spacing: float, reach: float = REACH) -> Nodes:
        """Nodes ``spacing`` apart up to ``reach`` beyond twice the slope.

        Raises:
            NumericalError: too little noise for any number of nodes that fits.
        """
        count = (reach + 2.0 * self.slope) / spacing
        if not count < _MOST_NODES:
            raise NumericalError(f"common-sign composition: {count:.3g} nodes would be needed")
        y = np.arange(math.ceil(count) + 1) * spacing
        weight = np.exp(-0.5 * y * y) * (2.0 * spacing / math.sqrt(2.0 * math.pi))
        weight[0] *= 0.5
        return Nodes(weight, *self.losses(y))


class Pair(NamedTuple):
    """Polygons on both sides of the truth: never above it as a trade-off curve, never below it."""

    above: Polygon
    below: Polygon


@dataclass(frozen=True, slots=True)
class Bounds:
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

    def pair(self) -> Pair:
        """The tangents of ``delta`` on one side, the chords of the tests on the other."""
        with np.errstate(divide="ignore"):
            rates = (np.log(self.fpr), np.log1p(-self.fpr), np.log(self.fnr), np.log1p(-self.fnr))
            above = tangents(self.thresholds, np.log(self.delta))
        return Pair(above, polygon_through(LogErrors(*(rate[::-1] for rate in rates))))


def tangents(thresholds: np.ndarray, log_delta: np.ndarray) -> Polygon:
    """The curve bounded by logarithms of delta at ``thresholds``, oriented as in ``Bounds``."""
    log_delta = np.minimum(log_delta, 0.0)
    return polygon_above(thresholds, log_delta, log1mexp(log_delta))

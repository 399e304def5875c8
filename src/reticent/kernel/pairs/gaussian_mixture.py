"""Mixtures of normal laws with one variance: densities, losses and quadrature nodes, for whatever asks.

The target moves N(0, s^2) by ``shifts[k]`` with probability ``weights[k]``, and else not at all. One sampled Gaussian
step has one shift; several shifts are those of a whole user. How fine nodes are is the caller's: steering takes
few, a certificate plans them and bounds what they miss (``sampled_gaussian``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from reticent.kernel.curves._logs import HALF_LOG_TWO_PI, OVERFLOW
from reticent.kernel.pairs.columns import Numbers, functions

_CANCELS = -0.5  # sum of weight * (e^y - 1) below which 1 plus it loses digits


def log_mixture(weights: Sequence[float | np.ndarray], exponents: Sequence[np.ndarray]) -> np.ndarray:
    """log(1 - sum w + sum w e^y), relative accuracy near 0, no overflow.

    Args:
        weights: one for each exponent, in (0, 1], at most 1 in total; they broadcast against it.
        exponents: y, of one shape.
    """
    if len(weights) == 1 and exponents[0].max() <= OVERFLOW:
        weight, gain = weights[0], weights[0] * np.expm1(exponents[0])
        if (isinstance(weight, float) and weight <= -_CANCELS) or gain.min() >= _CANCELS:
            return np.log1p(gain)
    pairs = list(zip(weights, exponents, strict=True))
    gain = sum(w * np.expm1(np.minimum(y, OVERFLOW)) for w, y in pairs)
    largest = np.maximum.reduce(exponents)
    apart = (gain < _CANCELS) | (largest > OVERFLOW)
    with np.errstate(divide="ignore", invalid="ignore"):
        total = np.log1p(-np.minimum(sum(weights), 1.0))
        for w, y in pairs:
            total = np.logaddexp(total, np.log(w) + y)
        return np.where(apart, total, np.log1p(gain))


@dataclass(frozen=True)
class Nodes:
    """Quadrature nodes in the observation.

    Attributes:
        pair: whose.
        x, dx: observations and their distance.
        log_normal: log density of N(0, s^2).
        loss: L = log dQ/dP.
        weight: P-density times dx.
        mixture, mirrored: log of mixture over N(0, s^2) at x and at -x; the second is None if P is that normal law.
    """

    pair: GaussianMixture
    x: np.ndarray
    dx: Numbers
    log_normal: np.ndarray
    loss: np.ndarray
    weight: np.ndarray
    mixture: np.ndarray
    mirrored: np.ndarray | None

    def tilted(self, c: float) -> np.ndarray:
        """Density of P^(1-c) Q^c times dx."""
        return self.weight * np.exp(c * self.loss)

    @cached_property
    def blur(self) -> np.ndarray:
        """Relative rounding error behind a weight, absolute behind a loss, in eps: 6 and the size of the exponents."""
        furthest, variance = self.pair.shifts[-1], self.pair.noise_multiplier**2
        size = np.abs((self.x - 0.5 * furthest) * (furthest / variance))
        return size + (6.0 + (furthest**2 / variance if self.pair.antipodal else 0.0))


@dataclass(frozen=True)
class GaussianMixture:
    """P = N(0, s^2) against Q, the mixture; or, ``antipodal``, the mixture of mirrored shifts against the mixture.

    Attributes:
        noise_multiplier: s > 0, in units of the largest contribution of one record.
        weights: probability of each shift. Arrays of both for several laws at once, nodes along the last axis.
        shifts: increasing, > 0, in the same units.
        antipodal: the pair of the replacement relation.
    """

    noise_multiplier: Numbers
    weights: tuple[Numbers, ...]
    shifts: tuple[float, ...] = (1.0,)
    antipodal: bool = False

    def log_mixture(self, x: np.ndarray) -> np.ndarray:
        """log of the mixture over N(0, s^2) at observations x."""
        s = self.noise_multiplier
        return log_mixture(self.weights, [(x - 0.5 * shift) * (shift / (s * s)) for shift in self.shifts])

    def log_normal(self, x: np.ndarray) -> np.ndarray:
        """log density of N(0, s^2)."""
        s = self.noise_multiplier
        return x * x * (-0.5 / (s * s)) - (HALF_LOG_TWO_PI + functions(s).log(s))

    def loss(self, x: np.ndarray) -> np.ndarray:
        """L = log dQ/dP at observations x, increasing."""
        return self.log_mixture(x) - self.log_mixture(-x) if self.antipodal else self.log_mixture(x)

    def nodes(self, x: np.ndarray, dx: Numbers) -> Nodes:
        """Nodes at ``x``, evenly spaced by ``dx``."""
        mixture, log_p = self.log_mixture(x), self.log_normal(x)
        if not self.antipodal:
            return Nodes(self, x, dx, log_p, mixture, dx * np.exp(log_p), mixture, None)
        mirrored = self.log_mixture(-x)
        return Nodes(self, x, dx, log_p, mixture - mirrored, dx * np.exp(log_p + mirrored), mixture, mirrored)

    def halfway(self, reach: float, dx: float) -> tuple[np.ndarray, np.ndarray]:
        """(L, density of sqrt(PQ) times dx) on nodes ``reach`` deviations beyond all means: for even functions of L.

        That density of the antipodal pair is even, so nodes above 0 count for their mirror images as well.
        """
        high = self.shifts[-1] + reach * self.noise_multiplier
        if self.antipodal:
            x = dx * (np.arange(int(high / dx) + 2) + 0.5)
            mixture, mirrored = self.log_mixture(x), self.log_mixture(-x)
            loss, exponent, dx = mixture - mirrored, mixture + mirrored, 2.0 * dx
        else:
            low = self.shifts[-1] - high
            x = low + dx * np.arange(int((high - low) / dx) + 2)
            loss = exponent = self.log_mixture(x)
        return loss, np.exp(0.5 * exponent + (self.log_normal(x) + math.log(dx)))

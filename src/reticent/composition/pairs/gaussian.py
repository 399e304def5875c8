"""Gaussian noise without sampling: its transform."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reticent.composition.pairs.transforms import Decay, Transform

_EPS = 2.0**-52


@dataclass(frozen=True)
class PlainGaussian:
    """N(0, 1) against N(mu, 1): M(lambda) = exp(lambda (lambda - 1) mu^2 / 2), no error but rounding."""

    mu: float

    def transform(self, c: float, frequencies: np.ndarray) -> Transform:
        exponents = c + 1j * frequencies
        power = 0.5 * self.mu**2 * exponents * (exponents - 1.0)
        value = np.expm1(power)
        return Transform(value, 8 * _EPS * (np.abs(value) + np.abs(power) * np.exp(power.real)))

    def log_moment(self, exponents: np.ndarray) -> np.ndarray:
        return 0.5 * self.mu**2 * exponents * (exponents - 1.0) * (1.0 + 8 * _EPS) + 8 * _EPS

    def log_scale(self, c: float) -> float:
        return 0.5 * self.mu**2 * c * (c - 1.0)

    def moments(self, c: float) -> tuple[float, float]:
        return self.mu**2 * (c - 0.5), self.mu**2

    def decay(self, c: float) -> Decay:
        return _NormalDecay(self.mu)


@dataclass(frozen=True, slots=True)
class _NormalDecay:
    mu: float

    def log_bound(self, frequencies: np.ndarray) -> np.ndarray:
        return -0.5 * (self.mu * frequencies) ** 2 * (1.0 - 8 * _EPS)

"""What the transform route asks of the loss law of one step: M(lambda) = E_P[(dQ/dP)^lambda], with error bounds.

``PlainGaussian`` is that of Gaussian noise without sampling.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

_EPS = 2.0**-52


class Transform(NamedTuple):
    """M(c + it) - 1 per frequency (complex), and a bound on its absolute error."""

    excess: np.ndarray
    error: np.ndarray


class Decay(Protocol):
    """At one real part c."""

    def log_bound(self, frequencies: np.ndarray) -> np.ndarray:
        """Per frequency, an upper bound on log |M(c + it)| / M(c) for all t at least that large."""


class Law(Protocol):
    """The loss law of one step."""

    def transform(self, c: float, frequencies: np.ndarray) -> Transform:
        """M(c + it) - 1 at ``frequencies`` t, increasing from 0."""

    def log_moment(self, exponents: np.ndarray) -> np.ndarray:
        """Upper bounds on log M(c) at real ``exponents`` c; inf where there is none."""

    def log_scale(self, c: float) -> float:
        """log M(c), without a bound: whatever it is, values are divided by it and multiplied again."""

    def moments(self, c: float) -> tuple[float, float]:
        """Mean and variance of the loss under the law tilted by e^(cL): not certified, they only plan."""

    def decay(self, c: float) -> Decay:
        """Bounds on |M(c + it)| / M(c) beyond any frequency."""


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

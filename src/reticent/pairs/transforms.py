"""What the transform route asks of the loss law of one step: M(lambda) = E_P[(dQ/dP)^lambda], with error bounds.

``PlainGaussian`` is that of Gaussian noise without sampling.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from reticent.kernel.curves.sums import products, weighted
from reticent.kernel.stopping import checkpoint

_EPS = 2.0**-52
_FEW = 2800  # sines below which nothing is to be saved


class Transform(NamedTuple):
    """M(c + it) - 1 per frequency (complex), a bound on its absolute error, and its part that more nodes take away."""

    excess: np.ndarray
    error: np.ndarray
    rule: np.ndarray


class Decay(Protocol):
    """At one real part c."""

    def log_bound(self, frequencies: np.ndarray) -> np.ndarray:
        """Per frequency, an upper bound on log |M(c + it)| / M(c) for all t at least that large."""


class Law(Protocol):
    """The loss law of one step; or of several kinds of steps, which are then the first axis of all that it returns."""

    def transform(self, c: float, frequencies: np.ndarray) -> Transform:
        """M(c + it) - 1 at ``frequencies`` t, increasing from 0."""

    def log_moment(self, exponents: np.ndarray) -> np.ndarray:
        """Upper bounds on log M(c) at real ``exponents`` c; inf where there is none."""

    def log_scale(self, c: float) -> float | np.ndarray:
        """log M(c), without a bound: whatever it is, values are divided by it and multiplied again."""

    def moments(self, c: float) -> tuple[float | np.ndarray, float | np.ndarray]:
        """Mean and variance of the loss under the law tilted by e^(cL): not certified, they only plan."""

    def decay(self, c: float, *, closely: bool = False) -> Decay:
        """Bounds on |M(c + it)| / M(c) beyond any frequency; ``closely`` costs more, and serves few steps."""


@dataclass(frozen=True)
class PlainGaussian:
    """N(0, 1) against N(mu, 1): M(lambda) = exp(lambda (lambda - 1) mu^2 / 2), no error but rounding."""

    mu: float

    def transform(self, c: float, frequencies: np.ndarray) -> Transform:
        exponents = c + 1j * frequencies
        power = 0.5 * self.mu**2 * exponents * (exponents - 1.0)
        value = np.expm1(power)
        error = 8 * _EPS * (np.abs(value) + np.abs(power) * np.exp(power.real))
        return Transform(value, error, np.zeros(len(frequencies)))

    def log_moment(self, exponents: np.ndarray) -> np.ndarray:
        return 0.5 * self.mu**2 * exponents * (exponents - 1.0) * (1.0 + 8 * _EPS) + 8 * _EPS

    def log_scale(self, c: float) -> float:
        return 0.5 * self.mu**2 * c * (c - 1.0)

    def moments(self, c: float) -> tuple[float, float]:
        return self.mu**2 * (c - 0.5), self.mu**2

    def decay(self, c: float, *, closely: bool = False) -> Decay:
        return _NormalDecay(self.mu)


@dataclass(frozen=True, slots=True)
class _NormalDecay:
    mu: float

    def log_bound(self, frequencies: np.ndarray) -> np.ndarray:
        return -0.5 * (self.mu * frequencies) ** 2 * (1.0 - 8 * _EPS)


def turned(
    spacing: float | np.ndarray, first: int, count: int, losses: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Real and imaginary part of weights times e^(itL) - 1, summed, at t = k * spacing, k from first, count in all.

    k is one of about sqrt(count) coarse numbers plus one of as many fine ones. With u and v what e^(itL) - 1 is there,
    it is u + v + uv at the sum: few sines, and a product of matrices. Both are taken by half angles, and nothing
    cancels, so small losses keep their digits: each term is known to 16 eps of t |L|. |u| + |v| <= t |L| and
    |uv| <= 2 min(|u|, |v|), so the terms of all three sums together are at most 2 t |L|; ``SampledGaussian.turning``
    counts the roundings of these sums.

    Args:
        spacing: of frequencies; one for each law, or one for all.
        losses, weights: nodes along the last axis, several laws along the first.
    """
    checkpoint()
    unit = (0.5 * spacing if isinstance(spacing, float) else 0.5 * spacing[..., None]) * losses
    if count * losses.shape[-1] < _FEW:
        tangent, share = _halves(unit, np.arange(first, first + count, dtype=float))
        weights = 2.0 * weights
        imaginary = weighted(share, weights)
        tangent *= share
        return -weighted(tangent, weights), imaginary
    fine = round(math.sqrt(count))
    coarse = -(-count // fine)
    small = _turns(unit, np.concatenate([np.arange(fine), first + fine * np.arange(coarse)]))
    near, far = small[..., :fine, :], small[..., fine:, :] * weights[..., None, :]
    both = products(far, near)
    both += weighted(far, np.ones(far.shape[-1]))[..., None]
    both += weighted(near, weights)[..., None, :]
    result: np.ndarray = both.reshape(*both.shape[:-2], -1)[..., :count]
    return result.real, result.imag


def _turns(halves: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """e^(2ikx) - 1 for each of ``numbers`` k (the last axis but one) and ``halves`` x."""
    tangent, share = _halves(halves, numbers)
    turns = np.empty(share.shape, np.result_type(share, np.complex64))
    np.multiply(share, 2.0, out=turns.imag)
    tangent *= -2.0
    np.multiply(tangent, share, out=turns.real)
    return turns


def _halves(halves: np.ndarray, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(tan y, sin y cos y) at y = kx: e^(2iy) - 1 = 2 (i - tan y) sin y cos y, and one tangent costs less than both."""
    tangent = np.tan(numbers[:, None] * halves[..., None, :])
    share = tangent * tangent
    share += 1.0
    return tangent, np.divide(tangent, share, out=share)

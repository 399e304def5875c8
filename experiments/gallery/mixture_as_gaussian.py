"""Proposition 4 of CHERUBIN2024: how far a sampled Gaussian step is from the one Gaussian with its mean."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from reticent.kernel import checks
from reticent.kernel.curves._logs import OVERFLOW

_FAR = 40.0  # standard deviations: beyond, both densities are 0


def mixture_error(noise_multiplier: float, sample_rate: float, steps: int = 1) -> tuple[float, float]:
    """(lower, upper) around the total variation between T sampled steps and N(p, s^2) in each; equal for one step.

    One step is (1 - p) N(0, s^2) + p N(1, s^2). Its log density ratio to N(p, s^2) is convex, so the two cross twice
    and the distance is one integral (200 Gauss nodes). Over T independent steps it is at least that of one, and at
    most T times it. CHERUBIN2024 states the order sqrt(p T) / s without a constant (``published_order``).

    Args:
        noise_multiplier: s > 0.
        sample_rate: p in (0, 1].
        steps: T >= 1.

    Raises:
        ParameterError: an argument is outside its domain.
    """
    s, p = checks.positive(noise_multiplier=noise_multiplier), checks.rate(sample_rate=sample_rate)
    count = checks.count(steps=steps)
    if p == 1.0:
        return 0.0, 0.0
    one = min(_one_step(s, p), 1.0)
    return one, min(count * one, 1.0)


def published_order(noise_multiplier: float, sample_rate: float, steps: int) -> float:
    """sqrt(p T) / s: the error term of Proposition 4 as printed, without its constant; above 1 it says nothing.

    Args:
        noise_multiplier: s > 0.
        sample_rate: p in (0, 1].
        steps: T >= 1.

    Raises:
        ParameterError: an argument is outside its domain.
    """
    noise = checks.positive(noise_multiplier=noise_multiplier)
    return math.sqrt(checks.rate(sample_rate=sample_rate) * checks.count(steps=steps)) / noise


def _one_step(s: float, p: float) -> float:
    from scipy.optimize import brentq  # costly to import, and only this asks for it

    def log_ratio(x: float) -> float:
        return float(np.logaddexp(math.log1p(-p), math.log(p) + (x - 0.5) / s**2) - p * (x - 0.5 * p) / s**2)

    # At x = 1/2 the mixture is e^0 against e^(p (1 - p) / (2 s^2)): below. Convex: it exceeds on both sides.
    low, high = 0.5, 0.5
    while log_ratio(low) <= 0.0 and low > p - _FAR * s:
        low -= s
    while log_ratio(high) <= 0.0 and high < p + _FAR * s:
        high += s
    left = brentq(log_ratio, low, 0.5) if log_ratio(low) > 0.0 else low
    right = brentq(log_ratio, 0.5, high) if log_ratio(high) > 0.0 else high
    half = 0.5 * (right - left)
    nodes, weights = _gauss()
    x = 0.5 * (left + right) + half * nodes
    gain = np.log1p(p * np.expm1(np.minimum((x - 0.5) / s**2, OVERFLOW))) - p * (x - 0.5 * p) / s**2
    density = np.exp(-0.5 * ((x - p) / s) ** 2) / (s * math.sqrt(2.0 * math.pi))
    return float(-half * (weights @ (density * np.expm1(gain))))


@cache
def _gauss() -> tuple[np.ndarray, np.ndarray]:
    """200 nodes and weights on [-1, 1]: milliseconds, that only this formula costs."""
    return np.polynomial.legendre.leggauss(200)

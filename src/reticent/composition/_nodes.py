"""The observations at which a sampled Gaussian is integrated, and the factors of its integrand, with bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

HALF_LOG_TWO_PI = 0.9189385332046727
_ANGLES = np.pi * np.array([0.3, 0.6, 0.8, 0.92])
_ROOT_TWO = 1.4142135623730951
_SINC_FLOOR = 0.217233628211222
_PLACES = np.linspace(-12.0, 12.0, 97)


class Pair(Protocol):
    """What defines the two laws of one step; see ``laws.SampledGaussian``."""

    @property
    def noise_multiplier(self) -> float: ...

    @property
    def rate(self) -> float: ...

    @property
    def antipodal(self) -> bool: ...


@dataclass(frozen=True)
class Nodes:
    """Quadrature nodes and what all contours share.

    Attributes:
        x, dx: observations and their distance.
        loss, growth: L and e^L - 1.
        weight, blurred: P-weights; the same times the relative error, in eps, behind a loss.
        size: size of the exponents behind a loss.
        odds, mirrored_odds: rate r / (1 - rate) at x and at -x.
        mixture, mirrored: log(1 - rate + rate r) at x and at -x.
        peaks: log of the largest normal density on each cell times dx.
    """

    x: np.ndarray
    dx: float
    loss: np.ndarray
    growth: np.ndarray
    weight: np.ndarray
    blurred: np.ndarray
    size: np.ndarray
    odds: np.ndarray
    mirrored_odds: np.ndarray | None
    mixture: np.ndarray
    mirrored: np.ndarray | None
    peaks: np.ndarray

    def argument(self, angle: float) -> np.ndarray:
        """Bounds per cell (and both tails) on |arg (dQ/dP)| on the line Im x = angle s^2."""
        turn = argument(self.odds, angle)
        if self.mirrored_odds is None:
            return np.concatenate([[turn[0]], turn[1:], [angle]])
        back = argument(self.mirrored_odds, angle)
        return np.concatenate([[2.0 * angle], turn[1:] + back[:-1], [2.0 * angle]])


def nodes_of(law: Pair, x: np.ndarray, dx: float) -> Nodes:
    exponent, log_odds = exponent_of(law, x), math.log(law.rate) - math.log1p(-law.rate)
    mixture, size = log_mixture(law.rate, exponent), np.abs(exponent)
    loss, log_p, mirrored, mirrored_odds = mixture, log_normal(law, x), None, None
    if law.antipodal:
        back = exponent_of(law, -x)
        mirrored, size = log_mixture(law.rate, back), size + 1.0 / law.noise_multiplier**2
        loss, log_p = mixture - mirrored, log_p + mirrored
        mirrored_odds = np.exp(np.minimum(log_odds + back, 600.0))
    weight = dx * np.exp(log_p)
    return Nodes(
        x=x,
        dx=dx,
        loss=loss,
        growth=np.expm1(np.minimum(loss, 700.0)),
        weight=weight,
        blurred=weight * (6.0 + size),
        size=size,
        odds=np.exp(np.minimum(log_odds + exponent, 600.0)),
        mirrored_odds=mirrored_odds,
        mixture=mixture,
        mirrored=mirrored,
        peaks=math.log(dx) + normal_extreme(law, x, largest=True),
    )


def exponent_of(law: Pair, x: np.ndarray) -> np.ndarray:
    """log of N(1, s^2) / N(0, s^2) at x."""
    return (x - 0.5) / x.dtype.type(law.noise_multiplier) ** 2


def log_mixture(rate: float, exponent: np.ndarray) -> np.ndarray:
    """log(1 - rate + rate e^exponent), relative accuracy near 0."""
    small = np.log1p(rate * np.expm1(np.minimum(exponent, 30.0)))
    if exponent.max(initial=0.0) <= 30.0:
        return small
    return np.where(exponent > 30.0, np.logaddexp(np.log1p(-rate), np.log(rate) + exponent), small)


def log_normal(law: Pair, x: np.ndarray) -> np.ndarray:
    """log density of N(0, s^2)."""
    s = law.noise_multiplier
    return -0.5 * (x / s) ** 2 - (HALF_LOG_TWO_PI + math.log(s))


def log_ratio(law: Pair, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Losses, log density of P, and the size of the exponents, at observations x."""
    s, log_p = law.noise_multiplier, log_normal(law, x)
    exponent = exponent_of(law, x)
    loss = log_mixture(law.rate, exponent)
    if not law.antipodal:
        return loss, log_p, np.abs(exponent)
    back = log_mixture(law.rate, exponent_of(law, -x))
    return loss - back, log_p + back, np.abs(exponent) + 1.0 / s**2


def posterior(law: Pair, x: np.ndarray) -> np.ndarray:
    """Probability that the target took part, given x: s^2 dL/dx of the one-sided pair; increasing."""
    log_odds = np.log(law.rate) - np.log1p(-law.rate) + exponent_of(law, x)
    return np.exp(-np.logaddexp(0.0, -log_odds))


def normal_extreme(law: Pair, x: np.ndarray, largest: bool) -> np.ndarray:
    """log of the largest (or smallest) normal density on each cell."""
    top = -HALF_LOG_TWO_PI - np.log(law.noise_multiplier)
    log_p = top - 0.5 * (x / law.noise_multiplier) ** 2
    if not largest:
        return np.minimum(log_p[:-1], log_p[1:])
    straddles = (x[:-1] < 0.0) & (x[1:] > 0.0)
    return np.where(straddles, top, np.maximum(log_p[:-1], log_p[1:]))


def cell_least(law: Pair, x: np.ndarray, c: float) -> np.ndarray:
    """log of a lower bound on P (dQ/dP)^c on each cell, factor by factor."""
    power = c * log_mixture(law.rate, exponent_of(law, x))
    total = normal_extreme(law, x, largest=False) + np.minimum(power[:-1], power[1:])
    if law.antipodal:
        power = (1.0 - c) * log_mixture(law.rate, exponent_of(law, -x))
        total = total + np.minimum(power[:-1], power[1:])
    return total


def argument(odds: np.ndarray, angle: float | np.ndarray) -> np.ndarray:
    """arg(1 + odds e^(i angle)), increasing in odds."""
    return np.arctan2(odds * np.sin(angle), 1.0 + odds * np.cos(angle))


def shrink(power: float, angle: float) -> float:
    """log of what |1 - rate + rate e^(i angle) r|^power can exceed its value at angle 0 by."""
    return power * math.log(math.cos(0.5 * angle)) if power < 0.0 else 0.0


def log_tail(z: float) -> float:
    """log P(N > z); for z <= 0 a bound on any sum of nodes of the density, spacing at most 0.55 sd."""
    if z <= 0.0:
        return 0.25
    return math.log(0.5 * math.erfc(z / _ROOT_TWO)) if z < 30.0 else -0.5 * z * z - math.log(z) - HALF_LOG_TWO_PI


def sinc_envelope(y: np.ndarray) -> np.ndarray:
    """sup of |sin z / z| over z >= y."""
    y = np.maximum(y, 1e-300)
    floor = np.minimum(_SINC_FLOOR, 1.0 / y)
    return np.where(y < np.pi, np.maximum(np.sinc(np.minimum(y, np.pi) / np.pi), floor), floor)


def strips(noise_multiplier: float, digits: float) -> np.ndarray:
    """Angles in (0, pi), increasing: the trapezoid rule's error is bounded on the lines Im x = angle s^2.

    Beyond angle s = sqrt(2 digits) a wider strip needs more nodes for an error of e^-digits, not fewer.
    """
    return _ANGLES * min(1.0, math.sqrt(2.0 * digits) / (noise_multiplier * float(_ANGLES[-1])))


def argument_reach(
    noise_multiplier: float, rate: float, antipodal: bool, variance: float, angles: np.ndarray
) -> np.ndarray:
    """How far e^(t arg) outgrows the normal density and the composed decay e^(-t^2 variance / 2), in logs.

    ``angles``: shape (n,); one value for each.
    """
    angles = angles[:, None]
    s = noise_multiplier
    x = s * _PLACES
    odds = np.exp(np.minimum(math.log(rate) - math.log1p(-rate) + (x - 0.5) / s**2, 600.0))
    turn = argument(odds, angles)
    turn = turn + turn[:, ::-1] if antipodal else turn
    t = np.minimum(turn / variance, 10.0 / math.sqrt(variance))
    growth = t * turn - 0.5 * _PLACES**2 - 0.5 * variance * t * t
    return np.maximum(growth.max(axis=1), 0.0) + 4.0

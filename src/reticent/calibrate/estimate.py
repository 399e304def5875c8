"""Fast estimates of the worst-case profile, to steer the search; nothing is ever claimed from them.

For one Poisson-sampled Gaussian step with laws P (present) and Q (absent), L = log P/Q and
psi(t) = int sqrt(PQ) e^{itL}, T steps give 1 - delta(e) = e^{e/2}/pi int Re[e^{-ite} psi(t)^T]/(t^2 + 1/4) dt.
The trapezoid rule with spacing 2 pi/W adds the images of the kernel exp(-|x|/2), whose sum is known:
(1 + e^e)/(e^{W/2} - 1) as long as the loss stays within W/2. Some 40 frequencies do.
"""

from __future__ import annotations

import math

import numpy as np

from reticent.composition._affinity import affinity
from reticent.mechanism import Neighbouring

_BLOCK = 64
_MOST = 4096
_SMALL = 1e-14
_REACH = 9.5
_LOG_ROOT_TWO_PI = 0.9189385332046727


class Profile:
    """delta(epsilon) of the symmetrised worst case of a Poisson-sampled DP-SGD run, about 1e-11 absolute.

    Attributes:
        reliable: False where the transform does not decay (few sampled steps with little noise).
    """

    def __init__(self, noise: float, rate: float, steps: float, neighbouring: Neighbouring, largest: float) -> None:
        self.symmetric = neighbouring is Neighbouring.REPLACE
        one = affinity(np.array(noise), np.array(rate), neighbouring)
        spread = math.sqrt(steps * float(one.variance))
        skew = float(one.fourth) / (steps * float(one.variance) ** 2)
        self.width = 2.0 * (largest + abs(steps * float(one.mean)) + (8.5 + min(skew, 8.0)) * spread)
        self.reliable = math.isfinite(spread) and skew < 5.0 and 0.0 < spread < 100.0
        if self.reliable:
            self._transform(noise, rate, steps)

    def delta(self, epsilon: np.ndarray) -> np.ndarray:
        """Larger of both directions, for epsilon >= 0 up to ``largest``."""
        add = self._one(epsilon, 1.0)
        return add if self.symmetric else np.maximum(add, self._one(epsilon, -1.0))

    def _one(self, epsilon: np.ndarray, sign: float) -> np.ndarray:
        epsilon = np.asarray(epsilon, dtype=float)
        turned = np.exp(np.multiply.outer(epsilon, -1j * sign * self._t)) @ self._values
        images = (1.0 + np.exp(epsilon)) / math.expm1(min(0.5 * self.width, 700.0))
        overlap = np.exp(0.5 * epsilon) * turned.real - images
        return np.clip(1.0 - overlap, 0.0, 1.0)

    def _transform(self, noise: float, rate: float, steps: float) -> None:
        mass, loss = _nodes(noise, rate, self.symmetric)
        missing = 0.5 * float(mass @ (2.0 * np.sinh(0.25 * loss)) ** 2)
        spacing, start, parts = 2.0 * math.pi / self.width, 0, []
        while start < _MOST:
            t = spacing * np.arange(start, start + _BLOCK)
            half = np.multiply.outer(t, 0.5 * loss)
            real = -missing - 2.0 * np.sin(half) ** 2 @ mass
            imag = np.zeros_like(real) if self.symmetric else np.sin(2.0 * half) @ mass
            log_size = 0.5 * np.log1p(np.maximum(real * (2.0 + real) + imag * imag, -1.0 + 1e-300))
            parts.append(np.exp(steps * (log_size + 1j * np.arctan2(imag, 1.0 + real))))
            start += _BLOCK
            if abs(parts[-1][-1]) < _SMALL * max(1.0, float(t[-1])):
                break
        else:
            self.reliable = False
        values = np.concatenate(parts)
        self._t = spacing * np.arange(len(values))
        self._values = values * (spacing / math.pi) / (self._t**2 + 0.25)
        self._values[0] *= 0.5


def _nodes(noise: float, rate: float, symmetric: bool) -> tuple[np.ndarray, np.ndarray]:
    """Trapezoid masses of sqrt(PQ) and the losses at the nodes."""
    step = 0.5 * min(0.74, 2.0 * math.pi**2 * noise / (36.0 + 0.5 * (math.pi * noise) ** 2))
    low = -_REACH - (2.0 / noise if symmetric else 0.0)
    z = np.arange(low, _REACH + 2.0 / noise, step)
    up = _log_mixture(z / noise - 0.5 / noise**2, rate)
    down = _log_mixture(-z / noise - 0.5 / noise**2, rate) if symmetric else np.zeros_like(up)
    return step * np.exp(0.5 * (up + down) - 0.5 * z * z - _LOG_ROOT_TWO_PI), up - down


def _log_mixture(exponent: np.ndarray, rate: float) -> np.ndarray:
    return np.where(
        exponent > 30.0, np.log(rate) + exponent, np.log1p(rate * np.expm1(np.minimum(exponent, 30.0)) * (1.0 - 1e-16))
    )

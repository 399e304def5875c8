"""Fast estimates of the worst-case profile, to steer the search; nothing is ever claimed from them.

For one Poisson-sampled Gaussian step with laws P (present) and Q (absent), L = log P/Q and
psi(t) = int sqrt(PQ) e^{itL}, T steps give 1 - delta(e) = e^{e/2}/pi int Re[e^{-ite} psi(t)^T]/(t^2 + 1/4) dt.
The trapezoid rule with spacing 2 pi/W adds the images of the kernel exp(-|x|/2), whose sum is known:
(1 + e^e)/(e^{W/2} - 1) as long as the loss stays within W/2. Some 40 frequencies do.

``composition.fast`` has the same sum at a tenth of the cost, for maps; its 1e-10 absolute is a relative 1e-3 of
a delta of 1e-7, which would leave a search for epsilon at small delta to the claims. This one keeps 1e-9 there.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from reticent.composition import closed_forms
from reticent.composition._affinity import affinity
from reticent.mechanism import Neighbouring

_BLOCK = 64
_MOST = 4096
_SMALL = 1e-14
_REACH = 9.5
_FURTHEST = 40.0
_LOG_ROOT_TWO_PI = 0.9189385332046727


class Profile:
    """delta(epsilon) of the symmetrised worst case of a Poisson-sampled DP-SGD run, about 1e-12 absolute.

    Attributes:
        largest: the largest epsilon that is asked for, and at most 40 standard deviations of the loss.
        spread: standard deviation of the composed loss under the law sqrt(PQ).
        kurtosis: excess of the composed loss; large where few sampled steps matter.
        reliable: False where the transform does not decay (few sampled steps with little noise).
    """

    def __init__(
        self, noise: float, rate: float, steps: float, neighbouring: Neighbouring, largest: float | None = None
    ) -> None:
        if largest is None:
            largest = 3.0 + 6.0 * min(float(closed_forms.clt_mu(noise, rate, steps, neighbouring)), 6.0)
        self.symmetric = neighbouring is Neighbouring.REPLACE
        one = affinity(np.array(noise), np.array(rate), neighbouring)
        self.spread = math.sqrt(steps * float(one.variance))
        self.kurtosis = float(one.fourth) / (steps * float(one.variance) ** 2)
        self.largest = min(largest, (1.0 + self.kurtosis) * _FURTHEST * self.spread)
        reach = abs(steps * float(one.mean)) + (8.5 + min(self.kurtosis, 8.0)) * self.spread
        self.width = 2.0 * (self.largest + reach)
        self.reliable = math.isfinite(self.spread) and self.kurtosis < 5.0 and 0.0 < self.spread < 100.0
        if self.reliable:
            self._transform(noise, rate, steps)

    def delta(self, epsilon: np.ndarray) -> np.ndarray:
        """Larger of both directions, for epsilon >= 0; 0 beyond ``largest``."""
        add = self._one(epsilon, 1.0)
        both = add if self.symmetric else np.maximum(add, self._one(epsilon, -1.0))
        return np.where(epsilon <= self.largest, both, 0.0)

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


def epsilon_of(profile: Profile, delta: float) -> tuple[float, float]:
    """(epsilon at ``delta``, -d log delta / d epsilon there); (0, 1) where no epsilon is needed."""
    low, high, slope = 0.0, profile.largest, 1.0
    for _ in range(5):
        grid = np.linspace(low, high, 33)
        logs = np.log(np.maximum(profile.delta(grid), 1e-300))
        if logs[0] <= math.log(delta):
            return low, slope
        place = int(np.argmax(logs <= math.log(delta))) or 32
        low, high = float(grid[place - 1]), float(grid[place])
        slope = float(logs[place - 1] - logs[place]) / (high - low)
    return low + float(logs[place - 1] - math.log(delta)) / slope, slope


def power_of(delta: Callable[[np.ndarray], np.ndarray], fpr: float, largest: float) -> tuple[float, float]:
    """(true positive rate at ``fpr``, threshold l of its tangent): the least of delta(l) + e^l fpr over l."""
    left, right, power, best = -largest, largest, 1.0, 0.0
    for _ in range(5):
        grid = np.linspace(left, right, 61)
        grown, values = np.exp(grid), delta(np.abs(grid))
        values = np.where(grid < 0.0, 1.0 - grown + grown * values, values) + grown * fpr
        place = int(np.argmin(values))
        power, best = float(values[place]), float(grid[place])
        left, right = float(grid[max(place - 1, 0)]), float(grid[min(place + 1, 60)])
    return min(power, 1.0), best


def _nodes(noise: float, rate: float, symmetric: bool) -> tuple[np.ndarray, np.ndarray]:
    """Trapezoid masses of sqrt(PQ) and the losses at the nodes."""
    strip = min(math.pi * noise, math.sqrt(72.0))
    step = math.pi * strip / (36.0 + 0.5 * strip**2)
    low = -_REACH - (2.0 / noise if symmetric else 0.0)
    z = np.arange(low, _REACH + 2.0 / noise, step)
    up = _log_mixture(z / noise - 0.5 / noise**2, rate)
    down = _log_mixture(-z / noise - 0.5 / noise**2, rate) if symmetric else np.zeros_like(up)
    return step * np.exp(0.5 * (up + down) - 0.5 * z * z - _LOG_ROOT_TWO_PI), up - down


def _log_mixture(exponent: np.ndarray, rate: float) -> np.ndarray:
    return np.where(
        exponent > 30.0, np.log(rate) + exponent, np.log1p(rate * np.expm1(np.minimum(exponent, 30.0)) * (1.0 - 1e-16))
    )

"""Point values in well under a millisecond: estimates for searches and maps, and a certified advantage.

Same mathematics as ``spectrum`` with the contour between the poles (c = 1/2) and without the certificate:
with S the composed loss, M its transform divided by nothing, h the spacing and W = 2 pi / h,

    advantage = 1 - (h / 2 pi) sum_k Re M(1/2 + ikh) / (k^2 h^2 + 1/4) + 2 / (e^(W/2) - 1).

Some 30 to 90 nodes and 10 to 20 frequencies give 1e-9.
"""

from __future__ import annotations

import contextlib
import math
from functools import cached_property

import numpy as np
from scipy.special import erf

from reticent import _check
from reticent.composition.certified import enclose_advantage
from reticent.composition.compose import compose
from reticent.errors import NumericalError
from reticent.mechanism import DPSGD, Neighbouring

_REACH = 6.8
_DIGITS = 23.0  # aliases, truncation and the quadrature rule each aim at e^-23
_MOST_FREQUENCIES = 1024
_ROOT_TWO_PI = 2.5066282746310002
_ROOT_EIGHT = 2.8284271247461903


class Profile:
    """The composed loss of a Poisson-sampled DP-SGD run on the line c = 1/2: add direction, estimates.

    Attributes:
        window: W, widened by ``room`` (1 for the advantage, 1.7 for tails).
        reliable: False where the transform does not decay (few sampled steps with little noise); values
            then mean nothing and ``compose`` should be asked.
    """

    def __init__(
        self, noise_multiplier: float, sample_rate: float, steps: int, neighbouring: Neighbouring, room: float = 1.0
    ) -> None:
        self.symmetric = neighbouring is Neighbouring.REPLACE
        weight, loss = _nodes(noise_multiplier, sample_rate, self.symmetric)
        mean = float(weight @ loss)
        square = loss * loss
        variance = steps * float(weight @ square)
        self.spread = math.sqrt(variance)
        tail = steps * float(weight @ (square * square)) / variance**2
        self.window = room * (8.8 + min(2.0 * tail**0.75, 30.0)) * self.spread + room * steps * abs(mean)
        self.reliable = 0.0 < self.spread < 60.0
        missing = -0.5 * float(weight @ (2.0 * np.sinh(0.25 * loss)) ** 2)
        self.frequencies, self.values = self._transform(weight, loss, steps, missing, 6.8 / self.spread)

    def _transform(
        self, weight: np.ndarray, loss: np.ndarray, steps: int, missing: float, last: float
    ) -> tuple[np.ndarray, np.ndarray]:
        spacing = 2.0 * math.pi / self.window
        count = int(last / spacing) + 2
        while True:
            t = spacing * np.arange(count)
            half = np.multiply.outer(t, 0.5 * loss)
            sine = np.sin(half)
            real = missing - 2.0 * (sine * sine) @ weight
            size = 0.5 * steps * np.log1p(real * (2.0 + real)) if self.symmetric else None
            if size is None:
                imaginary = 2.0 * (sine * np.cos(half)) @ weight
                size = 0.5 * steps * np.log1p(real * (2.0 + real) + imaginary * imaginary)
                values = np.exp(size + 1j * (steps * np.arctan2(imaginary, 1.0 + real)))
            else:
                values = np.exp(size) * np.where(real < -1.0, (-1.0) ** (steps % 2), 1.0) + 0j
            if size[-1] < -_DIGITS or count > _MOST_FREQUENCIES:
                self.reliable &= bool(size[-1] < -_DIGITS)
                return t, values
            count *= 2

    def advantage(self) -> float:
        """delta(0)."""
        t, h = self.frequencies, self.frequencies[1]
        kernel = h / math.pi / (t * t + 0.25)
        kernel[0] *= 0.5
        tail = 2.0 / math.expm1(0.5 * self.window) if self.window < 1000.0 else 0.0
        return min(max(1.0 + tail - float(kernel @ self.values.real), 0.0), 1.0)

    def delta(self, epsilon: np.ndarray) -> np.ndarray:
        """delta of the add direction at any real ``epsilon`` (one-dimensional array) within the window."""
        turned = (np.exp(np.multiply.outer(epsilon, self._turns)) @ self._kernels[:, 0]).real
        return self._completed(epsilon, turned)

    def _completed(self, epsilon: np.ndarray, turned: np.ndarray) -> np.ndarray:
        return 1.0 - np.exp(0.5 * epsilon) * turned + (1.0 + np.exp(epsilon)) * self._images

    def rates(self, thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(alpha, beta) of the test "loss > threshold"."""
        turned = (np.exp(np.multiply.outer(thresholds, self._turns)) @ self._kernels[:, 2:]).real
        grown = np.exp(0.5 * thresholds)
        return turned[:, 0] / grown - self._images, turned[:, 1] * grown - self._images

    @cached_property
    def _turns(self) -> np.ndarray:
        return -1j * self.frequencies

    @cached_property
    def _images(self) -> float:
        return 1.0 / math.expm1(0.5 * self.window)

    @cached_property
    def _kernels(self) -> np.ndarray:
        """Columns: of delta, of delta at the mirrored threshold, of alpha, of beta."""
        t = self.frequencies
        scaled = self.values * (t[1] / math.pi)
        scaled[0] *= 0.5
        pole = 1.0 / (0.5 + 1j * t)
        both = scaled / (t * t + 0.25)
        return np.array([both, both.conj(), scaled * pole, scaled * pole.conj()]).T

    def summary(self, delta: float, alphas: np.ndarray) -> tuple[float, float, np.ndarray, np.ndarray]:
        """(advantage, epsilon at ``delta``, betas of the add direction, betas of the remove direction)."""
        levels = np.concatenate([alphas, alphas])
        second = np.arange(len(levels)) >= len(alphas)
        alpha, beta = self.rates(self._thresholds(levels, second))
        count = len(alphas)
        return self.advantage(), self.epsilon(delta), beta[:count], beta[:count] if self.symmetric else alpha[count:]

    def _thresholds(self, levels: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Thresholds where alpha, or beta where ``second``, meets each level.

        A grid brackets every root; Illinois steps on log rates stay inside the bracket.
        """
        grid = np.linspace(-0.62, 0.62, 64) * self.window
        alpha, beta = self.rates(grid)
        over = np.where(second[:, None], beta < levels[:, None], alpha > levels[:, None])
        place = np.clip(np.sum(over, axis=1), 1, len(grid) - 1)
        low, high = grid[place - 1], grid[place]
        sign, targets = np.where(second, -1.0, 1.0), np.log(levels)

        def miss(rates: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
            return sign * (_log(np.where(second, rates[1], rates[0])) - targets)

        below, above = miss((alpha[place - 1], beta[place - 1])), miss((alpha[place], beta[place]))
        side = np.zeros(len(levels))
        for _ in range(40):
            trial = np.where(below > above, low + (high - low) * below / (below - above), 0.5 * (low + high))
            trial = np.clip(trial, low, high)
            off = miss(self.rates(trial))
            if np.all((np.abs(off) < 2e-9) | (high - low < 1e-13 * self.spread)):
                break
            left = off > 0.0
            below = np.where(left, off, np.where(side < 0.0, 0.5 * below, below))
            above = np.where(left, np.where(side > 0.0, 0.5 * above, above), off)
            low, high = np.where(left, trial, low), np.where(left, high, trial)
            side = np.where(left, 1.0, -1.0)
        return trial

    def epsilon(self, delta: float) -> float:
        """Least epsilon >= 0 with both directions' delta at most ``delta``."""
        grid = np.linspace(0.0, 0.62 * self.window, 24)
        for _ in range(5):
            both = self._both(grid)
            if both[0] <= delta:
                return float(grid[0])
            place = max(1, int(np.argmax(both < delta)))
            low, high = float(grid[place - 1]), float(grid[place])
            slope = math.log(both[place - 1] / max(both[place], 1e-300))
            guess = low + (high - low) * math.log(both[place - 1] / delta) / slope
            if high - low < 1e-5 * self.spread:
                break
            step = 0.01 * (high - low)
            near = [min(max(guess + k * step, low), high) for k in range(-2, 3)]
            grid = np.array([low, *near, high])
        return float(guess)

    def _both(self, epsilon: np.ndarray) -> np.ndarray:
        turned = (np.exp(np.multiply.outer(epsilon, self._turns)) @ self._kernels[:, :2]).real
        add = self._completed(epsilon, turned[:, 0])
        if self.symmetric:
            return add
        return np.maximum(add, 1.0 - np.exp(epsilon) * (1.0 - self._completed(-epsilon, turned[:, 1])))


def advantage(noise_multiplier: float, sample_rate: float, steps: int, neighbouring: Neighbouring) -> float:
    """Worst-case advantage of a Poisson-sampled DP-SGD run: an estimate, error below 1e-8.

    Falls back to the certified enclosure's upper end (slower) where the fast rule does not apply.
    """
    noise, rate = _check.non_negative(noise_multiplier=noise_multiplier), _check.rate(sample_rate=sample_rate)
    _check.count(steps=steps)
    if noise > 0.0 and rate == 1.0:
        return float(erf(neighbouring.sensitivity * math.sqrt(steps) / (noise * _ROOT_EIGHT)))
    if noise > 0.05:
        with np.errstate(all="ignore"):
            profile = Profile(noise, rate, steps, neighbouring)
        if profile.reliable:
            return profile.advantage()
    return certified_advantage(noise, rate, steps, neighbouring)[1]


def certified_advantage(
    noise_multiplier: float, sample_rate: float, steps: int, neighbouring: Neighbouring
) -> tuple[float, float]:
    """(lower, upper) around the same, proven; width mostly below 1e-8, never above that of ``compose``."""
    noise, rate = _check.non_negative(noise_multiplier=noise_multiplier), _check.rate(sample_rate=sample_rate)
    _check.count(steps=steps)
    if noise > 0.0 and rate < 1.0:
        for room in (1.0, 2.0):
            with contextlib.suppress(NumericalError):
                lower, upper = enclose_advantage(noise, rate, steps, neighbouring is Neighbouring.REPLACE, room)
                if upper - lower < 1e-7:
                    return lower, upper
    bracket = compose(DPSGD(noise, rate, steps), neighbouring)
    upper = float(bracket.pessimistic.delta(0.0))
    return min(float(bracket.optimistic.delta(0.0)), upper), upper  # rounding may exchange equal ends


def _nodes(noise: float, rate: float | np.ndarray, symmetric: bool) -> tuple[np.ndarray, np.ndarray]:
    """Weights sqrt(PQ) dx and losses log(dQ/dP)."""
    inverse = noise**-2.0
    dx = min(0.5 * noise, 18.0 * noise * noise / (_DIGITS + 12.0 + 4.0 * noise * noise))
    low = -(1.0 + _REACH * noise) if symmetric else -_REACH * noise
    x = low + dx * np.arange(int((1.0 + _REACH * noise - low) / dx) + 2)
    loss = np.log1p(rate * np.expm1(np.minimum((x - 0.5) * inverse, 600.0)))
    normal = (dx / (noise * _ROOT_TWO_PI)) * np.exp(-0.5 * inverse * x * x)
    if not symmetric:
        return normal * np.exp(0.5 * loss), loss
    back = np.log1p(rate * np.expm1(np.minimum((-x - 0.5) * inverse, 600.0)))
    return normal * np.exp(0.5 * (loss + back)), loss - back


def _log(values: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(values, 1e-300))


def advantage_map(
    noise_multipliers: np.ndarray, sample_rates: np.ndarray, steps: int, neighbouring: Neighbouring
) -> np.ndarray:
    """``advantage`` on a grid; shape (noise multipliers, sample rates), estimates with error below 1e-8.

    Nodes are shared by a row of the grid. Where the transform does not decay within 4096 frequencies (few
    sampled steps, little noise) the upper end of a certified enclosure is given: slower, and safe.

    Args:
        noise_multipliers: one-dimensional, > 0.
        sample_rates: one-dimensional, in (0, 1].
        steps: noisy updates.
        neighbouring: between which data sets.
    """
    rates = _check.probabilities(sample_rates=sample_rates)
    rows = []
    for noise in np.asarray(noise_multipliers, dtype=float):
        row = np.full(len(rates), np.nan)
        inside = (rates > 0.0) & (rates < 1.0)
        if noise > 0.05:
            with np.errstate(all="ignore"):
                row[inside] = _row(_check.positive(noise_multiplier=noise), rates[inside], steps, neighbouring)
        for k in np.flatnonzero(np.isnan(row)):
            row[k] = certified_advantage(float(noise), float(rates[k]), steps, neighbouring)[1]
        rows.append(row)
    return np.array(rows)


def _row(noise: float, rates: np.ndarray, steps: int, neighbouring: Neighbouring) -> np.ndarray:
    """Advantages for one noise multiplier; NaN where 4096 frequencies do not do."""
    symmetric = neighbouring is Neighbouring.REPLACE
    weight, loss = _nodes(noise, rates[:, None], symmetric)
    square = loss * loss
    mean, variance = np.sum(weight * loss, axis=1), steps * np.sum(weight * square, axis=1)
    spread = np.sqrt(variance)
    tail = steps * np.sum(weight * square * square, axis=1) / variance**2
    window = (8.8 + np.minimum(2.0 * tail**0.75, 30.0)) * spread + steps * np.abs(mean)
    missing = -0.5 * np.sum(weight * (2.0 * np.sinh(0.25 * loss)) ** 2, axis=1)
    result = np.full(len(rates), np.nan)
    counts = np.exp2(np.ceil(2.0 * np.log2(6.8 * window / (2.0 * np.pi * spread) + 2.0)) / 2.0).astype(int)
    todo = np.flatnonzero((spread > 0.0) & (spread < 60.0))
    while len(todo):
        again = []
        for count in np.unique(counts[todo]):
            same = todo[counts[todo] == count]
            for part in np.array_split(same, max(1, len(same) * int(count) * weight.shape[1] // 500_000)):
                value, settled = _block(weight[part], loss[part], missing[part], window[part], steps, int(count))
                result[part[settled]] = value[settled]
                again.append(part[~settled])
        todo = np.concatenate(again)
        counts[todo] *= 2
        todo = todo[counts[todo] <= 4096]
    return result


def _block(
    weight: np.ndarray, loss: np.ndarray, missing: np.ndarray, window: np.ndarray, steps: int, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Advantages of several laws with ``count`` frequencies each, and whether these were enough."""
    spacing = 2.0 * np.pi / window
    t = spacing[:, None] * np.arange(count)
    half = 0.5 * t[:, :, None] * loss[:, None, :]
    sine = np.sin(half)
    real = missing[:, None] - 2.0 * np.matmul(sine * sine, weight[:, :, None])[..., 0]
    imaginary = 2.0 * np.matmul(sine * np.cos(half), weight[:, :, None])[..., 0]
    size = 0.5 * steps * np.log1p(real * (2.0 + real) + imaginary * imaginary)
    values = np.exp(size) * np.cos(steps * np.arctan2(imaginary, 1.0 + real))
    kernel = spacing[:, None] / np.pi / (t * t + 0.25)
    kernel[:, 0] *= 0.5
    total = 1.0 + 2.0 / np.expm1(0.5 * window) - np.sum(kernel * values, axis=1)
    return np.clip(total, 0.0, 1.0), size[:, -1] < -_DIGITS

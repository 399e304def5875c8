"""For estimates: losses of one sampled step on nodes, and their transform to the power of the steps."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from reticent.kernel.pairs.gaussian_mixture import GaussianMixture
from reticent.pairs.transforms import turned

LOUDEST = 100.0  # standard deviation of the composed loss: all is disclosed
LEAST_NOISE = 0.05  # below, an advantage is certified instead
DOUBT = 1e-8  # mass of losses beyond the window: the error of an advantage stays well below it
CLOSER = 4  # nodes for one, where aliases are in doubt
_WIDEST_ANGLE = 0.92 * math.pi  # of the strip in which the integrand is analytic
_LEAST = 2.0**-53 - 1.0  # |psi|^2 - 1 where |psi| is all rounding


class Precision(NamedTuple):
    """How far and how fine.

    Attributes:
        reach: of the nodes, in standard deviations of the noise.
        rule: digits that the distance of the nodes is planned for, in powers of e.
        decay: -log of the transform where frequencies end.
        room: of the window, in standard deviations of the composed loss.
        frequencies: at most this many.
    """

    reach: float
    rule: float
    decay: float
    room: float
    frequencies: int


QUICK = Precision(6.8, 35.0, 23.0, 8.8, 1024)
"""Absolute error about 1e-10 where ``sure``: for advantages."""
FINE = Precision(9.5, 72.0, 32.0, 13.0, 4096)
"""About 1e-12 where ``sure``: a small delta keeps some digits."""


class StepLosses(NamedTuple):
    """Losses of one step under sqrt(PQ) on nodes, the last axis; several laws along the first.

    Attributes:
        weight, loss: masses, 1 less what is ``missing`` in total, which is the affinity.
        steps: how often.
        symmetric: the antipodal pair: the transform is real.
        spread, kurtosis: of the composed loss.
        window: what its images need, threshold 0.
    """

    weight: np.ndarray
    loss: np.ndarray
    missing: np.ndarray
    steps: float
    symmetric: bool
    spread: np.ndarray
    kurtosis: np.ndarray
    window: np.ndarray

    @classmethod
    def of(cls, pair: GaussianMixture, steps: float, precision: Precision, closer: int = 1) -> StepLosses:
        """With ``closer`` times as many nodes as the law itself needs."""
        s = pair.noise_multiplier
        # The rule's error is about e^(angle s)^2/2 e^(-2 pi angle s^2/dx) in a strip of that angle.
        angle = min(_WIDEST_ANGLE, math.sqrt(2.0 * precision.rule) / s)
        dx = min(0.5 * s, 2.0 * math.pi * angle * s * s / (precision.rule + 0.5 * (angle * s) ** 2))
        loss, weight = pair.halfway(precision.reach, dx / closer)
        growth = np.sinh(0.25 * loss)
        missing = 2.0 * np.vecdot(growth * growth, weight)
        total = 1.0 - missing
        mean = 0.0 * total if pair.antipodal else np.vecdot(weight, loss) / total
        square = loss - mean[..., None]
        square *= square
        variance = np.vecdot(weight, square) / total
        peak = np.vecdot(weight, square * square) / (total * variance * variance * steps)
        spread = np.sqrt(steps * variance)
        heavy = np.minimum(3.0 * peak**0.75 * spread, 2.5 * (loss[..., -1] - loss[..., 0]))
        window = precision.room * spread + steps * np.abs(mean) + heavy
        return cls(weight, loss, missing, steps, pair.antipodal, spread, peak - 3.0 / steps, window)

    def beyond(self, window: float | np.ndarray) -> np.ndarray:
        """Mass of losses of a single step that a window of this length, or of one for each law, does not hold."""
        far = np.abs(self.loss) > np.asarray(window)[..., None]
        return np.asarray(self.steps * np.vecdot(self.weight, far))

    def holding(self, window: np.ndarray) -> np.ndarray:
        """The windows, as long as it takes to hold all losses but for a hundredth of what is in doubt."""
        rare = self.steps * self.weight < 0.01 * DOUBT / self.loss.shape[-1]
        return np.maximum(window, np.where(rare, 0.0, np.abs(self.loss)).max(axis=-1) + 0.5 * window)

    def transform(self, spacing: float | np.ndarray, first: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        """log |psi^steps| and its argument at ``count`` frequencies, from ``first`` times the spacing."""
        real, imaginary = turned(spacing, first, count, self.loss, self.weight)
        real = real - self.missing[..., None]
        if self.symmetric:
            imaginary = 0.0 * real
        if self.steps >= 2.0:  # |psi|^2 - 1 keeps the digits that many steps ask for, half of those of a small |psi|
            size = np.maximum(real * (2.0 + real) + imaginary * imaginary, _LEAST)
            log_size = 0.5 * self.steps * np.log1p(size)
        else:
            log_size = self.steps * np.log(np.maximum(np.hypot(1.0 + real, imaginary), 1e-300))
        return log_size, self.steps * np.arctan2(imaginary, 1.0 + real)


def frequencies_needed(decay: float, kurtosis: np.ndarray) -> np.ndarray:
    """Where the composed transform falls below e^-decay, in units of 1 / spread.

    log |psi^steps| is about -u / 2 + kurtosis u^2 / 24 at the square u of that place; nearly atomic laws fall later.
    """
    slower = abs(kurtosis) / (abs(kurtosis) + 3.0 / decay)
    place: np.ndarray = np.sqrt(2.0 * decay * (1.0 + slower))
    return place


def last_size(log_size: np.ndarray, share: int = 8) -> np.ndarray:
    """The largest of the last frequencies, one in ``share``: nearly atomic laws dip and come back."""
    count = log_size.shape[-1] // share
    last: np.ndarray = log_size[..., -count:].max(axis=-1) if count > 1 else log_size[..., -1]
    return last

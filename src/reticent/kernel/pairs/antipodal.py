"""Sampled Gaussian noise under replacement: mixtures of mirrored shifts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr

from reticent.kernel import checks
from reticent.kernel.curves import LogErrors, TradeOff
from reticent.kernel.curves._logs import HUGE, log1mexp, log_expm1, log_sub
from reticent.kernel.pairs.base import Drawn
from reticent.kernel.pairs.gaussian_mixture import GaussianMixture

_FAR = 20.0  # log of a number whose inverse hyperbolic sine is the log of its double


@dataclass(frozen=True)
class AntipodalGaussianPair(Drawn, TradeOff):
    """(1 - rate) N(0, s^2) + rate N(-1, s^2) against (1 - rate) N(0, s^2) + rate N(+1, s^2): its own curve.

    Dominates one Poisson-sampled Gaussian step under replacement: docs/theory/replace-dominance.md. L is odd and
    increasing in x, with inverse x = s^2 (l/2 + asinh(c sinh(l/2))), c = (1 - rate) e^(1/(2 s^2)) / rate.

    Attributes:
        noise_multiplier: s, > 0, in clip norms.
        sample_rate: probability that the target is in the batch, in (0, 1].

    Raises:
        ParameterError: an argument is outside its domain.
    """

    noise_multiplier: float
    sample_rate: float

    def __post_init__(self) -> None:
        checks.positive(noise_multiplier=self.noise_multiplier)
        checks.rate(sample_rate=self.sample_rate)

    @property
    def curve(self) -> TradeOff:
        return self

    @property
    def reversed(self) -> TradeOff:
        """The curve itself: x -> -x exchanges the two laws."""
        return self

    @property
    def mixture(self) -> GaussianMixture:
        return GaussianMixture(self.noise_multiplier, (self.sample_rate,), antipodal=True)

    @property
    def unsampled_mu(self) -> float:
        """From -1 to +1."""
        return 2.0 / self.noise_multiplier

    @property
    def tail_mu(self) -> float:
        return 1.0 / self.noise_multiplier

    @property
    def proven_mu(self) -> float:
        """1/s up to a rate of 1/2, where it is the smallest; 2/s beyond. docs/theory/mu.md."""
        return self.tail_mu if self.sample_rate <= 0.5 else self.unsampled_mu

    def errors(self, log_ratio: ArrayLike) -> LogErrors:
        x, step = self._standardised(checks.reals(log_ratio=log_ratio))
        below, above = log_ndtr(x), log_ndtr(-x)
        return LogErrors(
            fpr=self._mix(above, -x - step),
            tnr=self._mix(below, x + step),
            fnr=self._mix(below, x - step),
            tpr=self._mix(above, -x + step),
        )

    def _log_delta_above(self, epsilon: np.ndarray) -> np.ndarray:
        """delta(e) = rate (tail at +1 - e^e tail at -1) - (1 - rate) (e^e - 1) tail at 0.

        Differences of the rates would lose the digits of a small rate.
        """
        x, step = self._standardised(epsilon)
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = np.log(self.sample_rate) + log_sub(log_ndtr(step - x), epsilon + log_ndtr(-x - step))
            outside = np.log1p(-self.sample_rate) + log_expm1(epsilon) + log_ndtr(-x)
        return log_sub(inside, outside)

    def _standardised(self, ratio: np.ndarray) -> tuple[np.ndarray, float]:
        """The observation at each log likelihood ratio, and the shift, in standard deviations."""
        return self._observation(np.clip(ratio, -HUGE, HUGE)) / self.noise_multiplier, 1.0 / self.noise_multiplier

    def _mix(self, log_outside: np.ndarray, inside: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.logaddexp(np.log1p(-self.sample_rate) + log_outside, np.log(self.sample_rate) + log_ndtr(inside))

    def _observation(self, ratio: np.ndarray) -> np.ndarray:
        """The x at which the log likelihood ratio equals ``ratio``."""
        half = 0.5 * np.abs(ratio)
        inverse_variance = self.noise_multiplier**-2.0
        with np.errstate(divide="ignore"):
            log_sinh = half + log1mexp(-2.0 * half) - np.log(2.0)
            log_z = np.log1p(-self.sample_rate) - np.log(self.sample_rate) + 0.5 * inverse_variance + log_sinh
        far = log_z > _FAR
        curl = np.where(far, log_z + np.log(2.0), np.arcsinh(np.exp(np.where(far, 0.0, log_z))))
        return np.sign(ratio) * (half + curl) / inverse_variance

"""The membership game for Gaussian gradients, exactly: no typical K, no limit."""

from __future__ import annotations

import math

import numpy as np

from reticent import _check
from reticent.composition.gmip_contour import ContourTradeOff, LogRatioLaw
from reticent.errors import ParameterError


class GaussianGradientTradeOff(ContourTradeOff):
    """The exact curve of one step of the membership game for Gaussian gradients; docs/membership-game.md.

    Target and batch mean are, after whitening, ``dimension`` independent pairs of normal variables,
    uncorrelated for a non-member (H0) and with correlation ``1/sqrt(effective_batch)`` for a member (H1).
    This is Definition 4.1 of LEEMANN2023 with the exact law of K, chi-square with ``dimension`` degrees:
    stronger for the attacker than the curve at K = d, above all at low false positive rates (LEEMANN2023:G2).

    Attributes:
        dimension: number of released coordinates.
        effective_batch: n, or n plus the noise in proportion to the covariance; > 1.

    Not claimed: anything for gradients that are not Gaussian, or for isotropic noise.
    """

    def __init__(self, dimension: int, effective_batch: float) -> None:
        self.dimension = _check.count(dimension=dimension)
        self.effective_batch = _check.positive(effective_batch=effective_batch)
        if self.effective_batch <= 1.0:
            raise ParameterError("effective_batch", effective_batch, "a finite number > 1")
        self._law = _PairsLaw(self.dimension, self.effective_batch)

    def __repr__(self) -> str:
        return f"GaussianGradientTradeOff(dimension={self.dimension!r}, effective_batch={self.effective_batch!r})"


class _PairsLaw(LogRatioLaw):
    """Lambda(s) = d/2 [(1 - s) ln(1 - 1/N) - ln(1 - (1 - s)^2/N)]."""

    bounded = False

    def __init__(self, dimension: int, effective_batch: float) -> None:
        self._d, self._N = dimension, effective_batch
        self._log = math.log1p(-1.0 / effective_batch)
        self.low, self.high = 1.0 - math.sqrt(effective_batch), 1.0 + math.sqrt(effective_batch)
        self.growth_rate = -0.5 * dimension * self._log

    def cumulant(self, s: np.ndarray) -> np.ndarray:
        root, z = math.sqrt(self._N), 1.0 - s
        return 0.5 * self._d * (z * self._log - np.log1p(z / root) - np.log1p(-z / root))

    def slopes(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        z = 1.0 - s
        rest = self._N - z * z
        return 0.5 * self._d * (-self._log - 2.0 * z / rest), self._d * (self._N + z * z) / rest**2

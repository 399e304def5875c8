"""The noise of one step of the membership inference game where the spectrum of the gradients was measured."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from reticent.kernel import checks
from reticent.kernel.errors import ParameterError

_CLIPPED = 1e-6  # by which rounding may exceed what clipping allows


@dataclass(frozen=True, eq=False)
class GradientSpectrum:
    """Covariance of clipped gradients and the target, in the eigenbasis, in units of the clip norm.

    Attributes:
        eigenvalues: of the covariance Sigma over C^2, all > 0; they add up to at most 1.
        deviations: squared coordinates of (theta - mean)/C along the eigenvectors, same length; their sum is
            at most 4. None for the average record, whose squared coordinates are the eigenvalues.

    Raises:
        ParameterError: lengths differ, an eigenvalue is not > 0, or a sum exceeds what clipping allows.
    """

    eigenvalues: np.ndarray
    deviations: np.ndarray | None = None

    def __post_init__(self) -> None:
        values = np.array(self.eigenvalues, dtype=float)
        if values.ndim != 1 or values.size == 0 or not np.all(np.isfinite(values) & (values > 0.0)):
            raise ParameterError("eigenvalues", self.eigenvalues, "a list of finite numbers > 0")
        if values.sum() > 1.0 + _CLIPPED:
            raise ParameterError("eigenvalues", float(values.sum()), "of sum at most 1 (units of the clip norm)")
        squares = values.copy() if self.deviations is None else np.array(self.deviations, dtype=float)
        if squares.shape != values.shape or not np.all(np.isfinite(squares) & (squares >= 0.0)):
            raise ParameterError("deviations", self.deviations, "one finite number >= 0 for each eigenvalue")
        if squares.sum() > 4.0 + _CLIPPED:
            raise ParameterError("deviations", float(squares.sum()), "of sum at most 4 (units of the clip norm)")
        object.__setattr__(self, "eigenvalues", values)
        object.__setattr__(self, "deviations", squares)

    @property
    def susceptibility(self) -> float:
        """K of the target, >= 0; for the average record, the dimension."""
        return float(np.sum(np.asarray(self.deviations) / self.eigenvalues))

    def mu(self, batch_size: float, noise_multiplier: float) -> float:
        """sqrt(delta^T (n Sigma + n^2 tau^2 I)^-1 delta): never above ``gmip.harmonic_mu`` at the same K.

        For the average record this is the root mean square of mu over records: advantage is concave in
        mu^2, so it covers the mean advantage. An estimate: the sum over the batch is taken as Gaussian.
        docs/theory/membership-game.md.

        Args:
            batch_size: n > 0.
            noise_multiplier: noise on the sum over the clip norm, >= 0.

        Raises:
            ParameterError: an argument is outside its domain.
        """
        n, sigma = checks.positive(batch_size=batch_size), checks.non_negative(noise_multiplier=noise_multiplier)
        return math.sqrt(float(np.sum(np.asarray(self.deviations) / (n * self.eigenvalues + sigma * sigma))))

"""One noisy step with a known spectrum of the gradients: exact noise rule and exact curve."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from reticent import _check
from reticent.composition.gmip_contour import ContourTradeOff, LogRatioLaw
from reticent.errors import ParameterError


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
        if values.sum() > 1.0 + 1e-6:
            raise ParameterError("eigenvalues", float(values.sum()), "of sum at most 1 (units of the clip norm)")
        squares = values.copy() if self.deviations is None else np.array(self.deviations, dtype=float)
        if squares.shape != values.shape or not np.all(np.isfinite(squares) & (squares >= 0.0)):
            raise ParameterError("deviations", self.deviations, "one finite number >= 0 for each eigenvalue")
        if squares.sum() > 4.0 + 1e-6:
            raise ParameterError("deviations", float(squares.sum()), "of sum at most 4 (units of the clip norm)")
        object.__setattr__(self, "eigenvalues", values)
        object.__setattr__(self, "deviations", squares)

    @property
    def susceptibility(self) -> float:
        """K of the target; for the average record, the dimension."""
        return float(np.sum(self._squares / self.eigenvalues))

    @property
    def _squares(self) -> np.ndarray:
        return self.eigenvalues if self.deviations is None else self.deviations

    def mu(self, batch_size: float, noise_multiplier: float) -> float:
        """sqrt(delta^T (n Sigma + n^2 tau^2 I)^-1 delta): never above ``harmonic_mu`` at the same K.

        For the average record this is the root mean square of mu over records: advantage is concave in
        mu^2, so it covers the mean advantage.
        """
        n, sigma = _check.positive(batch_size=batch_size), _check.non_negative(noise_multiplier=noise_multiplier)
        return math.sqrt(float(np.sum(self._squares / (n * self.eigenvalues + sigma * sigma))))

    def noise(self, mu: float, batch_size: float) -> float:
        """Least noise multiplier with ``self.mu`` at most ``mu``, on the safe side; 0 if none is needed."""
        target = _check.positive(mu=mu)
        if self.mu(batch_size, 0.0) <= target:
            return 0.0
        most = math.sqrt(float(self._squares.sum())) / target
        from scipy.optimize import brentq  # a second to import, and few questions need it

        root = float(brentq(lambda sigma: self.mu(batch_size, sigma) - target, 0.0, most, xtol=1e-15, rtol=1e-14))
        while self.mu(batch_size, root) > target:
            root = math.nextafter(root * (1.0 + 1e-15), math.inf)
        return root


class SpectrumTradeOff(ContourTradeOff):
    """The exact curve of one noisy step for a known spectrum, Gaussian sum assumed; docs/membership-game.md.

    Direction i has N_i = n + noise_multiplier^2/lambda_i and k_i = deviation_i/lambda_i; the log likelihood
    ratio is the sum of 1/2 ln(N_i/(N_i - 1)) + k_i/2 - W_i/(2 (N_i - 1)), with W_i noncentral chi-square. With
    noise 0 this is Theorem 5.1 of LEEMANN2023 at K = sum k_i; unlike ``GradientSpectrum.mu`` it keeps the
    variance that the target takes out of the sum.

    Attributes:
        spectrum: eigenvalues and the target's squared coordinates.
        batch_size: n > 1, or n >= 1 with noise.
        noise_multiplier: noise on the sum over the clip norm.
    """

    def __init__(self, spectrum: GradientSpectrum, batch_size: float, noise_multiplier: float = 0.0) -> None:
        self.spectrum = spectrum
        self.batch_size = _check.positive(batch_size=batch_size)
        self.noise_multiplier = _check.non_negative(noise_multiplier=noise_multiplier)
        sizes = self.batch_size + self.noise_multiplier**2 / spectrum.eigenvalues
        if np.min(sizes) <= 1.0:
            raise ParameterError("batch_size", batch_size, "> 1 without noise")
        self._law = _SpectrumLaw(sizes, spectrum._squares / spectrum.eigenvalues)

    def __repr__(self) -> str:
        return (
            f"SpectrumTradeOff(dimension={len(self.spectrum.eigenvalues)}, batch_size={self.batch_size!r}, "
            f"noise_multiplier={self.noise_multiplier!r})"
        )


class _SpectrumLaw(LogRatioLaw):
    """Sum over directions, equal ones gathered, of the cumulant functions of shifted chi-squares."""

    bounded = True
    high = math.inf

    def __init__(self, sizes: np.ndarray, k: np.ndarray) -> None:
        self._a, where = np.unique(sizes - 1.0, return_inverse=True)
        self._count = np.bincount(where).astype(float)
        self._k = np.bincount(where, weights=k)
        self.low = -float(self._a[0])
        self.growth_rate = float(np.sum(0.5 * self._count * np.log1p(1.0 / self._a) + 0.5 * self._k))

    def cumulant(self, s: np.ndarray) -> np.ndarray:
        total = s * self.growth_rate
        for a, count, k in zip(self._a, self._count, self._k, strict=True):
            total = total - 0.5 * (count * np.log1p(s / a) + (a + 1.0) * k * s / (a + s))
        return total

    def slopes(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        gap = self._a + np.asarray(s, dtype=float)[..., None]
        pull = (self._a + 1.0) * self._a * self._k
        first = self.growth_rate - 0.5 * np.sum(self._count / gap + pull / gap**2, axis=-1)
        return first, np.sum(0.5 * self._count / gap**2 + pull / gap**3, axis=-1)

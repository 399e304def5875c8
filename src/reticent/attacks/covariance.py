"""Mean and covariance of gradients, known or estimated, and Mahalanobis products without an inverse.

Everything is float64. ``Products`` of many vectors cost one factorisation: a Cholesky factor and triangular
solves where there are more records than coordinates, eigenvectors of the small Gram matrix where there are
fewer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf, dpstrf

from reticent.kernel.errors import NumericalError, ParameterError

_SMALLEST_PIVOT = 1e-10
"""Gradients in single precision: smaller conditional variances, relative to the variance, are rounding errors."""
_CONSTANT = 1e-10  # of the largest deviation: coordinates that move less are left out
_LEAST_VARIANCE = 1e-300
_ENOUGH = 10  # records for each coordinate, from which the sample covariance is taken as it is
_NULL = 1e-12  # of the largest eigenvalue: smaller ones are rounding


@dataclass(frozen=True, eq=False)
class Background:
    """What the attacker knows about the law of clipped gradients.

    Attributes:
        mean: shape (d,).
        rows: the records, shape (m, d), not copied.
        covariance: shape (d, d), or None where it is used through ``rows`` only (fewer records than coordinates).
        share: weight of the sample covariance; the rest, ``1 - share``, is ``ridge`` times the identity.
        ridge: average variance per coordinate, the target of the shrinkage.
    """

    mean: np.ndarray
    rows: np.ndarray
    covariance: np.ndarray | None
    share: float
    ridge: float

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return len(self.mean)

    @property
    def records(self) -> np.ndarray:
        """The centred records."""
        return self.rows - self.mean

    @property
    def shrunk(self) -> bool:
        """Whether the covariance is pulled towards a multiple of the identity."""
        return self.share < 1.0

    @property
    def inverse_bias(self) -> float:
        """(nu - d - 1)/nu with nu = m - 1: makes the inverse of the sample covariance unbiased (LEEMANN2023:G18)."""
        if self.shrunk:
            return 1.0
        return (len(self.rows) - self.dimension - 2.0) / (len(self.rows) - 1.0)

    @classmethod
    def estimated(cls, gradients: np.ndarray) -> Background:
        """Estimate the law from clipped gradients of records drawn like the data, shape (m, d).

        By the sample covariance from ten records per coordinate on, its inverse corrected for its bias; below, by
        Ledoit and Wolf's linear shrinkage towards a multiple of the identity.

        Raises:
            ParameterError: fewer than three records, or constant gradients.
        """
        rows = np.asarray(gradients, dtype=float)
        if rows.ndim != 2 or len(rows) < 3:
            raise ParameterError("gradients", rows.shape, "at least three rows of finite numbers")
        m, d = rows.shape
        mean = rows.mean(axis=0)
        if not np.all(np.isfinite(mean)):
            raise ParameterError("gradients", "a number that is not finite", "rows of finite numbers")
        covariance = np.atleast_2d(np.cov(rows, rowvar=False)) if m > d else None
        total = np.trace(covariance) if covariance is not None else np.sum((rows - mean) ** 2) / (m - 1)
        ridge = float(total) / d
        if ridge <= 0.0 or np.all(rows == rows[0]):  # the mean of equal numbers may be off by rounding
            raise ParameterError("gradients", "constant", "gradients that differ between records")
        share = 1.0 if m >= _ENOUGH * d else _ledoit_wolf_share(rows - mean, covariance, ridge)
        return cls(mean, rows, covariance, share, ridge)

    def independent_coordinates(self) -> np.ndarray:
        """Coordinates of which all others are linear functions, up to rounding; increasing.

        The output layer of a softmax has gradients that add up to zero over classes, so some are redundant.
        Without noise nothing is lost by leaving the redundant ones out.
        """
        if self.covariance is None:
            return np.arange(self.dimension)
        scale = np.sqrt(np.maximum(np.diagonal(self.covariance), 0.0))
        alive = np.flatnonzero(scale > _CONSTANT * scale.max())
        correlation = self.covariance[np.ix_(alive, alive)] / np.outer(scale[alive], scale[alive])
        _, pivots, rank, _ = dpstrf(correlation, tol=10.0 * _SMALLEST_PIVOT, lower=1)
        return np.sort(alive[pivots[:rank] - 1])

    def restricted(self, keep: np.ndarray) -> Background:
        """The law of the coordinates ``keep``."""
        covariance = None if self.covariance is None else self.covariance[np.ix_(keep, keep)]
        return replace(self, mean=self.mean[keep], rows=self.rows[:, keep], covariance=covariance)

    def factor(self, scale: float, shift: float, rank_one: float = 0.0) -> _CholeskyFactor | _EigenFactor:
        """Factorise ``scale * covariance + shift * identity + rank_one * mean mean^T``.

        Its ``products`` are those of ``rows - origin``, shape (q, d), and ``vector``, shape (d,).

        Raises:
            NumericalError: the matrix is not positive definite in double precision.
        """
        weight, diagonal = scale * self.share, scale * (1.0 - self.share) * self.ridge + shift
        if self.covariance is None:
            rows = self.records
            return _EigenFactor(rows, weight / (len(rows) - 1), diagonal, rank_one, self.mean)
        matrix = weight * self.covariance
        matrix.flat[:: self.dimension + 1] += diagonal
        if rank_one:
            matrix += rank_one * np.outer(self.mean, self.mean)
        return _CholeskyFactor(matrix)


class Products(NamedTuple):
    """Products in the metric of an inverse covariance V^-1, of rows y and one vector a."""

    norms: np.ndarray
    """y^T V^-1 y, one for each row."""
    cross: np.ndarray
    """a^T V^-1 y."""
    norm: float
    """a^T V^-1 a."""


class _CholeskyFactor:
    def __init__(self, matrix: np.ndarray) -> None:
        """``matrix`` is overwritten."""
        variances = np.maximum(np.diagonal(matrix), _LEAST_VARIANCE)
        by_columns = matrix if matrix.flags.f_contiguous else matrix.T
        self._lower, failed = dpotrf(by_columns, lower=1, clean=0, overwrite_a=1)
        if failed:
            raise NumericalError(
                "the covariance of the gradients is not positive definite; use shrinkage or fewer coordinates"
            )
        pivots = np.diagonal(self._lower)
        if np.min(pivots**2 / variances) < _SMALLEST_PIVOT:
            raise NumericalError("coordinates of the gradients are linear functions of others: leave those out")
        self.log_det = 2.0 * float(np.sum(np.log(pivots)))

    def products(self, rows: np.ndarray, vector: np.ndarray, origin: np.ndarray | float = 0.0) -> Products:
        white = np.empty((len(rows) + 1, rows.shape[1]))
        np.subtract(rows, origin, out=white[:-1])
        white[-1] = vector
        white = dtrsm(1.0, self._lower, white.T, lower=1, overwrite_b=1).T
        y, a = white[:-1], white[-1]
        return Products(np.einsum("ij,ij->i", y, y), np.einsum("ij,j->i", y, a), float(a @ a))


class _EigenFactor:
    """weight X^T X + diagonal I + rank_one m m^T for X with fewer rows than columns; diagonal > 0."""

    def __init__(self, rows: np.ndarray, weight: float, diagonal: float, rank_one: float, mean: np.ndarray) -> None:
        if diagonal <= 0.0:
            raise NumericalError("fewer background records than coordinates need shrinkage or noise")
        self._x = (
            np.vstack([np.sqrt(weight) * rows, np.sqrt(rank_one) * mean[None]]) if rank_one else np.sqrt(weight) * rows
        )
        values, vectors = eigh(self._x @ self._x.T, overwrite_a=True, check_finite=False)
        keep = values > _NULL * values[-1]
        self._values, self._basis = values[keep], vectors[:, keep] / np.sqrt(values[keep])
        self._diagonal = diagonal
        rest = rows.shape[1] - len(self._values)
        self.log_det = float(np.sum(np.log(self._values + diagonal)) + rest * np.log(diagonal))

    def products(self, rows: np.ndarray, vector: np.ndarray, origin: np.ndarray | float = 0.0) -> Products:
        rows = rows - origin
        y, a = (rows @ self._x.T) @ self._basis, (self._x @ vector) @ self._basis
        # 1/(v + r) = 1/r - v/(r (v + r)) along each eigenvector.
        drop = self._values / (self._values + self._diagonal)
        norms = np.einsum("ij,ij->i", rows, rows) - (y * y) @ drop
        cross, norm = rows @ vector - (y * a) @ drop, float(vector @ vector - (a * a) @ drop)
        return Products(norms / self._diagonal, cross / self._diagonal, norm / self._diagonal)


def _ledoit_wolf_share(rows: np.ndarray, covariance: np.ndarray | None, ridge: float) -> float:
    """1 minus the shrinkage intensity of Ledoit and Wolf (2004), from the Gram matrix where it is smaller."""
    m, d = rows.shape
    gram = rows @ rows.T / m if covariance is None else covariance * ((m - 1) / m)
    square = float(np.einsum("ij,ij->", gram, gram))
    spread = square - d * (ridge * (m - 1) / m) ** 2
    fourth = float(np.sum(np.einsum("ij,ij->i", rows, rows) ** 2))
    noise = (fourth / m - square) / m
    if spread <= 0.0:
        return 0.0
    return 1.0 - min(1.0, max(0.0, noise / spread))

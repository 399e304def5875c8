"""N(0, 1) against N(mu, 1): the worst-case curve of the Gaussian mechanism."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erfcx, log_ndtr, ndtri_exp

from reticent.kernel import checks
from reticent.kernel.curves._logs import HALF_LOG_TWO_PI
from reticent.kernel.curves.base import LogErrors, TradeOff

_ROOT_HALF_PI, _ROOT_TWO = 1.2533141373155001, 1.4142135623730951
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_DEEP, _REACHABLE = -30.0, 1e150  # a below: delta is next to 1; above: it underflows
_CLOSE = 0.05  # mu (|a| + 1) below which the two Mills ratios cancel
_FRACTIONS = 160  # of the continued fraction


@dataclass(frozen=True, slots=True)
class GaussianTradeOff(TradeOff):
    """Testing N(0, 1) against N(mu, 1): Definition 2.3 and Eq. (6) of DONG2022, exact up to rounding.

    By DONG2022:Definition 2.3.

    Attributes:
        mu: GDP parameter, finite and >= 0, dimensionless; 0 is perfect privacy.

    Raises:
        ParameterError: ``mu`` is negative, infinite or NaN.
    """

    mu: float

    def __post_init__(self) -> None:
        checks.non_negative(mu=self.mu)

    @property
    def reversed(self) -> TradeOff:
        """The curve itself: the Gaussian experiment is symmetric."""
        return self

    @property
    def proven_mu(self) -> float:
        """``mu`` itself."""
        return self.mu

    def largest_shift(self, lowest: float) -> float:
        """``mu``, at every rate."""
        return self.mu

    def errors(self, log_ratio: ArrayLike) -> LogErrors:
        ratio = np.asarray(log_ratio, dtype=float)
        if self.mu == 0.0:
            rejects = np.where(ratio < 0.0, 0.0, -np.inf)
            accepts = np.where(ratio < 0.0, -np.inf, 0.0)
            return LogErrors(fpr=rejects, tnr=accepts, fnr=accepts, tpr=rejects)
        with np.errstate(over="ignore"):
            low = ratio / self.mu - 0.5 * self.mu
            high = ratio / self.mu + 0.5 * self.mu
        return LogErrors(fpr=log_ndtr(-high), tnr=log_ndtr(high), fnr=log_ndtr(low), tpr=log_ndtr(-low))

    def _at(self, log_alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        accuses = ndtri_exp(log_alpha) + self.mu
        return log_ndtr(-accuses), log_ndtr(accuses)

    def _log_delta_above(self, epsilon: np.ndarray) -> np.ndarray:
        """delta(e) = phi(a) [M(a) - M(a + mu)], a = e/mu - mu/2, M the Mills ratio; 1e-13 relative."""
        result = np.full(epsilon.shape, -np.inf)
        finite = np.isfinite(epsilon)
        if self.mu > 0.0:
            result[finite] = _log_delta(epsilon[finite], self.mu)
        return result


def _log_delta(epsilon: np.ndarray, mu: float) -> np.ndarray:
    with np.errstate(over="ignore"):
        a = epsilon / mu - 0.5 * mu
    result = np.full(a.shape, -np.inf)
    deep, reachable = a < _DEEP, a < _REACHABLE
    small = ~deep & (mu * (np.abs(a) + 1.0) < _CLOSE)
    near = reachable & ~deep & ~small
    # a < _DEEP: delta = 1 - Phi(a) - e^eps Phi(-(a + mu)), both terms tiny unless mu is small.
    result[deep] = np.log1p(-np.exp(log_ndtr(a[deep])) - np.exp(epsilon[deep] + log_ndtr(-(a[deep] + mu))))
    result[small] = np.log(_mills_drop(a[small], mu)) + _log_density(a[small])
    with np.errstate(divide="ignore"):
        result[near] = np.log(mills_ratio(a[near]) - mills_ratio(a[near] + mu)) + _log_density(a[near])
    return result


def _log_density(x: np.ndarray) -> np.ndarray:
    return -0.5 * x * x - HALF_LOG_TWO_PI


def mills_ratio(x: np.ndarray | float) -> np.ndarray:
    """(1 - Phi(x)) / phi(x)."""
    return _ROOT_HALF_PI * erfcx(x / _ROOT_TWO)


def _mills_drop(a: np.ndarray, mu: float) -> np.ndarray:
    """M(a) - M(a + mu) as the integral of -M' = 1 - x M(x) > 0, for small mu."""
    x = a[..., None] + 0.5 * mu * (1.0 + _NODES)
    return 0.5 * mu * np.sum(_WEIGHTS * _one_minus_x_mills(x), axis=-1)


def _one_minus_x_mills(x: np.ndarray) -> np.ndarray:
    """1 - x M(x); for x > 2 by the continued fraction K/(x + K), which does not cancel."""
    result, far = 1.0 - x * mills_ratio(x), x > 2.0
    if np.any(far):
        positive = x[far]
        fraction = np.zeros_like(positive)
        for n in range(_FRACTIONS, 0, -1):
            np.divide(n, np.add(positive, fraction, out=fraction), out=fraction)
        result[far] = fraction / (positive + fraction)
    return result

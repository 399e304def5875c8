"""Laplace noise on one number: the worst case, and the attacker who does not know the sign."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri_exp

from reticent.kernel import checks
from reticent.kernel.curves._logs import LOG_2, log1mexp
from reticent.kernel.curves.base import LogErrors, Reversed, TradeOff


@dataclass(frozen=True, slots=True)
class LaplaceTradeOff(TradeOff):
    """Testing Laplace(0, 1) against Laplace(mu, 1): the worst case of one scalar Laplace release.

    Also the curve of d-dimensional output whose L1 sensitivity is mu noise scales. KAISSIS2023,
    section 2; exact up to rounding.

    By DONG2022:Lemma A.6.

    Attributes:
        mu: sensitivity over noise scale = pure epsilon, finite and >= 0.

    Raises:
        ParameterError: ``mu`` is negative, infinite or NaN.
    """

    mu: float

    def __post_init__(self) -> None:
        checks.non_negative(mu=self.mu)

    @property
    def reversed(self) -> TradeOff:
        return self

    @property
    def proven_mu(self) -> float:
        """The smallest mu, 2 Phi^-1(1 - e^(-epsilon/2)/2), needed where both errors agree; docs/theory/mu.md."""
        return -2.0 * float(ndtri_exp(-0.5 * self.mu - LOG_2))

    def errors(self, log_ratio: ArrayLike) -> LogErrors:
        ratio = np.asarray(log_ratio, dtype=float)
        middle = np.clip(ratio, -self.mu, self.mu)
        high = -LOG_2 - 0.5 * (middle + self.mu)
        low = -LOG_2 - 0.5 * (self.mu - middle)
        rates = LogErrors.of(high, low)
        return _with_ends(rates, accept=ratio >= self.mu, reject=ratio < -self.mu)

    def _log_delta_above(self, epsilon: np.ndarray) -> np.ndarray:
        """delta(e) = max(0, 1 - e^((e - mu)/2))."""
        return log1mexp(np.minimum(0.5 * (epsilon - self.mu), 0.0))


@dataclass(frozen=True, slots=True)
class RelaxedLaplaceTradeOff(TradeOff):
    """One scalar Laplace release against an attacker who does not know the sign of the shift.

    H0: ``|y|`` is exponential. H1: ``|y|`` for y ~ Laplace(mu, 1). Direction ADD (H1 = present); REM is
    ``reversed``, and here REM dominates for every epsilon >= 0, the opposite of the Gaussian.
    Theorem 1 of KAISSIS2023, re-derived; only for one dimension: in more, the law of the statistic
    under H1 depends on the direction. Pure epsilon stays mu: there is no gain at delta = 0.

    The guarantee is over an unknown sign. An attacker who can guess it gets the power of
    ``LaplaceTradeOff(mu)``; the gain in epsilon is at most log 2 at every delta.

    By KAISSIS2023:Theorem 1.

    Attributes:
        mu: sensitivity over noise scale, finite and >= 0.

    Raises:
        ParameterError: ``mu`` is negative, infinite or NaN.
    """

    mu: float

    def __post_init__(self) -> None:
        checks.non_negative(mu=self.mu)

    @property
    def reversed(self) -> TradeOff:
        return _RelaxedLaplaceRemove(self)

    @property
    def proven_mu(self) -> float:
        """That of an attacker who knows the sign."""
        return LaplaceTradeOff(self.mu).proven_mu

    @property
    def _largest(self) -> float:
        """log cosh mu, the essential supremum of the log likelihood ratio."""
        if self.mu < 1.0:
            return float(np.log1p(2.0 * np.sinh(0.5 * self.mu) ** 2))
        return float(self.mu + np.log1p(np.exp(-2.0 * self.mu)) - LOG_2)

    def errors(self, log_ratio: ArrayLike) -> LogErrors:
        """At ``t = |y| < mu`` the log ratio is log((e^2t + 1)/2) - mu; beyond it is log cosh mu."""
        ratio = np.asarray(log_ratio, dtype=float)
        inside = np.clip(ratio, -self.mu, self._largest)
        t = np.minimum(_half_log_twice_minus_one(inside + self.mu), self.mu)
        rates = LogErrors.of(-t, _log_sinh(t) - self.mu)
        return _with_ends(rates, accept=ratio >= self._largest, reject=ratio < -self.mu)

    def _log_delta_above(self, epsilon: np.ndarray) -> np.ndarray:
        """delta(e) = 1 - e^-mu sqrt(2 e^(mu + e) - 1) for e < log cosh mu."""
        e = np.minimum(epsilon, self._largest)
        scale = np.exp(-2.0 * self.mu)
        root = np.sqrt(2.0 * np.exp(e - self.mu) - scale)
        with np.errstate(divide="ignore"):
            return np.log1p(scale) + np.log(-np.expm1(e - self._largest)) - np.log1p(root)


class _RelaxedLaplaceRemove(Reversed):
    """The inverse of ``RelaxedLaplaceTradeOff``, in closed form."""

    curve: RelaxedLaplaceTradeOff

    def _log_delta_above(self, epsilon: np.ndarray) -> np.ndarray:
        """delta(e) = u^2 / (1 + sqrt(1 - u^2)), u = 1 - e^(e - mu), for e < mu."""
        log_u = log1mexp(np.minimum(epsilon - self.curve.mu, 0.0))
        u = np.exp(log_u)
        return 2.0 * log_u - np.log1p(np.sqrt((1.0 - u) * (1.0 + u)))


def _with_ends(rates: LogErrors, accept: np.ndarray, reject: np.ndarray) -> LogErrors:
    """Thresholds beyond the range of the log ratio: accept everything, or reject everything."""
    none, all_ = -np.inf, 0.0
    return LogErrors(
        fpr=np.where(accept, none, np.where(reject, all_, rates.fpr)),
        tnr=np.where(accept, all_, np.where(reject, none, rates.tnr)),
        fnr=np.where(accept, all_, np.where(reject, none, rates.fnr)),
        tpr=np.where(accept, none, np.where(reject, all_, rates.tpr)),
    )


def _half_log_twice_minus_one(x: np.ndarray) -> np.ndarray:
    """log(2 e^x - 1) / 2 for x >= 0."""
    return np.where(
        x > 1.0, 0.5 * (x + LOG_2 + np.log1p(-0.5 * np.exp(-x))), 0.5 * np.log1p(2.0 * np.expm1(np.minimum(x, 1.0)))
    )


def _log_sinh(t: np.ndarray) -> np.ndarray:
    """log sinh t for t >= 0; -inf at 0."""
    with np.errstate(divide="ignore"):
        return t - LOG_2 + np.log(-np.expm1(-2.0 * t))

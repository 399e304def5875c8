"""One averaged gradient and the attacker who knows the law of the other records' gradients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from reticent.curves import ncx2
from reticent.curves._integral import smooth_log_delta
from reticent.kernel import checks
from reticent.kernel.curves._logs import log1mexp
from reticent.kernel.curves.base import LogErrors, Reversed, TradeOff
from reticent.kernel.errors import ParameterError

_RTOL = 1e-13


@dataclass(frozen=True, slots=True)
class MembershipStepTradeOff(TradeOff):
    """One step of the membership inference game: Theorem 5.1 of LEEMANN2023.

    The attacker sees the mean of one batch of gradients and knows their mean, their covariance and
    the target's gradient. H0: the target is not in the batch; H1: it is. With W the Mahalanobis
    distance of the released mean from the target, scaled: under H0 W is chi-square with ``dimension``
    degrees of freedom and noncentrality N K; under H1 it is (N - 1)/N times chi-square with
    noncentrality (N - 1) K. Members have small W. One direction; the other is ``reversed``.

    Exact if the mean is Gaussian (a central limit theorem otherwise). The theorem's printed
    condition lacks the centring of the target's gradient (LEEMANN2023:G5); ``susceptibility`` here is the
    centred one.

    By LEEMANN2023:Theorem 5.1.

    Attributes:
        effective_size: N = n + tau^2 n^2, the batch size enlarged by noise, finite and > 1.
        dimension: number of gradient coordinates, >= 1.
        susceptibility: K = (g - m)' Sigma^-1 (g - m) of the target's gradient g, finite and >= 0;
            its mean over records is ``dimension``.

    Raises:
        ParameterError: an argument is outside its domain.
    """

    effective_size: float
    dimension: int
    susceptibility: float

    def __post_init__(self) -> None:
        if not checks.positive(effective_size=self.effective_size) > 1.0:
            raise ParameterError("effective_size", self.effective_size, "a finite number > 1")
        checks.count(dimension=self.dimension)
        checks.non_negative(susceptibility=self.susceptibility)

    def errors(self, log_ratio: ArrayLike) -> LogErrors:
        """log LR = (d/2) log(N/(N - 1)) + K/2 - W/(2(N - 1))."""
        ratio = np.asarray(log_ratio, dtype=float)
        rest = self.effective_size - 1.0
        return self._rates(np.maximum(2.0 * rest * (self._largest - ratio), 0.0))

    @property
    def _largest(self) -> float:
        """Supremum of the log likelihood ratio, attained where the mean equals the target."""
        return 0.5 * (self.susceptibility - self.dimension * float(np.log1p(-1.0 / self.effective_size)))

    def _rates(self, distance: np.ndarray) -> LogErrors:
        n, d, k = self.effective_size, self.dimension, self.susceptibility
        absent = ncx2.log_tails(distance, d, n * k, _RTOL)
        present = ncx2.log_tails(distance * (n / (n - 1.0)), d, (n - 1.0) * k, _RTOL)
        return LogErrors(fpr=absent.cdf, tnr=absent.sf, fnr=present.sf, tpr=present.cdf)

    def _at(self, log_alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        noncentrality = self.effective_size * self.susceptibility
        distance = ncx2.quantile(log_alpha, log1mexp(log_alpha), self.dimension, noncentrality)
        rates = self._rates(distance)
        return rates.fnr, rates.tpr

    @property
    def reversed(self) -> TradeOff:
        return _MembershipStepReverse(self)

    def _log_delta_above(self, epsilon: np.ndarray) -> np.ndarray:
        return smooth_log_delta(self.errors, lambda ratio: self.errors(ratio).fpr, epsilon, self._largest)


class _MembershipStepReverse(Reversed):
    """H0: the target is in the batch. The quantile is that of the law under H1 of the curve."""

    curve: MembershipStepTradeOff

    def _at(self, log_alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        n, d, k = self.curve.effective_size, self.curve.dimension, self.curve.susceptibility
        scaled = ncx2.quantile(log1mexp(log_alpha), log_alpha, d, (n - 1.0) * k)
        rates = self.curve._rates(scaled * ((n - 1.0) / n))
        return rates.fpr, rates.tnr

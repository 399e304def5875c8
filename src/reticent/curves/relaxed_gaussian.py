"""Gaussian noise against an attacker who does not know the direction of the shift."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from reticent.curves import ncx2
from reticent.curves._integral import smooth_log_delta
from reticent.curves.bessel import inverse_log_mean_exponential
from reticent.kernel import checks
from reticent.kernel.curves._logs import log1mexp
from reticent.kernel.curves.base import LogErrors, Reversed, TradeOff
from reticent.kernel.curves.gaussian import GaussianTradeOff

_RTOL = 1e-13


@dataclass(frozen=True, slots=True)
class RelaxedGaussianTradeOff(TradeOff):
    """Testing N(0, I_d) against a shift of known length in an unknown, uniformly random direction.

    Only the norm of the observation carries information: chi-square with ``dimension`` degrees of
    freedom against noncentral chi-square, and the likelihood ratio increases with the norm. One
    direction of add/remove, ADD (H1 = present); REM is ``reversed``; ``symmetrised`` gives the
    guarantee. Theorem 1 of KAISSIS2022, Theorem 2 of KAISSIS2023.

    Guaranteed: no test has larger power at level alpha on average over a uniform direction (hence
    none has on the least favourable one); shorter shifts are covered. Not guaranteed: anything about
    a record whose direction can be guessed; that attacker has the power of
    ``GaussianTradeOff(sqrt(noncentrality))``.

    By KAISSIS2022:Theorem 1.

    Attributes:
        noncentrality: squared length of the shift in noise standard deviations, finite and >= 0.
            For several releases with one common direction: the sum of sensitivity^2 / noise^2.
        dimension: number of coordinates, a whole number >= 1. Power falls as it grows, so 1 is the
            conservative choice.

    Raises:
        ParameterError: an argument is outside its domain.
    """

    noncentrality: float
    dimension: int

    def __post_init__(self) -> None:
        checks.non_negative(noncentrality=self.noncentrality)
        checks.count(dimension=self.dimension)

    @property
    def reversed(self) -> TradeOff:
        return _RelaxedGaussianRemove(self)

    @property
    def proven_mu(self) -> float:
        """That of an attacker who knows the direction; no smaller one holds at every error rate (docs/theory/mu.md)."""
        return math.sqrt(self.noncentrality)

    def errors(self, log_ratio: ArrayLike) -> LogErrors:
        """The threshold on the norm solves log 0F1(; d/2; lam t/4) = l + lam/2."""
        ratio = np.asarray(log_ratio, dtype=float)
        if self.noncentrality == 0.0:
            return GaussianTradeOff(0.0).errors(ratio)
        norm = self._norm(ratio)
        tnr, fpr = self._tails(norm, 0.0)
        fnr, tpr = self._tails(norm, self.noncentrality)
        return LogErrors(fpr=fpr, tnr=tnr, fnr=fnr, tpr=tpr)

    def _norm(self, ratio: np.ndarray) -> np.ndarray:
        """Norm of the observation at which the log likelihood ratio is ``ratio``."""
        product = inverse_log_mean_exponential(ratio + 0.5 * self.noncentrality, float(self.dimension))
        return product / np.sqrt(self.noncentrality)

    def _tails(self, norm: np.ndarray, noncentrality: float) -> tuple[np.ndarray, np.ndarray]:
        """log P(norm of the observation <= ``norm``) and its complement."""
        if self.dimension == 1:
            return ncx2.folded_normal_tails(norm, np.sqrt(noncentrality))
        return ncx2.log_tails(norm * norm, self.dimension, noncentrality, _RTOL)

    def _norm_at(self, log_cdf: np.ndarray, log_sf: np.ndarray, noncentrality: float) -> np.ndarray:
        if self.dimension == 1:
            return ncx2.folded_normal_quantile(log_cdf, log_sf, np.sqrt(noncentrality))
        return np.sqrt(ncx2.quantile(log_cdf, log_sf, self.dimension, noncentrality))

    def _at(self, log_alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.noncentrality == 0.0:
            return log1mexp(log_alpha), log_alpha
        norm = self._norm_at(log1mexp(log_alpha), log_alpha, 0.0)
        return self._tails(norm, self.noncentrality)

    def _log_delta_above(self, epsilon: np.ndarray) -> np.ndarray:
        return smooth_log_delta(self.errors, lambda ratio: self._tails(self._norm(ratio), 0.0)[1], epsilon)


class _RelaxedGaussianRemove(Reversed):
    """The inverse of ``RelaxedGaussianTradeOff``: the quantile is that of the noncentral law."""

    curve: RelaxedGaussianTradeOff

    def _at(self, log_alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.curve.noncentrality == 0.0:
            return log1mexp(log_alpha), log_alpha
        norm = self.curve._norm_at(log_alpha, log1mexp(log_alpha), self.curve.noncentrality)
        power, beta = self.curve._tails(norm, 0.0)
        return beta, power

    def _log_delta_above(self, epsilon: np.ndarray) -> np.ndarray:
        curve, noncentrality = self.curve, self.curve.noncentrality

        def log_alpha(ratio: np.ndarray) -> np.ndarray:
            return curve._tails(curve._norm(-ratio), noncentrality)[0]

        return smooth_log_delta(self.errors, log_alpha, epsilon, 0.5 * noncentrality)

"""Operations on curves: public mixtures and Poisson subsampling.

All work on thresholds of the likelihood ratio, where each is a line of arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from reticent.kernel import checks
from reticent.kernel.curves._logs import log1mexp
from reticent.kernel.curves.base import LogErrors, Reversed, TradeOff
from reticent.kernel.curves.piecewise import PolygonTradeOff
from reticent.kernel.errors import ParameterError

_ADD_UP = 1e-9  # by which probabilities may miss 1


class Mixture(TradeOff):
    """One of several experiments, drawn with public probabilities that do not depend on the data.

    The attacker sees which one was drawn (public coin), so the likelihood ratio is that of the drawn
    experiment and every rate is the weighted mean at one common threshold: slopes are equal. This is
    stochastic composition (Definition 4.1 of LEEMANN2023) and the mixed threat model.

    Attributes:
        curves: the experiments.
        weights: probabilities, same length; they must add up to 1 within 1e-9 and are normalised.

    Raises:
        ParameterError: weights are not probabilities of the same number that add up to 1.
    """

    def __init__(self, curves: Sequence[TradeOff], weights: ArrayLike) -> None:
        weights = checks.probabilities(weights=weights)
        if weights.ndim != 1 or len(weights) != len(curves) or abs(weights.sum() - 1.0) > _ADD_UP:
            raise ParameterError("weights", weights.tolist(), "one probability per curve, adding up to 1")
        keep = weights > 0
        self.curves = tuple(c for c, k in zip(curves, keep, strict=True) if k)
        self.weights = weights[keep] / weights.sum()

    def errors(self, log_ratio: ArrayLike) -> LogErrors:
        return self._mean([curve.errors(log_ratio) for curve in self.curves])

    def _mean(self, parts: list[LogErrors]) -> LogErrors:
        return LogErrors(*(_log_mean(np.log(self.weights), list(rates)) for rates in zip(*parts, strict=True)))

    def _log_delta_above(self, epsilon: np.ndarray) -> np.ndarray:
        parts = [curve._log_delta_above(epsilon) for curve in self.curves]
        return _log_mean(np.log(self.weights), parts)

    @cached_property
    def _joined(self) -> PolygonTradeOff | None:
        """The polygon that a mixture of polygons is: an edge for each slope of an experiment; None for another one."""
        parts = [curve for curve in self.curves if isinstance(curve, PolygonTradeOff)]
        if len(parts) < len(self.curves):
            return None
        slopes = np.unique(np.concatenate([part.log_slopes for part in parts]))[::-1]
        return PolygonTradeOff(self._mean([part.between(slopes) for part in parts]), slopes)

    def _at(self, log_alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return super()._at(log_alpha) if self._joined is None else self._joined._at(log_alpha)

    def largest_shift(self, lowest: float) -> float:
        return super().largest_shift(lowest) if self._joined is None else self._joined.largest_shift(lowest)

    @property
    def proven_mu(self) -> float:
        """The largest of the experiments."""
        return max(curve.proven_mu for curve in self.curves)

    @property
    def reversed(self) -> TradeOff:
        """The curve itself, where each experiment is symmetric."""
        parts = [curve.reversed for curve in self.curves]
        symmetric = all(one is other for one, other in zip(parts, self.curves, strict=True))
        return self if symmetric else Mixture(parts, self.weights)

    def __repr__(self) -> str:
        return f"Mixture({list(self.curves)!r}, weights={self.weights.tolist()!r})"


class Subsampled(TradeOff):
    """The target takes part with probability ``rate``: testing P against (1 - rate) P + rate Q.

    The threshold test stays the same, its threshold moves: alpha as before, and
    beta' = (1 - rate)(1 - alpha) + rate beta. Exact for Poisson sampling under add/remove, where it
    is one direction; the other is ``reversed``. Lemma 9 of KAISSIS2023.

    Attributes:
        curve: that of a release in which the target takes part.
        rate: probability that it does, in (0, 1].

    Raises:
        ParameterError: ``rate`` is outside (0, 1].
    """

    def __init__(self, curve: TradeOff, rate: float) -> None:
        self.curve, self.rate = curve, checks.rate(rate=rate)

    def errors(self, log_ratio: ArrayLike) -> LogErrors:
        ratio = np.asarray(log_ratio, dtype=float)
        if self.rate == 1.0:
            return self.curve.errors(ratio)
        rates = self.curve.errors(_inner_threshold(ratio, self.rate))
        inside, outside = np.log(self.rate), np.log1p(-self.rate)
        return LogErrors(
            fpr=rates.fpr,
            tnr=rates.tnr,
            fnr=np.logaddexp(outside + rates.tnr, inside + rates.fnr),
            tpr=np.logaddexp(outside + rates.fpr, inside + rates.tpr),
        )

    def _at(self, log_alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.rate == 1.0:
            return self.curve._at(log_alpha)
        inside, outside = np.log(self.rate), np.log1p(-self.rate)
        log_beta, log_power = self.curve._at(log_alpha)
        beta = np.logaddexp(outside + log1mexp(log_alpha), inside + log_beta)
        power = np.logaddexp(outside + log_alpha, inside + log_power)
        return np.minimum(beta, 0.0), np.minimum(power, 0.0)

    @property
    def proven_mu(self) -> float:
        """That of a target who always takes part; for Gaussian noise no smaller one holds."""
        return self.curve.proven_mu

    @property
    def reversed(self) -> TradeOff:
        return self.curve.reversed if self.rate == 1.0 else _SubsampledReverse(self)

    def _log_delta_above(self, epsilon: np.ndarray) -> np.ndarray:
        """delta(e) = rate * delta_inner(log(1 + (e^e - 1)/rate))."""
        return np.log(self.rate) + self.curve._log_delta_above(_inner_threshold(epsilon, self.rate))

    def __repr__(self) -> str:
        return f"Subsampled({self.curve!r}, rate={self.rate!r})"


def subsampled(curve: TradeOff, rate: float) -> TradeOff:
    """``curve`` seen with probability ``rate``, in (0, 1]."""
    return curve if rate == 1.0 else Subsampled(curve, rate)


class _SubsampledReverse(Reversed):
    """Testing (1 - rate) P + rate Q against P."""

    curve: Subsampled

    def _log_delta_above(self, epsilon: np.ndarray) -> np.ndarray:
        """delta(e) = r delta_inner_reversed(log(rate e^e / r)), r = 1 - (1 - rate) e^e, 0 where r <= 0."""
        rate = self.curve.rate
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            left = rate - (1.0 - rate) * np.expm1(epsilon)
            log_left = np.log(np.maximum(left, 0.0))
            inner = np.where(left > 0, np.log(rate) + epsilon - log_left, np.inf)
        return np.where(left > 0, log_left + self.curve.curve.reversed._log_delta_above(inner), -np.inf)


def _inner_threshold(ratio: np.ndarray, rate: float) -> np.ndarray:
    """log(1 + (e^l - 1)/rate): the threshold on L that the threshold l on log(1 - rate + rate e^L) means."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        direct = np.log1p(np.maximum(np.expm1(ratio) / rate, -1.0))
        large = ratio - np.log(rate) + np.log1p(-(1.0 - rate) * np.exp(-ratio))
    return np.where(ratio > 1.0, large, direct)


def _log_mean(log_weights: np.ndarray, logs: list[np.ndarray]) -> np.ndarray:
    total = np.logaddexp.reduce([w + x for w, x in zip(log_weights, logs, strict=True)], axis=0)
    return np.minimum(total, 0.0)

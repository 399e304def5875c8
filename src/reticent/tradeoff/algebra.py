"""Operations on curves: mixing, subsampling, the worst of several, and symmetrising.

All work on thresholds of the likelihood ratio, where each is a line of arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from reticent import _check
from reticent.errors import ParameterError
from reticent.tradeoff.base import LogErrors, TradeOff


class Mixture(TradeOff):
    """One of several experiments, drawn with public probabilities that do not depend on the data.

    The attacker sees which one was drawn (public coin), so the likelihood ratio is that of the drawn
    experiment and every rate is the weighted mean at one common threshold: slopes are equal. This is
    stochastic composition (Definition 4.1 of LEEMANN2023) and the mixed threat model.

    Attributes:
        curves: the experiments.
        weights: probabilities, same length; they must add up to 1 within 1e-9 and are normalised.
    """

    def __init__(self, curves: Sequence[TradeOff], weights: ArrayLike) -> None:
        weights = _check.probabilities(weights=weights)
        if weights.ndim != 1 or len(weights) != len(curves) or abs(weights.sum() - 1.0) > 1e-9:
            raise ParameterError("weights", weights.tolist(), "one probability per curve, adding up to 1")
        keep = weights > 0
        self.curves = tuple(c for c, k in zip(curves, keep, strict=True) if k)
        self.weights = weights[keep] / weights.sum()

    def errors(self, log_ratio: ArrayLike) -> LogErrors:
        parts = [curve.errors(log_ratio) for curve in self.curves]
        logs = np.log(self.weights)
        return LogErrors(*(_log_mean(logs, [part[k] for part in parts]) for k in range(4)))

    @property
    def reversed(self) -> TradeOff:
        return Mixture([curve.reversed for curve in self.curves], self.weights)

    def __repr__(self) -> str:
        return f"Mixture({list(self.curves)!r}, weights={self.weights.tolist()!r})"


class Subsampled(TradeOff):
    """The target takes part with probability ``rate``: testing P against (1 - rate) P + rate Q.

    The threshold test stays the same, its threshold moves: alpha as before, and
    beta' = (1 - rate)(1 - alpha) + rate beta. Exact for Poisson sampling under add/remove, where it
    is one direction; the other is ``reversed``. Lemma 9 of KAISSIS2023.
    """

    def __init__(self, curve: TradeOff, rate: float) -> None:
        self.curve, self.rate = curve, _check.rate(rate=rate)

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

    def log_delta(self, epsilon: ArrayLike) -> np.ndarray:
        """delta(e) = rate * delta_inner(log(1 + (e^e - 1)/rate)) for e >= 0; digest S1."""
        epsilon = _check.reals(epsilon=epsilon)
        positive = np.log(self.rate) + self.curve.log_delta(_inner_threshold(np.maximum(epsilon, 0.0), self.rate))
        return np.where(epsilon >= 0, positive, super().log_delta(epsilon))

    def __repr__(self) -> str:
        return f"Subsampled({self.curve!r}, rate={self.rate!r})"


class Worst(TradeOff):
    """The lower convex envelope of several curves: whichever serves the attacker best.

    At each threshold the curve with the largest delta is followed; where the lead changes, the
    threshold test jumps and the segment in between is the common tangent. Unlike the recipe of taking
    a maximum of a curve and its inverse, this is right whichever direction dominates.
    """

    def __init__(self, curves: Sequence[TradeOff]) -> None:
        if not curves:
            raise ParameterError("curves", curves, "at least one curve")
        self.curves = tuple(curves)

    def errors(self, log_ratio: ArrayLike) -> LogErrors:
        ratio = np.asarray(log_ratio, dtype=float)
        parts = [curve.errors(ratio) for curve in self.curves]
        # Below zero delta is 1 - e^l plus a small part that carries the order: compare that part.
        excess = [
            np.where(ratio >= 0, curve.log_delta(np.abs(ratio)), curve.reversed.log_delta(np.abs(ratio)))
            for curve in self.curves
        ]
        lead = np.argmax(excess, axis=0)
        return LogErrors(*(np.choose(lead, [part[k] for part in parts]) for k in range(4)))

    def log_delta(self, epsilon: ArrayLike) -> np.ndarray:
        return np.max([curve.log_delta(epsilon) for curve in self.curves], axis=0)

    @property
    def reversed(self) -> TradeOff:
        return Worst([curve.reversed for curve in self.curves])

    def __repr__(self) -> str:
        return f"Worst({list(self.curves)!r})"


def symmetrised(curve: TradeOff) -> TradeOff:
    """The add/remove guarantee of an add curve: lower convex envelope of it and its inverse."""
    return curve if curve.reversed is curve else Worst([curve, curve.reversed])


def _inner_threshold(ratio: np.ndarray, rate: float) -> np.ndarray:
    """log(1 + (e^l - 1)/rate): the threshold on L that the threshold l on log(1 - rate + rate e^L) means."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        direct = np.log1p(np.maximum(np.expm1(ratio) / rate, -1.0))
        large = ratio - np.log(rate) + np.log1p(-(1.0 - rate) * np.exp(-ratio))
    return np.where(ratio > 1.0, large, direct)


def _log_mean(log_weights: np.ndarray, logs: list[np.ndarray]) -> np.ndarray:
    total = logsumexp([w + x for w, x in zip(log_weights, logs, strict=True)], axis=0)
    return np.minimum(total, 0.0)

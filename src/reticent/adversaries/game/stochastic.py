"""Stochastic composition (Definition 4.1 of LEEMANN2023): the target is drawn, then one curve is played.

The attacker sees the target, so this is testing the pair (target, release): a public mixture. At the optimum
all components are played at one common slope, that is at one threshold of the log likelihood ratio; every
rate is then a weighted mean: ``curves.Mixture``. An attacker who plays each component at the same false positive
rate is weaker.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr

from reticent import _check
from reticent.curves import LogErrors, Mixture, TradeOff
from reticent.curves._thresholds import halved
from reticent.curves.gaussian import mills_ratio
from reticent.errors import ParameterError

_ADD_UP = 1e-9  # by which probabilities may miss 1
_LEAST_MU, _HALVINGS = 1e-9, 60  # of the search for a tangent


@dataclass(frozen=True, eq=False)
class SusceptibilityLaw:
    """A law of the susceptibility K (or of any other number that is drawn with the target).

    By LEEMANN2023:Definition 4.1.

    Attributes:
        values: finite, > 0.
        weights: probabilities of the values, of sum 1.

    Raises:
        ParameterError: a value is not > 0, or weights are not probabilities that add up to 1 within 1e-9.
    """

    values: np.ndarray
    weights: np.ndarray

    def __post_init__(self) -> None:
        values, weights = np.array(self.values, dtype=float), _check.probabilities(weights=self.weights)
        if values.ndim != 1 or values.size == 0 or not np.all(np.isfinite(values) & (values > 0.0)):
            raise ParameterError("values", self.values, "a list of finite numbers > 0")
        if weights.shape != values.shape or abs(weights.sum() - 1.0) > _ADD_UP:
            raise ParameterError("weights", self.weights, "one probability per value, adding up to 1")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "weights", weights / weights.sum())

    @classmethod
    def sampled(cls, values: ArrayLike) -> SusceptibilityLaw:
        """The empirical law of measured values; equal values are gathered.

        Args:
            values: shape (records,), finite, > 0.

        Raises:
            ParameterError: a value is not a finite number > 0.
        """
        distinct, counts = np.unique(np.asarray(values, dtype=float), return_counts=True)
        return cls(distinct, counts / counts.sum())

    @classmethod
    def gaussian_gradients(cls, dimension: int, nodes: int = 64) -> SusceptibilityLaw:
        """Chi-square with ``dimension`` degrees of freedom, the law of K for Gaussian gradients.

        Gauss-Laguerre nodes: exact for polynomials in K up to degree ``2 nodes - 1``; curves composed with it
        are good to 1e-6 from about ten dimensions on. ``GaussianGradientTradeOff`` is exact in any dimension.

        Args:
            dimension: >= 1.
            nodes: of the rule, >= 1.

        Raises:
            ParameterError: an argument is outside its domain.
        """
        from scipy.linalg import eigh_tridiagonal  # costly to import, and only this asks for it

        order, degrees = _check.count(nodes=nodes), _check.count(dimension=dimension)
        k, shape = np.arange(order, dtype=float), 0.5 * degrees - 1.0
        points, vectors = eigh_tridiagonal(2.0 * k + shape + 1.0, np.sqrt(k[1:] * (k[1:] + shape)))
        weights = vectors[0] ** 2
        keep = (weights > 0.0) & (points > 0.0)
        return cls(2.0 * points[keep], weights[keep] / weights[keep].sum())

    @property
    def mean(self) -> float:
        """Expected value."""
        return float(self.weights @ self.values)

    def compose(self, curve: Callable[[float], TradeOff]) -> TradeOff:
        """The stochastic composition of ``curve(K)`` over this law; no less accurate than the curves."""
        return Mixture([curve(float(k)) for k in self.values], self.weights)


class DistributionFreeTradeOff(TradeOff):
    """What holds whatever the law of mu over records, given the mean of mu^2; docs/theory/membership-game.md.

    ``delta(epsilon)`` is the concave envelope of ``v -> delta of G_sqrt(v)`` at ``v = mean_square``: below the
    tangent point v* the worst law puts mass v/v* on records with mu^2 = v* and none on the others. The worst
    law depends on epsilon, so this bound is attained at each epsilon but not by one law.

    By RETICENT:distribution-free.

    Attributes:
        mean_square: mean of mu^2 over records, >= 0. For one step without noise, at most d/n.

    Claim: a bound, provided that each record has a Gaussian curve.

    Raises:
        ParameterError: ``mean_square`` is negative, infinite or NaN.
    """

    def __init__(self, mean_square: float) -> None:
        self.mean_square = _check.non_negative(mean_square=mean_square)

    @property
    def reversed(self) -> TradeOff:
        return self

    def errors(self, log_ratio: ArrayLike) -> LogErrors:
        ratio = np.asarray(log_ratio, dtype=float)
        size = np.abs(ratio)
        if self.mean_square == 0.0:
            share, mu = np.zeros(size.shape), np.ones(size.shape)
        else:
            mu = np.maximum(tangent_mu(np.where(np.isinf(size), 0.0, size)), np.sqrt(self.mean_square))
            share = np.minimum(self.mean_square / mu**2, 1.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            lifted = np.where(np.isinf(size), np.inf, size / mu)
            inside, outside = np.log(share), np.log1p(-share)
        low, high = lifted - 0.5 * mu, lifted + 0.5 * mu
        fpr, tpr = inside + log_ndtr(-high), inside + log_ndtr(-low)
        tnr = np.logaddexp(outside, inside + log_ndtr(high))
        fnr = np.logaddexp(outside, inside + log_ndtr(low))
        return LogErrors(fpr, tnr, fnr, tpr).exchanged_where(ratio < 0.0)

    def __repr__(self) -> str:
        return f"DistributionFreeTradeOff(mean_square={self.mean_square!r})"


def tangent_mu(epsilon: ArrayLike) -> np.ndarray:
    """sqrt(v*) for each finite ``epsilon`` >= 0: root of M(a) - M(a + mu) = mu/2, a = epsilon/mu - mu/2.

    M is Mills' ratio. 0 at epsilon = 0, where delta is concave in mu^2 already.
    """
    size = np.asarray(epsilon, dtype=float)

    def convex(mu: np.ndarray) -> np.ndarray:
        """(f - v f')/phi(a) at v = mu^2: negative where the chord from 0 lies above f."""
        a = size / mu - 0.5 * mu
        return mills_ratio(a) - mills_ratio(a + mu) - 0.5 * mu < 0.0

    with np.errstate(over="ignore", invalid="ignore"):
        _, high = halved(convex, np.full(size.shape, _LEAST_MU), np.sqrt(8.0 * size) + 4.0, _HALVINGS)
    return np.where(size == 0.0, 0.0, high)

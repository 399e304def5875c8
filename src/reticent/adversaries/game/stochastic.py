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

from reticent.kernel import checks
from reticent.kernel.curves import Mixture, TradeOff
from reticent.kernel.errors import ParameterError

_ADD_UP = 1e-9  # by which probabilities may miss 1


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
        values, weights = np.array(self.values, dtype=float), checks.probabilities(weights=self.weights)
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

    @property
    def mean(self) -> float:
        """Expected value."""
        return float(self.weights @ self.values)

    def compose(self, curve: Callable[[float], TradeOff]) -> TradeOff:
        """The stochastic composition of ``curve(K)`` over this law; no less accurate than the curves."""
        return Mixture([curve(float(k)) for k in self.values], self.weights)

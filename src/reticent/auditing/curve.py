"""The measured trade-off curve of an attack, with bands that hold at all thresholds at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from reticent.auditing.intervals import Measured, dkw_radius
from reticent.auditing.lower_bounds import notes_on
from reticent.auditing.scores import Scores
from reticent.kernel import checks
from reticent.kernel.proofs.references import cite

_POINTS_IN_JSON = 201


@dataclass(frozen=True, eq=False)
class EmpiricalTradeOff(Measured):
    """Least false negative rate of "member if score > t" against its false positive rate.

    With probability at least ``confidence`` both error rates are within their radius of the true ones
    *at every threshold*: Massart's inequality on each side, each at half the significance. So the true
    map from alpha to the least beta among thresholds with FPR at most alpha lies between ``lower`` and
    ``upper`` everywhere. The band belongs to this attack; no claim is made about stronger ones.

    Attributes:
        alpha: empirical false positive rates in growing order, one for each distinct score and one for
            "never".
        beta: empirical false negative rates, same shape, non-increasing.
        alpha_radius, beta_radius: half widths of the band in both directions.
        confidence: simultaneous over all thresholds.
        notes: conditions, one sentence each.
        theorems: keys of ``reticent.kernel.proofs.references``.
    """

    alpha: np.ndarray
    beta: np.ndarray
    alpha_radius: float
    beta_radius: float
    confidence: float
    notes: tuple[str, ...] = ()
    theorems: tuple[str, ...] = ()

    def estimate(self, alpha: ArrayLike) -> np.ndarray:
        """Empirical beta at the largest threshold set with empirical FPR <= ``alpha``; any shape."""
        return self._step(self.alpha, self.beta, alpha)

    def upper(self, alpha: ArrayLike) -> np.ndarray:
        """Upper end of the band; 1 where the band cannot say anything."""
        return self._step(self.alpha + self.alpha_radius, np.minimum(self.beta + self.beta_radius, 1.0), alpha)

    def lower(self, alpha: ArrayLike) -> np.ndarray:
        """Lower end of the band."""
        return self._step(self.alpha - self.alpha_radius, np.maximum(self.beta - self.beta_radius, 0.0), alpha)

    def to_json(self) -> dict[str, object]:
        """At most 201 points, so that a report stays small; plain values only."""
        keep = np.unique(np.linspace(0, len(self.alpha) - 1, _POINTS_IN_JSON).astype(int))
        return Measured.to_json(replace(self, alpha=self.alpha[keep], beta=self.beta[keep]))

    def _step(self, starts: np.ndarray, values: np.ndarray, alpha: ArrayLike) -> np.ndarray:
        """Value of the last start at or before ``alpha``; 1 before the first."""
        index = np.searchsorted(starts, checks.probabilities(alpha=alpha), side="right")
        return np.append(1.0, values)[index]


def empirical_trade_off(scores: Scores, confidence: float = 0.95) -> EmpiricalTradeOff:
    """The trade-off curve of the attack behind ``scores``, with a simultaneous band.

    Raises:
        ParameterError: ``confidence`` is not in (0, 1).
    """
    half = 0.5 * (1.0 - checks.open_fraction(confidence=confidence))
    rising = np.unique(np.concatenate([scores.member, scores.non_member]))  # sorted questions are answered fast
    above = len(scores.non_member) - np.searchsorted(np.sort(scores.non_member), rising, side="right")[::-1]
    missed = np.searchsorted(np.sort(scores.member), rising, side="right")[::-1]
    return EmpiricalTradeOff(
        np.append(above / len(scores.non_member), 1.0),
        np.append(missed / len(scores.member), 0.0),
        dkw_radius(len(scores.non_member), half),
        dkw_radius(len(scores.member), half),
        confidence,
        notes_on(scores.design),
        cite("RETICENT:audit-bands"),
    )

"""Several records of one person in an epoch of random allocation, before an attacker to whom their steps are told.

Given how many of the records are in each step, c_1, ..., c_t, the epoch is a Gaussian release with a shift of at most
sqrt(V) contributions, V = sum of c_i^2. The steps are drawn whoever is there, so they are a public coin.
"""

from __future__ import annotations

import numpy as np

from reticent.kernel.curves import GaussianTradeOff
from reticent.kernel.curves._logs import log_of
from reticent.kernel.curves.polygon import Polygon, symmetric_above

_LEAST = 1e-40  # probability of what is counted with the largest V
_PLACES = np.linspace(-10.0, 40.0, 400)  # thresholds, in deviations of the loss from its mean
_ROUNDING = 1e-9  # of log delta of a Gaussian curve, and of the probabilities


def squares(records: int, bins: int) -> np.ndarray:
    """P(V = v) for v = 0, ..., records^2: sums of positive terms, so each has all its digits.

    The law of V follows from the power ``bins`` of the polynomial sum over k of x^k y^(k^2) / k!, by the recurrence for
    powers of a series in x.

    Args:
        records: of the person, each in a step of its own draw.
        bins: steps of the epoch, at least as many as records.
    """
    law = np.zeros((records + 1, records * records + 1))
    law[0, 0] = 1.0
    for n in range(1, records + 1):
        weight = 1.0
        for k in range(1, n + 1):
            weight *= (n - k + 1) / (k * bins)
            law[n, k * k :] += (k * (bins + 1) - n) / n * weight * law[n - k, : law.shape[1] - k * k]
    return law[records]


def told_steps(mu: float, records: int, bins: int) -> Polygon:
    """On the safe side of the curve, H0 = absent: the mean of Gaussian curves over V.

    By RETICENT:allocation-chain.

    Args:
        mu: of one record alone in its step, or of one that is replaced.
        records, bins: as of ``squares``.
    """
    chances = squares(records, bins)
    kept = np.flatnonzero(chances[:-1] >= _LEAST)
    sizes = mu * np.sqrt(np.append(kept, records * records))
    weights = np.append(chances[kept], chances.sum() - chances[kept].sum() + _LEAST)
    middle = mu * np.sqrt(float(weights @ np.append(kept, records * records)))
    places = [m * (0.5 * m + _PLACES) for m in (middle, sizes[-1])]
    thresholds = np.unique(np.maximum(np.concatenate([np.zeros(1), *places]), 0.0))
    delta = sum(w * np.exp(GaussianTradeOff(m).log_delta(thresholds)) for w, m in zip(weights, sizes, strict=True))
    return symmetric_above(thresholds, np.minimum(log_of(delta) + _ROUNDING, 0.0))

"""What moments of the likelihood ratio allow: of those that ``chi_square`` bounds, at every threshold."""

from __future__ import annotations

import math

import numpy as np

from reticent.kernel.curves._logs import log_of

ORDERS = (2.0, 2.3, 2.7, 3.2, 3.8, 4.5, 5.5, 7.0, 9.0, 12.0, 16.0, 22.0)
"""q, of the moments that bound delta at a threshold; each gives a bound, the least is taken."""


def log_deltas(log_norms: dict[float, float], thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Upper bounds on log delta at ``thresholds`` l >= 0, of addition and of removal.

    With Z = LR - 1, E Z = 0, k = e^l: addition is E (Z - (k - 1))_+, removal k E (-Z - (1 - 1/k))_+.

    Args:
        log_norms: per order q, the log of an upper bound on ||Z||_q^2; order 2 among them.
        thresholds: l >= 0.
    """
    up, down = np.expm1(thresholds), -np.expm1(-thresholds)
    add, remove = _excess_over(log_norms, up), thresholds + _excess_over(log_norms, down)
    return np.minimum(add, 0.0), np.minimum(remove, 0.0)


def _excess_over(log_norms: dict[float, float], level: np.ndarray) -> np.ndarray:
    """log of a bound on E (Z - c)_+ at c >= 0, and on E (-Z - c)_+.

    By the mean and the variance (Scarf): X / (2 (c + sqrt(c^2 + X))). By ||Z||_q:
    (z - c)_+ <= z^q (q-1)^(q-1) / (q^q c^(q-1)) for all z >= 0.
    """
    best = scarf(log_norms[2.0], level)
    for q, log_norm in log_norms.items():
        factor = (q - 1.0) * math.log(q - 1.0) - q * math.log(q)
        best = np.minimum(best, 0.5 * q * log_norm + factor - (q - 1.0) * log_of(level))
    return best


def scarf(log_variance: float | np.ndarray, level: np.ndarray) -> np.ndarray:
    """log of X / (2 (c + sqrt(c^2 + X))), the most that E (Z - c)_+ can be with mean 0, variance X, c >= 0.

    Args:
        log_variance: of X; broadcasts.
        level: c >= 0.
    """
    root = 0.5 * np.logaddexp(2.0 * log_of(level), log_variance)
    return np.asarray(log_variance - math.log(2.0) - np.logaddexp(log_of(level), root))

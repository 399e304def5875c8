"""delta by an integral of positive terms, where the difference of two tails would cancel."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import logsumexp

from reticent.tradeoff._logs import log_sub
from reticent.tradeoff.base import LogErrors

_CLOSE = 2e-3
"""Relative difference of the two tails below which their difference is replaced by the integral."""
_SPAN = 42.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_EDGES = np.linspace(0.0, 1.0, 11) ** 2
_POINTS = (_EDGES[:-1, None] + np.diff(_EDGES)[:, None] * 0.5 * (1.0 + _NODES)).ravel()
_LOG_WEIGHTS = np.log((0.5 * np.diff(_EDGES)[:, None] * _WEIGHTS).ravel())


def smooth_log_delta(errors: Callable[[np.ndarray], LogErrors], epsilon: np.ndarray) -> np.ndarray:
    """log delta(epsilon) = log of (1 - beta - e^epsilon alpha) for epsilon >= 0.

    Where the two terms agree to three digits: delta(e) = integral over l > e of e^l alpha(l). Only
    for likelihood ratios without atoms, whose alpha is smooth in the threshold.
    """
    epsilon = np.asarray(epsilon, dtype=float)
    rates = errors(epsilon)
    with np.errstate(invalid="ignore"):
        cost = np.where(np.isneginf(rates.fpr), -np.inf, epsilon + rates.fpr)
        close = np.isfinite(cost) & (rates.tpr - cost < _CLOSE)
    value = log_sub(rates.tpr, cost)
    if np.any(close):
        value = np.array(value)
        value[close] = _integrate(errors, epsilon[close])
    return value


def _integrate(errors: Callable[[np.ndarray], LogErrors], epsilon: np.ndarray) -> np.ndarray:
    start = epsilon + errors(epsilon).fpr
    width = 1e-15 * np.maximum(1.0, epsilon)
    for _ in range(200):
        short = errors(epsilon + width).fpr + epsilon + width > start - _SPAN
        if not np.any(short):
            break
        width = np.where(short, 2.0 * width, width)
    ratio = epsilon[:, None] + width[:, None] * _POINTS
    return np.log(width) + logsumexp(_LOG_WEIGHTS + ratio + errors(ratio).fpr, axis=1)

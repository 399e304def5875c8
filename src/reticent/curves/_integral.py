"""delta by an integral of positive terms, where the difference of two tails would cancel."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import logsumexp

from reticent.kernel.curves._logs import log_sub
from reticent.kernel.curves.base import LogErrors

_LogAlpha = Callable[[np.ndarray], np.ndarray]

_CLOSE = 2e-3
"""Relative difference of the two tails below which their difference is replaced by the integral."""
_SPAN = 42.0
"""log of the fall of the integrand at which it ends: 18 digits."""
_ROUNDING, _SURE = 1e-15, 1e4
"""Relative rounding of a threshold, and how many times that a gap must be before it is trusted."""
_DOUBLINGS = 200
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)
_POINTS = (0.5 * (1.0 + _NODES)) ** 2
_LOG_WEIGHTS = np.log(0.5 * _WEIGHTS * (1.0 + _NODES))
"""Gauss-Legendre in the square root of the distance: dense where the integrand is large."""


def smooth_log_delta(
    errors: Callable[[np.ndarray], LogErrors],
    log_alpha: _LogAlpha,
    epsilon: np.ndarray,
    largest: float = np.inf,
) -> np.ndarray:
    """log delta(epsilon) = log of (1 - beta - e^epsilon alpha) for epsilon >= 0.

    Where the two terms agree to three digits: delta(e) = integral over l > e of e^l alpha(l). Only
    for likelihood ratios without atoms, whose alpha is smooth in the threshold.

    Args:
        errors: the four log rates at a threshold.
        log_alpha: the first of them alone.
        epsilon: thresholds >= 0.
        largest: supremum of the log likelihood ratio. If finite, alpha must be smooth in
            ``sqrt(largest - l)``, as for a ratio that is extreme at a point of its sample space.
    """
    epsilon = np.asarray(epsilon, dtype=float)
    rates = errors(epsilon)
    with np.errstate(invalid="ignore"):
        cost = np.where(np.isneginf(rates.fpr), -np.inf, epsilon + rates.fpr)
        gap = rates.tpr - cost
        close = np.isfinite(cost) & (gap < _CLOSE) & (epsilon < largest)
    value = log_sub(rates.tpr, cost)
    if np.any(close):
        value = np.array(value)
        integrate = _integrate if np.isinf(largest) else _integrate_to
        value[close] = integrate(log_alpha, epsilon[close], gap[close], largest)
    return value


def _integrate(log_alpha: _LogAlpha, epsilon: np.ndarray, gap: np.ndarray, largest: float) -> np.ndarray:
    def log_term(step: np.ndarray) -> np.ndarray:
        ratio = epsilon[:, None] + step
        return ratio + log_alpha(ratio)

    width = _width(log_term, _start(epsilon, gap), np.full(epsilon.shape, largest))
    return np.log(width) + logsumexp(_LOG_WEIGHTS + log_term(width[:, None] * _POINTS), axis=1)


def _integrate_to(log_alpha: _LogAlpha, epsilon: np.ndarray, gap: np.ndarray, largest: float) -> np.ndarray:
    """The same in y with l = largest - y^2."""
    top = np.sqrt(largest - epsilon)

    def log_term(step: np.ndarray) -> np.ndarray:
        y = np.maximum(top[:, None] - step, 0.0)
        ratio = largest - y * y
        with np.errstate(divide="ignore"):
            return ratio + log_alpha(ratio) + np.log(2.0 * y)

    width = _width(log_term, 0.5 * _start(epsilon, gap) / top, top)
    return np.log(width) + logsumexp(_LOG_WEIGHTS + log_term(width[:, None] * _POINTS), axis=1)


def _start(epsilon: np.ndarray, gap: np.ndarray) -> np.ndarray:
    """A distance that is too short: a few times the mean excess of the log ratio over epsilon."""
    rounding = _ROUNDING * np.maximum(1.0, epsilon)
    return np.where(gap > _SURE * rounding, 4.0 * gap, rounding)


def _width(log_term: Callable[[np.ndarray], np.ndarray], start: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """Distance over which the integrand falls by 18 digits, within a factor of 2."""
    width = np.minimum(start, limit)
    first = log_term(np.zeros((width.size, 1)))[:, 0]
    for _ in range(_DOUBLINGS):
        short = (log_term(width[:, None])[:, 0] > first - _SPAN) & (width < limit)
        if not np.any(short):
            break
        width = np.where(short, np.minimum(2.0 * width, limit), width)
    return width

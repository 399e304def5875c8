"""Moments, used better: the likelihood ratio is distributed as a convex function of one normal variable.

"Present" is a mixture of shifts of a Gaussian, so LR is a mean of exponentials of linear functions of a Gaussian
vector: log LR is convex, and by Ehrhard's inequality its quantile function, at the quantiles of one normal
variable x, is convex too. Among all laws of this kind with mean 1 and a bounded moment, E (t - LR)_+ is largest for

    log LR = log C + a (x - y)_+

for some y: flat, then straight. In a this law spreads, in y it shrinks (convex order), and the largest a that the
moment allows grows with y. So the supremum over y in a cell is at most the value at the a of its right end and the y
of its left end. docs/theory/relaxed/dimension.md proves each step.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import log_ndtr, ndtr

from reticent.adversaries.relaxed.dimension import second_moment
from reticent.kernel.curves._logs import TINY
from reticent.kernel.curves._thresholds import halved

_EDGES = np.concatenate([np.linspace(-8.0, -3.0, 60), np.linspace(-3.0, 4.0, 501)[1:], np.linspace(4.0, 12.0, 120)[1:]])
_LOG_BELOW = log_ndtr(_EDGES)
_ORDERS = (2.0, 2.7, 3.8, 5.5, 9.0)  # of the moments of LR that are used
_WIDEST = 40.0  # a that is looked for
_USEFUL = 12.0  # log of chi-square at a noise, beyond which its moment says nothing
_HALVINGS = 70  # of the search for a
_MORE = 1e-7  # relative, of a: for rounding in the equation that it solves
_ROUNDING = 1e-14  # of values of order 1, and of logarithms that are close to 0


def log_deltas(log_norms: dict[float, float], thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As ``second_moment.log_deltas``, for a mixture of shifted Gaussians against the Gaussian.

    By RETICENT:one-normal.

    Args:
        log_norms: per order q, the log of an upper bound on ||LR - 1||_q^2; order 2 among them.
        thresholds: l >= 0.
    """
    found = [second_moment.log_deltas(log_norms, thresholds)]
    for q in _ORDERS:
        if log_norms.get(q, np.inf) < _USEFUL:  # ||LR||_q^2 is at most 1 + X at noise s / sqrt(q - 1), as for LR - 1
            found.append(by_logarithm(q, 0.5 * q * float(np.logaddexp(0.0, log_norms[q])), thresholds))
    add, remove = (np.minimum.reduce(list(bounds)) for bounds in zip(*found, strict=True))
    return add, remove


def by_logarithm(order: float, log_moment: float, thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """log of bounds on delta where log LR is convex in x, with E LR^order <= e^log_moment."""
    a = _largest(order, log_moment) * (1.0 + _MORE)
    if a.max() >= _WIDEST:
        return np.zeros(thresholds.shape), np.zeros(thresholds.shape)
    lost = math.exp(log_moment / order) * _beyond() + _ROUNDING
    grown = np.exp(thresholds)
    add = 1.0 - grown + _shortfall(thresholds, a) + lost * grown
    remove = grown * (_shortfall(-thresholds, a) + lost)
    return np.log(np.clip(add, TINY, 1.0)), np.log(np.clip(remove, TINY, 1.0))


def _largest(order: float, log_moment: float) -> np.ndarray:
    """Per y, an upper bound on the largest a with E LR^order <= e^log_moment: the moment grows with a."""

    def fits(a: np.ndarray) -> np.ndarray:
        return _log_mean(order * a) - order * _log_mean(a) <= log_moment + _ROUNDING

    return halved(fits, np.zeros(len(_EDGES)), np.full(len(_EDGES), _WIDEST), _HALVINGS)[1]


def _log_mean(a: np.ndarray, at: slice = slice(None)) -> np.ndarray:
    """log E exp(a (x - y)_+) at the edges ``at``."""
    y = _EDGES[at]
    return np.logaddexp(_LOG_BELOW[at], 0.5 * a * a - a * y + log_ndtr(a - y))


def _shortfall(log_t: np.ndarray, a: np.ndarray) -> np.ndarray:
    """The largest E (t - LR)_+ over all cells, and over what lies left of them, where LR is at most lognormal."""
    first, a, y = a[0], a[1:], _EDGES[:-1]
    t, log_c = np.exp(log_t)[:, None], -_log_mean(a, slice(-1))
    end = y + np.maximum(log_t[:, None] - log_c, 0.0) / a
    rise = np.exp(log_c + 0.5 * a * a - a * y) * (ndtr(end - a) - ndtr(y - a))
    flat = np.where(log_t[:, None] > log_c, t * ndtr(end) - np.exp(log_c) * ndtr(y) - rise, 0.0)
    straight = np.exp(log_t) * ndtr(log_t / first + 0.5 * first) - ndtr(log_t / first - 0.5 * first)
    return np.asarray(np.maximum(np.max(flat, axis=1), straight))


def _beyond() -> float:
    """For what lies right of all cells, in standard deviations of LR: E (LR - 1)_+ <= sqrt(X P(x > y))."""
    return float(np.sqrt(ndtr(-_EDGES[-1])))

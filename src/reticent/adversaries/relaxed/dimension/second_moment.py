"""What moments of the likelihood ratio allow when the direction is unknown: amplification and dimension at once.

With one direction u, uniform on the sphere of R^d and common to all steps, and masks b_t that are sampled with
probability p, two independent copies of the shift theta = (b_t u / s) have <theta, theta'> = (N / s^2) <u, u'>,
N ~ Binomial(T, p^2). So the likelihood ratio LR = dP_present / dP_absent has, under "absent",

    E (LR - 1)^2 = E_N [M_d(N / s^2) - 1] =: X(s),    M_d(x) = E exp(x <u, u'>) = 0F1(; d/2; x^2/4).

LR at noise s is the Ornstein-Uhlenbeck average of LR at noise s / sqrt(q - 1), so by Nelson's hypercontractivity
||LR - 1||_q^2 <= X(s / sqrt(q - 1)) for q >= 2. docs/theory/relaxed/dimension.md proves each step.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import logsumexp

from reticent.curves import binomial
from reticent.curves._logs import log_expm1, log_of
from reticent.curves.bessel import log_mean_exponential

LogMoment = Callable[[np.ndarray], np.ndarray]
"""From x >= 0 to log E exp(x <u, u'>), or an upper bound on it that grows with x."""

ORDERS = (2.0, 2.3, 2.7, 3.2, 3.8, 4.5, 5.5, 7.0, 9.0, 12.0, 16.0, 22.0)
"""q, of the moments that bound delta at a threshold; each gives a bound, the least is taken."""
_TERMS = 6000  # blocks of counts that are added up
_FAR = 1.02  # ratio of the blocks beyond the window
_KERNEL = 1e-12  # relative error of log M_d: ``curves.bessel`` is tested to 1e-13 against mpmath
_SLACK = 1e-12  # of a sum of at most 1e4 positive terms


def uniform(dimension: int) -> LogMoment:
    """log M_d of two uniform directions in ``dimension`` dimensions."""
    return lambda x: log_mean_exponential(x, float(dimension))


def log_chi_square(
    noise: float, rate: float, steps: int, moment: LogMoment, order: float = 2.0, window: float = 1.0
) -> float:
    """log of an upper bound on ||LR - 1||_q^2 under "absent"; for order 2 it is chi-square, up to rounding.

    By RETICENT:second-moment.

    Args:
        order: q >= 2.
        window: shrinks what is summed term by term, for tests; what is left out is bounded, never dropped.
    """
    scale = (order - 1.0) / noise**2
    inner = binomial.blocks(steps, rate**2, _TERMS, window)
    logs = [inner.log_most + _log_excess(moment, scale * inner.high)]
    if inner.low[0] > 0:
        logs.append(inner.log_below + _log_excess(moment, scale * np.array([inner.low[0]])))
    if inner.high[-1] < steps:
        logs.append(_beyond(int(inner.high[-1]) + 1, steps, rate, moment, scale))
    return float(logsumexp(np.concatenate(logs))) + _SLACK


def _beyond(first: int, steps: int, rate: float, moment: LogMoment, scale: float) -> np.ndarray:
    """Counts beyond the window in growing blocks: Chernoff's mass from the low end on, and M at the high end."""
    grown = np.ceil(first * _FAR ** np.arange(1, int(math.log(steps / first + 1.0) / math.log(_FAR)) + 3))
    low = np.unique(np.append(first, grown[grown <= steps].astype(np.int64)))
    high = np.append(low[1:] - 1, steps)
    return np.asarray(binomial.log_tail(low, steps, rate**2) + _log_excess(moment, scale * high))


def _log_excess(moment: LogMoment, x: np.ndarray) -> np.ndarray:
    """log(M(x) - 1), rounded up."""
    return log_expm1(moment(np.asarray(x, dtype=float)) * (1.0 + _KERNEL))


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

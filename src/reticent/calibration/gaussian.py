"""mu, epsilon and delta of a Gaussian curve, each from the other two, one number at a time and in microseconds.

With a = epsilon/mu - mu/2 and M the Mills ratio, delta = phi(a) (M(a) - M(a + mu)), so that
d log delta / d log mu = mu / (M(a) - M(a + mu)) and d log delta / d epsilon = -M(a + mu) / (M(a) - M(a + mu)).
log delta is concave in log mu and in epsilon: Newton's steps from the right side never pass the root.
"""

from __future__ import annotations

import math

from scipy.special import erfinv, log_ndtr, ndtri_exp

from reticent.kernel.curves._logs import HALF_LOG_TWO_PI, OVERFLOW
from reticent.kernel.curves.gaussian import mills_ratio

LEAST_MU, LARGEST_MU = 1e-60, 1e60  # instead of 0 and infinity: further than any release is
ROOT_EIGHT = 2.8284271247461903
_DEEP = -25.0  # a below: delta is 1 but for two tiny terms
_MAX_STEPS = 100  # of Newton's method
_SETTLED, _UNMOVED = 1e-14, 1e-15  # relative steps of mu and of epsilon that end it
_DEEPEST = -1e15  # log delta below which no mu is looked for
_CANCELS = 1e-7  # of a Mills ratio: smaller differences of two are taken by the slope
_ASYMPTOTIC = 100.0  # argument from which on the slope of the Mills ratio is its asymptotic series


def clipped(mu: float) -> float:
    """``mu`` with a finite logarithm; the largest for NaN."""
    return max(mu, LEAST_MU) if mu < LARGEST_MU else LARGEST_MU


def log_delta_at(mu: float, epsilon: float) -> float:
    """log delta at ``epsilon`` >= 0 of the Gaussian curve with ``mu`` > 0."""
    return _point(mu, epsilon)[0]


def mu_at(epsilon: float, log_delta: float) -> float:
    """The mu in [1e-60, 1e60] whose Gaussian curve has ``log_delta`` at ``epsilon`` >= 0."""
    if epsilon == 0.0:
        return clipped(ROOT_EIGHT * float(erfinv(math.exp(min(log_delta, 0.0)))))
    if not _DEEPEST < log_delta < 0.0:
        return LEAST_MU if log_delta < 0.0 else LARGEST_MU
    # delta < Phi(-a), so the a of this level is too large and its mu too small: the side to start from.
    level = -float(ndtri_exp(log_delta))
    root = math.sqrt(level * level + 2.0 * epsilon)
    mu = 2.0 * epsilon / (root + level) if level > 0.0 else root - level
    for _ in range(_MAX_STEPS):
        value, drop, _ = _point(mu, epsilon)
        step = (log_delta - value) * drop / mu
        mu *= math.exp(min(step, 1.0))
        if not (abs(step) > _SETTLED and mu < LARGEST_MU):
            break
    return clipped(mu)


def epsilon_at(mu: float, log_delta: float) -> float:
    """The least epsilon >= 0 at which the Gaussian curve with ``mu`` > 0 has at most ``log_delta`` < 0."""
    if log_delta_at(mu, 0.0) <= log_delta:
        return 0.0
    epsilon = mu * (0.5 * mu - float(ndtri_exp(log_delta)))
    for _ in range(_MAX_STEPS):
        value, drop, far = _point(mu, epsilon)
        step = (value - log_delta) * drop / far
        following = max(epsilon + step, 0.0)
        if following >= epsilon * (1.0 - _UNMOVED):
            break
        epsilon = following
    return epsilon


def _point(mu: float, epsilon: float) -> tuple[float, float, float]:
    """(log delta, M(a) - M(a + mu), M(a + mu))."""
    a = epsilon / mu - 0.5 * mu
    far = float(mills_ratio(a + mu))  # a + mu >= mu/2 > 0
    if a < _DEEP:
        value = math.log1p(-math.exp(float(log_ndtr(a))) - far * math.exp(-0.5 * a * a - HALF_LOG_TWO_PI))
        return value, math.exp(min(value + 0.5 * a * a + HALF_LOG_TWO_PI, OVERFLOW)), far
    near = float(mills_ratio(a))
    drop = near - far
    if drop < _CANCELS * near:  # -M' = 1 - x M, or its asymptotic series where that cancels
        x, square = a + 0.5 * mu, (a + 0.5 * mu) ** 2
        slope = 1.0 - x * float(mills_ratio(x)) if x < _ASYMPTOTIC else (1.0 - (3.0 - 15.0 / square) / square) / square
        drop = mu * slope
    return min(math.log(drop) - 0.5 * a * a - HALF_LOG_TWO_PI, 0.0), drop, far

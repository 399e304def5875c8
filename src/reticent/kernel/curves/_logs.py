"""Logarithms and differences of exponentials without cancellation, and the constants that they need."""

from __future__ import annotations

import numpy as np

LOG_2, LOG_HALF = 0.6931471805599453, -0.6931471805599453
HALF_LOG_TWO_PI = 0.9189385332046727
EPS = 2.0**-52
"""Distance from 1 to the next number in double precision: twice the rounding of one operation."""
OVERFLOW = 700.0
"""Exponent beyond which e^y is not taken: it overflows at 709.8."""
TINY = 1e-300
"""Instead of a probability of 0 whose logarithm is taken."""
HUGE = 1e300
"""Instead of an infinite threshold that is computed with."""
SMALL = -0.7
"""log of a rate from which on its complement is the smaller one: differences are taken of the smaller."""
_LARGE = 40.0  # exponent from which on e^x - 1 is e^x, to all digits


def log_of(x: np.ndarray) -> np.ndarray:
    """log x for x >= 0, without a warning where it is -inf."""
    with np.errstate(divide="ignore"):
        return np.log(x)


def log_expm1(x: np.ndarray) -> np.ndarray:
    """log(e^x - 1) for x >= 0, without overflow."""
    return np.where(x > _LARGE, x, log_of(np.expm1(np.minimum(x, _LARGE))))


def log1mexp(x: np.ndarray) -> np.ndarray:
    """log(1 - e^x) for x <= 0, accurate at both ends (Maechler's switch at -log 2)."""
    x = np.asarray(x, dtype=float)
    near, result = x > LOG_HALF, np.empty_like(x)
    count = np.count_nonzero(near)
    with np.errstate(divide="ignore"):
        if count == x.size:
            return np.log(np.negative(np.expm1(x, out=result), out=result), out=result)
        np.log1p(np.negative(np.exp(x, out=result), out=result), out=result)
        if count:  # whole arrays and few entries are faster than masks
            some = x[near]
            result[near] = np.log(np.negative(np.expm1(some, out=some), out=some), out=some)
    return result


def cell_masses(cdf: np.ndarray, sf: np.ndarray) -> np.ndarray:
    """Masses between neighbouring points, last axis: differences of ``cdf`` or of ``sf``, whichever is smaller."""
    return np.where(cdf[..., 1:] < 0.5, np.diff(cdf), -np.diff(sf))


def log_sub(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """log(e^a - e^b), with -inf wherever the difference is not positive."""
    positive = np.greater(a, b)
    with np.errstate(invalid="ignore"):  # infinite less infinite: not positive
        gap = np.where(positive, np.subtract(b, a), -1.0)
    return np.where(positive, a + log1mexp(gap), -np.inf)


def log_difference(large: np.ndarray, small: np.ndarray, over_small: np.ndarray, over_large: np.ndarray) -> np.ndarray:
    """log(e^large - e^small) of two probabilities, taken of them or of their complements: of what is smaller.

    Args:
        large, small: logs of the probabilities, of one shape.
        over_small, over_large: logs of 1 minus each, in the order of a difference: that of the small one comes first.
    """
    few = large < SMALL
    return log_sub(np.where(few, large, over_small), np.where(few, small, over_large))

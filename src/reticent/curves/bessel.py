"""log 0F1(; d/2; z^2/4), the likelihood ratio of a shift of unknown direction, and its inverse.

0F1(; d/2; z^2/4) is the mean of e^(z cos) over a uniform direction in d dimensions: cosh z for
d = 1, sinh(z)/z for d = 3. With nu = d/2 - 1 it is Gamma(nu + 1) (2/z)^nu I_nu(z).
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache, lru_cache

import numpy as np
from scipy.special import gammaln, ive

from reticent.kernel.curves._logs import LOG_2

_DEBYE_FROM = 60.0
"""Degrees of freedom from which the uniform expansion in 1/nu has full accuracy."""
_TERMS = 9
"""Of that expansion."""
_NEGLIGIBLE = 1e-18
"""Relative size of terms that are left out of it: two are enough for a million degrees of freedom."""
_LARGE, _HANKEL = 12.0, 2000.0
"""Arguments from which on Bessel functions, and then Hankel's expansion, replace the power series."""
_SERIES, _HANKEL_TERMS = 34, 16
"""Terms: of the power series, which reach 1e-20 up to ``_LARGE``, and of Hankel's expansion."""
_NEWTON, _SETTLED = 30, 1e-14
"""Newton's steps at most, and the relative step that ends them."""


def log_mean_exponential(z: np.ndarray, d: float) -> np.ndarray:
    """log 0F1(; d/2; z^2/4) for z >= 0, relative accuracy also where it is tiny."""
    z = np.asarray(z, dtype=float)
    if d == 1.0:
        return _log_cosh(z)
    if d >= _DEBYE_FROM:
        return _debye(z, 0.5 * d - 1.0)
    value = _series(np.minimum(z, _LARGE), d)
    large = z > _LARGE
    if np.any(large):
        value = np.asarray(value)
        value[large] = _large_argument(z[large], 0.5 * d - 1.0)
    return value


def inverse_log_mean_exponential(value: np.ndarray, d: float) -> np.ndarray:
    """z >= 0 with ``log_mean_exponential(z, d) = value``; 0 for value <= 0, infinity for infinity."""
    value = np.asarray(value, dtype=float)
    goal = np.where((value > 0) & np.isfinite(value), value, 1.0)
    z = goal + np.log1p(np.sqrt(-np.expm1(-2.0 * goal))) if d == 1.0 else _solve(goal, d)
    return np.where(value <= 0, 0.0, np.where(value == np.inf, np.inf, z))


def _solve(goal: np.ndarray, d: float) -> np.ndarray:
    # log 0F1 lies between the lower and the upper Amos integral; both have this inverse to first order.
    z = np.sqrt(2.0 * goal * d + goal * goal)
    for _ in range(_NEWTON):
        slope = z / (0.5 * d - 0.5 + np.sqrt(z * z + (0.5 * d + 0.5) ** 2))
        step = (goal - log_mean_exponential(z, d)) / slope
        z = np.maximum(z + step, 0.1 * z)
        # each step gains a factor of 20 or more: what is left after this one is rounding
        if np.all(np.abs(step) <= _SETTLED * z):
            break
    return z


def _log_cosh(z: np.ndarray) -> np.ndarray:
    small = np.log1p(2.0 * np.sinh(0.5 * np.minimum(z, 2.0)) ** 2)
    return np.where(z < 2.0, small, z + np.log1p(np.exp(-2.0 * z)) - LOG_2)


def _series(z: np.ndarray, d: float) -> np.ndarray:
    """log(1 + sum of positive terms); for z <= ``_LARGE``."""
    quarter = 0.25 * z * z
    total = np.zeros_like(quarter)
    for k in range(_SERIES, 0, -1):
        total = quarter / (k * (0.5 * d + k - 1.0)) * (1.0 + total)
    return np.log1p(total)


def _large_argument(z: np.ndarray, nu: float) -> np.ndarray:
    """log of Gamma(nu + 1) (2/z)^nu I_nu(z) for z >= ``_LARGE`` and nu < 29."""
    far = z > _HANKEL
    scaled = np.log(ive(nu, np.where(far, _LARGE, z)))
    if np.any(far):
        scaled[far] = _hankel(z[far], nu)
    return z + scaled + gammaln(nu + 1.0) - nu * np.log(0.5 * z)


def _hankel(z: np.ndarray, nu: float) -> np.ndarray:
    """log of e^-z I_nu(z) for z > ``_HANKEL``."""
    total = np.zeros_like(z)
    for k in range(_HANKEL_TERMS, 0, -1):
        total = -(4.0 * nu * nu - (2 * k - 1) ** 2) / (8.0 * k * z) * (1.0 + total)
    return np.log1p(total) - 0.5 * np.log(2.0 * np.pi * z)


def _debye(z: np.ndarray, nu: float) -> np.ndarray:
    """Uniform expansion for large order, written as a difference from its value at z = 0."""
    y = z / nu
    root = np.sqrt(1.0 + y * y)
    q = y * y / (1.0 + root)
    lead = nu * _minus_half_log(q) - 0.5 * np.log1p(q)
    p = 1.0 / root
    correction = np.zeros_like(p)
    for polynomial in _terms(nu):
        correction = (correction + np.polyval(polynomial, p)) / nu
    # Every polynomial has the factor p - 1 = -q/(1 + q), divided out in exact arithmetic.
    return lead - correction * q / (1.0 + q)


@lru_cache(maxsize=64)
def _terms(nu: float) -> tuple[np.ndarray, ...]:
    """The polynomials of terms that matter, the last term first; term k adds at most 2 / nu^(k+1) of its, relative."""
    known = enumerate(_log_debye(), 1)
    kept = [one for k, one in known if 2.0 * float(np.abs(one).sum()) > _NEGLIGIBLE * nu ** (k + 1)]
    return tuple(reversed(kept))


def _minus_half_log(q: np.ndarray) -> np.ndarray:
    """q - log(1 + q/2) > 0."""
    return q - np.log1p(0.5 * q)


@cache
def _log_debye() -> tuple[np.ndarray, ...]:
    """Coefficients (highest first) of (D_k(p) - D_k(1)) / (p - 1), log sum U_k(p)/nu^k = sum D_k(p)/nu^k."""
    u = [{0: Fraction(1)}]
    for _ in range(_TERMS):
        u.append(_next_debye(u[-1]))
    logs = [{0: Fraction(0)}]
    for k in range(1, _TERMS + 1):
        term = dict(u[k])
        for j in range(1, k):
            for a, x in logs[j].items():
                for b, y in u[k - j].items():
                    term[a + b] = term.get(a + b, Fraction(0)) - Fraction(j, k) * x * y
        logs.append(term)
    return tuple(_divide_by_p_minus_one(term) for term in logs[1:])


def _next_debye(u: dict[int, Fraction]) -> dict[int, Fraction]:
    """U_{k+1} = p^2 (1 - p^2) U_k' / 2 + (1/8) integral of (1 - 5 t^2) U_k."""
    result: dict[int, Fraction] = {}
    for n, c in u.items():
        for power, value in (
            (n + 1, c * (Fraction(n, 2) + Fraction(1, 8 * (n + 1)))),
            (n + 3, -c * (Fraction(n, 2) + Fraction(5, 8 * (n + 3)))),
        ):
            result[power] = result.get(power, Fraction(0)) + value
    return result


def _divide_by_p_minus_one(term: dict[int, Fraction]) -> np.ndarray:
    top = max(term)
    carried, quotient = Fraction(0), []
    for n in range(top, 0, -1):
        carried = carried + term.get(n, Fraction(0))
        quotient.append(float(carried))
    return np.array(quotient)

"""Noncentral chi-square tails, in logarithms, where common libraries return 0 or -inf.

Three routes, chosen per element: closed form for one degree of freedom; the second-order formula of
Lugannani and Rice where its own error estimate is below the tolerance; otherwise a contour integral
along the path of steepest descent, which is exact up to rounding. See docs/theory/curves.md.

Symbols: d degrees of freedom, lam noncentrality, E = 1 + e the saddle point (E = 1 at the mean),
w and u the two arguments of the Lugannani-Rice formula, theta the angle along the contour.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtri_exp

from reticent.kernel import checks
from reticent.kernel.curves._logs import HALF_LOG_TWO_PI, LOG_2, OVERFLOW, log1mexp
from reticent.kernel.curves._thresholds import halved
from reticent.kernel.curves.gaussian import mills_ratio
from reticent.kernel.errors import ParameterError
from reticent.kernel.stopping import checkpoint

_NODES = ((2.0, 240), (3.0, 112), (10.0, 64))
"""Half-range nodes of the contour rule from a number of degrees of freedom on: 13 digits."""
_CHUNK = 4096
"""Elements at once."""
_LEGENDRE = np.polynomial.legendre.leggauss(16)
_RTOL = 1e-12
"""Relative error up to which the fast formula may replace the contour, where none is asked for."""
_LEAST = 1e-310
"""Smallest root of a quantile with one degree of freedom: below, it counts as 0."""
_SHORT = 0.3
"""Of an interval times its distance from 0: the density counts as flat over it; angles below it take a series."""
_NEWTON, _SETTLED = 60, 1e-15
"""Newton's steps at most; the logarithmic step that ends them where tails are in closed form."""
_NEARLY = 1e-9
"""The same where they cost an integral: Newton squares the error, so less than rounding is left."""
_WIDEST = 50.0
"""Logarithmic step of Newton's method."""
_LOG_SADDLES, _HALVINGS = (-800.0, 60.0), 36
"""log E between which a quantile's saddle point is looked for by halving."""
_OFF_POLE, _REACH = 1.2, 4.5
"""In angular widths of the integrand: how far the contour keeps off the pole; half of where it ends, up to a turn."""
_NEXT_TERM, _CANCELLED = 4e-5, 4e-16
"""Error of the formula: of the term that it leaves out (at most 2.5e-5 on 20,000 laws, test_ncx2.py); of rounding."""


class LogTails(NamedTuple):
    """Natural logarithms; arrays of one shape.

    Attributes:
        cdf: log P(X <= x).
        sf: log P(X > x).
    """

    cdf: np.ndarray
    sf: np.ndarray


class _Law(NamedTuple):
    """Flat arrays that describe each element: the point, the law and its saddle point."""

    x: np.ndarray
    d: np.ndarray
    lam: np.ndarray
    gap: np.ndarray
    e: np.ndarray
    E: np.ndarray


def log_tails(x: ArrayLike, df: ArrayLike, nc: ArrayLike, rtol: float = _RTOL) -> LogTails:
    """Logarithms of the distribution function and of the survival function.

    Args:
        x: points, any real number; 0 or less has cdf 0.
        df: degrees of freedom, 1 or >= 2, need not be whole; broadcast against ``x``.
        nc: noncentrality, >= 0; 0 is the central law.
        rtol: relative error up to which the fast formula may replace the exact contour. The smaller
            tail has this relative error, the larger one is its complement.

    Returns:
        Both logarithms, finite wherever ``0 < x < inf``.

    Raises:
        ParameterError: ``df`` below 1 or between 1 and 2, ``nc`` negative, or any argument NaN.
    """
    checkpoint()
    x, df, nc = np.broadcast_arrays(checks.reals(x=x), _degrees(df), _noncentrality(nc))
    shape = x.shape
    x, df, nc = x.ravel(), df.ravel(), nc.ravel()
    low, high = np.empty_like(x), np.empty_like(x)
    low[x <= 0], high[x <= 0] = -np.inf, 0.0
    low[x == np.inf], high[x == np.inf] = 0.0, -np.inf
    inside = (x > 0) & (x < np.inf)
    one = inside & (df == 1.0)
    if one.any():
        root, shift = np.sqrt(x[one]), np.sqrt(nc[one])
        low[one], high[one] = folded_normal_tails(root, shift, (x[one] - nc[one]) / (root + shift))
    many = inside & (df != 1.0)
    if many.any():
        low[many], high[many] = _many_tails(_law(x[many], df[many], nc[many]), rtol)
    return LogTails(low.reshape(shape), high.reshape(shape))


def log_cdf(x: ArrayLike, df: ArrayLike, nc: ArrayLike, rtol: float = _RTOL) -> np.ndarray:
    """Logarithm of the distribution function.

    Args:
        x, df, nc, rtol: as for ``log_tails``, which has the errors as well.
    """
    return log_tails(x, df, nc, rtol).cdf


def log_sf(x: ArrayLike, df: ArrayLike, nc: ArrayLike, rtol: float = _RTOL) -> np.ndarray:
    """Logarithm of the survival function.

    Args:
        x, df, nc, rtol: as for ``log_tails``, which has the errors as well.
    """
    return log_tails(x, df, nc, rtol).sf


def quantile(log_cdf: ArrayLike, log_sf: ArrayLike, df: ArrayLike, nc: ArrayLike) -> np.ndarray:
    """The point whose tails are ``e^log_cdf`` below and ``e^log_sf`` above.

    Both are given so that neither end of the unit interval loses digits; the smaller one is used.
    Newton's method on the logarithm of a log-concave tail converges from any start.

    Args:
        log_cdf, log_sf: logarithms of both tails, <= 0, of one shape.
        df: degrees of freedom, 1 or >= 2; broadcast.
        nc: noncentrality, >= 0; broadcast.

    Returns:
        Points in [0, inf]; 0 where the true quantile is below the smallest double.

    Raises:
        ParameterError: an argument is outside its domain.
    """
    log_cdf = checks.log_probabilities(log_cdf=log_cdf)
    log_sf = checks.log_probabilities(log_sf=log_sf)
    low, high, df, nc = np.broadcast_arrays(log_cdf, log_sf, _degrees(df), _noncentrality(nc))
    shape = low.shape
    low, high, df, nc = low.ravel(), high.ravel(), df.ravel(), nc.ravel()
    x = np.where(low < high, 0.0, np.inf)
    proper = np.isfinite(np.minimum(low, high))
    one, many = proper & (df == 1.0), proper & (df != 1.0)
    if one.any():
        x[one] = folded_normal_quantile(low[one], high[one], np.sqrt(nc[one])) ** 2
    if many.any():
        x[many] = _many_quantiles(low[many], high[many], df[many], nc[many])
    return x.reshape(shape)


def _degrees(df: ArrayLike) -> np.ndarray:
    df = np.asarray(df, dtype=float)
    if not np.all(((df == 1.0) | (df >= 2.0)) & np.isfinite(df)):
        raise ParameterError("df", df, "1, or finite numbers >= 2")
    return df


def _noncentrality(nc: ArrayLike) -> np.ndarray:
    nc = np.asarray(nc, dtype=float)
    if not np.all((nc >= 0.0) & np.isfinite(nc)):
        raise ParameterError("nc", nc, "finite numbers >= 0")
    return nc


# One degree of freedom: the square of a shifted normal.


def folded_normal_tails(
    s: np.ndarray, m: np.ndarray | float, difference: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of P(|Z + m| <= s) and P(|Z + m| > s), for s >= 0 and m >= 0.

    ``difference`` is s - m where the caller knows it better than the subtraction gives it.
    """
    s, m = np.broadcast_arrays(np.asarray(s, dtype=float), np.asarray(m, dtype=float))
    near, far = (s - m if difference is None else difference), -s - m
    upper = np.logaddexp(log_ndtr(-near), log_ndtr(far))
    reach = log_ndtr(near)
    with np.errstate(invalid="ignore"):
        lower = np.where(np.isneginf(reach), -np.inf, reach + log1mexp(np.minimum(log_ndtr(far) - reach, 0.0)))
    small = (s > 0) & (s * np.maximum(m, 1.0) < 0.5)
    if np.any(small):
        lower = np.array(lower)
        lower[small] = _log_small_interval(s[small], m[small])
    return np.where(s > 0, lower, -np.inf), np.minimum(np.where(lower < -1e-3, np.minimum(upper, 0.0), upper), 0.0)


def _log_small_interval(s: np.ndarray, m: np.ndarray) -> np.ndarray:
    """log of the integral of the normal density over (m - s, m + s), short interval."""
    nodes, weights = _LEGENDRE
    y = 0.5 * s[:, None] * (1.0 + nodes)
    mean = 0.5 * np.sum(weights * np.exp(-0.5 * y * y) * np.cosh(m[:, None] * y), axis=1)
    return np.log(s) + LOG_2 - HALF_LOG_TWO_PI - 0.5 * m * m + np.log(mean)


def _log_folded_density(s: np.ndarray, m: np.ndarray | float) -> np.ndarray:
    """log density of |Z + m| at s."""
    return -0.5 * (s - m) ** 2 - HALF_LOG_TWO_PI + np.log1p(np.exp(-2.0 * s * m))


def folded_normal_quantile(log_cdf: np.ndarray, log_sf: np.ndarray, m: np.ndarray | float) -> np.ndarray:
    """s with P(|Z + m| <= s) = e^log_cdf; the smaller tail decides, 0 and infinity at the ends.

    Args:
        log_cdf, log_sf: natural logarithms of both tails, which add up to 1; of one shape.
        m: >= 0; broadcasts.
    """
    log_cdf, log_sf, m = np.broadcast_arrays(log_cdf, log_sf, np.asarray(m, dtype=float))
    lower = log_cdf < log_sf
    goal = np.where(lower, log_cdf, log_sf)
    ends = np.isneginf(goal)
    goal = np.where(ends, -1.0, goal)
    z = np.where(lower, 1.0, -1.0) * ndtri_exp(goal)
    flat = np.exp(np.minimum(goal - LOG_2 + HALF_LOG_TWO_PI + 0.5 * m * m, 9.0))
    s = np.where(lower & (flat < _SHORT / np.maximum(m, 1.0)), flat, np.maximum(z + m, 0.1))
    s = np.maximum(s, _LEAST)
    for _ in range(_NEWTON):
        below, above = folded_normal_tails(s, m)
        tail = np.where(lower, below, above)
        with np.errstate(over="ignore", invalid="ignore"):
            slope = np.where(lower, 1.0, -1.0) * np.exp(np.log(s) + _log_folded_density(s, m) - tail)
            step = np.clip(np.where(slope == 0.0, 0.0, (goal - tail) / slope), -OVERFLOW, OVERFLOW)
        s = np.maximum(s * np.exp(step), _LEAST)
        if np.all(np.abs(step) < _SETTLED):
            break
    return np.where(ends, np.where(lower, 0.0, np.inf), s)


# Two or more degrees of freedom.


def _law(x: np.ndarray, d: np.ndarray, lam: np.ndarray) -> _Law:
    gap = (x - lam) - d
    root = np.hypot(d, 2.0 * np.sqrt(lam) * np.sqrt(x))
    return _Law(x, d, lam, gap, 2.0 * gap / (d + 2.0 * lam + root), 2.0 * x / (d + root))


def _excess(e: np.ndarray, E: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(e - log(1 + e)) / e^2 =: h and 1/2 - h, both without cancellation."""
    inverse = 1.0 / (1.0 + E)
    s = e * inverse
    near = np.abs(s) < 0.34
    q = np.where(near, s, 0.0) ** 2
    series = np.zeros_like(q)
    for k in range(16, -1, -1):
        series = series * q + 1.0 / (2 * k + 3)
    shortfall = 0.5 * s + 2.0 * s * inverse * inverse * series
    with np.errstate(divide="ignore", over="ignore"):
        direct = (e - np.log(E)) / np.where(near, 1.0, e) / np.where(near, 1.0, e)
    h = np.where(near, 0.5 - shortfall, direct)
    return h, np.where(near, shortfall, 0.5 - h)


def _many_tails(law: _Law, rtol: float) -> tuple[np.ndarray, np.ndarray]:
    smaller, error = _lugannani_rice(law)
    rest = ~(error <= rtol)
    if rest.any():
        smaller[rest] = _contour(_Law(*(part[rest] for part in law)))[0]
    larger = log1mexp(np.minimum(smaller, 0.0))
    upper = law.e > 0
    return np.where(upper, larger, smaller), np.where(upper, smaller, larger)


def _lugannani_rice(law: _Law) -> tuple[np.ndarray, np.ndarray]:
    """Logarithm of the tail away from the mean, and an estimate of its relative error."""
    d, lam, e, E = law.d, law.lam, law.e, law.E
    h, shortfall = _excess(e, E)
    half_square = 0.5 * e * e * (d * h + lam)
    size = np.sqrt(2.0 * half_square)
    spread = d + 2.0 * lam * E
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log_ratio = 0.5 * np.log1p((lam * e + d * shortfall) / (d * h + lam))
        u = np.abs(e) * np.sqrt(0.5 * spread)
        skew_square = 8.0 * (d + 3.0 * lam * E) ** 2 / spread**3
        skew = np.sign(e) * np.sqrt(skew_square)
        kurtosis = 12.0 * (d + 4.0 * lam * E) / spread**2
        first = np.expm1(-log_ratio) / size
        second = (kurtosis / 8.0 - 5.0 * skew_square / 24.0 - 0.5 * skew / u + np.expm1(3.0 * log_ratio) / u**2) / u
        mills = mills_ratio(size)
        total = mills + first + second
        value = -half_square - HALF_LOG_TWO_PI + np.log(total)
        error = _NEXT_TERM * (kurtosis + skew_square) ** 2.5 * (1.0 + size) + _CANCELLED / (size**3 * total)
    return value, np.where(np.isfinite(value) & np.isfinite(error) & (total > 0), error, np.inf)


def _contour(law: _Law) -> tuple[np.ndarray, np.ndarray]:
    """(log of the tail away from the mean, log density), in chunks that bound the memory."""
    tail, density = np.empty(law.x.shape), np.empty(law.x.shape)
    ends = [low for low, _ in _NODES[1:]] + [np.inf]
    for (low, nodes), end in zip(_NODES, ends, strict=True):
        members = np.flatnonzero((law.d >= low) & (law.d < end))
        for start in range(0, members.size, _CHUNK):
            here = members[start : start + _CHUNK]
            tail[here], density[here] = _contour_chunk(_Law(*(part[here, None] for part in law)), nodes)
    return tail, density


def _contour_chunk(law: _Law, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Trapezoid rule on w = c r(theta) e^(i theta), the path on which the phase is constant for c = 1.

    Close to the mean the path is moved off the pole at w = 1 by ``_OFF_POLE`` times its angular width (c != 1).
    Every difference is formed without cancellation, so that d = 1e7 keeps full accuracy.
    """
    x, d, lam, _, e, E = law
    upper = e > 0
    width = 1.0 / np.sqrt(lam * E + 0.5 * d)
    log_saddle = -np.log1p(e, where=np.abs(e) < 0.5, out=np.log(E))
    log_crossing = np.where(
        upper, np.minimum(log_saddle, -_OFF_POLE * width), np.maximum(log_saddle, _OFF_POLE * width)
    )
    shift = np.expm1(log_crossing - log_saddle)
    crossing, offset = np.exp(log_crossing), np.expm1(log_crossing)

    reach = 2.0 * np.arcsin(np.minimum(1.0, _REACH * width))
    theta = reach * (np.arange(nodes) / nodes)
    s, cos, sin = 2.0 * np.sin(0.5 * theta) ** 2, np.cos(theta), np.sin(theta)
    growth, growth_slope = _path(theta, sin, cos, law)
    r = (1.0 + growth) / E
    real = 0.5 * (
        lam / crossing * (-s - growth) / (1.0 + growth) + x * crossing * (growth * cos - s) - d * np.log1p(growth)
    )
    phase = 0.5 * sin * shift * (x * r + lam / ((1.0 + shift) * r))
    weight = np.exp(real)
    weight[:, 0] *= 0.5
    # dw = crossing * (growth' + i (1 + growth)) e^(i theta) dtheta
    turn_cos, turn_sin = np.cos(theta + phase), np.sin(theta + phase)
    # everything over max(1, crossing), which overflows for points close to 0
    scale = np.maximum(crossing, 1.0)
    ahead = crossing / scale
    re = ahead * (growth_slope * turn_cos - (1.0 + growth) * turn_sin)
    im = ahead * (growth_slope * turn_sin + (1.0 + growth) * turn_cos)
    p, q = -offset / scale - ahead * (growth * cos - s), ahead * (1.0 + growth) * sin
    tail = np.sum(weight * (re * q + im * p) / (p * p + q * q), axis=1)
    density = np.sum(weight * im, axis=1)
    step = (reach / nodes)[:, 0]
    height = _height(law, offset, log_crossing)[:, 0]
    with np.errstate(divide="ignore"):
        log_tail = height + np.log(np.abs(tail) * step / np.pi)
        log_density = height + np.maximum(log_crossing[:, 0], 0.0) + np.log(density * step / (2.0 * np.pi))
    return log_tail, log_density


def _path(theta: np.ndarray, sin: np.ndarray, cos: np.ndarray, law: _Law) -> tuple[np.ndarray, np.ndarray]:
    """r(theta) / r(0) - 1 and its derivative, r = (d tau + sqrt(d^2 tau^2 + 4 lam x)) / 2x, tau = theta / sin theta."""
    x, d, lam = law[:3]
    missing, small = theta - sin, theta < _SHORT
    short = theta[small]
    missing[small] = short * short * short * _missing_from_sine(short * short)
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = np.where(theta > 0, missing / sin, 0.0)
        slope = np.where(theta > 0, (sin * (1.0 - cos) - cos * missing) / sin**2, 0.0)
    tau = 1.0 + excess
    fourfold = 2.0 * np.sqrt(lam) * np.sqrt(x)
    start, root = np.hypot(d, fourfold), np.hypot(d * tau, fourfold)
    rise = d * excess * (1.0 + d * (tau + 1.0) / (root + start))
    growth = rise / (d + start)
    return growth, (1.0 + growth) * d * slope / root


def _missing_from_sine(square: np.ndarray) -> np.ndarray:
    """(theta - sin theta) / theta^3 by its series, for theta < ``_SHORT``."""
    total = np.zeros_like(square)
    for k in range(7, 0, -1):
        total = (1.0 - total * square) / ((2 * k) * (2 * k + 1))
    return total


def _height(law: _Law, offset: np.ndarray, log_crossing: np.ndarray) -> np.ndarray:
    """The exponent g = (lam / w + x w - lam - x) / 2 - (d / 2) log w at the real point w = 1 + offset."""
    crossing = np.exp(log_crossing)
    close = np.abs(offset) < 0.5
    u = np.where(close, offset, 0.0)
    h, _ = _excess(u, 1.0 + u)
    near = 0.5 * (law.d * h * u * u + law.lam * u * u / (1.0 + u) + law.gap * u)
    far = 0.5 * (offset * law.x - law.lam * (offset / crossing) - law.d * log_crossing)
    return np.where(close, near, far)


def _many_quantiles(low: np.ndarray, high: np.ndarray, d: np.ndarray, lam: np.ndarray) -> np.ndarray:
    lower = low < high
    goal = np.where(lower, low, high)
    x = _first_guess(np.where(lower, 1.0, -1.0) * ndtri_exp(goal), d, lam)
    active = np.flatnonzero(x > 0)
    for _ in range(_NEWTON):
        law = _law(x[active], d[active], lam[active])
        tail, density = _contour(law)
        tail = np.where((law.e > 0) != lower[active], tail, log1mexp(np.minimum(tail, 0.0)))
        slope = np.where(lower[active], 1.0, -1.0) * np.exp(np.log(law.x) + density - tail)
        step = np.clip((goal[active] - tail) / slope, -_WIDEST, _WIDEST)
        x[active] = law.x * np.exp(step)
        active = active[(np.abs(step) > _NEARLY) & (x[active] > 0)]
        if active.size == 0:
            break
    return x


def _first_guess(z: np.ndarray, d: np.ndarray, lam: np.ndarray) -> np.ndarray:
    """x = E (d + lam E) with r*(E) = z, where r* is the modified signed root: bisection on log E."""
    low, high = halved(lambda middle: _signed_root(middle, d, lam) <= z, *_LOG_SADDLES, _HALVINGS)
    E = np.exp(0.5 * (low + high))
    return E * (d + lam * E)


def _signed_root(log_E: np.ndarray, d: np.ndarray, lam: np.ndarray) -> np.ndarray:
    e, E = np.expm1(log_E), np.exp(log_E)
    h, shortfall = _excess(e, E)
    w = e * np.sqrt(d * h + lam)
    with np.errstate(divide="ignore", invalid="ignore"):
        return w + 0.5 * np.log1p((lam * e + d * shortfall) / (d * h + lam)) / np.where(w == 0, 1.0, w)

"""Bhattacharyya affinity of one subsampled step, by quadrature with a bounded error.

With z standard normal under N(0), A = 1-p + p e^{z/n - s/2} and B = 1 (add) or 1-p + p e^{-z/n - s/2}
(replace), n the noise multiplier, s = 1/n^2:

    1 - rho = E (sqrt A - sqrt B)^2 / 2,

a positive integrand, so nothing cancels. It is analytic in the strip |Im z| < pi n, where the trapezoid
rule converges geometrically: for a step h its error is at most sup_c E|..|^2 e^{a^2/2} / (e^{2 pi a/h} - 1)
for any a < pi n (docs/theory/closed-forms.md derives the bound on |sqrt A - sqrt B|^2 off the axis).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from reticent.kernel.curves._logs import EPS, HALF_LOG_TWO_PI
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.pairs.gaussian_mixture import log_mixture

EXPONENT = 36.0  # the trapezoid error is about e^-36 of the bound on the integrand
REACH = 9.5  # standard deviations beyond the outermost peak
_LEAST_NOISE = 0.03  # below, the parts do not overlap: the limit and monotonicity enclose the value
_ROUNDING = 2e-13  # relative, of a term
_NODES_AT_ONCE = 1 << 18


class Interval(NamedTuple):
    """``lower <= truth <= upper``."""

    lower: np.ndarray
    upper: np.ndarray


def minus_log_affinity(noise: np.ndarray, rate: np.ndarray, neighbouring: Neighbouring) -> Interval:
    """Both ends of -log rho for broadcast ``noise`` >= 0 and ``rate`` in (0, 1].

    Laws with like numbers of nodes are summed together.
    """
    replace = neighbouring is Neighbouring.REPLACE
    noise, rate = np.asarray(noise, dtype=float), np.asarray(rate, dtype=float)
    if noise.shape != rate.shape:
        noise, rate = np.broadcast_arrays(noise, rate)
    flat_noise, flat_rate = np.maximum(noise.reshape(-1), _LEAST_NOISE), rate.reshape(-1)
    width, step = _grid(flat_noise, replace)
    count = np.ceil(width / step).astype(int) + 1
    if noise.size == 1:
        out = _evaluate(flat_noise, flat_rate, int(count[0]), replace)
    else:
        out = np.empty((2, noise.size))
        size = 1 << np.ceil(np.log2(count)).astype(int)
        for nodes in np.unique(size):
            members = np.flatnonzero(size == nodes)
            block = max(1, _NODES_AT_ONCE // int(nodes))
            for start in range(0, len(members), block):
                index = members[start : start + block]
                out[:, index] = _evaluate(flat_noise[index], flat_rate[index], int(count[index].max()), replace)
    _correct_limits(out, noise.reshape(-1), flat_rate, replace)
    return Interval(*out.reshape(2, *noise.shape))


def advantage_above(minus_log: np.ndarray) -> np.ndarray:
    """sqrt(1 - rho^2): no two laws of affinity rho = exp(-minus_log) have a larger total variation."""
    return np.sqrt(-np.expm1(-2.0 * minus_log))


def _grid(noise: np.ndarray, replace: bool) -> tuple[np.ndarray, np.ndarray]:
    """Length of the range in z that is summed, and the largest step."""
    a = np.minimum(np.pi * noise, np.sqrt(2.0 * EXPONENT))
    step = 2.0 * np.pi * a / (EXPONENT + 0.5 * a * a)
    return 2.0 / noise + (REACH if replace else 2.0 * REACH), step


@np.errstate(divide="ignore", over="ignore", invalid="ignore")  # the smaller of two bounds is taken
def _evaluate(noise: np.ndarray, rate: np.ndarray, nodes: int, replace: bool) -> np.ndarray:
    n, p = noise[:, None], rate[:, None]
    width, _ = _grid(n, replace)
    step = width / (nodes - 1)
    z = np.arange(nodes) * step - (0.0 if replace else REACH)
    shift, scaled = 0.5 / (n * n), z / n
    log_phi = -0.5 * z * z - HALF_LOG_TWO_PI
    loss = log_a = log_mixture([p], [scaled - shift])
    log_b: np.ndarray | float = 0.0
    weight = step
    if replace:  # even: the nodes above 0 count twice
        log_b, twice = log_mixture([p], [-scaled - shift]), np.full(nodes, 2.0)
        twice[0] = 1.0
        loss, weight = log_a - log_b, step * twice
    root = np.exp(0.5 * (np.maximum(log_a, log_b) + log_phi)) * np.expm1(-0.5 * np.abs(loss))
    root *= root
    deficit = 0.5 * (weight * root).sum(axis=1)
    radius = _radius(noise, rate, step[:, 0], replace) + (_ROUNDING + 0.5 * EPS * nodes) * deficit
    low = -np.log1p(-np.maximum(deficit - radius, 0.0))
    high = -np.log1p(-np.minimum(deficit + radius, 1.0))
    return np.array([low, high])


def _radius(noise: np.ndarray, rate: np.ndarray, step: np.ndarray, replace: bool) -> np.ndarray:
    """Bound on the error of 1 - rho: trapezoid rule and the two truncated tails."""
    s = noise**-2.0
    a = np.minimum(np.pi * noise * (1.0 - 1e-12), 2.0 * np.pi / step)
    angle = a / noise
    size = _off_axis_replace(rate, s, angle) if replace else _off_axis_add(rate, s, angle)
    trapezoid = size * np.exp(0.5 * a * a - 2.0 * np.pi * a / step) / -np.expm1(-2.0 * np.pi * a / step)
    far = 2.0 / noise + REACH - step
    # (sqrt A - sqrt B)^2 <= |A - B| <= p (r + 1) beyond the peaks, and likewise p r_- + p r_+.
    linear = rate * (ndtr(1.0 / noise - far) + ndtr(-far))
    square = rate**2 * (np.exp(s) * ndtr(2.0 / noise - far) + ndtr(-far)) / np.maximum(1.0 - rate, 1e-300)
    right = np.fmin(linear, square)
    left = right if replace else rate**2 * ndtr(step - REACH)
    return trapezoid + 2.0 * (right + left)


def _off_axis_add(rate: np.ndarray, s: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """Bound on E |sqrt A - 1|^2 at z + ic: |sqrt w - 1| <= |w - 1| and |sqrt w - 1|^2 <= |w - 1|."""
    return np.minimum(rate**2 * (np.expm1(s) + 2.0 * (1.0 - np.cos(angle))), 2.0 * rate)


def _off_axis_replace(rate: np.ndarray, s: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """Bound on E |sqrt A - sqrt B|^2 at z + ic."""
    keep = np.maximum(1.0 - rate, 1e-300)
    general = np.minimum(4.0 * rate**2 * np.exp(s) / keep, 4.0 * rate)
    narrow = rate**2 * (4.0 * np.sinh(s) + 2.0 * np.exp(-s) * (1.0 - np.cos(2.0 * angle)))
    floor = np.maximum(keep, rate * np.cos(np.minimum(angle, 0.5 * np.pi)) * np.exp(-0.5 * s))
    return np.where(angle < 0.5 * np.pi, np.fmin(general, narrow / (4.0 * floor)), general)


def _correct_limits(out: np.ndarray, noise: np.ndarray, rate: np.ndarray, replace: bool) -> None:
    """Exact ends: no subsampling, and noise so small that only the mask hides the target.

    rho increases with the noise (more noise is post-processing), so below the least noise of the rule
    -log rho lies between its value there and its limit at 0.
    """
    with np.errstate(divide="ignore"):
        limit = -np.log1p(-rate) * (1.0 if replace else 0.5)
        exact = noise**-2.0 * (0.5 if replace else 0.125)
    out[1] = np.where(noise < _LEAST_NOISE, limit, np.minimum(out[1], limit * (1.0 + 1e-15)))
    out[:2] = np.where(rate == 1.0, exact, out[:2])

"""What one step says about a field: the mask term F, and the affinity of all steps that follows from it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from reticent.kernel import checks

LARGEST_CHANGE = 2.0
"""Two clipped gradients are never further apart than this, in units of the clip norm."""


def mask_term(norm_a: ArrayLike, norm_b: ArrayLike, distance: ArrayLike, noise_multiplier: float) -> np.ndarray:
    """F = e^{s a^2} + e^{s b^2} - 2 e^{s g.g'}, s = 1/noise_multiplier^2: what one step tells, per p^2.

    The chi-square-like divergence of (1-p) N(0) + p N(g) from the same with g', over p^2, to first
    order; it sees the distance and, through the shared component, the sampling mask. Without cancellation:
    4 e^{s (a^2 + b^2)/2} (sinh^2(s (a^2 - b^2)/4) - expm1(-s distance^2/2)/2). docs/theory/attribute.md.

    Args:
        norm_a: norm of one clipped gradient over the clip norm; any shape.
        norm_b: norm of the other.
        distance: their distance over the clip norm.
        noise_multiplier: > 0.

    Raises:
        ParameterError: ``noise_multiplier`` is not > 0.
    """
    s = 1.0 / checks.positive(noise_multiplier=noise_multiplier) ** 2
    a2, b2, r2 = (np.square(np.asarray(x, dtype=float)) for x in (norm_a, norm_b, distance))
    with np.errstate(over="ignore", invalid="ignore"):
        spread = np.square(np.sinh(0.25 * s * (a2 - b2))) - 0.5 * np.expm1(-0.5 * s * r2)
        value = 4.0 * np.exp(0.5 * s * (a2 + b2)) * spread
    return np.where(np.isnan(value), np.inf, value)


def worst_mask_term(change: ArrayLike, noise_multiplier: float) -> np.ndarray:
    """Largest ``mask_term`` of two vectors of norm at most 1 at distance at most ``change`` <= 2.

    F is convex in each e^{s |.|^2/2}, so the extremes are a chord of the unit sphere and, on a line through 0, a
    unit vector and its shortened copy. docs/theory/attribute.md.

    By RETICENT:attribute-clt.

    Args:
        change: in [0, 2], any shape; over the clip norm.
        noise_multiplier: > 0.
    """
    change = np.asarray(change, dtype=float)
    radial = mask_term(1.0, np.abs(1.0 - change), change, noise_multiplier)
    return np.maximum(mask_term(1.0, 1.0, change, noise_multiplier), radial)


def log_affinity(total: float, largest: float, rate: float) -> float:
    """Lower bound on log rho of all steps, given the sum of F and the largest F of a step.

    Each step has rho >= 1 - p^2 F/(8 (1 - p)); log(1 - x) >= x log(1 - x_max)/x_max for 0 <= x <= x_max.

    By RETICENT:attribute-affinity.

    Args:
        total: sum of F over the steps, >= 0.
        largest: the largest F of a step.
        rate: of Poisson sampling, in (0, 1].

    Returns:
        log rho <= 0; -inf where nothing is bounded.
    """
    if total == 0.0:
        return 0.0
    top = math.inf if rate == 1.0 else rate**2 * largest / (8.0 * (1.0 - rate))
    if not top < 1.0:
        return -math.inf
    slope = math.log1p(-top) / top if top > 0.0 else -1.0
    return slope * rate**2 * total / (8.0 * (1.0 - rate))

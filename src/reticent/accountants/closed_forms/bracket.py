"""What is proven of the advantage: by the affinity of one step, and by two attackers who also see the sampling.

Where steps differ, affinities multiply, so ``proven_upper`` takes runs of equal steps and sums over them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erf

from reticent.accountants.affinity import Interval, advantage_above, minus_log_affinity
from reticent.accountants.closed_forms.elementwise import Run, arguments, elementwise
from reticent.pairs import Neighbouring

_SQRT_8 = 2.8284271247461903
_ULPS = 1.0 + 1e-14  # for the rounding of a bound that is proven


def proven_bracket(
    noise_multiplier: ArrayLike, sample_rate: ArrayLike, steps: ArrayLike, neighbouring: Neighbouring
) -> Interval:
    """Proven lower and upper bounds on the advantage, at the price of one quadrature.

    Lower: 1 - rho^T. Upper: the least of sqrt(1 - rho^{2T}), of 1 - (1-p)^T (the target is never sampled),
    and of erf(sensitivity sqrt(p T) / (sqrt 8 noise)) (the mask revealed, by concavity).

    Status: proven; rho by a quadrature whose error is bounded (``affinity.py``), on the safe side of each end.
    Width: the upper end exceeds the truth by at most 25.4 % where the advantage is small.

    By RETICENT:hellinger-bracket.
    """
    noise, rate, count = arguments(noise_multiplier, sample_rate, steps)
    minus_log = minus_log_affinity(noise, rate, neighbouring)
    lower = -np.expm1(-count * minus_log.lower)
    return Interval(lower, _upper(count * minus_log.upper, *_drawn(noise, rate, count), neighbouring))


def proven_upper(parts: Sequence[Run], neighbouring: Neighbouring) -> float:
    """Proven upper bound on the advantage of all parts together, each Poisson-sampled with noise.

    The least of sqrt(1 - rho^2) with rho the product of the affinities of all steps, of the probability that the
    target is sampled at all, and, the mask revealed, of erf(sensitivity sqrt(sum of p T / noise^2) / sqrt 8): given the
    mask the advantage is a concave function of the sum over its steps of 1 / noise^2, whose mean that sum is.

    Args:
        parts: noise, rate and steps of each Poisson-sampled run; with noise.
    """
    noise, rate, steps = np.array(parts, dtype=float).T
    minus_log = np.sum(steps * minus_log_affinity(noise, rate, neighbouring).upper)
    log_never, energy = _drawn(noise, rate, steps)
    return float(_upper(minus_log, np.sum(log_never), np.sum(energy), neighbouring))


def proven(
    noise_multiplier: ArrayLike, sample_rate: ArrayLike, steps: ArrayLike, neighbouring: Neighbouring
) -> np.ndarray:
    """Proven upper bound on the advantage without any quadrature.

    sqrt(1 - rho^{2T}) with 1 - rho <= p^2 (e^s - 1) / (8 sqrt(1-p)) for add/remove and
    <= p^2 sinh(s) / (2 kappa), kappa = 1 - p (1 - e^{-s/2}), for replacement (arithmetic-geometric mean and
    Cauchy-Schwarz in the integral of (P-Q)^2 / (sqrt P + sqrt Q)^2), and the two bounds by the mask.

    Status: proven. Within 1e-3: only where the advantage itself is below about 4e-3, or close to 1.
    """
    return elementwise(_proven, noise_multiplier, sample_rate, steps, neighbouring)


def _proven(noise: np.ndarray, rate: np.ndarray, steps: np.ndarray, neighbouring: Neighbouring) -> np.ndarray:
    energy = 1.0 / (noise * noise)
    if neighbouring is Neighbouring.REPLACE:
        deficit = rate * rate * np.sinh(energy) / (2.0 + 2.0 * rate * np.expm1(-0.5 * energy))
    else:
        deficit = rate * rate * np.expm1(energy) / np.sqrt(64.0 - 64.0 * rate)
    return _upper(-steps * np.log1p(-np.minimum(deficit, 1.0)), *_drawn(noise, rate, steps), neighbouring)


def _drawn(noise: np.ndarray, rate: np.ndarray, steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(log of the probability that the target is never sampled, mean of the sum of 1 / noise^2 where it is)."""
    with np.errstate(divide="ignore"):
        return steps * np.log1p(-rate), rate * steps / (noise * noise)


def _upper(minus_log: Any, log_never: Any, energy: Any, neighbouring: Neighbouring) -> np.ndarray:
    """The least of three bounds on the advantage: by the affinity, and two for an attacker who also sees the sampling.

    Args:
        minus_log: -log rho of all steps, or more.
        log_never, energy: see ``_drawn``; of all steps.
    """
    revealed = erf(neighbouring.sensitivity / _SQRT_8 * np.sqrt(energy)) * _ULPS
    never = -np.expm1(log_never) * _ULPS
    return np.fmin(np.fmin(advantage_above(minus_log) * _ULPS, 1.0), np.fmin(never, revealed))

"""What is proven of the advantage: by the affinity of one step, and by two attackers who also see the sampling.

Where steps differ, affinities multiply, so ``proven_upper`` takes runs of equal steps and sums over them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reticent.accountants.closed_forms.elementwise import Run
from reticent.accountants.closed_forms.gaussian import advantage_at
from reticent.kernel.accountants.affinity import advantage_above, minus_log_affinity
from reticent.kernel.pairs import Neighbouring

_ULPS = 1.0 + 1e-14  # for the rounding of a bound that is proven


def proven_upper(parts: Sequence[Run], neighbouring: Neighbouring) -> float:
    """Proven upper bound on the advantage of all parts together, each Poisson-sampled with noise.

    The least of sqrt(1 - rho^2) with rho the product of the affinities of all steps, of the probability that the
    target is sampled at all, and, the mask revealed, of erf(sensitivity sqrt(sum of p T / noise^2) / sqrt 8): given the
    mask the advantage is a concave function of the sum over its steps of 1 / noise^2, whose mean that sum is.

    By RETICENT:hellinger-bracket.

    Args:
        parts: noise, rate and steps of each Poisson-sampled run; with noise.
    """
    noise, rate, steps = np.array(parts, dtype=float).T
    minus_log = np.sum(steps * minus_log_affinity(noise, rate, neighbouring).upper)
    log_never, energy = drawn(noise, rate, steps)
    return float(least_upper(minus_log, np.sum(log_never), np.sum(energy), neighbouring))


def drawn(noise: np.ndarray, rate: np.ndarray, steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(log of the probability that the target is never sampled, mean of the sum of 1 / noise^2 where it is)."""
    with np.errstate(divide="ignore"):
        return steps * np.log1p(-rate), rate * steps / (noise * noise)


def least_upper(minus_log: Any, log_never: Any, energy: Any, neighbouring: Neighbouring) -> np.ndarray:
    """The least of three bounds on the advantage: by the affinity, and two for an attacker who also sees the sampling.

    Args:
        minus_log: -log rho of all steps, or more.
        log_never, energy: see ``drawn``; of all steps.
    """
    revealed = advantage_at(neighbouring.sensitivity * np.sqrt(energy)) * _ULPS
    never = -np.expm1(log_never) * _ULPS
    return np.fmin(np.fmin(advantage_above(minus_log) * _ULPS, 1.0), np.fmin(never, revealed))

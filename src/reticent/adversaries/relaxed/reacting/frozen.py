"""A legal attack on gradients that react: the record pushes along its direction only where that agrees with a known e.

So does the perceptron on weights that stay where they are: max(0, -<u, w>) has the gradient -u where <u, w> < 0, and
else 0. The attacker thresholds the sum of <y_t, e>. Given a = <u, e> the sum is normal, around max(a, 0) times the
number of draws. Where a head may change the sign of what it adds, it is |a|: a squared loss whose residual is -sgn(a).
Power grows with both, so cells of a and groups of counts take their lower ends.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from reticent.adversaries.relaxed.dimension.overlap_law import increments
from reticent.kernel.curves import binomial

_LEVELS, _CELLS, _GROUPS = 100, 300, 40  # thresholds; cells of a; groups of counts
_WIDTH, _MOST = 6.0, 9.0  # of the cells, in standard deviations of a; of the thresholds, in those of the noise
_RARE = 1e-6  # counts with less probability are left out: power is lost, nothing else
_ROUNDING = 1e-10  # of every mass


def error_rates(
    noise: float, rate: float, steps: int, dimension: int, records: int, *, signed: bool
) -> tuple[np.ndarray, np.ndarray]:
    """(false positive rates, lower bounds on the power) of threshold tests on the sum.

    Args:
        noise: noise over the clip norm, > 0.
        rate: Poisson inclusion probability, in (0, 1].
        steps: number of noisy sums.
        dimension: of the space in which the direction is unknown, >= 1.
        records: of the person, each drawn independently, all in one direction.
        signed: whether the record may push against its direction, too.
    """
    counts, mass = _counts(rate, steps * records)
    ends, inside = _overlaps(dimension)
    shifts = np.multiply.outer(ends, counts).ravel() / (noise * math.sqrt(steps))
    weights = np.multiply.outer(inside if signed else 0.5 * inside, mass).ravel()
    largest = float(np.max(shifts))
    beyond = np.linspace(1.0, min(largest, _MOST) + _MOST, _LEVELS // 2)
    thresholds = np.append(np.linspace(-1.0, 1.0, _LEVELS // 2), beyond)
    fpr = ndtr(-thresholds)
    gained = (ndtr(shifts - thresholds[:, None]) - fpr[:, None]) @ weights
    return fpr, np.minimum(fpr + gained * (1.0 - _ROUNDING), 1.0)


def _counts(rate: float, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """How often the record is drawn, and with which probability at least so often and no more."""
    if rate == 1.0:
        return np.array([float(steps)]), np.ones(1)
    law = binomial.grouped(steps, rate, _GROUPS, _RARE)
    return law.low.astype(float), np.exp(law.log_least)


def _overlaps(dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Lower ends of cells of |<u, e>|, and lower bounds on their probabilities."""
    if dimension == 1:
        return np.ones(1), np.ones(1)
    edges = np.append(np.linspace(0.0, min(_WIDTH / math.sqrt(dimension), 1.0), _CELLS + 1), 1.0)
    return edges[:-1], increments(edges, dimension)[0] * (1.0 - _ROUNDING)

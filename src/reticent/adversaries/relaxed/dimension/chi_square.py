"""The second moment of the likelihood ratio where directions are unknown in d dimensions: amplification and dimension.

With one direction u, uniform on the sphere of R^d and common to all steps, and masks b_t that are sampled with
probability p, two independent copies of the shift theta = (b_t u / s) have <theta, theta'> = (N / s^2) <u, u'>,
N ~ Binomial(T, p^2). So the likelihood ratio LR = dP_present / dP_absent has, under "absent",

    E (LR - 1)^2 = E_N [M_d(N / s^2) - 1] =: X(s),    M_d(x) = E exp(x <u, u'>).

LR at noise s is the Ornstein-Uhlenbeck average of LR at noise s / sqrt(q - 1), so by Nelson's hypercontractivity
||LR - 1||_q^2 <= X(s / sqrt(q - 1)) for q >= 2.

All records of one person: in a step J ~ Binomial(K, p) of them are drawn, and

    <theta, theta'> = sum over steps t and pairs of drawn records (j, k) of <g_jt, g'_kt> / s^2,

N = sum_t J_t J'_t terms. If each g_jt is uniform for the attacker, however they depend on each other, each term is
distributed as <u, u'>, and Jensen's inequality for the mean of N terms gives E exp <theta, theta'> <= M_d(N / s^2). It
is attained where all records share one direction that stays. docs/theory/relaxed/dimension.md has the proofs.

The mean over N is one integral over x = <u, u'>, of E exp(J J' x / s^2)^T.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import logsumexp

from reticent.adversaries.relaxed.dimension.overlap_law import overlap_law
from reticent.kernel.curves import binomial

COUNTS = 300
"""Blocks of the law of J."""
_ROUNDING = 1e-12  # of a logarithm
_LARGEST = 600.0  # exponent
_STEEP = 30.0  # exponent from which 1 is the correction
_CERTAIN = 1.0 - 1e-15  # the most that a mean of e^-x - 1 may fall


def log_chi_square(
    noise: float, rate: float, steps: int, dimension: int, records: int = 1, order: float = 2.0
) -> float:
    """log of an upper bound on ||LR - 1||_q^2 under "absent", whatever the joint law of the directions.

    By RETICENT:second-moment and RETICENT:whole-user-directions.

    Args:
        noise: noise over the clip norm of one record, > 0.
        rate: Poisson inclusion probability of each record, in (0, 1).
        records: most records of the person, >= 1.
        order: q >= 2.
    """
    overlap = overlap_law(dimension)
    exponents = _log_even(overlap.nodes * (order - 1.0) / noise**2, rate, records, steps)
    return float(overlap.log_excess(exponents)) + _ROUNDING


def _log_even(x: np.ndarray, rate: float, records: int, steps: int) -> np.ndarray:
    """log of an upper bound on (m(x)^T + m(-x)^T)/2, with m(x) = E exp(J J' x): convex, and growing in x >= 0.

    As e^even cosh(odd) with half of the sum and of the difference of both T log m: nothing cancels but what
    ``_ROUNDING`` pays for.
    """
    up = steps * log_mean_over_coins(x, rate, records)
    down = steps * _log_down(x, rate, records)
    odd = np.abs(0.5 * (up - down))
    log_cosh = np.where(odd < 1.0, np.log1p(2.0 * np.sinh(0.5 * np.minimum(odd, 1.0)) ** 2),
                        odd + np.log1p(np.exp(-2.0 * odd)) - math.log(2.0))  # fmt: skip
    both = 0.5 * (up + down) + log_cosh + _ROUNDING * (np.abs(up) + np.abs(down))
    return np.asarray(np.maximum(both, 0.0))


def log_mean_over_coins(x: np.ndarray, rate: float, records: int) -> np.ndarray:
    """Upper bound on log E exp(J J' x): each block at its largest count, what is outside at the ends.

    Args:
        x: >= 0.
        rate: Poisson inclusion probability of each record, in (0, 1].
        records: most records of the person, >= 1.
    """
    if rate == 1.0:
        return np.asarray(records**2 * x)
    law = binomial.blocks(records, rate, COUNTS)
    counts = np.concatenate([[law.low[0]], law.high, [records]]).astype(float)
    mass = np.exp(np.concatenate([[law.log_below], law.log_most, [law.log_above]]))
    exponent = log_mean_of_count(counts * x[:, None], rate, records)
    close = np.log1p(np.expm1(np.minimum(exponent, _LARGEST)) @ mass)
    with np.errstate(divide="ignore"):
        far = logsumexp(np.append(exponent, np.zeros((len(x), 1)), axis=1), axis=1, b=np.append(mass, 1.0))
    return np.asarray(np.where(np.max(exponent, axis=1) < _LARGEST, close, far))


def _log_down(x: np.ndarray, rate: float, records: int) -> np.ndarray:
    """Upper bound on log E exp(-J J' x): each block at its smallest count, nothing for what is outside."""
    law = binomial.blocks(records, rate, COUNTS)
    exponent = log_mean_of_count(-law.low * x[:, None], rate, records)
    return np.log1p(np.maximum(np.expm1(exponent) @ np.exp(law.log_least), -_CERTAIN))


def log_mean_of_count(z: np.ndarray, rate: float, records: int) -> np.ndarray:
    """log E exp(z J), J ~ Binomial(records, rate)."""
    small = np.log1p(rate * np.expm1(np.minimum(z, _STEEP)))
    large = z + math.log(rate) + np.log1p((1.0 - rate) / rate * np.exp(-np.maximum(z, _STEEP)))
    return np.asarray(records * np.where(z < _STEEP, small, large))

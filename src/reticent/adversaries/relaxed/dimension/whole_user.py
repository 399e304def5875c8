"""All records of one person, each in a direction that is unknown in d dimensions: what moments allow.

In a step J ~ Binomial(K, p) records of the person are drawn. For two independent draws of masks and directions

    <theta, theta'> = sum over steps t and pairs of drawn records (j, k) of <g_jt, g'_kt> / s^2,

N = sum_t J_t J'_t terms. If each g_jt is uniform for the attacker, however they depend on each other, each term is
distributed as <u, u'>, and Jensen's inequality for the mean of N terms gives E exp <theta, theta'> <= M_d(N / s^2). It
is attained where all records share one direction that stays. docs/theory/relaxed/dimension.md has the proof.

The mean over N is one integral over x = <u, u'>, of E exp(J J' x / s^2)^T.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import betainc, betaincc, logsumexp

from reticent.curves import binomial
from reticent.curves._logs import cell_masses, log_expm1, log_of

_CELLS = 2500  # of <u, u'>^2
_FIRST = 0.01  # end of the first cell, in units of its mean: the integrand is all but linear there
COUNTS = 300
"""Blocks of the law of J."""
_BETA_ERROR = 1e-11  # relative, of a beta tail
_GONE = 1e-250  # tails below are bounded in logarithms
_KNOWN = 1e3  # times its error that a mass must be for its mean to be used
_SHARE = 1e-4  # of a cell's mass that is moved to its worse end, for what cancels in the mean inside a cell
_ROUNDING = 1e-12  # of a logarithm
_LARGEST = 600.0  # exponent
_STEEP = 30.0  # exponent from which 1 is the correction
_CERTAIN = 1.0 - 1e-15  # the most that a mean of e^-x - 1 may fall


def log_chi_square(
    noise: float, rate: float, steps: int, dimension: int, records: int, order: float = 2.0, cells: int = _CELLS
) -> float:
    """log of an upper bound on ||LR - 1||_q^2 under "absent", whatever the joint law of the directions.

    By RETICENT:whole-user-directions.

    Args:
        noise: noise over the clip norm of one record, > 0.
        rate: Poisson inclusion probability of each record, in (0, 1).
        records: most records of the person, >= 1.
        order: q >= 2.
        cells: fewer are faster and give a larger bound.
    """
    edges = np.append(0.0, np.geomspace(_FIRST / dimension, 1.0, cells))
    law = binomial.blocks(records, rate, COUNTS)
    excess = _log_excess(np.sqrt(edges) * (order - 1.0) / noise**2, law, rate, records, steps)
    low, high = _log_chords(edges, dimension)
    return float(logsumexp([low + excess[:-1], high + excess[1:]])) + _ROUNDING


def _log_chords(edges: np.ndarray, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """log of weights on the lower and the upper end of each cell of r = <u, u'>^2, a beta variable with mean 1/d.

    The integrand is a power series in r with positive coefficients, so convex: its mean over a cell is at most that of
    the chord, which needs the mass and the mean of r in the cell. Where tails underflow, P(r > c) <= (1 - c)^(d/2 - 1).
    """
    a, b = 0.5, 0.5 * (dimension - 1.0)
    (mass, doubt), (part, _) = increments(edges, a, b), increments(edges, a + 1.0, b)
    far = (0.5 * dimension - 1.0) * np.log1p(-edges[:-1])
    return chord_weights(edges, mass + doubt, doubt, part / dimension, far, _SHARE)


def chord_weights(
    edges: np.ndarray, mass: np.ndarray, doubt: np.ndarray, part: np.ndarray, far: np.ndarray, spare: float
) -> tuple[np.ndarray, np.ndarray]:
    """log of weights on both ends of each cell: the mean of a convex function over it is at most that of the chord.

    Args:
        edges: of the cells, increasing.
        mass: of each cell, from above.
        doubt: a bound on the error of its mass.
        part: the mean of the variable in each cell, times its mass.
        far: log of a bound on the tail from each cell on, which is used where tails underflow.
        spare: share of a cell's mass that is moved to its upper end, for what cancels in its mean.
    """
    inside = np.divide(part, mass, out=edges[1:].copy(), where=mass > _KNOWN * doubt)
    share = np.clip((inside - edges[:-1]) / np.diff(edges) + spare, 0.0, 1.0)
    gone = doubt < _GONE * _BETA_ERROR
    low, high = log_of(mass * (1.0 - share)), log_of(mass * share)
    return np.where(gone, -np.inf, low), np.where(gone, far, high)


def increments(edges: np.ndarray, a: float, b: float) -> tuple[np.ndarray, np.ndarray]:
    """Mass of a beta law in each cell, from the smaller tail, and a bound on its error.

    Args:
        edges: of the cells, increasing, in [0, 1].
        a, b: of the law, > 0.
    """
    cdf, sf = betainc(a, b, edges), betaincc(a, b, edges)
    return np.maximum(cell_masses(cdf, sf), 0.0), _BETA_ERROR * np.minimum(cdf[1:], sf[:-1])


def _log_excess(x: np.ndarray, law: binomial.Blocks, rate: float, records: int, steps: int) -> np.ndarray:
    """log of an upper bound on (m(x)^T + m(-x)^T)/2 - 1, with m(x) = E exp(J J' x).

    As e^even cosh(odd) - 1 with half of the sum and of the difference of both T log m: nothing cancels but what
    ``_ROUNDING`` pays for.
    """
    up = steps * log_mean_over_coins(x, law, rate, records)
    down = steps * _log_down(x, law, rate, records)
    odd = np.abs(0.5 * (up - down))
    log_cosh = np.where(odd < 1.0, np.log1p(2.0 * np.sinh(0.5 * np.minimum(odd, 1.0)) ** 2),
                        odd + np.log1p(np.exp(-2.0 * odd)) - math.log(2.0))  # fmt: skip
    both = 0.5 * (up + down) + log_cosh + _ROUNDING * (np.abs(up) + np.abs(down))
    return log_expm1(np.maximum(both, 0.0))


def log_mean_over_coins(x: np.ndarray, law: binomial.Blocks, rate: float, records: int) -> np.ndarray:
    """Upper bound on log E exp(J J' x): each block at its largest count, what is outside at the ends.

    Args:
        x: >= 0.
        law: of J.
        rate: Poisson inclusion probability of each record, in (0, 1).
        records: most records of the person, >= 1.
    """
    counts = np.concatenate([[law.low[0]], law.high, [records]]).astype(float)
    mass = np.exp(np.concatenate([[law.log_below], law.log_most, [law.log_above]]))
    exponent = _inner(counts * x[:, None], rate, records)
    close = np.log1p(np.expm1(np.minimum(exponent, _LARGEST)) @ mass)
    with np.errstate(divide="ignore"):
        far = logsumexp(np.append(exponent, np.zeros((len(x), 1)), axis=1), axis=1, b=np.append(mass, 1.0))
    return np.asarray(np.where(np.max(exponent, axis=1) < _LARGEST, close, far))


def _log_down(x: np.ndarray, law: binomial.Blocks, rate: float, records: int) -> np.ndarray:
    """Upper bound on log E exp(-J J' x): each block at its smallest count, nothing for what is outside."""
    exponent = _inner(-law.low * x[:, None], rate, records)
    return np.log1p(np.maximum(np.expm1(exponent) @ np.exp(law.log_least), -_CERTAIN))


def _inner(z: np.ndarray, rate: float, records: int) -> np.ndarray:
    """log E exp(z J'), J' binomial."""
    small = np.log1p(rate * np.expm1(np.minimum(z, _STEEP)))
    large = z + math.log(rate) + np.log1p((1.0 - rate) / rate * np.exp(-np.maximum(z, _STEEP)))
    return np.asarray(records * np.where(z < _STEEP, small, large))

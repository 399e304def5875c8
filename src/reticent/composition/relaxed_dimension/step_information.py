"""What one noisy step tells, in nats: KL(present || absent), from above.

With R the ratio of "drawn, and here is the effect" to "absent", the divergence is E h(p (R - 1)),
h(z) = (1 + z) log(1 + z) - z. Three facts bound it by chi-square: h(z) / z^2 falls; E (R - 1)^3 >= 0; and the fourth
norm of R - 1 is at most the second one at three times the signal, as one step given the past is a mixture of Gaussian
shifts. docs/relaxed-reacting.md has the proofs.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from reticent.tradeoff._logs import HALF_LOG_TWO_PI, OVERFLOW, cell_masses

_SMALL = 1e-2  # |z| below which h is a series
_CELLS, _TAIL = 1200, 12.0  # of the release of one step; standard deviations at either end
_TOLD_APART, _PAD = 1e-9, 1e-6  # width of a cell, in R, whose mean is used; share of a cell for rounding
_QUIET, _LOUD = 1e-4, 600.0  # signals between which cells are used
_ROUND_UP = 1.0 + 1e-9


def step_nats(rate: float, chi_square: np.ndarray, thrice: np.ndarray) -> np.ndarray:
    """Upper bound on the divergence of one step.

    Args:
        rate: p, in (0, 1].
        chi_square: of the effect where it is drawn, against its absence; an upper bound.
        thrice: the same where the signal (1 / s^2) is three times as large.
    """
    first = rate * rate * chi_square
    fourth = _remainder(rate) * (rate * rate * thrice) ** 2
    return np.minimum(np.minimum(np.log1p(first), _steepest(rate) * first), 0.5 * first + fourth)


def known_direction(rate: float, signal: float) -> float:
    """kappa = KL((1 - p) N(0, s^2) + p N(1, s^2) || N(0, s^2)), rounded up.

    Args:
        rate: p, in (0, 1].
        signal: 1 / s^2.
    """
    most = 0.5 * rate * signal
    if rate == 1.0:
        return most
    with np.errstate(over="ignore"):
        chi_square, thrice = np.expm1([min(k * signal, OVERFLOW) for k in (1.0, 3.0)])
    found = float(step_nats(rate, chi_square, thrice)) if 3.0 * signal < OVERFLOW else most
    if _QUIET < signal < _LOUD:
        found = min(found, _by_cells(rate, math.sqrt(signal)))
    return min(found * _ROUND_UP, most)


def _by_cells(rate: float, mu: float) -> float:
    """E h(p (R - 1)), R = exp(mu z - mu^2 / 2): chords in R, of which h is a convex function."""
    z = np.linspace(-_TAIL, mu + _TAIL, _CELLS + 1)
    excess = np.expm1(mu * z - 0.5 * mu * mu)
    absent, present = (cell_masses(ndtr(x), ndtr(-x)) for x in (z, z - mu))
    value = _h(rate * excess)
    run, rise = np.diff(excess), np.diff(value)
    known = run > _TOLD_APART
    mean = np.divide(present, absent, out=np.ones_like(run), where=known) - 1.0
    share = np.clip(np.divide(mean - excess[:-1], run, out=np.zeros_like(run), where=known), 0.0, 1.0)
    chord = share * rise + np.where(known, _PAD, 1.0) * np.abs(rise)
    inside = float(np.sum(absent * (value[:-1] + chord)))
    left = ndtr(z[0]) * float(_h(np.array(-rate)))
    phi = math.exp(-0.5 * _TAIL * _TAIL - HALF_LOG_TWO_PI)
    return inside + left + (mu + mu * mu) * phi + mu * mu * float(ndtr(-_TAIL))  # right: R log R, R >= 1


def _h(z: np.ndarray) -> np.ndarray:
    """(1 + z) log(1 + z) - z for z >= -1."""
    small = np.where(np.abs(z) < _SMALL, z, 0.0)
    series = small**2 * (1 / 2 - small * (1 / 6 - small * (1 / 12 - small * (1 / 20 - small * (1 / 30 - small / 42)))))
    large = np.where(np.abs(z) < _SMALL, 1.0, z)
    rest = np.maximum(1.0 + large, 1e-300)
    return np.where(np.abs(z) < _SMALL, series, rest * np.log(rest) - large)


def _steepest(rate: float) -> float:
    """psi(p) = h(-p) / p^2: the largest h(z) / z^2 for z >= -p."""
    return float(_h(np.array(-rate))) / rate**2 * _ROUND_UP if rate > 0.0 else 0.5


def _remainder(rate: float) -> float:
    """The largest (h(z) - z^2 / 2 + z^3 / 6) / z^4 for z >= -p, which is at z = -p; from 1/12 to 1/3."""
    if rate < 0.05:
        return 1.0 / 12.0 + rate / 19.0
    return (float(_h(np.array(-rate))) - rate**2 / 2.0 - rate**3 / 6.0) / rate**4 * _ROUND_UP

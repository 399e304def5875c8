"""What one noisy step tells, in nats: KL(present || absent), from above.

With R the ratio of "drawn, and here is the effect" to "absent", the divergence is E h(p (R - 1)),
h(z) = (1 + z) log(1 + z) - z. Three facts bound it by chi-square: h(z) / z^2 falls; E (R - 1)^3 >= 0; and the fourth
norm of R - 1 is at most the second one at three times the signal, as one step given the past is a mixture of Gaussian
shifts. docs/theory/relaxed/reacting.md has the proofs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import logsumexp, ndtr

from reticent.kernel.curves import binomial
from reticent.kernel.curves._logs import HALF_LOG_TWO_PI, OVERFLOW, cell_masses, log_of

_SMALL = 1e-2  # |z| below which h is a series
_SERIES = 0.05  # exponents below which e^x - 1 - x is a series
_CELLS, _TAIL = 1200, 12.0  # of the release of one step; standard deviations at either end
_TOLD_APART, _PAD = 1e-9, 1e-6  # width of a cell, in R, whose mean is used; share of a cell for rounding
_QUIET, _LOUD = 1e-4, 600.0  # signals between which cells are used
_BLOCKS = 80  # of the law of J
_ROUND_UP = 1.0 + 1e-9


@dataclass(frozen=True, slots=True)
class Steps:
    """Equal steps.

    Attributes:
        noise: over the clip norm, > 0.
        rate: Poisson inclusion probability of each record, in (0, 1].
        count: how many.
        records: of the person, each drawn independently.
    """

    noise: float
    rate: float
    count: int
    records: int = 1

    @property
    def signal(self) -> float:
        """1 / s^2."""
        return self.noise**-2.0

    @property
    def drawn(self) -> float:
        """Probability that a step uses any of the records."""
        return 1.0 if self.rate == 1.0 else -math.expm1(self.records * math.log1p(-self.rate))

    def chi_square(self, times: float, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Bound on E (LR - 1)^2 of one step, coins included: x E JJ' E <g, g'> + E f(x JJ') E <g, g'>^2.

        Here f(y) = e^y - 1 - y, and J, J' are independent counts of the records that are drawn.

        Args:
            times: x over the signal.
            first, second: bounds on E <g, g'> and on E <g, g'>^2, over two directions drawn from what is known.
        """
        x, mean = times * self.signal, self.records * self.rate
        return x * mean * mean * first + self._beyond_first(x) * second

    def _beyond_first(self, x: float) -> float:
        if self.records == 1 or self.rate == 1.0:
            return self.rate**2 * float(above_tangent(np.array(self.records**2 * x)))
        law = binomial.blocks(self.records, self.rate, _BLOCKS)
        count = np.concatenate([[law.low[0]], law.high, [self.records]]).astype(float)
        log_mass = np.concatenate([[law.log_below], law.log_most, [law.log_above]])
        log_tangent = log_of(above_tangent(x * np.multiply.outer(count, count)))
        return float(np.exp(logsumexp(np.add.outer(log_mass, log_mass) + log_tangent)))


def step_nats(drawn: float, chi_square: np.ndarray, thrice: np.ndarray) -> np.ndarray:
    """Upper bound on the divergence of one step.

    Args:
        drawn: probability that the step uses any of the records: the ratio is at least 1 minus that.
        chi_square: E (LR - 1)^2, from above.
        thrice: the same where the signal (1 / s^2) is three times as large.
    """
    fourth = _remainder(drawn) * thrice**2
    return np.minimum(np.minimum(np.log1p(chi_square), steepest(drawn) * chi_square), 0.5 * chi_square + fourth)


@lru_cache(maxsize=64)
def known_direction(part: Steps) -> float:
    """kappa: the divergence of one step whose direction is known, all records in it, rounded up.

    For one record KL((1 - p) N(0, s^2) + p N(1, s^2) || N(0, s^2)).
    """
    mean = part.records * part.rate
    most = 0.5 * part.signal * (mean * mean + mean * (1.0 - part.rate))
    if part.rate == 1.0:
        return most
    with np.errstate(all="ignore"):
        one = np.ones(1)
        found = float(step_nats(part.drawn, *(part.chi_square(times, one, one) for times in (1.0, 3.0)))[0])
    if part.signal > _QUIET and part.records**2 * part.signal < _LOUD and part.records <= _BLOCKS:
        found = float(np.fmin(found, _by_cells(part)))
    return float(np.fmin(found * _ROUND_UP, most))


def _by_cells(part: Steps) -> float:
    """E h(R - 1): chords in R, of which h is a convex function."""
    mu, counts = math.sqrt(part.signal), np.arange(part.records + 1)
    most = mu * part.records
    law = np.exp(binomial.log_mass(counts, part.records, part.rate))[1:, None]
    z, shift = np.linspace(-_TAIL, most + _TAIL, _CELLS + 1), mu * counts[1:, None]
    excess = np.sum(law * np.expm1(shift * z - 0.5 * shift * shift), axis=0)
    absent = cell_masses(ndtr(z), ndtr(-z))
    gained = np.sum(law * (cell_masses(ndtr(z - shift), ndtr(shift - z)) - absent), axis=0)
    value = _h(np.maximum(excess, -part.drawn))
    run, rise = np.diff(excess), np.diff(value)
    known = run > _TOLD_APART * part.drawn
    mean = np.divide(gained, absent, out=np.zeros_like(run), where=known)
    share = np.clip(np.divide(mean - excess[:-1], run, out=np.zeros_like(run), where=known), 0.0, 1.0)
    chord = share * rise + np.where(known, _PAD, 1.0) * np.abs(rise)
    inside = float(np.sum(absent * (value[:-1] + chord)))
    left = float(ndtr(z[0]) * _h(np.array(-part.drawn)))
    phi = math.exp(-0.5 * _TAIL * _TAIL - HALF_LOG_TWO_PI)
    return inside + left + (most + most**2) * phi + most**2 * float(ndtr(-_TAIL))  # right: R log R, R >= 1


def _h(z: np.ndarray) -> np.ndarray:
    """(1 + z) log(1 + z) - z for z >= -1."""
    small = np.where(np.abs(z) < _SMALL, z, 0.0)
    series = small**2 * (1 / 2 - small * (1 / 6 - small * (1 / 12 - small * (1 / 20 - small * (1 / 30 - small / 42)))))
    large = np.where(np.abs(z) < _SMALL, 1.0, z)
    rest = np.maximum(1.0 + large, 1e-300)
    return np.where(np.abs(z) < _SMALL, series, rest * np.log(rest) - large)


def above_tangent(y: np.ndarray) -> np.ndarray:
    """e^y - 1 - y, rounded up; infinite where it overflows."""
    small = np.clip(y, -_SERIES, _SERIES)
    series = 0.5 * small**2 * (1.0 + small / 3.0 * (1.0 + small / 4.0 * (1.0 + small / 5.0 * (1.0 + small / 5.5))))
    large = np.where(y < OVERFLOW, np.expm1(np.minimum(y, OVERFLOW)) - y, np.inf)
    return np.where(np.abs(y) < _SERIES, series, large)


def steepest(drawn: float) -> float:
    """psi: the largest h(z) / z^2 for z >= -drawn, which is at z = -drawn; from 1/2 to 1."""
    return float(_h(np.array(-drawn))) / drawn**2 * _ROUND_UP


def _remainder(drawn: float) -> float:
    """The largest (h(z) - z^2 / 2 + z^3 / 6) / z^4 for z >= -drawn, which is at z = -drawn; from 1/12 to 1/3."""
    if drawn < _SERIES:
        return 1.0 / 12.0 + drawn / 19.0
    return (float(_h(np.array(-drawn))) - drawn**2 / 2.0 - drawn**3 / 6.0) / drawn**4 * _ROUND_UP

"""One step in which all records of a person take part, each drawn independently: a pair of Gaussian mixtures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr

from reticent.kernel import checks
from reticent.kernel.curves import LogErrors, TradeOff
from reticent.kernel.curves._logs import HUGE, log_sub
from reticent.kernel.curves.binomial import log_masses
from reticent.kernel.pairs.base import Pair
from reticent.kernel.stopping import checkpoint

_ROUNDS = 200
_CHUNK = 400_000  # thresholds times records
_SETTLED = 4e-15  # relative, of a threshold or of the loss there
_PLACES = 4096  # of the table from which Newton's method starts, at most
_BEYOND = 10.0  # deviations of that table past the last bend of the loss


@dataclass(frozen=True)
class WholeUserGaussianPair(Pair, TradeOff):
    """N(0, s^2) against sum_k Binomial(k; records, rate) N(k, s^2): all records of one person; its own curve.

    docs/theory/whole-users.md proves that it dominates. ``antipodal``: both laws are such mixtures, with means
    -k and +k. Likelihood ratios increase in the observation, so every threshold is a half line.

    Attributes:
        noise_multiplier: s > 0, in clip norms.
        rate: probability of one record, in (0, 1).
        records: largest number of records of one person, >= 1.
        antipodal: the pair of replacement.

    Raises:
        ParameterError: an argument is outside its domain.
    """

    noise_multiplier: float
    rate: float
    records: int
    antipodal: bool = False

    def __post_init__(self) -> None:
        checks.positive(noise_multiplier=self.noise_multiplier)
        checks.open_fraction(rate=self.rate)
        checks.count(records=self.records)

    @cached_property
    def _log_weights(self) -> np.ndarray:
        return log_masses(self.records, self.rate)

    @property
    def curve(self) -> TradeOff:
        return self

    @property
    def reversed(self) -> TradeOff:
        """Of the antipodal pair the curve itself: x -> -x exchanges the two laws."""
        return self if self.antipodal else super().reversed

    @property
    def log_absent(self) -> float:
        """That none of the records takes part: of 60 at rate 1/2 the probability of any would be rounded to 1."""
        return self.records * math.log1p(-self.rate)

    @property
    def largest_losses(self) -> tuple[float, float]:
        return math.inf, math.inf if self.antipodal else -self.log_absent

    @property
    def unsampled_mu(self) -> float:
        """That of an attacker who sees that all records took part."""
        return (2.0 if self.antipodal else 1.0) * self.records / self.noise_multiplier

    @property
    def proven_mu(self) -> float:
        return self.unsampled_mu

    @property
    def tail_mu(self) -> float:
        return self.records / self.noise_multiplier

    def errors(self, log_ratio: ArrayLike) -> LogErrors:
        ratio = checks.reals(log_ratio=log_ratio)
        flat = np.clip(ratio, -HUGE, HUGE).ravel()
        parts = np.array_split(flat, max(1, flat.size * self.records // _CHUNK))
        rates = [np.concatenate(rate) for rate in zip(*map(self._errors, parts), strict=True)]
        return LogErrors(*(rate.reshape(ratio.shape) for rate in rates))

    def _errors(self, ratio: np.ndarray) -> LogErrors:
        checkpoint()
        z = self._antipodal_threshold(ratio) if self.antipodal else self._threshold(ratio)
        absent = -1.0 if self.antipodal else 0.0
        return LogErrors(
            fpr=self._mixed(-z, absent), tnr=self._mixed(z, -absent), fnr=self._mixed(z, -1.0), tpr=self._mixed(-z, 1.0)
        )

    @property
    def _step(self) -> float:
        return 1.0 / self.noise_multiplier

    @property
    def _shifts(self) -> np.ndarray:
        return self._step * np.arange(self.records + 1)

    def _mixed(self, z: np.ndarray, sign: float) -> np.ndarray:
        """log of the mean of Phi(z + sign k / s) over k."""
        if sign == 0.0:
            return log_ndtr(z)
        each = self._log_weights[:, None] + log_ndtr(np.add.outer(sign * self._shifts, z))
        return np.minimum(np.logaddexp.reduce(each, axis=0), 0.0)

    def lines(self, z: np.ndarray, first: int) -> tuple[np.ndarray, np.ndarray]:
        """log sum_k w_k e^(k z / s - k^2 / (2 s^2)) over k >= ``first``, and its derivative: convex, increasing."""
        shifts = self._shifts[first:]
        with np.errstate(over="ignore", invalid="ignore"):
            terms = np.multiply.outer(shifts, z) + (self._log_weights[first:] - 0.5 * shifts**2)[:, None]
        top = terms.max(axis=0)
        grown = np.exp(terms - top)
        total = grown.sum(axis=0)
        return top + np.log(total), shifts @ grown / total

    def _threshold(self, ratio: np.ndarray) -> np.ndarray:
        """z = x / s at which the log likelihood ratio is ``ratio``; -inf at or below that of a step without the user.

        Newton from the right, on a convex increasing function: it never overshoots.
        """
        z = np.full(ratio.shape, -np.inf)
        wanted = log_sub(ratio, np.full(ratio.shape, self._log_weights[0]))
        found = np.isfinite(wanted)
        goal, shifts = wanted[found], self._shifts[1:, None]
        at = np.min((goal - self._log_weights[1:, None] + 0.5 * shifts**2) / shifts, axis=0)
        open_ = np.arange(len(goal))
        for _ in range(_ROUNDS):
            value, slope = self.lines(at[open_], 1)
            miss = value - goal[open_]
            at[open_] -= miss / slope
            open_ = open_[_unsettled(miss, slope, at[open_], goal[open_])]
            if len(open_) == 0:
                break
        z[found] = at
        return z

    def _antipodal_threshold(self, ratio: np.ndarray) -> np.ndarray:
        """The same for both mixtures: Newton inside a bracket, as the log likelihood ratio is odd and increasing."""
        goal = np.abs(ratio)
        last = self._shifts[-1]
        low = np.zeros(goal.shape)
        high = (goal - self._log_weights[-1] + 0.5 * last**2) / last
        at = np.clip(self._near(goal), low, high)
        open_ = np.arange(len(goal))
        for _ in range(_ROUNDS):
            here = at[open_]
            (up, rise), (down, fall) = self.lines(here, 0), self.lines(-here, 0)
            miss, slope = up - down - goal[open_], rise + fall
            low[open_], high[open_] = np.where(miss < 0.0, here, low[open_]), np.where(miss < 0.0, high[open_], here)
            trial, middle = here - miss / slope, 0.5 * (low[open_] + high[open_])
            unsettled = _unsettled(miss, slope, here, goal[open_])
            inside = (trial > low[open_]) & (trial < high[open_])
            at[open_] = np.where(inside | ~unsettled, trial, middle)
            open_ = open_[unsettled]
            if len(open_) == 0:
                break
        return np.sign(ratio) * at

    def _near(self, goal: np.ndarray) -> np.ndarray:
        """Where the log likelihood ratio of both mixtures is about ``goal`` >= 0, from a table; past it, its line."""
        table, losses = self._table
        last = self._shifts[-1]
        beyond = (goal - self._log_weights[-1] + self._log_weights[0] + 0.5 * last**2) / last
        return np.where(goal < losses[-1], np.interp(goal, losses, table), beyond)

    @cached_property
    def _table(self) -> tuple[np.ndarray, np.ndarray]:
        """Places z up to where all records together outweigh all else, and the log likelihood ratio there."""
        bends = (self._log_weights[:-1] - self._log_weights[1:]) / self._step + 0.5 * (
            self._shifts[:-1] + self._shifts[1:]
        )
        end = max(float(bends.max()), 0.0) + _BEYOND * self.noise_multiplier
        table = np.linspace(0.0, end, max(min(_PLACES, _CHUNK // self.records), 2))
        return table, self.lines(table, 0)[0] - self.lines(-table, 0)[0]


def _unsettled(miss: np.ndarray, slope: np.ndarray, at: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """Where a step of Newton's method still moved the threshold, and the loss there was off by more than rounding."""
    moved = np.abs(miss) > _SETTLED * slope * (1.0 + np.abs(at))
    return np.asarray(moved & (np.abs(miss) > _SETTLED * (1.0 + np.abs(goal))))

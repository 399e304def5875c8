"""Cheap enclosure from the moments E_P e^(cL) of one step: loose in the middle, finite far out, for any steps.

Moments of independent steps multiply. Bounds on either side of them come from the masses of one step's loss
on a grid: moved to the ends of their cells they are a stronger attacker's, known only by cell a weaker one's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_ndtr

from reticent.kernel.accountants.affinity import advantage_above
from reticent.kernel.accountants.grouped import fewer_below, stronger
from reticent.kernel.accountants.route import Answer, Route
from reticent.kernel.accountants.steps import Step, Steps, enclosed, weaker
from reticent.kernel.curves import LogErrors
from reticent.kernel.curves._logs import EPS, OVERFLOW, TINY, log1mexp
from reticent.kernel.curves.polygon import Polygon, gaussian_above, mirrored, polygon_above, polygon_through
from reticent.kernel.pairs import LossMasses
from reticent.kernel.stopping import checkpoint

_SIZES = np.geomspace(1e-14, 650.0, 2600)  # of one step's losses
_LOSSES = np.concatenate([-_SIZES[::-1], [0.0], _SIZES])
_THRESHOLDS = np.concatenate([[0.0], np.geomspace(1e-9, 1e8, 1350)])
_EXPONENTS = np.geomspace(1e-3, 1e9, 145)  # beyond 1, or below 0
_SHARES = np.concatenate([np.geomspace(1e-4, 0.4, 20), [0.5], 1.0 - np.geomspace(0.4, 1e-4, 20)])  # between 0 and 1
_LARGEST_EXPONENT = 709.78  # e to its power is a number
_STEP_ERROR = 64 * EPS  # double-precision error of one step's masses
_FLAT = 1e-6  # of the log of what a grid leaves out: it falls no further
_ULPS = 1e-12  # relative rounding of sums of terms of one sign, on grids of fewer than 9,000 cells
_LOGS = 1e-9  # of sums over steps of logarithms that matter: below 1e3 in size, of up to 10,000 kinds
_LEAST_LOG_FPR = -1e6  # of a test: that it never accuses is not claimed
_LOUD_SIZES = np.geomspace(1e-6, 1e6, 400)  # thresholds of the test of the loudest step, to either side of 0
_GAUSSIAN_PLACES = np.linspace(-8.0, 40.0, 481)  # thresholds, in standard deviations from the mean loss
_GUESSES = np.linspace(-40.0, 40.0, 801)  # thresholds, in standard deviations from the mean under "present"
_QUIET = np.errstate(over="ignore", invalid="ignore", divide="ignore")  # a moment that overflows is not a bound


@dataclass(frozen=True, slots=True)
class Bounds(Route):
    """Moments, the loudest step, the mask revealed or guessed: loose, for any steps, in milliseconds.

    Many kinds are grouped.

    Attributes:
        left_out: log of the probability that the grids of all steps together may leave out.
    """

    left_out: float = math.log(1e-24)

    name: ClassVar[str] = "bounds"
    priority: ClassVar[int] = 10
    always: ClassVar[bool] = True
    close: ClassVar[bool] = False

    def answer(self, steps: Steps) -> Answer:
        over, under = stronger(steps), weaker(fewer_below(steps))
        cheap = CheapBounds(over, self.left_out)
        least = CheapBounds(under) if enclosed(steps) or over is not steps else cheap
        return Answer((*cheap.above(), *mask_revealed(steps)), (least.below(), loudest_step(under), *guessed(steps)))


class CheapBounds:
    """Curves on both sides of the composition of ``steps``; H0 = absent. ``left_out`` as in ``Bounds``."""

    def __init__(self, steps: Steps, left_out: float = Bounds().left_out) -> None:
        self._grids = [(_Grid.of(step, left_out), step.count) for step in steps]
        ends = np.array([step.pair.largest_losses for step in steps]) * np.array([[step.count] for step in steps])
        self._ends = ends.sum(axis=0) * (1.0 + _ULPS)

    @_QUIET
    def above(self) -> list[Polygon]:
        """On the safe side: Chernoff bounds on delta in both directions, and the affinity bound."""
        up, forward = self._half(self._beyond_one, self._ends[0], self._over_steps(lambda grid: grid.q_above))
        down, back = self._half(self._below_zero, self._ends[1], self._over_steps(lambda grid: grid.p_below))
        forward[0] = min(forward[0], back[0])
        curves = [polygon_above(mirrored(-down, up), mirrored(back, forward))]
        distance = float(advantage_above(-self._over_steps(_Grid.log_affinity))) * (1.0 + _ULPS)
        if distance < 1.0:
            curves.append(polygon_above(np.zeros(1), np.array([math.log(distance or TINY)])))
        return curves

    @_QUIET
    def below(self) -> Polygon:
        """On the other side: "reject if the loss exceeds l", with Chernoff bounds on both errors.

        P(S > l) <= M(c) e^(-cl) for c > 0, and Q(S <= l) <= M(c) e^((1-c) l) for c < 1. Where a step's loss
        is outside of its grid the test does not reject, which only adds false negatives.
        """
        thresholds = mirrored(-_THRESHOLDS, _THRESHOLDS)
        between = self._over_steps(_Grid.log_labelled)
        fpr = _least_chernoff(np.append(between, self._beyond_one), np.append(_SHARES, 1.0 + _EXPONENTS), thresholds)
        fnr = _least_chernoff(
            np.append(between, self._below_zero), np.append(_SHARES - 1.0, -1.0 - _EXPONENTS), thresholds
        )
        lost = self._over_steps(lambda grid: grid.q_above + grid.q_below)
        fpr, fnr = np.maximum(fpr, _LEAST_LOG_FPR), np.logaddexp(fnr, math.log(max(lost, TINY)))
        fpr, fnr = np.minimum(fpr + _LOGS, 0.0), np.minimum(fnr + _LOGS, 0.0)
        return polygon_through(LogErrors.of(fpr, fnr))

    @cached_property
    def _beyond_one(self) -> np.ndarray:
        return self._over_steps(lambda grid: grid.log_moments(1.0 + _EXPONENTS))

    @cached_property
    def _below_zero(self) -> np.ndarray:
        return self._over_steps(lambda grid: grid.log_moments(-_EXPONENTS))

    def _over_steps(self, part: Callable[[_Grid], Any]) -> Any:
        """Sum over all steps of numbers, or of arrays of one shape."""
        checkpoint()
        return sum(count * part(grid) for grid, count in self._grids)

    def _half(self, log_moments: np.ndarray, end: float, lost: float) -> tuple[np.ndarray, np.ndarray]:
        """(thresholds, bounds on log delta) of one direction; 0 from the largest possible loss on.

        (x - k)_+ x^-c is largest at x = ck/(c-1), hence E_P (e^S - e^l)_+ <= M(c) e^((1-c) l) (c-1)^(c-1) / c^c;
        and likewise E_P (1 - e^(S + l))_+ <= M(-a) e^(-al) a^a / (1+a)^(1+a).
        """
        thresholds = np.unique(np.append(_THRESHOLDS, end)) if end < math.inf else _THRESHOLDS
        size = _EXPONENTS
        logs = log_moments + size * np.log(size) - (1.0 + size) * np.log1p(size)
        log_delta = np.logaddexp(_least_chernoff(logs, size, thresholds), math.log(max(lost, TINY))) + _LOGS
        return thresholds, np.where(thresholds >= end, -np.inf, np.minimum(log_delta, 0.0))


def _least_chernoff(logs: np.ndarray, exponents: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """min over exponents of log - exponent * threshold; at most 0."""
    known = np.isfinite(logs)
    return np.min(logs[known] - np.multiply.outer(thresholds, exponents[known]), axis=1, initial=0.0)


@dataclass(frozen=True)
class _Grid:
    """The privacy loss of one step.

    Attributes:
        cells: its masses.
        connected: P-masses on the grid with the P- and Q-mass of each cell kept; those outside at the ends.
        p_below, q_below, q_above: masses outside.
    """

    cells: LossMasses
    connected: np.ndarray
    p_below: float
    q_below: float
    q_above: float

    @classmethod
    def of(cls, step: Step, left_out: float) -> _Grid:
        whole, few = step.losses(_LOSSES), left_out - math.log(step.count)
        # What the last loss leaves out is lost anyway: longer grids would add only exponents that overflow.
        few_p, few_q = (max(few, rest + _FLAT) for rest in (whole.rates.tnr[0], whole.rates.tpr[-1]))
        first = max(int(np.searchsorted(whole.rates.tnr, few_p)) - 1, 0)
        last = min(int(np.searchsorted(-whole.rates.tpr, -few_q)), len(_LOSSES) - 1)
        # Where nearly all losses lie beyond, the ends cross: one point is left.
        cells = whole.between(first, max(first, last))
        (p_below, q_below), (p_above, q_above), mass = cells.below, cells.above, cells.connected()
        mass[0] += min(p_below, math.exp(min(cells.rates.fnr[0] - cells.grid[0], 0.0)))
        mass[-1] += p_above
        return cls(cells, mass, p_below, q_below, q_above)

    def log_moments(self, exponents: np.ndarray) -> np.ndarray:
        """Upper bounds on log E_P e^(cL) within the grid, for c > 1 or c < 0; infinite where e^(cL) overflows.

        E_P (e^L - 1) is 0 but for what lies outside, so c times it is taken away: all terms are positive
        then, and small losses keep their digits.
        """
        grid, logs = self.cells.grid, np.full(len(exponents), np.inf)
        fits = np.maximum(exponents * grid[0], exponents * grid[-1]) < _LARGEST_EXPONENT
        exponents = exponents[fits]
        terms = np.expm1(np.multiply.outer(exponents, grid))
        terms -= np.multiply.outer(exponents, np.expm1(grid))
        outside = np.where(exponents > 0.0, self.p_below, self.q_above) + _STEP_ERROR
        logs[fits] = np.log1p(terms @ self.connected * (1.0 + _ULPS) + (1.0 + np.abs(exponents)) * outside)
        return logs

    def log_labelled(self) -> np.ndarray:
        """Upper bounds on log E_P e^(cL) within the grid, for c in ``_SHARES``: sums of p^(1-c) q^c (Jensen)."""
        p, q = self.cells.p, self.cells.q
        both = (p > 0.0) & (q > 0.0)
        ratio = np.log(q[both] / p[both])
        terms = np.expm1(np.multiply.outer(_SHARES, ratio)) - np.multiply.outer(_SHARES, np.expm1(ratio))
        # Cells with one mass only add nothing to the sum: what the identity counts for them is taken away.
        lonely = (1.0 - _SHARES) * float(p[~both].sum()) + _SHARES * float(q[~both].sum())
        inside = (np.minimum(terms, 0.0) @ p[both] - lonely) * (1.0 - _ULPS)
        return np.log1p(np.maximum(inside + self.p_below + _STEP_ERROR, -1.0))

    def log_affinity(self) -> float:
        """A lower bound on log E_P e^(L/2): moving masses to the ends of cells lowers concave means."""
        terms = np.expm1(0.5 * self.cells.grid) - 0.5 * np.expm1(self.cells.grid)
        inside = float(terms @ self.connected) * (1.0 + _ULPS) - self.p_below - 0.5 * self.q_above - _STEP_ERROR
        return math.log1p(max(inside, -1.0 + TINY)) if inside > -1.0 else -math.inf


def loudest_step(steps: Steps) -> Polygon:
    """The curve of a simple attacker: reject H0 if any step's loss exceeds a threshold. Exact rates for equal steps."""
    sizes = _LOUD_SIZES
    thresholds = np.concatenate([sizes[::-1], [0.0], -sizes])
    fpr, fnr = np.full(len(thresholds), -np.inf), np.zeros(len(thresholds))
    for step in steps:
        count, rates = step.count, LogErrors(*(np.minimum(rate, 0.0) for rate in step.curve.errors(thresholds)))
        # Of a rate and its complement the smaller one is known to all digits.
        tnr = np.where(rates.fpr < -1.0, log1mexp(rates.fpr), rates.tnr)
        missed = np.where(rates.tpr < -1.0, log1mexp(rates.tpr), rates.fnr)
        any_step = np.where(rates.fpr < -OVERFLOW, np.log(count) + rates.fpr, log1mexp(count * tnr))
        fpr, fnr = np.logaddexp(fpr, any_step), fnr + count * missed  # kinds of steps: union bound
    return polygon_through(LogErrors.of(np.minimum(fpr, 0.0), fnr))


def guessed(steps: Steps) -> list[Polygon]:
    """Bounds from an attacker who accuses if any of all ways of taking part is likely enough, by a union bound.

    Returns:
        One polygon on the other side, close where there is little noise; none where a step is no mixture of few laws.
    """
    log_ways = sum(step.count * step.pair.log_ways for step in steps)
    mu = math.sqrt(sum(step.count * (step.pair.unsampled_mu or 0.0) ** 2 for step in steps))
    if not log_ways < math.inf:
        return []
    places = mu + _GUESSES
    places = places[log_ways + log_ndtr(-places) < -1.0]
    fpr, beyond = log_ways + log_ndtr(-places), places - mu
    return [polygon_through(LogErrors(fpr, log1mexp(fpr), log_ndtr(beyond), log_ndtr(-beyond)))]


def mask_revealed(steps: Steps) -> list[Polygon]:
    """Bounds from an attacker who sees when the target took part: Gaussian steps then compose to one.

    Returns:
        One polygon on the safe side, finite at every delta; none where a step is not Gaussian.
    """
    mus = [(step.count, step.pair.unsampled_mu) for step in steps]
    if any(mu is None for _, mu in mus):
        return []
    mu = math.sqrt(sum(count * mu**2 for count, mu in mus if mu is not None))
    return [gaussian_above(mu, _GAUSSIAN_PLACES)]

"""The information route for gradients that react to the weights: KL(present || absent), from above.

A step tells little while little is known about the direction, and each step teaches at most ``known_direction`` nats
about it. So with I_t nats known before step t the divergence is at most the sum of gains(I_t), a concave function of
what is known. docs/theory/relaxed/reacting.md has the proofs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from reticent.adversaries.relaxed.reacting.learnt import learnt
from reticent.adversaries.relaxed.reacting.lengths import lengths
from reticent.adversaries.relaxed.reacting.step_information import Steps, above_tangent, known_direction, step_nats
from reticent.kernel.curves._logs import log_expm1, log_of
from reticent.kernel.curves.polygon import convex_chain
from reticent.mechanisms.gradients import Gradients

_SINGLE = 3000  # first steps that are counted one by one
_GROWTH = 1.001  # ratio of the blocks of later ones
_ROUND_UP = 1.0 + 1e-9
_GRID = np.geomspace(1e-6, 1.0, 2000)  # shares of all that is taught
_SERIES = 0.05  # exponents below which differences of exponentials are series
_TINY, _PAD = 1e-300, 1e-9  # least divergence; in log delta, for rounding
_TILTS, _LARGEST_TILT = 700, 1e3  # of the coin test: values of lambda


@dataclass(frozen=True, slots=True)
class Setting:
    """What is known of the effect in each step.

    Attributes:
        dimension: of the space in which the direction is unknown, >= 1.
        kind: one direction, or a linear head with hard labels or with any.
        known_share: most of a squared length that lies in directions that the attacker knows.
        split: a full step may be several ones, with records of the person in each: shuffled epochs.
    """

    dimension: int
    kind: Gradients
    known_share: float = 0.0
    split: bool = False

    @property
    def agrees(self) -> bool:
        """Whether <g, g'> has the sign of <u, u'>, for two directions that one record may have."""
        return self.kind is not Gradients.LINEAR_HEAD


@dataclass(frozen=True, slots=True)
class Gains:
    """Increasing and concave: what a step tells at most, in nats, once ``nats`` are known about the direction."""

    nats: np.ndarray
    most: np.ndarray

    def __call__(self, nats: np.ndarray) -> np.ndarray:
        """At any ``nats`` >= 0."""
        return np.interp(nats, self.nats, self.most)

    def up_to(self, most: float) -> float:
        """The integral from 0 to ``most`` nats."""
        inside = np.append(self.nats[self.nats < most], most)
        return float(np.trapezoid(self(inside), inside))


def divergence(parts: Sequence[Steps], setting: Setting) -> float:
    """Upper bound on KL(present || absent), in nats, whatever the order of the parts.

    By RETICENT:reacting-information.

    Args:
        parts: at least one, with noise.
    """
    with np.errstate(over="ignore"):
        if len(parts) > 1:
            return any_order(parts, setting) * _ROUND_UP
        (part,) = parts
        taught = part.count * known_direction(part)
        ways = [taught]
        if part.rate == 1.0:
            ways.append(continuous(taught, setting))
        if not setting.split:
            ways.append(one_by_one(part, setting))
        return min(ways) * _ROUND_UP


def first_step_chi_square(part: Steps, setting: Setting) -> float:
    """Upper bound on chi-square of a single step, before anything is known."""
    with np.errstate(over="ignore"):
        return float(_chi_square(part, 1.0, setting)[0])


def one_by_one(part: Steps, setting: Setting) -> float:
    """The sum of what each step tells, once the steps before have taught."""
    return summed(gains_of(part, setting), part.count, known_direction(part))


def summed(gains: Gains, steps: int, taught: float) -> float:
    """The sum of gains: first steps one by one, later ones in blocks that take the gain of their last step.

    Args:
        gains: by what is known.
        steps: how many.
        taught: by each step, in nats.
    """
    low = np.arange(min(steps, _SINGLE), dtype=float)
    if steps > _SINGLE:
        powers = np.arange(np.log(steps / _SINGLE) / np.log(_GROWTH) + 1)
        grown = np.unique(np.ceil(_SINGLE * _GROWTH**powers))
        low = np.append(low, grown[grown < steps])
    high = np.append(low[1:], steps) - 1.0
    return float(np.sum((high - low + 1.0) * gains(high * taught)))


def continuous(taught: float, setting: Setting) -> float:
    """Without sampling: the signal grows inside of each step."""
    return _mean_effect(setting).up_to(taught)


def any_order(parts: Sequence[Steps], setting: Setting) -> float:
    """Parts in any order: sum n_i kappa_i lambda_i plus the integral of max_i (r_i - lambda_i), for any lambda_i.

    r_i is what a part tells per nat that it teaches. It grows with what is known, so a step that teaches from I to I'
    gains at most the integral of r_i from I to I'.
    """
    taught = np.array([part.count * known_direction(part) for part in parts])
    total = float(np.sum(taught))
    grid = np.append(0.0, _GRID) * total
    densities = np.array([_per_nat(part, setting, grid[1:]) for part in parts])
    width = np.diff(grid)
    prices = densities @ width / total
    most = np.max(densities - prices[:, None], axis=0)
    return min(float(taught @ prices + most @ width), total)


@lru_cache(maxsize=64)
def gains_of(part: Steps, setting: Setting) -> Gains:
    """What a step tells, by what is known."""
    found = step_nats(part.drawn, *(_chi_square(part, times, setting) for times in (1.0, 3.0)))
    return majorant(learnt(setting.dimension).nats, np.fmin(found, known_direction(part)))


def _per_nat(part: Steps, setting: Setting, nats: np.ndarray) -> np.ndarray:
    """What a step tells per nat that it teaches, once ``nats`` are known; without sampling at most |E effect|^2."""
    if part.rate == 1.0 and setting.split:
        return _mean_effect(setting)(nats)
    per_nat = gains_of(part, setting)(nats) / known_direction(part)
    return np.minimum(per_nat, _mean_effect(setting)(nats)) if part.rate == 1.0 else per_nat


def _mean_effect(setting: Setting) -> Gains:
    """Bound on |E g|^2, by what is known."""
    return majorant(learnt(setting.dimension).nats, _first_order(setting))


def _first_order(setting: Setting) -> np.ndarray:
    """Bound on E <g, g'> at each of ``learnt``'s nats, and where all is known."""
    bounds = learnt(setting.dimension)
    if setting.kind is Gradients.ONE_DIRECTION:
        hidden = np.minimum(bounds.half_square, bounds.positive**2)
    elif setting.agrees:
        hidden = np.minimum(bounds.half_square, bounds.half_length**2)
    else:
        hidden = np.minimum(bounds.square, bounds.length**2)
    return np.append(np.minimum(hidden + setting.known_share, 1.0), 1.0)


def _chi_square(part: Steps, times: float, setting: Setting) -> np.ndarray:
    """Of one step with ``times`` its signal, at each of ``learnt``'s nats, and where all is known."""
    known = setting.known_share
    overlap = np.append((1.0 - known) * np.sqrt(learnt(setting.dimension).overlap) + known, 1.0)
    most = part.chi_square(times, _first_order(setting), overlap**2)
    if setting.kind is not Gradients.ONE_DIRECTION or setting.dimension == 1:
        return most
    by_length = lengths(setting.dimension)
    first = np.minimum(by_length.mean + known, 1.0)
    second = ((1.0 - known) * np.sqrt(by_length.overlap) + known) ** 2
    most[:-1] = np.minimum(most[:-1], np.max(part.chi_square(times, first, second), axis=0))
    return most


def majorant(nats: np.ndarray, values: np.ndarray) -> Gains:
    """The least concave function above a growing one, of which values[i] is a bound at nats[i] and values[-1] is one.

    Between two of ``nats`` it is at most its value at the right one.
    """
    upper = np.append(np.maximum.accumulate(values)[1 : len(nats)], values[-1])[: len(nats)]
    kept = convex_chain(log_of(np.diff(nats)), log_of(np.diff(upper)))
    return Gains(nats[kept], upper[kept])


def log_deltas(nats: float, thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Upper bounds on log delta of addition and of removal, from kl(power || false positive rate) <= ``nats``.

    For a test with rates a and b, lambda b <= K + log(1 + a (e^lambda - 1)) for every real lambda. Maximised over a:

        addition: (K + e^-m - 1 + m) / lambda,       m = (log((e^lambda - 1) / lambda) - l)_+;
        removal:  e^l (K + e^m - 1 - m) / lambda,    m = (log(lambda / (1 - e^-lambda)) - l)_+.

    Args:
        nats: K >= 0.
        thresholds: l >= 0.
    """
    least = np.sqrt(8.0 * max(nats, _TINY))
    tilts = np.geomspace(min(0.3 * least, 1.0), _LARGEST_TILT, _TILTS)
    growth = _log_growth(tilts)
    up = np.maximum(growth - thresholds[:, None], 0.0)
    down = np.maximum(tilts - growth - thresholds[:, None], 0.0)
    add = np.min((nats + above_tangent(-up)) / tilts, axis=1)
    remove = np.min((nats + above_tangent(down)) / tilts, axis=1)
    return np.minimum(log_of(add) + _PAD, 0.0), np.minimum(log_of(remove) + thresholds + _PAD, 0.0)


def _log_growth(tilts: np.ndarray) -> np.ndarray:
    """log((e^L - 1) / L)."""
    small = np.minimum(tilts, _SERIES)
    series = 0.5 * small + small**2 / 24.0 - small**4 / 2880.0 + small**6 / 181440.0
    return np.where(tilts < _SERIES, series, log_expm1(tilts) - np.log(tilts))

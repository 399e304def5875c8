"""What ran, as kinds of noisy steps: each with its dominating pair, how often it ran, and its loss on a grid."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reticent.curves import GaussianTradeOff, LaplaceTradeOff, Subsampled, TradeOff, symmetrised
from reticent.curves._logs import log_difference
from reticent.mechanisms import Mechanism, Neighbouring
from reticent.pairs.antipodal import AntipodalPair
from reticent.pairs.base import (
    AntipodalGaussianPair,
    CurvePair,
    Disclosure,
    GaussianPair,
    LaplacePair,
    Pair,
    SymmetrisedGaussianPair,
    WholeUserGaussianPair,
)
from reticent.pairs.whole_user import WholeUserPair

Curves = Sequence[tuple[TradeOff, int]]
"""Kinds of steps as routes take them: the curve of one step, H0 = absent, and how many times it ran."""


@dataclass(frozen=True, slots=True)
class Step:
    """A kind of noisy step.

    Attributes:
        pair: its dominating pair.
        count: number of such steps.
    """

    pair: Pair
    count: int

    @property
    def atoms_apart(self) -> float:
        """Distance between the two atoms of the losses; 0 where there are none."""
        apart = sum(self.pair.largest_losses)
        return apart if math.isfinite(apart) else 0.0

    def curve(self) -> TradeOff:
        """The pair as a curve, H0 = absent."""
        return curve_of(self.pair)


def curve_of(pair: Pair) -> TradeOff:
    """``pair`` as a curve, H0 = absent.

    Raises:
        TypeError: this kind of pair has no curve here; whatever brings its own is a ``CurvePair``.
    """
    match pair:
        case CurvePair(curve=curve):
            return curve
        case GaussianPair(noise, rate, shift):
            return sampled(GaussianTradeOff(shift / noise), rate)
        case SymmetrisedGaussianPair(noise, rate, shift):
            return symmetrised(sampled(GaussianTradeOff(shift / noise), rate))
        case LaplacePair(noise, rate, shift):
            return sampled(LaplaceTradeOff(shift / noise), rate)
        case AntipodalGaussianPair(noise, rate):
            return AntipodalPair(noise, rate)
        case WholeUserGaussianPair(noise, rate, records, antipodal):
            return WholeUserPair(noise, rate, records, antipodal)
    raise TypeError(pair)


def sampled(curve: TradeOff, sample_rate: float) -> TradeOff:
    """``curve`` seen with probability ``sample_rate``, in (0, 1]."""
    return curve if sample_rate == 1.0 else Subsampled(curve, sample_rate)


def steps_of(
    mechanism: Mechanism, neighbouring: Neighbouring, *, attained: bool = False
) -> tuple[tuple[Step, ...], float]:
    """The kinds of noisy steps, and the log of the probability that no noiseless one showed the target.

    Plain Gaussian releases are merged into one: their parameters add in squares. Equal steps are counted
    together; the order of parts is dropped, as the curve does not depend on it. With ``attained``, steps that some
    data set has: what only dominates is weakened or left out.

    Args:
        mechanism: what was released.
        neighbouring: between which data sets.
        attained: see above.
    """
    counts: Counter[Pair] = Counter()
    squared, unseen = 0.0, 0.0
    for part in mechanism.parts_under(neighbouring, attained=attained):
        pair = part.pair
        if isinstance(pair, Disclosure):
            unseen += part.count * pair.log_absent
        elif pair.mu is not None:
            squared += part.count * pair.mu**2
        else:
            counts[pair] += part.count
    steps = [Step(pair, count) for pair, count in counts.items()]
    if squared > 0.0:
        steps.append(Step(GaussianPair(1.0, 1.0, math.sqrt(squared)), 1))
    return tuple(sorted(steps, key=repr)), unseen


def masses(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Differences of neighbouring tail probabilities, taken from the smaller tail.

    Args:
        above, below: log P(L > l) and log P(L <= l) at increasing thresholds, shape (n,).

    Returns:
        Masses of the cells between them, shape (n - 1,).
    """
    return np.exp(log_difference(above[:-1], above[1:], below[1:], below[:-1]))


def connected(grid: np.ndarray, p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """P-masses on the points of ``grid``: each cell's moved to its two ends such that its P- and Q-mass stay.

    Args:
        grid: ends of the cells, increasing, shape (n,).
        p, q: masses of the cells under absent and present, shape (n - 1,).

    Returns:
        P-masses on the points, shape (n,); a stronger attacker's, as its losses tell the cell.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        up = (np.exp(-grid[:-1]) * q - p) / np.expm1(np.diff(grid))
    up = np.clip(np.where(np.isfinite(up), up, 0.0), 0.0, p)
    mass = np.zeros(len(grid))
    mass[:-1] += p - up
    mass[1:] += up
    return mass

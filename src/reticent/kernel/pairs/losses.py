"""The privacy loss distribution of one release on a grid, under both laws, and the grid law that dominates it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from reticent.kernel.curves import LogErrors, TradeOff
from reticent.kernel.curves._logs import log_difference


@dataclass(frozen=True)
class LossMasses:
    """Masses of the privacy loss: cell i is (grid[i], grid[i + 1]].

    Attributes:
        grid: ends of the cells, increasing, shape (n,).
        rates: logs of the probabilities below and above each end, under "absent" and under "present".
    """

    grid: np.ndarray
    rates: LogErrors

    @classmethod
    def of(cls, curve: TradeOff, grid: np.ndarray) -> LossMasses:
        """Those of a step with this curve."""
        return cls(grid, curve.errors(grid))

    def between(self, first: int, last: int) -> LossMasses:
        """The same on the points from ``first`` to ``last``, both included."""
        inside = slice(first, last + 1)
        return LossMasses(self.grid[inside], self.rates.at(inside))

    @cached_property
    def p(self) -> np.ndarray:
        """Under "absent", shape (n - 1,)."""
        return _masses(self.rates.fpr, self.rates.tnr)

    @cached_property
    def q(self) -> np.ndarray:
        """Under "present", shape (n - 1,)."""
        return _masses(self.rates.tpr, self.rates.fnr)

    @property
    def below(self) -> tuple[float, float]:
        """Masses below the grid, under "absent" and under "present"."""
        return math.exp(self.rates.tnr[0]), math.exp(self.rates.fnr[0])

    @property
    def above(self) -> tuple[float, float]:
        """Masses above the grid, under "absent" and under "present"."""
        return math.exp(self.rates.fpr[-1]), math.exp(self.rates.tpr[-1])

    def connected(self) -> np.ndarray:
        """P-masses on the points of the grid ("connect the dots"): those of a stronger attacker, who sees the cell.

        The mass of each cell is moved to its two ends such that its P- and its Q-mass stay. Where a curve knows less
        P-mass than its Q-mass can have in this cell, as next to certainty, there is so much more of it.

        Returns:
            Shape (n,); what lies outside of the grid is left out.
        """
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            least = np.exp(-self.grid[1:]) * self.q
            p = np.maximum(self.p, np.where(np.isfinite(least), least, 0.0))
            up = (np.exp(-self.grid[:-1]) * self.q - p) / np.expm1(np.diff(self.grid))
        up = np.clip(np.where(np.isfinite(up), up, 0.0), 0.0, p)
        mass = np.zeros(len(self.grid))
        mass[:-1] += p - up
        mass[1:] += up
        return mass


def _masses(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Differences of neighbouring tail probabilities, given as logs, taken from the smaller tail."""
    return np.exp(log_difference(above[:-1], above[1:], below[1:], below[:-1]))

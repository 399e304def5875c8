"""The losses of one step in cells of a lattice: of its spacing where most of them lie, wider in the tails.

Any cells between points of the lattice hold on either side of the truth. What rounding to a cell costs grows with its
probability times the square of its width, so rare losses may lie in wide ones, and most of the work is saved.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reticent.kernel.accountants.steps import Step
from reticent.kernel.pairs import LossMasses

_SMALLEST, _LEAST_RANGE = 1e-12, 1e-11  # of the losses of one step that are looked at
_SIZES = 800  # of a geometric grid, each side of 0
WIDER = 1e-4
"""Of what is not in the middle: a tail of this probability may lie in wider cells."""
_BEND = 5e-4  # of the log of a tail, from one end of a cell to the other


@dataclass(frozen=True)
class Cells:
    """One kind of step: cell i is (l_i, l_{i+1}], l_i = centre + (ends[i] + shift) * spacing.

    Attributes:
        count: how often it runs.
        centre: the loss that is index 0.
        ends: indices, increasing.
        losses: the masses.
    """

    count: int
    centre: float
    ends: np.ndarray
    losses: LossMasses

    @property
    def labels(self) -> np.ndarray:
        """A point of the lattice in the middle of each cell, of cells that begin half a spacing below a point."""
        return (self.ends[:-1] + self.ends[1:] - 1) // 2

    def label_bias(self, p: np.ndarray, q: np.ndarray, spacing: float) -> float:
        """Mean of (log ratio of a label) - (label), in grid points, under the mean of both laws; it only plans."""
        both = (p > 0) & (q > 0)
        ratio = (np.log(q[both] / p[both]) - self.centre) / spacing - self.labels[both]
        weights, half = p[both] + q[both], 0.5 * np.diff(self.ends)[both]
        return float(np.sum(weights * np.clip(ratio, -half, half)) / np.sum(weights))


def cells_of(step: Step, centre: float, spacing: float, reach: float, tail: float, shift: float) -> Cells:
    """The cells of ``step`` within [-reach, reach].

    Args:
        step: the kind of step.
        centre, spacing: of the lattice.
        reach: the largest loss.
        tail: how much more Q above and P below the cells may be than what lies beyond ``reach``.
        shift: of all ends, in units of the spacing.
    """
    sizes = np.geomspace(_SMALLEST, max(reach, _LEAST_RANGE), _SIZES)
    above, below = step.curve.errors(sizes).tpr, step.curve.errors(-sizes).tnr
    one = min(int(np.searchsorted(sizes, abs(centre) + spacing)), _SIZES - 1)
    most = max(float(above[one]), float(below[one])) + np.log(WIDER)
    up = _places(sizes, above, spacing, tail, most)
    down = _places(sizes, below, spacing, tail, most)
    ahead, back = (up - centre) / spacing, (-down - centre) / spacing
    first = int(np.floor(back[-1]))
    last = max(int(np.ceil(ahead[-1])), first + 1)
    chosen = np.zeros(last - first + 1, dtype=bool)
    chosen[np.rint(np.concatenate([back[:-1], ahead[:-1]])).astype(int) - first] = True
    chosen[int(np.floor(back[0])) - first : int(np.ceil(ahead[0])) - first + 1] = True
    chosen[[0, -1]] = True
    ends = first + np.flatnonzero(chosen)
    return Cells(step.count, centre, ends, step.losses(centre + spacing * (ends + shift)))


def _places(sizes: np.ndarray, logs: np.ndarray, spacing: float, tail: float, most: float) -> np.ndarray:
    """Sizes of losses on one side of 0: up to the first, cells are of one spacing; the last is where they end.

    Args:
        sizes: increasing.
        logs: log of the probability beyond each.
        spacing: of the lattice.
        tail: see ``cells_of``.
        most: log of the probability of a tail that may lie in wider cells.
    """
    known = logs <= np.logaddexp(logs[-1], np.log(tail))
    end = int(np.argmax(known)) if known.any() else len(sizes) - 1
    sizes, logs = sizes[: end + 1], logs[: end + 1]
    gaps = np.diff(sizes)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        by_mass = spacing * np.exp(np.maximum(0.5 * (most - logs[:-1]), 0.0))
        width = np.fmax(np.fmin(by_mass, _BEND * gaps / -np.diff(logs)), spacing)
    start = int(np.argmax(logs <= most)) if np.any(logs <= most) else end
    passed = np.append(0.0, np.cumsum((gaps / width)[start:]))
    count = int(np.ceil(passed[-1]))
    return np.append(np.interp(np.linspace(0.0, passed[-1], count + 1)[:-1], passed, sizes[start:]), sizes[end])

"""How fast the transform of one sampled Gaussian step decays, on lines beside the real one: for few steps.

On the line Im x = angle s^2 the modulus of e^((c + it) L) falls by e^(-t arg), arg >= 0 the argument of the likelihood
ratio there. Layers of a density (``loss_cells``) lose no more than a share of a step; a power of few steps needs more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reticent.kernel.curves._logs import HUGE, log_of
from reticent.pairs.loss_cells import chunks
from reticent.pairs.transforms import Decay

_PIECES = 200  # of a line, at most
_LOGS = 1e-9  # more than sums of these terms are rounded by


@dataclass(frozen=True, slots=True)
class LineDecay:
    """Each line bounds |M(c + it)| / M(c); the least counts.

    Attributes:
        logs: bounds on the integral of |e^(cL)| over each piece of each line, over M(c); shape (lines, pieces).
        turns: lower bounds on the argument there, in the same shape.
    """

    logs: np.ndarray
    turns: np.ndarray

    @classmethod
    def of(cls, growth: np.ndarray, cells: np.ndarray, turns: np.ndarray, outside: float) -> LineDecay:
        """From cells of the real line, in pieces of several cells, and what lies outside of them.

        Args:
            growth: log of what each line has more than the real one, over M(c); shape (lines,).
            cells: log of bounds on the real line, shape (cells,).
            turns: lower bounds on the argument, shape (lines, cells).
            outside: log of a bound on the rest of the real line, where the argument counts as 0.
        """
        first = np.arange(0, len(cells), -(-len(cells) // _PIECES))
        pieces = np.append(np.logaddexp.reduceat(cells, first), outside)
        least = np.minimum.reduceat(turns, first, axis=1)
        return cls(growth[:, None] + pieces, np.pad(least, ((0, 0), (0, 1))))

    def log_bound(self, frequencies: np.ndarray) -> np.ndarray:
        """Per frequency, an upper bound on log |M(c + it)| / M(c) for all t at least that large."""
        return np.concatenate([self._bounds(part) for part in chunks(frequencies, self.logs.size)])

    def _bounds(self, frequencies: np.ndarray) -> np.ndarray:
        exponents = self.logs - frequencies[:, None, None] * self.turns
        largest = np.clip(exponents.max(axis=2), -HUGE, HUGE)  # one exponential each: logaddexp takes several
        sums = log_of(np.exp(exponents - largest[..., None]).sum(axis=2))
        found: np.ndarray = (largest + sums).min(axis=1)
        return found + _LOGS


@dataclass(frozen=True, slots=True)
class Closer:
    """The lower of two bounds.

    Attributes:
        one, other: each holds by itself.
    """

    one: Decay
    other: Decay

    def log_bound(self, frequencies: np.ndarray) -> np.ndarray:
        """Per frequency, the lower of both."""
        found: np.ndarray = np.minimum(self.one.log_bound(frequencies), self.other.log_bound(frequencies))
        return found


@dataclass(frozen=True, slots=True)
class Each:
    """Those of several kinds, along the first axis.

    Attributes:
        kinds: one for each.
    """

    kinds: list[Decay]

    def log_bound(self, frequencies: np.ndarray) -> np.ndarray:
        """For each kind and frequency, an upper bound on log |M(c + it)| / M(c) for all t at least that large."""
        return np.array([kind.log_bound(frequencies) for kind in self.kinds])

"""delta of a sampled run from a lattice of its losses: an estimate that steers a search and states no error."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from reticent.curves._logs import OVERFLOW
from reticent.pairs.gaussian_mixture import GaussianMixture

_SPACING, _POINTS = 0.01, 1 << 16  # of the lattice
_FINEST = 100.0  # its points per standard deviation of the loss
_STEERED_REACH = 8.0
_LARGEST = 40.0  # threshold
_CERTAIN = 1.0 - 1e-15  # probability of taking part, at most
_LATTICE_NODES = 1000.0, 20_000.0


def on_a_lattice(pair: GaussianMixture, steps: float, largest: float) -> Callable[[np.ndarray], np.ndarray]:
    """delta from the lattice law to the power of the steps.

    Each node's mass goes onto three points that keep its mean and its variance (some masses are slightly negative).
    """
    s = pair.noise_multiplier
    span = 2.0 * _STEERED_REACH * s + pair.shifts[-1] * (2.0 if pair.antipodal else 1.0)
    count = min(max(span / (0.5 * _SPACING * s * s), _LATTICE_NODES[0]), _LATTICE_NODES[1])
    nodes = pair.around(_STEERED_REACH, span / count)
    # Without the target the loss is next to an atom: the lattice starts there.
    start = 0.0 if pair.antipodal else float(np.log1p(-np.minimum(sum(pair.weights), _CERTAIN)))
    cap = min(largest, _LARGEST) + 20.0
    loss = np.clip(nodes.loss - start, -cap, cap)
    spread = math.sqrt(steps * float(nodes.tilted(0.5) @ nodes.loss**2))
    furthest = max(_furthest(loss, mass, steps) for mass in (nodes.tilted(1.0), nodes.weight))
    room = 4.0 * float(np.max(np.abs(loss))) + max(20.0 * spread, 2.0 * furthest)
    spacing = max(min(_SPACING, spread / _FINEST), room / _POINTS)
    points = spacing * (np.arange(_POINTS) - _POINTS // 2) + steps * start
    present = _composed(loss / spacing, nodes.tilted(1.0), steps)
    absent = present if pair.antipodal else _composed(loss / spacing, nodes.weight, steps)

    add = _Excess.of(points, present)
    remove = add if pair.antipodal else _Excess.of(-points[::-1], absent[::-1])
    return lambda epsilon: np.clip(np.maximum(add.above(epsilon), remove.above(epsilon)), 0.0, 1.0)


class _Excess(NamedTuple):
    """Sums from each loss above 0 on, then 0: of the masses, and of the masses times e^-loss."""

    losses: np.ndarray
    masses: np.ndarray
    shrunk: np.ndarray

    @classmethod
    def of(cls, losses: np.ndarray, masses: np.ndarray) -> _Excess:
        first = int(np.searchsorted(losses, 0.0))
        losses, masses = losses[first:], masses[first:]
        sums = (np.append(np.cumsum(each[::-1])[::-1], 0.0) for each in (masses, masses * np.exp(-losses)))
        return cls(losses, *sums)

    def above(self, epsilon: np.ndarray) -> np.ndarray:
        """The sum of mass (1 - e^(epsilon - loss)) over larger losses, for each epsilon >= 0."""
        place = np.searchsorted(self.losses, epsilon)
        return self.masses[place] - np.exp(np.minimum(epsilon, OVERFLOW)) * self.shrunk[place]


def _furthest(loss: np.ndarray, mass: np.ndarray, steps: float) -> float:
    """Size of the sum, ten deviations beyond its mean."""
    mean = float(mass @ loss)
    return steps * abs(mean) + 10.0 * math.sqrt(steps * max(float(mass @ loss**2) - mean**2, 0.0))


def _composed(loss: np.ndarray, mass: np.ndarray, steps: float) -> np.ndarray:
    """Lattice masses of the sum, its middle at index ``_POINTS // 2``; ``loss`` in units of the spacing."""
    place = np.rint(loss).astype(int)
    off = loss - place
    law = np.zeros(_POINTS)
    for shift, share in ((-1, 0.5 * off * (off - 1.0)), (0, 1.0 - off * off), (1, 0.5 * off * (off + 1.0))):
        law += np.bincount((place + shift) % _POINTS, weights=mass * share, minlength=_POINTS)
    law /= law.sum()
    return np.roll(np.fft.irfft(np.fft.rfft(law) ** steps, _POINTS), _POINTS // 2)

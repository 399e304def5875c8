"""One step of the common-sign adversary: the law of the noise, the losses, and exact quadrature in its cells.

Observations y are in noise scales, H0 = absent. ``loss`` is the log likelihood ratio of "present with +" at y; that of
"present with -" is ``loss(-y)``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reticent.curves import RelaxedGaussianTradeOff, RelaxedLaplaceTradeOff
from reticent.kernel.curves import TradeOff, subsampled
from reticent.kernel.curves._logs import HALF_LOG_TWO_PI
from reticent.kernel.curves.binomial import log_masses
from reticent.kernel.errors import NumericalError
from reticent.kernel.pairs.gaussian_mixture import log_mixture

REACH = 8.5  # standard deviations of y past the furthest shift: 1e-17 is left out per step and accounted for
_GAUSS = np.polynomial.legendre.leggauss(5)  # nodes and weights of one cell
_MOST_CELLS = 100_000  # of y, to either side of 0
_FINE, _OF_SHIFT = 0.02, 0.05  # widest exact cells of y: in noise scales; over the furthest shift


@dataclass(frozen=True, slots=True)
class GaussianSign:
    """N(0, 1) against its mixture with shifts of k * slope, k ~ Binomial(records, rate).

    By RETICENT:whole-user-sign.

    Attributes:
        rate: p, in (0, 1]; 1 for one record only.
        slope: m, the clip norm over the standard deviation of the noise; > 0.
        records: of one person, >= 1.
    """

    rate: float
    slope: float
    records: int = 1

    @property
    def lost(self) -> float:
        """Mass beyond the nodes, under any of the three laws."""
        return 2.0 * math.exp(-0.5 * REACH * REACH - math.log(REACH) - HALF_LOG_TWO_PI)

    @property
    def finest(self) -> float:
        """The widest cell of y whose quadrature is exact to rounding."""
        return min(_FINE, _OF_SHIFT / (self.records * self.slope))

    @property
    def curve(self) -> TradeOff | None:
        """Of a single step, where it is known in closed form."""
        return subsampled(RelaxedGaussianTradeOff(self.slope**2, 1), self.rate) if self.records == 1 else None

    @property
    def _reach(self) -> float:
        return REACH + self.records * self.slope

    def loss(self, y: np.ndarray) -> np.ndarray:
        """log dQ+/dP, of the shape of ``y``: real, or complex near the real axis for one record."""
        if self.records == 1:
            exponent = self.slope * y - 0.5 * self.slope**2
            if self.rate == 1.0:
                return exponent
            if np.iscomplexobj(y):
                with np.errstate(over="ignore"):
                    return np.log1p(self.rate * np.expm1(exponent))
            return log_mixture([self.rate], [exponent])
        shifts = self.slope * np.arange(1, self.records + 1)
        weights = np.exp(log_masses(self.records, self.rate)[1:])
        return log_mixture(weights.tolist(), [shift * y - 0.5 * shift**2 for shift in shifts.tolist()])

    def planned(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """So many evenly spaced observations, an odd number, and roughly the log of the P-mass at each."""
        y = np.linspace(-self._reach, self._reach, count)
        return y, -0.5 * y * y + np.log((y[1] - y[0]) / np.sqrt(2.0 * np.pi))

    def quadrature(self, cell: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Nodes and P-weights, one row per cell of y of width at most ``cell``; and the ends of the cells.

        Args:
            cell: > 0, in noise scales.
        """
        ends = _ends(self._reach, cell)
        y, half = _nodes(ends)
        return y, half * _GAUSS[1] * np.exp(-0.5 * y * y) / np.sqrt(2.0 * np.pi), ends


@dataclass(frozen=True, slots=True)
class LaplaceSign:
    """Laplace(0, 1) against the same moved by ``shift`` with probability ``rate``; its members are as above.

    Beyond the shift the likelihood ratios are constant: a cell without width at either end carries that mass.
    """

    rate: float
    shift: float

    @property
    def curve(self) -> TradeOff:
        return subsampled(RelaxedLaplaceTradeOff(self.shift), self.rate)

    @property
    def lost(self) -> float:
        return 0.0

    @property
    def finest(self) -> float:
        return _FINE

    def loss(self, y: np.ndarray) -> np.ndarray:
        return np.log1p(self.rate * np.expm1(np.clip(2.0 * y - self.shift, -self.shift, self.shift)))

    def planned(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        y = np.linspace(-self.shift, self.shift, count)
        log_mass = -np.abs(y) + math.log(0.5 * (y[1] - y[0]))
        log_mass[[0, -1]] = -self.shift - math.log(2.0)
        return y, log_mass

    def quadrature(self, cell: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        ends = _ends(self.shift, cell)
        y, half = _nodes(ends)
        weight = half * _GAUSS[1] * 0.5 * np.exp(-np.abs(y))
        beyond = np.full((1, len(_GAUSS[1])), 0.1 * math.exp(-self.shift))  # a fifth of the mass e^-shift / 2 each
        outer = np.full_like(beyond, self.shift)
        ends = np.concatenate([ends[:1], ends, ends[-1:]])
        return np.concatenate([-outer, y, outer]), np.concatenate([beyond, weight, beyond]), ends


SignNoise = GaussianSign | LaplaceSign
"""One step, as the lattice takes it."""
Kinds = Sequence[tuple[GaussianSign, int]]
"""Steps with Gaussian noise of each kind, and how often each runs."""


def odd_and_even(noise: SignNoise, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(a, b) of ``step`` at observations ``y``: half the difference, and half the sum, of the losses at y and -y.

    Args:
        y: in noise scales, any shape.
    """
    up, down = noise.loss(y), noise.loss(-y)
    return 0.5 * (up - down), 0.5 * (up + down)


def _ends(reach: float, cell: float) -> np.ndarray:
    """Ends of an even number of cells, 0 among them."""
    count = int(np.ceil(reach / cell))
    if count > _MOST_CELLS:
        raise NumericalError(f"sign lattice: {2 * count} cells of the observation would be needed")
    return np.linspace(-reach, reach, 2 * count + 1)


def _nodes(ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    half = 0.5 * np.diff(ends)[:, None]
    return 0.5 * (ends[1:] + ends[:-1])[:, None] + half * _GAUSS[0], half

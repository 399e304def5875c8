"""Two laws on finitely many outcomes, and what follows from them: the oracle of pairs, of samplers and of routes.

It shares no code with what it tests: densities are written out, and composed by cutting losses into cells. All mass at
the lower end of its cell gives a delta at or below the truth, for any number of steps. Split between both ends so that
both laws keep their mass, it gives one at or above.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from itertools import product

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.stats import binom, norm

from reticent.kernel.pairs import AntipodalGaussianPair, GaussianPair, Pair, WholeUserGaussianPair
from reticent.pairs import AllocatedGaussianPair, LaplacePair, MixedPair

CELL, HALF = 2.0**-8, 2**15  # losses within 128
LOSSES = CELL * np.arange(-HALF, HALF + 1)
EPSILONS = np.array([0.0, 0.1, 1.0, 3.0, 10.0, 30.0, 60.0, 100.0])

Law = tuple[np.ndarray, float]
"""Masses at ``LOSSES``, and the mass at infinity."""
Sums = Mapping[tuple[float, ...], float]
"""How likely each value of a vector is."""


@dataclass(frozen=True, eq=False)
class Experiment:
    """Masses of the same outcomes under both laws.

    Attributes:
        absent, present: as many masses, 1 in total each.
    """

    absent: np.ndarray
    present: np.ndarray

    @classmethod
    def noisy(cls, absent: Sums, present: Sums, noise: float, cells: int = 4001, reach: float = 10.0) -> Experiment:
        """Sums of whole batches, one coordinate each step, with normal noise in each."""
        far = max(abs(x) for law in (absent, present) for mean in law for x in mean)
        x = np.linspace(-far - reach * noise, far + reach * noise, cells)
        step = cache(lambda mean: norm.pdf(x, mean, noise) * (x[1] - x[0]))

        def law(sums: Sums) -> np.ndarray:
            return np.ravel(sum(weight * reduce(np.multiply.outer, map(step, mean)) for mean, weight in sums.items()))

        return cls(law(absent), law(present))

    @property
    def turned(self) -> Experiment:
        """The two laws exchanged."""
        return Experiment(self.present, self.absent)

    def delta(self, epsilon: float) -> float:
        """Of one, H0 = absent."""
        return float(np.maximum(self.present - math.exp(epsilon) * self.absent, 0.0).sum())

    def worse(self, epsilon: float) -> float:
        """The larger delta of both directions."""
        return max(self.delta(epsilon), self.turned.delta(epsilon))

    def cells(self) -> tuple[np.ndarray, np.ndarray]:
        """The masses of (-inf, l_0], (l_0, l_1], .., (l_last, inf) under "present" and under "absent" of the loss."""
        with np.errstate(divide="ignore", invalid="ignore"):
            loss = np.log(self.present / self.absent)
        inside = self.present + self.absent > 0.0
        place = np.searchsorted(LOSSES, loss[inside])
        return tuple(np.bincount(place, law[inside], len(LOSSES) + 1) for law in (self.present, self.absent))


def experiment_of(pair: Pair) -> Experiment:
    """The two laws of a pair, by its own words."""
    match pair:
        case AntipodalGaussianPair():
            p = pair.sample_rate
            laws = [{(0.0,): 1.0 - p, (sign,): p} for sign in (-1.0, 1.0)]
            return Experiment.noisy(*laws, pair.noise_multiplier, 100_001)
        case GaussianPair():
            moved = {(0.0,): 1.0 - pair.sample_rate, (pair.shift,): pair.sample_rate}
            return Experiment.noisy({(0.0,): 1.0}, moved, pair.noise_multiplier, 100_001)
        case WholeUserGaussianPair():
            counts = range(pair.records + 1)
            masses = binom.pmf(counts, pair.records, pair.rate)
            present, absent = (
                {(sign * k,): float(mass) for k, mass in zip(counts, masses, strict=True)} for sign in (1.0, -1.0)
            )
            return Experiment.noisy(
                absent if pair.antipodal else {(0.0,): 1.0}, present, pair.noise_multiplier, 200_001
            )
        case LaplacePair():
            x = pair.noise_multiplier * np.linspace(-40.0, 40.0, 100_001) + 0.5 * pair.shift
            absent, moved = (np.exp(-np.abs(x - m) / pair.noise_multiplier) for m in (0.0, pair.shift))
            present = (1.0 - pair.sample_rate) * absent / absent.sum() + pair.sample_rate * moved / moved.sum()
            return Experiment(absent / absent.sum(), present)
        case MixedPair():
            shares = (1.0 - pair.share, experiment_of(pair.first)), (pair.share, experiment_of(pair.second))
            return Experiment(
                *(np.concatenate([s * getattr(e, law) for s, e in shares]) for law in ("absent", "present"))
            )
        case AllocatedGaussianPair():
            present = {tuple(float(k == at) for k in range(pair.bins)): 1.0 / pair.bins for at in range(pair.bins)}
            cells = {2: 1201, 3: 121}[pair.bins]
            return Experiment.noisy({(0.0,) * pair.bins: 1.0}, present, pair.noise_multiplier, cells)
    raise NotImplementedError(pair)


def moved(numerator: np.ndarray, denominator: np.ndarray, up: bool) -> Law:
    """The loss on the grid: at or above the truth, or at or below it (mass below the grid then goes away)."""
    if not up:
        return numerator[1:], 0.0
    inner, other = numerator[1:-1], denominator[1:-1]
    with np.errstate(all="ignore"):
        exact = (inner - other * np.exp(LOSSES[:-1])) / -np.expm1(-CELL)
    # Far out the difference is lost in rounding: there all mass goes to the upper end.
    above = np.where(np.abs(LOSSES[:-1]) < 8.0, np.clip(exact, 0.0, inner), inner)
    masses = np.zeros(len(LOSSES))
    masses[0] = numerator[0]
    masses[1:] += above
    masses[:-1] += inner - above
    return masses, float(numerator[-1])


def sums(first: Law, second: Law, up: bool) -> Law:
    """The law of the sum. What leaves the window above goes to infinity or to its end, below to its end or away."""
    (p, p_top), (q, q_top) = first, second
    size = next_fast_len(2 * len(p) - 1, real=True)
    both = np.maximum(irfft(rfft(p, size) * rfft(q, size), size)[: 2 * len(p) - 1], 0.0)
    inside, over, under = both[HALF : HALF + len(p)].copy(), both[HALF + len(p) :].sum(), both[:HALF].sum()
    if up:
        inside[0] += under
        return inside, 1.0 - (1.0 - p_top) * (1.0 - q_top) + over
    inside[-1] += over
    return inside, 0.0


def composed(parts: Sequence[tuple[tuple[np.ndarray, np.ndarray], int]], up: bool) -> Law:
    """The loss of all steps: ``parts`` are cells of one step, and how often it ran."""
    total: Law | None = None
    for cells, steps in parts:
        law = moved(*cells, up)
        while True:
            if steps % 2:
                total = law if total is None else sums(total, law, up)
            steps //= 2
            if not steps:
                break
            law = sums(law, law, up)
    assert total is not None
    return total


def deltas(law: Law, epsilons: np.ndarray = EPSILONS) -> np.ndarray:
    """delta at each threshold, of a loss under "present"."""
    masses, top = law
    gain = -np.expm1(np.minimum(epsilons[:, None] - LOSSES[None, :], 0.0))
    return gain @ masses + top


def truth_of(parts: Sequence[tuple[Pair, int]], epsilons: Sequence[float]) -> dict[float, tuple[float, float]]:
    """(at or below, at or above) delta of pairs composed, H0 = absent; of the other direction at thresholds below 0."""
    found = {}
    for ahead in (True, False):
        cells = [(experiment_of(pair) if ahead else experiment_of(pair).turned, count) for pair, count in parts]
        cut = [(one.cells(), count) for one, count in cells]
        asked = [e for e in epsilons if (e >= 0.0) == ahead]
        low, high = (deltas(composed(cut, up), np.abs(asked)) for up in (False, True))
        found.update(zip(asked, zip(low.tolist(), high.tolist(), strict=True), strict=True))
    return found


def all_coins(rate: float, count: int) -> list[tuple[tuple[int, ...], float]]:
    """Each outcome of ``count`` coins, and how likely it is."""
    return [
        (coins, math.prod(rate if coin else 1.0 - rate for coin in coins)) for coins in product((0, 1), repeat=count)
    ]

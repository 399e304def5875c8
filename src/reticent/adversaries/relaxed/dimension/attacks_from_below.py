"""Legal attacks with exact laws: the other end of the enclosure.

With B = |sum_t y_t|^2 / (T s^2) and W = sum_t |y_t - mean|^2 / s^2, given the mask and for every direction,
B ~ ncx2(d, K^2 / (T s^2)) and W ~ ncx2((T - 1) d, (K - K^2 / T) / s^2), independent. An attacker who rejects "absent"
where one of them exceeds a level that falls with the cell of the other, in a fixed partition, uses both; which level is
the attacker's choice, here that of the quadratic test that is optimal for small signals. The errors are finite sums of
exact tails.

Where a person has several records, all in one direction, J_t ~ Binomial(records, p) of them are in step t: K = sum J_t,
and W has sum J_t^2 instead of K, which is least where K is spread evenly over the steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reticent.curves import ncx2
from reticent.kernel.curves import binomial
from reticent.kernel.curves._logs import EPS, cell_masses

_GROUPS = 40  # of counts
_FEW_CELLS, _MANY_CELLS = 24, 40  # of the norm that is cut; many where the other one is coarse
_FAST_FROM = 400  # degrees of freedom from which tails need no contour
_LEVELS = 28  # of each attacker
_RARE = 1e-6  # counts with less probability are left out: power is lost, nothing else
RTOL = (1e-11, 1e-6)
"""Of the tails: between these, in proportion to the signal."""
_SHARE = 3e-5  # of the signal over its standard deviation that rounding may cost
_LEAST = 1e-300  # below, a rate is not distinguished from 0, which would be too good
_ROUNDING = 4.0  # rtols, of each rate
_LOW, _HIGH, _LEAST_ROOT = 4.0, 5.5, 0.05  # of a partition: normal quantiles of its ends; the smallest cube root
_BEYOND, _BEYOND_BOTH = 6.0, 3.0  # standard deviations of the largest level, past "absent" and past "present"
_LOUD, _LOUD_MORE = 8.0, 6.0  # the same for the loudest step
_RARER = 1e-3  # of _RARE, for the counts of one step


def error_rates(
    noise: float,
    rate: float,
    steps: int,
    dimension: int,
    levels: int = _LEVELS,
    groups: int = _GROUPS,
    records: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """(upper bounds on the false positive rate, lower bounds on the power) of four kinds of attackers.

    Args:
        steps: number of noisy sums; of a single one W is 0.
        levels: how many levels each attacker tries.
        groups: most groups of counts; each takes the noncentralities of its weakest member.
        records: of the person, each drawn independently, all in one direction.
    """
    law = binomial.grouped(steps * records, rate, groups, _RARE)
    unit, weight, mean = noise**-2.0, np.exp(law.log_least), rate * steps * records
    share, rest = unit * mean * mean / steps, unit * (1.0 - rate) * mean
    kinds: tuple[_Statistic, ...] = (
        _Statistic(1.0, dimension, unit * law.low.astype(float) ** 2 / steps, share),
        _Statistic(direction(rate, steps * records), (steps - 1) * dimension, unit * _least_within(law, steps), rest),
        _Statistic(1.0, steps * dimension, unit * least_squares(law.low, steps), share + rest),
    )
    kinds = kinds if steps > 1 else (kinds[0], kinds[2])
    rtol = float(np.clip(_SHARE * max(part.typical / part.deviation for part in kinds), *RTOL))
    found = (
        *((_staircase(weight, kinds[:2], levels, rtol),) if steps > 1 else ()),
        _norm(weight, kinds[0], levels, rtol),
        _norm(weight, kinds[-1], levels, rtol),
        _loudest(unit, rate, steps, dimension, levels, records),
    )
    fpr, power = (np.concatenate(part) for part in zip(*found, strict=True))
    rounding = _ROUNDING * rtol
    return np.clip(fpr * (1.0 + rounding), _LEAST, 1.0), np.clip(power * (1.0 - rounding), 0.0, 1.0)


def least_squares(count: np.ndarray, steps: int) -> np.ndarray:
    """The least sum J_t^2 over ``steps`` whole numbers that add up to ``count``."""
    each, more = count // steps, count % steps
    return ((steps - more) * each**2 + more * (each + 1) ** 2).astype(float)


def _least_within(law: binomial.Blocks, steps: int) -> np.ndarray:
    """The least sum J_t^2 - K^2/T in each group of counts K: concave between multiples of T, where it is 0."""
    ends = [(count % steps) * (steps - count % steps) / steps for count in (law.low, law.high)]
    return np.where(law.low // steps == law.high // steps, np.minimum(*ends), 0.0)


def direction(rate: float, coins: int) -> float:
    """Weight of W for weight 1 of B: the quadratic form that is best for small signals.

    E J J' on pairs of steps, E J^2 on squares: the latter exceeds the former by the variance of J.
    """
    return (1.0 - rate) / (1.0 - rate + rate * coins)


@dataclass(frozen=True, slots=True)
class _Statistic:
    """One statistic: its weight, degrees of freedom, noncentrality per group of counts, and a typical one."""

    scale: float
    degrees: int
    noncentrality: np.ndarray
    typical: float

    @property
    def deviation(self) -> float:
        """Standard deviation of its share of the form under "absent"."""
        return float(self.scale * np.sqrt(2.0 * self.degrees))

    def partition(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Ends of ``count`` cells, about even in normal quantiles (Wilson and Hilferty), and a label inside each."""
        unit = 2.0 / (9.0 * self.degrees)
        top = 1.0 + _HIGH * np.sqrt(unit) + self.typical / self.degrees
        roots = np.linspace(max(1.0 - unit - _LOW * np.sqrt(unit), _LEAST_ROOT), top, 2 * count - 1)
        cubes = self.degrees * roots**3
        return cubes[1::2], cubes[::2]


def _norm(weight: np.ndarray, part: _Statistic, levels: int, rtol: float) -> tuple[np.ndarray, np.ndarray]:
    """Rates of "reject where this norm exceeds a level"."""
    level = _levels([part], levels)
    power = np.exp(ncx2.log_sf(level, part.degrees, part.noncentrality[:, None], rtol))
    return np.exp(ncx2.log_sf(level, part.degrees, 0.0, rtol)), weight @ power


def _staircase(
    weight: np.ndarray, kinds: Sequence[_Statistic], levels: int, rtol: float
) -> tuple[np.ndarray, np.ndarray]:
    """Rates of "reject where B + scale * W exceeds a level", one of the two taken at the label of its cell.

    What is rejected is an upper set in (B, W), so power grows with both noncentralities. The one that varies less is
    cut, unless the tails of the other one would be slow.
    """
    cut, free = sorted(kinds, key=lambda part: part.deviation)
    cells = _FEW_CELLS
    if free.degrees < _FAST_FROM <= cut.degrees:
        cut, free, cells = free, cut, _MANY_CELLS
    edges, labels = cut.partition(cells)
    needed = (_levels(kinds, levels)[:, None] - cut.scale * labels) / free.scale  # levels x cells
    false = np.exp(ncx2.log_sf(needed, free.degrees, 0.0, rtol)) @ _cells(edges, cut.degrees, np.zeros(1), rtol)[0]
    seen = np.exp(ncx2.log_sf(needed, free.degrees, free.noncentrality[:, None, None], rtol))
    return false, np.einsum("k,kc,klc->l", weight, _cells(edges, cut.degrees, cut.noncentrality, rtol), seen)


def _cells(edges: np.ndarray, degrees: int, noncentrality: np.ndarray, rtol: float) -> np.ndarray:
    """Mass of each cell, a row per noncentrality: [0, e_0], (e_0, e_1], ..., (e_n, inf)."""
    cdf, sf = (np.exp(tail) for tail in ncx2.log_tails(edges, degrees, noncentrality[:, None], rtol))
    return np.clip(np.hstack([cdf[:, :1], cell_masses(cdf, sf), sf[:, -1:]]), 0.0, 1.0)


def _levels(kinds: Sequence[_Statistic], count: int) -> np.ndarray:
    """Levels of the weighted sum, to beyond both laws."""
    centre = sum(part.scale * part.degrees for part in kinds)
    signal = sum(part.scale * part.typical for part in kinds)
    deviation = np.sqrt(sum(part.deviation**2 for part in kinds))
    noisy = np.sqrt(deviation**2 + 4.0 * sum(part.scale**2 * part.typical for part in kinds))
    top = max(_BEYOND * deviation, signal + _BEYOND_BOTH * noisy)
    return np.asarray(centre + np.append(-0.5 * deviation, np.linspace(0.0, top, count - 1)))


def _loudest(
    signal: float, rate: float, steps: int, dimension: int, levels: int, records: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rates of "reject where the loudest step |y_t|^2 exceeds a level": norms of different steps are independent."""
    loud = signal * (1.0 + rate * (records - 1)) ** 2
    top = dimension + _LOUD * np.sqrt(2.0 * dimension) + loud + _LOUD_MORE * np.sqrt(loud + 1.0)
    level = np.linspace(dimension, top, levels)
    law = binomial.grouped(records, rate, _GROUPS, _RARE * _RARER * rate)
    absent = np.exp(ncx2.log_sf(level, dimension, 0.0, RTOL[0]))
    sampled = np.exp(law.log_least) @ np.exp(ncx2.log_sf(level, dimension, signal * law.low[:, None] ** 2, RTOL[0]))
    fpr, power = (-np.expm1(steps * np.log1p(-np.minimum(one, 1.0 - EPS))) for one in (absent, sampled))
    return fpr, power

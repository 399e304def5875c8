"""Binomial counts: masses, Chernoff tails, and blocks of counts with bounds on the mass inside and outside."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import bdtr, bdtrc, gammaln

from reticent.kernel.curves._logs import EPS, HALF_LOG_TWO_PI, log_of

_DEVIATIONS, _FEW = 10.0, 45.0  # of the window: at least e^-50 of the mass lies inside, whatever the mean
_FINE = 20_000  # blocks before grouping
TERMS = 100_000  # that are added up one by one
_PER_UNIT, _ALWAYS = 16.0, 60.0  # eps of a log mass for each unit of its exponents; such units that it always has
_DIGITS = 1.0 - 1e-12  # of a divergence
_SMALL = 16.0  # counts from which Stirling's series has full accuracy


@dataclass(frozen=True, slots=True)
class Blocks:
    """Whole numbers from ``low[0]`` to ``high[-1]``, cut into blocks ``low[i], ..., high[i]``.

    Attributes:
        low, high: first and last count of each block.
        log_least, log_most: natural logarithms of a lower and an upper bound on the probability of each block.
        log_below, log_above: of upper bounds on the probability below the first and above the last block.
    """

    low: np.ndarray
    high: np.ndarray
    log_least: np.ndarray
    log_most: np.ndarray
    log_below: float
    log_above: float


@lru_cache(maxsize=16)  # a search over the noise asks for the same law again and again
def blocks(count: int, rate: float, most: int, window: float = 1.0) -> Blocks:
    """The law of a binomial count, in at most ``most`` blocks or so.

    Args:
        count: number of trials, >= 1.
        rate: probability of success, in (0, 1).
        most: number of blocks; counts are grouped where there are more of them.
        window: shrinks the window, for tests of what is left out.
    """
    mean, deviation = count * rate, float(np.sqrt(count * rate * (1.0 - rate)))
    reach = window * (_DEVIATIONS * deviation + _FEW)
    first, last = max(0, int(np.floor(mean - reach))), min(count, int(np.ceil(mean + reach)))
    low = np.arange(first, last + 1)
    if len(low) > most:
        mode = int((count + 1) * rate)  # on its own, so that masses rise or fall inside every block
        around = np.clip([mode - 1, mode, mode + 1, mode + 2], first, last)
        low = np.unique(np.append(np.linspace(first, last + 1, most + 1).astype(np.int64)[:-1], around))
    high = np.append(low[1:] - 1, last)
    ends = [log_mass(side, count, rate) for side in (low, high)]
    inside = _inside(low, high, count, rate) if len(low) < last + 1 - first else None
    rounding = _PER_UNIT * EPS * (reach + _ALWAYS - np.minimum(*ends))
    width = np.log(high - low + 1.0)
    least = np.minimum(*ends) + width if inside is None else inside
    top = np.maximum(*ends) + width if inside is None else inside
    below = float(log_tail(first - 1, count, rate)) if first > 0 else -np.inf
    above = float(log_tail(last + 1, count, rate)) if last < count else -np.inf
    return Blocks(low, high, least - rounding, top + rounding, below, above)


def grouped(count: int, rate: float, most: int, least: float, window: float = 1.0) -> Blocks:
    """At most ``most`` blocks of the counts whose own probability is above ``least``; the others lie outside.

    Args:
        count: number of trials, >= 1.
        rate: probability of success, in (0, 1).
        most: number of blocks.
        least: probability of a count.
        window: as for ``blocks``.
    """
    fine = blocks(count, rate, _FINE, window)
    kept = np.flatnonzero(fine.log_most > np.log(least))
    start, end = int(kept[0]), int(kept[-1]) + 1
    starts = np.unique(np.linspace(start, end, min(most, end - start) + 1).astype(np.int64)[:-1])
    ends = np.append(starts[1:], end) - 1
    below = np.logaddexp.reduce(np.append(fine.log_most[:start], fine.log_below))
    above = np.logaddexp.reduce(np.append(fine.log_most[end:], fine.log_above))
    sums = [np.logaddexp.reduceat(logs[:end], starts) for logs in (fine.log_least, fine.log_most)]
    return Blocks(fine.low[starts], fine.high[ends], sums[0], sums[1], float(below), float(above))


def shared_blocks(rates: np.ndarray, trials: int, most: int) -> tuple[np.ndarray, np.ndarray]:
    """One grouping of the counts for many rates of success, in plain numbers: no rounding is added.

    Args:
        rates: probabilities of success, in increasing order.
        trials: number of trials, >= 1.
        most: number of blocks.

    Returns:
        First count of each block, and the probability of each block (columns) at each rate (rows). The first block
        begins at 0, the last one takes the upper tail.
    """
    middle, reach = trials * rates[[0, -1]], 9.0 * np.sqrt(trials * rates[[0, -1]]) + 40.0
    low, high = max(0, int(middle[0] - reach[0])), min(trials, int(middle[1] + reach[1]))
    starts = np.union1d([0], np.linspace(low, high, most).astype(int)).astype(float)
    last = np.append(starts[1:] - 1.0, float(trials))
    falls = starts > trials * rates[:, None]  # each tail where it does not cancel: the other one is not computed
    up_to, beyond = np.ones(falls.shape), np.zeros(falls.shape)
    bdtr(last, trials, rates[:, None], out=up_to, where=~falls & (last < trials))
    bdtrc(np.maximum(starts - 1.0, 0.0), trials, rates[:, None], out=beyond, where=falls)
    rising, falling = np.diff(up_to, axis=1, prepend=0.0), -np.diff(beyond, axis=1, append=0.0)
    return starts, np.where(falls, falling, rising)


def _inside(low: np.ndarray, high: np.ndarray, count: int, rate: float) -> np.ndarray | None:
    """log of the mass of each block, term by term; None where these are too many terms."""
    if high[-1] - low[0] > TERMS:
        return None
    mass = np.exp(log_mass(np.arange(low[0], high[-1] + 1), count, rate))
    return log_of(np.add.reduceat(mass, low - low[0]))


def log_masses(count: int, rate: float) -> np.ndarray:
    """log P(Binomial(count, rate) = k) at k = 0, ..., count; ``rate`` below 1."""
    return log_mass(np.arange(count + 1), count, rate)


def log_mass(k: np.ndarray, count: int, rate: float) -> np.ndarray:
    """log P(Binomial(count, rate) = k), by deviations from the mean so that nothing large cancels."""
    k = np.asarray(k, dtype=float)
    rest = count - k
    spread = np.where((k > 0) & (rest > 0), k * rest, 1.0)
    inner = (
        _stirling(np.asarray(float(count))) - _stirling(k) - _stirling(rest) - HALF_LOG_TWO_PI
        + 0.5 * (np.log(count) - np.log(spread)) - divergence(k, count, rate)
    )  # fmt: skip
    ends = np.where(k == 0, count * np.log1p(-rate), count * np.log(rate))
    return np.where((k > 0) & (rest > 0), inner, ends)


def log_tail(k: int | np.ndarray, count: int, rate: float) -> np.ndarray:
    """Chernoff: log of a bound on P(at least k) for k above the mean, on P(at most k) below it.

    Args:
        k: counts, any shape.
        count: number of trials, >= 1.
        rate: probability of success, in (0, 1).
    """
    return -divergence(np.asarray(k, dtype=float), count, rate) * _DIGITS


def divergence(k: np.ndarray, count: int, rate: float) -> np.ndarray:
    """``count`` times the Kullback-Leibler divergence of k/count from ``rate``."""
    return _deviance(k, count * rate) + _deviance(count - k, count * (1.0 - rate))


def _deviance(x: np.ndarray, mean: float) -> np.ndarray:
    """x log(x / mean) + mean - x >= 0; absolute rounding is that of mean - x and of the result."""
    some = np.where(x > 0, x, 1.0)
    ratio = (mean - some) / some
    near = np.abs(ratio) < 0.5
    ratio = np.where(near, ratio, 0.0)
    close, far = some * (ratio - np.log1p(ratio)), some * np.log(some / mean) + (mean - some)
    return np.where(x > 0, np.where(near, close, far), mean)


def _stirling(n: np.ndarray) -> np.ndarray:
    """log n! less Stirling's formula."""
    n = np.asarray(n, dtype=float)
    small, large = np.where(n < _SMALL, n, 1.0), np.where(n < _SMALL, _SMALL, n)
    small = np.maximum(small, 0.5)
    exact = gammaln(small + 1.0) - (small + 0.5) * np.log(small) + small - HALF_LOG_TWO_PI
    square = 1.0 / (large * large)
    series = (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square / 1680.0))) / large
    return np.where(n < _SMALL, exact, series)

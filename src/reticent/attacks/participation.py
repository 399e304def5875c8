"""Did each record take part as claimed: drawn independently at every step? Exact tests, with p-values.

Poisson sampling at rate q makes the participations independent, each with probability q, across records, steps and
runs. Every test below counts events that are then independent of each other, so that the count is binomial and
its p-value exact; where it looks at many counts, it takes the union bound over them.

They see a record forced into the first batch, into a fixed place of every epoch, or drawn more often than others;
batches cut from a shuffled queue, whatever their sizes; batches that are cut or passed over by their size; batches
that repeat; and records that always come together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

NOISE = 0.05
"""Noise multiplier of the runs in which participation is read: a record counts as 1 and the noise is a twentieth."""
SPARE = 64
"""Coordinates that no record has: they show whether the noise follows the setting."""
_MOST_RECORDS = 1024
_RUNS = (4, 24)
_STEPS = (128, 512)
_OFFSETS = range(17)
_CUTS = (0.05, 0.2, 0.8, 0.95, 0.99)
_STRONGER = (0.3, 0.95)
_AIM = 1e-5
_ONCE, _NOISE = "a record counts once", "noise and batches"


@dataclass(frozen=True, slots=True)
class Check:
    """One test.

    Attributes:
        name: what is tested.
        p_value: probability of something at least as extreme if the claim is true; at most 1.
        finding: one sentence with the measured number.
    """

    name: str
    p_value: float
    finding: str


_Result = tuple[float, str]
"""A p-value, which may exceed 1 by a union bound, and the finding."""


def _least(found: Sequence[_Result]) -> _Result:
    """The smallest of several p-values, by the union bound over all."""
    p, finding = min(found)
    return len(found) * p, finding


def worst_of(name: str, found: Sequence[_Result]) -> Check:
    """One test of several p-values, each with its finding: the smallest, by the union bound over all."""
    p, finding = _least(found)
    return Check(name, min(1.0, p), finding)


@dataclass(frozen=True, slots=True)
class Plan:
    """How many short runs, of how many steps, follow how many records.

    Attributes:
        runs: enough that a record forced into one batch of each cannot be chance.
        steps: all of the claim, up to 128 or about two epochs, and never more than 512.
        records: those at either end of the data set, all of them if they are few.
    """

    runs: int
    steps: int
    records: np.ndarray

    @classmethod
    def of(cls, sample_rate: float, steps: int, dataset_size: int) -> Plan:
        """The plan for a claim."""
        steps = min(steps, max(_STEPS[0], min(_STEPS[1], math.ceil(2.0 / sample_rate))))
        half = min(dataset_size, _MOST_RECORDS) // 2
        records = np.unique(np.r_[np.arange(dataset_size)[: half + 1], np.arange(dataset_size - half, dataset_size)])
        if sample_rate == 1.0:
            return cls(_RUNS[0], steps, records)
        needed = math.log(len(records) * steps / _AIM) / -math.log(sample_rate)
        return cls(min(max(_RUNS[0], math.ceil(needed)), _RUNS[1]), steps, records)


def participation_checks(sums: np.ndarray, records: int, sample_rate: float, noise: float) -> tuple[Check, ...]:
    """Test the participations that noisy sums show.

    Args:
        sums: in clip norms, shape (runs, steps, records + spare): first the coordinates of the records, one each, then
            at least one coordinate that no record has.
        records: how many are followed.
        sample_rate: as claimed.
        noise: noise multiplier of these runs, so small that participation can be read.
    """
    seen, spare = sums[..., :records], sums[..., records:]
    level = float(np.sqrt((spare**2).mean()))
    if level > 2.0 * noise:
        finding = f"not tested: the noise is {level:.3g} clip norms where {noise:.3g} was declared"
        return tuple(Check(name, 1.0, finding) for name in NAMES)
    counted = _counted_once(seen, noise)
    size = _level(seen)
    part = seen > 0.5 * size
    # Reading one of them wrongly takes noise of half of what a record counts.
    misread = seen.size * 2.0 * float(special.ndtr(-0.5 * size / noise))
    found = {name: test(part, sample_rate) for name, test in _OF_RECORDS.items()}
    found[_NOISE] = _noise_and_batches((seen - size * part) / noise, part)
    return counted, *(Check(name, min(1.0, p + misread), finding) for name, (p, finding) in found.items())


def _level(seen: np.ndarray) -> float:
    """What one record counts: 1, or less where clipping is stronger than claimed, which is no fault."""
    large = seen[seen > _STRONGER[0]]
    typical = float(np.median(large)) if large.size else 1.0
    return typical if typical < _STRONGER[1] else 1.0


def _counted_once(seen: np.ndarray, noise: float) -> Check:
    """No value is above 1 or below 0 by more than the noise. Less than 1 is stronger clipping: safe."""
    excess = np.maximum(seen - 1.0, -seen)
    worst = int(excess.argmax())
    p = seen.size * 2.0 * float(special.ndtr(-excess.flat[worst] / noise))
    return Check(_ONCE, min(1.0, p), f"one record counts {seen.flat[worst]:.4g} where 1 is the most")


def _every_batch(part: np.ndarray, rate: float) -> _Result:
    hits = part.sum(axis=0)
    p = hits.size * float(stats.binom.sf(hits.max() - 1, len(part), rate))
    step, record = np.unravel_index(int(hits.argmax()), hits.shape)
    return p, f"record {record} is in batch {step} of {hits.max()} of {len(part)} runs"


def _rate_of_each_record(part: np.ndarray, rate: float) -> _Result:
    trials, hits = part.shape[0] * part.shape[1], part.sum(axis=(0, 1))
    above, below = stats.binom.sf(hits - 1, trials, rate), stats.binom.cdf(hits, trials, rate)
    least = np.minimum(above, below)
    worst = int(least.argmin())
    found = f"record {worst} takes part at rate {hits[worst] / trials:.4g} where {rate:.4g} is claimed"
    return 2.0 * hits.size * float(least[worst]), found


def _gaps(part: np.ndarray, rate: float) -> _Result:
    """Participations of one record that lie ``lag`` steps apart, in disjoint pairs of steps: binomial."""
    steps = part.shape[1]
    lags = range(1, min(steps - 1, 2 * math.ceil(1.0 / rate)) + 1)
    found = []
    for lag in lags:
        first = np.flatnonzero((np.arange(steps - lag) // lag) % 2 == 0)
        both = part[:, first] & part[:, first + lag]
        words = f"records return after {lag} steps at rate {both.mean():.4g} where {rate**2:.4g} is expected"
        found.append((two_sided(int(both.sum()), both.size, rate**2), words))
    return _least(found) if found else (1.0, "one step has no gaps")


def _pairs(part: np.ndarray, rate: float) -> _Result:
    """Two records that come together too often; and neighbours, which block-wise batches keep together or apart."""
    records = part.shape[2]
    if records < 2:
        return 1.0, "one record has no pair"
    flat = part.reshape(-1, records)
    together = np.triu(flat.astype(np.float32).T @ flat.astype(np.float32), k=1)
    worst = int(together.argmax())
    often = round(float(together.flat[worst]))
    pairs = records * (records - 1) // 2
    every_pair = pairs * float(stats.binom.sf(often - 1, len(flat), rate**2))
    even = 2 * (records // 2)
    both = flat[:, 0:even:2] & flat[:, 1:even:2]
    neighbours = two_sided(int(both.sum()), both.size, rate**2)
    one, other = np.unravel_index(worst, together.shape)
    found = (
        f"records {one} and {other} share {often} of {len(flat)} batches; neighbours share {both.mean():.4g} of them"
    )
    return 2.0 * min(every_pair, neighbours), f"{found} where {rate**2:.4g} is expected"


def _epochs(part: np.ndarray, rate: float) -> _Result:
    """Records that take part exactly once in as many steps as an epoch has: binomial; a queue makes it certain."""
    runs, steps, records = part.shape
    length = min(steps, max(1, round(1.0 / rate)))
    windows = part[:, : steps // length * length].reshape(runs, -1, length, records)
    once = windows.sum(axis=2) == 1
    expected = length * rate * (1.0 - rate) ** (length - 1)
    p = two_sided(int(once.sum()), once.size, expected)
    return (
        p,
        f"in {length} steps {once.mean():.4g} of the records take part exactly once where {expected:.4g} is expected",
    )


def _batch_sizes(part: np.ndarray, rate: float) -> _Result:
    """Steps with many of the followed records, and the largest batch: both follow from the binomial law of a batch."""
    records, sizes = part.shape[2], part.sum(axis=2).ravel()
    largest = int(sizes.max())
    # The largest of independent batches is at most m with probability F(m)^n.
    p = len(sizes) * float(stats.binom.logcdf(largest, records, rate))
    found = [(float(np.exp(p)), f"the largest of {len(sizes)} batches holds {largest} of the records followed")]
    for level in _CUTS:
        limit = int(stats.binom.ppf(level, records, rate))
        above, share = int((sizes > limit).sum()), float(stats.binom.sf(limit, records, rate))
        words = f"{above} of {len(sizes)} batches exceed {limit} records where {share * len(sizes):.3g} are expected"
        found.append((two_sided(above, len(sizes), share), words))
    return _least(found)


_OF_RECORDS: dict[str, Callable[[np.ndarray, float], _Result]] = {
    "same batch in every run": _every_batch,
    "rate of each record": _rate_of_each_record,
    "gaps": _gaps,
    "pairs of records": _pairs,
    "once per epoch": _epochs,
    "large batches": _batch_sizes,
}
"""Tests of who took part, (runs, steps, records), at the rate claimed: a p-value and the finding."""
NAMES = (_ONCE, *_OF_RECORDS, _NOISE)


def _noise_and_batches(noise: np.ndarray, part: np.ndarray) -> _Result:
    """Noise does not know who took part.

    Given the batches, the squared noise of one coordinate, summed over the steps with one record, is chi-square. Pairs
    of a record and a coordinate, all of them, and with ``_OFFSETS`` between them summed over the records; two-sided.
    """
    records = part.shape[2]
    rows, squares = part.reshape(-1, records).astype(np.float32), (noise.reshape(-1, records) ** 2).astype(np.float32)
    freedom = rows.sum(axis=0)[:, None]
    energy = rows.T @ squares
    # Wilson and Hilferty's cube root picks the pairs that are then tested exactly.
    score = np.cbrt(energy / np.maximum(freedom, 1.0)) - 1.0 + 2.0 / (9.0 * np.maximum(freedom, 1.0))
    score = np.where(freedom > 0, score * np.sqrt(np.maximum(freedom, 1.0)), 0.0)
    found = []
    for place in (int(score.argmin()), int(score.argmax())):
        one, other = np.unravel_index(place, score.shape)
        count, total = float(freedom[one, 0]), float(rows[:, one].astype(np.float64) @ squares[:, other])
        p = score.size * chi2_two_sided(total, count)
        size = np.sqrt(total / max(count, 1.0))
        words = f"where record {one} takes part, coordinate {other} has {size:.3g} times the noise"
        found.append((p, words))
    for offset in _OFFSETS[: max(1, records - 1)]:
        taking, beside = rows[:, : records - offset], squares[:, offset:]
        count, total = float(taking.sum()), float((taking.astype(np.float64) * beside).sum())
        size = np.sqrt(total / max(count, 1.0))
        words = f"{offset} coordinates after a record in the batch there is {size:.3g} times the noise"
        found.append((len(_OFFSETS) * chi2_two_sided(total, count), words))
    p, words = min(found)
    return 2.0 * p, words


def chi2_two_sided(energy: float, freedom: float) -> float:
    """The smaller tail of chi-square, doubled."""
    if freedom < 1.0:
        return 1.0
    return min(1.0, 2.0 * float(min(special.chdtr(freedom, energy), special.chdtrc(freedom, energy))))


def two_sided(hits: int, trials: int, rate: float) -> float:
    """The smaller binomial tail, doubled."""
    rate = min(rate, 1.0)
    return 2.0 * float(min(stats.binom.sf(hits - 1, trials, rate), stats.binom.cdf(hits, trials, rate)))

"""The mean of t independent log-normals of mean 1 by its Laplace transform: one epoch of random allocation, closely.

Errors are absolute, about 1e-13, and all of them are counted; where that is too much the grids of ``allocated_sum``
say more. docs/theory/sampling.md, section "From above and from below", has the proof.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from reticent.kernel.curves import LogErrors
from reticent.kernel.curves._logs import EPS, OVERFLOW, log_of
from reticent.kernel.curves.polygon import Polygon, polygon_above, polygon_through
from reticent.kernel.curves.sums import products, roundings
from reticent.pairs.log_normal import ROUNDINGS_OF_A_TERM, Decay, Line, Transform, line_of, transform

_MOST_FREQUENCIES = 2**18
_CHEAP, _WORK = 2**25, 2**27  # thresholds times frequencies, at most
_ROWS = 512  # thresholds at a time
LOWEST = 1e-18
"""What the copies a period apart may add."""
_SHORTEST, _LONGEST = 3.0, 40.0  # of the damping over a period
_NATS = 30.0  # by which log delta falls at the last threshold, on either side
_STRETCHES = -20.0, 0.0, 2.0, 5.0, 9.0, 13.0, 18.0, 24.0  # one after the other, where the tail is long
_ROOM, _MORE_ROOM = 2.0, 1.0 / 3.0  # nats beyond the last threshold up to where no copy disturbs; and per nat there
_CELL = 1e-7  # over which error rates are averaged, in units of the advantage
_LEFT_OUT = 46.0  # e^-46: what the frequencies left out add
_LEAST = 1e-60

PER_NAT = 340.0
"""Thresholds while delta falls by a factor e: chords between them add 1e-6 of it."""


class Stretch(NamedTuple):
    """Where the mean of log-normals is looked at.

    Attributes:
        thresholds: increasing.
        low: at most the first of them, and 1.
        high: above the last of them, and 1.
        excess: bound on E(R - high)_+.
    """

    thresholds: np.ndarray
    low: float
    high: float
    excess: float


class Period(NamedTuple):
    """What the sum over frequencies is made of.

    Attributes:
        bins: how many log-normals are in the mean.
        window: after which the sum repeats itself.
        damping: real part of the exponents, of the mean.
        frequencies: how many, that of 0 counted.
        aliases: bound on what the copies add to a mean, a false negative or a false positive rate.
        cut: log of a bound on the power of the transform beyond the last frequency, one factor left out.
        cell: over which error rates are averaged.
        origin: the log-normals are taken from here: from 1, or from 0 where exponents become large.
    """

    bins: int
    window: float
    damping: float
    frequencies: int
    aliases: float
    cut: float
    cell: float
    origin: float


def period_of(line: Line, bins: int, looked_at: Stretch, cell: float) -> Period | None:
    """The period for these thresholds; None where it needs too many frequencies.

    Args:
        bins: log-normals in the mean.
        looked_at: the thresholds.
        cell: over which error rates are averaged.
    """
    _, low, high, excess = looked_at
    window = 2.0 * (high - 1.0) + (1.0 - low)
    # P(R > y) and Q(R > y) for y >= low + window, which is further from high than high is from 1.
    tail = excess * (1.0 + 3.0 * high / (high - 1.0))
    damping = float(np.clip(np.log(tail / LOWEST), _SHORTEST, _LONGEST)) / window
    decay, pitch = Decay(line, bins), 2.0 * np.pi / window / bins
    wanted = -(_LEFT_OUT + np.log(1.0 + window / cell)) / (bins - 1)

    def enough(count: int) -> bool:
        return decay.beyond(damping / bins, count * pitch) <= wanted

    if not enough(_MOST_FREQUENCIES):
        return None
    few, many = 1, _MOST_FREQUENCIES
    while many - few > 1 + few // 32:
        middle = int(np.sqrt(few * many)) + 1
        few, many = (few, middle) if enough(middle) else (middle, many)
    # Below: u(y), P(R <= y), Q(R <= y) are at most E e^(q (y - R)) for 0 < y < 1, with q > damping.
    steeper = np.geomspace(2.0, 1e3, 60) * damping
    last = float(looked_at.thresholds[-1]) + cell
    left = bins * (decay.real(steeper / bins) + steeper / bins) + steeper * (last - 1.0)
    below = 2.0 * float(np.exp(min(np.min(left - (steeper - damping) * window), OVERFLOW)))
    aliases = tail / float(np.expm1(damping * window)) + below
    cut = decay.beyond(damping / bins, many * pitch) * (bins - 1) + damping / bins
    return Period(bins, window, damping, many + 1, aliases, cut, cell, float(many * pitch * line.least_angle < 4.0))


class Sums(NamedTuple):
    """Put E(k - R)_+ and both error rates at thresholds k, and bounds on the errors of all.

    Attributes:
        at: the thresholds.
        put, put_error: E(k - R)_+.
        absent, absent_error: the mean of P(R <= k) over the cell that begins at the threshold.
        present, present_error: the same of Q(R <= k), Q the law weighted by R.
    """

    at: np.ndarray
    put: np.ndarray
    put_error: np.ndarray
    absent: np.ndarray
    absent_error: np.ndarray
    present: np.ndarray
    present_error: np.ndarray


def sums_of(line: Line, period: Period, at: np.ndarray) -> Sums:
    """By Fourier series.

    Args:
        at: thresholds of the stretch that it was made for.
    """
    damping, window, cell = period.damping, period.window, period.cell
    pitch = 2.0 * np.pi / window
    places = damping + 1j * pitch * np.arange(period.frequencies)
    found = transform(line, damping / period.bins, pitch / period.bins, period.frequencies, period.origin)
    (absent, wrong), (present, worse) = _powers(found, period.bins)
    kernel = 1.0 / places**2
    rate = np.expm1(places * cell) / cell * kernel  # of the mean of a rate over a cell
    terms = np.stack([absent * kernel, absent * rate, present * rate])
    errors = np.stack([wrong * np.abs(kernel), wrong * np.abs(rate), worse * np.abs(rate)])
    growth = np.exp(damping * (at - period.origin)) / window
    values, off = _series(terms, errors, pitch, at - period.origin)
    # Frequencies left out: 1 / w^2 in the first, 3 / (cell w^2) in the others.
    cut = 2.0 * np.exp(period.cut - damping * (1.0 - period.origin)) / (pitch**2 * (period.frequencies - 1))
    once = np.expm1(damping * window)
    copies = (at - 1.0) / once + window * (1.0 + once) / once**2
    edge = period.aliases + 16.0 * EPS * (1.0 + 1.0 / once)
    off = growth * (off + cut * np.array([[1.0], [3.0 / cell], [3.0 / cell]])) + edge
    put, first, second = growth * values
    return Sums(
        at, put - copies, off[0] + 16.0 * EPS * np.abs(copies), first - 1.0 / once, off[1], second - 1.0 / once, off[2]
    )


def _series(terms: np.ndarray, errors: np.ndarray, pitch: float, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """2 Re sum of terms_n e^{i n pitch at}, the first one half, of each row; and what it is off by."""
    terms[:, 0] *= 0.5
    kinds, count = terms.shape
    fine = int(np.sqrt(kinds * count)) + 1
    coarse = -(-count // fine)
    table = np.zeros((kinds, coarse * fine), dtype=complex)
    table[:, :count] = terms
    angle, table = pitch * at, table.reshape(kinds * coarse, fine)
    total = np.empty((kinds, len(at)))
    for start in range(0, len(at), _ROWS):
        some = angle[start : start + _ROWS]
        inner = products(np.exp(1j * np.multiply.outer(some, np.arange(fine))), table).reshape(-1, kinds, coarse)
        outer = np.exp(1j * np.multiply.outer(some, fine * np.arange(coarse)))
        total[:, start : start + _ROWS] = 2.0 * np.einsum("akc,ac->ka", inner, outer).real
    size = np.abs(terms)
    off = size.sum(axis=1)[:, None] * (roundings(fine, 2) + 2.0 * coarse + ROUNDINGS_OF_A_TERM)
    off = off + 8.0 * np.multiply.outer(size @ np.arange(count), np.abs(angle))
    return total, 2.0 * errors.sum(axis=1)[:, None] + 2.0 * EPS * off


def _powers(found: Transform, bins: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """phi^t, and psi phi^(t-1), each with its error."""
    real, imaginary = found.less_one.real, found.less_one.imag
    square = 2.0 * real + real**2 + imaginary**2
    size = np.sqrt(np.maximum(1.0 + square, EPS**2))
    logs = np.where(np.abs(square) < 0.5, 0.5 * np.log1p(np.maximum(square, -0.5)), np.log(size))
    logs = logs + 1j * np.arctan2(imaginary, 1.0 + real)
    # The logarithm is off by a few roundings of what it is taken of, and of itself.
    own = 8.0 * EPS * (np.abs(logs) + (2.0 * np.abs(real) + real**2 + imaginary**2) / size**2)
    relative = np.log1p(found.error / size) + own
    for count, factor, wrong in ((bins, np.ones(1), np.zeros(1)), (bins - 1, found.weighted, found.weighted_error)):
        power = np.exp(count * logs)
        off = count * relative + 8.0 * EPS
        grown = np.where(off < 1.0, np.abs(power) * np.expm1(np.minimum(off, 1.0)), np.exp(count * logs.real + off))
        yield power * factor, grown * (np.abs(factor) + wrong) + np.abs(power) * wrong


class Deltas(NamedTuple):
    """Bounds on E(R - k)_+ and E(k - R)_+, of a mean R of 1.

    Attributes:
        places: increasing.
        calls, puts: the bounds there.
    """

    places: np.ndarray
    calls: np.ndarray
    puts: np.ndarray

    @property
    def advantage(self) -> float:
        """From above."""
        return float(np.interp(1.0, self.places, self.calls))

    def stretch(self, nats: np.ndarray) -> Stretch:
        """Where log delta is so much below that at 1.

        Args:
            nats: increasing; negative below 1.
        """
        above, below = self._falls(self.calls, 1.0), self._falls(self.puts, -1.0)
        thresholds = np.where(nats < 0.0, np.interp(-nats, *below), np.interp(nats, *above))
        if nats[0] <= 0.0 <= nats[-1]:
            thresholds = np.append(thresholds, 1.0)
        room = min((1.0 + _MORE_ROOM) * float(nats[-1]) + _ROOM, _NATS + 1.0)
        last = min(int(np.searchsorted(above[0], room)) + 1, len(above[0]) - 1)
        high = float(above[1][last])
        low = min(float(np.interp(_NATS, *below)), 1.0)
        # The bound of the place before: places and masses are known to far more digits than they lie apart.
        excess = float(np.interp(above[1][last - 1], self.places, self.calls))
        return Stretch(np.unique(thresholds[thresholds > 0.0]), low, high, excess)

    def _falls(self, deltas: np.ndarray, sign: float) -> tuple[np.ndarray, np.ndarray]:
        """(by how many nats delta is less than at 1, where), on one side of 1."""
        side = sign * (self.places - 1.0) > 0.0
        at, logs = self.places[side][:: int(sign)], np.log(np.maximum(deltas[side][:: int(sign)], _LEAST))
        falls = np.maximum.accumulate(np.append(0.0, np.log(self.advantage) - logs))
        return falls, np.append(1.0, at)


def resolved(deviation: float, bins: int, law: Deltas, per_nat: float = PER_NAT) -> tuple[Polygon, Polygon] | None:
    """Curves around that of the mean of log-normals, on the safe side and on the other; None where grids say as much.

    By RETICENT:allocation-enclosure.

    Args:
        bins: how many, at least 2.
        law: what is known of the mean.
        per_nat: thresholds while delta falls by a factor e.
    """
    line = line_of(deviation)
    if line is None or not law.advantage > 0.0:
        return None
    cell = _CELL * law.advantage

    def looked(ends: tuple[float, ...], allowed: float) -> Iterator[Sums]:
        """One stretch after the other, as far as the work allows: that is thresholds times frequencies."""
        for start, end in pairwise(ends):  # in nats by which log delta is below that at 1; negative below 1
            part = law.stretch(np.linspace(start, end, int(per_nat * (end - start)) + 2))
            period = period_of(line, bins, part, cell)
            if period is None or (allowed := allowed - len(part.thresholds) * period.frequencies) < 0:
                return
            yield sums_of(line, period, part.thresholds)

    with np.errstate(all="ignore"):  # what overflows is a bound that says nothing
        found = [*looked((-_NATS, _NATS), _CHEAP)] or [*looked(_STRETCHES, _WORK)]
        if not found:
            return None
        once = np.unique(np.concatenate([part.at for part in found]), return_index=True)[1]
        sums = Sums(*(np.concatenate(values)[once] for values in zip(*found, strict=True)))
        return _above(sums), tests_below(sums, cell)


def _above(sums: Sums) -> Polygon:
    """Every delta from above."""
    at, put = sums.at, sums.put + sums.put_error
    ahead, back = at >= 1.0, at < 1.0
    # A threshold that is off by a rounding moves delta by no more than that.
    call = put[ahead] + (1.0 - at[ahead]) + 8.0 * EPS * at[ahead]
    mirrored = (put[back] + 8.0 * EPS) / at[back]
    delta = np.clip(np.concatenate([mirrored, call]), _LEAST, 1.0)
    return polygon_above(np.where(at == 1.0, 0.0, np.log(at)), np.log(delta * (1.0 + 8.0 * EPS)))


def tests_below(sums: Sums, cell: float) -> Polygon:
    """Tests whose threshold is drawn from a cell; the same, used with such a probability that one rate is known."""
    at, put = sums.at, np.maximum(sums.put - sums.put_error - 8.0 * EPS, 0.0)
    low, high = sums.absent - sums.absent_error - EPS, sums.absent + sums.absent_error + EPS
    less, more = sums.present - sums.present_error - EPS, sums.present + sums.present_error + EPS
    fpr, tnr, fnr, tpr = 1.0 - low, low, more, 1.0 - more
    # Within a cell E(R - k)_+ falls by no more than the cell times P(R > k), and that is less than in the cell before.
    before = np.append(1.0, np.where(np.diff(at) > 2.0 * cell, np.minimum(fpr[:-1], 1.0), 1.0))
    call = np.maximum(put - (at - 1.0) - (cell + 8.0 * EPS) * before - 8.0 * EPS * at, 0.0)
    surely = np.maximum(1.0 - high, 0.0)
    power = (surely * at + call * surely / np.maximum(fpr, _LEAST)) * (1.0 - 8.0 * EPS)
    few = np.maximum(less, 0.0)
    right = (few + put * few / np.maximum(more, _LEAST)) / (at + cell) * (1.0 - 8.0 * EPS)
    ahead = at >= 1.0
    rates = [
        np.concatenate(pair)
        for pair in (
            (fpr, np.where(ahead, surely, 1.0 - right)),
            (tnr, np.where(ahead, 1.0 - surely, right)),
            (fnr, np.where(ahead, 1.0 - power, few)),
            (tpr, np.where(ahead, power, 1.0 - few)),
        )
    ]
    return polygon_through(LogErrors(*(log_of(np.clip(rate, _LEAST, 1.0)) for rate in rates)))

"""The best of several runs, from the curve of one run. docs/theory/selection.md proves it.

Let V and R be the probabilities of the outcomes of one run with the smallest privacy loss, under "absent" and under
"present", and let 0 <= v1 <= v2 <= 1 be places on V. The worst scores rank outcomes by how far they are from some
loss, to either side: what ranks below an outcome is an interval (v1, v2), and with F' of the number of runs

    delta(epsilon) = sup over falling v1(v2) of integral of (F'(R(v2) - R(v1)) dR(v2) - e^epsilon F'(v2 - v1) dv2)_+.

Both ends are dynamic programmes: from above on a tangent polygon of the run, from below on a chord polygon.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from reticent.kernel.curves import LogErrors, Mixture, TradeOff
from reticent.kernel.curves._logs import log1mexp, log_difference
from reticent.kernel.curves.polygon import Polygon, log_deltas, mirrored, polygon_above, polygon_through
from reticent.kernel.errors import UnsupportedError
from reticent.kernel.pairs.base import Composer, Pair
from reticent.kernel.pairs.curve import CurvePair
from reticent.kernel.pairs.part import Part
from reticent.kernel.stopping import checkpoint
from reticent.pairs.runs import Runs


@dataclass(frozen=True, slots=True)
class Accuracy:
    """What the curve of the best run may cost.

    Attributes:
        thresholds: privacy losses at which the curve of one run is taken.
        factor: log of the change of F' in a cell of outcomes, about.
        levels: probabilities at which cells may be split for it, at most.
        deepest: log of the delta of one run from which on losses are not told apart.
        epsilons: at which delta of the best run is found, at least.
        coarse: at which it is looked for where these are needed.
        chord: error of epsilon between two of these, in nats, beyond which there are more.
        paths: at how many of these scores are found that attain it, nearly.
        rounding: relative, of sums of positive terms.
        outside: relative, of the probability outside two places: where it is all but 1, what is inside is lost.
        least: mass of a cell whose own underflows, where more of it is the safe side.
    """

    thresholds: int = 301
    factor: float = 0.08
    levels: int = 200
    deepest: float = math.log(1e-18)
    epsilons: int = 121
    coarse: int = 21
    chord: float = 2e-2
    paths: int = 41
    rounding: float = 1e-9
    outside: float = 4e-15
    least: float = 1e-300


_ACCURACY = Accuracy()
_LESS, _MORE = 1.0 - _ACCURACY.outside, 1.0 + _ACCURACY.outside
_SCALES = np.geomspace(1e-6, 700.0, 1200)  # among which the largest loss that matters is looked for
_FLAT = 1e-2  # relative: a delta that falls no further
_BESIDE = 1e-9  # relative to the range of losses: as good as 0
_FURTHEST = 60.0  # in nats, beyond the losses of one run
_TOP = (-np.inf, 0.0, 0.0, -np.inf)
_Planes = Sequence[tuple[np.ndarray, np.ndarray]]
"""Of one cell, at its lower and at its upper end: bounds on what is gained and lost at each place v1 up to it."""


@dataclass(frozen=True)
class SelectedPair(Pair):
    """The best of several runs: who composes one run knows the curve of the best.

    Attributes:
        parts: the releases of one run.
        runs: how many runs there are.
        weaker: the parts are attained, and so shall be the curve: that of an attacker at most as strong.
    """

    parts: tuple[Part, ...]
    runs: Runs
    weaker: bool = False

    def composed(self, compose: Composer) -> Pair:
        return _best_of(self, compose)

    def quick_delta(self, compose: Composer, epsilon: float) -> float:
        """Of the best, one direction, without its curve."""
        run, ends = compose(self.parts, False)
        with np.errstate(all="ignore"):
            return math.exp(_Ahead(run, self.runs, ends).bounds(np.array([epsilon]))[0])


@dataclass(frozen=True)
class OneOfPairs(Pair):
    """Releases of one of several kinds, by a public draw: who composes each kind knows their mixture.

    Attributes:
        cases: the releases of each kind; none where nothing is known that is attained.
        weights: of the kinds, in proportion to their probabilities.
        weaker: the releases are attained, and so shall be the curve: that of an attacker at most as strong.
    """

    cases: tuple[tuple[Part, ...], ...]
    weights: tuple[int, ...]
    weaker: bool = False

    def composed(self, compose: Composer) -> Pair:
        return _one_of(self, compose)


@lru_cache(maxsize=64)
def _one_of(pair: OneOfPairs, compose: Composer) -> CurvePair:
    """The curve of a run whose kind is drawn and seen: at each loss the mean of all, by RETICENT:public-coin."""
    runs = [compose(parts, pair.weaker) for parts in pair.cases]
    ahead, back = (max(ends[way] for _, ends in runs) for way in (0, 1))
    shares = np.array(pair.weights, dtype=float)
    return CurvePair(Mixture([curve for curve, _ in runs], shares / shares.sum()), (ahead, back))


@lru_cache(maxsize=64)
def _best_of(pair: SelectedPair, compose: Composer) -> CurvePair:
    """The curve of the best of several runs, with its largest losses.

    By RETICENT:worst-order and PAPERNOT2022:Corollary 3.
    """
    if any(isinstance(part.pair, SelectedPair) for part in pair.parts):
        raise UnsupportedError("a selection among selections has no known curve")
    run, (ahead, back) = compose(pair.parts, pair.weaker)
    together = None if pair.runs.most is None else compose(pair.parts, False, pair.runs.most[0])[0]
    with np.errstate(all="ignore"):
        if pair.weaker:
            return CurvePair(_below(run, pair.runs, together))
        curve = _above(run, pair.runs, (ahead, back), together)
    return CurvePair(curve, (ahead + pair.runs.most_loss(ahead, back), back + pair.runs.most_loss(back, ahead)))


def _above(run: TradeOff, runs: Runs, ends: tuple[float, float], together: TradeOff | None) -> Polygon:
    """A curve of an attacker at least as strong as the one who sees the best run.

    Args:
        run: one of them.
        runs: how many there are.
        ends: the largest losses of one.
        together: of whoever sees all of them, were there as many as there can be; None where any number may be.
    """
    ahead = _Ahead(run, runs, ends, together).points()
    reverse = None if together is None else together.reversed
    back = ahead if run.reversed is run else _Ahead(run.reversed, runs, ends[::-1], reverse).points()
    return polygon_above(mirrored(-back[0], ahead[0]), mirrored(back[1], ahead[1]))


class _Ahead:
    """Bounds on delta of the best run, one direction."""

    def __init__(self, run: TradeOff, runs: Runs, ends: tuple[float, float], together: TradeOff | None = None) -> None:
        ahead, back = min(_settled(run), ends[0]), min(_settled(run.reversed), ends[1])
        losses = losses_between(back, ahead)
        rates = polygon_above(losses, log_deltas(run, losses)).vertices
        self._run, self._runs, self._cells = run, runs, _Cells.of(rates, runs)
        self._cost = min(runs.most_log_ratio(np.exp(rates.tnr), np.exp(rates.fnr)), runs.most_loss(*ends))
        self._planes, self._together = list(self._cells.planes(runs)), together
        self._furthest = ahead + min(self._cost, _FURTHEST) if together is None else _settled(together, -np.inf)

    def points(self) -> tuple[np.ndarray, np.ndarray]:
        """Epsilons from 0 to the last that matters, and logs of the bounds there."""
        wide = np.linspace(0.0, self._furthest, _ACCURACY.coarse)
        epsilons = _places(wide, self.bounds(wide))
        return epsilons, self.bounds(epsilons)

    def bounds(self, epsilons: np.ndarray) -> np.ndarray:
        """The integral with its best places, and never more than E K times delta of one run at epsilon - c; its log.

        The best tells no more than all of them together, were there as many as there can be.
        """
        found = np.log(np.minimum(self._cells.above(self._planes, np.exp(epsilons)) * (1.0 + _ACCURACY.rounding), 1.0))
        if math.isfinite(self._cost):
            found = np.minimum(found, math.log(self._runs.mean) + self._run.log_delta(epsilons - self._cost))
        if self._together is None or self._runs.most is None:
            return found
        return np.minimum(found, np.log(np.exp(self._together.log_delta(epsilons)) + self._runs.most[1]))


def _places(wide: np.ndarray, log_delta: np.ndarray) -> np.ndarray:
    """Where delta is found, from a look at ``wide`` even places: closer where it falls, none where it is flat.

    A chord over h nats at which log delta falls by s a nat errs by h^2 s / 8 in epsilon, about. Whole and half epsilons
    are among them: people ask for these.
    """
    ended = log_delta <= _ACCURACY.deepest
    end = int(np.argmax(ended)) if np.any(ended) else len(wide) - 1
    even = np.linspace(0.0, wide[end], _ACCURACY.epsilons)
    logs = np.maximum(log_delta, _ACCURACY.deepest)
    last = int(np.argmax(logs <= logs[-1] + _FLAT))
    found = [np.append(0.5 * np.arange(math.floor(2.0 * wide[last]) + 1), [wide[last], wide[-1]])]
    for low, high, fall in zip(wide[:last], wide[1 : last + 1], logs[:last] - logs[1 : last + 1], strict=True):
        count = 2.0 * math.ceil(math.sqrt(max(fall, 0.0) / (high - low) / (32.0 * _ACCURACY.chord)))
        if count * even[1] > 2.0:
            found.append(np.arange(math.ceil(low * count), math.floor(high * count) + 1) / count)
        else:
            found.append(even[(low <= even) & (even <= high)])
    return np.unique(np.concatenate(found))


def _below(run: TradeOff, runs: Runs, together: TradeOff | None) -> Polygon:
    """What some scores attain, in either direction; arguments as of ``_above``."""
    ahead = _attained(run, runs, together)
    back = ahead if run.reversed is run else _attained(run.reversed, runs, together)
    return polygon_through(LogErrors.joined(ahead, back.exchanged))


def _attained(run: TradeOff, runs: Runs, together: TradeOff | None) -> LogErrors:
    ahead, back = _settled(run), _settled(run.reversed)
    losses = np.linspace(-back, ahead, _ACCURACY.thresholds)
    cells = _Cells.of(polygon_through(run.errors(losses)).vertices, runs, _ACCURACY.least)
    most = ahead + runs.most_loss(ahead, back)
    near, far = min(most, _FURTHEST), min(most, _FURTHEST if together is None else _settled(together, -np.inf))
    epsilons = np.append(0.0, np.geomspace(1e-2 * near, near, _ACCURACY.paths))
    further = np.geomspace(near, far, _ACCURACY.paths // 2)[1:] if far > near else epsilons[:0]
    return cells.below(runs, np.exp(np.append(epsilons, further)))


def losses_between(back: float, ahead: float) -> np.ndarray:
    """From -back to ahead, with 0; a place beside 0 would make a slope of the rounding of two deltas."""
    even = np.linspace(-back, ahead, _ACCURACY.thresholds)
    return np.unique(np.append(even[np.abs(even) > _BESIDE * (back + ahead)], 0.0))


def _settled(curve: TradeOff, flat: float = _FLAT) -> float:
    """The threshold from which on delta is too small to matter, or falls no further; or the last that is looked at.

    Args:
        flat: by how much log delta may still fall from there on.
    """
    logs = curve.log_delta(_SCALES)
    settled = logs <= max(_ACCURACY.deepest, logs[-1] + flat)
    return float(_SCALES[int(np.argmax(settled)) if np.any(settled) else -1])


def slopes_gained(planes: _Planes, slopes: np.ndarray) -> int:
    """How many of the slopes, which grow, leave a gain above a loss at some place."""
    if any(np.any(loss <= 0.0) for _, loss in planes):
        return len(slopes)
    most = float(np.max([np.max(gain / loss) for gain, loss in planes]))  # what is no number counts as all slopes
    return int(np.searchsorted(slopes, most * (1.0 + _ACCURACY.rounding), side="right"))


def _levels(runs: Runs) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities up to 1/2 between which F' changes by about one factor, and the distance at each."""
    fine = np.concatenate([[0.0], np.geomspace(1e-9, 0.5, 2000)])
    first = runs.first(fine)
    speed = np.divide(runs.second(fine), first, out=np.zeros(len(fine)), where=first > 0.0)
    passed = np.concatenate([[0.0], np.cumsum(0.5 * (speed[1:] + speed[:-1]) * np.diff(fine))])
    count = min(_ACCURACY.levels, 1 + int(passed[-1] / _ACCURACY.factor))
    found = np.interp(np.linspace(0.0, passed[-1], count + 1), passed, fine)
    if passed[-1] == 0.0:
        return fine[:0], fine[:0]
    return found, np.diff(found, append=2.0 * found[-1] - found[-2])


@dataclass(frozen=True)
class _Cells:
    """Outcomes of one run in cells of equal privacy loss, by growing loss.

    Attributes:
        absent, present: probability below each end of a cell, shape (n + 1,).
        over_absent, over_present: and above it.
        mass_absent, mass_present: of each cell, shape (n,).
    """

    absent: np.ndarray
    over_absent: np.ndarray
    present: np.ndarray
    over_present: np.ndarray
    mass_absent: np.ndarray
    mass_present: np.ndarray

    @classmethod
    def of(cls, vertices: LogErrors, runs: Runs, least: float = 0.0) -> _Cells:
        """Those between the vertices of a polygon, split where F' changes within one: that changes nothing else.

        ``least``: the smallest mass of a cell that has one, under "absent".
        """
        fpr, tnr, fnr, tpr = (rate[::-1] for rate in vertices)
        if tpr[-1] > -np.inf:  # outcomes that "absent" excludes
            fpr, tnr, fnr, tpr = (np.append(rate, end) for rate, end in zip((fpr, tnr, fnr, tpr), _TOP, strict=True))
        logs = log_difference(fpr[:-1], fpr[1:], tnr[1:], tnr[:-1])
        masses = [
            np.where(logs > -np.inf, np.maximum(np.exp(logs), least), 0.0),
            np.exp(log_difference(tpr[:-1], tpr[1:], fnr[1:], fnr[:-1])),
        ]
        ends = [np.exp(rate) for rate in (tnr, fpr, fnr, tpr)]
        index = np.arange(len(tnr), dtype=float)
        outside, spacing = _levels(runs)
        inner = [index]
        for below, above, mass in ((ends[0], ends[1], masses[0]), (ends[2], ends[3], masses[1])):
            for place in (np.interp(outside, below, index), np.interp(outside, above[::-1], index[::-1])):
                inner.append(place[mass[np.minimum(place.astype(int), len(mass) - 1)] > spacing])
        places = np.unique(np.concatenate(inner))
        whole = np.minimum(places[:-1].astype(int), len(tnr) - 2)
        return cls(
            *(np.interp(places, index, end) for end in ends), *(mass[whole] * np.diff(places) for mass in masses)
        )

    def above(self, planes: Sequence[_Planes], slopes: np.ndarray) -> np.ndarray:
        """The integral at slopes e^epsilon along the best falling v1(v2), on the safe side.

        On a rectangle of places F' of what is inside is convex: at most the chord plane of its corners where it counts
        for the attacker, at least the tangent plane at its middle where it counts against (``planes``). What the rest
        of the path can gain, given the cell that v1 has reached, is known from behind; each end of a cell may use its
        own place.
        """
        count = len(self.mass_absent)
        rest, best = np.zeros((count, len(slopes))), np.zeros(len(slopes))  # rest: v1 in this cell or below
        space = np.empty((2, (count + 1) * len(slopes)))
        for cell in range(count - 1, -1, -1):
            some = slopes_gained(planes[cell], slopes)  # at steeper slopes this cell adds nothing
            value = space[0, : (cell + 2) * some].reshape(cell + 2, some)
            last = space[1, : (cell + 1) * some].reshape(cell + 1, some)
            rest, total = rest[: cell + 1], np.zeros((cell + 1, some))
            for gain, loss in planes[cell]:
                np.subtract(gain[:, None], np.multiply.outer(loss, slopes[:some], out=value), out=value)
                np.maximum(value, 0.0, out=value)
                np.add(value[1:], rest[:, :some], out=last)  # at the upper end of the cell that v1 is in
                value[:-1] += rest[:, :some]
                value[-1] += rest[cell, :some]
                reached = np.maximum.accumulate(value, axis=0, out=value)
                total += np.maximum(reached[:-1], last, out=last)
            np.multiply(total, 0.5, out=rest[:, :some])
            best = np.maximum(best, rest[-1])
            checkpoint()
        return best

    def planes(self, runs: Runs) -> Iterator[_Planes]:
        """Those of each cell."""
        return (tuple(self._planes(runs, cell)) for cell in range(len(self.mass_absent)))

    def _planes(self, runs: Runs, cell: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """For v2 at the lower and at the upper end of ``cell``: bounds at each place v1 up to it, shape (cell + 2,)."""
        half, own = 0.5 * self.mass_absent[: cell + 1], 0.5 * self.mass_absent[cell]
        middle = self.absent[: cell + 1] + half + 0.5 * (self.over_absent[cell] + self.over_absent[cell + 1])
        middle[cell] = 1.0 - own  # places in one cell form a triangle: its corners are inside 0 or all
        rise = runs.second(middle)
        level = runs.first(middle) - rise * middle * _ACCURACY.outside
        least = runs.first(np.append((self.absent[1 : cell + 1] + self.over_absent[cell]) * _MORE, 1.0))
        furthest = half + own
        furthest[cell] = own
        below_zero = level < rise * furthest * (1.0 - _ACCURACY.rounding)  # then the least value in place of the plane
        for upper in (0, 1):
            outside = (self.present[: cell + 2] + self.over_present[cell + upper]) * _LESS
            gain = runs.first(outside) * self.mass_present[cell]
            gain[-1] = runs.first(np.ones(1))[0] * self.mass_present[cell]
            shift = own if upper else -own
            low, high = half + shift, half - shift
            low[cell], high[cell] = shift, own
            at_low, at_high = (
                np.where(below_zero, least, plane) for plane in (level + rise * low, level - rise * high)
            )
            loss = np.minimum(np.append(at_low, np.inf), np.append(np.inf, at_high))
            yield gain, loss * self.mass_absent[cell]

    def below(self, runs: Runs, slopes: np.ndarray) -> LogErrors:
        """Errors of tests at slopes e^epsilon, each for the scores on this grid that are worst for its slope.

        F' is convex: its integral over a cell is at least the value at the middle, and at most the mean of the ends.
        """
        count, nodes = len(self.mass_absent), self.absent[:-1]
        middle = 0.5 * (self.over_present[:-1] + self.over_present[1:])
        gain = runs.first(np.add.outer(middle, self.present[:-1]) * _MORE) * self.mass_present[:, None]
        ends = runs.first(np.add.outer(self.over_absent, nodes) * _LESS)
        loss = 0.5 * (ends[:-1] + ends[1:]) * self.mass_absent[:, None]
        rest, chosen = np.zeros((len(slopes), count)), np.zeros((count, len(slopes), count), dtype=np.int16)
        worth = np.zeros((count, len(slopes)))
        for cell in range(count - 1, -1, -1):
            value = gain[cell, : cell + 1] - np.multiply.outer(slopes, loss[cell, : cell + 1]) + rest[:, : cell + 1]
            rest = np.maximum.accumulate(value, axis=1)
            places = np.where(value == rest, np.arange(cell + 1), 0)
            chosen[cell, :, : cell + 1] = np.maximum.accumulate(places, axis=1)
            worth[cell] = rest[:, -1]
            checkpoint()
        start = np.argmax(worth, axis=0)
        place, every = start.copy(), np.arange(len(slopes))
        false, true = np.zeros(len(slopes)), np.zeros(len(slopes))
        for cell in range(count):
            begun = start <= cell
            place = np.where(begun, chosen[cell, every, np.minimum(place, cell)], place)
            false += np.where(begun, loss[cell, np.minimum(place, cell)], 0.0)
            true += np.where(begun, gain[cell, np.minimum(place, cell)], 0.0)
        with np.errstate(divide="ignore"):
            fpr = np.log(np.minimum(false * (1.0 + _ACCURACY.rounding), 1.0))
            tpr = np.log(np.minimum(true * (1.0 - _ACCURACY.rounding), 1.0))
        return LogErrors(fpr=fpr, tnr=log1mexp(fpr), fnr=log1mexp(tpr), tpr=tpr)

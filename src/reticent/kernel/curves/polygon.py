"""Convex polygons as trade-off curves: the common form of everything that composition encloses.

Two builders, one for each side of the truth. ``polygon_above`` takes upper bounds on delta at some
thresholds and joins their tangents: an attacker at least as strong. ``polygon_through`` takes error
pairs that some test attains and joins them by chords: an attacker at most as strong. Either stays
on its side whichever of its lines or points are left out, so bounds need not be convex: what bends
the curve is left out, by pooling neighbours until the slopes fall.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np

from reticent.kernel.curves import GaussianTradeOff, LogErrors, TradeOff
from reticent.kernel.curves._logs import OVERFLOW, SMALL, log1mexp, log_difference, log_sub
from reticent.kernel.curves.piecewise import ALWAYS, NEVER, PolygonTradeOff
from reticent.kernel.curves.piecewise import Polygon as Polygon
from reticent.kernel.errors import NumericalError
from reticent.kernel.stopping import checkpoint

_MAX_PASSES = 60  # of chords over threshold 0
_SIZES = np.concatenate([np.geomspace(1e-9, 1e3, 2000), np.geomspace(1e3, 1e12, 1500)[1:]])
_SMOOTH = np.concatenate([-_SIZES, _SIZES])  # tangents of a smooth curve
FEW_BENDS = 40  # that are taken one by one
_SLACK = 1e-13  # relative, of a chord
_GAUSSIAN = 1e-9  # rounding of log delta of a Gaussian curve, with room
_CERTAIN = 1e-12  # of 1 - delta: what is less has lost its digits


class Sides(NamedTuple):
    """Two polygons around a curve, which is never below ``above`` and never above ``below`` as a trade-off curve.

    Attributes:
        above: of an attacker at least as strong: the safe side.
        below: of an attacker at most as strong.
    """

    above: Polygon
    below: Polygon


NO_RISK = Polygon(LogErrors.joined(NEVER, ALWAYS), np.zeros(1))
"""beta = 1 - alpha: nothing is learnt."""


def polygon_above(thresholds: np.ndarray, log_delta: np.ndarray, log_rest: np.ndarray | None = None) -> Polygon:
    """The tangent polygon on or below every curve whose delta obeys the bounds given.

    Delta is convex in e^l, so it obeys the lower convex hull of the bounds, and between two thresholds the
    chord of theirs.

    Args:
        thresholds: log likelihood ratios, strictly increasing, with 0 among them.
        log_delta: per threshold l, log of an upper bound on delta(l) where l >= 0, and on
            delta(-l) of the reversed experiment where l < 0. -inf where it is known to be 0; what is not a
            number counts as no bound.
        log_rest: log of 1 minus that bound, where it is known to more digits than ``log_delta`` tells.

    Raises:
        NumericalError: 0 is not among the thresholds.
    """
    checkpoint()
    log_rest = log1mexp(log_delta) if log_rest is None else log_rest
    zero = int(np.searchsorted(thresholds, 0.0))
    if zero == len(thresholds) or thresholds[zero] != 0.0:
        raise NumericalError("tangent polygon: 0 must be among the thresholds")
    unknown = np.isnan(log_delta) | np.isnan(log_rest)
    log_delta, log_rest = np.where(unknown, 0.0, log_delta), np.where(unknown, -np.inf, log_rest)
    right = _DeltaHull(thresholds[zero:], log_delta[zero:], log_rest[zero:])
    left = _DeltaHull(-thresholds[zero::-1], log_delta[zero::-1], log_rest[zero::-1])
    for _ in range(_MAX_PASSES):
        lower = right.chord_over_zero(left)
        if lower is None:
            break
        right, left = right.bounded_at_zero(*lower), left.bounded_at_zero(*lower)
    return _both_halves(right, left)


def symmetric_above(thresholds: np.ndarray, log_delta: np.ndarray) -> Polygon:
    """``polygon_above`` for a symmetric curve: the bounds at thresholds >= 0, the first of them 0, say everything.

    Args:
        thresholds: log likelihood ratios, increasing from 0, shape (n,).
        log_delta: natural logarithms of upper bounds on delta there.
    """
    return polygon_above(mirrored(-thresholds, thresholds), mirrored(log_delta, log_delta))


def gaussian_above(mu: float, places: np.ndarray) -> Polygon:
    """Above the Gaussian curve of ``mu``, by tangents.

    Args:
        mu: > 0.
        places: of the thresholds, in standard deviations from the mean loss; those below threshold 0 count as 0.
    """
    thresholds = np.unique(np.append(np.maximum(mu * (0.5 * mu + places), 0.0), 0.0))
    return symmetric_above(thresholds, np.minimum(GaussianTradeOff(mu).log_delta(thresholds) + _GAUSSIAN, 0.0))


def mirrored(back: np.ndarray, ahead: np.ndarray) -> np.ndarray:
    """``back`` the other way round and without its first entry, that of threshold 0; then ``ahead``.

    Args:
        back, ahead: shape (n,) and (m,).

    Returns:
        Shape (n - 1 + m,).
    """
    return np.concatenate([back[:0:-1], ahead])


class _DeltaHull:
    """Upper bounds on delta at thresholds 0 = l_0 < l_1 < ..., of which only the lower convex hull is kept."""

    def __init__(self, thresholds: np.ndarray, log_delta: np.ndarray, log_rest: np.ndarray) -> None:
        log_delta, log_rest = np.minimum.accumulate(log_delta), np.maximum.accumulate(log_rest)
        self.thresholds, self.log_delta, self.log_rest = thresholds, log_delta, log_rest
        self._run, self._drop = self._increments()
        while len(kept := convex_chain(self._run, self._drop)) < len(self.thresholds):
            self.thresholds, self.log_delta, self.log_rest = (
                x[kept] for x in (self.thresholds, self.log_delta, self.log_rest)
            )
            self._run, self._drop = self._increments()

    def _increments(self) -> tuple[np.ndarray, np.ndarray]:
        """log of how far e^l rises, and of how far delta falls, from each threshold to the next."""
        log_delta, log_rest = self.log_delta, self.log_rest
        run = self.thresholds[1:] + log1mexp(-np.diff(self.thresholds))
        return run, log_difference(log_delta[:-1], log_delta[1:], log_rest[1:], log_rest[:-1])

    @property
    def log_fpr(self) -> np.ndarray:
        """log of minus the slope of delta as a function of e^l, between neighbours; then 0, where it is flat."""
        return np.append(self._drop - self._run, -np.inf)

    def vertices(self) -> LogErrors:
        """Where neighbouring tangents meet; then alpha = 0."""
        fpr, lines = self.log_fpr, self.thresholds
        with np.errstate(invalid="ignore"):
            cost = np.where(np.isneginf(fpr), -np.inf, lines + fpr)
        small = self.log_delta < SMALL
        tpr = np.where(small, np.minimum(np.logaddexp(self.log_delta, cost), 0.0), 0.0)
        fnr = np.where(small, log1mexp(tpr), log_sub(self.log_rest, cost))
        fpr = np.minimum(fpr, 0.0)
        return LogErrors(fpr=fpr, tnr=log1mexp(fpr), fnr=fnr, tpr=np.where(small, tpr, log1mexp(fnr)))

    def chord_over_zero(self, other: _DeltaHull) -> tuple[float, float] | None:
        """(log delta, log rest) at threshold 0 on the chord between both halves; None where 0 is on the hull."""
        if len(self.thresholds) < 2 or len(other.thresholds) < 2:
            return None
        high, far = math.expm1(min(self.thresholds[1], OVERFLOW)), math.exp(-other.thresholds[1])
        low = -math.expm1(-other.thresholds[1])
        share = low / (low + high)  # of the chord's end above 0
        ahead, behind = math.exp(self.log_delta[1]), low + far * math.exp(other.log_delta[1])
        delta = (share * ahead + (1.0 - share) * behind) * (1.0 + _SLACK)
        rest = share * math.exp(self.log_rest[1]) + (1.0 - share) * far * math.exp(other.log_rest[1])
        rest *= 1.0 - _SLACK
        certain = delta >= 1.0 - _CERTAIN  # then only the rest tells
        if not (rest > math.exp(self.log_rest[0]) if certain else 0.0 < delta < math.exp(self.log_delta[0])):
            return None
        return (min(math.log(delta), 0.0), math.log(rest)) if rest > 0.0 else None

    def bounded_at_zero(self, log_delta: float, log_rest: float) -> _DeltaHull:
        """The same with another bound at threshold 0."""
        return _DeltaHull(
            self.thresholds, np.append(log_delta, self.log_delta[1:]), np.append(log_rest, self.log_rest[1:])
        )


def _both_halves(right: _DeltaHull, left: _DeltaHull) -> Polygon:
    """Both halves as one polygon: they share the tangent at threshold 0.

    Vertices that rounding has exchanged take the better of both rates: the safe side.
    """
    joined = LogErrors.joined(right.vertices().at(slice(None, None, -1)), left.vertices().exchanged)
    fpr, tnr = np.minimum.accumulate(joined.fpr[::-1])[::-1], np.maximum.accumulate(joined.tnr[::-1])[::-1]
    fnr, tpr = np.minimum.accumulate(joined.fnr), np.maximum.accumulate(joined.tpr)
    slopes = mirrored(-left.thresholds, right.thresholds)[::-1]
    return Polygon(LogErrors(fpr=fpr, tnr=tnr, fnr=fnr, tpr=tpr), slopes)


def polygon_through(points: LogErrors) -> Polygon:
    """The lower convex chain through attainable error pairs and the two trivial tests.

    Args:
        points: upper bounds on the errors (and lower bounds on the complements) of some tests, in any order;
            those that are not numbers are left out.
    """
    checkpoint()
    fpr, tnr, fnr, tpr = points.at(~np.any(np.isnan(points), axis=0))
    fpr, tnr = _complementary(fpr, tnr)
    tpr, fnr = _complementary(tpr, fnr)
    ordered = LogErrors(fpr, tnr, fnr, tpr).at(np.lexsort((fpr, -tnr)))
    vertices = _undominated(LogErrors.joined(NEVER, ordered, ALWAYS))
    while True:
        run, rise = _increments(vertices)
        kept = convex_chain(run, rise)
        if len(kept) == len(vertices.fpr):
            return Polygon(vertices, rise - run)
        vertices = vertices.at(kept)


def _complementary(rate: np.ndarray, rest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """log of rates and of their complements: the smaller of both is known to all digits, and decides."""
    few = rate < -1.0
    other = log1mexp(np.where(few, rate, rest))
    return np.where(few, rate, other), np.where(few, other, rest)


def _undominated(vertices: LogErrors) -> LogErrors:
    """The vertices that no other one beats in both rates; input ordered by increasing false positive rate."""
    least, most = np.minimum.accumulate(vertices.fnr), np.maximum.accumulate(vertices.tpr)
    better = (vertices.fnr[1:] < least[:-1]) | (vertices.tpr[1:] > most[:-1])
    vertices = vertices.at(np.append(True, better))
    last = (vertices.tnr[:-1] > vertices.tnr[1:]) | (vertices.fpr[:-1] < vertices.fpr[1:])
    return vertices.at(np.append(last, True))


def _increments(vertices: LogErrors) -> tuple[np.ndarray, np.ndarray]:
    """log of how far the false positives rise, and the false negatives fall, from each vertex to the next."""
    a, b = vertices.at(slice(-1)), vertices.at(slice(1, None))
    return log_difference(b.fpr, a.fpr, a.tnr, b.tnr), log_difference(b.tpr, a.tpr, a.fnr, b.fnr)


def convex_chain(log_run: np.ndarray, log_rise: np.ndarray) -> np.ndarray:
    """Indices of the points that remain when neighbouring increments are pooled until all slopes fall.

    Pool adjacent violators: the kept points are the vertices of the convex hull of all points, on the side
    where slopes rise / run fall; a flat end (rise 0) is left out. Sums of positive terms only, so nothing
    cancels.

    Args:
        log_run, log_rise: logarithms of the increments >= 0 from each point to the next, shape (n - 1,).
    """
    first, run, rise = np.arange(len(log_run)), log_run, log_rise
    while True:
        slopes = rise - run
        falls = np.append(True, slopes[1:] < slopes[:-1])
        bends = len(falls) - int(np.count_nonzero(falls))
        if bends <= FEW_BENDS:
            break
        starts = np.flatnonzero(falls)
        first, run, rise = first[starts], np.logaddexp.reduceat(run, starts), np.logaddexp.reduceat(rise, starts)
    if bends:
        first, slopes = _pooled(first, run, rise, np.flatnonzero(~falls))
    points = np.append(first, len(log_run))
    return points[: len(points) - int(np.sum(np.isneginf(slopes)))]


def _pooled(first: np.ndarray, run: np.ndarray, rise: np.ndarray, bends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(first point, slope) of what remains when few bends are left: each is pooled with its neighbours alone."""
    before, after = np.arange(-1, len(run) - 1), np.arange(1, len(run) + 1)
    runs, rises, gone = run.copy(), rise.copy(), np.zeros(len(run), dtype=bool)

    def slope_of(block: int) -> float:
        return float(rises[block]) - float(runs[block])

    for bend in bends.tolist():  # few of many: no list is made of the others
        block = int(before[bend]) if gone[bend] else bend
        while gone[block]:
            block = int(before[block])
        while True:
            slope, left, right = slope_of(block), int(before[block]), int(after[block])
            if left >= 0 and slope >= slope_of(left):
                block, right = left, block
            elif not (right < len(runs) and slope_of(right) >= slope):
                break
            for logs in (runs, rises):
                logs[block] = _log_sum(float(logs[block]), float(logs[right]))
            gone[right], after[block] = True, after[right]
            before[right] = block
            if after[block] < len(runs):
                before[after[block]] = block
    kept = np.flatnonzero(~gone)
    return first[kept], rises[kept] - runs[kept]


def _log_sum(a: float, b: float) -> float:
    """log(e^a + e^b)."""
    top, other = (a, b) if a >= b else (b, a)
    return top if other == -math.inf else top + math.log1p(math.exp(other - top))


def hull(curves: Sequence[Polygon]) -> Polygon:
    """Lower convex envelope of polygons through attained error pairs: the hull of all their vertices.

    Args:
        curves: polygons that some tests attain, at least one.
    """
    return polygon_through(LogErrors.joined(*(curve.vertices for curve in curves)))


def safest(curves: Sequence[TradeOff]) -> Polygon:
    """The curve that obeys the larger of several upper bounds on delta: for what may be any of them.

    Args:
        curves: pessimistic ones, of which any may be the true one; at least one.
    """
    return _obeying(curves, np.maximum)


def strictest(curves: Sequence[TradeOff]) -> Polygon:
    """The curve that obeys the smaller of several upper bounds on delta: for what obeys all of them.

    Args:
        curves: pessimistic ones that all hold; at least one.
    """
    return _obeying(curves, np.minimum)


def _obeying(curves: Sequence[TradeOff], pick: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Polygon:
    polygons = [curve for curve in curves if isinstance(curve, PolygonTradeOff)]
    thresholds = _slopes_of(polygons, _SMOOTH if len(polygons) < len(curves) else None)
    return polygon_above(thresholds, reduce(pick, (log_deltas(curve, thresholds) for curve in curves)))


def log_deltas(curve: TradeOff, thresholds: np.ndarray) -> np.ndarray:
    """What ``polygon_above`` asks for: log delta at thresholds >= 0, that of the reversed experiment below; at most 0.

    Args:
        curve: any curve.
        thresholds: log likelihood ratios, increasing.
    """
    forward, back = thresholds[thresholds >= 0.0], -thresholds[thresholds < 0.0]
    return np.minimum(np.concatenate([curve.reversed.log_delta(back), curve.log_delta(forward)]), 0.0)


def _slopes_of(curves: Sequence[PolygonTradeOff], others: np.ndarray | None = None) -> np.ndarray:
    slopes = np.unique(
        np.concatenate([[0.0], np.zeros(0) if others is None else others, *(curve.log_slopes for curve in curves)])
    )
    return slopes[np.isfinite(slopes)]

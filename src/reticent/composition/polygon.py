"""Convex polygons as trade-off curves: the common form of everything that composition encloses.

Two builders, one for each side of the truth. ``polygon_above`` takes upper bounds on delta at some
thresholds and joins their tangents: an attacker at least as strong. ``polygon_through`` takes error
pairs that some test attains and joins them by chords: an attacker at most as strong. Either stays
on its side whichever of its lines or points are left out, so what rounding bends is dropped.
"""

from __future__ import annotations

import numpy as np

from reticent.errors import NumericalError
from reticent.tradeoff import LogErrors
from reticent.tradeoff._logs import log1mexp, log_sub
from reticent.tradeoff.piecewise import PolygonTradeOff

_MAX_PASSES = 200
_BEND = 1e-3  # by how much delta may fall over what is dropped next to threshold 0


class Polygon(PolygonTradeOff):
    """A trade-off curve with finitely many vertices, closed at alpha = 1, with its exact inverse.

    Attributes:
        vertices: the four log rates of each vertex, ordered by increasing false positive rate.
        log_slopes: log of minus the slope of each edge, strictly decreasing, one fewer than vertices.
    """

    __slots__ = ()

    def __init__(self, vertices: LogErrors, log_slopes: np.ndarray) -> None:
        if vertices.tnr[-1] > -np.inf:
            end = (0.0, -np.inf, -np.inf, 0.0)
            vertices = LogErrors(*(np.append(rate, value) for rate, value in zip(vertices, end, strict=True)))
            log_slopes = np.append(log_slopes, -np.inf)
        super().__init__(vertices, log_slopes)

    @property
    def reversed(self) -> Polygon:
        fpr, tnr, fnr, tpr = (rate[::-1] for rate in self.vertices)
        return Polygon(LogErrors(fpr=fnr, tnr=tpr, fnr=fpr, tpr=tnr), -self.log_slopes[::-1])

    def __repr__(self) -> str:
        return f"Polygon(<{len(self.log_slopes)} edges>)"


def polygon_above(thresholds: np.ndarray, log_delta: np.ndarray, log_rest: np.ndarray) -> Polygon:
    """The tangent polygon on or below every curve whose delta obeys the bounds given.

    Args:
        thresholds: log likelihood ratios, strictly increasing, with 0 among them.
        log_delta: per threshold l, log of an upper bound on delta(l) where l >= 0, and on
            delta(-l) of the reversed experiment where l < 0.
        log_rest: log of 1 minus that bound, given apart so that it keeps its relative accuracy.

    Raises:
        NumericalError: the bounds contradict each other at threshold 0.
    """
    zero = int(np.searchsorted(thresholds, 0.0))
    if zero == len(thresholds) or thresholds[zero] != 0.0:
        raise NumericalError("tangent polygon: 0 must be among the thresholds")
    sides = [(x[zero:], x[zero::-1]) for x in (thresholds, log_delta, log_rest)]
    halves = [(side[0], side[1], side[2]) for side in zip(*sides, strict=True)]
    halves[1] = (-halves[1][0], *halves[1][1:])
    for attempt in range(_MAX_PASSES):
        right, left = (_half(*half) for half in halves)
        joined = _joined(right, left)
        if joined is not None:
            return joined
        # Rounding bends the curve at 0: the nearest tangents of the steeper half go.
        steeper = 0 if right[0].fpr[0] >= left[0].fpr[0] else 1
        kept = np.append(0, np.arange(2 + attempt, len(halves[steeper][0])))
        dropped = halves[steeper][1][: len(halves[steeper][0]) - len(kept) + 1]
        if len(kept) < 2 or np.exp(dropped[0]) - np.exp(dropped[-1]) > _BEND:
            break
        halves[steeper] = tuple(x[kept] for x in halves[steeper])
    raise NumericalError("tangent polygon: the bounds on both sides of threshold 0 contradict each other")


_Half = tuple[LogErrors, np.ndarray]


def _joined(right: _Half, left: _Half) -> Polygon | None:
    """Both halves as one polygon, None where they do not meet in a convex curve."""
    fpr = np.concatenate([right[0].fpr[::-1], left[0].fnr])
    tnr = np.concatenate([right[0].tnr[::-1], left[0].tpr])
    fnr = np.concatenate([right[0].fnr[::-1], left[0].fpr])
    tpr = np.concatenate([right[0].tpr[::-1], left[0].tnr])
    if not (np.all(fpr[1:] >= fpr[:-1]) and np.all(fnr[1:] <= fnr[:-1])):
        return None
    return Polygon(LogErrors(fpr=fpr, tnr=tnr, fnr=fnr, tpr=tpr), np.concatenate([right[1][::-1], -left[1][1:]]))


def polygon_through(points: LogErrors) -> Polygon:
    """The lower convex chain through attainable error pairs and the two trivial tests.

    Args:
        points: upper bounds on the errors (and lower bounds on the complements) of some tests, in
            order of increasing false positive rate.
    """
    none, sure = np.array([-np.inf]), np.array([0.0])
    ends = (LogErrors(none, sure, sure, none), LogErrors(sure, none, none, sure))
    vertices = LogErrors(*(np.concatenate([ends[0][k], points[k], ends[1][k]]) for k in range(4)))
    vertices = _records(vertices)
    for _ in range(_MAX_PASSES):
        slopes = _edge_slopes(vertices)
        bent = np.append(False, ~(slopes[1:] < slopes[:-1]))
        if not np.any(bent):
            return Polygon(vertices, slopes)
        keep = np.append(~_thinned(bent), True) & _wrapped(vertices, int(np.argmax(bent)) - 1)
        keep = keep[::-1]
        turned = LogErrors(*(vertices[k][::-1] for k in (2, 3, 0, 1)))
        keep &= _wrapped(turned, int(np.argmax(bent[::-1])))
        vertices = LogErrors(*(rate[keep[::-1]] for rate in vertices))
    raise NumericalError("attained error pairs: no convex chain")


def _wrapped(vertices: LogErrors, start: int) -> np.ndarray:
    """False for the vertices that the steepest chord from vertex ``start`` to a later one passes."""
    ahead = LogErrors(*(rate[start + 1 :] for rate in vertices))
    here = LogErrors(*(rate[start] for rate in vertices))
    slopes = _chord(here, ahead)
    keep = np.ones(len(vertices.fpr), dtype=bool)
    steepest = len(slopes) - 1 - int(np.argmax(slopes[::-1]))
    keep[start + 1 : start + 1 + steepest] = False
    return keep


def hull(curves: list[Polygon]) -> Polygon:
    """Lower convex envelope of polygons: the vertices that lead at some threshold.

    The envelope of convex curves is the hull of all their vertices; a vertex is on it if its delta is
    the largest at some edge slope of any of the curves (between slopes the lead is decided at the ends,
    because a difference of delta functions is concave in e^l on one vertex of one of them).
    """
    slopes = np.unique(np.concatenate([np.append(curve.log_slopes, 0.0) for curve in curves]))
    slopes = slopes[np.isfinite(slopes)]
    rates = [[curve.errors(slopes), curve.errors(np.nextafter(slopes, -np.inf))] for curve in curves]
    excess = np.array([_support(slopes, pair[0]) for pair in rates])
    lead = np.argmax(excess, axis=0)
    first, second = (LogErrors(*(np.choose(lead, [r[s][k] for r in rates]) for k in range(4))) for s in (0, 1))
    merged = LogErrors(*(np.stack([a[::-1], b[::-1]], axis=1).ravel() for a, b in zip(first, second, strict=True)))
    return polygon_through(merged)


def _support(slopes: np.ndarray, rates: LogErrors) -> np.ndarray:
    """What decides which curve leads: log delta above 0, log of the reversed delta below."""
    above = log_sub(rates.tpr, slopes + rates.fpr)
    below = log_sub(rates.tnr, rates.fnr - slopes)
    return np.where(slopes >= 0, above, below)


def _records(vertices: LogErrors) -> LogErrors:
    """The vertices that no other one beats in both rates; input ordered by increasing rates."""
    past = np.append(False, ~_above(vertices.tpr, vertices.fnr))
    vertices = LogErrors(*(rate[~past] for rate in vertices))
    past = np.append(~_above(-vertices.fpr[::-1], -vertices.tnr[::-1])[::-1], False)
    return LogErrors(*(rate[~past] for rate in vertices))


def _above(rate: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Whether an entry after the first exceeds all before it, by ``rate`` or by its complement."""
    more = rate[1:] > np.maximum.accumulate(rate)[:-1]
    return more | (rest[1:] < np.minimum.accumulate(rest)[:-1])


def _half(thresholds: np.ndarray, log_delta: np.ndarray, log_rest: np.ndarray) -> tuple[LogErrors, np.ndarray]:
    """Vertices where neighbouring tangents meet, for thresholds 0 = l_0 < l_1 < ...; then alpha = 0.

    A tangent left out because the bounds are not convex there costs tightness, never the side: delta is
    convex in e^l, so it stays below the chord of upper bounds.
    """
    keep = np.append(
        True, (np.diff(np.minimum.accumulate(log_delta)) < 0.0) | (np.diff(np.maximum.accumulate(log_rest)) > 0.0)
    )
    keep &= np.isfinite(log_delta) | (thresholds == 0.0)
    thresholds, log_delta, log_rest = thresholds[keep], log_delta[keep], log_rest[keep]
    for attempt in range(_MAX_PASSES + 1):
        fpr = _drops(thresholds, log_delta, log_rest)
        bent = np.append(np.append(False, ~(fpr[1:] < fpr[:-1])), np.isneginf(fpr[-1:]))
        if not np.any(bent):
            break
        keep = ~_thinned(bent)
        first = int(np.argmax(bent))
        if attempt >= _MAX_PASSES // 8:
            keep &= _passed(thresholds, log_delta, first - 1)
        if attempt == _MAX_PASSES - 1:
            keep[first:] = False
        thresholds, log_delta, log_rest = thresholds[keep], log_delta[keep], log_rest[keep]
    lines = thresholds[: len(fpr)]
    small = log_delta[:-1] < -0.7
    tpr = np.where(small, np.logaddexp(log_delta[:-1], lines + fpr), 0.0)
    fnr = np.where(small, log1mexp(np.minimum(tpr, 0.0)), log_sub(log_rest[:-1], lines + fpr))
    tpr = np.where(small, np.minimum(tpr, 0.0), log1mexp(fnr))
    fpr, tpr, fnr = np.append(fpr, -np.inf), np.append(tpr, log_delta[-1]), np.append(fnr, log_rest[-1])
    return LogErrors(fpr=fpr, tnr=log1mexp(np.minimum(fpr, 0.0)), fnr=fnr, tpr=tpr), thresholds


def _passed(thresholds: np.ndarray, log_delta: np.ndarray, start: int) -> np.ndarray:
    """False for the tangents between ``start`` and the one that the steepest chord from there reaches."""
    ahead = thresholds[start + 1 :]
    run = thresholds[start] + np.log(np.expm1(np.minimum(ahead - thresholds[start], 700.0)))
    steepest = int(np.argmax(log_sub(log_delta[start], log_delta[start + 1 :]) - run))
    keep = np.ones(len(thresholds), dtype=bool)
    keep[start + 1 : start + 1 + steepest] = False
    return keep


def _drops(thresholds: np.ndarray, log_delta: np.ndarray, log_rest: np.ndarray) -> np.ndarray:
    """log of minus the slope of delta as a function of e^l between neighbouring thresholds."""
    run = thresholds[:-1] + np.log(np.expm1(np.minimum(np.diff(thresholds), 700.0)))
    small = log_delta[:-1] < -0.7
    drop = np.where(small, log_sub(log_delta[:-1], log_delta[1:]), log_sub(log_rest[1:], log_rest[:-1]))
    return drop - run


def _edge_slopes(vertices: LogErrors) -> np.ndarray:
    here, following = (LogErrors(*(rate[cut] for rate in vertices)) for cut in (slice(-1), slice(1, None)))
    return _chord(here, following)


def _chord(a: LogErrors, b: LogErrors) -> np.ndarray:
    """log of minus the slope from ``a`` to ``b``, the latter with the larger false positive rate."""
    run = np.where(b.fpr < -0.7, log_sub(b.fpr, a.fpr), log_sub(a.tnr, b.tnr))
    rise = np.where(b.tpr < -0.7, log_sub(b.tpr, a.tpr), log_sub(a.fnr, b.fnr))
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(run), np.inf, rise - run)


def _thinned(flags: np.ndarray) -> np.ndarray:
    """Of each run of flagged neighbours every other one, so that one pass does not drop too much."""
    index = np.flatnonzero(flags)
    if len(index) == 0:
        return flags
    starts = np.append(True, np.diff(index) > 1)
    position = np.arange(len(index)) - np.maximum.accumulate(np.where(starts, np.arange(len(index)), 0))
    out = np.zeros_like(flags)
    out[index[position % 2 == 0]] = True
    return out

"""Upper bounds on delta that need not be convex, made into one curve; and the better of two such curves."""

from __future__ import annotations

import math

import numpy as np

from reticent.composition.polygon import Polygon, polygon_above
from reticent.tradeoff._logs import log1mexp
from reticent.tradeoff.piecewise import PolygonTradeOff

_MAX_PASSES = 60
_SLACK = 1e-13


def stricter(one: Polygon, other: PolygonTradeOff) -> Polygon:
    """The curve that both upper bounds on delta leave: no safer than either claims, and obeying both."""
    slopes = np.concatenate([one.log_slopes, other.log_slopes, [0.0]])
    ratio = np.unique(np.clip(slopes[np.isfinite(slopes)], -300.0, 300.0))
    forward, back = np.maximum(ratio, 0.0), np.maximum(-ratio, 0.0)
    log_delta = np.where(
        ratio >= 0.0,
        np.minimum(one.log_delta(forward), other.log_delta(forward)),
        np.minimum(one.reversed.log_delta(back), other.reversed.log_delta(back)),
    )
    return convex_above(ratio, log_delta)


def convex_above(ratio: np.ndarray, log_delta: np.ndarray) -> Polygon:
    """The tangent polygon of upper bounds that need not be convex: the truth is, so it obeys their hull."""
    log_delta = np.clip(log_delta, -690.0, 0.0)
    zero = int(np.searchsorted(ratio, 0.0))
    for _ in range(_MAX_PASSES):
        right = zero + _hull_members(ratio[zero:], log_delta[zero:])
        left = zero - _hull_members(-ratio[zero::-1], log_delta[zero::-1])
        if len(left) < 2 or len(right) < 2:
            break
        chord = _log_chord(ratio, log_delta, int(left[1]), int(right[1])) + _SLACK
        if chord >= log_delta[zero]:
            break
        log_delta[zero] = chord
    left, right = _meeting(left, right, ratio, log_delta)
    chosen = np.concatenate([left[:0:-1], right])
    return polygon_above(ratio[chosen], log_delta[chosen], log1mexp(log_delta[chosen]))


def _log_chord(ratio: np.ndarray, log_delta: np.ndarray, left: int, right: int) -> float:
    """log of delta at threshold 0 on the chord between a threshold below and one above: delta is convex."""
    low, high = -math.expm1(float(ratio[left])), math.expm1(float(ratio[right]))
    before = low + (1.0 - low) * math.exp(float(log_delta[left]))
    return math.log((before * high + math.exp(float(log_delta[right])) * low) / (low + high))


def _meeting(left: np.ndarray, right: np.ndarray, ratio: np.ndarray, log_delta: np.ndarray) -> tuple[np.ndarray, ...]:
    """Both halves without the neighbours of threshold 0 that would bend the curve there; dropping is safe.

    Convexity at 0 means that the false positives of the right half and the false negatives of the left
    one add up to at most 1 - delta(0).
    """
    rest = -math.expm1(float(log_delta[right[0]]))
    while len(left) > 2 and len(right) > 2:
        fpr = math.exp(_log_slope(ratio, log_delta, int(right[0]), int(right[1])))
        fnr = math.exp(_log_slope(-ratio, log_delta, int(left[0]), int(left[1])))
        if fpr + fnr < rest * (1.0 - 1e-9):
            break
        if fpr > fnr:
            right = np.delete(right, 1)
        else:
            left = np.delete(left, 1)
    return left, right


def _hull_members(size: np.ndarray, log_delta: np.ndarray) -> np.ndarray:
    """Indices of the lower convex hull of the points (e^size, delta), size increasing from 0."""
    chain, slopes = [0], [math.inf]
    for k in range(1, len(size)):
        if log_delta[k] >= log_delta[chain[-1]]:
            continue
        slope = _log_slope(size, log_delta, chain[-1], k)
        while slope >= slopes[-1]:
            chain.pop()
            slopes.pop()
            slope = _log_slope(size, log_delta, chain[-1], k)
        chain.append(k)
        slopes.append(slope)
    return np.array(chain)


def _log_slope(size: np.ndarray, log_delta: np.ndarray, j: int, k: int) -> float:
    """log of minus the slope between points j < k of (e^size, delta), delta falling."""
    drop = float(log_delta[j]) + math.log(-math.expm1(float(log_delta[k] - log_delta[j])))
    return drop - float(size[j]) - math.log(math.expm1(float(size[k] - size[j])))

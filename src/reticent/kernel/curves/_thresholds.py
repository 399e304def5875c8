"""Which threshold has a given false positive rate: a bracketed search, vectorised, safe on jumps; and plain halving."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from reticent.kernel.curves._logs import HUGE, LOG_HALF, log1mexp

_LARGEST = 2.0**60
"""Thresholds, in nats, beyond which nobody looks."""
_ROUNDING = 1e-15
"""Relative error of log alpha at which a threshold meets its goal."""
_WIDENINGS, _STEPS = 16, 600
"""At most, by factors of 16 and of the search."""
_NARROW = 1e-11
"""Difference of log alpha across the bracket below which a straight segment is exact to rounding."""

_Rates = Callable[[np.ndarray], tuple[np.ndarray, ...]]
"""From thresholds to rates, the logs of alpha and of its complement first."""

Ends = np.ndarray | float


def halved(before: Callable[[Any], Any], low: Ends, high: Ends, times: int) -> tuple[np.ndarray, np.ndarray]:
    """Both ends after this many halvings: the edge, up to which ``before`` holds, stays between them.

    Args:
        before: whether a point lies before the edge; vectorised where the ends are arrays.
        low, high: of one shape.
        times: how often.
    """
    for _ in range(times):
        middle = 0.5 * (low + high)
        here = before(middle)
        low, high = np.where(here, middle, low), np.where(here, high, middle)
    return np.asarray(low), np.asarray(high)


class _Bracket:
    """Thresholds on both sides of the goal, and by how much log alpha misses it there."""

    def __init__(self, rates: _Rates, log_alpha: np.ndarray) -> None:
        self.rates, self.log_alpha = rates, log_alpha
        self.log_rest, self.upper = log1mexp(log_alpha), log_alpha > LOG_HALF
        self.tolerance = _ROUNDING * np.maximum(1.0, np.abs(np.minimum(log_alpha, self.log_rest)))
        self.low, self.high = np.full(log_alpha.shape, -1.0), np.full(log_alpha.shape, 1.0)
        everything = np.arange(log_alpha.size)
        self.miss_low, self.miss_high = self.miss(self.low, everything), self.miss(self.high, everything)

    def miss(self, ratio: np.ndarray, index: np.ndarray) -> np.ndarray:
        """log alpha(ratio) - goal, by the complement where alpha > 1/2; decreasing in the ratio."""
        fpr, tnr = self.rates(ratio)[:2]
        with np.errstate(invalid="ignore"):
            value = np.where(self.upper[index], self.log_rest[index] - tnr, fpr - self.log_alpha[index])
        return np.where(np.isnan(value), 0.0, np.clip(value, -HUGE, HUGE))

    def enclose(self) -> None:
        """Grow until the goal is inside, or as far as the curve goes."""
        for _ in range(_WIDENINGS):
            down = np.flatnonzero((self.miss_low < 0) & (self.low > -_LARGEST))
            up = np.flatnonzero((self.miss_high > 0) & (self.high < _LARGEST))
            if not (down.size or up.size):
                break
            self.high[down], self.miss_high[down] = self.low[down], self.miss_low[down]
            self.low[up], self.miss_low[up] = self.high[up], self.miss_high[up]
            self.low[down], self.high[up] = 16.0 * self.low[down], 16.0 * self.high[up]
            self.miss_low[down], self.miss_high[up] = self.miss(self.low[down], down), self.miss(self.high[up], up)
        # The curve ends before alpha: an atom at plus or minus infinity.
        beyond, before = self.miss_high > 0, self.miss_low < 0
        self.low[beyond], self.high[before] = self.high[beyond], self.low[before]

    def narrow(self, steps: int) -> None:
        """Regula falsi with halved weights (Illinois), so many steps at most; every fourth halves the digits left."""
        weight_low, weight_high = self.miss_low.copy(), self.miss_high.copy()
        last = np.zeros(self.low.shape)
        index = np.flatnonzero(self.low < self.high)
        for k in range(steps):
            low, high = self.low[index], self.high[index]
            halve = k == 0 or k % 4 == 3
            trial = _middle(low, high) if halve else _secant(low, high, weight_low[index], weight_high[index])
            wide = self.miss_low[index] - self.miss_high[index] > _NARROW
            inside = wide & (trial > low) & (trial < high)
            index, trial = index[inside], trial[inside]
            if not index.size:
                return
            miss = self.miss(trial, index)
            met = np.abs(miss) <= self.tolerance[index]
            above, below = index[(miss >= 0) | met], index[(miss < 0) | met]
            weight_high[above] *= np.where(last[above] == 1, 0.5, 1.0)
            weight_low[below] *= np.where(last[below] == -1, 0.5, 1.0)
            for chosen, mask, ends, misses, weights in (
                (above, (miss >= 0) | met, self.low, self.miss_low, weight_low),
                (below, (miss < 0) | met, self.high, self.miss_high, weight_high),
            ):
                ends[chosen], misses[chosen], weights[chosen] = trial[mask], miss[mask], miss[mask]
            last[below], last[above] = -1.0, 1.0


def adjacent_thresholds(rates: _Rates, log_alpha: np.ndarray, steps: int = _STEPS) -> tuple[np.ndarray, np.ndarray]:
    """Thresholds ``low <= high`` with alpha(low) >= alpha >= alpha(high), close enough for a segment.

    Jumps of alpha (atoms of the likelihood ratio) are found to the last bit; where alpha is
    continuous the search stops once a straight segment between both is exact to rounding.

    Args:
        rates: log alpha and log(1 - alpha) at a threshold; more may follow.
        log_alpha: goals, any shape; at 0 and -inf the thresholds are -inf and +inf.
        steps: of the search; few find jumps less closely.

    Returns:
        ``low`` and ``high``, equal where a threshold meets the goal or the curve ends before it.
    """
    flat = log_alpha.ravel()
    low = np.where(flat == 0.0, -np.inf, np.inf)
    high = low.copy()
    proper = (flat < 0.0) & (flat > -np.inf)
    if np.any(proper):
        bracket = _Bracket(rates, flat[proper])
        bracket.enclose()
        bracket.narrow(steps)
        low[proper], high[proper] = bracket.low, bracket.high
    return low.reshape(log_alpha.shape), high.reshape(log_alpha.shape)


def _middle(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """A point between that halves the number of binary digits left, whatever the scale."""
    small, large = np.minimum(np.abs(low), np.abs(high)), np.maximum(np.abs(low), np.abs(high))
    geometric = np.sqrt(large) * np.sqrt(np.maximum(small, 1e-8 * large))
    scaled = np.where(high > 0, geometric, -geometric)
    straddles = (low < 0) & (high > 0)
    return np.where(straddles, 0.0, np.where(large > 4 * small, scaled, 0.5 * (low + high)))


def _secant(low: np.ndarray, high: np.ndarray, f_low: np.ndarray, f_high: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        point = low + (high - low) * (f_low / (f_low - f_high))
    return np.where((point > low) & (point < high), point, 0.5 * (low + high))

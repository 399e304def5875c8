"""What shifted copies of (A, B) add to the trapezoid sums of ``transform``.

By Poisson summation the sums equal the payoff summed over copies of (A, B), moved by multiples of the two periods. Each
copy adds something >= 0, which Chernoff bounds. docs/theory/relaxed/sign.md derives the bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

LESS = 0.1  # multiple of the line at which copies up in B are bounded
_ABOVE = np.array([LESS])
_BESIDE_EXPONENTS = np.array([0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0])  # of Chernoff bounds, over the deviation of A
_BESIDE_TILTS = np.geomspace(0.1, 40.0, 30)  # of A in these bounds, in the same units
_BELOW = np.array([1.5, 2.0, 3.0, 4.0, 6.0, 10.0])  # exponents of Chernoff bounds on copies down in B, over the line
_LARGEST_EXPONENT = 600.0  # of what is only bounded: more counts as infinite
_Cumulant = Callable[[float, float], float]


class Bound(NamedTuple):
    """``factor`` times e^(``level`` + ``slope`` l) at the threshold l; what cannot be computed bounds nothing."""

    slope: float
    level: float
    factor: float


Kinds = Sequence[Sequence[Bound]]
"""Bounds on what copies beside (in A alone), above and below (in B) add to P(log LR <= l)."""


def kinds_of(cumulant: _Cumulant, scale: float, line: float, period: float, width: float) -> Kinds:
    """The bounds of one plan.

    Args:
        cumulant: log E_P e^{s B + w A} at real s and w.
        scale: standard deviation of A.
        line: -Re s, > 0.
        period, width: distances between copies in B and in A.
    """
    return [_beside(cumulant, scale, width), *(_in_b(cumulant, line, period, width, at) for at in (_ABOVE, _BELOW))]


def most_of(kinds: Kinds, thresholds: np.ndarray) -> np.ndarray:
    """What all copies add at most, at each of ``thresholds``: of each kind the least bound counts."""
    return sum((_least(kind, thresholds) for kind in kinds), np.zeros_like(thresholds))


def _beside(cumulant: _Cumulant, scale: float, width: float) -> list[Bound]:
    """Copies in A alone: A itself beyond half the width, or a copy of the centre that reaches back."""
    bounds = []
    for theta in (_BESIDE_EXPONENTS / scale).tolist():
        back = _spread(theta) * math.exp(-0.5 * theta * width) / -math.expm1(-theta * width)
        reach = min(cumulant(-theta, t) - 0.5 * t * width for t in (_BESIDE_TILTS / scale).tolist())
        far, near = (float(_exp(x)) for x in (reach, cumulant(-theta, 0.0)))
        bounds.append(Bound(theta, 0.0, 2.0 * copies_at_most(theta, width) * far + back * near))
    return bounds


def _in_b(cumulant: _Cumulant, line: float, period: float, width: float, shares: np.ndarray) -> list[Bound]:
    """Copies in B alone: those up are each smaller by e^{-line period}, those down larger by it and further out.

    Chernoff at ``shares`` of the line: below 1 for copies up, above 1 for copies down.
    """
    thetas = (line * shares).tolist()
    fences = [copies_at_most(theta, width) * _geometric(abs(theta - line) * period) for theta in thetas]
    return [Bound(theta, cumulant(-theta, 0.0), fence) for theta, fence in zip(thetas, fences, strict=True)]


@np.errstate(invalid="ignore")
def _least(bounds: Sequence[Bound], thresholds: np.ndarray) -> np.ndarray:
    """The smallest bound at each threshold; infinity times 0 bounds nothing."""
    best = np.full_like(thresholds, np.inf)
    for bound in bounds:
        best = np.fmin(best, _exp(bound.level + bound.slope * thresholds) * bound.factor)
    return best


def copies_at_most(theta: float, width: float) -> float:
    """Above sup over x of sum over k of cosh^-theta(x + k width): by geometric sums, or by the peak and the integral.

    The integral is sqrt(pi) Gamma(theta/2) / Gamma(theta/2 + 1/2), and this ratio at most sqrt(x + 1/2) / x at
    x = theta/2 (Wendel's inequality).

    Args:
        theta: exponent, > 0.
        width: distance between two copies, > 0.
    """
    integral = math.sqrt(0.5 * math.pi * (theta + 1.0)) / (0.5 * theta)
    return min(_spread(theta) / -math.expm1(-theta * width), (1.0 + 1e-9) * (1.0 + integral / width))


def _spread(theta: float) -> float:
    """2^(1 + theta), or infinite."""
    return 2.0 ** (1.0 + theta) if theta < 1000.0 else math.inf


def _exp(exponent: ArrayLike) -> np.ndarray:
    """e^exponent, or infinite."""
    known = np.asarray(exponent, dtype=float)
    return np.where(known > _LARGEST_EXPONENT, np.inf, np.exp(np.minimum(known, _LARGEST_EXPONENT)))


def _geometric(exponent: float) -> float:
    """Sum over k >= 1 of e^{-k exponent}."""
    return math.exp(-exponent) / -math.expm1(-exponent)

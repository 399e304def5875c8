"""Tails of a log likelihood ratio from its cumulant function, by a contour through the saddle point.

For L = log dQ/dP let ``Lambda(s) = log E_P[e^(s L)]``, so ``Lambda(0) = Lambda(1) = 0``. Then

    P(L > l) = 1/(2 pi i) int e^(Lambda(s) - s l) / s ds            over Re s = c > 0,
    Q(L > l) = e^l/(2 pi i) int e^(Lambda(s) - s l) / (s - 1) ds    over Re s = c > 1,

and minus the complement on the other side of each pole: one contour gives all four rates. The trapezoid
rule converges geometrically, and the exponent at the real axis is factored out, so logarithms stay
accurate in the far tails.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from reticent.tradeoff import LogErrors, TradeOff
from reticent.tradeoff._logs import log1mexp

_SPACING = 0.05
_COARSE = np.arange(0.0, 46.0)
_FAR = 1e12


class LogRatioLaw(ABC):
    """The law of a log likelihood ratio through its cumulant function, analytic on ``low < Re s < high``.

    Attributes:
        low: left end of the strip, below 0.
        high: right end, above 1; may be infinite.
        growth_rate: rate of growth of the cumulant function for large ``|s|``.
        bounded: True if ``growth_rate`` is the largest value of L.
    """

    low: float
    high: float
    growth_rate: float
    bounded: bool

    @abstractmethod
    def cumulant(self, s: np.ndarray) -> np.ndarray:
        """Lambda at complex ``s``."""

    @abstractmethod
    def slopes(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """First and second derivative of Lambda at real ``s``."""


class ContourTradeOff(TradeOff):
    """A curve whose log likelihood ratio has a known cumulant function, its law ``_law``."""

    _law: LogRatioLaw

    def errors(self, log_ratio: ArrayLike) -> LogErrors:
        return log_errors(self._law, np.asarray(log_ratio, dtype=float))


def log_errors(law: LogRatioLaw, log_ratio: np.ndarray) -> LogErrors:
    """All four log rates at thresholds ``log_ratio`` (any shape), about 1e-12 relative."""
    ratio = np.asarray(log_ratio, dtype=float)
    if ratio.size == 0:
        return LogErrors(ratio, ratio, ratio, ratio)
    flat = ratio.reshape(-1)
    above = np.isposinf(flat) | (flat >= law.growth_rate if law.bounded else False)
    below = np.isneginf(flat)
    rates = _finite(law, np.where(above | below, 0.0, flat))
    ends = ((-np.inf, 0.0), (0.0, -np.inf), (0.0, -np.inf), (-np.inf, 0.0))
    return LogErrors(
        *(
            np.where(above, high, np.where(below, low, rate)).reshape(ratio.shape)
            for rate, (high, low) in zip(rates, ends, strict=True)
        )
    )


def _finite(law: LogRatioLaw, l: np.ndarray) -> LogErrors:  # noqa: E741
    saddle = _saddle(law, l)
    centre, scale = _contour(law, saddle)
    lean = -0.5 * np.sign(law.growth_rate - l)
    reach = _reach(law, l, centre, scale, lean)
    u = np.arange(0.0, reach + _SPACING, _SPACING)
    s, velocity = _path(centre, scale, lean, u)
    base = np.real(law.cumulant(centre.astype(complex))) - centre * l
    with np.errstate(under="ignore"):
        value = np.exp(law.cumulant(s) - s * l[:, None] - base[:, None]) * velocity
    value[:, 0] *= 0.5
    at_zero = _log_integral(value / s) + base
    at_one = _log_integral(value / (s - 1.0)) + base + l
    at_zero, at_one = np.minimum(at_zero, 0.0), np.minimum(at_one, 0.0)
    right_of_zero, right_of_one = centre > 0.0, centre > 1.0
    return LogErrors(
        fpr=np.where(right_of_zero, at_zero, log1mexp(at_zero)),
        tnr=np.where(right_of_zero, log1mexp(at_zero), at_zero),
        fnr=np.where(right_of_one, log1mexp(at_one), at_one),
        tpr=np.where(right_of_one, at_one, log1mexp(at_one)),
    )


def _log_integral(value: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(np.abs(_SPACING / np.pi * np.sum(value.imag, axis=1)))


def _path(centre: np.ndarray, scale: np.ndarray, lean: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The contour at parameters ``u`` and its derivative; it leans to where the integrand decays."""
    c, b, k = centre[:, None], scale[:, None], lean[:, None]
    return c + b * (1j * np.sinh(u) + k * (np.cosh(u) - 1.0)), b * (1j * np.cosh(u) + k * np.sinh(u))


def _reach(law: LogRatioLaw, l: np.ndarray, centre: np.ndarray, scale: np.ndarray, lean: np.ndarray) -> float:  # noqa: E741
    """Where the integrand has fallen below 1e-19 of its largest value, for all thresholds."""
    s, velocity = _path(centre, scale, lean, _COARSE)
    with np.errstate(divide="ignore"):
        size = np.real(law.cumulant(s) - s * l[:, None]) + np.log(np.abs(velocity / s))
    alive = np.any(size > size[:, :1] - 44.0, axis=0)
    return float(_COARSE[min(int(np.flatnonzero(alive)[-1]) + 1, len(_COARSE) - 1)])


def _saddle(law: LogRatioLaw, l: np.ndarray) -> np.ndarray:  # noqa: E741
    """Root of Lambda'(s) = l by bisection; where it leaves the strip, a point near its end."""
    low = np.full(l.shape, max(law.low, -_FAR))
    high = np.full(l.shape, min(law.high, _FAR))
    if np.isinf(law.high):
        high = np.full(l.shape, 2.0)
        for _ in range(40):
            high = np.where((law.slopes(high)[0] < l) & (high < _FAR), 2.0 * high, high)
    for _ in range(60):
        middle = 0.5 * (low + high)
        below = law.slopes(middle)[0] < l
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return 0.5 * (low + high)


def _contour(law: LogRatioLaw, saddle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the contour crosses the real axis, clear of both poles, and its length scale."""
    width = 1.0 / np.sqrt(law.slopes(saddle)[1])
    room = min(-law.low, law.high - 1.0)
    clear = np.minimum(0.7 * width, 0.5 * room)
    squeezed = clear > 0.25
    inner = np.where(squeezed, np.where(saddle < 0.5, -clear, 1.0 + clear), np.clip(saddle, clear, 1.0 - clear))
    outer = np.where(saddle < 0.0, np.minimum(saddle, -clear), np.maximum(saddle, 1.0 + clear))
    centre = np.where((saddle > 0.0) & (saddle < 1.0), inner, outer)
    edge = np.minimum(centre - law.low, law.high - centre)
    pole = np.minimum(np.abs(centre), np.abs(centre - 1.0))
    return centre, np.minimum(np.minimum(width, pole / 0.7), 0.7 * edge)

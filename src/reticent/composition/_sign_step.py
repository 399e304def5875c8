"""One step of the common-sign adversary: its losses on quadrature nodes, and how fast its transform decays.

Notation of ``_sign_spectrum``; docs/relaxed-dpsgd.md derives the bound of ``Law.sup_outside``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from reticent.errors import NumericalError

_MOST_NODES = 4_000_000
REACH = 9.5
_MAX_CELLS = 600_000
_MAX_WORK = 2e8  # cells times nodes of one proof: about a fifth of a second
_SLACK = 1e-5  # error of moduli on coarse nodes


class Step(NamedTuple):
    """Quadrature nodes y >= 0 of one step: weights under P (both signs of y), and the losses a and b."""

    weight: np.ndarray
    a: np.ndarray
    b: np.ndarray


def losses(y: np.ndarray, rate: float, slope: float) -> tuple[np.ndarray, np.ndarray]:
    """(a, b) of one step at real or complex ``y``; slope = 1/noise."""
    up = _log_mixture(slope * y - 0.5 * slope**2, rate)
    down = _log_mixture(-slope * y - 0.5 * slope**2, rate)
    return 0.5 * (up - down), 0.5 * (up + down)


def nodes(rate: float, slope: float, spacing: float, reach: float = REACH) -> Step:
    """Trapezoid rule on y >= 0 with both signs folded together, to ``reach`` beyond twice the slope.

    Raises:
        NumericalError: too little noise for any number of nodes that fits.
    """
    count = (reach + 2.0 * slope) / spacing
    if not count < _MOST_NODES:
        raise NumericalError(f"common-sign composition: {count:.3g} nodes would be needed")
    y = np.arange(math.ceil(count) + 1) * spacing
    weight = np.exp(-0.5 * y * y) * (2.0 * spacing / math.sqrt(2.0 * math.pi))
    weight[0] *= 0.5
    return Step(weight, *losses(y, rate, slope))


def log_moment(step: Step, s: float, w: float) -> float:
    """log E_P e^{s b + w a} of one step, real arguments."""
    top = s * step.b + abs(w) * np.abs(step.a)
    shift = float(np.max(top + np.log(np.maximum(step.weight, 1e-320))))
    terms = step.weight * np.exp(top - shift) * 0.5 * (1.0 + np.exp(-2.0 * abs(w) * np.abs(step.a)))
    return shift + math.log(float(np.sum(terms)))


class Law(NamedTuple):
    """One step under a tilted probability on y >= 0 and its mirror: moments, and the nodes."""

    even: np.ndarray
    odd: np.ndarray
    a: np.ndarray
    b: np.ndarray
    covariance: np.ndarray
    fourth: tuple[float, float]
    absolute: tuple[float, float]

    @classmethod
    def tilted(cls, step: Step, line: float, lift: float) -> Law:
        base = step.weight * np.exp((line + lift) * step.b)
        even, odd = base * np.cosh(lift * step.a), base * np.sinh(lift * step.a)
        total = even.sum()
        even, odd = even / total, odd / total
        mean_a, mean_b = float(odd @ step.a), float(even @ step.b)
        b = step.b - mean_b
        up, down = 0.5 * (even + odd), 0.5 * (even - odd)
        x, y = step.a - mean_a, -step.a - mean_a
        var_a, var_b = float(up @ x**2 + down @ y**2), float(even @ b**2)
        cov = float((up * x + down * y) @ b)
        fourth = float(up @ x**4 + down @ y**4), float(even @ b**4)
        absolute = float(even @ np.abs(b)), float(up @ np.abs(x) + down @ np.abs(y))
        return cls(even, odd, step.a, b, np.array([[var_b, cov], [cov, var_a]]), fourth, absolute)

    def sup_outside(self, box: tuple[float, float], ends: tuple[float, float], steps: int) -> float:
        """Over [0, ends] without the box: the largest |E e^{i(t b + w a)}|^steps, by cells."""
        spread = max(self.absolute[0], 1e-150), self.absolute[1]
        widest = 12.0 if steps < 1000 else 30.0
        nets = [_net(end, 0.02 / sd, widest) for end, sd in zip(ends, spread, strict=True)]
        cells = len(nets[0]) * len(nets[1])
        if cells > _MAX_CELLS or cells * len(self.a) > _MAX_WORK:
            return 1.0
        t_low, t_high, w_low, w_high = nets[0][:-1], nets[0][1:], nets[1][:-1], nets[1][1:]
        keep = (t_high[:, None] > box[0]) | (w_high[None, :] > box[1])
        slack = 0.5 * ((t_high - t_low) * spread[0])[:, None] + 0.5 * ((w_high - w_low) * spread[1])[None, :]
        worst = 0.0
        for sign in (1.0, -1.0) if np.any(self.odd) else (1.0,):
            near = self._quartic(t_low, t_high, w_low, w_high, sign)
            far = (self.moduli(0.5 * (t_low + t_high), sign * 0.5 * (w_low + w_high)) + slack + _SLACK) ** 2
            worst = max(worst, float(np.max(np.where(keep, np.minimum(near, far), 0.0))))
        return math.exp(min(0.5 * steps * math.log(max(worst, 1e-300)), 0.0))

    def _quartic(
        self, t_low: np.ndarray, t_high: np.ndarray, w_low: np.ndarray, w_high: np.ndarray, sign: float
    ) -> np.ndarray:
        """1 - v + u bounded over each cell: v from below by its low corner, u from above by its high corner."""
        vb, va, cov = self.covariance[0, 0], self.covariance[1, 1], sign * self.covariance[0, 1]
        low = vb * t_low[:, None] ** 2 + va * w_low[None, :] ** 2
        low = low + 2.0 * (cov * t_low[:, None] * w_low[None, :] if cov > 0 else cov * np.outer(t_high, w_high))
        high = (np.sqrt(vb) * t_high[:, None] + np.sqrt(va) * w_high[None, :]) ** 2
        # Minkowski in L4: E (t b + w a)^4 <= (t |b|_4 + w |a|_4)^4.
        fourth = (self.fourth[1] ** 0.25 * t_high[:, None] + self.fourth[0] ** 0.25 * w_high[None, :]) ** 4
        return 1.0 - low + (2.0 * fourth + 6.0 * high**2) / 24.0

    def moduli(self, t: np.ndarray, w: np.ndarray) -> np.ndarray:
        """|E e^{i(t b + w a)}| on the grid ``t`` x ``w``."""
        phase, angle = np.outer(t, self.b), np.outer(self.a, w)
        cosines = np.cos(angle)
        real, imag = (np.cos(phase) * self.even) @ cosines, (np.sin(phase) * self.even) @ cosines
        if np.any(self.odd):
            sines = np.sin(angle)
            real, imag = real - (np.sin(phase) * self.odd) @ sines, imag + (np.cos(phase) * self.odd) @ sines
        return np.hypot(real, imag)


def _net(end: float, first: float, widest: float) -> np.ndarray:
    """0 < ... < end with steps of ``first`` that grow by 6 % up to ``widest`` times that."""
    points, width = [0.0], first
    while points[-1] < end and len(points) < _MAX_CELLS:
        points.append(points[-1] + width)
        width = min(width * 1.06, widest * first)
    return np.array(points)


def _log_mixture(exponent: np.ndarray, rate: float) -> np.ndarray:
    """log(1 - p + p e^y); exponents of DP-SGD steps stay far below overflow for the noise admitted here."""
    with np.errstate(over="ignore"):
        return np.log1p(rate * np.expm1(exponent))

"""How fast the transform of one sign step decays: a bound on its largest modulus outside a box of frequencies."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from reticent.composition.sign.step import Nodes

_MOST_CELLS = 600_000
_MOST_WORK = 2e8  # cells times nodes of one proof: about a fifth of a second
_SLACK = 1e-5  # error of moduli on coarse nodes


class TiltedLaw(NamedTuple):
    """One step under a tilted probability. Pairs are in the order of the frequencies: of b, then of a.

    Attributes:
        even, odd: masses on y >= 0 of both signs of y together, and their difference.
        a, b: the losses there.
        variance, covariance: of b and of a, and between them.
        fourth, absolute: central fourth moments; mean absolute deviations.
    """

    even: np.ndarray
    odd: np.ndarray
    a: np.ndarray
    b: np.ndarray
    variance: tuple[float, float]
    covariance: float
    fourth: tuple[float, float]
    absolute: tuple[float, float]

    @classmethod
    def of(cls, nodes: Nodes, line: float, lift: float) -> TiltedLaw:
        """Under e^{line b + lift (a + b)} times "absent"; ``lift`` 1 is "present with +"."""
        base = nodes.weight * np.exp((line + lift) * nodes.b)
        even, odd = base * np.cosh(lift * nodes.a), base * np.sinh(lift * nodes.a)
        total = even.sum()
        even, odd = even / total, odd / total
        mean_a, b = float(odd @ nodes.a), nodes.b - float(even @ nodes.b)
        up, down = 0.5 * (even + odd), 0.5 * (even - odd)
        x, y = nodes.a - mean_a, -nodes.a - mean_a
        variance = float(even @ b**2), float(up @ x**2 + down @ y**2)
        fourth = float(even @ b**4), float(up @ x**4 + down @ y**4)
        absolute = float(even @ np.abs(b)), float(up @ np.abs(x) + down @ np.abs(y))
        return cls(even, odd, nodes.a, b, variance, float((up * x + down * y) @ b), fourth, absolute)

    def largest_outside(self, box: tuple[float, float], ends: tuple[float, float], steps: int) -> float:
        """Bound on |E e^{i(t b + w a)}|^steps over [0, ends] without ``box``; 1 where a proof would take too long.

        Near the origin by |E e^{iX}|^2 <= 1 - var X + (2 mu_4 + 6 var^2)/24 (cos x <= 1 - x^2/2 + x^4/24 for the
        symmetrised X); further out on a net of points, between which the modulus moves by at most the distance.
        """
        spread = max(self.absolute[0], 1e-150), self.absolute[1]
        widest = 12.0 if steps < 1000 else 30.0
        nets = [_net(end, 0.02 / size, widest) for end, size in zip(ends, spread, strict=True)]
        cells = len(nets[0]) * len(nets[1])
        if cells > _MOST_CELLS or cells * len(self.a) > _MOST_WORK:
            return 1.0
        t_low, t_high, w_low, w_high = nets[0][:-1], nets[0][1:], nets[1][:-1], nets[1][1:]
        keep = (t_high[:, None] > box[0]) | (w_high[None, :] > box[1])
        slack = 0.5 * ((t_high - t_low) * spread[0])[:, None] + 0.5 * ((w_high - w_low) * spread[1])[None, :]
        worst = 0.0
        for sign in (1.0, -1.0) if np.any(self.odd) else (1.0,):
            near = self._near(t_low, t_high, w_low, w_high, sign)
            far = (self.moduli(0.5 * (t_low + t_high), sign * 0.5 * (w_low + w_high)) + slack + _SLACK) ** 2
            worst = max(worst, float(np.max(np.where(keep, np.minimum(near, far), 0.0))))
        return math.exp(min(0.5 * steps * math.log(max(worst, 1e-300)), 0.0))

    def _near(
        self, t_low: np.ndarray, t_high: np.ndarray, w_low: np.ndarray, w_high: np.ndarray, sign: float
    ) -> np.ndarray:
        """1 - var + (2 mu_4 + 6 var^2)/24 over each cell: its low corner bounds var, its high one the rest."""
        (var_b, var_a), cov = self.variance, sign * self.covariance
        low = var_b * t_low[:, None] ** 2 + var_a * w_low[None, :] ** 2
        low = low + 2.0 * (cov * t_low[:, None] * w_low[None, :] if cov > 0 else cov * np.outer(t_high, w_high))
        high = (np.sqrt(var_b) * t_high[:, None] + np.sqrt(var_a) * w_high[None, :]) ** 2
        # Minkowski in L4: E (t b + w a)^4 <= (t |b|_4 + w |a|_4)^4.
        fourth = (self.fourth[0] ** 0.25 * t_high[:, None] + self.fourth[1] ** 0.25 * w_high[None, :]) ** 4
        return 1.0 - low + (2.0 * fourth + 6.0 * high**2) / 24.0

    def moduli(self, t: np.ndarray, w: np.ndarray) -> np.ndarray:
        """|E e^{i(t b + w a)}| on the grid ``t`` x ``w``, of shape (len(t), len(w))."""
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
    while points[-1] < end and len(points) < _MOST_CELLS:
        points.append(points[-1] + width)
        width = min(width * 1.06, widest * first)
    return np.array(points)

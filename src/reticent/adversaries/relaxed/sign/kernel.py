"""What both sums over frequencies share: grids of which one is a multiple of the other, and the kernel on them."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import loggamma

_NORMAL = np.linspace(-8.0, 8.0, 161)  # in standard deviations: grid for a variance


def log_cosh_variance(scale: float) -> float:
    """Variance of log cosh of a centred normal.

    Args:
        scale: its standard deviation, > 0.
    """
    x = scale * _NORMAL
    weight = np.exp(-0.5 * (x / scale) ** 2)
    value = np.abs(x) + np.log1p(np.exp(-2.0 * np.abs(x)))
    mean = weight @ value / weight.sum()
    return float(weight @ (value - mean) ** 2 / weight.sum())


def commensurate(dtau: float, dw: float) -> tuple[float, float]:
    """Shrunk so that one is a whole multiple of the other: the Gamma functions become one table.

    Args:
        dtau, dw: spacings, > 0.
    """
    if dw >= dtau:
        return dtau, dtau * math.floor(dw / dtau)
    return dw * math.floor(dtau / dw), dw


class GammaTable:
    """log of K_s(w) = 2^{-s-1} Gamma((iw-s)/2) Gamma((-iw-s)/2) / Gamma(-s) on a commensurate grid."""

    def __init__(self, points: np.ndarray, dtau: float, dw: float, omegas: int) -> None:
        """The table.

        Args:
            points: s_j = line + i j dtau, from j = 0 on.
            dtau, dw: spacings of the frequencies.
            omegas: how many w_k = k dw.
        """
        base = min(dtau, dw)
        self._per_tau, per_w = round(dtau / base), round(dw / base)
        self._w = per_w * np.arange(omegas)
        last = self._per_tau * (len(points) - 1) + per_w * (omegas - 1)
        self._table = loggamma(0.5 * (-points[0].real + 1j * base * np.arange(last + 1)))
        self._points = points

    def log_kernel(self, part: slice) -> np.ndarray:
        """At the points s_j of ``part`` (rows) and all w_k."""
        tau, s = self._per_tau * np.arange(part.start, part.stop)[:, None], self._points[part]
        return self._at(self._w - tau) + self._at(-self._w - tau) - (loggamma(-s) + (s + 1.0) * math.log(2.0))[:, None]

    def _at(self, index: np.ndarray) -> np.ndarray:
        value = self._table[np.abs(index)]
        return np.where(index < 0, value.conj(), value)

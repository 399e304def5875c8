"""Sums over two frequencies: grids of which one is a multiple of the other, and the kernel on them."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import loggamma

_NORMAL = np.linspace(-8.0, 8.0, 161)  # in standard deviations: grid for a variance
_PARTS = 4  # of the smaller spacing, in which the larger one is counted


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
    """The larger one shrunk to whole quarters of the smaller one: the Gamma functions become one table.

    Args:
        dtau, dw: spacings, > 0.
    """
    base = min(dtau, dw) / _PARTS
    return (dtau, base * math.floor(dw / base)) if dw >= dtau else (base * math.floor(dtau / base), dw)


class GammaTable:
    """log of K_s(w) = 2^{-s-1} Gamma((iw-s)/2) Gamma((-iw-s)/2) / Gamma(-s) on a commensurate grid."""

    def __init__(self, points: np.ndarray, dtau: float, dw: float, omegas: int) -> None:
        """The table.

        Args:
            points: s_j = line + i j dtau, from j = 0 on.
            dtau, dw: spacings of the frequencies.
            omegas: how many w_k = k dw.
        """
        base = min(dtau, dw) / _PARTS
        self._per_tau, self._per_w = round(dtau / base), round(dw / base)
        self._last = self._per_tau * (len(points) - 1) + self._per_w * (omegas - 1)
        half = loggamma(0.5 * (-points[0].real + 1j * base * np.arange(self._last + 1)))
        self._table = np.concatenate([half[:0:-1].conj(), half])
        self._points = points

    def log_kernel(self, part: slice, count: int) -> np.ndarray:
        """At the points s_j of ``part`` (rows) and the first ``count`` of w_k."""
        s, tau = self._points[part], self._per_tau * np.arange(part.start, part.stop)[:, None]
        w, norm = self._last + self._per_w * np.arange(count), loggamma(-s) + (s + 1.0) * math.log(2.0)
        return self._table[w - tau] + self._table[w + tau].conj() - norm[:, None]


def turned(spacing: float, weights: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Real parts of the sums of weight_j e^(-i j spacing l), for each threshold l.

    j is a fine number plus a coarse one, so few exponentials are taken.

    Args:
        spacing: of the frequencies.
        weights: shape (n,), complex.
        thresholds: shape (m,).
    """
    size = math.isqrt(len(weights) - 1) + 1
    table = np.zeros(-(-len(weights) // size) * size, dtype=complex)
    table[: len(weights)] = weights
    rows = table.reshape(-1, size)
    fine, coarse = (np.exp(np.outer(-1j * spacing * thresholds, step * np.arange(count)))
                    for step, count in ((1, size), (size, len(rows))))  # fmt: skip
    return np.einsum("ij,ij->i", fine @ rows.T, coarse).real

"""Formulas as papers print them, for reproduction only: none of them bounds anything.

Nothing else in reticent calls this module; docs/theory/curves.md gives the distance to the exact values.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from reticent.kernel import checks


def power_equation_36(alpha: ArrayLike, noncentrality: float, dimension: int) -> np.ndarray:
    """Power of the norm test by Eq. (36) of KAISSIS2022: Gaussian with mu = lam / sqrt(2 d).

    The limit for d -> infinity at fixed lam / sqrt(d), not for many releases (KAISSIS2022:G7). Optimistic in
    the tail that privacy is about (KAISSIS2022:G8): at d = 300, lam = 10, alpha = 1e-5 it gives 5.75e-5, true
    is 6.65e-5. Use ``RelaxedGaussianTradeOff``.

    Args:
        alpha: false positive rates in [0, 1], any shape.
        noncentrality: lam >= 0.
        dimension: d >= 1.

    Raises:
        ParameterError: an argument is outside its domain.
    """
    return ndtr(_shift(noncentrality, dimension) - _upper_quantile(alpha))


def power_equation_35(alpha: ArrayLike, noncentrality: float, dimension: int) -> np.ndarray:
    """Power by Eq. (35) of KAISSIS2022 as printed, with d where sqrt(d) is needed (KAISSIS2022:G5).

    Args:
        alpha: false positive rates in [0, 1], any shape.
        noncentrality: lam >= 0.
        dimension: d >= 1.

    Raises:
        ParameterError: an argument is outside its domain.
    """
    z, m = _upper_quantile(alpha), _shift(noncentrality, dimension) / np.sqrt(dimension)
    return ndtr((m - z) / np.sqrt(1.0 + 2.0 * noncentrality / dimension))


def power_equation_35_corrected(alpha: ArrayLike, noncentrality: float, dimension: int) -> np.ndarray:
    """Eq. (35) with sqrt(d): still an approximation, and less accurate than Eq. (36).

    Args:
        alpha: false positive rates in [0, 1], any shape.
        noncentrality: lam >= 0.
        dimension: d >= 1.

    Raises:
        ParameterError: an argument is outside its domain.
    """
    z, m = _upper_quantile(alpha), _shift(noncentrality, dimension)
    return ndtr((m - z) / np.sqrt(1.0 + 2.0 * noncentrality / dimension))


def _upper_quantile(alpha: ArrayLike) -> np.ndarray:
    return -ndtri(checks.probabilities(alpha=alpha))


def _shift(noncentrality: float, dimension: int) -> float:
    lam, d = checks.non_negative(noncentrality=noncentrality), checks.count(dimension=dimension)
    return lam / float(np.sqrt(2.0 * d))

"""Forms of Gaussian type: each proposes a mu, and the advantage is that of the Gaussian curve of this mu.

Where steps differ, the squares of mu add up: ``added_mu``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erf

from reticent.accountants.closed_forms.elementwise import Kernel, Run, arguments, elementwise
from reticent.kernel.accountants.affinity import minus_log_affinity
from reticent.kernel.pairs import Neighbouring

_SQRT_8 = 2.8284271247461903

MuForm = Callable[[ArrayLike, ArrayLike, ArrayLike, Neighbouring], np.ndarray]
"""A closed form of equal steps: noise, rate, steps, relation -> mu, whose square is additive in the steps."""


def advantage_at(mu: ArrayLike) -> np.ndarray:
    """Total variation of N(0, 1) and N(mu, 1): erf(mu / sqrt 8)."""
    return erf(np.asarray(mu, dtype=float) / _SQRT_8)


def published(
    noise_multiplier: ArrayLike, sample_rate: ArrayLike, steps: ArrayLike, neighbouring: Neighbouring
) -> np.ndarray:
    """Main term of Corollary 7 of CHERUBIN2024, as printed: mu = sensitivity p sqrt(T) / noise; for reproduction only.

    By CHERUBIN2024:Corollary 7.

    Status: not a bound. The error term that the paper drops is of order sqrt(p (1-p) T)/noise, which is
    above 1 in practice (CHERUBIN2024:B1). Exact for p = 1.
    Direction: unsafe iff roughly p < s/6 and T exceeds a small crossover, by up to 0.42 (replace) and 0.65 (add).
    Within 1e-3, for every T on the grid: add/remove noise >= 1.5 at p = 1e-5, >= 4 at 1e-4, >= 10 from 1e-3 on;
    replace noise >= 1 at p = 1e-5, >= 1.5 at 1e-4, >= 4 up to p = 0.05, >= 10 at 0.2.
    """
    return elementwise(_advantage_of(_published), noise_multiplier, sample_rate, steps, neighbouring)


def clt_mu(
    noise_multiplier: ArrayLike, sample_rate: ArrayLike, steps: ArrayLike, neighbouring: Neighbouring
) -> np.ndarray:
    """mu of the central limit theorem: p sqrt(T (e^s - 1)); for ``REPLACE`` 2 p sqrt(T sinh s).

    By RETICENT:clt.
    """
    return elementwise(_clt, noise_multiplier, sample_rate, steps, neighbouring)


def rho_form_mu(
    noise_multiplier: ArrayLike, sample_rate: ArrayLike, steps: ArrayLike, neighbouring: Neighbouring
) -> np.ndarray:
    """mu of the Gaussian with the affinity rho^T: sqrt(-8 T log rho).

    By RETICENT:rho-form.
    """
    noise, rate, count = arguments(noise_multiplier, sample_rate, steps)
    return np.sqrt(8.0 * count * minus_log_affinity(noise, rate, neighbouring).upper)


def added_mu(form: MuForm, parts: Sequence[Run], neighbouring: Neighbouring) -> float:
    """mu of all parts by a form in which squares add up: ``clt_mu`` or ``rho_form_mu``.

    Args:
        form: see ``MuForm``.
        parts: noise, rate and steps of each Poisson-sampled run; with noise.
    """
    squares = (float(form(noise, rate, float(steps), neighbouring)) ** 2 for noise, rate, steps in parts)
    return math.sqrt(math.fsum(squares))


def _published(noise: np.ndarray, rate: np.ndarray, steps: np.ndarray, neighbouring: Neighbouring) -> np.ndarray:
    return neighbouring.sensitivity * rate * np.sqrt(steps) / noise


def _clt(noise: np.ndarray, rate: np.ndarray, steps: np.ndarray, neighbouring: Neighbouring) -> np.ndarray:
    energy = 1.0 / (noise * noise)
    if neighbouring is Neighbouring.REPLACE:
        return 2.0 * rate * np.sqrt(steps * np.sinh(energy))
    return rate * np.sqrt(steps * np.expm1(energy))


def _advantage_of(mu: Kernel) -> Kernel:
    return lambda *given: advantage_at(mu(*given))

"""Closed forms of the advantage beside those that attackers are asked for; docs/theory/closed-forms.md has all."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erfinv

from reticent.accountants.closed_forms import advantage_at, clt_mu, published, rho_form_mu
from reticent.accountants.closed_forms.bracket import drawn, least_upper
from reticent.accountants.closed_forms.elementwise import arguments, elementwise
from reticent.kernel.accountants.affinity import Interval, minus_log_affinity
from reticent.kernel.errors import ParameterError
from reticent.kernel.pairs import Neighbouring

_SQRT_8 = 2.8284271247461903


def mu_at(advantage: ArrayLike) -> np.ndarray:
    """The mu whose total variation is ``advantage``: the inverse of ``advantage_at``.

    Raises:
        ParameterError: an advantage outside [0, 1].
    """
    advantage = np.asarray(advantage, dtype=float)
    if not np.all((advantage >= 0.0) & (advantage <= 1.0)):
        raise ParameterError("advantage", advantage.tolist(), "numbers in [0, 1]")
    return _SQRT_8 * erfinv(advantage)


def published_mu(
    noise_multiplier: ArrayLike, sample_rate: ArrayLike, steps: ArrayLike, neighbouring: Neighbouring
) -> np.ndarray:
    """The mu behind ``published``: sensitivity * p sqrt(T) / noise."""
    noise, rate, count = arguments(noise_multiplier, sample_rate, steps)
    return neighbouring.sensitivity * rate * np.sqrt(count) / noise


def clt(
    noise_multiplier: ArrayLike, sample_rate: ArrayLike, steps: ArrayLike, neighbouring: Neighbouring
) -> np.ndarray:
    """Central limit theorem: the limit of the whole curve as p -> 0 with p sqrt(T) fixed.

    Status: asymptotic. Direction: safe for the advantage on the whole grid (measured, not proven); very
    conservative where p e^{2s} is not small. No statement for false positive rates far below p.
    Within 1e-3, for every T on the grid: noise >= 0.5 at p = 1e-5, >= 0.7 at 1e-4, >= 1 at 1e-3, >= 4 up to 0.05
    (2 at 0.01 under replace), >= 10 at 0.2.
    """
    return elementwise(_clt, noise_multiplier, sample_rate, steps, neighbouring)


def rho_form(
    noise_multiplier: ArrayLike, sample_rate: ArrayLike, steps: ArrayLike, neighbouring: Neighbouring
) -> np.ndarray:
    """erf(sqrt(-T log rho)) with rho the Bhattacharyya affinity of one step; the recommended closed form.

    Status: exact for a Gaussian loss, not a theorem otherwise (docs/theory/closed-forms.md shows when it is one).
    Direction: safe for ``REPLACE`` with p <= 1/2 on the whole grid; for ``ADD_REMOVE`` unsafe by at most 0.0015
    on the grid; for ``REPLACE`` with p > 1/2 unsafe by at most 0.015.
    Within 1e-3, for every T on the grid: noise >= 0.5 at p = 1e-5, >= 0.7 at 1e-4, >= 1 at 1e-3 (0.7 under
    add/remove), >= 1.5 up to 0.05, >= 2 at 0.2.
    """
    return advantage_at(rho_form_mu(noise_multiplier, sample_rate, steps, neighbouring))


def proven_bracket(
    noise_multiplier: ArrayLike, sample_rate: ArrayLike, steps: ArrayLike, neighbouring: Neighbouring
) -> Interval:
    """Proven lower and upper bounds on the advantage, at the price of one quadrature.

    Lower: 1 - rho^T. Upper: as ``proven_upper`` of one run.

    Status: proven; rho by a quadrature whose error is bounded (``affinity.py``), on the safe side of each end.
    Width: the upper end exceeds the truth by at most 25.4 % where the advantage is small.
    """
    noise, rate, count = arguments(noise_multiplier, sample_rate, steps)
    minus_log = minus_log_affinity(noise, rate, neighbouring)
    lower = -np.expm1(-count * minus_log.lower)
    return Interval(lower, least_upper(count * minus_log.upper, *drawn(noise, rate, count), neighbouring))


def proven(
    noise_multiplier: ArrayLike, sample_rate: ArrayLike, steps: ArrayLike, neighbouring: Neighbouring
) -> np.ndarray:
    """Proven upper bound on the advantage without any quadrature.

    sqrt(1 - rho^{2T}) with 1 - rho <= p^2 (e^s - 1) / (8 sqrt(1-p)) for add/remove and
    <= p^2 sinh(s) / (2 kappa), kappa = 1 - p (1 - e^{-s/2}), for replacement (arithmetic-geometric mean and
    Cauchy-Schwarz in the integral of (P-Q)^2 / (sqrt P + sqrt Q)^2), and the two bounds by the mask.

    Status: proven. Within 1e-3: only where the advantage itself is below about 4e-3, or close to 1.
    """
    return elementwise(_proven, noise_multiplier, sample_rate, steps, neighbouring)


def _clt(noise: np.ndarray, rate: np.ndarray, steps: np.ndarray, neighbouring: Neighbouring) -> np.ndarray:
    return advantage_at(clt_mu(noise, rate, steps, neighbouring))


def _proven(noise: np.ndarray, rate: np.ndarray, steps: np.ndarray, neighbouring: Neighbouring) -> np.ndarray:
    energy = 1.0 / (noise * noise)
    if neighbouring is Neighbouring.REPLACE:
        deficit = rate * rate * np.sinh(energy) / (2.0 + 2.0 * rate * np.expm1(-0.5 * energy))
    else:
        deficit = rate * rate * np.expm1(energy) / np.sqrt(64.0 - 64.0 * rate)
    return least_upper(-steps * np.log1p(-np.minimum(deficit, 1.0)), *drawn(noise, rate, steps), neighbouring)


FORMS = {"published": published, "clt": clt, "rho_form": rho_form, "proven": proven}
"""Those whose distance to the exact advantage is measured."""

"""Closed forms of the advantage where noise or sample rate change from step to step (``closed_forms`` has equal steps).

Affinities of independent steps multiply and variances of their losses add up, so each form becomes a sum over parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import erf

from reticent.composition import closed_forms
from reticent.composition.pairs.affinity import affinity
from reticent.mechanism import DPSGD, Neighbouring

_SQRT_8 = 2.8284271247461903

MuForm = Callable[[float, float, float, Neighbouring], np.ndarray]
"""A closed form of equal steps: noise, rate, steps, relation -> mu, whose square is additive in the steps."""


def added_mu(form: MuForm, parts: Sequence[DPSGD], neighbouring: Neighbouring) -> float:
    """mu of all parts by a form in which squares add up: ``closed_forms.clt_mu`` or ``rho_form_mu``.

    Args:
        form: see ``MuForm``.
        parts: Poisson-sampled runs with noise.
        neighbouring: between which data sets.
    """
    squares = (float(form(p.noise_multiplier, p.sample_rate, float(p.steps), neighbouring)) ** 2 for p in parts)
    return math.sqrt(math.fsum(squares))


def proven_upper(parts: Sequence[DPSGD], neighbouring: Neighbouring) -> float:
    """Proven upper bound on the advantage of all parts together, each Poisson-sampled with noise.

    The least of sqrt(1 - rho^2) with rho the product of the affinities of all steps, of the probability that the
    target is sampled at all, and, the mask told, of erf(sensitivity sqrt(sum of p T / noise^2) / sqrt 8): given the
    mask the advantage is a concave function of the sum over its steps of 1 / noise^2, whose mean that sum is.
    """
    log_rho = log_never = energy = 0.0
    for part in parts:
        noise, rate, steps = part.noise_multiplier, part.sample_rate, part.steps
        log_rho -= steps * float(affinity(np.array(noise), np.array(rate), neighbouring).minus_log.upper)
        log_never += steps * math.log1p(-rate) if rate < 1.0 else -math.inf
        energy += rate * steps / noise**2
    upper = math.sqrt(-math.expm1(2.0 * log_rho)) * (1.0 + 1e-14)
    told = float(erf(neighbouring.sensitivity * math.sqrt(energy) / _SQRT_8))
    return min(upper, 1.0, -math.expm1(log_never), told * (1.0 + 1e-14))


FORMS: dict[str, MuForm] = {"closed-form": closed_forms.rho_form_mu, "clt": closed_forms.clt_mu}
"""Forms that add up, by the name of their method; the published form is printed for equal steps only."""

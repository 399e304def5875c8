"""Moments of the loss without its rare large values, whose probability is added to every bound."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from reticent.kernel.curves._logs import EPS
from reticent.kernel.errors import NumericalError
from reticent.kernel.pairs.gaussian_mixture import GaussianMixture

_WIDEST, CELLS = 16.0, 3200  # standard deviations that the cells cover, and their number
_MOST = 0.4  # survival above which differences of it lose digits
_ULPS = 1.0 + 1e-9  # for the rounding of sums of positive terms


@dataclass(frozen=True, slots=True)
class SampledStep:
    """A Poisson-sampled Gaussian step that ran ``count`` times; see ``pairs.sampled_gaussian``.

    Attributes:
        noise_multiplier: s > 0, in units of the shift.
        rate: in (0, 1).
        antipodal: the pair of the replacement relation.
        count: >= 1.
    """

    noise_multiplier: float
    rate: float
    antipodal: bool
    count: int


def cut_moments(step: SampledStep, exponents: np.ndarray, log_tail: float, fewer: int = 1) -> tuple[np.ndarray, float]:
    """Moments without rare large losses: where these begin, at B, Q(L > B) of all steps is about e^``log_tail``.

    e^(cL) - 1 - c (e^L - 1) falls to 0 at L = 0 and then grows, so on a cell it is at most its larger end; and
    E_P[e^L - 1] over what is kept is 0 but for what is left out.

    Args:
        step: the antipodal pair leaves out losses below -B as well.
        exponents: c < 0 or c > 1.
        log_tail: of the probability.
        fewer: times fewer cells.

    Returns:
        Upper bounds on log E_P[e^(cL)] over what is kept, of all steps; and a bound on the probability of what is
        left out, in any step and under either law.

    Raises:
        NumericalError: no loss of so many steps is as rare.
    """
    s, rate, both = step.noise_multiplier, step.rate, step.antipodal
    far = 1.0 + _WIDEST * s
    cells = CELLS // fewer
    x = np.linspace(-far, far, cells + 1)
    beyond = step.count * (rate * ndtr((1.0 - x) / s) + (1.0 - rate) * ndtr(-x / s))
    rare = beyond <= np.exp(log_tail)
    if not rare[-1]:
        raise NumericalError("moments without rare losses: so many steps have no losses that are rare enough")
    last = int(np.argmax(rare))
    lost = float(beyond[last]) * _ULPS * (2.0 if both else 1.0)
    x = x[cells - last : last + 1] if both else x[: last + 1]
    loss = GaussianMixture(s, (rate,), antipodal=both).loss(x)
    survival = (1.0 - rate) * ndtr(-x / s) + rate * ndtr((-1.0 - x) / s) if both else ndtr(-x / s)
    if not both:  # the cell below all others, down to the smallest loss
        loss, survival = np.append(math.log1p(-rate), loss), np.append(1.0, survival)
    mass = -np.diff(survival) * _ULPS + np.where(survival[:-1] > _MOST, 4.0 * EPS, 0.0)
    excess = np.expm1(np.multiply.outer(exponents, loss)) - np.multiply.outer(exponents, np.expm1(loss))
    total = np.maximum(excess[:, :-1], excess[:, 1:]) @ mass * _ULPS + np.abs(exponents) * lost / step.count
    return step.count * np.log1p(np.where(np.isfinite(total), total, np.inf)), lost

"""mu over every error rate, from the release: composed curves are known down to a floor only.

docs/theory/mu.md proves it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from scipy.special import ndtri_exp

from reticent.kernel.accountants.compose import compose
from reticent.kernel.accountants.one_direction import steps_of
from reticent.kernel.accountants.steps import Release, Step, enclosed
from reticent.kernel.curves import TradeOff
from reticent.kernel.curves.polygon import Polygon, polygon_above
from reticent.kernel.pairs import Neighbouring

_TANGENTS = 2001


def mu_limits(release: Release, neighbouring: Neighbouring) -> tuple[float, float]:
    """(lower, upper) around the smallest mu such that the worst case is mu-GDP at every error rate.

    Both ends agree for Gaussian noise, sampled or not (replacement at rates above 1/2: the upper end is at most
    twice the lower), and for one Laplace release. Infinite where a step without noise may show the target.

    By RETICENT:all-rates-mu.

    Args:
        release: what was released.
        neighbouring: between which data sets.

    Raises:
        UnsupportedError: as for ``compose``.
    """
    noisy, unseen = steps_of(release, neighbouring)
    attained, hidden = steps_of(release, neighbouring, attained=True)
    lower = math.inf if hidden < 0.0 else _composed_mu((step.count, step.pair.tail_mu) for step in attained)
    if unseen < 0.0:
        return lower, math.inf
    upper = _composed_mu((step.count, _sufficient_mu(step)) for step in noisy)
    if noisy == attained and len(noisy) == 1 and noisy[0].count == 1 and noisy[0].pair.proven_mu_is_least:
        return upper, upper
    largest = sum(step.count * max(step.pair.largest_losses) for step in noisy)
    if math.isfinite(largest):
        with np.errstate(all="ignore"):  # what overflows proves nothing more
            bounded = _mu_of_bounded_losses(compose(release, neighbouring).pessimistic, largest)
            upper = bounded if bounded < upper else upper
    return lower, upper


def _composed_mu(steps: Iterable[tuple[int, float]]) -> float:
    """mu of Gaussian curves, composed: they add in squares."""
    return math.sqrt(sum(count * mu * mu for count, mu in steps))


def _sufficient_mu(step: Step) -> float:
    """A mu that holds for one step: who sees the draws, its curve, or all laws with such losses."""
    seen = step.pair.unsampled_mu
    if enclosed([step]) and seen is not None:
        return seen
    response = -2.0 * float(ndtri_exp(-np.logaddexp(0.0, max(step.pair.largest_losses))))
    own = min(max(step.curve.proven_mu, step.curve.reversed.proven_mu), response)
    return own if seen is None else min(own, seen)


def _mu_of_bounded_losses(curve: TradeOff, largest: float) -> float:
    """A mu of a symmetric curve whose log likelihood ratio never exceeds ``largest``.

    Down to any vertex the largest shift is at a vertex. Below its alpha the power is at most e^largest alpha,
    and Phi^-1(e^largest alpha) - Phi^-1(alpha) grows with alpha. The best vertex to change over counts.
    """
    polygon = curve if isinstance(curve, Polygon) else _tangent_polygon(curve, largest)
    fpr, _, fnr, tpr = polygon.vertices
    half = (fpr > -np.inf) & (fpr <= fnr)
    fpr, tpr = fpr[half][::-1], tpr[half][::-1]
    reject = ndtri_exp(fpr)
    above = np.maximum.accumulate(ndtri_exp(tpr) - reject)
    below = np.where(fpr + largest < 0.0, ndtri_exp(np.minimum(fpr + largest, 0.0)) - reject, np.inf)
    return float(np.min(np.maximum(above, below), initial=math.inf))


def _tangent_polygon(curve: TradeOff, largest: float) -> Polygon:
    thresholds = largest * np.linspace(-1.0, 1.0, _TANGENTS)
    thresholds[_TANGENTS // 2] = 0.0
    size = np.abs(thresholds)
    rates = curve.errors(size)  # 1 - delta = beta + e^threshold alpha: next to certainty delta has lost it
    log_rest = np.minimum(np.logaddexp(rates.fnr, size + rates.fpr), 0.0)
    return polygon_above(thresholds, curve.log_delta(size), log_rest)

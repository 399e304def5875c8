"""What the norms of the single releases show: a legal attack, and one half of a bound.

Norms of different releases are independent given the mask, whatever the direction, so their likelihood ratio composes
step by step. Below, its threshold tests are legal attacks. Above, it is where ``overlaps.over_norms`` starts from: an
attacker gains at most what the norms show, and what the common direction adds to them.
"""

from __future__ import annotations

import numpy as np

from reticent.curves import RelaxedGaussianTradeOff
from reticent.kernel.accountants.lattice import Lattice
from reticent.kernel.accountants.steps import Step
from reticent.kernel.curves import LogErrors, Subsampled
from reticent.kernel.curves._logs import log_of
from reticent.kernel.curves.polygon import Sides, polygon_above, polygon_through
from reticent.kernel.pairs import CurvePair

_THRESHOLDS = 400  # above 0 of the polygons of one step; half as many below
_FURTHEST = 40.0  # threshold
_NEAR = 1e-3  # of the distance from 0 to the least loss: thresholds nearest to 0
_ROUNDING = 4e-12  # of the rates of one step
_INSIDE = 1.0 - 1e-9  # of the least loss: the last threshold before it
_UNDERFLOW = -690.0  # log of delta
_POINTS = 2**18  # of a lattice
_SHARE = 2e-4  # of the advantage: aimed distance between both curves


def composed_norms(noise: float, rate: float, steps: int, dimension: int, advantage: float) -> Sides:
    """Polygons around the trade-off curve of all norms together, "absent" against "present".

    Args:
        advantage: its size, roughly; the two curves are aimed to lie closer than a small share of it.

    Raises:
        NumericalError: the lattice cannot follow the losses.
    """
    above, below = one_step(noise, rate, dimension)
    lattice = Lattice(_SHARE * advantage, _POINTS)
    return Sides(lattice.above([Step(CurvePair(above), steps)]), lattice.below([Step(CurvePair(below), steps)]))


def one_step(noise: float, rate: float, dimension: int) -> Sides:
    """Polygons around the curve of one norm: tangents and chords at few thresholds compose in less time."""
    least = -np.log1p(-rate)
    inner = -np.geomspace(least * _INSIDE, least * _NEAR, _THRESHOLDS // 2)
    thresholds = np.concatenate([inner, [0.0], np.geomspace(least * _NEAR, _FURTHEST, _THRESHOLDS)])
    rates = Subsampled(RelaxedGaussianTradeOff(noise**-2.0, dimension), rate).errors(thresholds)
    fpr, tnr, fnr, tpr = (np.exp(log_rate) for log_rate in rates)
    grown, shrunk = np.exp(np.maximum(thresholds, 0.0)) * fpr, np.exp(np.maximum(-thresholds, 0.0)) * fnr
    delta = np.where(
        thresholds >= 0.0, tpr - grown + _ROUNDING * (tpr + grown), tnr - shrunk + _ROUNDING * (tnr + shrunk)
    )
    log_delta = np.clip(log_of(np.maximum(delta, 0.0)), _UNDERFLOW, 0.0)
    points = LogErrors.of(np.minimum(rates.fpr + _ROUNDING, 0.0), np.minimum(rates.fnr + _ROUNDING, 0.0))
    return Sides(polygon_above(thresholds, log_delta), polygon_through(points.at(slice(None, None, -1))))

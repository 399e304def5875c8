"""One epoch of random allocation, as two curves that enclose the true one; docs/samplers.md has the proof.

Absent: N(0, s^2 I) in t steps. Present: the same, moved by 1 in one step that is drawn uniformly. The likelihood
ratio is the mean of t independent log-normals.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from reticent.curves import LogErrors
from reticent.curves._logs import EPS, TINY, log_of
from reticent.curves.polygon import Polygon, Sides, polygon_above, polygon_through
from reticent.pairs.allocated_sum import COARSE, FINE, Law, Window, sum_of

_LEAST = 1e-60  # added to what is an error rate of a test, or a delta: products of masses may underflow


@lru_cache(maxsize=32)  # many numbers are read off one release
def random_allocation(noise_multiplier: float, bins: int) -> Sides:
    """The curves of one epoch, H0 = absent: of a stronger attacker, and of a weaker one.

    Args:
        noise_multiplier: s > 0, in clip norms.
        bins: t >= 2, steps of one epoch.

    Raises:
        NumericalError: the noise is too small.
    """
    windows: list[Window] = []
    with np.errstate(under="ignore"):
        sum_of(1.0 / noise_multiplier, bins, windows, COARSE, above=True)
        above = sum_of(1.0 / noise_multiplier, bins, windows, FINE, above=True)
        below = sum_of(1.0 / noise_multiplier, bins, windows, FINE, above=False)
    return Sides(_curve_above(above, bins), _curve_below(below, bins))


def _curve_above(law: Law, bins: int) -> Polygon:
    """All deltas are sums of positive terms; errors of positions move the threshold."""
    ratio, mass, gap = law.at / bins, law.mass, np.diff(law.at / bins)
    beyond = np.append(np.cumsum(mass[:0:-1])[::-1], 0.0)  # mass of the atoms after each
    before = np.append(0.0, np.cumsum(mass[:-1]))
    call = np.append(np.cumsum((gap * beyond[:-1])[::-1])[::-1], 0.0) + law.lost / bins
    put = np.append(0.0, np.cumsum(gap * before[1:]))
    one = int(np.searchsorted(ratio, 1.0, side="right"))
    at_one = call[one] + (ratio[one] - 1.0) * beyond[one - 1] + law.eta
    losses = log_of(ratio)
    up, down = losses > 4.0 * law.eta, (losses < -4.0 * law.eta) & (ratio > 0.0)
    room = law.eta + 8.0 * EPS * (1.0 + np.abs(losses))
    thresholds = np.concatenate([losses[down] - room[down], [0.0], losses[up] + room[up]])
    delta = np.concatenate([put[down] / ratio[down], [at_one], call[up]])
    slack = 1.0 + law.kappa + (len(mass) + 16) * EPS
    return polygon_above(thresholds, np.minimum(np.log(delta * slack + _LEAST), 0.0))


def _curve_below(law: Law, bins: int) -> Polygon:
    """ "Reject from this atom on": a test of the collapsed law, so no better than some test of the true one."""
    few, weighted = law.mass, law.mass * law.at / bins
    error = law.kappa + law.eta + (len(few) + 16) * EPS
    rates = [np.append(np.cumsum(part[::-1])[::-1], 0.0) for part in (few, weighted)]
    rest = [np.append(0.0, np.cumsum(part)) for part in (few, weighted)]
    more, less = 1.0 + error, max(1.0 - error, TINY)
    fpr, fnr = rates[0] * more + _LEAST, rest[1] * more + _LEAST
    logs = LogErrors(log_of(fpr), log_of(rest[0] * less), log_of(fnr), log_of(rates[1] * less))
    return polygon_through(LogErrors(*(np.minimum(rate, 0.0) for rate in logs)))

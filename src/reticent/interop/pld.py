"""dp_accounting's privacy loss distributions, in.

A pessimistic distribution gives upper bounds on delta at every epsilon, so the tangents of a
table of them lie on the safe side of the truth. dp_accounting does not bound the rounding of its
Fourier transforms; 1e-15 is added to every delta for it, and the bound is as good as that. The
distribution says nothing about the other side: the enclosure's optimistic end is perfect privacy. Tables of
delta are used rather than the two mass functions: pairing those as if they were two laws of one experiment
gives curves that no attacker has.
"""

from __future__ import annotations

import math

import numpy as np

from reticent.kernel import checks
from reticent.kernel.curves import GaussianTradeOff
from reticent.kernel.curves.enclosure import Enclosure
from reticent.kernel.curves.polygon import symmetric_above
from reticent.kernel.errors import NumericalError, ParameterError, needing

with needing("reticent.interop.pld", "interop"):
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

_ROUNDING = 1e-15


def from_pld(distribution: PrivacyLossDistribution, rows: int = 2000) -> Enclosure:
    """The enclosure that a pessimistic privacy loss distribution proves.

    The curve is that of the worse direction at each epsilon, in both directions (symmetrised). Between
    the table's rows it is the chord of delta over e^epsilon: the safe side.

    Args:
        distribution: from dp_accounting, with ``pessimistic_estimate=True`` (its default).
        rows: epsilons to tabulate, >= 2; the loss of tightness falls with the square.

    Raises:
        ParameterError: not such an object, or its estimates are optimistic.
        NumericalError: a delta is not a number.
    """
    if not isinstance(distribution, PrivacyLossDistribution):
        raise ParameterError("distribution", type(distribution).__name__, "a PrivacyLossDistribution of dp_accounting")
    if not _is_pessimistic(distribution):
        raise ParameterError("distribution", "an optimistic estimate", "pessimistic: only that proves a bound")
    if checks.count(rows=rows) < 2:
        raise ParameterError("rows", rows, "at least 2")
    epsilons = _epsilons(distribution, rows)
    deltas = np.asarray(distribution.get_delta_for_epsilon(epsilons), dtype=float)
    if not np.all(np.isfinite(deltas)):
        raise NumericalError("the privacy loss distribution returns a delta that is not a number")
    # delta(0) of a pessimistic distribution can exceed 1: a probability cannot.
    safe = np.clip(np.maximum(deltas, 0.0) + _ROUNDING, 0.0, 1.0)
    return Enclosure(pessimistic=symmetric_above(epsilons, np.log(safe)), optimistic=GaussianTradeOff(0.0))


def _epsilons(distribution: PrivacyLossDistribution, rows: int) -> np.ndarray:
    """0 and even steps to where delta has reached its floor, finer near 0."""
    reach = (float(distribution.get_epsilon_for_delta(10.0**-exponent)) for exponent in range(14, 0, -1))
    last = max(1.0, next((epsilon for epsilon in reach if math.isfinite(epsilon)), 1.0))
    half = rows // 2
    return np.unique(np.concatenate([[0.0], np.geomspace(1e-6, last, half), np.linspace(0.0, last, rows - half)]))


def _is_pessimistic(distribution: PrivacyLossDistribution) -> bool:
    """Both mass functions were rounded up; dp_accounting keeps this in a private field only."""
    return all(
        bool(getattr(pmf, "_pessimistic_estimate", False)) for pmf in (distribution._pmf_remove, distribution._pmf_add)
    )

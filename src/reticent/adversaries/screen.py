"""Curves at the accuracy of a screen, in milliseconds: drawn while the proven ones are computed.

Estimates, and marked as such: ``accountants.WorstCaseProfile`` and ``quick_sign_estimate``, whose values are not
certified.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from reticent.accountants.closed_forms import clt_mu
from reticent.accountants.profile import WorstCaseProfile
from reticent.adversaries.relaxed.sign import quick_sign_estimate
from reticent.kernel.adversaries.base import Adversary, Assessment, Method
from reticent.kernel.curves import Mixture, TradeOff
from reticent.kernel.curves._logs import log1mexp
from reticent.kernel.curves.polygon import Polygon, polygon_above
from reticent.kernel.errors import ReticentError
from reticent.kernel.mechanisms import DPSGD, Mechanism
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Formula

ACCURACY = 1e-4
"""By how much an error rate of the drawn worst case may differ from the exact one."""
ROUGH = 1e-3
"""The same for attackers who do not know the direction."""
_NEAR, _FAR = 241, 121  # thresholds within some standard deviations of the loss, and in the whole window
_SPREADS = 6.0
_SMALLEST, _SEEN = 1e-9, 1e-7  # delta is read down to the first, and has to be followed down to the second
_ROUNDING = 1e-15  # of delta, times e^(l/2)
_ROUNDING_OF_SIGN = 1e-12  # of delta, times e^l


class _Deltas(NamedTuple):
    """delta at thresholds from 0 on, as far as it is known."""

    thresholds: np.ndarray
    values: np.ndarray


@lru_cache(maxsize=64)
def screen_assessment(adversary: Adversary, mechanism: Mechanism, relation: Neighbouring) -> Assessment | None:
    """The attacker as an estimate within ``ACCURACY`` or ``ROUGH``; None where no such shortcut is known.

    Known for DP-SGD with Poisson sampling at a rate below 1 and noise above 0.05: for the worst case and the membership
    attacker under add/remove and replacement, for an unknown sign under add/remove.
    """
    run = mechanism.training
    if run is None or relation is Neighbouring.ZERO_OUT or not run.singly_sampled:
        return None
    if not (run.noise_multiplier > 0.05 and run.sample_rate < 1.0):  # the transform does not answer for it
        return None
    with np.errstate(all="ignore"):
        try:
            curve = _curve(adversary, run, relation)
        except (ReticentError, ArithmeticError, ValueError):
            return None
    if curve is None:
        return None
    within = ROUGH if adversary.hidden else ACCURACY
    note = f"Screen accuracy: error rates within {within:g}."
    formula = Formula(curve, conditions=mechanism.conditions, notes=(note,))
    return Assessment(adversary, relation, Method.EXACT, (), formula)


def _curve(adversary: Adversary, mechanism: DPSGD, relation: Neighbouring) -> TradeOff | None:
    worst = _worst(mechanism, relation)
    if worst is None or adversary.is_worst_by(Method.EXACT):
        return _polygon(worst)
    lacks = adversary.hidden
    if lacks is None or (lacks.dimension or 1) > 1 or relation is not Neighbouring.ADD_REMOVE:
        return None
    known, relaxed = _polygon(worst), _polygon(_sign(mechanism))
    if lacks.share < 1.0 and known and relaxed:
        return Mixture([relaxed, known], [lacks.share, 1.0 - lacks.share])
    return relaxed


@lru_cache(maxsize=16)
def _worst(mechanism: DPSGD, relation: Neighbouring) -> _Deltas | None:
    run = mechanism.noise_multiplier, mechanism.sample_rate, mechanism.steps
    mu = float(clt_mu(*run, relation))
    profile = WorstCaseProfile(*run, relation, 0.5 * mu * mu + 8.0 * mu)
    if not profile.reliable:
        return None
    thresholds = _thresholds(profile)
    return _followed(thresholds, profile.delta(thresholds), _ROUNDING * np.exp(0.5 * thresholds))


@lru_cache(maxsize=16)
def _sign(mechanism: DPSGD) -> _Deltas | None:
    """One unknown sign under add/remove, never above the worst case."""
    worst, delta = _worst(mechanism, Neighbouring.ADD_REMOVE), quick_sign_estimate(mechanism)
    if worst is None or delta is None:
        return None
    least = np.minimum(delta(worst.thresholds), worst.values)
    return _followed(worst.thresholds, least, _ROUNDING_OF_SIGN * np.exp(worst.thresholds))


def _thresholds(profile: WorstCaseProfile) -> np.ndarray:
    """Dense where the loss mostly is, all the more so where it is spread widely; coarse in the rest."""
    near = min(_SPREADS * profile.spread + 0.5 * profile.spread**2, profile.largest)
    dense = int(_NEAR * (1.0 + profile.spread / 3.0))
    return np.unique(np.concatenate([np.linspace(0.0, near, dense), np.linspace(0.0, profile.largest, _FAR)]))


def _followed(thresholds: np.ndarray, delta: np.ndarray, rounding: np.ndarray) -> _Deltas | None:
    """As far as delta is more than rounding; None where that is not far enough."""
    known = delta > np.maximum(_SMALLEST, rounding)
    end = len(known) if known.all() else int(np.argmin(known))
    if end == 0 or delta[end - 1] > _SEEN:
        return None
    return _Deltas(thresholds[:end], delta[:end])


def _polygon(known: _Deltas | None) -> Polygon | None:
    """The curve of both directions."""
    if known is None:
        return None
    both = np.log(np.concatenate([known.values[:0:-1], known.values]))
    return polygon_above(np.concatenate([-known.thresholds[:0:-1], known.thresholds]), both, log1mexp(both))

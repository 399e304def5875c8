"""The worst case at the accuracy of a screen, in milliseconds: drawn while the proven curve is computed.

An estimate, and marked as one: ``composition.WorstCaseProfile``, whose values are not certified.
"""

from __future__ import annotations

import numpy as np

from reticent.composition import WorstCaseProfile
from reticent.composition.closed_forms import clt_mu
from reticent.composition.polygon import Polygon, polygon_above
from reticent.errors import ReticentError
from reticent.mechanism import DPSGD, Mechanism, Neighbouring, Sampler
from reticent.threat import Assessment, Claim, Method, WorstCase
from reticent.tradeoff._logs import log1mexp

ACCURACY = 1e-4
"""By how much an error rate of the drawn curve may differ from the exact one."""
_NEAR, _FAR = 241, 81  # thresholds within some standard deviations of the loss, and in the whole window
_SPREADS = 6.0
_SMALLEST, _SEEN = 1e-9, 1e-7  # delta is read down to the first, and has to be followed down to the second
_ROUNDING = 1e-15  # of delta, times e^(l/2)


def screen_assessment(mechanism: Mechanism, relation: Neighbouring) -> Assessment | None:
    """The worst case as an estimate within ``ACCURACY``; None where no such shortcut is known.

    Known for DP-SGD with Poisson sampling at a rate below 1 and noise above 0.05, under add/remove and replacement.
    """
    if not (isinstance(mechanism, DPSGD) and mechanism.sampler is Sampler.POISSON and _is_plain(mechanism)):
        return None
    if relation is Neighbouring.ZERO_OUT:
        return None
    with np.errstate(all="ignore"):
        try:
            curve = _curve(mechanism, relation)
        except (ReticentError, ArithmeticError, ValueError):
            return None
    if curve is None:
        return None
    note = f"Screen accuracy: error rates within {ACCURACY:g}."
    return Assessment(WorstCase(), relation, Method.EXACT, Claim.ESTIMATE, curve, None, (), (note,))


def _is_plain(mechanism: DPSGD) -> bool:
    """Whether the transform speaks about this run as it stands."""
    return mechanism.records == 1 and mechanism.noise_multiplier > 0.05 and mechanism.sample_rate < 1.0


def _thresholds(profile: WorstCaseProfile) -> np.ndarray:
    """Dense where the loss mostly is, all the more so where it is spread widely; coarse in the rest."""
    near = min(_SPREADS * profile.spread + 0.5 * profile.spread**2, profile.largest)
    dense = int(_NEAR * (1.0 + profile.spread / 3.0))
    return np.unique(np.concatenate([np.linspace(0.0, near, dense), np.linspace(0.0, profile.largest, _FAR)]))


def _curve(mechanism: DPSGD, relation: Neighbouring) -> Polygon | None:
    run = mechanism.noise_multiplier, mechanism.sample_rate, mechanism.steps
    mu = float(clt_mu(*run, relation))
    profile = WorstCaseProfile(*run, relation, 0.5 * mu * mu + 8.0 * mu)
    if not profile.reliable:
        return None
    thresholds = _thresholds(profile)
    delta = profile.delta(thresholds)
    known = delta > np.maximum(_SMALLEST, _ROUNDING * np.exp(0.5 * thresholds))
    end = len(known) if known.all() else int(np.argmin(known))
    if end == 0 or delta[end - 1] > _SEEN:
        return None
    both = np.log(np.concatenate([delta[end - 1 : 0 : -1], delta[:end]]))
    return polygon_above(np.concatenate([-thresholds[end - 1 : 0 : -1], thresholds[:end]]), both, log1mexp(both))

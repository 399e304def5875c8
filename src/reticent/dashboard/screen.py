"""The worst case at the accuracy of a screen, in milliseconds: drawn while the proven curve is computed.

An estimate, and marked as one: the same transform as ``composition.fast``, without the certificate.
"""

from __future__ import annotations

import numpy as np

from reticent.composition.fast import Profile
from reticent.composition.polygon import Polygon, hull, polygon_through
from reticent.errors import ReticentError
from reticent.mechanism import DPSGD, Mechanism, Neighbouring, Sampler
from reticent.threat import Assessment, Claim, Method, WorstCase
from reticent.tradeoff import LogErrors
from reticent.tradeoff._logs import log1mexp

ACCURACY = 1e-4
"""By how much an error rate of the drawn curve may differ from the exact one."""
_NEAR, _FAR = 401, 161  # thresholds within some standard deviations of the loss, and in the whole window
_SPREADS = 6.0
_SMALLEST = 1e-9  # rates below this are not resolved: they are left to the proven curve
_SEEN = 2e-6  # both rates must be followed down to here
_ROOM = 1.7  # of the window: enough for tails


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
    whole = getattr(mechanism, "records_per_user", None) in (None, 1)
    return whole and mechanism.noise_multiplier > 0.05 and mechanism.sample_rate < 1.0


def _thresholds(profile: Profile) -> np.ndarray:
    """Dense where the loss mostly is, all the more so where it is spread widely; coarse in the rest of the window."""
    far = 0.45 * profile.window
    near = min(_SPREADS * profile.spread + 0.5 * profile.spread**2, far)
    dense = int(_NEAR * (1.0 + profile.spread / 3.0))
    return np.unique(np.concatenate([np.linspace(-near, near, dense), np.linspace(-far, far, _FAR)]))


def _curve(mechanism: DPSGD, relation: Neighbouring) -> Polygon | None:
    profile = Profile(mechanism.noise_multiplier, mechanism.sample_rate, mechanism.steps, relation, _ROOM)
    if not profile.reliable or profile.spread > 12.0:
        return None
    alpha, beta = profile.rates(_thresholds(profile))
    known = (alpha > _SMALLEST) & (beta > _SMALLEST) & (alpha + beta <= 1.0 + 1e-7)
    if not np.any(known) or max(np.min(alpha[known]), np.min(beta[known])) > _SEEN:
        return None
    fpr, fnr = (np.log(np.clip(rate[known], _SMALLEST, 1.0)) for rate in (alpha, beta))
    curve = polygon_through(LogErrors(fpr, log1mexp(fpr), fnr, log1mexp(fnr)))
    return curve if profile.symmetric else hull([curve, curve.reversed])

"""What was run, as kinds of steps, composed and enclosed: one direction, H0 = absent. Its ``reversed`` is the other.

A pair that is the worse of both directions (sampling of fixed size) dominates what was run, not each of its
directions: the curve from above then holds once both directions are joined, as ``compose.both_directions`` does.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np

from reticent.kernel.accountants.enclose import CURVE, enclose
from reticent.kernel.accountants.steps import Known, Release, Step, enclosed, merged, weaker
from reticent.kernel.curves import GaussianTradeOff, LogErrors, TradeOff
from reticent.kernel.curves._logs import log1mexp
from reticent.kernel.curves.enclosure import Enclosure
from reticent.kernel.curves.polygon import NO_RISK, Polygon, hull
from reticent.kernel.pairs import Neighbouring, Part
from reticent.kernel.pairs.base import Ends
from reticent.kernel.stopping import checkpoint


@lru_cache(maxsize=64)  # every attacker asks, and a release may have thousands of parts
def steps_of(release: Release, neighbouring: Neighbouring, *, attained: bool = False) -> tuple[tuple[Step, ...], float]:
    """``merged`` of what was released.

    Args:
        release: what was released.
        neighbouring: between which data sets.
        attained: steps that some data set has: what only dominates is weakened or left out.
    """
    parts = release.parts_under(neighbouring, attained=attained)
    return merged((part.pair.composed(one_run), part.count) for part in parts)


def one_run(parts: tuple[Part, ...], weaker: bool, times: int = 1) -> tuple[TradeOff, Ends]:
    """What pairs are lent: see ``Composer``."""
    repeated = tuple(replace(part, count=times * part.count) for part in parts)
    noisy, unseen = steps_of(Known(repeated), Neighbouring.ADD_REMOVE)
    run = one_direction(noisy, unseen, either_shows=not weaker)
    checkpoint()
    curve = run.optimistic if weaker else run.pessimistic
    if unseen < 0.0:
        return curve, (math.inf, math.inf)
    ahead, back = (sum(step.count * step.pair.largest_losses[way] for step in noisy) for way in (0, 1))
    return curve, (ahead, back)


@lru_cache(maxsize=8)  # the worst case, and whoever lacks a sign far out
def one_direction(noisy: tuple[Step, ...], unseen: float, *, either_shows: bool) -> Enclosure:
    """The curve of these steps, and of noiseless ones that show nothing with log probability ``unseen``.

    Args:
        unseen: log of the probability that no noiseless step showed the target.
        either_shows: without noise, either hypothesis may show itself.
    """
    if unseen == -math.inf:
        return Enclosure.exact(_disclosure_alone(unseen, either_shows))
    if not noisy and unseen == 0.0:
        return Enclosure.exact(GaussianTradeOff(0.0))
    if not noisy:
        disclosed = _disclosure_alone(unseen, either_shows)
        return Enclosure.exact(hull([disclosed, disclosed.reversed]))
    if len(noisy) == 1 and noisy[0].count == 1 and unseen == 0.0:
        return Enclosure(noisy[0].curve, weaker(noisy)[0].curve if enclosed(noisy) else noisy[0].curve)
    with np.errstate(all="ignore"):  # what overflows is replaced by trivial bounds, never passed on
        found = enclose(noisy, _disclosure_alone(_log_never_drawn(noisy), either_shows))
        above, below = (
            _with_disclosure(curve, unseen, either_shows) for curve in (found.pessimistic, found.optimistic)
        )
    return Enclosure(above, below, found.notes(CURVE), tuple(found.trace))


def _log_never_drawn(noisy: tuple[Step, ...]) -> float:
    """log of the probability that the target took no part: who takes part would show without any noise."""
    return sum(step.count * step.pair.log_absent for step in noisy)


def _disclosure_alone(unseen: float, either_shows: bool) -> Polygon:
    """Nothing but a noiseless look, which shows nothing with log probability ``unseen``."""
    return _with_disclosure(NO_RISK, unseen, either_shows)


def _with_disclosure(curve: Polygon, unseen: float, either_shows: bool) -> Polygon:
    """``curve``, and the target itself but for log probability ``unseen`` (``either_shows``: under either hypothesis).

    Under add/remove only presence shows itself: beta is multiplied by the probability. Under replacement either
    value does: the error pairs shrink towards the origin.
    """
    if unseen == 0.0:
        return curve
    fpr, tnr, fnr, _ = curve.vertices
    fnr = fnr + unseen
    if either_shows:
        return Polygon(LogErrors.of(fpr + unseen, fnr), curve.log_slopes)
    return Polygon(LogErrors(fpr=fpr, tnr=tnr, fnr=fnr, tpr=log1mexp(fnr)), curve.log_slopes + unseen)

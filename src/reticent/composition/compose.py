"""From what was run to the enclosed worst-case curve."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from reticent.composition.bracket import Bracket
from reticent.composition.enclose import enclose
from reticent.composition.polygon import NO_RISK, Polygon, hull, safest
from reticent.composition.steps import Step, steps_of
from reticent.mechanism import Mechanism, Neighbouring
from reticent.mechanism.pairs import Disclosure
from reticent.tradeoff import GaussianTradeOff, LogErrors, symmetrised
from reticent.tradeoff._logs import log1mexp


@lru_cache(maxsize=64)  # every adversary of a release is held against the same worst case
def compose(mechanism: Mechanism, neighbouring: Neighbouring) -> Bracket:
    """Enclose the worst-case trade-off curve of everything that ``mechanism`` released.

    Both curves are symmetrised: they hold whichever of the two data sets is the true one. Poisson-sampled
    Gaussian steps follow Proposition 30 of ZHU2022 (add/remove, zero-out) and docs/replace-dominance.md;
    composition is Theorem 3.2 of DONG2022, so adaptive choice of later steps is covered. What other
    samplers may claim is decided in ``mechanism.dpsgd``. The other end stands on releases that some data
    set of the named sampler attains; where none is known it is perfect privacy.

    The advantage is mostly enclosed within 1e-6 (docs/composition.md says where not). Where no route
    certifies, the enclosure is wide but holds, and ``notes`` say why; ``routes`` say what was asked.

    Raises:
        UnsupportedError: no dominating pair is proven for this sampler or noise under ``neighbouring``.
    """
    whole, attained = steps_of(mechanism, neighbouring), steps_of(mechanism, neighbouring, attained=True)
    replaced = neighbouring is Neighbouring.REPLACE
    both = replaced or (neighbouring is Neighbouring.ZERO_OUT and _displaces(mechanism))
    enclosed = _composed(*whole, both)
    if attained == whole and both is replaced:
        return enclosed
    least = _composed(*attained, replaced)
    notes = tuple(dict.fromkeys((*enclosed.notes, *least.notes)))
    return Bracket.checked(enclosed.pessimistic, least.optimistic, notes, (*enclosed.routes, *least.routes))


def _composed(noisy: tuple[Step, ...], seen: float, both: bool) -> Bracket:
    """The curve of these steps; ``both``: without noise, either hypothesis may show itself."""
    if seen == 1.0:
        return Bracket.exact(_disclosed(1.0, both))
    if not noisy and seen == 0.0:
        return Bracket.exact(GaussianTradeOff(0.0))
    if not noisy:
        disclosed = _disclosed(seen, both)
        return Bracket.exact(hull([disclosed, disclosed.reversed]))
    if len(noisy) == 1 and noisy[0].count == 1 and seen == 0.0:
        return Bracket.exact(symmetrised(noisy[0].curve()))
    with np.errstate(all="ignore"):  # what overflows is replaced by trivial bounds, never passed on
        found = enclose(noisy, _disclosed(_ever_sampled(noisy), both))
        above, below = (_reveal(curve, seen, both) for curve in (found.pessimistic, found.optimistic))
        curves = safest([above, above.reversed]), hull([below, below.reversed])
        return Bracket.checked(*curves, found.notes, tuple(found.routes))


def _displaces(mechanism: Mechanism) -> bool:
    """Whether a release without noise may show whom the target displaced."""
    pairs = [part.pair for part in mechanism.parts_under(Neighbouring.ZERO_OUT)]
    return any(isinstance(pair, Disclosure) and pair.displaces for pair in pairs)


def _ever_sampled(noisy: tuple[Step, ...]) -> float:
    """Probability that the target took part at all: what it would show without any noise."""
    if any(step.pair.sample_rate == 1.0 for step in noisy):
        return 1.0
    return -math.expm1(sum(step.count * math.log1p(-step.pair.sample_rate) for step in noisy))


def _disclosed(seen: float, both: bool) -> Polygon:
    """Nothing but a noiseless look with probability ``seen``."""
    return _reveal(NO_RISK, seen, both)


def _reveal(curve: Polygon, seen: float, both: bool) -> Polygon:
    """``curve``, and with probability ``seen`` the target itself (``both``: under either hypothesis).

    Under add/remove only presence shows itself: beta becomes (1 - seen) beta. Under replacement either
    value does: the error pairs shrink towards the origin.
    """
    if seen == 0.0:
        return curve
    with np.errstate(divide="ignore"):
        unseen = np.log1p(-seen)
    fpr, tnr, fnr, _ = curve.vertices
    fnr = fnr + unseen
    if both:
        return Polygon(LogErrors.of(fpr + unseen, fnr), curve.log_slopes)
    return Polygon(LogErrors(fpr=fpr, tnr=tnr, fnr=fnr, tpr=log1mexp(fnr)), curve.log_slopes + unseen)

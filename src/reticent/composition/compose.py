"""From what was run to the enclosed worst-case curve."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial

import numpy as np

from reticent.composition.bracket import Bracket
from reticent.composition.chernoff import CheapBounds
from reticent.composition.lattice import compose_lattice
from reticent.composition.polygon import Polygon, hull, polygon_above, polygon_through, safest, strictest
from reticent.composition.spectral import SampledStep, SpectralComposition
from reticent.composition.steps import Step, steps_of
from reticent.errors import NumericalError
from reticent.mechanism import Mechanism, Neighbouring
from reticent.mechanism.pairs import AntipodalGaussianPair, Disclosure, GaussianPair
from reticent.tradeoff import GaussianTradeOff, LogErrors, TradeOff, symmetrised
from reticent.tradeoff._logs import log1mexp

_DEEP = -27.0  # log of delta, 2e-12, that a curve should reach
_ROUNDING = 1e-9  # of log delta of a Gaussian curve
DISCLOSED = 1.0 - 1e-10  # advantage at which the cheap bounds have said all that matters
_WIDTH = 1e-6  # of the advantage: beyond it the next route is tried as well
_WIDE = 1e-3  # of the advantage: worth a note
_UNRESOLVED = "The numerical error of the worst case is large here: its advantage is known within {:.1g} only ({})."
_FIRST_POINTS, _MOST_POINTS = 2**16, 2**20  # of lattices
_AIMED = 5e-8  # width of the advantage on a lattice that is fine enough
_MISSED = 1e-15, 1e-9  # probability that a lattice's window may miss: the second resolves what is left more finely


@lru_cache(maxsize=64)  # every adversary of a release is held against the same worst case
def compose(mechanism: Mechanism, neighbouring: Neighbouring) -> Bracket:
    """Enclose the worst-case trade-off curve of everything that ``mechanism`` released.

    Both curves are symmetrised: they hold whichever of the two data sets is the true one. Poisson-sampled
    Gaussian steps follow Proposition 30 of ZHU2022 (add/remove, zero-out) and docs/replace-dominance.md;
    composition is Theorem 3.2 of DONG2022, so adaptive choice of later steps is covered. What other
    samplers may claim is decided in ``mechanism.dpsgd``. The other end stands on releases that some data
    set of the named sampler attains; where none is known it is perfect privacy.

    The advantage is mostly enclosed within 1e-6 (docs/composition.md says where not). Where no route
    certifies, the enclosure is wide but holds, and ``notes`` say why.

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
    return Bracket.checked(
        enclosed.pessimistic, least.optimistic, tuple(dict.fromkeys((*enclosed.notes, *least.notes)))
    )


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
        *curves, notes = _enclosing(noisy, both)
        above, below = (_reveal(curve, seen, both) for curve in curves)
        return Bracket.checked(safest([above, above.reversed]), hull([below, below.reversed]), notes)


def _displaces(mechanism: Mechanism) -> bool:
    """Whether a release without noise may show whom the target displaced."""
    pairs = [part.pair for part in mechanism.parts_under(Neighbouring.ZERO_OUT)]
    return any(isinstance(pair, Disclosure) and pair.displaces for pair in pairs)


_Pair = tuple[Polygon, Polygon]


def _enclosing(noisy: Sequence[Step], both: bool) -> tuple[Polygon, Polygon, tuple[str, ...]]:
    """Characteristic function; lattices while the advantage is wide; and what is cheap and always there."""
    steps = [(step.curve(), step.count) for step in noisy]
    cheap = CheapBounds(steps, [step.pair.largest_losses for step in noisy])
    above = [*cheap.above(), *_told(noisy), _disclosed(_ever_sampled(noisy), both)]
    below = [cheap.below(), loudest_step(steps)]
    reasons: list[str] = []

    def followed(route: Callable[[], _Pair]) -> _Pair | None:
        try:
            pair = route()
        except NumericalError as error:
            reasons.append(str(error))
            return None
        above.append(pair[0])
        below.append(pair[1])
        return pair

    if max(curve.delta(0.0) for curve in below) < DISCLOSED:
        spectral = spectral_composition(noisy)
        pair = None if spectral is None else followed(spectral.polygons)
        if pair is None or _width(above, below) > _WIDTH or not _reaches(pair[0]):
            coarse = followed(partial(_lattice, noisy, _FIRST_POINTS, _MISSED[0]))
            if _width(above, below) > _WIDTH:
                followed(partial(_lattice, noisy, _finer(coarse), _MISSED[0]))
            if _width(above, below) > _WIDTH:
                followed(partial(_lattice, noisy, _MOST_POINTS, _MISSED[1]))
    width, why = _width(above, below), "; ".join(reasons) or "no computation is finer"
    return strictest(above), hull(below), () if width < _WIDE else (_UNRESOLVED.format(width, why),)


def _width(above: Sequence[Polygon], below: Sequence[Polygon]) -> float:
    """Between the bounds on the advantage."""
    return float(min(curve.delta(0.0) for curve in above) - max(curve.delta(0.0) for curve in below))


def _reaches(curve: Polygon) -> bool:
    """Whether delta is followed far down in both directions: contours that cannot be had are left out."""
    return bool(max(curve.vertices.tpr[0], curve.reversed.vertices.tpr[0]) < _DEEP)


def _finer(coarse: _Pair | None) -> int:
    """Points that narrow a first lattice to ``_WIDTH``: the width falls with the square of the spacing."""
    if coarse is None:
        return _MOST_POINTS
    doublings = math.ceil(math.log(2.0 * _width([coarse[0]], [coarse[1]]) / _WIDTH, 4.0))
    return min(_FIRST_POINTS * 2 ** max(doublings, 1), _MOST_POINTS)


def _lattice(noisy: Sequence[Step], points: int, tail: float) -> _Pair:
    steps = [(step.curve(), step.count) for step in noisy]
    anchor = max(noisy, key=lambda step: step.count).anchor
    return compose_lattice(steps, _AIMED, points, anchor, tail)


def spectral_composition(noisy: Sequence[Step]) -> SpectralComposition | None:
    """The characteristic-function route for these steps; None where a step is not a sampled Gaussian."""
    plain, sampled = 0.0, []
    for step in noisy:
        match step.pair:
            case GaussianPair(noise_multiplier=noise, sample_rate=1.0, shift=shift):
                plain = shift / noise
            case GaussianPair(noise_multiplier=noise, sample_rate=rate, shift=shift):
                sampled.append(SampledStep(noise / shift, rate, False, step.count))
            case AntipodalGaussianPair(noise_multiplier=noise, sample_rate=rate):
                sampled.append(SampledStep(noise, rate, True, step.count))
            case _:
                return None
    return SpectralComposition(tuple(sampled), plain)


def loudest_step(steps: Sequence[tuple[TradeOff, int]]) -> Polygon:
    """The curve of a simple attacker: reject H0 if any step's loss exceeds a threshold. Exact rates."""
    sizes = np.geomspace(1e-6, 1e6, 400)
    thresholds = np.concatenate([sizes[::-1], [0.0], -sizes])
    fpr, fnr = np.full(len(thresholds), -np.inf), np.zeros(len(thresholds))
    for curve, count in steps:
        rates = LogErrors(*(np.minimum(rate, 0.0) for rate in curve.errors(thresholds)))
        # Of a rate and its complement the smaller one is known to all digits.
        tnr = np.where(rates.fpr < -1.0, log1mexp(rates.fpr), rates.tnr)
        missed = np.where(rates.tpr < -1.0, log1mexp(rates.tpr), rates.fnr)
        any_step = np.where(rates.fpr < -700.0, np.log(count) + rates.fpr, log1mexp(count * tnr))
        fpr, fnr = np.logaddexp(fpr, any_step), fnr + count * missed  # kinds of steps: union bound
    fpr = np.minimum(fpr, 0.0)
    return polygon_through(LogErrors(fpr=fpr, tnr=log1mexp(fpr), fnr=fnr, tpr=log1mexp(fnr)))


def _told(noisy: Sequence[Step]) -> list[Polygon]:
    """Without sampling an attacker is at least as strong, and Gaussian steps compose to one: finite at every delta."""
    mus = [(step.count, step.pair.unsampled_mu) for step in noisy]
    if any(mu is None for _, mu in mus):
        return []
    mu = math.sqrt(sum(count * mu**2 for count, mu in mus if mu is not None))
    thresholds = mu * (0.5 * mu + np.linspace(-8.0, 40.0, 481))
    thresholds = np.unique(np.append(0.0, thresholds[thresholds > 0.0]))
    log_delta = GaussianTradeOff(mu).log_delta(thresholds) + _ROUNDING
    log_delta = np.minimum(np.concatenate([log_delta[:0:-1], log_delta]), 0.0)
    return [polygon_above(np.concatenate([-thresholds[:0:-1], thresholds]), log_delta, log1mexp(log_delta))]


def _ever_sampled(noisy: Sequence[Step]) -> float:
    """Probability that the target took part at all: what it would show without any noise."""
    if any(step.pair.sample_rate == 1.0 for step in noisy):
        return 1.0
    return -math.expm1(sum(step.count * math.log1p(-step.pair.sample_rate) for step in noisy))


def _disclosed(seen: float, both: bool) -> Polygon:
    """Nothing but a noiseless look with probability ``seen``."""
    ends = LogErrors(*(np.array(rate) for rate in ([-np.inf, 0.0], [0.0, -np.inf], [0.0, -np.inf], [-np.inf, 0.0])))
    return _reveal(Polygon(ends, np.zeros(1)), seen, both)


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
    vertices = LogErrors(fpr=fpr, tnr=tnr, fnr=fnr, tpr=log1mexp(fnr))
    slopes = curve.log_slopes + unseen
    if both:
        fpr = fpr + unseen
        vertices, slopes = LogErrors(fpr=fpr, tnr=log1mexp(fpr), fnr=fnr, tpr=log1mexp(fnr)), curve.log_slopes
    return Polygon(vertices, slopes)

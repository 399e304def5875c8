"""From what was run to the enclosed worst-case curve."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from reticent.composition._affinity import affinity
from reticent.composition.bracket import Bracket
from reticent.composition.lattice import Steps, compose_lattice
from reticent.composition.pairs import AntipodalPair
from reticent.composition.polygon import Polygon, hull, polygon_through
from reticent.composition.polygon_hull import stricter
from reticent.composition.sampling import accountable, attained_shift, shift
from reticent.composition.spectral import SampledStep, SpectralComposition
from reticent.errors import NumericalError, UnsupportedError
from reticent.mechanism import DPSGD, Gaussian, Laplace, Ledger, Mechanism, Neighbouring, Sampler
from reticent.tradeoff import GaussianTradeOff, LaplaceTradeOff, LogErrors, Subsampled, TradeOff, symmetrised
from reticent.tradeoff._logs import log1mexp

_DEEP = -27.0  # log of delta, 2e-12, that a curve should reach
_WIDTH = 1e-6  # of the advantage: beyond it the next route is tried as well
# Aimed width, points, what the window may miss: the second gives up the far tails for a finer grid.
_LATTICES = ((5e-8, 2**20, 1e-15), (5e-9, 2**21, 1e-9))


@lru_cache(maxsize=64)  # every adversary of a release is held against the same worst case
def compose(mechanism: Mechanism, neighbouring: Neighbouring) -> Bracket:
    """Enclose the worst-case trade-off curve of everything that ``mechanism`` released.

    Both curves are symmetrised: they hold whichever of the two data sets is the true one. Poisson-sampled
    Gaussian steps follow Proposition 30 of ZHU2022 (add/remove, zero-out) and docs/replace-dominance.md;
    composition is Theorem 3.2 of DONG2022, so adaptive choice of later steps is covered. What other
    samplers may claim is decided in ``composition.sampling``. The other end stands on releases that some data
    set of the named sampler attains; where none is known it is perfect privacy.

    The advantage is mostly enclosed within 1e-6 (docs/composition.md says where not). Where no route
    certifies, the enclosure is wide but holds: the release without noise or the affinity bound on the safe
    side, the loudest single step or the likelihood ratio test on the other.

    Raises:
        UnsupportedError: no dominating pair is proven for this sampler or noise under ``neighbouring``.
    """
    whole, attained = steps_of(mechanism, neighbouring), steps_of(mechanism, neighbouring, attained=True)
    replaced = neighbouring is Neighbouring.REPLACE
    both = replaced or (neighbouring is Neighbouring.ZERO_OUT and _displaces(mechanism))
    enclosed = _composed(*whole, both)
    if attained == whole and both is replaced:
        return enclosed
    return Bracket(pessimistic=enclosed.pessimistic, optimistic=_composed(*attained, replaced).optimistic)


def _composed(noisy: tuple[Step, ...], seen: float, both: bool) -> Bracket:
    """The curve of these steps; ``both``: without noise, either hypothesis may show itself."""
    if seen == 1.0:
        return Bracket.exact(_disclosed(1.0, both))
    if not noisy and seen == 0.0:
        return Bracket.exact(GaussianTradeOff(0.0))
    if not noisy:
        return Bracket.exact(_both_ways(_disclosed(seen, both)))
    if len(noisy) == 1 and noisy[0].count == 1 and seen == 0.0:
        return Bracket.exact(symmetrised(noisy[0].curve()))
    with np.errstate(all="ignore"):  # what overflows is replaced by trivial bounds, never passed on
        pessimistic, optimistic = (_both_ways(_reveal(curve, seen, both)) for curve in _enclosing(noisy, both))
    return Bracket(pessimistic=pessimistic, optimistic=optimistic)


def _displaces(mechanism: Mechanism) -> bool:
    """Whether a batch of fixed size may show, without noise, whom the target displaced."""
    parts = mechanism.parts if isinstance(mechanism, Ledger) else (mechanism,)
    fixed = [part for part in parts if isinstance(part, DPSGD) and part.sampler is Sampler.FIXED_SIZE]
    return any(part.noise_multiplier == 0.0 for part in fixed)


def _enclosing(noisy: Sequence[Step], both: bool) -> tuple[Polygon, Polygon]:
    """Characteristic function, lattices while the advantage is wide, and what is cheap where neither applies."""
    steps = [(step.curve(), step.count) for step in noisy]
    anchor = max(noisy, key=lambda step: step.count).anchor
    found: tuple[Polygon, Polygon] | None = None
    routes: list[Callable[[], tuple[Polygon, Polygon]]] = [partial(_spectral, noisy)]
    routes += [partial(compose_lattice, steps, width, points, anchor, tail) for width, points, tail in _LATTICES]
    for route in routes:
        with contextlib.suppress(NumericalError):
            pair = route()
            found = pair if found is None else (stricter(found[0], pair[0]), hull([found[1], pair[1]]))
        tight = found is not None and float(found[0].delta(0.0) - found[1].delta(0.0)) <= _WIDTH
        if found is not None and tight and (route is not routes[0] or _reaches(found[0])):
            break
    safe = _strongest(noisy, both)
    if found is None:
        return safe, _weakest(noisy, steps)
    pessimistic, optimistic = found
    if pessimistic.delta(0.0) > safe.delta(0.0):
        pessimistic = safe
    if float(pessimistic.delta(0.0) - optimistic.delta(0.0)) > _WIDTH:
        optimistic = hull([optimistic, _weakest(noisy, steps)])
    return pessimistic, optimistic


def _reaches(curve: Polygon) -> bool:
    """Whether delta is followed far down in both directions: contours that cannot be had are left out."""
    return bool(max(curve.vertices.tpr[0], curve.reversed.vertices.tpr[0]) < _DEEP)


def _spectral(noisy: Sequence[Step]) -> tuple[Polygon, Polygon]:
    spectral = spectral_composition(noisy)
    if spectral is None:
        raise NumericalError("characteristic function: not all steps are sampled Gaussians")
    return spectral.polygons()


def _strongest(noisy: Sequence[Step], both: bool) -> Polygon:
    """A cheap safe curve: the release without noise, or the affinity bound, whichever is smaller.

    Total variation is at most sqrt(1 - rho^2) with rho the affinity, and affinities multiply.
    """
    seen, minus_log = _ever_sampled(noisy), _minus_log_affinity(noisy)
    if minus_log is None:
        return _disclosed(seen, both)
    distance = math.sqrt(-math.expm1(-2.0 * minus_log[1])) * (1.0 + 1e-12)
    return _through(0.0, 1.0 - distance) if distance < seen else _disclosed(seen, both)


def _weakest(noisy: Sequence[Step], steps: Steps) -> Polygon:
    """A cheap curve on the other side: the loudest step alone, or the errors of the likelihood ratio test.

    These add up to at most rho, because min(P, Q) <= sqrt(PQ).
    """
    loudest, minus_log = loudest_step(steps), _minus_log_affinity(noisy)
    if minus_log is None or 1.0 - 2.0 * math.exp(-minus_log[0]) <= loudest.delta(0.0):
        return loudest
    both = min(math.exp(-minus_log[0]) * (1.0 + 1e-12), 1.0)
    return polygon_through(LogErrors(*(np.array([x]) for x in _logs(both, both))))


def _minus_log_affinity(noisy: Sequence[Step]) -> tuple[float, float] | None:
    """Bounds on -log of the affinity of everything; None where a step has none in closed form."""
    lower, upper = 0.0, 0.0
    for step in noisy:
        if step.laplace or step.symmetric:
            return None
        if step.sample_rate == 1.0:
            exact = step.count * (step.shift / step.noise_multiplier) ** 2 / 8.0
            lower, upper = lower + exact, upper + exact
            continue
        relation = Neighbouring.REPLACE if step.antipodal else Neighbouring.ADD_REMOVE
        noise = step.noise_multiplier if step.antipodal else step.noise_multiplier / step.shift
        one = affinity(np.array(noise), np.array(step.sample_rate), relation).minus_log
        lower, upper = lower + step.count * float(one.lower), upper + step.count * float(one.upper)
    return lower, upper


def _through(fpr: float, fnr: float) -> Polygon:
    """The line of slope -1 between (fpr, fnr) and (fnr, fpr)."""
    return Polygon(
        LogErrors(*(np.array(pair) for pair in zip(_logs(fpr, fnr), _logs(fnr, fpr), strict=True))), np.zeros(1)
    )


def _logs(fpr: float, fnr: float) -> tuple[float, float, float, float]:
    """log fpr, tnr, fnr, tpr."""
    with np.errstate(divide="ignore"):
        return float(np.log(fpr)), float(np.log1p(-fpr)), float(np.log(fnr)), float(np.log1p(-fnr))


def spectral_composition(noisy: Sequence[Step]) -> SpectralComposition | None:
    """The characteristic-function route for these steps; None where a step is not a sampled Gaussian."""
    plain, sampled = 0.0, []
    for step in noisy:
        if step.laplace or step.symmetric:
            return None
        if step.sample_rate == 1.0:
            plain = step.shift / step.noise_multiplier
        else:
            # The antipodal pair is written with means -1 and +1, whatever the sensitivity.
            noise = step.noise_multiplier if step.antipodal else step.noise_multiplier / step.shift
            sampled.append(SampledStep(noise, step.sample_rate, step.antipodal, step.count))
    return SpectralComposition(tuple(sampled), plain)


def loudest_step(steps: Sequence[tuple[TradeOff, int]]) -> Polygon:
    """The curve of a simple attacker: reject H0 if any step's loss exceeds a threshold. Exact rates."""
    sizes = np.geomspace(1e-6, 1e6, 400)
    thresholds = np.concatenate([sizes[::-1], [0.0], -sizes])
    tnr, fnr = np.zeros(len(thresholds)), np.zeros(len(thresholds))
    for curve, count in steps:
        rates = curve.errors(thresholds)
        tnr, fnr = tnr + count * np.minimum(rates.tnr, 0.0), fnr + count * np.minimum(rates.fnr, 0.0)
    return polygon_through(LogErrors(fpr=log1mexp(tnr), tnr=tnr, fnr=fnr, tpr=log1mexp(fnr)))


def _ever_sampled(noisy: Sequence[Step]) -> float:
    """Probability that the target took part at all: what it would show without any noise."""
    if any(step.sample_rate == 1.0 for step in noisy):
        return 1.0
    return -math.expm1(sum(step.count * math.log1p(-step.sample_rate) for step in noisy))


@dataclass(frozen=True, slots=True)
class Step:
    """A kind of noisy step: its dominating pair and how many times it ran.

    Attributes:
        law: "gaussian" or "laplace" noise.
        noise_multiplier: standard deviation or Laplace scale, in units of one record's contribution, > 0.
        sample_rate: probability that the target takes part.
        shift: how far the target moves the sum when it does.
        antipodal: replacement under Poisson sampling: shifts -1 and +1 against each other.
        symmetric: sampling without replacement, unless records are added or removed: the symmetrised pair.
        count: number of such steps.
    """

    laplace: bool
    noise_multiplier: float
    sample_rate: float
    shift: float
    antipodal: bool = False
    symmetric: bool = False
    count: int = 1

    @property
    def anchor(self) -> float:
        """Distance between the two atoms of the losses; 0 where there are none."""
        if not self.laplace:
            return 0.0
        high, low = (math.log1p(self.sample_rate * math.expm1(x * self.shift / self.noise_multiplier)) for x in (1, -1))
        return high - low

    def curve(self) -> TradeOff:
        """The pair as a curve, H0 = absent."""
        if self.antipodal:
            return AntipodalPair(self.noise_multiplier, self.sample_rate)
        mu = self.shift / self.noise_multiplier
        plain = LaplaceTradeOff(mu) if self.laplace else GaussianTradeOff(mu)
        if self.sample_rate == 1.0:
            return plain
        sampled = Subsampled(plain, self.sample_rate)
        return symmetrised(sampled) if self.symmetric else sampled


def steps_of(
    mechanism: Mechanism, neighbouring: Neighbouring, *, attained: bool = False
) -> tuple[tuple[Step, ...], float]:
    """The kinds of noisy steps, and the probability that a noiseless one showed the target.

    Plain Gaussian releases are merged into one: their parameters add in squares. Equal steps are counted
    together; the order of parts is dropped, as the curve does not depend on it. With ``attained``, steps that some
    data set has: what only dominates is weakened or left out.
    """
    parts = mechanism.parts if isinstance(mechanism, Ledger) else (mechanism,)
    counts: Counter[Step] = Counter()
    squared, log_unseen = 0.0, 0.0
    for part in parts:
        step, count = _step(part, neighbouring, attained)
        if count == 0:
            continue
        if part.noise_multiplier == 0.0:
            log_unseen += count * math.log1p(-step.sample_rate) if step.sample_rate < 1.0 else -math.inf
        elif step.sample_rate == 1.0 and not step.laplace:
            squared += count * (step.shift / step.noise_multiplier) ** 2
        else:
            counts[step] += count
    steps = [
        Step(s.laplace, s.noise_multiplier, s.sample_rate, s.shift, s.antipodal, s.symmetric, n)
        for s, n in counts.items()
    ]
    if squared > 0.0:
        steps.append(Step(laplace=False, noise_multiplier=1.0, sample_rate=1.0, shift=math.sqrt(squared)))
    return tuple(sorted(steps, key=repr)), -math.expm1(log_unseen)


def _step(part: Gaussian | Laplace | DPSGD, neighbouring: Neighbouring, attained: bool) -> tuple[Step, int]:
    if isinstance(part, Laplace):
        if part.sample_rate < 1.0 and neighbouring is Neighbouring.REPLACE:
            raise UnsupportedError("no dominating pair is proven for sampled Laplace releases under replace")
        return Step(True, part.noise_multiplier, part.sample_rate, neighbouring.sensitivity), part.releases
    if isinstance(part, Gaussian):
        return Step(False, part.noise_multiplier, 1.0, neighbouring.sensitivity), part.releases
    run, far = accountable(part), attained_shift(part, neighbouring) if attained else shift(part, neighbouring)
    fixed = run.sampler is Sampler.FIXED_SIZE
    step = Step(
        laplace=False,
        noise_multiplier=run.noise_multiplier,
        sample_rate=run.sample_rate,
        shift=far,
        antipodal=neighbouring is Neighbouring.REPLACE and not fixed and run.sample_rate < 1.0,
        symmetric=fixed and neighbouring is not Neighbouring.ADD_REMOVE and not attained,
    )
    return step, run.steps if far > 0.0 else 0


def _both_ways(curve: Polygon) -> Polygon:
    """Lower convex envelope of the curve and its inverse."""
    return hull([curve, curve.reversed])


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

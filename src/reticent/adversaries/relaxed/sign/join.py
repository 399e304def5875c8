"""The relaxed adversary who lacks one sign, the same in all releases, composed exactly: the one way in.

The target moves each sampled gradient sum, or each scalar release, by +1 or by -1 clip norm; the attacker knows
everything but which. It tests "absent" against "present with a fair random sign", whose likelihood ratio after all
steps is (e^{L+} + e^{L-})/2; by symmetry this is the maximin test over the two signs. Steps may differ: given the sign
they are independent, so L+ and L- are sums. For more than one trained parameter the curve is on the safe side: knowing
the direction up to its sign only helps.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Sequence
from enum import Enum
from functools import lru_cache
from typing import TypeGuard

import numpy as np

from reticent.adversaries.relaxed.sign import lattice, transform
from reticent.adversaries.relaxed.sign.noise import GaussianSign, Kinds, LaplaceSign, SignNoise
from reticent.adversaries.relaxed.sign.rough import rough_delta
from reticent.adversaries.relaxed.sign.step import CertifiedBounds, FoldedNodes
from reticent.kernel.accountants.bounds import CheapBounds, loudest_step
from reticent.kernel.accountants.compose import compose
from reticent.kernel.accountants.enclose import CURVE
from reticent.kernel.accountants.grouped import fewer_below
from reticent.kernel.accountants.one_direction import one_direction, steps_of
from reticent.kernel.accountants.steps import Step
from reticent.kernel.curves import LogErrors, TradeOff, symmetrised
from reticent.kernel.curves._logs import LOG_2, log1mexp
from reticent.kernel.curves.enclosure import Enclosure
from reticent.kernel.curves.polygon import Polygon, Sides, hull, polygon_above, polygon_through, safest, strictest
from reticent.kernel.errors import NumericalError, UnsupportedError
from reticent.kernel.mechanisms import DPSGD, Mechanism
from reticent.kernel.messages import Message
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.stopping import checkpoint
from reticent.mechanisms import Laplace

_BLURS = (0.004, 0.012, 0.05)  # of the transform, as it takes them: the first that fits
_LEAST_NOISE = 0.25  # noise multiplier below which no transform decays in time: of 250 such runs none did
_OFTEN, _MANY = 3.0, 100  # expected uses, and steps, from which on few frequencies do
_FEW_FREQUENCIES = 400_000  # the most of an estimate
_FEW = 30  # steps: the transform of so few does not decay
_MOST_KINDS = 12  # of steps: each costs as much as a run of its own
_TILTS = np.geomspace(0.05, 20.0, 40)  # of both losses, beyond "present"
_TILT_SPACING = 0.01  # of the nodes for their moments
_SHARES = np.geomspace(1e-5, 0.3, 16)  # t of ``_halved``
_FURTHEST = 300.0  # threshold
_DEEP = -16.5  # log of delta that the Fourier enclosure should reach: 7e-8


class Part(Enum):
    """Which part of the question is asked."""

    BOTH = "both directions, symmetrised, and never above the worst case"
    ADDITION = "addition; ``reversed`` gives removal"
    CLAIM = "what a search may claim: both directions from above, without the worst case where that takes time"


@lru_cache(maxsize=64)  # the relaxed and the mixed attacker ask for the same release
def unknown_sign(
    release: Mechanism, neighbouring: Neighbouring = Neighbouring.ADD_REMOVE, part: Part = Part.BOTH
) -> Enclosure:
    """Enclosure of the common-sign curve.

    Guaranteed: the truth lies between the two curves (docs/theory/relaxed/sign.md derives each error term;
    double-precision rounding is bounded term by term, without interval arithmetic). delta down to 1e-6 is
    enclosed to a relative 3e-4 to 8e-3 for epsilon up to about 8 and steps from about 100 to 1e4 (addition; removal
    is up to thirty times wider near its largest epsilon, which the symmetrised curve does not use). Fewer
    steps, and rare large losses, go to a lattice: relative 1e-4 to 5e-2. Where neither fits (many kinds
    of steps, very rarely sampled ones) the answer is the worst case above and the two-sided test of the worst case
    below, at most log 2 in epsilon apart, and ``notes`` say why.

    By RETICENT:common-sign and RETICENT:laplace-sign.

    Args:
        release: DP-SGD with noise that tells no batch, or several such runs of one model; or scalar releases with
            Laplace noise. The sign is the same in all of it. Shuffled runs count each started epoch as one release of
            all data, and nothing is claimed from below.
        neighbouring: ``replace`` for scalar releases without sampling only.
        part: what is asked.
    """
    kinds = _kinds(release, neighbouring)
    exact = kinds[0][0].curve if [count for _, count in kinds] == [1] else None
    if part is Part.CLAIM and exact is None:
        with contextlib.suppress(NumericalError):
            return Enclosure.from_above(_both_directions(bounds(kinds).above, safest))
    found = _addition(release, neighbouring, kinds) if exact is None else Enclosure.exact(exact)
    if part is Part.ADDITION:
        return found
    above = _both_directions(found.pessimistic, safest)
    if isinstance(above, Polygon):
        above = strictest([above, compose(release, neighbouring).pessimistic])
    if any(run.sampler.in_passes and run.sample_rate < 1.0 for run in release.trainings):
        return Enclosure.from_above(above, found.notes)  # no data set is known that shows as much
    return Enclosure(above, _both_directions(found.optimistic, hull), found.notes)


def quick_sign_estimate(release: Mechanism) -> Callable[[np.ndarray], np.ndarray] | None:
    """delta(epsilon >= 0) without a certificate, in some 20 ms; None where it cannot be had.

    By few frequencies, or from a coarse lattice of its own.
    """
    runs = release.trainings
    if not runs or any(not run.sampler.independent or run.noise_multiplier == 0.0 for run in runs):
        return None
    kinds = _of_runs(runs)
    if _decays(kinds) and all(steps >= _MANY and kind.rate * steps >= _OFTEN for kind, steps in kinds):
        with contextlib.suppress(NumericalError):
            return transform.estimate(kinds, _BLURS[0], _FEW_FREQUENCIES)
    with contextlib.suppress(NumericalError):
        return rough_delta(kinds)
    return None


_Kinds = tuple[tuple[SignNoise, int], ...]
"""Steps that the routes follow, and how often each runs."""


def _kinds(release: Mechanism, neighbouring: Neighbouring) -> _Kinds:
    """Equal steps together.

    Raises:
        UnsupportedError: more than one sign is hidden there, or none.
    """
    size = neighbouring.sensitivity
    match release:
        case Laplace(noise_multiplier=b, sample_rate=rate, releases=count) if b > 0.0 and (rate == 1.0 or size == 1.0):
            return ((LaplaceSign(rate, size / b), count),)
    runs = [run.accountable for run in release.trainings if run.noise_multiplier > 0.0]
    hidden = all(run.sampler.independent or run.sample_rate == 1.0 for run in runs)
    if not runs or len(runs) < len(release.parts) or not hidden or size > 1.0:
        raise UnsupportedError("one unknown sign is not followed through this release and relation; use the worst case")
    return _of_runs(runs)


def _of_runs(runs: Sequence[DPSGD]) -> tuple[tuple[GaussianSign, int], ...]:
    """All releases of all data are one: given the sign their optimally weighted sum is sufficient."""
    counts: Counter[GaussianSign] = Counter()
    squared = 0.0
    for run in runs:
        if run.sample_rate == 1.0:
            squared += run.steps * (run.records / run.noise_multiplier) ** 2
        else:
            counts[GaussianSign(run.sample_rate, 1.0 / run.noise_multiplier, run.records)] += run.steps
    whole = [(GaussianSign(1.0, math.sqrt(squared)), 1)] if squared > 0.0 else []
    return (*sorted(counts.items(), key=repr), *whole)


def _addition(release: Mechanism, neighbouring: Neighbouring, kinds: _Kinds) -> Enclosure:
    """By the routes; far out, and where none fits, from the worst case; from cheap bounds where it discloses all."""
    known = steps_of(release, neighbouring)[0]  # for an attacker who knows the sign
    sides: list[Sides] = []
    notes: tuple[Message, ...] = ()
    with np.errstate(all="ignore"):  # what overflows becomes a trivial bound
        fewer = fewer_below(known)
        least = _two_sided(CheapBounds(fewer).below())
        if float(least.delta(0.0)) <= CURVE.disclosed:
            try:
                sides.append(bounds(kinds).sides())
                if not _single(kinds) or sides[0].above.reaches(_DEEP):
                    return Enclosure(*sides[0])
            except NumericalError as error:
                notes = (Message("note.sign-not-followed", reason=str(error)),)
            with contextlib.suppress(NumericalError):
                sides.append(_coarse(kinds, known))
        if not sides:
            below = hull([least, _two_sided(loudest_step(fewer))])
            return Enclosure(compose(release, neighbouring).pessimistic, below, notes)
        return Enclosure(strictest([one.above for one in sides]), hull([one.below for one in sides]), notes)


@lru_cache(maxsize=2)  # a search asks for what is above first, and for tests at the answer
def bounds(kinds: _Kinds) -> CertifiedBounds:
    """By Fourier sums with the least blur that fits: a larger one needs fewer frequencies. Else from the lattice.

    Raises:
        NumericalError: the lattice cannot follow the losses, or there are too many kinds.
    """
    if len(kinds) > _MOST_KINDS:
        raise NumericalError(f"{len(kinds)} kinds of steps, at most {_MOST_KINDS} are followed")
    if _decays(kinds):
        for blur in _BLURS:
            with contextlib.suppress(NumericalError):
                return transform.bounds(kinds, blur)
    return lattice.bounds(kinds, points=lattice.POINTS)


def _single(kinds: lattice.Kinds) -> TypeGuard[Kinds]:
    """Whether each step has Gaussian noise and one record of the person."""
    return all(isinstance(kind, GaussianSign) and kind.records == 1 for kind, _ in kinds)


def _decays(kinds: lattice.Kinds) -> TypeGuard[Kinds]:
    """Whether the transform may decay: not of few steps, or with little noise."""
    return _single(kinds) and all(
        kind.rate < 1.0 and 1.0 / kind.slope >= _LEAST_NOISE and steps > _FEW for kind, steps in kinds
    )


def _coarse(kinds: _Kinds, known: tuple[Step, ...]) -> Sides:
    """From the worst case alone: one-sided losses above, a two-sided test below."""
    worst = one_direction(known, 0.0, either_shows=False)
    above, below = worst.pessimistic, worst.optimistic
    if not (isinstance(above, Polygon) and isinstance(below, Polygon)):
        raise NumericalError("common sign: a single step has no bounds of its own")
    return Sides(_halved(above, kinds) if _single(kinds) else above, _two_sided(below))


def _two_sided(one_sided: Polygon) -> Polygon:
    """ "Reject if L+ or L- is large": at most twice the false positives of one half, no more false negatives.

    Args:
        one_sided: a curve for an attacker who knows the sign.
    """
    corners = one_sided.vertices
    fpr = np.minimum(corners.fpr + LOG_2, 0.0)
    return polygon_through(LogErrors(fpr, log1mexp(fpr), corners.fnr, corners.tpr))


def _halved(worst: Polygon, kinds: Kinds) -> Polygon:
    """Upper bound on the add direction far out, where only one of the two signs can be likely.

    With x = e^{L+}/2, y = e^{L-}/2 and any 0 < t < 1: (x + y - K)_+ <= (x - (1-t)K)_+ + (y - (1-t)K)_+
    + (x + y) 1{x, y > tK}, hence delta(l) <= delta_worst(l + log 2(1-t)) + Q+(L- > l + log 2t), and the
    last term has a Chernoff bound.
    """
    moments = np.zeros(len(_TILTS))
    for kind, steps in kinds:
        nodes = FoldedNodes.of(kind, _TILT_SPACING)
        moments += [steps * nodes.log_moment(1.0 + t, abs(1.0 - t)) for t in _TILTS]
    slopes = worst.log_slopes[np.isfinite(worst.log_slopes)]
    ratio = np.unique(np.clip(np.concatenate([slopes, slopes - LOG_2, [0.0]]), -_FURTHEST, _FURTHEST))
    forward = np.maximum(ratio, 0.0)
    best = worst.log_delta(forward)
    for share in _SHARES:
        checkpoint()
        one_sign = worst.log_delta(forward + LOG_2 + np.log1p(-share))
        level = forward + np.log(2.0 * share)
        both = np.min(moments[None, :] - _TILTS[None, :] * level[:, None], axis=1)
        best = np.minimum(best, np.logaddexp(one_sign, both))
    log_delta = np.where(ratio >= 0.0, best, worst.reversed.log_delta(np.maximum(-ratio, 0.0)))
    return polygon_above(ratio, np.minimum(log_delta, 0.0))


def _both_directions(curve: TradeOff, join: Callable[[list[Polygon]], Polygon]) -> TradeOff:
    """Both directions at once: the symmetrised curve.

    Args:
        join: ``hull`` for what is attained, ``safest`` for a bound.
    """
    return join([curve, curve.reversed]) if isinstance(curve, Polygon) else symmetrised(curve)

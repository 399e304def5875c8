"""The relaxed adversary against DP-SGD where the direction is unknown in d dimensions, enclosed on both sides.

Above, the best of several bounds at every threshold: moments of the likelihood ratio, whole or cut where an attack
would already have succeeded, the revealed mask, and the common sign. Below, attackers with exact error rates. For all
records of one person: moments, which hold however their directions depend on each other, and the worst case.
docs/theory/relaxed/dimension.md has the model and the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from reticent.adversaries.relaxed.dimension import (
    attacks_from_below,
    chi_square,
    one_normal,
    overlaps,
    revealed_mask,
)
from reticent.adversaries.relaxed.dimension.directions import DirectionLaw
from reticent.adversaries.relaxed.dimension.norms import composed_norms
from reticent.adversaries.relaxed.dimension.second_moment import ORDERS
from reticent.adversaries.relaxed.sign.join import unknown_sign
from reticent.curves import RelaxedGaussianTradeOff
from reticent.curves.bessel import log_mean_exponential
from reticent.kernel.accountants.compose import compose
from reticent.kernel.curves import LogErrors, Subsampled, TradeOff, symmetrised
from reticent.kernel.curves._logs import LOG_2
from reticent.kernel.curves.enclosure import Enclosure
from reticent.kernel.curves.polygon import Polygon, hull, polygon_through, strictest, symmetric_above
from reticent.kernel.errors import NumericalError, UnsupportedError
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.pairs import Neighbouring

_THRESHOLDS = 70  # of a bound, and 0
_FURTHEST = 60.0  # threshold
_LEAST_NOISE = 1e-3  # below, the answer is the common sign, and nothing is claimed from below
_NO_MATTER = -18.5  # log of delta, 1e-8: below it the common sign may be left out
_UNDERFLOW = -700.0  # log of delta: what is smaller counts as this, so that no bound becomes 0 by rounding
_LITTLE_NOISE, _WIDE = 1.0, 1.3  # noise below which, and ratio of both ends above which, moments are cut
_SEEN = 0.5  # advantage that attackers reach from which cutting moments has nothing to offer
_STRIDE, _AROUND = 7, 4  # an estimate asks for the revealed mask at one threshold in this many, and around the best
_ROUGH = 1e-6  # relative error of tails that only steer
_LARGEST_EXPONENT = 600.0  # of what is only bounded: more counts as this
_ASKED = np.append(0.0, np.geomspace(1e-5, _FURTHEST, 200))  # thresholds at which the common sign is weighed
_NEAREST, _LEAST_LOG = 0.03, -60.0  # first threshold of a grid, in deviations; log of the variance, at least
_SPLITS = np.array([0.0, 0.2, 0.4, 0.6, 0.8])  # shares of a threshold


@lru_cache(maxsize=64)
def relaxed_in(run: DPSGD, dimension: int) -> Enclosure:
    """Enclosure of the curve over one direction that is unknown in ``dimension`` dimensions: add/remove and zero-out.

    The common sign is left out where attackers who lack only the sign are seen to reach more than the other bounds
    allow, at every threshold with delta above 1e-8.

    Both directions, symmetrised. Equal to ``unknown_sign`` for dimension 1, and exact without sampling and for
    one step of one record. Several records of one person under sampling: each of their directions, in each step, is
    uniform for the attacker, and they may depend on each other in any way; without sampling they are one direction.
    Shuffled runs count each started epoch as one release.

    Raises:
        UnsupportedError: batches of fixed size: the record that the target displaces has a direction that the attacker
            knows.
    """
    plain = _plain(run, dimension)
    if plain is not None:
        return plain
    if run.records > 1:
        return _of_person(run, dimension)
    with np.errstate(all="ignore"):  # what overflows becomes a trivial bound
        above, below = _above(run, dimension), _below(run, dimension)
        notes: tuple[str, ...] = ()
        if _may_be_cut(run, float(above.delta(0.0)), float(below.delta(0.0))):
            above, below, notes = _sharpened(run, dimension, above, below)
        if not _surpassed(above, run):
            above = strictest([unknown_sign(run).pessimistic, above])
        return Enclosure.checked(above, below, notes)


def relaxed_estimate(run: DPSGD, dimension: int, threshold: float | None, fpr: float) -> TradeOff:
    """Roughly the claimed curve, near ``threshold`` or, without one, near ``fpr``: for a search to start from.

    Moments at all thresholds of the claimed curve, the revealed mask at those nearby: what the claim is made of there,
    where nothing sharper is asked.

    Args:
        threshold: in nats, >= 0; or None.
        fpr: false positive rate, in (0, 1).
    """
    plain = _plain(run, dimension)
    if plain is not None:
        return plain.pessimistic
    if run.records > 1:
        return relaxed_in(run, dimension).pessimistic
    case = run.noise_multiplier, run.sample_rate, run.steps
    with np.errstate(all="ignore"):
        orders = ORDERS if threshold != 0.0 else ORDERS[:1]  # the others are for tails
        norms = log_norms(*case, dimension, orders=orders)
        thresholds = grid(norms)
        logs = one_normal.log_deltas(norms, thresholds)
        if threshold is None:
            coarse = np.arange(0, len(thresholds), _STRIDE)
            rough = np.maximum(*revealed_mask.log_deltas(*case, dimension, thresholds[coarse], rtol=_ROUGH))
            middles = [_best(thresholds, np.maximum(*logs), fpr), _STRIDE * _best(thresholds[coarse], rough, fpr)]
        else:
            middles = [int(np.searchsorted(thresholds, threshold))]
        around = np.add.outer(middles, np.arange(-_AROUND, _AROUND + 1)).ravel()
        near = np.unique(np.append(0, np.clip(around, 0, len(thresholds) - 1)))
        revealed = revealed_mask.log_deltas(*case, dimension, thresholds[near], rtol=_ROUGH)
        return _with_revealed_mask(thresholds, logs, near, revealed)


def _best(thresholds: np.ndarray, log_delta: np.ndarray, fpr: float) -> int:
    """Where delta(l) + e^l fpr, a bound on the power at ``fpr``, is least."""
    return int(np.argmin(np.logaddexp(log_delta, thresholds + math.log(fpr))))


def _of_person(run: DPSGD, dimension: int) -> Enclosure:
    """All records of one person. Above, moments and the worst case; below, one direction for all of them.

    Each record's direction, in each step, is uniform for the attacker; they may depend on each other in any way. The
    revealed mask and the common sign would need one direction for all.
    """
    worst, case = compose(run, Neighbouring.ADD_REMOVE), (run.noise_multiplier, run.sample_rate, run.steps)
    if run.noise_multiplier < _LEAST_NOISE:
        return Enclosure.from_above(worst.pessimistic, worst.notes)
    with np.errstate(all="ignore"):
        moments = _by_moments(log_norms(*case, dimension, records=run.records))
        below = _reached(attacks_from_below.error_rates(*case, dimension, records=run.records))
        return Enclosure.checked(strictest([moments, worst.pessimistic]), below, worst.notes)


def _plain(run: DPSGD, dimension: int) -> Enclosure | None:
    """The answers that need no bounds; None for several sampled steps in more than one dimension."""
    if run.sampler.tells_all or dimension == 1:
        return unknown_sign(run)
    if run.noise_multiplier < _LEAST_NOISE and run.records == 1:  # who lacks more than a sign may reach less
        sign = unknown_sign(run)
        return Enclosure.from_above(sign.pessimistic, sign.notes)
    if run.sample_rate == 1.0 or run.sampler.in_passes:
        epochs = run.accountable
        strength = epochs.steps * (run.records / run.noise_multiplier) ** 2
        curve = symmetrised(RelaxedGaussianTradeOff(strength, dimension))
        # Shuffled batches may show less: no data set is known that attains it.
        return Enclosure.exact(curve) if run.sample_rate == 1.0 else Enclosure.from_above(curve)
    if run.steps == 1 and run.records == 1:
        step = Subsampled(RelaxedGaussianTradeOff(run.noise_multiplier**-2.0, dimension), run.sample_rate)
        return Enclosure.exact(symmetrised(step))
    return None


def _above(run: DPSGD, dimension: int) -> Polygon:
    """By moments and by the revealed mask, both directions."""
    case = run.noise_multiplier, run.sample_rate, run.steps
    norms = log_norms(*case, dimension)
    thresholds = grid(norms)
    logs, revealed = one_normal.log_deltas(norms, thresholds), revealed_mask.log_deltas(*case, dimension, thresholds)
    return _with_revealed_mask(thresholds, logs, slice(None), revealed)


_Deltas = tuple[np.ndarray, np.ndarray]
"""Upper bounds on log delta, of addition and of removal."""


def _with_revealed_mask(thresholds: np.ndarray, logs: _Deltas, at: np.ndarray | slice, revealed: _Deltas) -> Polygon:
    """Both directions by ``logs``, and by ``revealed`` where it is known: ``at`` some of the thresholds."""
    for log, other in zip(logs, revealed, strict=True):
        log[at] = np.fmin(log[at], other)
    return both_directions(thresholds, *logs)


def _may_be_cut(run: DPSGD, upper: float, lower: float) -> bool:
    """Whether it is worth a look: little noise, or an advantage that is not known well, and not large."""
    return lower < _SEEN and upper > lower and (run.noise_multiplier < _LITTLE_NOISE or upper > _WIDE * lower)


def _sharpened(run: DPSGD, dimension: int, above: Polygon, below: Polygon) -> tuple[Polygon, Polygon, tuple[str, ...]]:
    """Both ends with moments that are cut, and with the norms of single steps where these can show enough; notes."""
    case = run.noise_multiplier, run.sample_rate, run.steps
    thresholds = grid(log_norms(*case, dimension))
    bounds = [above, both_directions(thresholds, *overlaps.over_absent(*case, dimension).log_deltas(thresholds))]
    reached = float(below.delta(0.0))
    if _most_by_norms(run, dimension) <= reached:
        return strictest(bounds), below, ()
    try:
        norms = composed_norms(*case, dimension, reached)
        bounds.append(norms_and_direction(run, dimension, norms.above, thresholds))
    except NumericalError as error:
        return strictest(bounds), below, (f"The norms of single steps were left out of both ends: {error}.",)
    return strictest(bounds), hull([below, norms.below, norms.below.reversed]), ()


def _most_by_norms(run: DPSGD, dimension: int) -> float:
    """The second-moment bound on the advantage of an attacker who looks at the norms of single steps alone."""
    log_mean = float(log_mean_exponential(np.array([run.noise_multiplier**-2.0]), float(dimension))[0])
    log_x = run.steps * math.log1p(run.sample_rate**2 * math.expm1(min(log_mean, _LARGEST_EXPONENT)))
    return 0.5 * math.sqrt(math.expm1(min(log_x, _LARGEST_EXPONENT)))


def norms_and_direction(run: DPSGD, dimension: int, norms: Polygon, thresholds: np.ndarray) -> Polygon:
    """By way of a third law, that of a fresh direction in every step, R.

    From R(A) <= e^s P0(A) + delta_1(s) and P1(A) <= e^t R(A) + delta_2(t): delta(s + t) <= e^t delta_1(s) + delta_2(t),
    and the same from P0 by way of R to P1.

    By RETICENT:norms-and-direction.
    """
    kept = overlaps.over_norms(run.noise_multiplier, run.sample_rate, run.steps, dimension)
    later = thresholds[:, None] * _SPLITS
    first = thresholds[:, None] - later
    joined, parted = (log.reshape(later.shape) for log in kept.log_deltas(later.ravel()))
    add = np.min(np.logaddexp(later + norms.log_delta(first), joined), axis=1)
    remove = np.min(np.logaddexp(norms.reversed.log_delta(first), first + parted), axis=1)
    return both_directions(thresholds, np.minimum(add, 0.0), np.minimum(remove, 0.0))


def _surpassed(above: Polygon, run: DPSGD) -> bool:
    """Whether attackers who lack only the sign reach more than ``above`` allows, at every delta that matters.

    Then the common sign cannot lower the curve there, and seconds are saved. What they reach: simple attacks, and the
    worst case at a threshold larger by log 2. A wrong answer costs time or width, never the bound.
    """
    allowed = above.log_delta(_ASKED)
    open_still = (allowed >= _NO_MATTER) & (allowed > _below(run, 1).log_delta(_ASKED))
    if not np.any(open_still):
        return True
    floor = compose(run, Neighbouring.ADD_REMOVE).optimistic.log_delta(_ASKED + LOG_2)
    return bool(np.all(~open_still | (allowed <= floor)))


def log_norms(
    noise: float, rate: float, steps: int, dimension: int, records: int = 1, orders: Sequence[float] = ORDERS
) -> dict[float, float]:
    """Per order q, log of an upper bound on ||LR - 1||_q^2.

    By RETICENT:hypercontractive.

    Args:
        records: of the person.
        orders: q, each >= 2.
    """
    return {q: chi_square.log_chi_square(noise, rate, steps, dimension, records, q) for q in orders}


def grid(norms: dict[float, float]) -> np.ndarray:
    """0, and thresholds from far below one standard deviation of the likelihood ratio to far beyond.

    Args:
        norms: as from ``log_norms``, order 2 among them.
    """
    deviation = math.exp(0.5 * min(max(norms[2.0], _LEAST_LOG), 0.0))
    return np.append(0.0, np.geomspace(_NEAREST * deviation, _FURTHEST, _THRESHOLDS))


def both_directions(thresholds: np.ndarray, add: np.ndarray, remove: np.ndarray) -> Polygon:
    """The symmetrised curve that obeys upper bounds on log delta of addition and of removal.

    Args:
        thresholds: l >= 0, increasing from 0.
        add, remove: upper bounds on log delta there.
    """
    return symmetric_above(thresholds, np.maximum(np.maximum(add, remove), _UNDERFLOW))


def _by_moments(norms: dict[float, float]) -> Polygon:
    """The symmetrised curve that moments allow."""
    thresholds = grid(norms)
    return both_directions(thresholds, *one_normal.log_deltas(norms, thresholds))


def _below(run: DPSGD, dimension: int) -> Polygon:
    """What simple attackers reach, in both directions."""
    return _reached(attacks_from_below.error_rates(run.noise_multiplier, run.sample_rate, run.steps, dimension))


def _reached(rates: tuple[np.ndarray, np.ndarray]) -> Polygon:
    """The curve through (false positive rate, power) of legal tests, and of the same tests the other way."""
    curve = polygon_through(log_errors(*rates))
    return hull([curve, curve.reversed])


def log_errors(fpr: np.ndarray, power: np.ndarray) -> LogErrors:
    """Of tests with this false positive rate and power, in [0, 1] or not a number: then a test is left out."""
    return LogErrors(np.log(fpr), np.log1p(-fpr), np.log1p(-power), np.log(power))


def relaxed_under(run: DPSGD, law: DirectionLaw) -> Polygon:
    """Estimated curve for a target whose direction follows ``law``: moments, and never above the worst case.

    Args:
        run: one record per person.

    Raises:
        UnsupportedError: another release than Poisson-sampled DP-SGD with noise.
    """
    run.one_record("a law of directions")
    if not run.sampler.independent or run.sample_rate == 1.0 or run.noise_multiplier == 0.0:
        raise UnsupportedError(
            "a law of directions is answered for Poisson-sampled DP-SGD with noise only; state a dimension"
        )
    with np.errstate(all="ignore"):
        moments = _by_moments({q: law.log_chi_square(run, q) for q in ORDERS})
        return strictest([moments, compose(run, Neighbouring.ADD_REMOVE).pessimistic])

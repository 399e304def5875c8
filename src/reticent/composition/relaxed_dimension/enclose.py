"""The relaxed adversary against DP-SGD where the direction is unknown in d dimensions, enclosed on both sides.

Above, the best of three bounds at every threshold: moments of the likelihood ratio, the mask told, and the common sign.
Below, attackers with exact error rates. docs/relaxed-dimension.md has the model and the proofs.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from reticent import _check
from reticent.composition.bracket import Bracket
from reticent.composition.composed import certified_advantage
from reticent.composition.polygon import Polygon, hull, polygon_above, polygon_through, strictest
from reticent.composition.relaxed_dimension import second_moment, tests_from_below, told_mixture
from reticent.composition.relaxed_dimension.second_moment import LogMoment
from reticent.composition.sign.join import relaxed_dpsgd
from reticent.errors import UnsupportedError
from reticent.mechanism import DPSGD, Neighbouring, Sampler
from reticent.mechanism.dpsgd import accountable
from reticent.tradeoff import GaussianTradeOff, LogErrors, RelaxedGaussianTradeOff, Subsampled, symmetrised
from reticent.tradeoff._logs import log1mexp

_THRESHOLDS = 70
_FURTHEST = 60.0  # threshold
_LEAST_NOISE = 1e-3  # below, nothing but the sampling hides the target: the common sign says it all
_FEW_LEVELS, _FEW_GROUPS = 7, 25  # of the attackers that are tried for the advantage alone
_NO_MATTER = -18.5  # log of delta, 1e-8: below it the common sign may be left out
_UNDERFLOW = -700.0  # log of delta: what is smaller counts as this, so that no bound becomes 0 by rounding
_LARGE = 0.1  # advantage from which the worst case is asked as well


@lru_cache(maxsize=64)
def relaxed_in(run: DPSGD, dimension: int) -> Bracket:
    """Enclosure of the curve over one direction that is unknown in ``dimension`` dimensions: add/remove and zero-out.

    The common sign is left out where attackers who lack only the sign are seen to reach more than the other two bounds
    allow, at every threshold with delta above 1e-8.

    Both directions, symmetrised. Equal to ``relaxed_dpsgd`` for dimension 1, and exact without sampling and for
    one step. Shuffled runs count each started epoch as one release. Batches of fixed size get the worst case: the
    record that the target displaces has a direction that the attacker knows.

    Args:
        run: DP-SGD with noise_multiplier > 0.
        dimension: of the space in which the attacker does not know the direction, >= 1: a statement of the user.

    Raises:
        UnsupportedError: no noise.
        ParameterError: ``dimension`` is not a whole number >= 1.
    """
    if run.records > 1 and run.sample_rate < 1.0 and run.sampler is Sampler.POISSON:
        told = relaxed_dpsgd(run)  # told the line on which the direction lies, an attacker is no weaker
        return told if dimension == 1 else Bracket(told.pessimistic, GaussianTradeOff(0.0))
    plain = _plain(run, _check.count(dimension=dimension))
    if plain is not None:
        return plain
    with np.errstate(all="ignore"):  # what overflows becomes a trivial bound
        above = _above(run, dimension)
        if not _surpassed(above, _below(run, 1)):
            above = strictest([relaxed_dpsgd(run).pessimistic, above])
        return Bracket.checked(above, _below(run, dimension))


def relaxed_advantage(run: DPSGD, dimension: int) -> tuple[float, float]:
    """(lower, upper) around the advantage alone, in milliseconds; the upper end may be that of the worst case.

    The common sign is left out: it matters for few dimensions and large signals only, where ``relaxed_in`` is tighter.

    Raises:
        UnsupportedError: no noise.
    """
    plain = _plain(run, _check.count(dimension=dimension))
    if plain is not None or dimension == 1 or run.records > 1:
        curves = plain or relaxed_in(run, dimension)
        return float(curves.optimistic.delta(0.0)), float(curves.pessimistic.delta(0.0))
    noise, rate, steps = run.noise_multiplier, run.sample_rate, run.steps
    with np.errstate(all="ignore"):
        moment = 0.5 * second_moment.log_chi_square(noise, rate, steps, second_moment.uniform(dimension)) - math.log(
            2.0
        )
        told = told_mixture.log_deltas(noise, rate, steps, dimension, np.zeros(1))[0][0]
        fpr, power = tests_from_below.error_rates(noise, rate, steps, dimension, _FEW_LEVELS, _FEW_GROUPS)
    upper = min([1.0, *(math.exp(min(log, 0.0)) for log in (moment, told) if not math.isnan(log))])
    if upper > _LARGE:
        upper = min(upper, certified_advantage(noise, rate, steps, Neighbouring.ADD_REMOVE)[1])
    return min(max(float(np.nanmax(power - fpr)), 0.0), upper), upper


def _plain(run: DPSGD, dimension: int) -> Bracket | None:
    """The answers that need no bounds; None for several sampled steps in more than one dimension."""
    if run.noise_multiplier == 0.0:
        raise UnsupportedError("without noise the direction is seen: use the worst case")
    if run.sampler is Sampler.FIXED_SIZE or dimension == 1 or run.noise_multiplier < _LEAST_NOISE:
        return relaxed_dpsgd(run)
    if run.sample_rate == 1.0 or run.sampler is Sampler.SHUFFLED:
        epochs = accountable(run)
        strength = epochs.steps * (run.records / run.noise_multiplier) ** 2
        curve = symmetrised(RelaxedGaussianTradeOff(strength, dimension))
        attained = run.sample_rate == 1.0  # shuffled batches may show less: no data set is known that attains it
        return Bracket(pessimistic=curve, optimistic=curve if attained else GaussianTradeOff(0.0))
    if run.steps == 1:
        step = Subsampled(RelaxedGaussianTradeOff(run.noise_multiplier**-2.0, dimension), run.sample_rate)
        return Bracket.exact(symmetrised(step))
    return None


def _above(run: DPSGD, dimension: int) -> Polygon:
    """By moments and by the mask told, both directions."""
    noise, rate, steps = run.noise_multiplier, run.sample_rate, run.steps
    norms = log_norms(noise, rate, steps, second_moment.uniform(dimension))
    thresholds = grid(norms)
    told = told_mixture.log_deltas(noise, rate, steps, dimension, thresholds)
    moments = second_moment.log_deltas(norms, thresholds)
    return both_directions(thresholds, *(np.fmin(one, other) for one, other in zip(told, moments, strict=True)))


def _surpassed(above: Polygon, attained: Polygon) -> bool:
    """Whether attackers who lack only the sign reach more than ``above`` allows, at every delta that matters.

    Then the common sign cannot lower the curve there, and seconds are saved.
    """
    thresholds = np.append(0.0, np.geomspace(1e-5, _FURTHEST, 200))
    allowed = above.log_delta(thresholds)
    return bool(np.all((allowed < _NO_MATTER) | (allowed <= attained.log_delta(thresholds))))


def log_norms(noise: float, rate: float, steps: int, moment: LogMoment) -> dict[float, float]:
    """Per order q, log of an upper bound on ||LR - 1||_q^2."""
    return {q: second_moment.log_chi_square(noise, rate, steps, moment, q) for q in second_moment.ORDERS}


def grid(norms: dict[float, float]) -> np.ndarray:
    """0, and thresholds from far below one standard deviation of the likelihood ratio to far beyond."""
    deviation = math.exp(0.5 * min(max(norms[2.0], -60.0), 0.0))
    return np.append(0.0, np.geomspace(0.03 * deviation, _FURTHEST, _THRESHOLDS))


def both_directions(thresholds: np.ndarray, add: np.ndarray, remove: np.ndarray) -> Polygon:
    """The symmetrised curve that obeys upper bounds on log delta of addition and of removal."""
    log_delta = np.maximum(np.maximum(add, remove), _UNDERFLOW)
    both = np.concatenate([log_delta[:0:-1], log_delta])
    return polygon_above(np.concatenate([-thresholds[:0:-1], thresholds]), both, log1mexp(np.minimum(both, 0.0)))


def _below(run: DPSGD, dimension: int) -> Polygon:
    """What simple attackers reach, in both directions."""
    fpr, power = tests_from_below.error_rates(run.noise_multiplier, run.sample_rate, run.steps, dimension)
    known = np.isfinite(fpr) & np.isfinite(power)
    fpr, power = fpr[known], power[known]
    curve = polygon_through(LogErrors(np.log(fpr), np.log1p(-fpr), np.log1p(-power), np.log(power)))
    return hull([curve, curve.reversed])

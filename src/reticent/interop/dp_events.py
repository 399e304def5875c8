"""dp_accounting's event trees, in and out.

A tree becomes a mechanism only if the mechanism says the same: what has no counterpart is refused by
name, and every count is carried through. Noise multipliers mean the same on both sides (noise over the
largest contribution of one record).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from reticent.kernel import checks
from reticent.kernel.curves.binomial import log_masses
from reticent.kernel.errors import ParameterError, UnsupportedError, needing
from reticent.kernel.mechanisms import DPSGD, Gaussian, Mechanism
from reticent.kernel.mechanisms.ledger import together
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.samplers import SAMPLERS
from reticent.mechanisms import ZCDP, Guarantee, Laplace, MatrixMechanism, RandomisedResponse, Selection
from reticent.pairs import Fixed, Geometric, NegativeBinomial, Poisson, Runs

with needing("reticent.interop.dp_events", "interop"):
    from dp_accounting import NeighboringRelation, dp_event

_REASONS: dict[type[dp_event.DpEvent], str] = {
    dp_event.UnsupportedDpEvent: "it says itself that it has no description",
    dp_event.ZCDpEvent: "only a rho without a xi is read",
    dp_event.RandomizedResponseDpEvent: "randomised response with more than two answers is not among the mechanisms",
    dp_event.DiscreteLaplaceDpEvent: "discrete noise is not among the mechanisms",
    dp_event.MixtureOfGaussiansDpEvent: "only sensitivities 0, c, 2c, ... with binomial probabilities are read, those "
    "of all records of a person",
    dp_event.SampledWithReplacementDpEvent: "sampling with replacement is not among the samplers",
}


def from_dp_event(event: dp_event.DpEvent) -> Mechanism:
    """The mechanism that an event tree describes.

    Supported: Gaussian, Laplace, NonPrivate (no noise), NoOp (dropped), Composed and SelfComposed
    (counts multiply), Poisson sampling of Gaussians (also several on one sample: they merge into one of
    noise ``1/sqrt(sum 1/noise^2)``) and of further Poisson sampling (rates multiply), sampling without
    replacement of one Gaussian, Poisson batches that are cut, randomised response with two answers, binomial mixtures
    of Gaussians (all records of a person), repeat-and-select, and of newer versions what states an epsilon (and a
    delta).

    Raises:
        UnsupportedError: an event has no counterpart; the text names it. Or the tree releases nothing.
        ParameterError: a parameter is outside its domain (a count that is not whole or below 1, ...).
    """
    parts = tuple(_parts(event, 1))
    if not parts:
        raise UnsupportedError("the event tree releases nothing, so there is no mechanism to assess")
    return together(parts)


def to_dp_event(mechanism: Mechanism) -> dp_event.DpEvent:
    """The event tree of a mechanism.

    Shuffled epochs have no event, nor has random allocation; they become what is proven of an attacker who learns
    the step of the record: one Gaussian release per started epoch.

    Raises:
        UnsupportedError: a fixed-size run does not state its data size and batch size.
        ParameterError: it is no mechanism.
    """
    if not isinstance(mechanism, Mechanism):
        wanted = "a mechanism, such as rt.dpsgd(...); rt.assess and rt.certify read files"
        raise ParameterError("mechanism", mechanism, wanted)
    if mechanism.parts != (mechanism,):
        return dp_event.ComposedDpEvent([to_dp_event(part) for part in mechanism.parts])
    if (run := mechanism.equivalent().sums) is not None:
        return _repeated(_sampled(run.accountable), run.accountable.steps)
    match mechanism:
        case Laplace(noise_multiplier=noise, releases=count, sample_rate=rate):
            event = dp_event.LaplaceDpEvent(noise)
            return _repeated(event if rate == 1.0 else dp_event.PoissonSampledDpEvent(rate, event), count)
        case RandomisedResponse(flip_probability=flip, releases=count):
            event = dp_event.RandomizedResponseDpEvent(2.0 * flip, 2)
            # Spelt out: dp_accounting's accountant takes a repeated event of this kind for one.
            return event if count == 1 else dp_event.ComposedDpEvent([event] * count)
        case Guarantee(stated_epsilon=epsilon, stated_delta=delta, releases=count):
            kind = getattr(dp_event, "EpsilonDeltaDpEvent", None)
            if kind is None:
                raise UnsupportedError("this version of dp_accounting has no event for an epsilon and a delta")
            return _repeated(kind(epsilon, delta), count)
        case ZCDP(rho=rho, releases=count):
            return _repeated(dp_event.ZCDpEvent(rho), count)
        case Selection(base=base, runs=runs):
            return dp_event.RepeatAndSelectDpEvent(to_dp_event(base), float(runs.mean), _shape(runs))
        case _:
            raise UnsupportedError(
                f"{mechanism.name} has no event in dp_accounting that gives the same mechanism when read back"
            )


def relation(neighbouring: Neighbouring) -> NeighboringRelation:
    """dp_accounting's name of a neighbouring relation."""
    return {
        Neighbouring.ADD_REMOVE: NeighboringRelation.ADD_OR_REMOVE_ONE,
        Neighbouring.REPLACE: NeighboringRelation.REPLACE_ONE,
        Neighbouring.ZERO_OUT: NeighboringRelation.REPLACE_SPECIAL,
    }[neighbouring]


def _repeated(event: dp_event.DpEvent, count: int) -> dp_event.DpEvent:
    return event if count == 1 else dp_event.SelfComposedDpEvent(event, count)


def _sampled(run: DPSGD) -> dp_event.DpEvent:
    """One step of a run whose batches are drawn anew in each step."""
    noise, rate = run.noise_multiplier, run.sample_rate
    if not run.sampler.independent:
        run.one_record(f"an event of {run.sampler.name} batches")
        event = run.sampler.event(run)
        if event is None:
            raise UnsupportedError(f"{run.sampler.name} batches have no event in dp_accounting")
        return event
    if rate == 1.0:
        return dp_event.GaussianDpEvent(noise / run.records)
    if run.records == 1:
        return dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(noise))
    shifts = [float(records) for records in range(run.records + 1)]
    return dp_event.MixtureOfGaussiansDpEvent(noise, shifts, np.exp(log_masses(run.records, rate)).tolist())


def _parts(event: dp_event.DpEvent, count: int) -> Iterator[Mechanism]:
    """What ``event`` releases when it runs ``count`` times, in order."""
    match event:
        case dp_event.NoOpDpEvent():
            return
        case dp_event.NonPrivateDpEvent():
            yield Gaussian(noise_multiplier=0.0, releases=count)
        case dp_event.GaussianDpEvent(noise_multiplier=noise):
            yield Gaussian(noise_multiplier=_number(noise), releases=count)
        case dp_event.LaplaceDpEvent(noise_multiplier=noise):
            yield Laplace(noise_multiplier=_number(noise), releases=count)
        case dp_event.RandomizedResponseDpEvent(noise_parameter=random, num_buckets=2):
            # With probability ``random`` the answer is a fair coin, which is wrong half of the time.
            yield RandomisedResponse(flip_probability=0.5 * random, releases=count)
        case dp_event.SingleEpochTreeAggregationDpEvent(noise_multiplier=noise, step_counts=steps):
            longest = max(steps) if isinstance(steps, list) else steps  # a record is in one of the trees
            tree = MatrixMechanism(noise, checks.count(step_counts=longest), "tree")
            yield from [tree] * count
        case dp_event.RepeatAndSelectDpEvent():
            yield from [_selection(event)] * count
        case dp_event.MixtureOfGaussiansDpEvent():
            yield _mixture(event, count)
        case dp_event.ZCDpEvent(rho=rho, xi=0):
            yield ZCDP(_number(rho), count)
        case dp_event.SelfComposedDpEvent(event=inner, count=times):
            yield from _parts(inner, count * checks.count(count=times))
        case dp_event.ComposedDpEvent(events=events):
            for inner in events:  # the curve does not depend on the order: each part repeats in place
                yield from _parts(inner, count)
        case dp_event.PoissonSampledDpEvent(sampling_probability=rate, event=inner):
            yield from _poisson(checks.fraction(sampling_probability=rate), inner, count)
        case _ if type(event).__name__ in _GUARANTEES and isinstance(event, dp_event.DpEvent):  # of newer versions
            yield Guarantee(_number(event.epsilon), _number(getattr(event, "delta", 0.0)), count)
        case _:
            yield from _drawn(event, count)


_GUARANTEES = ("EpsilonDeltaDpEvent", "ExponentialMechanismDpEvent", "PermuteAndFlipDpEvent")
_READ = 1e-12  # relative, by which binomial probabilities may be rounded


def _selection(event: dp_event.RepeatAndSelectDpEvent) -> Selection:
    """The same parameters: the mean, and eta of a truncated negative binomial law, infinite for a Poisson law."""
    mean, shape = float(event.mean), float(event.shape)
    law = Poisson(mean) if shape == math.inf else Geometric(mean) if shape == 1.0 else NegativeBinomial(mean, shape)
    return Selection(from_dp_event(event.event), law)


def _shape(runs: Runs) -> float:
    if isinstance(runs, Fixed):
        raise UnsupportedError("RepeatAndSelectDpEvent has no fixed number of runs")
    return runs.shape if isinstance(runs, NegativeBinomial) else math.inf


def _mixture(event: dp_event.MixtureOfGaussiansDpEvent, count: int) -> DPSGD:
    """Multiples of one sensitivity with binomial probabilities: all records of a person, each drawn independently."""
    shifts, weights = np.array(event.sensitivities, dtype=float), np.array(event.sampling_probs, dtype=float)
    order = np.argsort(shifts)
    shifts, weights = shifts[order], weights[order]
    records = len(shifts) - 1
    if records < 1 or weights.shape != shifts.shape or shifts[0] != 0.0 or not 0.0 < weights[0] < 1.0:
        raise _unsupported(event)
    rate = -math.expm1(math.log(float(weights[0])) / records)
    even = np.allclose(shifts, shifts[1] * np.arange(records + 1), rtol=_READ, atol=0.0)
    if not even or not np.allclose(weights, np.exp(log_masses(records, rate)), rtol=1e3 * _READ, atol=1e-300):
        raise _unsupported(event)
    noise = _number(event.standard_deviation) / float(shifts[1])
    return DPSGD(noise, rate, count, records_per_user=records if records > 1 else None)


def _poisson(rate: float, event: dp_event.DpEvent, count: int) -> Iterator[Mechanism]:
    match event:
        case dp_event.PoissonSampledDpEvent(sampling_probability=inner_rate, event=inner):
            yield from _poisson(rate * checks.fraction(sampling_probability=inner_rate), inner, count)
        case dp_event.LaplaceDpEvent(noise_multiplier=noise):
            if rate > 0.0:
                yield Laplace(noise_multiplier=_number(noise), releases=count, sample_rate=rate)
        case _:
            together = _one_gaussian(event, "PoissonSampledDpEvent")
            if together is not None and rate > 0.0:
                yield DPSGD(noise_multiplier=together, sample_rate=rate, steps=count)


def _drawn(event: dp_event.DpEvent, count: int) -> Iterator[Mechanism]:
    """Steps of a sampler with an event of its own."""
    read = next(filter(None, (kind.of_event(event) for kind in SAMPLERS.values())), None)
    if read is None:
        raise _unsupported(event)
    fields, inner = read
    noise = _one_gaussian(inner, type(event).__name__)
    if noise is not None:
        yield DPSGD(noise_multiplier=noise, steps=count, **fields)


def _one_gaussian(event: dp_event.DpEvent, sampler: str) -> float | None:
    """Noise of the single Gaussian release that all releases on one sample amount to; None: nothing released.

    n releases of noise s_i on the same sample are dominated by N(0, 1) against N(mu, 1) with
    mu^2 = sum 1/s_i^2 (Corollary 3.3 of DONG2022), so by one release of noise 1/mu; sampling keeps the order.
    """
    precision, released = 0.0, False
    if isinstance(event, dp_event.GaussianDpEvent):
        return _number(event.noise_multiplier)
    for part in _parts(event, 1):
        plain = part.training is None and part.sums
        if not plain:
            raise UnsupportedError(f"{sampler} of {type(event).__name__}: only Gaussian releases can share a sample")
        if plain.noise_multiplier == 0.0:
            return 0.0
        released, precision = True, precision + plain.steps / plain.noise_multiplier**2
    return 1.0 / math.sqrt(precision) if released else None


def _number(value: Any) -> Any:
    """A tensor that holds one number, as that number: TensorFlow Privacy divides float32 tensors to get its noise."""
    held = np.asarray(value) if hasattr(value, "__array__") else None
    return held.item() if held is not None and held.ndim == 0 else value


def _unsupported(event: object) -> UnsupportedError:
    name = type(event).__name__
    if not isinstance(event, dp_event.DpEvent):
        return UnsupportedError(f"{name} is not a DpEvent")
    return UnsupportedError(f"{name}: {_REASONS.get(type(event), 'this event is not known')}")

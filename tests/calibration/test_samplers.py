"""Which sampler gives the least noise: the runs that are compared, and what fits a memory."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from fractions import Fraction

import pytest

import reticent as rt
from reticent.calibration import Mu, Plan, calibrate_samplers
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.registry import described
from reticent.kernel.samplers import SAMPLERS, Poisson, Sampler
from reticent.samplers import Cyclic, FixedSize, RandomAllocation, Shuffled, TruncatedPoisson
from tests.laws.leaves import BY_NAME


@dataclass(frozen=True, slots=True, repr=False)
class _Needing(Poisson):
    """A sampler that cannot be planned without a word on its coins."""

    coins: int = field(kw_only=True, metadata=described("How many coins."))


def largest_batch(run: rt.DPSGD) -> int:
    return run.sampler.largest_batch(run)


@pytest.mark.parametrize("sampler", [*BY_NAME, TruncatedPoisson])
def test_each_run_is_what_a_loader_would_make(sampler: type[Sampler]) -> None:
    run = Plan(1000, 3, memory=120).run(sampler, 64)
    assert (type(run.sampler), run.batch_size, run.dataset_size) == (sampler, 64, 1000)
    # Passes are cut into 16 batches, the last one smaller; coins take 1,000 / 64 steps per epoch on average.
    assert run.steps == (48 if sampler.in_passes else 47)
    assert getattr(run.sampler, "max_batch_size", None) == (120 if sampler is TruncatedPoisson else None)


def beyond(most: int, records: int, share: Fraction) -> Fraction:
    """P[Bin(records, share) > most], summed."""
    return sum(
        (math.comb(records, k) * share**k * (1 - share) ** (records - k) for k in range(most + 1, records + 1)),
        Fraction(0),
    )


@pytest.mark.parametrize(
    ("run", "share"),
    [
        (Plan(60, 2).run(SAMPLERS["poisson"], 7), Fraction(7, 60)),
        (Plan(60, 2).run(SAMPLERS["random-allocation"], 7), Fraction(1, 9)),
        # Several uses in an epoch make larger batches: each step has two ninths of the records.
        (rt.dpsgd(noise_multiplier=1.0, batch_size=7, dataset_size=60, epochs=2,
                  sampler=RandomAllocation(9, uses_per_epoch=2)), Fraction(2, 9)),
    ],
    ids=["poisson", "allocation", "twice"],
)  # fmt: skip
def test_the_largest_batch_is_exceeded_in_one_run_of_a_million(run: rt.DPSGD, share: Fraction) -> None:
    most = largest_batch(run)
    assert run.steps * beyond(most, 60, share) <= Fraction(1, 10**6) < run.steps * beyond(most - 1, 60, share)


def test_batches_of_one_size_are_the_largest() -> None:
    for sampler in (FixedSize, Shuffled, Cyclic):
        assert largest_batch(Plan(60, 2).run(sampler, 7)) == 7
    assert largest_batch(Plan(60, 2, memory=9).run(TruncatedPoisson, 7)) == 9
    assert largest_batch(Plan(60, 2, memory=90).run(TruncatedPoisson, 7)) == 60


@pytest.mark.parametrize("sampler", [*BY_NAME, TruncatedPoisson])
def test_the_largest_size_that_fits_is_the_last(sampler: type[Sampler]) -> None:
    plan = Plan(2000, 4, memory=80)
    size = plan.largest_that_fits(sampler)
    assert size is not None
    assert plan.fits(sampler, size)
    assert not plan.fits(sampler, size + 1)
    assert size == (80 if sampler in (FixedSize, Shuffled, Cyclic) else size)


def test_what_does_not_fit_is_left_out_with_its_reason() -> None:
    found, left_out = calibrate_samplers(Plan(1000, 2, memory=64), Mu(1.0), [Poisson, Shuffled, Cyclic], [64])
    assert [one.sampler for one in found] == [Shuffled, Cyclic]
    ((sampler, reason),) = [(one.sampler, one.reason) for one in left_out]
    assert sampler is Poisson
    assert "and 64 fit the memory" in reason
    with pytest.raises(UnsupportedError, match="not stated"):
        Plan(1000, 2).run(TruncatedPoisson, 64)
    _, left_out = calibrate_samplers(Plan(1000, 2, memory=200), Mu(1.0), [Cyclic, _Needing])
    assert [(one.sampler, one.batch_size, one.reason) for one in left_out] == [(_Needing, None, "no plan states coins")]
    _, left_out = calibrate_samplers(Plan(1000, 2, memory=1), Mu(1.0), [Poisson])
    assert left_out[0].batch_size is None


def test_the_least_noise_comes_first_and_is_that_of_calibrate() -> None:
    found = rt.calibrate_samplers(
        advantage=0.1, dataset_size=1000, epochs=2, batch_size=[50, 100], sampler=["poisson", "shuffled", "cyclic"]
    )
    noises = [one.noise_of_mean for one in found.choices]
    assert len(noises) == 6
    assert noises == sorted(noises)
    best = found.best
    assert (best.sampler, best.batch_size) == (Poisson, 100)
    run = rt.dpsgd(noise_multiplier=1, batch_size=100, dataset_size=1000, epochs=2)
    assert best.answer.value == pytest.approx(rt.calibrate(run, advantage=0.1).value, rel=2e-4, abs=0)
    assert json.loads(found.to_json())["rows"][0]["mechanism"]["noise_multiplier"] == best.answer.value
    assert "noise_of_mean" in str(found)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({}, "batch_size must be given, or a memory"),
        ({"batch_size": 1001}, "at most the dataset size"),
        ({"batch_size": 10, "sampler": "random"}, "random-allocation"),
        ({"batch_size": 10, "sampler": "truncated-poisson"}, "one with an answer"),
    ],
)
def test_mistakes(asked: dict, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        _ = rt.calibrate_samplers(advantage=0.1, dataset_size=1000, epochs=2, **asked).best

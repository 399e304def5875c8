"""Who was in which batch: exact tests on zeros and ones, their level, and what each of them finds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from reticent.attacks.participation import NOISE, Plan, participation_checks
from reticent.attacks.short_gradients import counts_alone

RUNS, STEPS, RECORDS, RATE = 8, 40, 60, 0.1


def fair(rng, rate=RATE):
    return rng.random((RUNS, STEPS, RECORDS)) < rate


def p_values(part, rng, rate=RATE):
    """The checks on participations with noise, and twenty coordinates that nobody has."""
    return checked(part, NOISE * rng.standard_normal((*part.shape[:2], part.shape[2] + 20)), rate)


def checked(part, noise, rate=RATE):
    sums = np.concatenate([part, np.zeros((*part.shape[:2], 20))], axis=2) + noise
    return {check.name: check.p_value for check in participation_checks(sums, part.shape[2], rate, NOISE)}


@pytest.mark.parametrize("repeats", [30, pytest.param(250, marks=pytest.mark.slow)])
@pytest.mark.parametrize("rate", [0.1, *(pytest.param(rate, marks=pytest.mark.slow) for rate in (0.5, 0.9))])
def test_p_values_are_uniform_or_larger_under_poisson_sampling(rate, repeats):
    rng = np.random.default_rng(1)
    found = [p_values(fair(rng, rate), rng, rate) for _ in range(repeats)]
    for name in found[0]:
        p = np.array([each[name] for each in found])
        for level in (0.002, 0.01, 0.05, 0.2, 0.5):
            assert (p <= level).sum() <= stats.binom.ppf(0.9999, repeats, level), (name, level)
    smallest = np.array([min(each.values()) * len(each) for each in found])
    assert (smallest <= 0.05).sum() <= stats.binom.ppf(0.999, repeats, 0.05)
    assert min(np.mean([each[name] <= 0.5 for each in found]) for name in ("gaps", "once per epoch")) > 0.1  # not idle


def test_full_batches_are_no_fault_and_a_missing_record_is():
    rng = np.random.default_rng(2)
    part = np.ones((4, 10, RECORDS), dtype=bool)
    assert min(p_values(part, rng, 1.0).values()) > 0.05
    part[2, 5, 7] = False
    assert min(p_values(part, rng, 1.0).values()) < 1e-9


def shuffled_epochs(part, rng):
    for run in part:
        for start in range(0, STEPS, 10):
            run[start : start + 10] = rng.permuted(np.tile(np.arange(10), RECORDS // 10)) == np.arange(10)[:, None]


def queue(part, rng):
    for run in part:
        order = np.concatenate([rng.permutation(RECORDS) for _ in range(2 * STEPS)])
        ends = np.cumsum(rng.binomial(RECORDS, RATE, size=STEPS))
        for step, (first, last) in enumerate(zip(np.append(0, ends), ends, strict=False)):
            run[step] = np.isin(np.arange(RECORDS), order[first:last])


def large_batches_cut(part, rng):
    for batch in part.reshape(-1, RECORDS):
        batch[np.flatnonzero(batch)[8:]] = False


def small_batches_passed_over(part, rng):
    for batch in part.reshape(-1, RECORDS):
        while batch.sum() < 0.9 * RATE * RECORDS:
            batch[:] = rng.random(RECORDS) < RATE


def put(at, value):
    """Participations at ``at`` replaced by what ``value`` makes of all."""
    return lambda part, rng: part.__setitem__(at, value(part))


ALL = slice(None)
FAULTS = {
    "large batches cut": ("large batches", large_batches_cut),
    "small batches passed over": ("large batches", small_batches_passed_over),
    "forced once": ("same batch in every run", put((ALL, 0, 17), lambda part: True)),
    "forced every epoch": ("same batch in every run", put((ALL, slice(None, None, 10), 17), lambda part: True)),
    "the same batches in every run": ("same batch in every run", put(ALL, lambda part: part[0])),
    "one record too often": ("rate of each record", put((ALL, ALL, 3), lambda part: part[:, :, 3:6].any(axis=2))),
    "one record left out": ("rate of each record", put((ALL, ALL, 3), lambda part: False)),
    "two records together": ("pairs of records", put((ALL, ALL, 30), lambda part: part[:, :, 11])),
    "neighbours together": ("pairs of records", put((ALL, ALL, slice(1, None, 2)), lambda part: part[:, :, ::2])),
    "neighbours apart": (
        "pairs of records",
        put((ALL, ALL, slice(1, None, 2)), lambda part: part[:, :, 1::2] & ~part[:, :, ::2]),
    ),
    "the same batch twice in a row": ("gaps", put((ALL, slice(1, None, 2)), lambda part: part[:, ::2])),
    "the same order in every epoch": ("gaps", put((ALL, ALL), lambda part: np.tile(part[:, :10], (1, 4, 1)))),
    "shuffled epochs": ("once per epoch", shuffled_epochs),
    "queue": ("once per epoch", queue),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_of_sampling_is_found_by_its_test(fault):
    rng, (test, plant) = np.random.default_rng(3), FAULTS[fault]
    part = fair(rng)
    plant(part, rng)
    assert p_values(part, rng)[test] * 30 < 1e-3


def test_a_record_drawn_twice_into_one_batch_is_found():
    rng = np.random.default_rng(4)
    part = fair(rng).astype(float)
    part[3, 4, 5] = 2.0
    assert p_values(part, rng)["a record counts once"] < 1e-12


@pytest.mark.parametrize("offset", [0, 8])
def test_noise_that_knows_the_batch_is_found(offset):
    """Half of the noise where a record takes part, or eight coordinates later, as one seed for both gives."""
    rng = np.random.default_rng(5)
    part = fair(rng)
    noise = NOISE * rng.standard_normal((RUNS, STEPS, RECORDS + 20))
    assert checked(part, noise)["noise and batches"] > 0.01
    noise[:, :, offset:RECORDS] *= np.where(part[:, :, : RECORDS - offset], 0.5, 1.0)
    assert checked(part, noise)["noise and batches"] * 30 < 1e-6


def test_stronger_clipping_is_read_and_is_no_fault():
    rng = np.random.default_rng(6)
    part = 0.6 * fair(rng)
    assert min(checked(part, NOISE * rng.standard_normal((RUNS, STEPS, RECORDS + 20))).values()) * 30 > 0.05
    part[3, 4, 5] = 1.4
    assert checked(part, NOISE * rng.standard_normal((RUNS, STEPS, RECORDS + 20)))["a record counts once"] < 1e-9


def test_a_loop_that_keeps_its_own_noise_is_not_accused_of_it():
    """Its participation cannot be read; the findings say so."""
    rng = np.random.default_rng(7)
    sums = np.concatenate([fair(rng), np.zeros((RUNS, STEPS, 20))], axis=2) + rng.standard_normal((RUNS, STEPS, 80))
    found = participation_checks(sums, RECORDS, RATE, NOISE)
    assert len(found) == 8
    assert all(check.p_value == 1.0 and check.finding.startswith("not tested: the noise") for check in found)
    assert "where 0.05 was declared" in found[0].finding
    assert "not tested: the noise" in counts_alone(sums[0], RECORDS, 0.001).finding


def test_enough_runs_are_planned_and_both_ends_of_the_data_are_followed():
    plan = Plan.of(0.05, 10_000, 1000)
    assert (plan.runs, plan.steps, len(plan.records)) == (8, 128, 1000)
    assert Plan.of(0.05, 64, 1000).steps == 64  # no step of a short claim goes unseen
    large = Plan.of(0.001, 10_000, 10**6)
    assert (large.records[0], large.records[-1], large.steps) == (0, 10**6 - 1, 512)
    assert 1024 <= len(large.records) <= 1025
    assert Plan.of(0.5, 3, 7).runs == 22
    assert Plan.of(1.0, 3, 7).runs == 4

"""Who was in which batch: exact tests on zeros and ones, their level, and what each of them finds."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from benchmarks import planted_bugs
from reticent.attacks.mechanics import audit_mechanics
from reticent.attacks.participation import NOISE, Plan, participation_checks
from reticent.kernel.mechanisms import DPSGD

RUNS, STEPS, RECORDS, RATE = 8, 40, 60, 0.1


def fair(rng, rate=RATE):
    return rng.random((RUNS, STEPS, RECORDS)) < rate


def p_values(part, rng, rate=RATE):
    """The checks on participations with noise, and twenty coordinates that nobody has."""
    return checked(part, NOISE * rng.standard_normal((*part.shape[:2], part.shape[2] + 20)), rate)


def checked(part, noise, rate=RATE):
    sums = np.concatenate([part, np.zeros((*part.shape[:2], 20))], axis=2) + noise
    return {check.name: check.p_value for check in participation_checks(sums, part.shape[2], rate, NOISE)}


@pytest.mark.parametrize("repeats", [50, pytest.param(250, marks=pytest.mark.slow)])
@pytest.mark.parametrize("rate", [0.1, pytest.param(0.5, marks=pytest.mark.slow), 0.9])
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


def forced_once(part, rng):
    part[:, 0, 17] = True


def forced_every_epoch(part, rng):
    part[:, ::10, 17] = True


def one_record_too_often(part, rng):
    part[:, :, 3] |= rng.random((RUNS, STEPS)) < 0.25


def one_record_left_out(part, rng):
    part[:, :, 3] = False


def the_same_batches_in_every_run(part, rng):
    part[:] = part[0]


def two_records_together(part, rng):
    part[:, :, 30] = part[:, :, 11]


def neighbours_together(part, rng):
    part[:, :, 1::2] = part[:, :, ::2]


def neighbours_apart(part, rng):
    part[:, :, 1::2] &= ~part[:, :, ::2]


def the_same_batch_twice_in_a_row(part, rng):
    part[:, 1::2] = part[:, ::2]


def the_same_order_in_every_epoch(part, rng):
    for start in range(10, STEPS, 10):
        part[:, start : start + 10] = part[:, :10]


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


FAULTS = {
    large_batches_cut: "large batches",
    small_batches_passed_over: "large batches",
    forced_once: "same batch in every run",
    forced_every_epoch: "same batch in every run",
    one_record_too_often: "rate of each record",
    one_record_left_out: "rate of each record",
    the_same_batches_in_every_run: "same batch in every run",
    two_records_together: "pairs of records",
    neighbours_together: "pairs of records",
    neighbours_apart: "pairs of records",
    the_same_batch_twice_in_a_row: "gaps",
    the_same_order_in_every_epoch: "gaps",
    shuffled_epochs: "once per epoch",
    queue: "once per epoch",
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_each_fault_of_sampling_is_found_by_its_test(fault):
    rng = np.random.default_rng(3)
    part = fair(rng)
    fault(part, rng)
    assert p_values(part, rng)[FAULTS[fault]] * 30 < 1e-3


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
    """Its participation cannot be read; the findings say so, and the other tests still hold."""

    class OwnNoise(planted_bugs.Loop):
        def noise(self, step, like):
            return [torch.randn(t.shape, generator=self.rng) for t in like]

    claim = DPSGD(noise_multiplier=1.0, sample_rate=0.2, steps=16, batch_size=24, dataset_size=120)
    report = audit_mechanics(OwnNoise(), claim, significance=1e-6)
    assert not report.accused
    untested = [check for check in report.checks if check.finding.startswith("not tested: the noise")]
    assert len(untested) == 9
    assert "where 0.05 was declared" in untested[0].finding


def test_enough_runs_are_planned_and_both_ends_of_the_data_are_followed():
    plan = Plan.of(0.05, 10_000, 1000)
    assert (plan.runs, plan.steps, len(plan.records)) == (8, 128, 1000)
    assert Plan.of(0.05, 64, 1000).steps == 64  # no step of a short claim goes unseen
    large = Plan.of(0.001, 10_000, 10**6)
    assert (large.records[0], large.records[-1], large.steps) == (0, 10**6 - 1, 512)
    assert 1024 <= len(large.records) <= 1025
    assert Plan.of(0.5, 3, 7).runs == 22
    assert Plan.of(1.0, 3, 7).runs == 4

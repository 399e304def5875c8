"""Tests of noise, of noisy counts and of the moves between steps: what each finds, and its level."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from reticent.attacks.noise_checks import noise_beside, noise_of_each_step, noise_tails, repeated
from reticent.attacks.sum_checks import large_batches, moves_between_steps
from reticent.kernel.mechanisms import DPSGD

CLAIM = DPSGD(noise_multiplier=1.0, sample_rate=0.1, steps=200, batch_size=100, dataset_size=1000)


def beside(rows):
    return noise_beside("x", (rows**2).sum(axis=1), rows.shape[1])


def counts(rng):
    return rng.binomial(1000, 0.1, 200) + rng.standard_normal(200)


NULLS = {
    "tails": lambda rng: noise_tails(rng.standard_normal((40, 50)), rng.standard_normal((30, 60))),
    "beside": lambda rng: beside(rng.standard_normal((20, 30))),
    "large batches": lambda rng: large_batches(counts(rng), CLAIM),
}


@pytest.mark.parametrize("name", NULLS)
@pytest.mark.parametrize("repeats", [100, pytest.param(2000, marks=pytest.mark.slow)])
def test_p_values_are_uniform_or_larger_where_the_claim_is_true(name, repeats):
    rng = np.random.default_rng(1)
    p = np.array([NULLS[name](rng).p_value for _ in range(repeats)])
    for level in (0.01, 0.05, 0.2, 0.5):
        assert (p <= level).sum() <= stats.binom.ppf(0.99, repeats, level), level
    assert (p <= 0.5).mean() > 0.15  # not idle


def test_a_cut_and_a_heavy_tail_are_found():
    noise = np.random.default_rng(2).standard_normal((64, 240))
    assert noise_tails(noise).p_value > 0.01
    assert noise_tails(noise.clip(-2.5, 2.5)).p_value < 1e-12
    heavy = np.where(np.random.default_rng(3).random(noise.shape) < 0.01, 3.0 * noise, noise)
    assert noise_tails(heavy).p_value < 1e-6


def test_noise_that_one_step_lacks_is_found_beside_the_gradients():
    noise = np.random.default_rng(4).standard_normal((64, 100))
    assert beside(noise).p_value > 0.01
    noise[17] *= 0.4
    found = beside(noise)
    assert found.p_value < 1e-6
    assert found.finding.endswith("times in step 17")
    assert noise_beside("x", np.zeros(3), 0).finding.startswith("not tested")


def test_noise_that_comes_again_is_found_and_one_step_has_nothing_to_compare():
    rows, others = np.random.default_rng(5).standard_normal((2, 6, 20))
    assert repeated("x", "steps", rows, None).p_value > 1e-4
    assert repeated("x", "runs", rows, others).p_value > 1e-4
    assert repeated("x", "runs", rows, np.vstack([others, rows[4:5]])).p_value < 1e-12
    assert repeated("x", "steps", np.vstack([rows, rows[1:2]]), None).p_value < 1e-12
    for alone in (rows[:1], rows[:, :1]):
        assert repeated("x", "steps", alone, None).p_value == 1.0
    assert noise_of_each_step(rows[:1]).p_value > 1e-4


def test_batches_that_are_cut_are_missed_above_the_limit():
    rng = np.random.default_rng(6)
    batch = np.minimum(rng.binomial(1000, 0.1, 200), 104) + 0.3 * rng.standard_normal(200)
    assert large_batches(batch, CLAIM).p_value < 1e-4


def moved(change, where):
    return moves_between_steps((change, where)).p_value


def test_weights_may_decay_between_steps_and_may_not_follow_the_records():
    rng = np.random.default_rng(7)
    where = rng.standard_normal((30, 40))
    assert moved(np.zeros((30, 40)), where) == 1.0
    decay = -0.01 * rng.random((30, 1)) * where
    assert moved(decay, where) == 1.0
    decay[5, 0] -= 0.02
    assert moved(decay, where) < 1e-9
    assert moves_between_steps((0.1 * rng.standard_normal((30, 40)), where)).finding.startswith("not tested")
    assert moves_between_steps(None).finding.startswith("not tested")

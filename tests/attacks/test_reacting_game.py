"""A conditional claim against the attack that its condition excludes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from reticent.kernel.mechanisms import DPSGD
from tests.attacks.reacting_game import LearningGame, absolute_error, audit_direction_condition, perceptron

RUN = DPSGD(noise_multiplier=4.0, sample_rate=1.0, steps=60)


def fixed(weights, directions):
    return np.ones(len(weights))


def test_without_the_record_the_scores_are_standard_normal():
    scores = LearningGame(RUN, 5, absolute_error).scores(2000, np.random.default_rng(0))
    assert stats.kstest(scores.non_member, stats.norm.cdf).pvalue > 1e-4
    assert scores.member.mean() > 0.5


ONE = DPSGD(noise_multiplier=4.0, sample_rate=1.0, steps=16)


@pytest.mark.parametrize(
    ("run", "dimension", "runs"), [(ONE, 1, 2000), pytest.param(RUN, 10, 8000, marks=pytest.mark.slow)]
)
def test_a_sign_that_follows_from_the_weights_refutes_the_condition_and_says_so(run, dimension, runs):
    found = audit_direction_condition(LearningGame(run, dimension, absolute_error), runs, np.random.default_rng(1))
    assert found.refuted
    assert found.reason.startswith("The length of the gradient depends on its direction: the perceptron test found 0.")


@pytest.mark.parametrize("push", [fixed, perceptron])
@pytest.mark.parametrize(("run", "dimension"), [(ONE, 1), pytest.param(RUN, 10, marks=pytest.mark.slow)])
def test_a_condition_that_holds_or_an_attack_too_weak_is_not_refuted(run, dimension, push):
    """A fixed gradient satisfies it; the perceptron gives away less here than the curve allows."""
    found = audit_direction_condition(LearningGame(run, dimension, push), 2000, np.random.default_rng(2))
    assert not found.refuted
    assert "nothing" in found.reason

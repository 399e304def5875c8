"""The most noise that scores allow, within a family of releases."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from reticent.auditing import Design, Scores, audit_noise
from reticent.curves import GaussianTradeOff, Mixture

DELTA = 1e-5


def gaussian(noise):
    return GaussianTradeOff(1.0 / noise)


def drawn(rng, noise, size, design=Design.INDEPENDENT):
    included = rng.random(2 * size) < 0.5
    score = noise * rng.standard_normal(2 * size) + included
    return Scores(score[included], score[~included], design=design)


def test_noise_is_bounded_from_above_and_epsilon_from_below():
    scores = drawn(np.random.default_rng(0), 0.5, 1000)
    found = audit_noise(scores, gaussian, 0.5, DELTA)
    assert 0.5 < found.noise_multiplier < 0.56
    assert 7.0 < found.epsilon < 9.9


def test_a_run_with_half_of_the_noise_that_it_claims_is_named_so():
    found = audit_noise(drawn(np.random.default_rng(1), 1.0, 3000, Design.ONE_RUN), gaussian, 2.0, DELTA)
    assert 1.0 < found.noise_multiplier < 2.0


def test_nothing_is_refuted_by_scores_without_information():
    rng = np.random.default_rng(2)
    scores = Scores(rng.standard_normal(50), rng.standard_normal(50), design=Design.INDEPENDENT)
    found = audit_noise(scores, gaussian, 1.0, DELTA)
    assert (found.noise_multiplier, found.epsilon) == (np.inf, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("design", [Design.INDEPENDENT, Design.ONE_RUN])
def test_the_true_noise_is_refuted_no_more_often_than_allowed(design):
    """Each record is seen with probability .3 only: the family is a mixture, and no Gaussian curve."""

    def sampled(noise):
        return Mixture([GaussianTradeOff(1.0 / noise), GaussianTradeOff(0.0)], [0.3, 0.7])

    rng, exceeded, audits = np.random.default_rng(3), 0, 150
    for _ in range(audits):
        included = rng.random(400) < 0.5
        score = 0.4 * rng.standard_normal(400) + included * (rng.random(400) < 0.3)
        scores = Scores(score[included], score[~included], design=design)
        exceeded += audit_noise(scores, sampled, 0.4, DELTA, tolerance=0.5).noise_multiplier < 0.4
    assert exceeded <= binom.ppf(0.99, audits, 0.05)

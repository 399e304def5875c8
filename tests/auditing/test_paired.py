"""Pairs of canaries of which a secret coin includes one: against exact laws of the right guesses.

Theorems: RETICENT:audit-one-run-binomial, RETICENT:audit-one-run-fdp.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, norm

from reticent.auditing import (
    Design,
    Finding,
    PairedCanaries,
    Scores,
    audit_claim_paired,
    audit_epsilon_paired,
    audit_mu_one_run,
    audit_mu_paired,
)
from reticent.auditing.one_run import curve_p_value
from reticent.auditing.scores import digest
from reticent.curves import GaussianTradeOff
from reticent.errors import ParameterError


def gaussian(seed: int, size: int, mu: float) -> PairedCanaries:
    rng = np.random.default_rng(seed)
    return PairedCanaries(rng.normal(mu, 1, size), rng.normal(0, 1, size))


def test_the_pairs_that_differ_most_are_guessed() -> None:
    pairs = PairedCanaries(np.array([5.0, 0.0, 1.0, 2.0]), np.array([0.0, 3.0, 0.5, 1.9]))
    assert [pairs.counts(k).correct for k in (1, 2, 3, 4)] == [1, 1, 2, 3]


def test_every_outcome_of_few_pairs_has_at_least_its_exact_probability() -> None:
    """Pairs that answer by randomised response, all outcomes enumerated: epsilon-DP under replacement."""
    epsilon, size = 1.0, 6
    right = 1 / (1 + math.exp(-epsilon))
    tail = np.zeros(size + 1)
    for answers in product((0, 1), repeat=size):
        told = np.array(answers, float)
        if np.all(told == 1.0) or np.any(told == 0.0):
            pairs = PairedCanaries(told, 1.0 - told)
            found = pairs.counts(size).correct
            assert found == told.sum()
            tail[: found + 1] += right ** told.sum() * (1 - right) ** (size - told.sum())
    assert tail == pytest.approx(binom.sf(np.arange(-1, size), size, right), rel=1e-12, abs=0)
    refuted = [
        audit_epsilon_paired(PairedCanaries(np.arange(size) < k, np.arange(size) >= k), 0.0, size).value > epsilon
        for k in range(size + 1)
    ]
    assert all(tail[k] <= 0.05 for k in range(size + 1) if refuted[k])


def test_the_level_holds_where_two_canaries_share_one_noise_each() -> None:
    """Independent canaries of a release that is 1-GDP for each: sqrt(2)-GDP under replacement."""
    curve = GaussianTradeOff(math.sqrt(2.0))
    accused = sum(curve_p_value(gaussian(seed, 120, 1.0).counts(60), curve) <= 0.05 for seed in range(300))
    assert accused <= binom.ppf(0.99, 300, 0.05)
    assert audit_claim_paired(gaussian(1, 600, 1.5), GaussianTradeOff(1.0)).finding is Finding.INCONSISTENT
    assert audit_claim_paired(gaussian(1, 600, 1.0), curve, 300).finding is Finding.CONSISTENT


def test_right_guesses_are_as_many_as_the_law_says() -> None:
    counts = gaussian(3, 20_000, 1.0).counts(20_000)
    assert abs(counts.correct / 20_000 - norm.cdf(1 / math.sqrt(2))) < 4 * 0.5 / math.sqrt(20_000)


def test_a_guess_about_equal_scores_is_a_fair_coin() -> None:
    """Nineteen of twenty sets of 2,000 coins reach the count."""
    tied = PairedCanaries(np.r_[np.ones(2000), 2.0], np.ones(2001))
    assert tied.counts(2001).correct == pytest.approx(1 + binom.ppf(0.05, 2000, 0.5), abs=4)


def test_pairs_that_differ_equally_are_no_evidence_by_their_order() -> None:
    """Hard guesses without any leak, all outcomes enumerated: for 65 pairs, 16 of them guessed, 77% were refuted."""
    for size in range(20, 80, 3):
        refuting, places = binom.ppf(0.95, size // 4, 0.5) + 1.0, np.arange(size)
        leads = [np.where(places < right, 1.0, -1.0) for right in range(size + 1)]
        refuted = [PairedCanaries(lead, 0.0 * lead).counts(size // 4).correct >= refuting for lead in leads]
        assert binom.pmf(np.arange(size + 1), size, 0.5) @ refuted <= 0.05


def test_zeros_of_either_sign_give_the_same_draws() -> None:
    """Processors sort them in different orders, and what is drawn follows from the sorted scores."""
    left_out = np.where(np.arange(40) < 20, 0.0, -0.0)
    assert digest(left_out, left_out) == digest(left_out[::-1], np.zeros(40))


def test_pairs_of_opposite_canaries_find_more_than_as_many_single_ones() -> None:
    """300 coordinates of noise 1: canaries that are there or not, and pairs that push one way or the other."""
    rng, size, mu = np.random.default_rng(4), 300, 0.5
    single, paired = [], []
    for _ in range(10):
        there = rng.random(size) < 0.5
        seen = rng.normal(size=size) + mu * there
        single.append(audit_mu_one_run(Scores(seen[there], seen[~there], design=Design.ONE_RUN)).value / mu)
        pushed = mu + rng.normal(size=size)
        paired.append(audit_mu_paired(PairedCanaries(pushed, -pushed)).value / (2 * mu))
    assert np.mean(paired) > 1.2 * np.mean(single)
    assert np.mean(paired) < 1.0


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        ((np.ones(3), np.ones(3)), "the same in every pair"),
        ((np.ones(3), np.ones(2)), "one score for each pair"),
        ((np.ones((2, 2)), np.zeros((2, 2))), "one score for each pair"),
        ((np.array([np.nan]), np.ones(1)), "finite"),
        ((np.ones(1), np.array([np.inf])), "finite"),
    ],
)
def test_what_is_no_pair_is_refused(pairs, words) -> None:
    with pytest.raises(ParameterError, match=words):
        PairedCanaries(*pairs)


def test_more_guesses_than_pairs_are_refused() -> None:
    with pytest.raises(ParameterError, match="at most the 5 pairs"):
        gaussian(0, 5, 1.0).counts(6)

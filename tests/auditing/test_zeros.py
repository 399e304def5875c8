"""No bound is zero where another valid one from the same counts is not, over random counts.

Epsilon 0 at delta 0, mu 0 and advantage 0 are one claim, so their bounds are positive together. Beside ours stand the
textbook's: Clopper-Pearson ends of both rates at half the significance each, and binomial tails from scipy.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import beta, binom

from reticent.auditing import (
    Bonferroni,
    Design,
    Given,
    GuessCounts,
    Guesses,
    NormalScores,
    Ranks,
    Scores,
    audit_advantage,
    audit_claim,
    audit_claim_one_run,
    audit_epsilon,
    audit_epsilon_one_run,
    audit_mu,
    audit_mu_one_run,
    tpr_interval,
)
from reticent.auditing.one_run import curve_p_value
from reticent.auditing.ties import SHARE
from reticent.kernel.curves import GaussianTradeOff
from tests.auditing.games import answers, gaussian

SIGNIFICANCE = 0.05
NOTHING = GaussianTradeOff(0.0)


def upper_end(successes: int, trials: int, significance: float) -> float:
    return 1.0 if successes == trials else beta.ppf(1 - significance, successes + 1, trials - successes)


def refutes_no_leakage(scores: Scores, rule) -> tuple[bool, float]:
    """Whether bounds on mu, epsilon and advantage are positive, which is one question; and that on the advantage."""
    bounds = audit_mu(scores, rule), audit_epsilon(scores, 0.0, rule), audit_advantage(scores, rule)
    assert len({bound.value > 0.0 for bound in bounds}) == len({bound.ceiling > 0.0 for bound in bounds}) == 1
    refuted = audit_claim(scores, NOTHING, rule).guessing_p_value <= SIGNIFICANCE
    assert refuted == (bounds[0].value > 0.0)
    return refuted, bounds[2].value


@pytest.mark.parametrize("size", [8, pytest.param(40, marks=pytest.mark.slow)])
def test_fixed_thresholds(size: int) -> None:
    """Counts near the edge of what refutes anything."""
    rng, rule, positive = np.random.default_rng(4), Given(0.5), 0
    for _ in range(size):
        n, m = (int(x) for x in np.exp(rng.uniform(1.0, 5.0, 2)).round())
        rate = rng.random() ** rng.integers(1, 4)
        lead = abs(rng.normal(0.0, 2.5)) * math.sqrt(0.25 / n + 0.25 / m)
        i, j = rng.binomial(n, rate), rng.binomial(m, max(0.0, 1.0 - min(1.0, rate + lead)))
        if not 0 < i + m - j < n + m:
            continue
        scores = answers((m - j, j), (i, n - i))
        refuted, advantage = refutes_no_leakage(scores, rule)
        a, b = upper_end(i, n, SIGNIFICANCE / 2), upper_end(j, m, SIGNIFICANCE / 2)
        assert refuted or a + b >= 1.0
        for delta in (1e-5, 0.02):
            value = audit_epsilon(scores, delta, rule).value
            assert value > 0.0 or a + b >= 1.0 - delta
            # (0, delta) is one claim, whether it is asked of epsilon or of the advantage.
            if abs(advantage - delta) > 1e-4:
                assert (value > 0.0) == (advantage > delta)
        positive += refuted
    assert 0.2 * size <= positive <= 0.8 * size


RULES = (None, Ranks(), NormalScores(), Bonferroni((0.5, 1.5)))


@pytest.mark.parametrize("size", [3, pytest.param(8, marks=pytest.mark.slow)])
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_every_rule_refutes_no_leakage_for_all_quantities_or_for_none(rule, size) -> None:
    rng, positive = np.random.default_rng(1), 0
    for k in range(size):
        n, m = rng.integers(20, 120, 2)
        shift = (1.0, 3.0, abs(rng.normal(1.8, 0.8)))[min(k, 2)] * math.sqrt(1 / n + 1 / m)
        positive += refutes_no_leakage(gaussian(rng, shift, m, n), rule)[0]
    assert 1 <= positive < size


def one_run(counts: GuessCounts) -> Scores:
    """Scores of which ``counts.guesses`` are guessed, half of them on either side, and so many of them right."""
    half, spare = counts.guesses // 2, counts.canaries - counts.guesses
    right = np.r_[np.ones(counts.correct, bool), np.zeros(counts.guesses - counts.correct, bool)]
    included = np.r_[right[:half], ~right[half:], np.arange(spare) % 2 == 0]
    score = np.r_[2.0 + np.arange(half), -2.0 - np.arange(counts.guesses - half), np.linspace(-1, 1, spare)]
    return Scores(score[included], score[~included], design=Design.ONE_RUN)


@pytest.mark.parametrize("size", [10, pytest.param(40, marks=pytest.mark.slow)])
def test_one_run(size: int) -> None:
    rng, positive = np.random.default_rng(2), 0
    for _ in range(size):
        guesses = 2 * int(np.exp(rng.uniform(1.5, 5.0)))
        canaries = guesses + int(rng.integers(4, 400))
        correct = int(min(guesses, 0.5 * guesses + abs(rng.normal(1.5, 1.0)) * math.sqrt(guesses) / 2 + 1))
        scores, made = one_run(GuessCounts(canaries, guesses, correct)), Guesses(guesses // 2, guesses - guesses // 2)
        refuted = binom.sf(correct - 1, guesses, 0.5) <= SHARE * SIGNIFICANCE
        bounds = audit_epsilon_one_run(scores, 0.0, made), audit_mu_one_run(scores, made)
        assert bounds[0].rule.startswith(f"{correct} of {guesses} ")
        assert [bound.value > 0.0 for bound in bounds] == [refuted, refuted]
        assert (audit_claim_one_run(scores, NOTHING, made).guessing_p_value <= SIGNIFICANCE) == refuted
        positive += refuted
    assert 0.2 * size <= positive <= 0.9 * size


def test_a_claim_of_one_run_takes_the_smaller_of_both_bounds_on_one_tail() -> None:
    counts = GuessCounts(20, 20, 15)
    assert curve_p_value(counts, NOTHING) == pytest.approx(binom.sf(14, 20, 0.5) / SHARE, rel=1e-9, abs=0)
    assert curve_p_value(counts, GaussianTradeOff(0.3)) < 0.15


@pytest.mark.parametrize("fpr", [0.001, 0.02, 0.2])
def test_true_positive_rates_are_at_least_what_equal_shares_give(fpr: float) -> None:
    rng, rescued, quarter = np.random.default_rng(3), 0, SIGNIFICANCE / 4
    between = int(1.1 * math.log(2 / SIGNIFICANCE) / fpr)
    for n in (between, *np.unique(np.exp(np.linspace(1.0, 8.8, 25)).astype(int))):
        scores = gaussian(rng, 2.0, 100, n)
        found, ordered = tpr_interval(scores, fpr), np.sort(scores.non_member)[::-1]
        k = np.arange(1, n + 1)
        certain, reached = beta.sf(fpr, k, n - k + 1) <= quarter, beta.cdf(fpr, k, n - k + 1) <= quarter
        lower, upper = 0.0, 1.0
        if certain.any():
            hits = int((scores.member > ordered[certain.sum() - 1]).sum())
            lower = 1.0 - upper_end(100 - hits, 100, quarter)
        if reached.any():
            hits = int((scores.member >= ordered[n - reached.sum()]).sum())
            upper = upper_end(hits, 100, quarter)
        assert found.lower >= lower - 1e-12
        assert found.upper <= upper + 1e-12
        enough = n * -math.log1p(-fpr) > math.log(2.0 / SIGNIFICANCE)
        assert enough or found.lower == 0.0
        rescued += lower == 0.0 < found.lower
    assert rescued

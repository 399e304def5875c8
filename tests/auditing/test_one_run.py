"""One-run tests against linear programs, exhaustive search and the laws they rest on.

Theorems: RETICENT:audit-one-run-binomial, RETICENT:audit-one-run-fdp.
"""

from __future__ import annotations

import math
from dataclasses import astuple
from itertools import product

import numpy as np
import pytest
from scipy.optimize import brentq, linprog
from scipy.stats import binom, hypergeom, norm

from reticent.auditing import (
    Design,
    Finding,
    GuessCounts,
    Guesses,
    Scores,
    audit,
    audit_claim_one_run,
    audit_epsilon_one_run,
    audit_mu_one_run,
    count_guesses,
)
from reticent.auditing.claims import ApproximateDP, GaussianClaim
from reticent.auditing.one_run import binomial_p_value, mass_needed, one_run_p_value, rejects
from reticent.auditing.scores import digest
from reticent.auditing.ties import SHARE
from reticent.kernel.curves import GaussianTradeOff
from reticent.kernel.errors import ParameterError
from tests.auditing.games import answers, canaries, yes


def tangents_of_gaussian(mu: float) -> list[tuple[float, float]]:
    """(intercept, slope) of y <= intercept + slope x for TPR y and FPR x, from the textbook curve."""
    lines = []
    for z in np.linspace(-7, 7, 400):
        x, y = norm.sf(z), norm.sf(z - mu)
        slope = math.exp(mu * z - mu * mu / 2)
        lines.append((y - slope * x, slope))
    return lines


def largest_tail(counts: GuessCounts, lines: list[tuple[float, float]]) -> float:
    """The largest P(W >= correct) among all laws of W that satisfy the tail constraints, by a linear program."""
    m, r = counts.canaries, counts.guesses
    w = np.arange(r + 1)
    rows, right = [], []
    for j in range(1, counts.correct + 1):
        hit, miss = w * (w >= j), (r - w) * (w >= j - 1)
        for intercept, slope in lines:
            rows.append((hit - slope * miss) / m)
            right.append(intercept)
    found = linprog(-(w >= counts.correct).astype(float), rows, right, np.ones((1, r + 1)), [1.0], (0, 1))
    assert found.success
    return float(-found.fun)


@pytest.mark.parametrize(
    ("canaries_", "guesses", "correct", "mu"), [(8, 8, 7, 1.0), (12, 8, 8, 0.5), (20, 10, 9, 1.0), (15, 15, 12, 0.3)]
)
def test_recursion_solves_its_linear_program(canaries_: int, guesses: int, correct: int, mu: float) -> None:
    counts = GuessCounts(canaries_, guesses, correct)
    expected = largest_tail(counts, tangents_of_gaussian(mu))
    assert one_run_p_value(counts, GaussianClaim(mu)) == pytest.approx(expected, rel=5e-3, abs=0)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
@pytest.mark.parametrize(("guesses", "correct"), [(20, 15), (50, 26), (7, 7)])
def test_recursion_is_the_binomial_for_pure_dp(epsilon: float, guesses: int, correct: int) -> None:
    counts = GuessCounts(guesses, guesses, correct)
    exact = binom.sf(correct - 1, guesses, 1 / (1 + math.exp(-epsilon)))
    assert binomial_p_value(counts, epsilon, 0.0) == pytest.approx(exact, rel=1e-10, abs=0)
    # The recursion keeps one inequality per tail, so it may be looser than the binomial, never tighter.
    assert one_run_p_value(counts, ApproximateDP(epsilon, 0.0)) >= exact * (1 - 1e-3)


LEAKS = {
    # Each coin is told outright with probability delta, else by randomised response.
    "on purpose": (12, 12, 1.0, 0.1, lambda c: binom.sf(c - 1, 12, 0.1 + 0.9 * yes(1.0))),
    "often": (12, 12, 1.0, 0.3, lambda c: binom.sf(c - 1, 12, 0.3 + 0.7 * yes(1.0))),
    "everything at once": (10, 10, 0.0, 0.04, lambda c: 0.04 + 0.96 * binom.sf(c - 1, 10, 0.5)),
    # With probability delta each, one canary is revealed and is the only one guessed well.
    "the one that is guessed": (6, 1, 0.0, 0.02, lambda c: 0.12 + 0.88 * binom.sf(c - 1, 1, 0.5)),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_delta_term_holds_for_mechanisms_that_leak(leak: str) -> None:
    number, guesses, epsilon, delta, truth = LEAKS[leak]
    for correct in range(guesses + 1):
        counts = GuessCounts(number, guesses, correct)
        assert binomial_p_value(counts, epsilon, delta) >= truth(correct) - 1e-12
        assert one_run_p_value(counts, ApproximateDP(epsilon, delta)) >= truth(correct) - 1e-9


def to_the_end(counts, claim, tail):
    """The recursion of docs/theory/auditing.md, to its last step."""
    at_least, beyond = tail, 0.0
    for j in range(counts.correct, 0, -1):
        reached = min(1.0, (j * at_least + beyond) / counts.canaries)
        beyond += at_least
        needed = (counts.canaries * float(claim.beta(np.array([1.0 - reached]))[0]) + beyond) / (counts.guesses - j + 1)
        at_least = max(at_least, needed)
        if at_least > 1.0:
            break
    return at_least


@pytest.mark.parametrize("correct", [30, 75, 80])
def test_the_recursion_stops_where_nothing_more_would_happen(correct):
    counts = GuessCounts(200, 80, correct)
    claims = [GaussianClaim(mu) for mu in (0.0, 0.4, 0.9, 1.3, 2.0)]
    claims += [ApproximateDP(epsilon, 1e-3) for epsilon in (0.0, 0.5, 1.0, 1.5, 3.0)]
    for claim, tail in product(claims, (1e-9, 0.01, 0.05, 0.5)):
        whole = to_the_end(counts, claim, tail)
        short = float(mass_needed(counts, claim, np.array([tail]))[0])
        assert short == pytest.approx(whole, rel=1e-9, abs=0) if whole <= 1.0 else short > 1.0


def test_p_value_and_rejection_agree() -> None:
    counts = GuessCounts(300, 100, 80)
    p = one_run_p_value(counts, GaussianClaim(0.5))
    assert rejects(counts, GaussianClaim(0.5), p * 1.01)
    assert not rejects(counts, GaussianClaim(0.5), p * 0.98)


def test_guesses_are_the_outer_scores() -> None:
    scores = Scores(np.array([9.0, 8.0, 1.0]), np.array([7.0, 0.0, 2.0, 3.0]), design=Design.ONE_RUN)
    assert count_guesses(scores, Guesses(3, 2)) == GuessCounts(7, 5, 2 + 1)
    assert count_guesses(scores, Guesses(0, 4)) == GuessCounts(7, 4, 3)


def test_equal_scores_count_as_nineteen_of_twenty_orders_do() -> None:
    """Of 4,000 equal scores 2,400 are members'; half of them are guessed from one end, or all from both ends."""
    scores = answers((2400, 0), (1600, 1), design=Design.ONE_RUN)
    above = hypergeom.ppf(0.05, 4000, 2400, 2000)
    assert count_guesses(scores, Guesses(2000, 0)).correct == pytest.approx(above, abs=3)
    # What is guessed above is not guessed below, where 1600 - (2000 - above) are right; one more is for certain.
    assert count_guesses(scores, Guesses(2000, 2001)).correct == pytest.approx(2 * above - 399, abs=6)


@pytest.mark.parametrize("guesses", [Guesses(4, 4), Guesses(6, 0), Guesses(1, 9)])
def test_the_level_of_yes_and_no_over_all_outcomes(guesses: Guesses) -> None:
    """Randomised response in one run, all outcomes enumerated."""
    size, level = 10, np.zeros(2)
    for k in range(1, size):
        for i, j in product(range(k + 1), range(size - k + 1)):
            if 0 < i + j < size:
                counts = count_guesses(answers((i, k - i), (j, size - k - j), design=Design.ONE_RUN), guesses)
                for place, epsilon in enumerate((0.0, 0.7)):
                    rate = yes(epsilon)
                    chance = binom.pmf(k, size, 0.5) * binom.pmf(i, k, rate) * binom.pmf(j, size - k, 1 - rate)
                    level[place] += chance * (binomial_p_value(counts, epsilon, 0.0) <= SHARE * 0.05)
    assert level.max() <= 0.05


def test_the_order_of_the_file_does_not_matter() -> None:
    rng = np.random.default_rng(5)
    member, other = rng.integers(0, 3, 40).astype(float), rng.integers(0, 3, 35).astype(float)
    first = count_guesses(Scores(member, other, design=Design.ONE_RUN), Guesses(20, 20))
    for _ in range(5):
        again = Scores(rng.permutation(member), rng.permutation(other), design=Design.ONE_RUN)
        assert count_guesses(again, Guesses(20, 20)) == first


def test_randomised_response_is_not_thrown_away() -> None:
    """Two values only: a tie that counts as wrong gives 0, and few ties at the ends of the guesses cost little."""
    rng, size = np.random.default_rng(6), 2000
    included = rng.random(size) < 0.5
    answer = (included ^ (rng.random(size) < 1 / (1 + math.e))).astype(float)
    scores = Scores(answer[included], answer[~included], design=Design.ONE_RUN)
    assert 0.4 < audit_epsilon_one_run(scores, 1e-5).value < 1.0
    assert 0.75 < audit_epsilon_one_run(scores, 1e-5, Guesses(1000, 1000)).value < 1.0


ALONE = 1.0 - 0.05 / SHARE
"""The confidence at which counts are refused at 0.05, beside what equal scores cost."""


def scored(counts: GuessCounts) -> tuple[Scores, Guesses]:
    """Scores, and guesses of members alone, that give these counts."""
    wrong, rest = counts.guesses - counts.correct, counts.canaries - counts.guesses
    high, low = 1.0 + np.arange(float(counts.guesses)), -1.0 - np.arange(float(rest))
    scores = Scores(high[wrong:], np.append(high[:wrong], low), design=Design.ONE_RUN)
    assert count_guesses(scores, Guesses(counts.guesses, 0)) == counts
    return scores, Guesses(counts.guesses, 0)


@pytest.mark.parametrize(
    ("canaries_", "guesses", "correct", "least"),
    [
        (10**6, 333_332, 333_332, 11.6),
        (20_000, 6_666, 6_666, 7.7),
        (15_000, 5_000, 4_990, 5.68),  # by guesses; the curve gives 5.669
        (30_000, 500, 340, 0.57),
    ],
)
def test_no_bound_is_zero_because_delta_is_large_at_epsilon_zero(canaries_, guesses, correct, least) -> None:
    counts = GuessCounts(canaries_, guesses, correct)
    assert binomial_p_value(counts, 0.0, 1e-5) > 1e-300  # not monotone in epsilon, and still a bound
    assert binomial_p_value(counts, 0.9 * least, 1e-5) <= 0.05
    scores, made = scored(counts)
    assert audit_epsilon_one_run(scores, 1e-5, made, ALONE).value > least


@pytest.mark.parametrize(("guesses", "correct", "canaries_"), [(12, 9, 40), (20, 20, 60), (30, 22, 30)])
@pytest.mark.parametrize("delta", [0.003, 0.02])
@pytest.mark.parametrize("epsilon", [0.0, 0.7])
def test_what_delta_adds_is_the_worst_of_all_joint_laws(guesses, correct, canaries_, delta, epsilon) -> None:
    """A linear program over every joint law of B and F with the mean of F as given."""
    wrong = 1 / (1 + math.exp(epsilon))
    pmf = binom.pmf(np.arange(guesses + 1), guesses, 1 - wrong)
    lifted = np.maximum(correct - np.arange(guesses + 1), 0)
    found = linprog(-np.ones(guesses + 1), lifted[None], [canaries_ * delta * wrong], bounds=[(0, p) for p in pmf])
    p = binomial_p_value(GuessCounts(canaries_, guesses, correct), epsilon, delta)
    assert p == pytest.approx(-found.fun, rel=1e-6, abs=0)


def test_the_share_of_guesses_follows_the_claim_and_the_number_of_canaries() -> None:
    share = {
        (number, mu): sum(astuple(Guesses.planned(number, GaussianTradeOff(mu)))) / number
        for number, mu in ((300, 1.0), (10_000, 0.5), (10_000, 1.0), (10_000, 4.0))
    }
    assert share[10_000, 0.5] == share[10_000, 1.0] == pytest.approx(0.05, abs=0.001)
    assert share[300, 1.0] > 0.15
    assert share[10_000, 4.0] > 0.3
    # The share that looks best on average is also better on drawn scores.
    scores = canaries(np.random.default_rng(7), 10_000, 1.0)
    third = audit_mu_one_run(scores, Guesses.share(10_000, 1 / 3)).value
    assert audit_mu_one_run(scores).value > 1.15 * third


def test_other_designs_and_too_many_guesses_are_refused() -> None:
    scores = canaries(np.random.default_rng(0), 50, 1.0)
    with pytest.raises(ParameterError, match="fair inclusion coins"):
        audit_mu_one_run(Scores(scores.member, scores.non_member))
    with pytest.raises(ParameterError, match="at most the 50 canaries"):
        count_guesses(scores, Guesses(40, 40))
    for bad in (lambda: Guesses(0, 0), lambda: Guesses(-1, 4)):
        with pytest.raises(ParameterError):
            bad()


def test_bounds_are_below_the_truth_and_useful() -> None:
    scores = canaries(np.random.default_rng(1), 1000, 2.0)
    epsilon = brentq(lambda e: norm.cdf(1 - e / 2) - math.exp(e) * norm.cdf(-1 - e / 2) - 1e-5, 0, 50)
    assert 2.0 < audit_epsilon_one_run(scores, 1e-5).value < epsilon
    assert 1.0 < audit_mu_one_run(scores).value < 2.0


def test_perfect_leakage_is_capped() -> None:
    scores = Scores(np.arange(100.0) + 1000, np.arange(100.0), design=Design.ONE_RUN)
    everything = Guesses(100, 100)
    epsilon = audit_epsilon_one_run(scores, 0.0, everything)
    # All 200 right: (1 - wrong)^200 is the significance, without the twentieth for ties.
    wrong = 1 - (0.05 * SHARE) ** (1 / 200)
    assert epsilon.value == pytest.approx(math.log((1 - wrong) / wrong), rel=1e-5, abs=0)
    for bound in (epsilon, audit_mu_one_run(scores, everything)):
        assert 0 < bound.value == bound.ceiling < 30


def test_one_run_scores_are_judged_by_one_run_tests() -> None:
    report = audit(
        canaries(np.random.default_rng(2), 600, 1.0), {"low": GaussianTradeOff(0.2), "true": GaussianTradeOff(1.0)}
    )
    assert report.verdicts["low"].finding is Finding.INCONSISTENT
    assert report.verdicts["true"].finding is Finding.CONSISTENT
    assert report.verdicts["low"].theorems == ("RETICENT:audit-one-run-fdp", "RETICENT:audit-one-run-binomial")
    cited = {theorem for bound in report.bounds for theorem in bound.theorems}
    assert {"RETICENT:audit-one-run-binomial", "RETICENT:audit-one-run-fdp"} <= cited


def test_no_power_with_few_canaries() -> None:
    verdict = audit_claim_one_run(canaries(np.random.default_rng(3), 12, 9.0), GaussianTradeOff(2.0), Guesses(2, 2))
    assert verdict.finding is Finding.NO_POWER


def test_zeros_of_either_sign_give_the_same_draws() -> None:
    """Processors sort them in different orders, and what is drawn follows from the sorted scores."""
    left_out = np.where(np.arange(40) < 20, 0.0, -0.0)
    assert digest(left_out, left_out) == digest(left_out[::-1], np.zeros(40))

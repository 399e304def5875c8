"""Sequential audits: bets that cannot gain under the claim, whoever looks and whenever; and what they cost.

Theorem: RETICENT:audit-sequential.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom, norm

from reticent.auditing import (
    Bonferroni,
    Design,
    Finding,
    Given,
    Ranks,
    Scores,
    audit,
    audit_claim_one_run,
    audit_claim_sequential,
    e_value_of,
    sequential_epsilon,
    sequential_mu,
)
from reticent.auditing.sequential import Bets
from reticent.curves import LaplaceTradeOff
from reticent.kernel.curves import GaussianTradeOff
from reticent.kernel.errors import ParameterError
from tests.auditing.games import canaries, gaussian, yes


def independent(members, others) -> Scores:
    return Scores(np.array(members, float), np.array(others, float), design=Design.INDEPENDENT)


@pytest.mark.parametrize("mu", [0.0, 0.3, 1.0, 3.0, 12.0])
def test_no_bet_gains_at_any_rates_that_the_claim_allows(mu):
    """The mean factor over the four outcomes, with the curve from the textbook."""
    gains = np.exp(Bets.against(GaussianTradeOff(mu).delta).gains)
    assert gains.min() > 0.0
    alpha = norm.cdf(np.linspace(-9, 9, 401))

    def most(power: np.ndarray) -> float:
        law = np.stack([(1 - alpha) * (1 - power), (1 - alpha) * power, alpha * (1 - power), alpha * power])
        return (gains @ law).max()

    for power in (norm.cdf(norm.ppf(alpha) + mu), alpha, np.zeros_like(alpha)):
        assert most(power) <= 1.0 + 1e-9
    assert most(norm.cdf(norm.ppf(alpha) + mu + 1.0)) > (1.05 if mu < 5.0 else 1.0)


@pytest.mark.parametrize("rule", [None, Given(0.5), Bonferroni((0.5, 1.5))])
def test_the_capital_is_one_at_most_on_the_average_over_every_sequence(rule):
    """Three pairs of scores 0, 1, 2 with a ratio e of their chances, at most: all 729 sequences, weighed exactly."""
    absent = np.array([0.5, 0.3, 0.2])
    present = absent * np.exp([-1.0, 0.0, 1.0])
    present[1] = 1.0 - present[0] - present[2]
    assert np.abs(np.log(present / absent)).max() <= 1.0 + 1e-12
    bets, mean, ever = Bets.against(LaplaceTradeOff(1.0).delta), 0.0, 0.0
    for members in product(range(3), repeat=3):
        for others in product(range(3), repeat=3):
            chance = math.prod(present[list(members)]) * math.prod(absent[list(others)])
            capital = np.exp(bets.capital(independent(members, others), rule))
            mean += chance * capital[-1]
            ever += chance * (capital.max() >= 1.5)
    assert mean <= 1.0 + 1e-12
    assert ever <= 1.0 / 1.5


@pytest.mark.parametrize("runs", [80, pytest.param(5000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("mu", [0.0, 1.0, 3.0])
def test_a_true_claim_is_refuted_no_more_often_than_promised_by_who_looks_at_every_pair(runs, mu):
    rng, bets, refuted = np.random.default_rng(11), Bets.against(GaussianTradeOff(mu).delta), 0
    for _ in range(runs):
        refuted += bets.capital(gaussian(rng, mu, 120, 120)).max() >= math.log(20.0)
    assert refuted <= binom.ppf(0.99, runs, 0.05)


def test_thresholds_of_a_pair_come_from_the_pairs_before():
    """What comes later changes nothing before, and the order of a pair's own scores decides its own factor alone."""
    rng, bets = np.random.default_rng(2), Bets.against(GaussianTradeOff(1.0).delta)
    first = gaussian(rng, 2.0, 60, 60)
    for seen in (1, 2, 3, 30, 59):
        part = independent(first.member[:seen], first.non_member[:seen])
        assert bets.capital(part) == pytest.approx(bets.capital(first)[:seen], rel=1e-12, abs=1e-12)
    # Both scores of the third pair lie above whatever the first two say, and between them nothing can lie.
    third = bets.capital(independent([0.0, 2.0, 11.0], [1.0, 3.0, 10.0]))[2]
    assert math.exp(third) == pytest.approx(np.exp(bets.gains[..., 3]).mean(), rel=1e-12, abs=0)
    scaled = bets.capital(independent(np.exp(first.member), np.exp(first.non_member)))
    assert scaled[-1] == pytest.approx(bets.capital(first)[-1], rel=1e-12, abs=0)


def test_a_false_claim_is_refuted_early_and_a_verdict_says_after_which_pair():
    claim, scores = GaussianTradeOff(0.7), gaussian(np.random.default_rng(3), 2.0, 400, 400)
    found = audit_claim_sequential(scores, claim)
    assert found.finding is Finding.INCONSISTENT
    assert 5 < found.stopped_at < 60
    assert found.e_value >= 20.0
    assert f"known after {found.stopped_at} of 400 pairs" in found.reason
    for seen, stopped in ((found.stopped_at, found.stopped_at), (found.stopped_at - 1, None)):
        part = independent(scores.member[:seen], scores.non_member)
        assert audit_claim_sequential(part, claim).stopped_at == stopped
    assert audit_claim_sequential(scores, GaussianTradeOff(2.5)).finding is Finding.CONSISTENT
    for nothing in (gaussian(np.random.default_rng(3), 0.0, 400, 400), independent([3.0], [1.0])):
        assert audit_claim_sequential(nothing, claim).finding is Finding.NO_POWER


def test_bounds_are_below_the_truth_and_not_far():
    scores = gaussian(np.random.default_rng(4), 1.0, 500, 500)
    assert 0.65 < sequential_mu(scores).value < 1.0
    assert sequential_mu(gaussian(np.random.default_rng(4), 0.0, 500, 500)).value == 0.0
    rng, says_yes = np.random.default_rng(5), yes(1.0)
    answers = independent(rng.random(500) < says_yes, rng.random(500) > says_yes)
    for rule in (None, Given(0.5)):
        found = sequential_epsilon(answers, 0.0, rule)
        assert 0.75 < found.value < 1.0 < found.ceiling
    assert sequential_epsilon(answers, 0.9).value == 0.0


@pytest.mark.parametrize(("seed", "standing", "refuted"), [(1, 0.847, 0.98), (37, 0.847, 1.029)])
def test_no_claim_below_a_bound_is_left_standing(seed, standing, refuted):
    """A claim may be refuted where a stronger one is not; then the bound stays below that one."""
    scores = gaussian(np.random.default_rng(seed), 1.5, 65, 65)
    for mu, finding in ((standing, Finding.CONSISTENT), (refuted, Finding.INCONSISTENT)):
        assert audit_claim_sequential(scores, GaussianTradeOff(mu)).finding is finding
    assert 0.5 < sequential_mu(scores).value < standing


@pytest.mark.parametrize("runs", [6, pytest.param(1000, marks=pytest.mark.slow)])
def test_bounds_exceed_the_truth_no_more_often_than_promised(runs):
    rng = np.random.default_rng(6)
    above = sum(sequential_mu(gaussian(rng, 1.0, 60, 60), confidence=0.8).value > 1.0 for _ in range(runs))
    assert above <= binom.ppf(0.99, runs, 0.2)


def test_a_p_value_is_worth_one_on_the_average_and_several_audits_of_one_run_multiply():
    assert quad(e_value_of, 0.0, 1.0)[0] == pytest.approx(1.0, rel=1e-6, abs=0)
    assert e_value_of(1e-4) > e_value_of(0.01) > e_value_of(0.3) > e_value_of(1.0)
    rng, claim = np.random.default_rng(7), GaussianTradeOff(0.5)
    audits = [audit_claim_one_run(canaries(rng, 400, 1.0), claim) for _ in range(3)]
    alone = [one.finding is Finding.INCONSISTENT for one in audits]
    assert math.prod(one.e_value for one in audits) >= 20.0
    assert not all(alone)


def test_a_report_that_is_sequential_says_what_holds_at_every_number():
    scores = gaussian(np.random.default_rng(8), 1.5, 200, 200)
    report = audit(scores, {"low": GaussianTradeOff(0.5)}, sequential=True)
    assert report.verdicts["low"].theorems == ("RETICENT:audit-sequential",)
    assert [str(bound.quantity) for bound in report.bounds] == ["epsilon", "mu"]
    document = report.to_json()
    assert document["verdicts"]["low"]["stopped_at"] == report.verdicts["low"].stopped_at
    assert any("fixed beforehand" in note for note in document["notes"])
    usual = audit(scores, {"low": GaussianTradeOff(0.5)})
    assert usual.verdicts["low"].stopped_at is None
    assert len(usual.bounds) == 4


def test_what_is_not_sequential_is_refused():
    rng = np.random.default_rng(9)
    with pytest.raises(ParameterError, match="Scores of one run come at once"):
        audit(canaries(rng, 100, 1.0), {"x": GaussianTradeOff(0.5)}, sequential=True)
    with pytest.raises(ParameterError, match="look at all scores"):
        audit_claim_sequential(gaussian(rng, 1.0, 9, 9), GaussianTradeOff(1.0), Ranks())

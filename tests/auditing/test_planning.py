"""Planned power against simulated audits.

Theorem: RETICENT:audit-ranks.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta as beta_law
from scipy.stats import binom, norm

from reticent.auditing import (
    Finding,
    Guesses,
    Ranks,
    Unit,
    audit_claim,
    audit_claim_one_run,
    plan_audit,
)
from reticent.auditing.claims import GaussianClaim
from reticent.auditing.planning import best_level, rank_power
from reticent.auditing.thresholds import RankCounts, rank_for
from reticent.kernel.curves import GaussianTradeOff, Subsampled
from reticent.kernel.errors import ParameterError, UnsupportedError
from tests.auditing.games import canaries, gaussian


@pytest.mark.parametrize(
    ("claimed", "true"),
    [(1.0, 2.0), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((0.5, 1.0), (0.0, 0.5)))],
)
def test_planned_power_is_the_share_of_simulated_audits_that_refute(claimed: float, true: float) -> None:
    plan = plan_audit(GaussianTradeOff(claimed), GaussianTradeOff(true), power=0.8)
    rng, audits, each = np.random.default_rng(0), 100, plan.needed // 2
    refuted = 0
    for _ in range(audits):
        verdict = audit_claim(gaussian(rng, true, each, each), GaussianTradeOff(claimed), Ranks((plan.level,)))
        refuted += verdict.finding is Finding.INCONSISTENT
    assert plan.power >= 0.8
    # Power is stated from below, by at most a few per cent.
    assert binom.ppf(0.005, audits, plan.power) <= refuted <= binom.ppf(0.995, audits, plan.power + 0.03)


def test_planned_one_run_power() -> None:
    plan = plan_audit(GaussianTradeOff(0.3), GaussianTradeOff(1.5), Unit.ONE_RUN, power=0.7)
    rng, audits, number = np.random.default_rng(1), 20, plan.needed
    refuted = 0
    for _ in range(audits):
        scores = canaries(rng, number, 1.5)
        # All are guessed at the likelihood ratio of 1, as the plan assumes.
        split = int(np.sum(scores.member > 0.75) + np.sum(scores.non_member > 0.75))
        verdict = audit_claim_one_run(scores, GaussianTradeOff(0.3), Guesses(split, number - split))
        refuted += verdict.finding is Finding.INCONSISTENT
    assert binom.ppf(0.005, audits, plan.power) <= refuted <= binom.ppf(0.995, audits, plan.power)


def test_power_is_the_integral_from_below() -> None:
    claimed, truth, members, others, level = GaussianClaim(0.4), GaussianClaim(1.1), 60, 80, 0.25
    rank = rank_for(level, others)
    p_values = [RankCounts(0.0, rank, others, misses, members).p_value(claimed) for misses in range(members + 1)]
    critical = sum(p <= 0.05 for p in p_values) - 1

    def integrand(u: float) -> float:
        beta = norm.cdf(norm.isf(u) - 1.1)
        return beta_law.pdf(u, rank, others - rank + 1) * binom.cdf(critical, members, beta)

    exact = quad(integrand, 0, 1, limit=200)[0]
    assert 0.98 * exact <= rank_power(claimed, truth, members, others, level, 0.05) <= exact


def test_size_is_near_the_normal_approximation() -> None:
    claimed, true = 1.0, 1.2
    plan = plan_audit(GaussianTradeOff(claimed), GaussianTradeOff(true))
    alpha, beta = plan.level, norm.cdf(norm.isf(plan.level) - true)
    variance = sum(p * (1 - p) / norm.pdf(norm.ppf(p)) ** 2 for p in (alpha, beta))
    expected = 2 * ((norm.ppf(0.95) + norm.ppf(0.8)) / (true - claimed)) ** 2 * variance
    assert plan.needed == pytest.approx(expected, rel=0.1, abs=0)


def test_the_level_is_where_the_curves_are_easiest_to_tell_apart() -> None:
    level, _ = best_level(GaussianTradeOff(1.0), GaussianTradeOff(1.001))
    assert level == pytest.approx(norm.cdf(-0.5), rel=0.2, abs=0)


def test_more_confidence_and_power_cost_more_and_models_as_much_as_canaries() -> None:
    claimed, true = GaussianTradeOff(0.5), Subsampled(GaussianTradeOff(3.0), 0.5)
    base = plan_audit(claimed, true).needed
    models = plan_audit(claimed, true, Unit.MODELS)
    assert (models.needed, models.to_json()["unit"]) == (base, "models")
    assert plan_audit(claimed, true, confidence=0.99).needed > base
    assert plan_audit(claimed, true, power=0.95).needed > base


@pytest.mark.parametrize(
    ("claimed", "true", "power", "words"),
    [
        (1.0, 1.0, 0.8, "nowhere below"),
        (1.0, 0.5, 0.8, "nowhere below"),
        (1.0, 1.0005, 0.8, "reaches a power"),
        (0.1, 1.0, 1.0, "power must be"),
    ],
)
def test_what_cannot_be_told_apart_is_refused(claimed: float, true: float, power: float, words: str) -> None:
    with pytest.raises((UnsupportedError, ParameterError), match=words):
        plan_audit(GaussianTradeOff(claimed), GaussianTradeOff(true), power=power)

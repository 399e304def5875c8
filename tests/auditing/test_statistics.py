"""Estimators against brute force, other formulas and simulation; refusals and extremes.

Theorems: RETICENT:audit-thresholds, RETICENT:audit-bands, RETICENT:audit-auc.
"""

from __future__ import annotations

import json
import math
import time

import mpmath
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import beta as beta_law
from scipy.stats import binom, norm

from reticent.adversaries import Relaxed
from reticent.auditing import (
    Bonferroni,
    Design,
    Finding,
    Given,
    Ranks,
    Scores,
    Split,
    Validity,
    auc_interval,
    audit,
    audit_advantage,
    audit_claim,
    audit_epsilon,
    audit_epsilon_if_gaussian,
    audit_mu,
    delong,
    empirical_trade_off,
    tpr_interval,
)
from reticent.auditing.claims import ApproximateDP, GaussianClaim, TangentTable, probits
from reticent.auditing.intervals import dkw_radius, lower_proportion, upper_proportion
from reticent.auditing.joint import FixedCounts
from reticent.auditing.thresholds import RankCounts, count
from reticent.kernel.adversaries import Method, WorstCase
from reticent.kernel.curves import GaussianTradeOff, Mixture, Subsampled, binomial
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.pairs import Neighbouring
from reticent.mechanisms import Laplace
from tests.auditing.games import contains, gaussian

RNG = np.random.default_rng(0)
TIED = Scores(RNG.integers(0, 9, 80) + 1.0, RNG.integers(0, 8, 70) * 1.0, design=Design.INDEPENDENT)
SMOOTH = gaussian(RNG, 1.0, 90, 110)


@pytest.mark.parametrize(("k", "n"), [(0, 10), (1, 10), (7, 40), (39, 40), (40, 40), (3, 5000)])
def test_clopper_pearson_solves_the_binomial_tails(k: int, n: int) -> None:
    # The defining equations, by root finding on binomial sums.
    a = 0.03
    upper = 1.0 if k == n else brentq(lambda p: binom.cdf(k, n, p) - a, 1e-12, 1 - 1e-12, xtol=1e-14)
    lower = 0.0 if k == 0 else brentq(lambda p: binom.sf(k - 1, n, p) - a, 1e-12, 1 - 1e-12, xtol=1e-14)
    assert float(upper_proportion(k, n, a)) == pytest.approx(upper, rel=1e-8, abs=0)
    assert float(lower_proportion(k, n, a)) == pytest.approx(lower, rel=1e-8, abs=0)


@pytest.mark.parametrize("scores", [TIED, SMOOTH])
def test_auc_counts_pairs_and_delong_is_the_variance_of_the_two_projections(scores: Scores) -> None:
    wins = (scores.member[:, None] > scores.non_member) + 0.5 * (scores.member[:, None] == scores.non_member)
    variance = wins.mean(1).var(ddof=1) / len(scores.member) + wins.mean(0).var(ddof=1) / len(scores.non_member)
    area, interval = wins.mean(), delong(scores)
    assert [auc_interval(scores).value, interval.value] == pytest.approx([area, area], rel=1e-12, abs=0)
    reach = norm.ppf(0.975) * math.sqrt(variance) / (area * (1 - area))
    lower = math.log(interval.lower / (1 - interval.lower))
    assert lower == pytest.approx(math.log(area / (1 - area)) - reach, rel=1e-9, abs=0)
    assert interval.validity is Validity.ASYMPTOTIC


def test_auc_ends_solve_the_chernoff_equation() -> None:
    interval = auc_interval(SMOOTH, 0.9)
    for end in (interval.lower, interval.upper):
        v = interval.value
        divergence = v * mpmath.log(v / end) + (1 - v) * mpmath.log((1 - v) / (1 - end))
        assert float(90 * divergence) == pytest.approx(math.log(1 / 0.05), rel=1e-8, abs=0)


def test_auc_at_the_extremes_is_finite() -> None:
    perfect, worst = Scores(np.arange(5.0) + 9, np.arange(5.0)), Scores(np.arange(5.0), np.arange(5.0) + 9)
    assert auc_interval(perfect).upper == 1.0
    assert auc_interval(perfect).lower == pytest.approx(0.025 ** (1 / 5), rel=1e-9, abs=0)
    assert (auc_interval(worst).lower, auc_interval(worst).value) == (0.0, 0.0)
    apart = Scores(np.array([1.0, 1.0]), np.array([1.0, 1.0]))
    for scores, words in ((perfect, "use auc_interval instead"), (apart, "scores that differ")):
        with pytest.raises(UnsupportedError, match=words):
            delong(scores)


def test_tpr_thresholds_come_from_order_statistics_alone() -> None:
    scores, fpr, quarter = SMOOTH, 0.1, 0.0125
    interval = tpr_interval(scores, fpr)
    ordered, n = np.sort(scores.non_member)[::-1], 110
    strict = max(k for k in range(1, n + 1) if beta_law.cdf(fpr, k, n - k + 1) >= 1 - quarter)
    loose = min(k for k in range(1, n + 1) if beta_law.cdf(fpr, k, n - k + 1) <= quarter)
    hits = int(np.sum(scores.member > ordered[strict - 1]))
    rest = 2 * quarter - beta_law.sf(fpr, strict, n - strict + 1)
    assert interval.lower == pytest.approx(beta_law.ppf(rest, hits, 90 - hits + 1), rel=1e-9, abs=0)
    hits = int(np.sum(scores.member >= ordered[loose - 1]))
    rest = 2 * quarter - beta_law.cdf(fpr, loose, n - loose + 1)
    assert interval.upper == pytest.approx(beta_law.ppf(1 - rest, hits + 1, 90 - hits), rel=1e-9, abs=0)
    assert interval.value == np.mean(scores.member > ordered[11])
    assert tpr_interval(SMOOTH, 1e-4).lower == 0.0  # not certified below what the non-members can show


def test_band_steps_and_radius() -> None:
    curve = empirical_trade_off(SMOOTH, 0.9)
    assert curve.alpha_radius == pytest.approx(math.sqrt(math.log(2 / 0.05) / (2 * 110)), rel=1e-12, abs=0)
    assert curve.beta_radius == dkw_radius(90, 0.05)
    assert curve.alpha[0] == 0.0
    assert (curve.alpha[-1], curve.beta[-1]) == (1.0, 0.0)
    points = [
        (np.mean(SMOOTH.non_member > t), np.mean(SMOOTH.member <= t))
        for t in np.concatenate([[-9.0], SMOOTH.member, SMOOTH.non_member])
    ]
    for name, sign in (("estimate", 0), ("upper", 1), ("lower", -1)):
        for alpha in (0.0, 0.05, 0.3, 0.77, 1.0):
            reached = [b + sign * curve.beta_radius for a, b in points if a + sign * curve.alpha_radius <= alpha]
            expected = min(max(min(reached, default=1.0), 0.0), 1.0)
            assert float(getattr(curve, name)(alpha)) == pytest.approx(expected, rel=1e-12, abs=1e-13)


def test_band_tells_curves_apart() -> None:
    band = empirical_trade_off(gaussian(np.random.default_rng(1), 1.0, 2000, 2000))
    assert contains(band, GaussianTradeOff(1.0))
    assert not contains(band, GaussianTradeOff(0.7))
    assert not contains(band, GaussianTradeOff(1.3))


@pytest.mark.parametrize("claim", [GaussianClaim(0.7), ApproximateDP(1.0, 0.03), TangentTable(GaussianTradeOff(0.7))])
@pytest.mark.parametrize(
    ("rank", "others", "misses", "members"),
    [(1, 30, 10, 25), (9, 30, 3, 40), (25, 60, 20, 50)],
)
def test_rank_p_value_is_the_integral_from_above(claim, rank: int, others: int, misses: int, members: int) -> None:
    u = (np.arange(200_000) + 0.5) / 200_000  # the midpoint rule is exact to 1e-9 of these values
    exact = np.mean(beta_law.pdf(u, rank, others - rank + 1) * binom.cdf(misses, members, claim.beta(u)))
    found = RankCounts(0.0, rank, others, misses, members).p_value(claim)
    assert exact * (1 - 1e-6) <= found <= exact * 1.05 + 1e-12


CURVES = {
    "nothing": lambda: GaussianTradeOff(0.0),
    "little": lambda: GaussianTradeOff(0.05),
    "much": lambda: GaussianTradeOff(6.0),
    "subsampled": lambda: Subsampled(GaussianTradeOff(2.0), 0.05),
    "mixture": lambda: Mixture([GaussianTradeOff(5.0), GaussianTradeOff(0.1)], [0.01, 0.99]),
}
MECHANISMS = {"laplace": Laplace(1.0), "steps": DPSGD(2.0, 0.1, 500)}
MECHANISMS |= {"releases": Laplace(2.0, 20), "many steps": DPSGD(0.6, 1e-4, 1_000_000)}
OF_ADVERSARIES = [(f"{who.name}, {name}", who, m) for who in (WorstCase(), Relaxed()) for name, m in MECHANISMS.items()]
CURVES |= {
    name: (lambda who=who, m=m: who.assess(m, Neighbouring.ADD_REMOVE, Method.EXACT).curve)
    for name, who, m in OF_ADVERSARIES
}
BY_DEFAULT = {"nothing", "little", "much", "subsampled", "mixture", "worst-case, laplace", "worst-case, steps"}


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in BY_DEFAULT else pytest.mark.slow) for n in CURVES])
def test_tangents_never_exceed_the_curve_and_touch_it(name) -> None:
    curve = CURVES[name]()
    alpha = np.concatenate([np.logspace(-7, 0, 100)[:-1], 1 - np.logspace(-7, -1, 20)])
    exact, table = curve.beta(alpha), TangentTable(curve).beta(alpha)
    assert np.all(table <= exact + 1e-12)
    assert np.max(exact - table) < 5e-5


@pytest.mark.parametrize(
    ("claim", "ordering"),
    [
        (GaussianClaim(0.8), probits),
        pytest.param(GaussianClaim(0.0), probits, marks=pytest.mark.slow),
        (ApproximateDP(1.0, 0.02), lambda a, b: np.maximum(np.log(np.maximum(0.98 - b, 1e-9) / a), 0.0)),
        pytest.param(ApproximateDP(0.0, 0.3), lambda a, b: 1.0 - a - b, marks=pytest.mark.slow),
        pytest.param(TangentTable(GaussianTradeOff(1.5)), probits, marks=pytest.mark.slow),
    ],
)
def test_level_at_a_fixed_threshold_is_exact_by_exhaustion(claim, ordering) -> None:
    """Every pair of counts, every pair of true rates on the claimed curve: the chance of rejecting is at most a."""
    others, members, significance = 18, 15, 0.1
    refused = np.array(
        [
            [FixedCounts(0.0, fp, others, fn, members).test(significance, ordering)(claim) for fn in range(members + 1)]
            for fp in range(others + 1)
        ]
    )
    alpha = np.concatenate([np.linspace(0, 1, 401), np.logspace(-5, -2, 50)])
    beta = claim.beta(alpha)
    chance = (
        binom.pmf(np.arange(others + 1)[:, None], others, alpha),
        binom.pmf(np.arange(members + 1)[:, None], members, beta),
    )
    level = np.einsum("ik,ij,jk->k", chance[0], refused, chance[1])
    assert refused.any()
    assert level.max() <= significance + 1e-12
    assert level.max() >= 0.25 * significance
    # More errors never tell more.
    assert not np.any(np.diff(refused.astype(int), axis=0) > 0)
    assert not np.any(np.diff(refused.astype(int), axis=1) > 0)


@pytest.mark.parametrize(("delta", "threshold"), [(0.02, 0.2), (0.0, 1.9), (1e-5, 0.9)])
def test_given_threshold_lies_between_the_textbook_formula_and_the_estimate(delta: float, threshold: float) -> None:
    fp, fn = int(np.sum(SMOOTH.non_member > threshold)), int(np.sum(SMOOTH.member <= threshold))
    for alpha, beta, better in (
        (beta_law.ppf(0.975, fp + 1, 110 - fp), beta_law.ppf(0.975, fn + 1, 90 - fn), np.greater),
        (fp / 110, fn / 90, np.less),
    ):
        epsilon = max(math.log((1 - delta - beta) / alpha), math.log((1 - delta - alpha) / beta), 0.0)
        assert epsilon == 0 or better(audit_epsilon(SMOOTH, delta, Given(threshold)).value, epsilon)
        assert better(audit_mu(SMOOTH, Given(threshold)).value, norm.isf(alpha) - norm.ppf(beta))
        assert better(audit_advantage(SMOOTH, Given(threshold)).value, 1 - alpha - beta)


def test_blocks_of_counts_are_a_distribution_and_round_up() -> None:
    rates = np.linspace(0.0, 0.4, 7)
    for trials in (3, 50, 20_000):
        starts, mass = binomial.shared_blocks(rates, trials, 320)
        assert starts[0] == 0
        np.testing.assert_allclose(mass.sum(axis=1), 1.0, rtol=1e-12)
        expected = np.diff(binom.cdf(np.append(starts[1:] - 1, trials), trials, rates[:, None]), axis=1, prepend=0.0)
        np.testing.assert_allclose(mass, expected, rtol=1e-6, atol=1e-13)


def test_bonferroni_shares_the_significance() -> None:
    alone = audit_mu(SMOOTH, Given(0.5), confidence=1 - 0.05 / 4).value
    for others in ((0.5, 50.0, 60.0, -70.0), (-1.0, 0.5, 60.0, -70.0)):  # -1 refutes less, and comes first
        assert audit_mu(SMOOTH, Bonferroni(others)).value == pytest.approx(alone, rel=1e-6, abs=0)


def test_split_counts_only_what_it_did_not_choose_on() -> None:
    ((piece, _),) = Split(0.4, np.random.default_rng(3)).evidence(SMOOTH, lambda a, b: 1 - a - b)
    assert (piece.members, piece.non_members) == (90 - 36, 110 - 44)
    again = Split(0.4, np.random.default_rng(3)).evidence(SMOOTH, lambda a, b: 1 - a - b)
    assert again == ((piece, 1.0),)
    order = np.random.default_rng(3)
    member, other = order.permutation(90)[36:], order.permutation(110)[44:]
    assert piece == count(SMOOTH.member[member], SMOOTH.non_member[other], piece.threshold)


@pytest.mark.parametrize(
    ("bound", "claim"),
    [
        (audit_mu, GaussianClaim),
        (lambda scores, rule: audit_epsilon(scores, 0.01, rule), lambda e: ApproximateDP(e, 0.01)),
        (audit_advantage, lambda a: ApproximateDP(0.0, a)),
    ],
)
def test_rank_bounds_are_roots_of_the_p_value(bound, claim) -> None:
    value = bound(SMOOTH, Ranks((0.2,))).value
    ((piece, _),) = Ranks((0.2,)).evidence(SMOOTH, lambda a, b: a)
    assert piece.p_value(claim(value)) <= 0.05 < piece.p_value(claim(value + 1e-4))


@pytest.mark.parametrize("mu", [1.0, pytest.param(4.0, marks=pytest.mark.slow)])
def test_tightness_on_a_thousand_gaussian_canaries(mu) -> None:
    """1,000 canaries, half of them included: on average the bound is at least 80% of the true mu."""
    rng = np.random.default_rng(4)
    assert 0.8 * mu <= np.mean([audit_mu(gaussian(rng, mu, 500, 500)).value for _ in range(3)]) <= mu


@pytest.mark.parametrize(
    "rule",
    [
        None,
        Given(500.0),
        *(
            pytest.param(r, marks=pytest.mark.slow)
            for r in (Bonferroni((500.0, 700.0)), Split(0.3, np.random.default_rng(5)))
        ),
    ],
)
def test_perfect_leakage_is_capped_and_equals_the_ceiling(rule) -> None:
    scores = Scores(np.arange(200.0) + 1000, np.arange(200.0), design=Design.INDEPENDENT)
    for bound in (
        audit_mu(scores, rule),
        audit_advantage(scores, rule),
        audit_epsilon(scores, 1e-5, rule),
        audit_epsilon(scores, 0.0, rule),
        audit_epsilon_if_gaussian(scores, 1e-5, rule),
    ):
        assert 0 < bound.value < 50
        assert bound.value == pytest.approx(bound.ceiling, rel=1e-5, abs=0)
    report = audit(scores, {"claim": GaussianTradeOff(1.0)}, rule=rule)
    assert report.verdicts["claim"].finding is Finding.INCONSISTENT
    json.dumps(report.to_json(), allow_nan=False)


def test_epsilon_if_gaussian_is_the_conversion_of_mu() -> None:
    mu, delta = audit_mu(SMOOTH).value, 1e-5
    expected = brentq(lambda e: norm.cdf(-e / mu + mu / 2) - math.exp(e) * norm.cdf(-e / mu - mu / 2) - delta, 0, 40)
    bound = audit_epsilon_if_gaussian(SMOOTH, delta)
    assert bound.value == pytest.approx(expected, rel=1e-6, abs=0)
    assert any("Gaussian" in note for note in bound.notes)
    assert bound.value > audit_epsilon(SMOOTH, delta).value


def test_verdicts() -> None:
    scores = gaussian(np.random.default_rng(6), 1.0, 500, 500)
    wrong, right = audit_claim(scores, GaussianTradeOff(0.3)), audit_claim(scores, GaussianTradeOff(1.2))
    assert wrong.finding is Finding.INCONSISTENT
    assert wrong.refuted_at == 1 - wrong.p_value > 0.95
    assert right.finding is Finding.CONSISTENT
    assert right.refuted_at is None
    # At a confidence that the evidence does not reach, the same scores refute nothing.
    barely = audit_claim(scores, GaussianTradeOff(audit_mu(scores, confidence=0.9).value), confidence=0.95)
    assert barely.finding is Finding.CONSISTENT
    assert barely.p_value == pytest.approx(0.1, rel=0.02, abs=0)
    few = audit_claim(Scores(np.arange(4.0) + 10, np.arange(4.0)), GaussianTradeOff(3.0))
    assert few.finding is Finding.NO_POWER
    assert few.perfect_p_value > 0.05
    blind = audit_claim(gaussian(np.random.default_rng(7), 0.0, 300, 300), GaussianTradeOff(2.0))
    assert blind.finding is Finding.NO_POWER
    assert "guessing" in blind.reason


@pytest.mark.parametrize(
    "rule", [Given(0.8), pytest.param(Bonferroni((0.2, 0.8)), marks=pytest.mark.slow), Ranks((0.1,))]
)
def test_a_verdict_agrees_with_the_bound(rule) -> None:
    value = audit_mu(SMOOTH, rule).value
    assert audit_claim(SMOOTH, GaussianTradeOff(0.98 * value), rule).finding is Finding.INCONSISTENT
    assert audit_claim(SMOOTH, GaussianTradeOff(1.02 * value), rule).finding is not Finding.INCONSISTENT


def test_scores_do_not_change_behind_the_back() -> None:
    given = np.array([1.0, 2.0])
    scores = Scores(given, np.array([0.0]), {"attack": "x"})
    given[0] = 99.0
    assert scores.member[0] == 1.0
    with pytest.raises(ValueError):
        scores.member[0] = 3.0


@pytest.mark.parametrize(
    "bad",
    [
        *(
            lambda member=member, other=other: Scores(np.asarray(member), np.asarray(other))
            for member, other in (
                ([], [1.0]),
                ([1.0, math.nan], [0.0]),
                ([1.0], [-math.inf]),
                ([[1.0]], [0.0]),
                (["a"], [0.0]),
                ([True], [False]),
                (np.array([object()]), [0.0]),
            )
        ),
        lambda: Scores(np.array([1.0]), np.array([0.0]), {"nested": {}}),
        lambda: Given(math.nan),
        lambda: Bonferroni(()),
        lambda: Bonferroni((1.0, math.inf)),
        lambda: Ranks(()),
        lambda: Ranks((0.0,)),
        lambda: Split(1.0, np.random.default_rng()),
        lambda: Split(0.001, np.random.default_rng()).evidence(SMOOTH, lambda a, b: a),
        lambda: audit_mu(SMOOTH, confidence=1.0),
        lambda: audit_epsilon(SMOOTH, 1.5),
        lambda: audit(SMOOTH, rule="ranks"),
        lambda: tpr_interval(SMOOTH, 0.0),
        lambda: auc_interval(SMOOTH, 95),
    ],
)
def test_arguments_outside_their_domain(bad) -> None:
    with pytest.raises(ParameterError) as refusal:
        bad()
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("design", "half", "seconds"),
    [
        (Design.POPULATION, 50_000, 5.0),  # many times what it takes: a busy processor is no failure
        pytest.param(Design.INDEPENDENT, 500_000, 5.0, marks=pytest.mark.slow),
        pytest.param(Design.ONE_RUN, 500_000, 30.0, marks=pytest.mark.slow),
    ],
)
def test_a_million_scores_and_a_report_that_is_small_strict_json_without_one_of_them(design, half, seconds) -> None:
    """Five seconds for independent scores, thirty for canaries of one run; processor time, with progress."""
    drawn = gaussian(np.random.default_rng(0), 1.0, half, half)
    scores, seen = Scores(drawn.member, drawn.non_member, {"attack": "loss"}, design), []
    start = time.process_time()
    report = audit(scores, {"mu=1": GaussianTradeOff(1.0)}, progress=lambda *now: seen.append(now))
    assert time.process_time() - start < seconds
    assert seen == [(n, len(seen)) for n in range(1, len(seen) + 1)]
    assert len(seen) == (8 if design is Design.ONE_RUN else 6)
    mu = next(bound for bound in report.bounds if str(bound.quantity) == "mu")
    assert 0.96 < mu.value <= 1.0
    document = report.to_json()
    text = json.dumps(document, allow_nan=False)
    assert len(text) < 20_000
    assert (document["schema"], document["design"]) == ("reticent.audit/1", design.value)
    if design is Design.POPULATION:
        assert all("share one training run" in bound["notes"][-1] for bound in document["bounds"])
    assert json.loads(text) == document

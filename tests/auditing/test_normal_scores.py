"""Normal scores against enumeration and integrals; the level for claims that are exactly true.

Theorems: RETICENT:audit-normal-scores.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from reticent.auditing import Design, NormalScores, Ranks, Scores, audit_claim, audit_mu, normal_scores
from reticent.auditing.claims import ApproximateDP, GaussianClaim, probits
from reticent.auditing.normal_scores import OrderCounts
from reticent.auditing.ties import SHARE
from reticent.kernel.curves import GaussianTradeOff
from tests.auditing.games import answers, gaussian, yes

DRAWS = 1999


def near(p_value: float, exact: float) -> bool:
    """Whether a drawn p-value is within five deviations of the exact one, over the share that ties leave."""
    return (exact >= SHARE and p_value == 1.0) or abs(p_value * SHARE - exact) <= 1 / DRAWS + 5 * math.sqrt(
        exact * (1 - exact) / DRAWS
    )


def piece(member, other) -> OrderCounts:
    return OrderCounts.of(Scores(np.array(member, float), np.array(other, float), design=Design.INDEPENDENT))


@pytest.mark.parametrize("ranks", [(0, 1, 2), (4, 5, 6), (1, 4, 6), (2, 3, 5)])
def test_without_leakage_all_orders_are_equally_likely(ranks) -> None:
    size, weights = 7, norm.ppf((np.arange(7) + 0.5) / 7)
    seen = weights[list(ranks)].sum()
    sums = np.array([weights[list(c)].sum() for c in itertools.combinations(range(size), 3)])
    exact = np.mean(sums >= seen - 1e-12)
    others = [r for r in range(size) if r not in ranks]
    assert near(piece(ranks, others).p_value(GaussianClaim(0.0)), float(exact))


@pytest.mark.parametrize("mu", [0.4, 1.5])
def test_two_against_one_is_an_integral(mu: float) -> None:
    # Two non-members x < z and one member on top: P(member above both) = E[F(y)^2] with y normal around mu.
    exact = norm.expect(lambda y: norm.cdf(y) ** 2, loc=mu)
    assert near(piece([5.0], [1.0, 2.0]).p_value(GaussianClaim(mu)), exact)
    # In the middle or above: 1 - P(below both).
    below = norm.expect(lambda y: norm.sf(y) ** 2, loc=mu)
    assert near(piece([1.5], [1.0, 2.0]).p_value(GaussianClaim(mu)), 1 - below)


def test_pure_privacy_of_one_pair_is_the_area_under_its_curve() -> None:
    # P(member above non-member) under (e, 0): 1 - integral of f.
    claim, grid = ApproximateDP(1.0, 0.0), np.linspace(0, 1, 200_001)
    exact = 1 - np.trapezoid(claim.beta(grid), grid)
    assert near(piece([1.0], [0.0]).p_value(claim), float(exact))


def test_a_larger_claim_explains_more_and_the_order_of_the_file_does_not_matter() -> None:
    rng = np.random.default_rng(1)
    member, other = rng.normal(1, 1, 300), rng.normal(0, 1, 400)
    one, again = piece(member, other), piece(member[::-1], rng.permutation(other))
    assert one == again
    found = [one.p_value(GaussianClaim(mu)) for mu in np.linspace(0.0, 2.0, 21)]
    assert found == sorted(found)
    assert found[0] == pytest.approx(1 / (DRAWS + 1) / SHARE, rel=1e-12, abs=0)
    assert found[-1] == 1.0
    # Raising one member never hurts; scales do not matter.
    higher = member.copy()
    higher[7] += 3.0
    assert piece(higher, other).statistic >= one.statistic
    assert piece(np.exp(member), np.exp(other)).statistic == one.statistic
    assert one.perfect.statistic >= one.statistic


@pytest.mark.parametrize("sizes", [(5, 5), (3, 9)])
def test_the_level_of_yes_and_no_over_all_outcomes(sizes) -> None:
    """Randomised response, enumerated: one order that followed from the scores let 28% of audits accuse no leak."""
    cases = [(0.0, (base, base)) for base in (0.3, 0.5, 0.7)] + [(0.5, (yes(0.5), 1.0 - yes(0.5)))]
    level = np.zeros(len(cases))
    for counts in itertools.product(*(range(size + 1) for size in sizes)):
        if 0 < sum(counts) < sum(sizes):
            pieces = NormalScores().evidence(said(counts, sizes), probits)
            for k, (epsilon, rates) in enumerate(cases):
                claim = ApproximateDP(epsilon, 0.0)
                refuted = any(piece.rejects(claim, 0.05 * share) for piece, share in pieces)
                level[k] += refuted * math.prod(binom.pmf(counts, sizes, rates))
    assert level.max() <= 0.05


def said(counts: tuple[int, ...], sizes: tuple[int, ...]) -> Scores:
    """So many yes of each side."""
    return answers(*((count, size - count) for count, size in zip(counts, sizes, strict=True)))


def test_few_equal_scores_cost_little_and_many_cost_no_more_than_power() -> None:
    exact = gaussian(np.random.default_rng(2), 0.7, 300, 300)
    rounded = Scores(np.round(exact.member * 2) / 2, np.round(exact.non_member * 2) / 2, design=exact.design)
    found = [audit_mu(scores, NormalScores()).value for scores in (exact, rounded)]
    assert found[1] > 0.8 * found[0]
    assert audit_mu(said((350, 150), (500, 500)), NormalScores()).value > 0.4


@pytest.mark.parametrize("audits", [100, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "sizes"), [("gaussian", (300, 90)), ("response", (60, 50))])
def test_the_level_holds_where_the_claim_is_exactly_true(name, sizes, audits, monkeypatch) -> None:
    """The level is exact for any number of drawn samples; ``tests/null`` has more claims."""
    monkeypatch.setattr(normal_scores, "DRAWS", 399)
    rng, refused = np.random.default_rng([len(name), *sizes]), 0
    for _ in range(audits):
        scores, claim = gaussian(rng, 1.0, *sizes), GaussianClaim(1.0)
        if name == "response":
            # Another scale each time: counts come again, and with them the coins, which are a digest of the scores.
            scale, rates = 1.0 + rng.random(), (yes(1.0), 1.0 - yes(1.0))
            sides = (scale * (rng.random(size) < rate) for size, rate in zip(sizes, rates, strict=True))
            scores, claim = Scores(*sides, design=Design.INDEPENDENT), ApproximateDP(1.0, 0.0)
        refused += OrderCounts.of(scores).rejects(claim, 0.05)
    assert refused <= binom.ppf(0.99, audits, 0.05)
    assert name == "response" or refused >= binom.ppf(0.01, audits, 0.05)


def test_bounds_reach_what_known_noise_would_give() -> None:
    rng, share = np.random.default_rng(5), []
    for _ in range(4):
        scores = gaussian(rng, 0.5, 500, 500)
        known = scores.member.mean() - scores.non_member.mean() - norm.ppf(0.95) * math.sqrt(2 / 500)
        share.append((audit_mu(scores).value, audit_mu(scores, Ranks()).value, known))
    ours, ranks, known = np.mean(share, axis=0)
    assert ours > 0.95 * known
    assert ours > 1.02 * ranks


def test_what_is_beyond_the_drawn_law_is_left_to_ranks() -> None:
    scores = gaussian(np.random.default_rng(6), 3.0, 500, 500)
    verdict = audit_claim(scores, GaussianTradeOff(1.0))
    assert verdict.p_value < 1e-9
    assert verdict.theorems[:2] == ("RETICENT:audit-normal-scores", "RETICENT:audit-ranks")
    assert sum(share for _, share in NormalScores().evidence(scores, probits)) == pytest.approx(1.0, rel=1e-12, abs=0)
    assert audit_mu(scores).thresholds == audit_mu(scores, Ranks()).thresholds


@pytest.mark.parametrize("size", [1, 2, 64, 65, 100, 1001])
def test_the_ranks_that_are_kept_mirror_themselves(size: int) -> None:
    kept = normal_scores.kept_ranks(size)
    assert len(kept) == min(size, 64)
    assert kept[0] >= 1
    assert np.all(np.diff(kept) >= 1)
    np.testing.assert_array_equal(kept, size + 1 - kept[::-1])


def test_kept_order_statistics_have_their_beta_laws() -> None:
    drawn = normal_scores.order_statistics(np.random.default_rng(7), 200)
    kept = normal_scores.kept_ranks(200)
    expected, deviation = kept / 201, np.sqrt(kept * (201 - kept) / (201**2 * 202))
    assert np.all(np.abs(drawn.mean(axis=0) - expected) <= 5 * deviation / math.sqrt(DRAWS))
    np.testing.assert_allclose(drawn.std(axis=0), deviation, rtol=0.1)
    assert np.all(np.diff(drawn, axis=1) > 0)

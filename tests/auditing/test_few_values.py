"""Scores with few values, such as answers: thresholds lie between the values; and scores that are turned round."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.stats import beta, binom

from reticent.auditing import (
    Design,
    Finding,
    Given,
    Scores,
    audit,
    audit_advantage,
    audit_claim,
    audit_epsilon,
    audit_mu,
)
from reticent.auditing.claims import GaussianClaim, probits
from reticent.auditing.joint import FixedCounts
from reticent.auditing.thresholds import BetweenValues, NormalScores, Ranks
from reticent.certificates.page.audit_page import render_audit
from reticent.certificates.page.figures import audit_figure, svg
from reticent.kernel.curves import GaussianTradeOff
from tests.auditing.games import answers

CLAIM = GaussianTradeOff(0.41)
"""Noise 1, rate .01, 1,000 steps: of members who are right 90% of the time, others 70%, it allows 82.5%."""
SOME = answers((9, 1), (7, 3))


def textbook(hits: int, members: int, alarms: int, others: int, significance: float) -> float:
    """The advantage by two Clopper-Pearson intervals: valid, and somewhat too small."""
    lower = beta.ppf(significance / 2, hits, members - hits + 1)
    return lower - beta.ppf(1 - significance / 2, alarms + 1, others - alarms)


def test_answers_tell_what_a_threshold_given_beforehand_tells() -> None:
    """By the orders of equal scores the advantage was at least .047, and a claim that is false was consistent."""
    scores, given = answers((900, 100), (700, 300)), Given(0.5)
    advantage, mu = audit_advantage(scores).value, audit_mu(scores).value
    assert textbook(900, 1000, 700, 1000, 0.05) < advantage < 0.2
    assert advantage == pytest.approx(audit_advantage(scores, given).value, rel=1e-9, abs=0)
    assert mu == pytest.approx(audit_mu(scores, given).value, rel=1e-9, abs=0)
    assert mu > 0.5
    assert audit_epsilon(scores, 1e-5).value > 0.15
    verdict, other = audit_claim(scores, CLAIM), audit_claim(scores, CLAIM, given)
    assert verdict.finding is Finding.INCONSISTENT
    assert verdict.p_value == pytest.approx(other.p_value, rel=1e-9, abs=0)
    assert "if the attack can give no others" in verdict.notes[-1]
    assert not other.notes


@pytest.mark.parametrize("values", [(9.0, 5.0), (-1e-300, -1e300), (np.nextafter(1.0, 2.0), 1.0)])
def test_of_any_two_values_the_counts_are_the_same(values) -> None:
    pieces = [BetweenValues.of(one).evidence(one, None) for one in (SOME, answers((9, 1), (7, 3), values))]
    assert [replace(piece, threshold=0.0) for ((piece, _),) in pieces] == [FixedCounts(0.0, 7, 10, 1, 10)] * 2


def test_several_values_share_the_significance() -> None:
    scores = answers((500, 300, 200), (300, 300, 400), (2.0, 1.0, 0.0))
    found = audit_advantage(scores).value
    assert textbook(800, 1000, 600, 1000, 0.025) < found < 0.2
    assert BetweenValues.of(scores).candidates == (0.0, 1.0)
    assert found < audit_advantage(scores, Given(0.0)).value


def test_scores_with_many_values_or_hardly_a_tie_are_tested_as_before() -> None:
    rng = np.random.default_rng(0)
    for scores, few in (
        (Scores(rng.normal(size=4), rng.normal(size=4)), False),
        (Scores(rng.integers(0, 9, 400), np.arange(9)), False),
        (answers((3, 0, 1), (0, 2, 0), (2.0, 1.0, 0.0)), True),
        (answers((30,), (40,), (0.5,)), False),
    ):
        assert (BetweenValues.of(scores) is not None) == few
        if not few:
            assert audit_mu(scores).rule == str(NormalScores())
            assert audit_advantage(scores).rule == f"{NormalScores()}, ranks"


@pytest.mark.parametrize("sizes", [(4, 4), *(pytest.param(s, marks=pytest.mark.slow) for s in ((5, 5), (4, 8)))])
def test_the_level_of_answers_over_all_outcomes(sizes) -> None:
    """Nothing leaks: enumerated, at most 5% of audits accuse, and for so few no more than that is known."""
    accused = np.zeros(2)
    for counts in itertools.product(*(range(size + 1) for size in sizes)):
        scores = answers(*((yes, size - yes) for yes, size in zip(counts, sizes, strict=True)))
        found = audit_claim(scores, GaussianTradeOff(0.0)).finding
        accused += [np.prod(binom.pmf(counts, sizes, rate)) * (found is Finding.INCONSISTENT) for rate in (0.3, 0.5)]
    assert accused.max() <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["nine", "rare", "tail"])
def test_the_level_where_another_value_is_rare(kind: str) -> None:
    """Whether there are few values is seen in the scores; where this is chance, nothing leaks and 500 audits say so."""
    rng, accused, weights = np.random.default_rng(len(kind)), 0, np.array([1.0] * 7 + [0.02] * 2)

    def draw(size: int) -> np.ndarray:
        if kind == "nine":
            return rng.choice(9, size, p=weights / weights.sum()).astype(float)
        rare = rng.random(size) < 2.0 / size
        return np.where(rare, 2.0 + rng.random(size), 1.0 * (rng.random(size) < 0.3) * (kind == "rare"))

    @cache
    def refused(piece, share: float) -> bool:
        return piece.rejects(GaussianClaim(0.0), 0.05 * share)

    for _ in range(500):
        scores = Scores(draw(60), draw(60), design=Design.INDEPENDENT)
        pieces = (BetweenValues.of(scores) or NormalScores()).evidence(scores, probits)
        counts = ((replace(p, threshold=0.0) if isinstance(p, FixedCounts) else p, share) for p, share in pieces)
        accused += any(refused(*one) for one in counts)
    assert accused <= binom.ppf(0.99, 500, 0.05)


def test_equal_scores_are_an_answer() -> None:
    """An attack that tells nobody from anybody: it was an error."""
    report = audit(answers((30,), (40,), (0.5,)), {"c": CLAIM}, rule=Ranks((0.1,)))
    assert (report.auc.value, report.auc_asymptotic) == (0.5, None)
    assert [bound.value for bound in report.bounds] == [0.0] * 4
    assert report.verdicts["c"].finding is Finding.NO_POWER
    assert report.hints == ("All scores are equal: this attack tells nobody from anybody.",)


def test_scores_that_are_turned_round_are_named() -> None:
    """Losses as scores said "no power" without a word on why."""
    rng, rule = np.random.default_rng(1), Ranks((0.1,))
    losses = Scores(rng.normal(0.0, 1.0, 60), rng.normal(1.0, 1.0, 60))
    report = audit(losses, {"c": CLAIM}, rule=rule)
    (hint,) = report.hints
    assert "reversed (AUC 0.2" in hint
    assert hint in report.to_json()["notes"]
    page = render_audit(report, svg(audit_figure(report, {"c": CLAIM})))
    assert hint in page.replace("&#39;", "'")
    for fair in (Scores(-losses.member, -losses.non_member), Scores(rng.normal(size=50), rng.normal(size=50))):
        assert not audit(fair, rule=rule).hints

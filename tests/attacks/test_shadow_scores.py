"""LiRA and RMIA against cases where the right answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import log_expit

from reticent.attacks.shadow_scores import lira_offline, lira_online, rmia
from reticent.attacks.signals import scaled_confidence
from reticent.auditing import Scores, audit_claim
from reticent.auditing.verdict import Finding
from reticent.curves import RelaxedGaussianTradeOff
from reticent.kernel.curves import GaussianTradeOff
from reticent.kernel.errors import ParameterError


def world(models: int, records: int, shift: float, seed: int = 0):
    """Confidences N(difficulty, 1), moved by ``shift`` where the record was trained on; the target is model 0."""
    rng = np.random.default_rng(seed)
    difficulty = rng.normal(0.0, 3.0, records)
    included = np.array([rng.permutation(records) < records // 2 for _ in range(models + 1)])
    values = difficulty + shift * included + rng.standard_normal((models + 1, records))
    return values[0], included[0], values[1:], included[1:], difficulty


def auc(scores: np.ndarray, member: np.ndarray) -> float:
    ranks = stats.rankdata(scores)
    m = member.sum()
    return float((ranks[member].sum() - m * (m + 1) / 2) / (m * (~member).sum()))


def test_online_lira_equals_the_naive_formula():
    target, _, shadow, included, _ = world(200, 6, shift=1.0)
    expected = []
    for r in range(6):
        inside, outside = shadow[included[:, r], r], shadow[~included[:, r], r]
        expected.append(
            stats.norm.logpdf(target[r], inside.mean(), inside.std(ddof=1))
            - stats.norm.logpdf(target[r], outside.mean(), outside.std(ddof=1))
        )
    assert lira_online(target, shadow, included) == pytest.approx(expected, rel=1e-9, abs=0)


def test_few_models_share_one_variance():
    target, _, shadow, included, _ = world(16, 50, shift=1.0)
    outside = np.where(~included, shadow, np.nan)
    pooled = np.nansum((outside - np.nanmean(outside, axis=0)) ** 2) / ((~included).sum(axis=0) - 1).sum()
    z = lira_offline(target, shadow, included)
    assert np.ptp((target - np.nanmean(outside, axis=0)) / z) == pytest.approx(0.0, abs=1e-9)
    assert (target - np.nanmean(outside, axis=0))[0] / z[0] == pytest.approx(np.sqrt(pooled), rel=1e-9, abs=0)


def test_offline_lira_is_one_sided_and_beats_the_two_sided_bound():
    """KAISSIS2023:R4: the relaxed curve is no bound for offline LiRA; the worst case is."""
    target, member, shadow, included, _ = world(512, 10_000, shift=2.0, seed=3)
    values = lira_offline(target, shadow, included)
    assert np.all(
        np.diff(lira_offline(np.linspace(-9, 9, 50), np.tile(shadow[:, :1], 50), included[:, :1].repeat(50, 1))) > 0
    )
    scores = Scores(values[member], values[~member])
    assert audit_claim(scores, RelaxedGaussianTradeOff(4.0, 1), confidence=0.99).finding is Finding.INCONSISTENT
    assert audit_claim(scores, GaussianTradeOff(2.0), confidence=0.99).finding is not Finding.INCONSISTENT


def test_rmia_counts_what_it_says():
    target, _, shadow, included, _ = world(64, 40, shift=1.5)
    population = np.arange(30, 40)
    probability = lambda c: 1.0 / (1.0 + np.exp(-c))  # noqa: E731
    expected = np.empty(40)
    for r in range(40):
        ratios = []
        for z in (r, *population):
            inside, outside = probability(shadow[included[:, z], z]), probability(shadow[~included[:, z], z])
            ratios.append(probability(target[z]) / (0.5 * inside.mean() + 0.5 * outside.mean()))
        expected[r] = np.mean(ratios[0] / np.array(ratios[1:]) >= 1.0)
    assert rmia(target, shadow, included, population) == pytest.approx(expected, rel=1e-12, abs=0)


def test_rmia_offline_uses_no_model_that_saw_the_record():
    target, member, shadow, included, _ = world(64, 400, shift=2.0)
    spoiled = np.where(included, 99.0, shadow)
    population = np.arange(300, 400)
    a = rmia(target, shadow, included, population, offline_share=0.3)
    assert np.array_equal(a, rmia(target, spoiled, included, population, offline_share=0.3))
    assert auc(a, member) > 0.6


def test_agreement_to_the_last_digit_gives_finite_scores():
    shadow, included = np.ones((8, 3)), np.tile([True, False], 4)[:, None].repeat(3, 1)
    assert np.all(np.isfinite(lira_online(np.array([0.0, 1.0, 2.0]), shadow, included)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t, s, i: lira_online(t, s, np.ones_like(i)), "lacks models on one side"),
        (lambda t, s, i: lira_online(t[:-1], s, i), "shape"),
        (lambda t, s, i: lira_online(np.where(np.arange(10) == 3, np.nan, t), s, i), "finite"),
        (lambda t, s, i: rmia(t, s, i, np.array([], dtype=int)), "population"),
        (lambda t, s, i: scaled_confidence(np.array([[np.nan, 0.0]]), np.array([0])), "diverged"),
        (lambda t, s, i: scaled_confidence(np.zeros((2, 1)), np.array([0, 0])), "one label per record"),
    ],
)
def test_refusals(change, words):
    target, _, shadow, included, _ = world(8, 10, shift=1.0)
    with pytest.raises(ParameterError, match=words):
        change(target, shadow, included)


def test_scaled_confidence_keeps_digits_where_the_probability_rounds_to_one():
    logits = np.array([[60.0, 0.0, 1.0], [0.0, 60.0, 1.0]])
    values = scaled_confidence(logits, np.array([0, 0]))
    assert values[0] == pytest.approx(60.0 - np.log(1.0 + np.e), rel=1e-12, abs=0)
    assert values[1] == pytest.approx(-60.0, rel=1e-12, abs=0)
    mild = np.array([[0.3, -0.2, 1.0]])
    p = np.exp(mild) / np.exp(mild).sum()
    assert scaled_confidence(mild, np.array([2]))[0] == pytest.approx(np.log(p[0, 2] / (1 - p[0, 2])), rel=1e-12, abs=0)
    assert log_expit(scaled_confidence(mild, np.array([2])))[0] == pytest.approx(np.log(p[0, 2]), rel=1e-12, abs=0)

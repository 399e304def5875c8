"""GLiR on simulated gradients: densities, null levels, combination, stability, the paper's slips."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from experiments.gaussian_mip.exact_step import GaussianGradientTradeOff
from reticent.attacks import glir_statistics as glir
from reticent.attacks.covariance import Background
from reticent.curves import ncx2
from reticent.kernel.errors import NumericalError, ParameterError
from reticent.samplers import FixedSize


class Exact(Background):
    """A law of which nothing is estimated."""

    inverse_bias = 1.0


def exactly(mean: np.ndarray, covariance: np.ndarray) -> Background:
    return Exact(mean, np.empty((0, len(mean))), covariance, 1.0, 0.0)


def by_sample(rows: np.ndarray) -> Background:
    """By the sample covariance, however few the records."""
    return replace(Background.estimated(rows), share=1.0)


def law(d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(d, d)) / np.sqrt(d) + np.eye(d)
    return rng.normal(size=d), root @ root.T


def log_p_noncentral(distance: np.ndarray, k: np.ndarray, n: float, d: int) -> np.ndarray:
    """One full batch without noise, of a known law: lower tail of chi-square(d, n K) at n D (LEEMANN2023:G16)."""
    return ncx2.log_cdf(distance, float(d), n * k, 1e-9)


@pytest.mark.parametrize("noise", [0.0, 1.7])
@pytest.mark.parametrize("p", [1.0, 0.03])
def test_the_ratio_is_that_of_the_densities(p, noise):
    """Of a full batch of n records, and of a Poisson batch that holds as many on average."""
    mean, cov = law(4)
    rng, n, second = np.random.default_rng(1), 9.0, cov + np.outer(mean, mean)
    queries, total = rng.normal(size=(5, 4)), n * mean + rng.normal(size=4) * 3
    scores = glir.score_step(total, queries, exactly(mean, cov), glir.BatchDesign(n, p, noise))

    def density(records, theta=0.0):
        spread = records * (p * second - p * p * np.outer(mean, mean)) + noise**2 * np.eye(4)
        return float(stats.multivariate_normal(records * p * mean + theta, spread).logpdf(total))

    for theta, found in zip(queries, scores.log_ratio, strict=True):
        inside = density(n / p - 1, theta)
        present = inside if p == 1.0 else np.logaddexp(np.log(p) + inside, np.log1p(-p) + density(n / p - 1))
        assert found == pytest.approx(present - density(n / p), rel=1e-9, abs=1e-9)


def test_noise_free_ratio_is_the_closed_form():
    """(d/2) ln(n/(n-1)) + K/2 - nD/(2(n-1)) with K and D by explicit inverses."""
    mean, cov = law(6)
    rng, n = np.random.default_rng(3), 32.0
    queries, total = rng.normal(size=(7, 6)), rng.normal(size=6) * 5
    inverse = np.linalg.inv(cov)
    scores = glir.score_step(total, queries, exactly(mean, cov), glir.BatchDesign(n))
    k = np.einsum("ij,jk,ik->i", queries - mean, inverse, queries - mean)
    gap = total / n - queries
    distance = n * np.einsum("ij,jk,ik->i", gap, inverse, gap)
    assert np.allclose(scores.susceptibility, k, rtol=1e-10)
    assert np.allclose(scores.distance, distance, rtol=1e-10)
    assert np.allclose(scores.log_ratio, 3 * np.log(n / (n - 1)) + k / 2 - distance / (2 * (n - 1)), rtol=1e-9)


def test_low_rank_factor_equals_the_dense_one():
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(12, 30)) * np.linspace(0.1, 2, 30)
    thin = Background.estimated(rows)
    assert thin.covariance is None
    centred = rows - rows.mean(0)
    s = centred.T @ centred / 11
    dense = thin.share * s + (1 - thin.share) * thin.ridge * np.eye(30)
    full = 3.0 * dense + 0.4 * np.eye(30) + 0.2 * np.outer(thin.mean, thin.mean)
    factor = thin.factor(3.0, 0.4, 0.2)
    q, v = rng.normal(size=(3, 30)), rng.normal(size=30)
    products = factor.products(q, v)
    inverse = np.linalg.inv(full)
    assert np.allclose(products.norms, np.einsum("ij,jk,ik->i", q, inverse, q), rtol=1e-9)
    assert np.allclose(products.cross, q @ inverse @ v, rtol=1e-9)
    assert products.norm == pytest.approx(v @ inverse @ v, rel=1e-9, abs=0)
    assert factor.log_det == pytest.approx(np.linalg.slogdet(full)[1], rel=1e-10, abs=0)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("offset", [0.0, 0.7, 1e5])
def test_sample_covariance_is_that_of_numpy(order, offset):
    """Several blocks of coordinates, both memory layouts, and a mean that would cancel ten digits."""
    rows = np.random.default_rng(12).normal(size=(420, 300)) * np.linspace(0.1, 2, 300) + offset
    rows = np.asarray(rows, order=order)
    before = rows.copy()
    background = by_sample(rows)
    assert np.allclose(background.mean, rows.mean(axis=0), rtol=1e-12, atol=1e-12)
    assert np.allclose(background.covariance, np.cov(rows, rowvar=False), rtol=1e-9, atol=1e-10)
    assert np.array_equal(background.covariance, background.covariance.T)
    part = background.restricted(np.arange(0, 300, 3))
    scores = glir.score_step(rows[0, ::3] * 16, rows[:2, ::3], part, glir.BatchDesign(16.0))
    direct = by_sample(rows[:, ::3])
    again = glir.score_step(rows[0, ::3] * 16, rows[:2, ::3], direct, glir.BatchDesign(16.0))
    assert np.allclose(scores.log_ratio, again.log_ratio, rtol=1e-6)
    assert np.array_equal(rows, before)


def test_shrinkage_is_that_of_ledoit_and_wolf():
    covariance = pytest.importorskip("sklearn.covariance")
    for m, d in ((15, 40), (60, 25)):
        rows = np.random.default_rng(m).normal(size=(m, d)) * np.linspace(0.2, 1.5, d)
        found = Background.estimated(rows)
        assert 1.0 - found.share == pytest.approx(covariance.ledoit_wolf(rows)[1], rel=1e-8, abs=0)


def test_inverse_of_the_sample_covariance_is_corrected():
    """LEEMANN2023:G18: K with the plain inverse is inflated by nu/(nu - d - 1), a factor 2 at m = 2 d."""
    d, m, rng = 20, 40, np.random.default_rng(5)
    plain, corrected = [], []
    for _ in range(300):
        rows, query = rng.normal(size=(m, d)), rng.normal(size=(1, d))
        background = by_sample(rows)
        scores = glir.score_step(rng.normal(size=d) * 4, query, background, glir.BatchDesign(16.0))
        corrected.append(scores.susceptibility[0])
        deviation = query[0] - rows.mean(0)
        plain.append(deviation @ np.linalg.solve(np.cov(rows.T), deviation))
    assert np.mean(plain) == pytest.approx(d * 39 / 18 * (1 + 1 / m), rel=0.06, abs=0)
    assert np.mean(corrected) == pytest.approx(d * (1 + 1 / m), rel=0.06, abs=0)


def in_interval(count: int, trials: int, level: float) -> bool:
    low, high = stats.binom.interval(0.99, trials, level)
    return low <= count <= high


@pytest.mark.parametrize(("n", "share"), [(32, 8), pytest.param(500, 1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("ranks", "runs"), [(False, 20_000), (True, 4_000)])
def test_null_level(ranks, n, runs, share):
    """Each run: a fresh batch of Gaussian gradients (its sum is Gaussian exactly) and fresh non-members.

    n D against its law; and ranks among 999 held-out records, with a shrunk covariance.
    """
    rng, scale, design = np.random.default_rng(20 + n), np.linspace(0.5, 2.0, 20), glir.BatchDesign(float(n))
    found = np.empty((runs // share, 2))
    for i in range(len(found)):
        total = n + np.sqrt(n) * scale * rng.normal(size=20)
        rows = 1.0 + scale * rng.standard_normal((1060 if ranks else 1, 20))
        law = Background.estimated(rows[:60]) if ranks else exactly(np.ones(20), np.diag(scale**2))
        scores = glir.score_step(total, rows[60:] if ranks else rows, law, design)
        ratio = scores.log_ratio
        found[i] = scores.distance[0], scores.susceptibility[0]
        if ranks:
            found[i] = glir.held_out_p_values(ratio[:1], ratio[1:])[0]
    log_p = np.log(found[:, 0]) if ranks else log_p_noncentral(*found.T, float(n), 20)
    for level in (0.05, 0.01, 0.001):
        assert in_interval(int(np.sum(log_p <= np.log(level) + 1e-12)), len(log_p), level), level


def test_held_out_calibration_keeps_the_level_for_any_gradients():
    """Skewed gradients, a shrunk covariance, few background records: ranks among non-members stay valid."""
    rng, d, n, held, runs = np.random.default_rng(6), 20, 32, 199, 500
    hits = np.zeros(2)
    for _ in range(runs):
        background = Background.estimated(rng.exponential(size=(15, d)))
        total = rng.exponential(size=(n, d)).sum(0)
        scores = glir.score_step(total, rng.exponential(size=(held + 1, d)), background, glir.BatchDesign(float(n)))
        p = glir.held_out_p_values(scores.log_ratio[:1], scores.log_ratio[1:])[0]
        hits += [p <= 0.05, p <= 0.01]
    assert in_interval(int(hits[0]), runs, 0.05)
    assert in_interval(int(hits[1]), runs, 0.01)


def test_equal_scores_count_against_the_query():
    p = glir.held_out_p_values(np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 1.0]))
    assert p.tolist() == [1.0, 0.75, 0.25]


def test_distance_is_scaled_by_n():
    """LEEMANN2023:G15, LEEMANN2023:G16: n D, lower tail. With (n - 1) D a nominal 1% rejects 4.3% of non-members."""
    rng, d, n, runs = np.random.default_rng(7), 650, 500, 20_000
    k = rng.chisquare(d, runs)
    w = rng.noncentral_chisquare(d, n * k)
    right = log_p_noncentral(w, k, n, d)
    printed = log_p_noncentral(w * (n - 1) / n, k, n, d)
    assert in_interval(int(np.sum(right <= np.log(0.01))), runs, 0.01)
    assert np.mean(printed <= np.log(0.01)) == pytest.approx(0.043, abs=0.006)
    assert np.mean(printed <= np.log(0.1)) == pytest.approx(0.24, abs=0.015)


def test_logs_are_finite_below_1e_300():
    log_p = log_p_noncentral(np.array([650.0]), np.array([900.0]), 5000.0, 650)
    assert np.isfinite(log_p[0])
    assert log_p[0] < -700.0


def test_ratio_beats_p_values():
    """LEEMANN2023:G17: five fresh steps at mu 1.14: TPR at FPR .001 is .294 by likelihood ratios, .246 by Fisher.

    W under both hypotheses from Theorem 5.1, K from chi-square.
    """
    d, n, runs, rng = 650, 500, 30_000, np.random.default_rng(8)
    k = rng.chisquare(d, (runs, 5))
    absent, present = rng.noncentral_chisquare(d, n * k), (n - 1) / n * rng.noncentral_chisquare(d, (n - 1) * k)
    for score, expected in (
        (lambda w: np.sum(k / 2 - w / (2 * (n - 1)), axis=1), 0.294),
        (lambda w: -np.sum(log_p_noncentral(w, k, n, d), axis=1), 0.246),
    ):
        tpr = np.mean(score(present) > np.quantile(score(absent), 0.999))
        assert tpr == pytest.approx(expected, abs=0.025)


def test_ratio_reaches_the_exact_curve_on_gaussian_gradients():
    """d = 2, n = 5: TPR .0103 at FPR .001 by the ratio, .0042 by a common p-value (LEEMANN2023:G2, LEEMANN2023:G17)."""
    d, n, runs = 2, 5, 200_000
    rng = np.random.default_rng(9)
    background = exactly(np.zeros(d), np.eye(d))
    theta, others = rng.normal(size=(runs, d)), np.sqrt(n - 1) * rng.normal(size=(runs, d))
    member, outsider = others + theta, others + rng.normal(size=(runs, d))
    factor = np.log(n / (n - 1)) * d / 2
    k = np.sum(theta**2, axis=1)

    def ratio(total):
        return factor + k / 2 - n * np.sum((total / n - theta) ** 2, axis=1) / (2 * (n - 1))

    for i in range(5):
        scores = glir.score_step(member[i], theta[i : i + 1], background, glir.BatchDesign(float(n)))
        assert scores.log_ratio[0] == pytest.approx(ratio(member)[i], rel=1e-9, abs=0)
    exact = GaussianGradientTradeOff(d, n)
    for fpr in (0.001, 0.1):
        tpr = np.mean(ratio(member) > np.quantile(ratio(outsider), 1 - fpr))
        assert tpr == pytest.approx(float(exact.power(fpr)), abs=5 * (fpr / runs) ** 0.5 * 10)


def test_shuffled_epoch_is_a_mixture_over_batches():
    inside = np.log(np.array([[2.0, 1.0], [4.0, 1.0]]))
    assert np.allclose(np.exp(glir.combine_shuffled(inside, 0.5)), [3.0, 1.0])
    assert np.allclose(np.exp(glir.combine_shuffled(inside[:1], 0.25)), [1.25, 1.0])


def test_redundant_coordinates_are_found():
    rng = np.random.default_rng(10)
    rows = rng.normal(size=(200, 6))
    rows = np.hstack([rows, -rows.sum(1, keepdims=True), np.zeros((200, 1))])
    background = by_sample(rows)
    keep = background.independent_coordinates()
    assert len(keep) == 6
    assert 7 not in keep
    with pytest.raises(NumericalError):
        background.factor(1.0, 0.0)
    total, queries = 16 * rows.mean(0), rows[:3]
    design = glir.BatchDesign(16.0)
    reduced = glir.score_step(total[keep], queries[:, keep], background.restricted(keep), design)
    direct = glir.score_step(total[:6], queries[:, :6], by_sample(rows[:, :6]), design)
    assert np.allclose(reduced.log_ratio, direct.log_ratio, rtol=1e-7)


def test_sparse_gradients_are_reported():
    """LEEMANN2023:G19: Bernoulli gradients with q = .001 and n = 100; Gaussian ones pass."""
    rng = np.random.default_rng(11)
    sparse = (rng.random((20_000, 1)) < 0.001).astype(float)
    assert "G19" in glir.normality(Background.estimated(sparse), np.ones((1, 1)), 100.0)
    fine = rng.normal(size=(5_000, 10))
    assert glir.normality(Background.estimated(fine), fine[:20], 100.0) == ""


def test_bad_arguments_are_named():
    known = exactly(np.zeros(3), np.eye(3))
    with pytest.raises(ParameterError, match="queries"):
        glir.score_step(np.zeros(3), np.zeros((2, 4)), known, glir.BatchDesign(5.0))
    with pytest.raises(ParameterError, match="batch_size"):
        glir.BatchDesign(1.0)
    with pytest.raises(ParameterError, match="gradients"):
        Background.estimated(np.ones((10, 3)))
    with pytest.raises(ParameterError, match="held_out"):
        glir.held_out_p_values(np.zeros(2), np.array([]))
    assert glir.BatchDesign(5.0, 0.1, sampler=FixedSize()).varies is False

"""Stochastic composition against naive tables, mpmath and reference values.

Theorems: LEEMANN2023:Definition 4.1.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from experiments.gaussian_mip.exact_step import susceptibilities
from reticent.adversaries.game.stochastic import SusceptibilityLaw
from reticent.kernel.curves import GaussianTradeOff, Mixture, TradeOff
from reticent.kernel.errors import ParameterError

VECTORS = {v["id"]: v for v in json.loads((Path(__file__).parents[2] / "golden" / "gmip.json").read_text())["vectors"]}
FPR = np.array([1e-6, 1e-4, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.8, 0.99])


def family(prefix: str) -> list:
    return [pytest.param(v, id=k) for k, v in VECTORS.items() if k.startswith(prefix)]


def gaussian_mixture(mus, weights) -> TradeOff:
    return Mixture([GaussianTradeOff(float(mu)) for mu in mus], weights)


def merged_segments(mus, weights, alpha, grid=40001):
    """Naive oracle: tabulate each curve, sort all segments by slope, concatenate.

    Beta is built from chords, so it is at least the true one, by the discretisation only.
    """
    t = np.concatenate([[-40.0], np.linspace(-9.0, 9.0, grid), [40.0]])
    runs, falls = [], []
    for mu, w in zip(mus, weights, strict=True):
        a, b = stats.norm.sf(t[::-1] + mu / 2), stats.norm.cdf(t[::-1] - mu / 2)
        runs.append(w * np.diff(a))
        falls.append(-w * np.diff(b))
    runs, falls = np.concatenate(runs), np.concatenate(falls)
    order = np.argsort(-falls / np.maximum(runs, 1e-300), kind="stable")
    return np.interp(alpha, np.cumsum(runs[order]), 1.0 - np.cumsum(falls[order]))


@pytest.mark.parametrize("vector", family("mixgdp"))
def test_reference(vector):
    p = vector["params"]
    mus, weights = [float(m) for m in p["mus"]], [float(w) for w in p["weights"]]
    curve = gaussian_mixture(mus, weights)
    assert curve.power(float(p["alpha"])) == pytest.approx(float(vector["value"]), rel=1e-9, abs=0)


def test_against_merged_segments_to_1e_6():
    rng = np.random.default_rng(7)
    for size in (2, 5, 20):
        mus, weights = rng.uniform(0.05, 4.0, size), rng.dirichlet(np.ones(size))
        naive = merged_segments(mus, weights, FPR)
        assert np.max(np.abs(gaussian_mixture(mus, weights).beta(FPR) - naive)) < 1e-6


def test_sampled_law_against_merged_segments():
    k = np.random.default_rng(3).gamma(5.0, 0.4, 300)
    law = SusceptibilityLaw.sampled(k)
    curve = law.compose(lambda x: GaussianTradeOff(np.sqrt(x / 4.0)))
    naive = merged_segments(np.sqrt(k / 4.0), np.full(300, 1 / 300), FPR, grid=8001)
    assert np.max(np.abs(curve.beta(FPR) - naive)) < 1e-6


def test_equal_false_positive_rates_are_weaker():
    """LEEMANN2023:G17: a common p-value equalises alpha over records, not slopes."""
    curve = gaussian_mixture([0.2, 3.0], [0.9, 0.1])
    same_alpha = 0.9 * GaussianTradeOff(0.2).power(1e-3) + 0.1 * GaussianTradeOff(3.0).power(1e-3)
    assert curve.power(1e-3) > 1.1 * same_alpha


def test_equal_components_change_nothing():
    curve = Mixture([GaussianTradeOff(1.1)] * 4, np.full(4, 0.25))
    assert np.allclose(curve.log_beta(np.log(FPR)), GaussianTradeOff(1.1).log_beta(np.log(FPR)), rtol=1e-9, atol=0)


def test_delta_is_the_mean_of_deltas():
    mus, weights, eps = [0.3, 1.0, 2.5], [0.5, 0.3, 0.2], np.array([0.0, 0.5, 3.0, 8.0])
    mean = sum(w * GaussianTradeOff(m).delta(eps) for m, w in zip(mus, weights, strict=True))
    assert np.allclose(gaussian_mixture(mus, weights).delta(eps), mean, rtol=1e-9, atol=0)


def test_component_without_leakage():
    curve = gaussian_mixture([0.0, 2.0], [0.25, 0.75])
    assert curve.delta(1.0) == pytest.approx(0.75 * float(GaussianTradeOff(2.0).delta(1.0)), rel=1e-10, abs=0)
    assert curve.beta(0.0) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("d", [1, 2, 20, 650, 10**6])
def test_chi_square_nodes(d):
    """Moments of chi-square, exact for the rule, up to the fourth cumulant."""
    law = susceptibilities(d)
    mean = law.weights @ law.values
    assert mean == pytest.approx(d, rel=1e-10, abs=0)
    for power, exact in ((2, 2 * d), (3, 8 * d), (4, 12 * d * d + 48 * d)):
        assert law.weights @ (law.values - d) ** power == pytest.approx(exact, rel=1e-4, abs=0)


def test_bad_families_are_refused():
    with pytest.raises(ParameterError, match="weights"):
        Mixture([], [])
    with pytest.raises(ParameterError, match="weights"):
        Mixture([GaussianTradeOff(1.0)], [0.5])
    with pytest.raises(ParameterError, match="values"):
        SusceptibilityLaw.sampled([0.0, 1.0])

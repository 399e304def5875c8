"""Stochastic composition against naive tables, mpmath and reference values.

Theorems: LEEMANN2023:Definition 4.1.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from experiments.gaussian_mip.exact_step import susceptibilities
from reticent.adversaries.game.stochastic import SusceptibilityLaw
from reticent.kernel.curves import GaussianTradeOff, Mixture, TradeOff
from reticent.kernel.errors import ParameterError
from tests.adversaries.golden import GMIP as VECTORS

FPR = np.array([1e-6, 1e-4, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.8, 0.99])


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


@pytest.mark.parametrize("key", [key for key in VECTORS if key.startswith("mixgdp")])
def test_reference(key: str) -> None:
    p = VECTORS[key]["params"]
    curve = gaussian_mixture(p["mus"], [float(w) for w in p["weights"]])
    assert curve.power(float(p["alpha"])) == pytest.approx(float(VECTORS[key]["value"]), rel=1e-9, abs=0)


def test_against_merged_segments_to_1e_6():
    rng = np.random.default_rng(7)
    for size in (2, 20):
        mus, weights = rng.uniform(0.0, 4.0, size), rng.dirichlet(np.ones(size))
        found = gaussian_mixture(mus, weights).beta(FPR)
        assert np.max(np.abs(found - merged_segments(mus, weights, FPR))) < 1e-6
    k = rng.gamma(5.0, 0.4, 100)
    found = SusceptibilityLaw.sampled(k).compose(lambda x: GaussianTradeOff(np.sqrt(x / 4.0))).beta(FPR)
    assert np.max(np.abs(found - merged_segments(np.sqrt(k / 4.0), np.full(100, 0.01), FPR, grid=8001))) < 1e-6


def test_equal_false_positive_rates_are_weaker():
    """LEEMANN2023:G17: a common p-value equalises alpha over records, not slopes."""
    curve = gaussian_mixture([0.2, 3.0], [0.9, 0.1])
    same_alpha = 0.9 * GaussianTradeOff(0.2).power(1e-3) + 0.1 * GaussianTradeOff(3.0).power(1e-3)
    assert curve.power(1e-3) > 1.1 * same_alpha


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

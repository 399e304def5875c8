"""Errata that concern curves: what is printed, and what is right. GLRT paper G*, relaxed paper R*."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri
from scipy.stats import ncx2 as scipy_ncx2
from scipy.stats import norm

from experiments.gallery import formulas
from reticent.curves import LaplaceTradeOff, RelaxedGaussianTradeOff, RelaxedLaplaceTradeOff
from reticent.kernel.curves import GaussianTradeOff, Subsampled, TradeOff, symmetrised


def _sup_error(approximation, noncentrality: float, dimension: int) -> float:
    alpha = np.concatenate([np.logspace(-15.0, -4.0, 201), np.linspace(1e-4, 1.0 - 1e-4, 1001)])
    exact = RelaxedGaussianTradeOff(noncentrality, dimension).power(alpha)
    return float(np.max(np.abs(approximation(alpha, noncentrality, dimension) - exact)))


def test_g5_equation_35_needs_sqrt_d() -> None:
    """Figure 5 (d = 300, lam = 10): .148 off as printed, .0064 with sqrt(d), .0038 for (36)."""
    assert _sup_error(formulas.power_equation_35, 10.0, 300) == pytest.approx(0.148, abs=5e-4)
    assert _sup_error(formulas.power_equation_35_corrected, 10.0, 300) == pytest.approx(6.45e-3, abs=5e-5)
    assert _sup_error(formulas.power_equation_36, 10.0, 300) == pytest.approx(3.8e-3, abs=5e-5)


def test_g7_the_limit_is_in_d_not_in_the_number_of_releases() -> None:
    """At d = 1 more releases do not help (error up to .96 at lam = 10); for lam > 2d (36) exceeds the worst case."""
    assert _sup_error(formulas.power_equation_36, 10.0, 1) == pytest.approx(0.96, abs=5e-3)
    worst = GaussianTradeOff(5.0).power(1e-6)
    assert formulas.power_equation_36(1e-6, 25.0, 8) > worst > RelaxedGaussianTradeOff(25.0, 8).power(1e-6)


def test_g8_equation_36_is_optimistic_in_the_tail() -> None:
    """Figure 5: power 6.65e-5, not 5.75e-5, at alpha = 1e-5; epsilon(1e-10) is 2.885, not 2.500."""
    curve, claimed = RelaxedGaussianTradeOff(10.0, 300), GaussianTradeOff(10.0 / math.sqrt(600.0))
    assert float(formulas.power_equation_36(1e-5, 10.0, 300)) == pytest.approx(5.75e-5, rel=1e-3, abs=0)
    assert float(curve.power(1e-5)) == pytest.approx(6.65e-5, rel=1e-3, abs=0)
    # delta(epsilon) at the claimed epsilon is above the target, and hits it at the right one
    assert float(claimed.delta(2.500)) == pytest.approx(1e-10, rel=1e-2, abs=0)
    assert float(curve.delta(2.500)) > 2e-10 * 5
    assert float(curve.delta(2.885)) == pytest.approx(1e-10, rel=1e-2, abs=0)


@pytest.mark.parametrize(("mu", "overstated"), [(1.0, 0.098), (5.0, 0.134)])
def test_r6_the_maximum_branch_overstates_beta(mu: float, overstated: float) -> None:
    """Symm(j) takes max{j, j^-1} for the Laplace j; the guarantee is the envelope of the minimum."""
    curve, alpha = RelaxedLaplaceTradeOff(mu), np.linspace(0.0, 1.0, 20_001)
    bar = 1.0 / math.sqrt(2.0 * math.exp(mu) - 1.0)
    assert float(curve.beta(bar)) == pytest.approx((1.0 - math.exp(-mu)) * bar, rel=1e-12, abs=0)
    assert float(curve.beta(bar)) < bar
    j, inverse, envelope = curve.beta(alpha), curve.reversed.beta(alpha), symmetrised(curve).beta(alpha)
    # the literature's recipe on this branch: max{j, j^-1}, which is convex already
    maximum = np.maximum(j, inverse)
    assert np.all(envelope <= np.minimum(j, inverse) + 1e-14)
    assert float(np.max(maximum - envelope)) == pytest.approx(overstated, abs=6e-4)


@pytest.mark.parametrize(("rate", "crossing"), [(0.1, 0.0393), (0.01, 0.0048)])
def test_r7_neither_direction_dominates_for_subsampled_laplace(rate: float, crossing: float) -> None:
    """mu = 1: ADD leads below the crossing, REM above, so the one-segment formula is invalid."""
    curve = Subsampled(RelaxedLaplaceTradeOff(1.0), rate)
    both = symmetrised(curve)
    assert both._leads[0] == pytest.approx([-crossing, 0.0, crossing], abs=5e-5)
    below, above = 0.8 * crossing, 1.2 * crossing
    assert float(curve.log_delta(below)) > float(curve.reversed.log_delta(below))
    assert float(curve.log_delta(above)) < float(curve.reversed.log_delta(above))
    one_segment = _single_segment(curve)
    alpha = np.linspace(0.001, 0.999, 999)
    assert np.max(one_segment(alpha) - both.beta(alpha)) > 1e-5
    few = alpha[::20]
    lines = _envelope(curve, few)
    assert both.beta(few) == pytest.approx(lines, rel=0, abs=1e-6)
    assert np.all(both.beta(few) >= lines - 1e-13)


def _single_segment(curve: TradeOff):
    """The papers' recipe with ADD taken to lead: g, a segment of slope -1, the inverse of g."""
    rates = curve.errors(0.0)
    x, y = float(np.exp(rates.fpr)), float(np.exp(rates.fnr))
    return lambda a: np.where(a <= x, curve.beta(a), np.where(a <= y, x + y - a, curve.reversed.beta(a)))


def _envelope(curve: TradeOff, alpha: np.ndarray) -> np.ndarray:
    """Supremum of the supporting lines of both directions on a fine grid: from below."""
    e = np.concatenate([np.linspace(-3.0, -0.1, 4000), np.linspace(-0.1, 0.1, 8001), np.linspace(0.1, 3.0, 4000)])
    delta = np.maximum(curve.delta(e), curve.reversed.delta(e))
    return np.maximum(np.max(1.0 - delta - np.exp(e) * alpha[:, None], axis=1), 0.0)


def test_r8_the_second_dominating_pair_is_not_the_inverse() -> None:
    """|y| on ((1-p) N(mu) + p N(0), N(mu)) gives .9338 at alpha = .05; the inverse curve gives .9433."""
    mu, p, alpha = 1.0, 0.3, 0.05

    def folded(s: float, m: float) -> float:
        return float(ndtr(s - m) - ndtr(-s - m))

    def mixed_above(s: float) -> float:
        return (1.0 - p) * (1.0 - folded(s, mu)) + p * (1.0 - folded(s, 0.0))

    printed = folded(brentq(lambda s: mixed_above(s) - alpha, 0.0, 12.0, xtol=1e-14), mu)
    right = float(Subsampled(RelaxedGaussianTradeOff(mu * mu, 1), p).reversed.beta(alpha))
    assert printed == pytest.approx(0.9338, abs=5e-5)
    assert right == pytest.approx(0.9433, abs=5e-5)


def test_r13_corollary_one_has_an_upper_tail() -> None:
    """j = Phi(z - mu) - Q(z + mu); with Phi in both places it is negative."""
    mu, alpha = 1.0, 0.05
    z = float(-ndtri(alpha / 2.0))
    right = norm.cdf(z - mu) - norm.sf(z + mu)
    assert norm.cdf(z - mu) - norm.cdf(z + mu) < 0.0
    assert float(RelaxedGaussianTradeOff(mu * mu, 1).beta(alpha)) == pytest.approx(right, rel=1e-13, abs=0)
    assert right == pytest.approx(scipy_ncx2.cdf(z * z, 1, mu * mu), rel=1e-10, abs=0)


def test_r14_no_gain_in_pure_epsilon() -> None:
    """delta vanishes at epsilon = mu and not before, exactly as in the worst case."""
    for mu in (0.2, 1.0, 6.0):
        relaxed = symmetrised(RelaxedLaplaceTradeOff(mu))
        assert relaxed.delta(mu) == 0.0
        assert LaplaceTradeOff(mu).delta(mu) == 0.0
        assert relaxed.delta(mu * (1.0 - 1e-6)) > 0.0


def test_r1_lemma_8_lets_a_second_release_improve_privacy() -> None:
    """(1, 1) and (1, 10): printed .0396, right 1.01, the first release alone 1."""
    printed = (1.0 + 1.0) ** 2 / (1.0**2 + 10.0**2)  # (sum of sensitivities)^2 over the sum of noise variances
    assert printed == pytest.approx(0.0396, abs=5e-5)
    assert printed < 1.0 < 1.0 + 1.0 / 100.0
    assert RelaxedGaussianTradeOff(printed, 3).power(0.01) < RelaxedGaussianTradeOff(1.0, 3).power(0.01)

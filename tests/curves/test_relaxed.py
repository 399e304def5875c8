"""The relaxed curves against the worst case, each other, and independent computations.

Theorems: KAISSIS2022:Theorem 1, KAISSIS2023:Theorem 1.
"""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from reticent.curves import LaplaceTradeOff, MembershipStepTradeOff, RelaxedGaussianTradeOff, RelaxedLaplaceTradeOff
from reticent.kernel.curves import GaussianTradeOff, Subsampled, TradeOff, symmetrised
from reticent.kernel.errors import ParameterError
from tests.golden.make_curves_ncx2 import tails

LOG_ALPHA = np.concatenate([np.linspace(-690.0, -3.0, 60), np.log(np.linspace(0.05, 0.9999, 60))])
_LN2 = math.log(2.0)


def _epsilon(curve: TradeOff, delta: float) -> float:
    return brentq(lambda e: float(curve.log_delta(e)) - math.log(delta), 0.0, 1e4, rtol=1e-14)


@pytest.mark.parametrize("noncentrality", [0.01, 1.0, 50.0, 1e5])
def test_power_falls_with_dimension(noncentrality: float) -> None:
    powers = [RelaxedGaussianTradeOff(noncentrality, d).log_power(LOG_ALPHA) for d in (1, 2, 3, 10, 59, 60, 61, 1000)]
    for smaller, larger in itertools.pairwise(powers):
        assert np.all(larger <= smaller + 1e-11 * (1.0 + np.abs(smaller)))
    betas = [RelaxedGaussianTradeOff(noncentrality, d).log_beta(LOG_ALPHA) for d in (1, 1000)]
    assert np.any(betas[1] > betas[0] + 1e-4)


@pytest.mark.parametrize("dimension", [1, 2, 30, 10_000])
def test_power_rises_with_noncentrality(dimension: int) -> None:
    powers = [RelaxedGaussianTradeOff(lam, dimension).log_power(LOG_ALPHA) for lam in (0.0, 1e-6, 0.1, 1.0, 30.0, 1e3)]
    for smaller, larger in itertools.pairwise(powers):
        assert np.all(larger >= smaller - 1e-11)
    assert np.any(powers[-1] > powers[0] + 0.1)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(log_mu=st.floats(-2.0, 2.0), log_delta=st.floats(-200.0, -1.0))
def test_one_dimension_gains_at_most_log_two_in_epsilon(log_mu: float, log_delta: float) -> None:
    """delta_NP(e + log 2) <= delta_relaxed(e) <= delta_NP(e), Gaussian and Laplace."""
    mu = math.exp(log_mu)
    pairs = [
        (GaussianTradeOff(mu), symmetrised(RelaxedGaussianTradeOff(mu * mu, 1))),
        (LaplaceTradeOff(mu), symmetrised(RelaxedLaplaceTradeOff(mu))),
        (Subsampled(GaussianTradeOff(mu), 0.1), Subsampled(RelaxedGaussianTradeOff(mu * mu, 1), 0.1)),
    ]
    epsilon = np.abs(log_delta) * np.linspace(0.0, 0.3, 20)
    for worst, relaxed in pairs:
        assert np.all(relaxed.log_delta(epsilon) <= worst.log_delta(epsilon) + 1e-10)
        floor = worst.log_delta(epsilon + _LN2)
        assert np.all(relaxed.log_delta(epsilon) >= floor - 1e-10 * (1.0 + np.abs(np.nan_to_num(floor, neginf=0.0))))


def test_the_gain_of_log_two_is_nearly_attained() -> None:
    worst, relaxed = GaussianTradeOff(1.0), RelaxedGaussianTradeOff(1.0, 1)
    assert _epsilon(worst, 1e-5) - _epsilon(relaxed, 1e-5) == pytest.approx(_LN2, abs=1e-4)


@pytest.mark.parametrize(("dimension", "noncentrality"), [(1, 4.0), (2, 4.0), (3, 0.5), (10, 30.0), (100, 10.0)])
def test_add_dominates_for_the_relaxed_gaussian(dimension: int, noncentrality: float) -> None:
    curve, epsilon = RelaxedGaussianTradeOff(noncentrality, dimension), np.linspace(0.01, 6.0, 50)
    assert np.all(curve.log_delta(epsilon) > curve.reversed.log_delta(epsilon))
    assert curve.reversed.delta(noncentrality / 2) == 0.0
    assert curve.reversed.delta(noncentrality / 2 * 0.99) > 0.0
    assert symmetrised(curve)._leads[0].tolist() == [0.0]


def test_extreme_arguments() -> None:
    """The values scipy cannot give: digest, section 14."""
    curve = RelaxedGaussianTradeOff(1e5, 50)
    assert float(curve.log_beta(math.log(0.5))) / math.log(10.0) == pytest.approx(-20804, abs=0.5)
    huge = RelaxedGaussianTradeOff(1e9, 10_000_000)
    for values in (huge.log_beta(LOG_ALPHA), huge.reversed.log_beta(LOG_ALPHA), symmetrised(huge).log_beta(LOG_ALPHA)):
        assert np.all(np.isfinite(values))
        assert np.all(np.diff(values) <= 1e-12)
    assert np.all(np.isfinite(huge.log_delta(np.linspace(0.0, 1e5, 50))))


@pytest.mark.parametrize(
    ("d", "lam", "log10_alpha"), [(2, 1, -3), (5, 9, -30), (30, 4, -12), (7, 20, -0.001), (2, 3, -200)]
)
def test_beta_and_power_against_mpmath(d: int, lam: int, log10_alpha: float) -> None:
    mp.mp.dps = 60
    curve, log_alpha = RelaxedGaussianTradeOff(float(lam), d), log10_alpha * math.log(10.0)
    alpha = mp.exp(mp.mpf(log_alpha))
    guess = float(curve._norm_at(np.log(-np.expm1(log_alpha)), np.array(log_alpha), 0.0)) ** 2
    t = mp.findroot(lambda s: mp.log(mp.gammainc(mp.mpf(d) / 2, s / 2, mp.inf, regularized=True) / alpha), guess)
    beta, power = tails(d, lam, t)
    assert float(curve.log_beta(log_alpha)) == pytest.approx(float(mp.log(beta)), rel=1e-11, abs=1e-13)
    assert float(curve.log_power(log_alpha)) == pytest.approx(float(mp.log(power)), rel=1e-11, abs=1e-13)


@pytest.mark.parametrize(("d", "lam"), [(1, 1e-8), (1, 1e-3), (3, 1e-6), (12, 1e-4), (6, 0.2), (4, 5.0)])
@pytest.mark.parametrize("multiple", [0.0, 0.05, 0.2, 1.0, 4.0])
def test_log_delta_against_mpmath_where_tails_cancel(d: int, lam: float, multiple: float) -> None:
    """Both directions, down to a noncentrality where the two tails agree to eight digits."""
    mp.mp.dps = 60
    epsilon = multiple * lam
    curve, e = RelaxedGaussianTradeOff(lam, d), mp.mpf(epsilon)
    for direction, sign in ((curve, 1), (curve.reversed, -1)):
        goal = sign * e + mp.mpf(lam) / 2
        measured = float(direction.log_delta(epsilon))
        if goal <= 0:
            assert measured == -np.inf
            continue
        t = mp.findroot(lambda s: mp.log(mp.hyp0f1(mp.mpf(d) / 2, mp.mpf(lam) * s / 4)) / goal - 1, 2 * d * goal / lam)  # noqa: B023
        present, absent = tails(d, lam, t), tails(d, 0.0, t)
        delta = present[1] - mp.exp(e) * absent[1] if sign > 0 else absent[0] - mp.exp(e) * present[0]
        assert measured == pytest.approx(float(mp.log(delta)), rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("mu", [0.3, 1.0, 5.0])
def test_relaxed_laplace_delta_by_quadrature(mu: float) -> None:
    """Both directions from the densities of |y|, with no formula in common."""
    t = np.linspace(0.0, 60.0, 400_001)
    absent = np.exp(-t)
    present = 0.5 * (np.exp(-np.abs(t - mu)) + np.exp(-(t + mu)))
    for epsilon in (0.0, 0.05, 0.4 * mu, 0.9 * mu):
        add = np.trapezoid(np.maximum(present - np.exp(epsilon) * absent, 0.0), t)
        remove = np.trapezoid(np.maximum(absent - np.exp(epsilon) * present, 0.0), t)
        assert float(RelaxedLaplaceTradeOff(mu).delta(epsilon)) == pytest.approx(add, rel=1e-6, abs=1e-9)
        assert float(RelaxedLaplaceTradeOff(mu).reversed.delta(epsilon)) == pytest.approx(remove, rel=1e-6, abs=1e-9)


def test_relaxed_laplace_far_out() -> None:
    """mu = 800: every intermediate exponential overflows."""
    curve, log_alpha = RelaxedLaplaceTradeOff(800.0), np.array([-900.0, -790.0, -300.0, -1.0, -1e-8])
    assert np.all(np.isfinite(curve.log_beta(log_alpha)))
    assert float(curve.log_power(-900.0)) == pytest.approx(-900.0 + 800.0 - _LN2, rel=1e-12, abs=0)
    assert float(curve.reversed.log_beta(-10.0)) == pytest.approx(-790.0 - _LN2, rel=1e-12, abs=0)
    assert float(curve.reversed.log_power(-1600.0)) == pytest.approx(-800.0, rel=1e-12, abs=0)


@pytest.mark.parametrize(
    "build",
    [
        lambda: RelaxedGaussianTradeOff(-1.0, 3),
        lambda: RelaxedGaussianTradeOff(math.nan, 3),
        lambda: RelaxedGaussianTradeOff(1.0, 0),
        lambda: RelaxedLaplaceTradeOff(math.inf),
        lambda: LaplaceTradeOff(-0.1),
        lambda: GaussianTradeOff(math.nan),
        lambda: MembershipStepTradeOff(1.0, 3, 1.0),
        lambda: MembershipStepTradeOff(5.0, 3, -1.0),
        lambda: Subsampled(GaussianTradeOff(1.0), 0.0),
    ],
)
def test_arguments_are_checked(build) -> None:
    with pytest.raises(ParameterError):
        build()

"""Exact curves of the membership game: Gaussian gradients, known spectra, the contour rule behind both.

Theorems: LEEMANN2023:Theorem 5.1.
"""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from experiments.gaussian_mip.exact_step import GaussianGradientTradeOff, susceptibilities
from reticent.adversaries.game import gmip
from reticent.adversaries.game.spectrum import GradientSpectrum
from reticent.curves import MembershipStepTradeOff
from reticent.kernel.curves import GaussianTradeOff
from reticent.kernel.errors import ParameterError
from tests.adversaries.golden import GMIP as VECTORS


@pytest.mark.parametrize("key", [key for key in VECTORS if key.startswith("gauss_mip_")])
def test_gaussian_gradients_reference(key: str) -> None:
    p = VECTORS[key]["params"]
    curve = GaussianGradientTradeOff(p["d"], p["n_eff"])
    value = curve.power(float(p["FPR"])) if "FPR" in p else curve.delta(0.0)
    assert value == pytest.approx(float(VECTORS[key]["value"]), rel=1e-7 if "FPR" in p else 1e-11, abs=0)


def test_typical_susceptibility_is_optimistic_at_low_rates():
    """LEEMANN2023:G2: even for Gaussian gradients the exact curve beats G_mu at K = d."""
    for d, n, rate, power, published in ((2, 5, 1e-3, 0.01028, 0.00644), (650, 500, 1e-5, 8.98e-4, 8.88e-4)):
        exact, claimed = GaussianGradientTradeOff(d, n), GaussianTradeOff(gmip.one_step_mu(d, d, n))
        assert exact.power(rate) == pytest.approx(power, rel=1e-3, abs=0)
        assert claimed.power(rate) == pytest.approx(published, rel=1e-3, abs=0)
        assert claimed.delta(0.0) < exact.delta(0.0)


@pytest.mark.parametrize(("d", "n"), [(10, 32), (20, 32), (650, 500)])
def test_gaussian_gradients_are_the_stochastic_composition_of_theorem_51(d, n):
    """LEEMANN2023:G5 and LEEMANN2023:G20: K is centred, H0 is the non-member."""
    law = susceptibilities(d, nodes=40)
    mixed = law.compose(lambda k: MembershipStepTradeOff(n, d, k))
    exact = GaussianGradientTradeOff(d, n)
    ratio = np.array([-3.0, -0.5, 0.0, 0.3, 1.0, 2.5])
    for a, b in zip(mixed.errors(ratio), exact.errors(ratio), strict=True):
        assert np.allclose(np.exp(a), np.exp(b), rtol=0, atol=1e-6)


def variance_gamma_tail(d: int, n: float, ratio: float) -> mpmath.mpf:
    """log Q(L > l): under H1, L = drift + (r/2)(A - B) with A, B chi-square; one integral over B."""
    with mpmath.workdps(30):
        r = 1 / mpmath.sqrt(n)
        x = (mpmath.mpf(ratio) + mpmath.mpf(d) / 2 * mpmath.log(1 - r * r)) * 2 / r

        def term(b):
            upper = mpmath.gammainc(mpmath.mpf(d) / 2, max(x + b, 0) / 2, mpmath.inf, regularized=True)
            return upper * b ** (mpmath.mpf(d) / 2 - 1) * mpmath.exp(-b / 2)

        norm = 2 ** (mpmath.mpf(d) / 2) * mpmath.gamma(mpmath.mpf(d) / 2)
        kink = max(-x, mpmath.mpf(0))
        points = sorted({kink, *(mpmath.mpf(p) for p in (0, 1, 3, 6, 10, 16, 25, 40, 70, 150, 300))})
        return mpmath.log(mpmath.quad(term, points) / norm)


@pytest.mark.parametrize(("d", "n"), [(2, 2.0), (4, 30.0), (20, 32.0)])
@pytest.mark.parametrize("ratio", [0.2, 2.0, 40.0])
def test_far_tail_against_mpmath(d, n, ratio):
    exact = float(variance_gamma_tail(d, n, ratio))
    assert GaussianGradientTradeOff(d, n).errors(ratio).tpr == pytest.approx(exact, rel=1e-9, abs=1e-11)


def test_rates_are_consistent_and_finite_to_1e_300():
    curve = GaussianGradientTradeOff(650, 500)
    ratio = np.linspace(-40, 40, 33)
    rates = curve.errors(ratio)
    assert np.all(np.diff(rates.fpr) < 0)
    assert np.all(rates.tpr <= 0)
    assert np.allclose(np.logaddexp(rates.fpr, rates.tnr), 0.0, atol=1e-12)
    assert np.isfinite(curve.log_power(-690.0))
    assert curve.log_power(-690.0) > -690.0
    # dQ = e^L dP: the tail of Q is at least e^l times that of P.
    assert np.all(rates.tpr >= ratio + rates.fpr - 1e-12)


def test_average_record_has_the_mean_of_mu_square():
    rng = np.random.default_rng(4)
    values = rng.dirichlet(np.ones(6))
    records = rng.normal(size=(200_000, 6)) * np.sqrt(values)
    each = np.sum(records**2 / (10 * values + 4.0), axis=1)
    assert GradientSpectrum(values).mu(10, 2.0) ** 2 == pytest.approx(each.mean(), rel=0.01, abs=0)
    assert GradientSpectrum(values).susceptibility == pytest.approx(6.0, rel=1e-12, abs=0)


@pytest.mark.parametrize(
    ("values", "deviations", "name"),
    [([0.5, 0.0], None, "eigenvalues"), ([2.0], None, "eigenvalues"), ([0.5], [5.0], "deviations")],
)
def test_bad_spectra_are_named(values, deviations, name):
    with pytest.raises(ParameterError, match=name):
        GradientSpectrum(np.array(values), None if deviations is None else np.array(deviations))

"""Formulas of membership inference privacy against reference values and mpmath.

Theorems: RETICENT:harmonic-rule, LEEMANN2023:Corollary 5.1, LEEMANN2023:Lemma 5.1.
"""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from reticent.adversaries.game import gmip
from tests.adversaries.golden import GMIP as VECTORS
from tests.adversaries.golden import golden

TABLE = golden("gmip_table5")


def dp_noise(mu: float) -> float:
    """Noise multiplier of one mu-GDP step under replacement."""
    return 2.0 / mu


def harmonic_noise(mu: float, n: float, k: float) -> float:
    """The inverse of ``gmip.harmonic_mu``; 0 where the batch alone suffices."""
    return 2.0 * math.sqrt(max(0.0, 1.0 / mu**2 - n / k))


def published_noise(mu: float, n: float, d: float) -> float:
    """The noise that Eq. (9) of LEEMANN2023 asks for at K = d, before the minimum rule."""
    return math.sqrt(max(0.0, d / mu**2 - 0.5 - n))


def minimum_mu(n: float, d: float, noise: float) -> float:
    """Corollary F.1 (1), corrected."""
    return min(gmip.one_step_mu(d, d, gmip.effective_batch(n, noise)), gmip.differential_privacy_mu(noise))


def sampled_mu_step(mu: float, rate: float, steps: float) -> float:
    """The inverse of ``gmip.sampled_mu``."""
    target = math.log(mu / (rate * math.sqrt(steps)))
    return brentq(lambda m: gmip.log_sampling_factor(m) - target, 1e-9, 64.0, xtol=1e-15, rtol=1e-14)


@pytest.mark.parametrize("m", [1e-7, 1e-4, 0.00099, 0.00101, 0.02, 0.7, 4.99, 5.01, 12.0, 30.0, 60.0])
def test_sampling_factor_against_mpmath(m):
    with mpmath.workdps(60):
        x = mpmath.mpf(m)
        exact = mpmath.log(2 * (mpmath.exp(x * x) * mpmath.ncdf(1.5 * x) + 3 * mpmath.ncdf(-x / 2) - 2)) / 2
    assert gmip.log_sampling_factor(m) == pytest.approx(float(exact), rel=2e-12, abs=2e-12)


REFERENCES = {
    "mu_step": lambda p: gmip.one_step_mu(p["d"], p["K"], p["n_eff"]),
    "eq10_G": lambda p: math.exp(gmip.log_sampling_factor(p["mu_step"])),
    "nonoise": lambda p: gmip.sampled_mu(gmip.one_step_mu(p["d"], p["d"], p["n"]), p["n"] / p["N"], p["T"]),
    "corF1_dp2mip": lambda p: minimum_mu(p["n"], p["d"], dp_noise(p["mu_DP"])),
    "corF1_mip2dp": lambda p: gmip.differential_privacy_mu(published_noise(p["mu_MIP"], p["n"], p["d"])),
    "harm_dp2mip": lambda p: gmip.harmonic_mu(p["n"], p["d"], dp_noise(p["mu_DP"])),
}


@pytest.mark.parametrize(
    ("quantity", "key"), [(name, key) for name in REFERENCES for key in VECTORS if key.startswith(name)]
)
def test_corollary_f1_reference(quantity: str, key: str) -> None:
    """All formulas. LEEMANN2023:G11: in Corollary F.1 the clip norm cancels; printed is n + 4 C^2/mu_DP^2 + 1/2."""
    value = REFERENCES[quantity]({name: float(x) for name, x in VECTORS[key]["params"].items()})
    assert value == pytest.approx(float(VECTORS[key]["value"]), rel=1e-11, abs=0)


def test_corollary_f1_needs_no_noise_above_the_threshold():
    """LEEMANN2023:G12: printed is "no solution below 2d/(2n+1)"; right is no positive noise at or above it."""
    threshold = math.sqrt(2 * 650 / (2 * 400 + 1))
    assert published_noise(threshold * 1.001, 400, 650) == 0.0
    assert published_noise(threshold * 0.999, 400, 650) > 0.0
    assert gmip.differential_privacy_mu(published_noise(threshold * 1.001, 400, 650)) == math.inf


@pytest.mark.parametrize(("n", "d"), [(500, 650), (1970, 2580), (790, 1026)])
def test_table_3_levels(n, d):
    """LEEMANN2023:G6: printed mu_step 1.13 and mu 2.54; the rounded truth is 1.14 and 2.55 (2.56 for Purchase)."""
    step = gmip.one_step_mu(d, d, n)
    assert round(step, 2) == 1.14
    assert round(math.sqrt(5) * step, 2) == (2.56 if d == 2580 else 2.55)
    assert step == pytest.approx(math.sqrt(2 * d / (2 * n + 1)), rel=1e-12, abs=0)


@pytest.mark.parametrize("name", ["CIFAR", "Purchase", "Adult"])
def test_table_5_as_printed(name):
    """Recomputed: mu_step, noise for DP, by Eq. (9), its minimum, and harmonic; and all 120 entries to two decimals.

    LEEMANN2023:G7: the MIP rows are "0 or DP" throughout.
    """
    s = TABLE["settings"][name]
    unit, rate, steps = s["C"] / s["n"], s["n"] / s["N"], s["epochs"] * s["N"] / s["n"]

    def rules(mu: float) -> tuple[float, ...]:
        step = sampled_mu_step(mu, rate, steps)
        raw, dp = published_noise(step, s["n"], s["d"]), dp_noise(step)
        return step, *(unit * noise for noise in (dp, raw, min(raw, dp), harmonic_noise(step, s["n"], s["d"])))

    for mu, *known in TABLE["rows"][name]:
        assert rules(mu) == pytest.approx(known, rel=1e-9, abs=0)
    printed = (TABLE["printed"][f"{name} {row}"].split() for row in ("MIP", "DP"))
    for mu, mip, dp in zip(np.geomspace(0.4, 50.0, 20), *printed, strict=True):
        _, noise, raw, least, _ = rules(float(mu))
        assert (f"{least:.2f}", f"{noise:.2f}") == (mip, dp)
        assert raw == 0.0 or raw > 2.0 * noise


def test_noise_free_level_of_cifar():
    """LEEMANN2023:G8: printed 0.86 is a grid point; the threshold of Eq. (10) is 0.7866."""
    assert gmip.sampled_mu(gmip.one_step_mu(650, 650, 400), 400 / 48000, 1200) == pytest.approx(0.7866, abs=5e-5)


@given(mu=st.floats(1e-3, 50.0), n=st.floats(1.0, 1e5), k=st.floats(0.1, 1e6))
def test_harmonic_noise_is_least_and_never_above_dp(mu, n, k):
    """LEEMANN2023:G9: no minimum rule is needed. And the rule is below both of its parts."""
    noise = harmonic_noise(mu, n, k)
    assert noise <= dp_noise(mu) * (1.0 + 1e-12)
    found = gmip.harmonic_mu(n, k, noise)
    assert found == pytest.approx(mu, rel=1e-6, abs=0) if noise > 0.0 else found <= mu * (1 + 1e-12)
    assert found <= min(gmip.differential_privacy_mu(noise), math.sqrt(k / n)) * (1 + 1e-12)


def test_harmonic_rule_bounds_every_spectrum():
    """The exact delta^T (n Sigma + n^2 tau^2 I)^-1 delta against the rule, random and adverse spectra."""
    rng = np.random.default_rng(5)
    for _ in range(100):
        d = int(rng.integers(1, 40))
        spectrum = np.exp(rng.uniform(-12, 0, d))
        deviation = rng.normal(size=d) * np.exp(rng.uniform(-6, 3, d))
        deviation *= 2.0 * rng.uniform(0.05, 1.0) / np.linalg.norm(deviation)
        n, noise = float(rng.uniform(1, 2000)), float(np.exp(rng.uniform(-3, 3)))
        exact = math.sqrt(np.sum(deviation**2 / (n * spectrum + noise**2)))
        assert exact <= gmip.harmonic_mu(n, np.sum(deviation**2 / spectrum), noise) * (1 + 1e-12)


def test_small_membership_mu_is_no_differential_privacy():
    """LEEMANN2023:G13: a noise-free mean with n >> d has a small mu and no DP at all."""
    assert minimum_mu(10**6, 10, 0.0) < 0.01
    assert gmip.differential_privacy_mu(0.0) == math.inf

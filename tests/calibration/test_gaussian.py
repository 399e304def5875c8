"""mu, epsilon and delta of a Gaussian curve against decimals, over everything that a search may ask."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from reticent.calibration import gaussian


def mp_delta(mu: float, epsilon: float) -> mpmath.mpf:
    """Phi(mu/2 - e/mu) - e^e Phi(-mu/2 - e/mu): Corollary 2.13 of DONG2022, in 60 digits."""
    m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
    return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


@pytest.mark.parametrize("mu", [1e-6, 1e-3, 0.1, 1.0, 7.0, 55.0])
@pytest.mark.parametrize("ratio", [0.0, 1e-3, 0.5, 3.0, 9.0, 30.0])
def test_delta_and_its_inverses_against_decimals(mu: float, ratio: float) -> None:
    epsilon = ratio * mu
    with mpmath.workdps(400):
        truth = float(mpmath.log(mp_delta(mu, epsilon)))
    assert gaussian.log_delta_at(mu, epsilon) == pytest.approx(truth, rel=1e-9, abs=1e-13)
    if truth < -1e-3:
        assert gaussian.mu_at(epsilon, truth) == pytest.approx(mu, rel=1e-9, abs=0)
        assert gaussian.epsilon_at(mu, truth) == pytest.approx(epsilon, rel=1e-6, abs=1e-9 * mu)


def test_inverses_on_random_curves() -> None:
    rng = np.random.default_rng(4)
    for _ in range(300):
        mu, level = 10 ** rng.uniform(-2, 1.3), math.log(10 ** rng.uniform(-12, -0.5))
        epsilon = gaussian.epsilon_at(mu, level)
        assert epsilon >= 0.0
        if epsilon > 0.0:
            assert gaussian.log_delta_at(mu, epsilon) == pytest.approx(level, rel=1e-9, abs=0)
            assert gaussian.mu_at(epsilon, level) == pytest.approx(mu, rel=1e-8, abs=0)
        else:
            assert gaussian.log_delta_at(mu, 0.0) <= level


def test_what_no_curve_reaches_is_clipped() -> None:
    assert gaussian.mu_at(1.0, -math.inf) == gaussian.LEAST_MU
    assert gaussian.mu_at(1.0, 0.0) == gaussian.LARGEST_MU
    assert gaussian.mu_at(math.inf, -3.0) == gaussian.LARGEST_MU
    assert gaussian.clipped(math.nan) == gaussian.LARGEST_MU

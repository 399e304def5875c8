"""A secret in one person's records: the bound against attackers whose success is computed without it.

Theorems: RETICENT:secret.
"""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy.stats import binom, norm

import reticent as rt
from reticent.adversaries import FinalModel, Relaxed
from reticent.calibration import Secret
from reticent.kernel.curves import GaussianTradeOff
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms import DPSGD, Gaussian
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Claim
from reticent.kernel.risk import blind_guess, secret_success


@pytest.mark.parametrize(("bits", "guesses"), [(13.287712379549449, 10), (1.0, 1), (128.0, 10**9), (20.0, 1)])
def test_the_formula_in_many_digits(bits: float, guesses: int) -> None:
    """1 - f(n 2^-H) of a Gaussian curve, by mpmath."""
    with mpmath.workdps(60):
        blind = guesses * mpmath.mpf(2) ** -mpmath.mpf(bits)
        quantile = mpmath.findroot(lambda z: mpmath.log(mpmath.ncdf(z) / blind), float(norm.ppf(float(blind))))
        expected = float(mpmath.ncdf(quantile + mpmath.mpf("1.3")))
    assert blind_guess(bits, guesses) == pytest.approx(float(blind), rel=1e-13, abs=0)
    assert secret_success(GaussianTradeOff(1.3), bits, guesses) == pytest.approx(expected, rel=1e-9, abs=0)


def test_the_pin_of_the_front_page() -> None:
    """Four random digits in ten guesses: .1% becomes at most .34%."""
    run = rt.dpsgd(noise_multiplier=1.1, sample_rate=0.01, steps=1000)
    assert blind_guess(math.log2(10_000), 10) == pytest.approx(0.001, rel=1e-12, abs=0)
    assert 0.00336 < rt.secret_success(run, math.log2(10_000), 10) < 0.0034


@pytest.mark.parametrize("guesses", [1, 3, 10])
@pytest.mark.parametrize("mu", [0.5, 2.0])
def test_the_best_guesses_of_a_released_histogram_stay_below_and_come_near(mu: float, guesses: int) -> None:
    """One of 64 cells holds the person; noise of standard deviation 1/mu in each; the highest cells are guessed.

    The true cell is among them where at most guesses - 1 of the 63 others show more: an integral over what it shows.
    """
    shown = np.linspace(-12.0, 12.0 + mu, 40_001)
    right = binom.cdf(guesses - 1, 63, norm.sf(shown))
    success = float(np.sum(norm.pdf(shown - mu) * right) * (shown[1] - shown[0]))
    bound = secret_success(GaussianTradeOff(mu), 6.0, guesses)
    assert 0.8 * bound < success < bound


def test_calibration_inverts_it_and_states_what_it_needs() -> None:
    found = rt.calibrate(DPSGD(1.0, 0.01, 300), secret=0.002, secret_bits=13.2877, guesses=10)
    assert 0.00199 < rt.secret_success(found.mechanism, 13.2877, 10) <= 0.002
    (answer,) = found
    assert answer.assessment().claim is Claim.CONDITIONAL
    assert {"secret-entropy", "secret-nowhere-else"} <= {one.key for one in answer.assessment().conditions}


def test_an_attacker_whose_curve_is_an_average_bounds_no_secret() -> None:
    release = Gaussian(2.0)
    with pytest.raises(UnsupportedError, match="use worst-case or final-model"):
        rt.secret_success(rt.assess(release, "relaxed")["relaxed"], 10.0)
    with pytest.raises(UnsupportedError, match="worst-case or final-model"):
        rt.calibrate(release, "relaxed", secret=0.1, secret_bits=10.0, guesses=1)
    table = rt.assess(release, "relaxed", secret_bits=10.0)
    assert [row[-1] for row in table.rows()] == [None, rt.secret_success(release, 10.0)]
    records = {record.adversary: record for record in table.document.assessments}
    assert records["relaxed"].secret_at_bits_and_guesses == {} == records["relaxed"].also_needed
    assert list(records["worst-case"].also_needed) == ["secret_at_bits_and_guesses"]
    assert "RETICENT:secret" in records["worst-case"].theorems
    last = FinalModel(0.9).assess(DPSGD(2.0, 1.0, 50), Neighbouring.REPLACE)
    assert rt.secret_success(last, 10.0) < rt.secret_success(
        rt.WorstCase().assess(DPSGD(2.0, 1.0, 50), Neighbouring.REPLACE), 10.0
    )
    assert Relaxed.every_test is False


@pytest.mark.parametrize(("bits", "guesses"), [(0.0, 1), (-1.0, 1), (math.inf, 1), (10.0, 0), (10.0, 1.5)])
def test_what_is_no_secret_is_refused(bits: float, guesses: float) -> None:
    with pytest.raises(ParameterError):
        secret_success(GaussianTradeOff(1.0), bits, guesses)


def test_what_is_too_small_for_a_number_is_not_impossible() -> None:
    assert secret_success(GaussianTradeOff(1.0), 5000.0) >= secret_success(GaussianTradeOff(1.0), 1074.0) > 0.0


def test_a_limit_that_a_blind_guess_breaks_is_refused() -> None:
    with pytest.raises(ParameterError, match="needs no attack"):
        Secret(0.001, 8.0, 10)

"""Risk numbers against independent formulas: mpmath, brute force over a grid, and closed forms."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri
from scipy.stats import norm

from reticent.kernel import risk
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.curves import (
    GaussianTradeOff,
    PiecewiseLinearTradeOff,
    Subsampled,
    from_advantage,
    no_privacy,
    symmetrised,
)
from reticent.kernel.errors import ParameterError
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.risk import (
    bayes_security,
    delta_at_epsilon,
    epsilon_at_delta,
    mu,
    mu_above,
    power_of_ppv,
    ppv,
    ppv_of_power,
    success,
    tpr_at_fpr,
)
from reticent.mechanisms import Laplace

MUS = st.floats(0.01, 6.0)


def test_bayes_security_keeps_its_digits_when_it_is_tiny() -> None:
    expected = float(mpmath.erfc(mpmath.mpf(20) / (2 * mpmath.sqrt(2))))
    assert expected < 1e-22
    assert bayes_security(GaussianTradeOff(20.0)) == pytest.approx(expected, rel=1e-10, abs=0)


@pytest.mark.parametrize("prior", [0.01, 0.1, 0.5, 0.9, 0.999])
def test_success_is_the_best_of_all_threshold_tests(prior: float) -> None:
    curve = GaussianTradeOff(1.3)
    alphas = np.linspace(0, 1, 200_001)
    brute = np.max((1 - prior) * (1 - alphas) + prior * norm.cdf(norm.ppf(alphas) + 1.3))
    assert success(curve, prior) == pytest.approx(brute, rel=1e-7, abs=0)
    assert success(curve, prior) >= max(prior, 1 - prior)


def test_tpr_at_small_fpr_does_not_round_to_zero() -> None:
    expected = float(mpmath.ncdf(mpmath.mpf("0.5") - mpmath.mpf("9.262340089798408")))
    assert tpr_at_fpr(GaussianTradeOff(0.5), 1e-20) == pytest.approx(expected, rel=1e-9, abs=0)


@given(MUS, st.floats(1e-12, 0.5))
def test_epsilon_is_the_inverse_of_delta_on_the_safe_side(m: float, delta: float) -> None:
    curve = GaussianTradeOff(m)
    epsilon = epsilon_at_delta(curve, delta)
    assert delta_at_epsilon(curve, epsilon) <= delta * (1 + 1e-14)  # the rounding of a logarithm
    if epsilon > 0:
        assert delta_at_epsilon(curve, epsilon * (1 - 1e-9)) > delta * (1 - 1e-6)


def test_epsilon_against_mpmath() -> None:
    def delta(e: mpmath.mpf) -> mpmath.mpf:
        return mpmath.ncdf(-e + mpmath.mpf(1) / 2) - mpmath.exp(e) * mpmath.ncdf(-e - mpmath.mpf(1) / 2)

    expected = float(mpmath.findroot(lambda e: delta(e) - mpmath.mpf("1e-5"), 4))
    assert epsilon_at_delta(GaussianTradeOff(1.0), 1e-5) == pytest.approx(expected, rel=1e-10, abs=0)


@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0])
def test_mu_above_of_laplace_noise_is_where_both_errors_are_alike(scale: float) -> None:
    """Their product is ``e^(-1/scale) / 4`` wherever both are small, and the shift is largest in the middle."""
    exact = -2.0 * float(ndtri(0.5 * math.exp(-0.5 / scale)))
    found = WorstCase().assess(Laplace(scale)).measure(mu_above)
    assert found.upper == pytest.approx(exact, rel=1e-9, abs=0)


def test_mu_above_of_a_subsampled_curve_is_the_largest_shift_on_a_fine_grid() -> None:
    curve = symmetrised(Subsampled(GaussianTradeOff(1.0), 0.3))
    alphas = norm.cdf(np.linspace(norm.ppf(1e-9), 0, 20_001))
    brute = np.max(norm.isf(alphas) - norm.ppf(curve.beta(alphas)))
    assert mu_above(curve) == pytest.approx(brute, rel=1e-8, abs=0)
    assert mu_above(curve) >= brute - 1e-9


def test_mu_above_of_a_polygon_is_at_a_vertex() -> None:
    """Or where the rates begin, here on the other segment for the inverse."""
    curve = PiecewiseLinearTradeOff([0.0, 0.2, 1.0], [1.0, 0.3, 0.0])
    assert mu_above(curve) == pytest.approx(norm.isf(0.2) - norm.ppf(0.3), rel=1e-12, abs=0)
    assert mu_above(curve, 0.35) == pytest.approx(norm.isf(0.35) - norm.ppf(0.2 * 0.65 / 0.7), rel=1e-12, abs=0)


def test_mu_above_looks_at_a_curve_from_both_sides() -> None:
    """Sampling is seen where the record is absent far less than where it is present."""
    curve = Subsampled(GaussianTradeOff(2.0), 0.1)
    alphas = norm.cdf(np.linspace(norm.ppf(1e-9), 0, 20_001))
    sides = [np.max(norm.isf(alphas) - norm.ppf(one.beta(alphas))) for one in (curve, curve.reversed)]
    assert max(sides) > 1.05 * min(sides)
    for one in (curve, curve.reversed):
        assert mu_above(one) == pytest.approx(max(sides), rel=1e-5, abs=0)


@given(MUS)
def test_mu_recognises_a_gaussian_in_disguise(m: float) -> None:
    plain = Subsampled(GaussianTradeOff(m), 1.0)
    assert mu_above(plain) == pytest.approx(m, rel=1e-6, abs=0)
    assert mu(plain) == m


@pytest.mark.parametrize(("prior", "fpr"), [(0.1, 0.01), (0.1, 0.001), (0.5, 0.2), (1e-4, 0.01)])
def test_the_worth_of_an_accusation_by_bayes(prior: float, fpr: float) -> None:
    """P[in | flagged] from the joint law of who is in the data and who is flagged, in 30 digits."""
    with mpmath.workdps(30):
        threshold = mpmath.findroot(lambda t: mpmath.ncdf(-t) - mpmath.mpf(fpr), float(norm.isf(fpr)))
        flagged = mpmath.ncdf(mpmath.mpf("0.7") - threshold) * mpmath.mpf(prior)
        expected = float(flagged / (flagged + (1 - mpmath.mpf(prior)) * mpmath.mpf(fpr)))
    found = ppv(GaussianTradeOff(0.7), prior, fpr)
    assert found == pytest.approx(expected, rel=1e-12, abs=0)
    assert ppv_of_power(power_of_ppv(found, prior, fpr), prior, fpr) == pytest.approx(found, rel=1e-13, abs=0)
    assert prior <= found < ppv_of_power(1.0, prior, fpr)


def test_the_worth_of_a_rare_accusation_does_not_vanish() -> None:
    """A prior times a power below the smallest float made 0 of it: 8.2331116e-288 in 40 digits."""
    assert ppv(GaussianTradeOff(1.0), 1e-300, 1e-200) == pytest.approx(8.23311160399e-288, rel=1e-9, abs=0)
    assert power_of_ppv(math.nextafter(1.0, 0.0), 1e-310, 0.01) > 1.0  # a division by 0


def test_where_some_people_are_likelier_the_largest_prior_counts() -> None:
    """20,000 patients of a ward of whom half are in the data, and 80,000 others of whom none is.

    At the share of all, 1 in 10, whoever accuses patients by lot exceeds the number without any model.
    """
    curve, patients, wrongly = GaussianTradeOff(0.5), np.array([10_000, 0]), np.array([10_000, 80_000])
    by_lot = np.array([0.09, 0.0])  # of each group
    false_alarms = by_lot @ wrongly / wrongly.sum()
    assert false_alarms == pytest.approx(0.01, rel=1e-12, abs=0)
    assert by_lot @ patients / (by_lot @ (patients + wrongly)) > 1.5 * ppv(curve, 0.1, false_alarms)
    rng = np.random.default_rng(3)
    priors = np.append(rng.uniform(0.0, 0.5, 40), 0.5)
    for _ in range(50):  # each person at a rate of its own, with the whole power
        rates = rng.beta(0.3, 3.0, priors.size)
        members, others = priors @ curve.power(rates), (1.0 - priors) @ rates
        most = ppv(curve, 0.5, others / (1.0 - priors).sum())
        assert members / (members + others) <= most * (1.0 + 1e-12)


def test_people_who_are_in_the_data_together_are_one_person() -> None:
    """Households of two, both in or both out: each member moves the sum by 1, and who flags both is right more often.

    The number of one record holds where people are in the data independently of each other, and says so.
    """
    rng = np.random.default_rng(1)
    inside = rng.random(400_000) < 0.1
    flagged = rng.normal(2.0 * inside) > norm.isf(0.01)
    share = inside[flagged].mean()
    one, two = (WorstCase().assess(DPSGD(1.0, 1.0, 1, records_per_user=n)).curve for n in (1, 2))
    assert share > 1.5 * ppv(one, 0.1, 0.01)
    assert share == pytest.approx(ppv(two, 0.1, 0.01), abs=0.01)
    assert "independently of" in (ppv.__doc__ or "")


@pytest.mark.parametrize(
    "call",
    [
        lambda c: ppv(c, 0.0, 0.01),
        lambda c: ppv(c, 0.1, 0.0),
        lambda c: success(c, 0.0),
        lambda c: success(c, math.nan),
        lambda c: tpr_at_fpr(c, 1.5),
        lambda c: epsilon_at_delta(c, 0.0),
        lambda c: delta_at_epsilon(c, math.inf),
        lambda c: mu_above(Subsampled(c, 0.5), floor=0.0),
    ],
)
def test_bad_arguments_are_refused_by_name(call) -> None:
    with pytest.raises(ParameterError, match="must be"):
        call(GaussianTradeOff(1.0))


@pytest.mark.parametrize(("curve", "least"), [(GaussianTradeOff(1.0), 5e-324), (GaussianTradeOff(0.0), 0.0)])
def test_a_delta_that_no_number_can_say_is_not_called_nothing(curve: GaussianTradeOff, least: float) -> None:
    """1e-349 at epsilon 40 was stated as 0, and so as exact."""
    assert delta_at_epsilon(curve, 40.0) == least  # the smallest number of all, not one to be near to
    assert delta_at_epsilon(curve, 30.0) < 1e-180


GROWING = {
    risk.advantage: (),
    risk.mu: (),
    risk.mu_above: (),
    risk.success: (0.3,),
    risk.tpr_at_fpr: (0.01,),
    risk.ppv: (0.1, 0.01),
    risk.delta_at_epsilon: (1.0,),
    risk.epsilon_at_delta: (1e-5,),
    risk.recovered: (0.1,),
    risk.secret_success: (10.0, 3),
}


@pytest.mark.parametrize("number", GROWING, ids=lambda number: number.__name__)
@pytest.mark.parametrize("weaker", [from_advantage(0.0), GaussianTradeOff(0.5)], ids=["nothing", "gaussian"])
def test_numbers_grow_with_risk(number, weaker) -> None:
    assert number(weaker, *GROWING[number]) < number(no_privacy(), *GROWING[number])


def test_bayes_security_falls() -> None:
    assert risk.bayes_security(from_advantage(0.0)) > risk.bayes_security(no_privacy())

"""mu is proven at every error rate, or infinite: the cases of the referee, the theorem behind it, and its law.

Theorem: RETICENT:all-rates-mu.
"""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy.special import log_ndtr, ndtri, ndtri_exp

from reticent.adversaries import Attribute, Membership, MembershipGame, Mixed, Relaxed
from reticent.adversaries.relaxed.sign import Part, unknown_sign
from reticent.calibration import BatchSize, Mu, NoiseMultiplier, SampleRate, Steps, UnreachableError, calibrate
from reticent.curves import LaplaceTradeOff, RelaxedGaussianTradeOff
from reticent.kernel.accountants import compose, mu_limits
from reticent.kernel.adversaries import Method, WorstCase
from reticent.kernel.curves import (
    GaussianTradeOff,
    Mixture,
    PiecewiseLinearTradeOff,
    Subsampled,
    TradeOff,
    from_advantage,
    symmetrised,
)
from reticent.kernel.mechanisms import DPSGD, Gaussian
from reticent.kernel.pairs import AntipodalGaussianPair, Neighbouring
from reticent.kernel.risk import epsilon_at_delta, mu, mu_above
from reticent.kernel.samplers import Poisson, Sampler
from reticent.mechanisms import Laplace
from reticent.samplers import AllocatedOnce, FixedSize, RandomAllocation

ADD, REPLACE = Neighbouring.ADD_REMOVE, Neighbouring.REPLACE


def shift_at(curve: TradeOff, z: np.ndarray | float) -> np.ndarray:
    """-Phi^-1(alpha) - Phi^-1(beta) at alpha = Phi(-z), by the power, which keeps its digits."""
    return z + ndtri_exp(curve.log_power(log_ndtr(-np.asarray(z))))


class TestCasesOfTheReferee:
    def test_without_noise_mu_is_infinite(self) -> None:
        """TPR .41 at FPR 0; it said 5.769."""
        result = WorstCase().assess(DPSGD(0.0, 0.1, 5))
        assert float(result.curve.power(0.0)) == pytest.approx(1 - 0.9**5, rel=1e-12, abs=0)
        assert result.mu().value == result.mu().lower == math.inf
        assert mu(result.curve) == math.inf

    def test_laplace_of_little_noise(self) -> None:
        """It said 50.18; the truth is at least 63."""
        interval = WorstCase().assess(Laplace(1e-3)).mu()
        mpmath.mp.dps = 30
        quantile = mpmath.findroot(lambda x: mpmath.log(mpmath.ncdf(x)) + 500 + mpmath.log(2), -31.5)
        assert interval.value == pytest.approx(float(-2 * quantile), rel=1e-12, abs=0)
        assert interval.lower == interval.upper == interval.value > 63.0

    def test_a_thousand_sampled_steps(self) -> None:
        """It said .83, which implies an epsilon of 6.2 at delta 1e-12 where 6.992 was printed."""
        run = DPSGD(0.8, 0.01, 1000)
        result = WorstCase().assess(run)
        assert result.mu().value == pytest.approx(math.sqrt(1000) / 0.8, rel=1e-12, abs=0)
        printed = result.measure(lambda curve: epsilon_at_delta(curve, 1e-12)).lower
        assert printed > 6.9
        assert epsilon_at_delta(GaussianTradeOff(mu_above(result.curve)), 1e-12) < printed
        assert epsilon_at_delta(GaussianTradeOff(result.mu().value), 1e-12) >= printed


class TestSamplingDoesNotLowerIt:
    """docs/theory/mu.md: as alpha goes to 0 a sampled Gaussian run has the shift of the run without sampling."""

    def test_one_step_climbs_to_the_full_shift(self) -> None:
        curve = Subsampled(GaussianTradeOff(2.0), 0.01)
        shifts = shift_at(curve, np.array([5.0, 10.0, 40.0, 200.0, 1000.0]))
        assert np.all(np.diff(shifts) > 0.0)
        assert 2.0 - 0.006 < shifts[-1] < 2.0 == mu(curve)

    def test_replacement_beyond_one_half_exceeds_it(self) -> None:
        curve = AntipodalGaussianPair(0.7, 0.95)
        assert np.max(shift_at(curve, np.linspace(0.0, 8.0, 81))) > 1.2 / 0.7
        assert mu(curve) == pytest.approx(2.0 / 0.7, rel=1e-9, abs=0)
        lower, upper = mu_limits(DPSGD(0.7, 0.95, 4), REPLACE)
        assert (lower, upper) == pytest.approx((2.0 / 0.7, 4.0 / 0.7), rel=1e-12, abs=0)
        assert lower < WorstCase().assess(DPSGD(0.7, 0.95, 4), REPLACE).mu().lower < upper

    @pytest.mark.parametrize("dimension", [1, 5])
    def test_the_unknown_direction_does_not_lower_it_either(self, dimension: int) -> None:
        curve = RelaxedGaussianTradeOff(4.0, dimension)
        assert shift_at(curve, 5.0) < shift_at(curve, 37.0) < shift_at(curve, 300.0)
        assert 1.95 < shift_at(curve, 300.0) < 2.0 == mu(curve)

    def test_everybody_has_the_mu_of_the_worst_case(self) -> None:
        run = DPSGD(1.0, 0.02, 400, batch_size=10)
        for who in (WorstCase(), Membership(), Relaxed(), Mixed(0.5), MembershipGame(5.0)):
            assert who.assess(run).mu().value == pytest.approx(20.0, rel=1e-12, abs=0)
        attribute = Attribute(gradient_change=0.3).assess(run)
        assert attribute.mu().value == pytest.approx(6.0, rel=1e-12, abs=0)

    def test_a_floor_asks_for_no_more_than_every_rate(self) -> None:
        told = WorstCase().assess(DPSGD(0.03, 0.01, 10**6, sampler=RandomAllocation()), ADD)
        found, all_rates = told.mu_above(1e-9), told.mu()
        assert told.measure(mu_above, 1e-9).upper > all_rates.upper  # of a polygon around it
        assert found.lower <= found.upper
        assert (found.value, found.upper) == pytest.approx((all_rates.upper, all_rates.upper), rel=1e-9, abs=0)
        loud = WorstCase().assess(DPSGD(6.2, 0.74, 192_275), REPLACE)
        assert (
            104.40 < loud.mu_above(1e-9).lower <= loud.mu_above(1e-9).upper < 104.42 < loud.mu().upper
        )  # was infinite
        quiet = WorstCase().assess(DPSGD(2.0, 0.01, 100), ADD)
        assert quiet.mu_above(1e-9).upper == pytest.approx(quiet.measure(mu_above, 1e-9).upper, rel=1e-9, abs=0)

    def test_a_bound_on_the_advantage_alone_takes_mu_from_the_release(self) -> None:
        proven = Membership().assess(DPSGD(1.0, 0.2, 40), ADD, Method.PROVEN)
        assert mu(proven.curve) == math.inf
        assert proven.mu().value == pytest.approx(math.sqrt(40), rel=1e-12, abs=0)
        assert unknown_sign(DPSGD(1.0, 1.0, 9), part=Part.ADDITION).pessimistic.proven_mu == 3.0


class TestBoundedLosses:
    """Laplace: the ratio is bounded, so mu is finite, and its enclosure closes up."""

    @pytest.mark.parametrize("epsilon", [0.01, 1.0, 12.0])
    def test_one_release_against_the_whole_curve(self, epsilon: float) -> None:
        curve = LaplaceTradeOff(epsilon)
        z = np.linspace(0.0, 30.0, 6001)
        brute = np.max(shift_at(curve, z))
        assert brute <= mu(curve) * (1 + 1e-12)
        assert mu(curve) == pytest.approx(brute, rel=1e-4, abs=0)

    @pytest.mark.parametrize("release", [Laplace(1.0, 1, 0.1), Laplace(10.0, 10), Laplace(10.0, 10, 0.3)], ids=repr)
    def test_composed_and_sampled_releases_are_enclosed(self, release: Laplace) -> None:
        interval = WorstCase().assess(release).mu()
        assert interval.lower <= interval.value
        assert interval.value == pytest.approx(interval.lower, rel=1e-6, abs=0)

    def test_where_the_ratio_overflows_a_bound_is_left(self) -> None:
        interval = WorstCase().assess(Laplace(1e-3, 1, 0.1)).mu()
        curve = Subsampled(LaplaceTradeOff(1000.0), 0.1)
        brute = np.max(shift_at(curve, np.linspace(1.0, 60.0, 1181)))
        assert 43.0 < brute <= interval.value < 1.1 * brute
        assert interval.lower <= brute * (1.0 + 1e-9)


class TestCurves:
    def test_a_polygon_needs_it_at_a_vertex(self) -> None:
        curve = PiecewiseLinearTradeOff([0.0, 0.1, 0.4, 1.0], [1.0, 0.5, 0.1, 0.0])
        alphas = np.linspace(1e-6, 1 - 1e-6, 200_001)
        brute = np.max(-ndtri(alphas) - ndtri(curve.beta(alphas)))
        assert mu(curve) == pytest.approx(max(-ndtri(0.1) - ndtri(0.5), -ndtri(0.4) - ndtri(0.1)), rel=1e-12, abs=0)
        assert brute <= mu(curve) * (1 + 1e-9)

    def test_who_is_sometimes_certain_has_no_mu(self) -> None:
        assert mu(from_advantage(1e-6)) == math.inf
        sometimes = PiecewiseLinearTradeOff([0.0, 1.0], [0.9, 0.0])  # TPR .1 at FPR 0
        assert mu(sometimes) == mu(sometimes.reversed) == math.inf
        assert mu(from_advantage(0.0)) == 0.0

    def test_worst_and_mixed_curves_take_the_largest(self) -> None:
        parts = [GaussianTradeOff(0.5), Subsampled(GaussianTradeOff(2.0), 0.1)]
        assert mu(symmetrised(parts[1])) == 2.0
        assert mu(Mixture(parts, [0.9, 0.1])) == 2.0
        assert mu(parts[1].reversed) == 2.0


class TestCalibration:
    def test_what_does_not_change_mu_is_a_plateau(self) -> None:
        """Neither the rate nor the batch size changes it: all or nothing."""
        run = DPSGD(2.0, 0.1, 16, dataset_size=1000)
        assert calibrate(run, SampleRate(), Mu(2.1)).value == 1.0
        assert calibrate(run, BatchSize(), Mu(2.1)).value == 1000
        with pytest.raises(UnreachableError, match="out of reach"):
            calibrate(run, SampleRate(), Mu(1.99))

    def test_steps(self) -> None:
        assert calibrate(DPSGD(2.0, 0.1, 16), Steps(), Mu(2.0)).value == 16
        assert calibrate(Gaussian(2.0, 16), Steps(), Mu(1.99)).value == 15

    def test_other_attackers_and_laplace(self) -> None:
        for who in (Relaxed(), Mixed(0.5), Membership()):
            answer = calibrate(DPSGD(1.0, 0.01, 100), NoiseMultiplier(), Mu(2.0), who)
            assert answer.value == pytest.approx(5.0, rel=1e-4, abs=0)
            assert answer.worst_case().value <= 2.0
        laplace = calibrate(Laplace(1.0), NoiseMultiplier(), Mu(1.0)).mechanism
        assert mu(compose(laplace, ADD).pessimistic) == pytest.approx(1.0, rel=2e-4, abs=0)


class TestTheNote:
    """What a run says about its mu: never below that of adding the record in every step, whatever the draws."""

    @pytest.mark.parametrize("relation", [ADD, REPLACE, Neighbouring.ZERO_OUT])
    @pytest.mark.parametrize(
        ("sampler", "uses", "where"),
        [
            (Poisson(), 20, "every step"),
            (FixedSize(), 20, "every step"),
            (RandomAllocation(), 2, "one step of every epoch"),
            (AllocatedOnce(), 2, "one step of every epoch"),
        ],
    )
    def test_it_names_a_run_whose_mu_is_no_larger(
        self, relation: Neighbouring, sampler: Sampler, uses: int, where: str
    ) -> None:
        run = DPSGD(4.0, 0.1, 20, sampler=sampler)
        (note,) = (one for one in run.notes if one.key == "note.mu")
        assert f"adding the record in {where}:" in note
        added = mu_limits(DPSGD(4.0, 1.0, uses), ADD)[0]
        assert mu_limits(run, relation)[0] >= added * (1.0 - 1e-12)

    def test_under_replacement_draws_halve_mu(self) -> None:
        """So no note may name a run in which every step uses the record."""
        whole = mu_limits(DPSGD(4.0, 1.0, 285), REPLACE)[1]
        assert mu_limits(DPSGD(4.0, 0.14, 285), REPLACE)[1] == pytest.approx(whole / 2.0, rel=1e-12, abs=0)
        assert not any("every step uses" in note for note in DPSGD(4.0, 0.14, 285).notes)

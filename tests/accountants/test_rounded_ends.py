"""Where double precision rounds to 1: a rate next to 1 is not 1, and a power of 1 is not a little less."""

from __future__ import annotations

import math

import numpy as np
import pytest

from reticent.adversaries import Relaxed
from reticent.adversaries.relaxed.dimension import relaxed_in
from reticent.kernel.accountants import compose, mu_limits
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.curves.base import LogErrors, follow_segment
from reticent.kernel.mechanisms import DPSGD, Ledger
from reticent.kernel.pairs import Neighbouring, WholeUserGaussianPair
from reticent.kernel.risk import advantage
from tests.laws.experiments import truth_of

pytestmark = pytest.mark.usefixtures("coarse")

ADD, REPLACE = Neighbouring.ADD_REMOVE, Neighbouring.REPLACE


@pytest.mark.parametrize(("steps", "neighbouring"), [(1, ADD), (1, REPLACE), (2, ADD)])
def test_a_person_of_whom_some_record_is_all_but_surely_drawn_is_no_full_batch(steps, neighbouring) -> None:
    """Sixty records at rate 1/2: 1 - 2^-60 is 1 in double precision. Merged, one step was .8664 at both ends."""
    found = WorstCase().assess(DPSGD(20.0, 0.5, steps, records_per_user=60), neighbouring).measure(advantage)
    pair = WholeUserGaussianPair(20.0, 0.5, 60, antipodal=neighbouring is REPLACE)
    ((least, most),) = truth_of([(pair, steps)], [0.0]).values()
    assert found.lower <= most
    assert least <= found.upper == pytest.approx(most, rel=1e-4, abs=0)


def test_no_pair_of_a_person_is_ever_merged() -> None:
    pair = WholeUserGaussianPair(20.0, 0.5, 60, antipodal=False)
    assert pair.mu is None
    assert pair.log_absent == pytest.approx(-60.0 * math.log(2.0), rel=1e-12, abs=0)
    assert mu_limits(DPSGD(20.0, 0.5, 4, records_per_user=60), ADD) == pytest.approx((6.0, 6.0), rel=1e-12, abs=0)


def test_what_is_all_but_surely_shown_is_not_shown_for_certain() -> None:
    """Without noise the person stays unseen with probability 2^-120: the power of a test for absence is no more."""
    curve = compose(DPSGD(0.0, 0.5, 2, records_per_user=60), ADD)
    for end in (curve.pessimistic, curve.optimistic):
        assert float(end.log_beta(-200.0 * math.log(2.0))) == pytest.approx(-120.0 * math.log(2.0), rel=1e-9, abs=0)
    both = Ledger((DPSGD(0.0, 0.5, 60), DPSGD(2.0, 0.5, 1)))
    hidden = 60.0 * math.log(2.0)
    assert -math.inf < float(compose(both, REPLACE).optimistic.log_beta(-hidden - 1.0)) <= -hidden


@pytest.mark.parametrize(("noise", "rate", "steps", "neighbouring"), [
    (1.0949917290747362, 0.8366784434523631, 3896, ADD), (0.510775500604425, 0.1675965251916564, 498, REPLACE),
    (0.2660140835712988, 0.37507385624136913, 2066, ADD), (1.3035544543610755, 0.7508773417722138, 18, REPLACE),
])  # fmt: skip
def test_the_raw_ends_of_the_power_are_in_order_next_to_1(noise, rate, steps, neighbouring) -> None:
    """Shares of a segment add up to 1 but for rounding: the upper end was .9999999999999994 where the truth is 1."""
    bracket = compose(DPSGD(noise, rate, steps), neighbouring)
    fpr = np.array([1e-3, 0.1, 0.3, 0.5, 0.9, 0.99])
    upper, lower = bracket.pessimistic.power(fpr), bracket.optimistic.power(fpr)
    assert np.all(upper >= lower)
    assert upper == pytest.approx(1.0 - bracket.pessimistic.beta(fpr), rel=3e-16, abs=0)


def test_both_rates_of_a_segment_are_complements() -> None:
    ends = [LogErrors.of(np.full(9, fpr), np.full(9, fnr)) for fpr, fnr in ((-0.5, -60.0), (-3.0, -40.0))]
    beta, power = follow_segment(np.linspace(-2.9, -0.6, 9), *ends)
    assert np.all((power <= 0.0) & (power > -5e-18))
    assert np.all((beta > -60.0) & (beta < -40.0))


@pytest.mark.parametrize("noise", [99999999999.0, pytest.param(1e14, marks=pytest.mark.slow)])
def test_noise_beyond_all_reason_gets_the_worst_case(noise: float) -> None:
    """A lattice whose points are hundreds of nats apart has masses that are no numbers: it was an IndexError."""
    run = DPSGD(noise, 0.01, 1000)
    found = Relaxed().assess(run).measure(advantage)
    assert 0.0 <= found.lower <= found.upper <= float(compose(run, ADD).pessimistic.delta(0.0)) + 1e-12
    assert relaxed_in(run, 1).notes[0].key == "note.sign-not-followed"


def test_losses_that_overflow_are_no_warning() -> None:
    run = DPSGD(0.025961666784998685, 6.746562201446328e-12, 6)
    found = Relaxed().assess(run).measure(advantage)
    assert found.upper <= 1.0 - (1.0 - run.sample_rate) ** 6 + 1e-14

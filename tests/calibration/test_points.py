"""Claims without the curve: what is claimed at one point is never less than the whole curve says there."""

from __future__ import annotations

import pytest

from reticent.calibration import Mu
from reticent.calibration.claims import Attack, Points
from reticent.kernel.accountants import compose, mu_limits
from reticent.kernel.adversaries import Method, WorstCase
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.risk import epsilon_at_delta

RUNS = [(DPSGD(2.0, 0.05, 200), Neighbouring.ADD_REMOVE), (DPSGD(1.0, 0.02, 500), Neighbouring.REPLACE)]


@pytest.mark.parametrize(("run", "neighbouring"), RUNS, ids=["add", "replace"])
def test_what_is_claimed_at_a_point_holds_for_the_whole_curve(run: DPSGD, neighbouring: Neighbouring) -> None:
    """Chords between the thresholds of the curve lie 1e-6 above the truth: whoever reads it must not see more."""
    points, curve = Points(run, neighbouring), compose(run, neighbouring)
    for epsilon in (0.05, 0.3, 1.0):
        found = points.delta(epsilon)
        assert found is not None
        assert found.lower <= float(curve.pessimistic.delta(epsilon)) <= found.value
        assert found.value == pytest.approx(found.upper, rel=3e-5, abs=0)
    for delta in (1e-3, 1e-5):
        claimed = points.epsilon(delta)
        assert claimed is not None
        assert epsilon_at_delta(curve.pessimistic, delta) <= claimed.value
        there = points.delta(claimed.value)
        assert there is not None
        assert there.value <= delta  # with its allowance, not only its lower end
    power = points.power(0.01, lambda _: True)
    assert power is not None
    assert power.lower <= float(curve.optimistic.power(0.01))
    assert float(curve.pessimistic.power(0.01)) <= power.value


def test_mu_is_claimed_by_its_upper_end() -> None:
    """Replacement at a rate above 1/2: mu lies between two ends, a factor of up to 2 apart."""
    run = DPSGD(2.0, 0.8, 4)
    lower, upper = mu_limits(run, Neighbouring.REPLACE)
    found = Attack(WorstCase(), Neighbouring.REPLACE, Method.EXACT).claim(run, Mu(1.0))
    assert found is not None
    assert lower < upper == found.value

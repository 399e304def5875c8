"""Cheap bounds from moments and single steps: on their sides, close where it matters, with digits of small rates."""

import numpy as np
import pytest

from reticent.kernel.accountants.bounds import CheapBounds, loudest_step
from reticent.kernel.accountants.compose import compose
from reticent.kernel.accountants.one_direction import steps_of
from reticent.kernel.curves import GaussianTradeOff, Subsampled
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.risk import epsilon_at_delta
from tests.accountants.one_kind import steps

ADD, REPLACE = Neighbouring.ADD_REMOVE, Neighbouring.REPLACE
NET = np.concatenate([np.linspace(0.0, 60.0, 601), np.geomspace(61.0, 3000.0, 200)])


def test_loudest_step_keeps_rates_below_the_smallest_double_gap():
    """With 1 - alpha rounded to 1 it claimed false positive rate 0 at rates that attain 1e-20."""
    step = Subsampled(GaussianTradeOff(3.0), 1e-3)
    curve = loudest_step(steps(step, 10))
    for epsilon in (5.0, 15.0, 25.0):
        assert float(curve.delta(epsilon)) <= 10 * float(step.delta(epsilon)) * (1 + 1e-9)
    assert float(curve.delta(25.0)) > 0.0


@pytest.mark.parametrize(
    ("noise", "rate", "steps"),
    [
        (1.1, 0.01, 1000),
        (6.0, 1e-5, 50),
        pytest.param(1.0, 0.5, 4, marks=pytest.mark.slow),
        pytest.param(0.3, 0.001, 100, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_cheap_bounds_enclose(noise, rate, steps, relation):
    """From moments alone: above and below what composition encloses, and within a factor where it matters."""
    run = DPSGD(noise, rate, steps)
    kinds, _ = steps_of(run, relation)
    cheap = CheapBounds(kinds)
    bracket = compose(run, relation)
    truth = bracket.optimistic.log_delta(NET[:400])
    for curve in cheap.above():
        both = np.maximum(curve.log_delta(NET[:400]), curve.reversed.log_delta(NET[:400]))
        assert np.all(both >= truth - 1e-6)
    assert np.all(cheap.below().log_delta(NET[:400]) <= bracket.pessimistic.log_delta(NET[:400]) + 1e-6)
    deep = epsilon_at_delta(cheap.above()[0], 1e-12)
    assert deep < 2.0 * max(epsilon_at_delta(bracket.pessimistic, 1e-12), 1e-9)

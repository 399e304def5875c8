"""The estimate of the common sign lies in the enclosure, from few frequencies, and says nothing far out."""

from functools import partial

import numpy as np
import pytest

from reticent.adversaries.relaxed.sign import Part, quick_sign_estimate, unknown_sign
from reticent.adversaries.relaxed.sign.noise import GaussianSign
from reticent.adversaries.relaxed.sign.transform import estimate
from reticent.kernel.errors import NumericalError
from reticent.kernel.mechanisms import DPSGD, Ledger

addition = partial(unknown_sign, part=Part.ADDITION)


def few_frequencies(noise, most=400_000):
    return estimate([(GaussianSign(0.01, 1.0 / noise), 1000)], 0.004, most)


@pytest.mark.parametrize("noise", [1.1, 10.6, pytest.param(0.606, marks=pytest.mark.slow)])
def test_it_lies_in_the_enclosure(noise):
    """At thresholds at which delta is above 1e-7; beyond the last threshold nothing is said."""
    thresholds, found = np.linspace(0.0, 30.0, 601), addition(DPSGD(noise, 0.01, 1000))
    above, below = (curve.delta(thresholds) for curve in (found.pessimistic, found.optimistic))
    value, seen = few_frequencies(noise)(thresholds), above > 1e-7
    assert np.max(np.maximum(value - above, below - value)[seen]) < 1e-9
    assert noise < 10.0 or np.all(np.abs(few_frequencies(noise)(np.array([0.2, 1.0, 50.0, 1e6]))) < 1e-9)


@pytest.mark.parametrize("noise", [0.6, 13.0])
def test_whoever_moves_a_slider_waits_for_few_frequencies(noise):
    assert few_frequencies(noise)(np.zeros(1))[0] > 0.0
    with pytest.raises(NumericalError, match="needs more than 1000 frequencies"):
        few_frequencies(noise, 1000)


@pytest.mark.usefixtures("small_lattice")
@pytest.mark.parametrize(
    "run", [DPSGD(3.0, 0.2, 5), DPSGD(1.2, 3e-4, 1000), Ledger((DPSGD(1.0, 0.01, 300), DPSGD(1.5, 0.02, 400)))], ids=str
)
def test_where_frequencies_are_slow_a_coarse_lattice_is_near(run):
    """Of few uses a coarse lattice follows the losses; of many frequencies do. Either is within what a screen shows."""
    thresholds, found = np.linspace(0.0, 3.0, 61), addition(run)
    above, below = (curve.delta(thresholds) for curve in (found.pessimistic, found.optimistic))
    value = quick_sign_estimate(run)(thresholds)
    assert np.all((below - 1e-6 <= value) & (value <= above + 1e-6))

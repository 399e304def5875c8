"""The estimate of the common sign lies in the enclosure, from few frequencies, and says nothing far out."""

from functools import partial

import numpy as np
import pytest

from reticent.adversaries.relaxed.sign import Part, quick_sign_estimate, unknown_sign
from reticent.adversaries.relaxed.sign.noise import GaussianSign
from reticent.adversaries.relaxed.sign.transform import estimate
from reticent.kernel.errors import NumericalError
from reticent.kernel.mechanisms import DPSGD

addition = partial(unknown_sign, part=Part.ADDITION)
BLUR = 0.004


def kinds_of(run):
    return [(GaussianSign(run.sample_rate, 1.0 / run.noise_multiplier), run.steps)]


def outside(run, blur):
    """By how much the estimate leaves the enclosure, at thresholds at which delta is above 1e-7."""
    thresholds, found = np.linspace(0.0, 30.0, 601), addition(run)
    above, below = (curve.delta(thresholds) for curve in (found.pessimistic, found.optimistic))
    value = estimate(kinds_of(run), blur, 400_000)(thresholds)
    seen = above > 1e-7
    return float(np.max(np.maximum(value - above, below - value)[seen]))


@pytest.mark.parametrize(
    "run",
    [
        DPSGD(1.1, 0.01, 1000),
        DPSGD(10.6, 0.01, 1000),
        *(
            pytest.param(run, marks=pytest.mark.slow)
            for run in (
                DPSGD(0.606, 0.01, 1000),
                DPSGD(26.0, 0.001, 5000),
                DPSGD(1.2, 3e-4, 1000),
                DPSGD(8.0, 0.006, 60),
            )
        ),
    ],
    ids=str,
)
def test_it_lies_in_the_enclosure(run):
    assert outside(run, BLUR) < 1e-9


def test_a_larger_blur_costs_little():
    run = DPSGD(1.1, 0.01, 1000)
    thresholds = np.linspace(0.0, 2.0, 21)
    fine, blurred = (estimate(kinds_of(run), blur, 400_000)(thresholds) for blur in (BLUR, 0.05))
    assert 1e-5 < np.max(np.abs(fine - blurred)) < 1e-3


@pytest.mark.parametrize("noise", [0.6, 1.1, 4.0, 13.0])
def test_whoever_moves_a_slider_waits_for_few_frequencies(noise):
    assert estimate(kinds_of(DPSGD(noise, 0.01, 1000)), BLUR, 400_000)(np.zeros(1))[0] > 0.0
    with pytest.raises(NumericalError, match="needs more than 1000 frequencies"):
        estimate(kinds_of(DPSGD(noise, 0.01, 1000)), BLUR, 1000)


def test_nothing_is_said_beyond_the_last_threshold():
    delta = estimate(kinds_of(DPSGD(10.6, 0.01, 1000)), BLUR, 400_000)
    last = delta(np.array([0.2, 1.0, 50.0, 1e6]))
    assert np.all(np.abs(last) < 1e-9)


def test_equal_steps_are_counted_together_or_apart():
    step = kinds_of(DPSGD(2.0, 0.05, 200))[0][0]
    thresholds = np.linspace(0.0, 1.0, 5)
    whole, parts = (estimate(kinds, BLUR, 400_000)(thresholds) for kinds in ([(step, 200)], [(step, 80), (step, 120)]))
    assert parts == pytest.approx(whole, rel=1e-8, abs=0)


@pytest.mark.parametrize("run", [DPSGD(3.0, 0.2, 5), DPSGD(1.2, 3e-4, 1000), DPSGD(2.0, 0.01, 10_000)], ids=str)
def test_where_frequencies_are_slow_a_coarse_lattice_is_near(run):
    """Of few uses a coarse lattice follows the losses; of many frequencies do. Either is within what a screen shows."""
    thresholds, found = np.linspace(0.0, 3.0, 61), addition(run)
    above, below = (curve.delta(thresholds) for curve in (found.pessimistic, found.optimistic))
    value = quick_sign_estimate(run)(thresholds)
    assert np.all((below - 1e-5 <= value) & (value <= above + 1e-5))

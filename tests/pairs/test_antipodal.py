"""docs/theory/replace-dominance.md by numbers: no pair of gradients beats the antipodal one, at any threshold.

Theorems: RETICENT:replace-dominance.
"""

import numpy as np
import pytest

from reticent.kernel.pairs import AntipodalGaussianPair

mpmath = pytest.importorskip("mpmath")

_X, _Y = np.meshgrid(np.linspace(-6.0, 6.0, 481), np.linspace(-6.0, 6.0, 481), indexing="ij")


def hockey_stick(first, second, rate, noise, log_ratio):
    """max over A of Q(A) - e^l P(A) for the two mixtures in the plane, on a grid of observations."""

    def mixture(mean):
        base = np.exp(-0.5 * (_X**2 + _Y**2) / noise**2)
        shifted = np.exp(-0.5 * ((_X - mean[0]) ** 2 + (_Y - mean[1]) ** 2) / noise**2)
        return (1.0 - rate) * base + rate * shifted

    p, q = mixture(first), mixture(second)
    return np.maximum(q / q.sum() - np.exp(log_ratio) * p / p.sum(), 0.0).sum()


@pytest.mark.parametrize("log_ratio", [-0.2, 0.0, 0.4])
def test_delta_grows_with_the_angle_and_with_both_lengths(log_ratio):
    turned = [hockey_stick((1.0, 0.0), (np.cos(a), np.sin(a)), 0.3, 0.8, log_ratio) for a in np.linspace(0.0, np.pi, 7)]
    assert np.all(np.diff(turned) >= -1e-9)
    longer = [hockey_stick((r, 0.0), (-1.0, 0.0), 0.3, 0.8, log_ratio) for r in np.linspace(0.0, 1.0, 5)]
    further = [hockey_stick((1.0, 0.0), (-r, 0.0), 0.3, 0.8, log_ratio) for r in np.linspace(0.0, 1.0, 5)]
    assert np.all(np.diff(longer) >= -1e-9)
    assert np.all(np.diff(further) >= -1e-9)
    assert turned[-1] == pytest.approx(float(AntipodalGaussianPair(0.8, 0.3).delta(log_ratio)), abs=3e-5)


@pytest.mark.parametrize(("noise", "rate"), [(27.4, 3e-7), (1.1, 7.1e-7), (0.4, 0.02), (3.0, 1.0)])
@pytest.mark.parametrize("deviations", [0.0, 2.0, 20.0])
def test_a_rare_step_keeps_its_digits(noise: float, rate: float, deviations: float) -> None:
    with mpmath.workdps(40):
        s, p, x = mpmath.mpf(noise), mpmath.mpf(rate), mpmath.mpf(deviations) * noise
        present, absent = (1 - p + p * mpmath.exp((y - 0.5) / s**2) for y in (x, -x))
        epsilon = mpmath.log(present / absent)
        at_zero, present, absent = (mpmath.erfc((x - shift) / s / mpmath.sqrt(2)) / 2 for shift in (0, 1, -1))
        odds = mpmath.exp(epsilon)
        truth = p * (present - odds * absent) - (1 - p) * (odds - 1) * at_zero
        # the nearest double to epsilon is not epsilon: the slope of log delta says what this changes
        slope = float(odds * ((1 - p) * at_zero + p * absent) / truth)
        log_truth = float(mpmath.log(truth))
    found = float(AntipodalGaussianPair(noise, rate).log_delta(float(epsilon)))
    assert found == pytest.approx(log_truth, abs=2e-11 + 1e-15 * slope * float(epsilon), rel=0.0)

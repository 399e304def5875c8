"""Split lattices: large losses apart from small ones, against transforms, which share no code with them."""

import math

import numpy as np
import pytest

from reticent.accountants import split
from reticent.accountants.cut_moments import SampledStep
from reticent.accountants.split import Outside, Within
from reticent.accountants.transform import SpectralComposition
from reticent.kernel.accountants import compose
from reticent.kernel.curves import GaussianTradeOff, Subsampled
from reticent.kernel.errors import NumericalError
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.pairs import Neighbouring
from tests.accountants import one_kind

THRESHOLDS = (-0.3, -0.05, 0.0, 0.05, 0.3, 1.0)


def composed(noise, rate, steps, points=2**14, **accuracy):
    with np.errstate(all="ignore"):
        return (
            split.Split(1e-8, points, **accuracy)
            .answer(one_kind.steps(Subsampled(GaussianTradeOff(1.0 / noise), rate), steps))
            .sides
        )


def holds(noise, rate, steps, above, below, by=0.0):
    """Both sides around the truth, the lower one by at most ``by`` of rounding."""
    exact = SpectralComposition((SampledStep(noise, rate, False, steps),))
    truths = [exact.delta(threshold) for threshold in THRESHOLDS]
    for k, grown in ((k, math.exp(at)) for k, at in enumerate(THRESHOLDS) if at < 0.0):  # there it is the reversed one
        truths[k] = tuple(1.0 - grown + grown * end for end in truths[k])
    lower, upper = below.delta(THRESHOLDS), above.delta(THRESHOLDS)
    return all(
        x <= high + by and low <= y + by
        for (low, high), x, y in zip(truths, lower.tolist(), upper.tolist(), strict=True)
    )


def test_small_and_large_losses_are_the_step():
    """P(L > l) of the step is that of its parts, weighted by how probable each is."""
    curve = Subsampled(GaussianTradeOff(1.0), 0.05)
    small = Within(curve, 0.1)
    assert 0.0 < small.p_outside < small.q_outside < 0.1
    ratio = np.array([-0.04, -0.01, 0.02, 0.09])
    whole, given = curve.errors(ratio), small.errors(ratio - small.shift)
    inside = (1.0 - small.p_outside) * np.exp(given.fpr) + math.exp(curve.errors(np.array(0.1)).fpr)
    assert inside == pytest.approx(np.exp(whole.fpr), rel=1e-12, abs=0)
    inside = (1.0 - small.q_outside) * np.exp(given.fnr)
    assert inside == pytest.approx(np.exp(whole.fnr), rel=1e-12, abs=0)
    told = Outside(small)
    assert np.exp(told.errors(np.array([0.05, 0.3])).tpr) == pytest.approx(
        np.exp(curve.errors(np.array([0.1, 0.3])).tpr), rel=1e-12, abs=0
    )


def test_both_sides_hold_and_are_close():
    above, below = composed(1.0, 0.02, 700)
    assert holds(1.0, 0.02, 700, above, below)
    assert float(above.delta(0.0)) - float(below.delta(0.0)) < 2e-3


def test_steps_that_are_large_are_no_small_ones(monkeypatch):
    """A few of a hundred steps are large: the lower side without leaving them out would claim too much."""
    above, below = composed(1.0, 0.02, 100, 2**15, room=0.4)
    assert holds(1.0, 0.02, 100, above, below)
    monkeypatch.setattr(split, "most_large", lambda *_: 0)
    _, bold = composed(1.0, 0.02, 100, 2**15, room=0.4)
    assert not holds(1.0, 0.02, 100, above, bold, 1e-5)


def test_more_large_steps_than_counted_are_paid_for(monkeypatch):
    """With so few counted, the failure is likely; the lower side says so."""
    monkeypatch.setattr(split, "most_large", lambda *_: 0)
    above, below = composed(1.0, 0.02, 100, room=0.4, failed=math.log(0.9))
    assert holds(1.0, 0.02, 100, above, below)


def test_the_number_of_large_steps_is_exceeded_as_rarely_as_stated():
    from scipy.stats import binom

    small = Within(Subsampled(GaussianTradeOff(1.0), 0.01), 0.1)
    for count in (30, 300, 3000):
        most = split.most_large(small, count, math.log(1e-10))
        assert binom.sf(most, count, small.q_outside) <= 1e-10


def test_large_losses_must_be_rare():
    with pytest.raises(NumericalError, match="not rare"):
        Within(GaussianTradeOff(1.0), 0.1)


def test_many_rarely_sampled_steps_with_little_noise_are_enclosed_by_split_lattices():
    """Noise 0.5, rate 1e-6, 1e4 steps: 2.9e-7 wide where lattices of a million points left 3.4e-6."""
    found = compose(DPSGD(0.5, 1e-6, 10**4), Neighbouring.ADD_REMOVE)
    assert found.trace[-1].name == "split lattices"
    upper, lower = float(found.pessimistic.delta(0.0)), float(found.optimistic.delta(0.0))
    assert 0.0 < upper - lower < 5e-7
    with np.errstate(all="ignore"):
        above, below = one_kind.latticed(Subsampled(GaussianTradeOff(2.0), 1e-6), 10**4, width=1e-6, points=2**14)
    assert max(lower, float(below.delta(0.0))) <= min(upper, float(above.delta(0.0)))

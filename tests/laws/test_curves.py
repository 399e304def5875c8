"""Laws of trade-off curves, over every curve of ``curves``."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from reticent.kernel.curves import Subsampled, TradeOff, symmetrised
from reticent.testing import laws
from tests.laws.curves import COMPOUND, CURVES, LATER, SIMPLE, chords, tangents


def _named(curves: dict[str, TradeOff]) -> list:
    return [pytest.param(name, marks=pytest.mark.slow if name in LATER else ()) for name in curves]


@pytest.mark.parametrize("name", _named(CURVES))
def test_laws(name: str) -> None:
    laws.curve(CURVES[name], np.random.default_rng([*name.encode()]))


@pytest.mark.parametrize("wrong", [0.9, 1.1])
def test_a_curve_that_breaks_a_law_is_seen(wrong: float) -> None:
    """Its thresholds are those of another mu."""
    one, other = CURVES["gaussian-1"], type(CURVES["gaussian-1"])(wrong)

    class Mixed(TradeOff):
        reversed = one
        errors, log_beta, log_power = other.errors, one.log_beta, one.log_power

    with pytest.raises(AssertionError):
        laws.curve(Mixed(), np.random.default_rng(0))
    laws.curve(one, np.random.default_rng(0))


@pytest.mark.parametrize("name", _named(SIMPLE | COMPOUND))
def test_tangents_and_chords_enclose_the_curve(name: str) -> None:
    """The table of delta gives back the curve: tangents below, chords above, and the gap closes."""
    curve = CURVES[name]
    log_alpha = np.concatenate([np.linspace(-40.0, -0.7, 40), np.log(np.linspace(0.5, 0.999, 40))])
    exact = curve.log_beta(log_alpha)
    gaps = []
    for rows in (50, 400):
        grid = np.concatenate([[0.0], np.logspace(-5.0, np.log10(30.0), rows)])
        low, high = (polygon(curve, grid).log_beta(log_alpha) for polygon in (tangents, chords))
        assert laws.at_most(low, exact)
        assert laws.at_most(exact, high)
        gaps.append(float(np.max(np.exp(high) - np.exp(low))))
    if name in ("gaussian-1", "laplace-1", "relaxed-gaussian-d30", "subsampled-gaussian"):
        assert gaps[1] <= 0.2 * gaps[0]


@pytest.mark.parametrize("name", _named(SIMPLE))
def test_rate_one_changes_nothing(name: str) -> None:
    curve, log_alpha, ratio = SIMPLE[name], np.linspace(-300.0, -0.01, 25), np.linspace(-5.0, 5.0, 21)
    whole = Subsampled(curve, 1.0)
    assert whole.log_beta(log_alpha) == pytest.approx(curve.log_beta(log_alpha), rel=1e-12, abs=0)
    assert whole.reversed.log_beta(log_alpha) == pytest.approx(curve.reversed.log_beta(log_alpha), rel=1e-12, abs=0)
    assert np.exp(whole.log_delta(ratio)) == pytest.approx(curve.delta(ratio), rel=1e-12, abs=0)
    assert np.array_equal(whole.errors(ratio).fpr, curve.errors(ratio).fpr)


@pytest.mark.parametrize("name", _named(SIMPLE))
def test_sampling_less_often_is_safer(name: str) -> None:
    curve, log_alpha = SIMPLE[name], np.linspace(-30.0, -0.01, 25)
    betas = [Subsampled(curve, rate).log_beta(log_alpha) for rate in (0.01, 0.3, 0.9, 1.0)]
    for safer, weaker in itertools.pairwise(betas):
        assert laws.at_most(weaker, safer)


@pytest.mark.parametrize("name", _named(SIMPLE))
def test_symmetrised_is_below_each_and_is_the_envelope(name: str) -> None:
    """Against a brute-force envelope: the supremum of the supporting lines of either curve."""
    one, two = SIMPLE[name], SIMPLE[name].reversed
    log_alpha = np.linspace(-12.0, -0.05, 30)
    value = symmetrised(one).log_beta(log_alpha)
    assert laws.at_most(value, one.log_beta(log_alpha))
    assert laws.at_most(value, two.log_beta(log_alpha))
    ratio = np.linspace(-15.0, 15.0, 5001)
    delta = np.maximum(one.delta(ratio), two.delta(ratio))
    lines = 1.0 - delta - np.exp(ratio + log_alpha[:, None])
    brute = np.maximum(lines.max(axis=1), 0.0)
    assert np.all(np.exp(value) >= brute - 1e-12)
    assert np.exp(value) == pytest.approx(brute, rel=0, abs=1e-3)

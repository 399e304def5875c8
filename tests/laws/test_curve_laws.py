"""Laws of trade-off curves, as property tests over every curve of ``cases``."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from reticent.curves import Subsampled, TradeOff, symmetrised
from tests.laws.cases import COMPOUND, CURVES, LATER, SIMPLE, chords, tangents

_LAWS = settings(max_examples=2, deadline=None, derandomize=True, phases=[Phase.explicit, Phase.generate])
_EPS = 1e-10
_POINTS = 20  # of each example; the first of the two examples is the simplest one that there is


def _flat(parts: st.SearchStrategy[float]) -> st.SearchStrategy[np.ndarray]:
    return st.lists(parts, min_size=_POINTS, max_size=_POINTS).map(lambda values: np.sort(np.array(values)))


LOG_ALPHAS = _flat(st.floats(-690.0, -1e-9) | st.floats(1e-6, 1.0 - 1e-9).map(float).map(np.log))
"""Down to 1e-300, and near 1."""
THRESHOLDS = _flat(st.floats(-20.0, 20.0) | st.floats(-9.0, 0.0).map(lambda u: 10.0**u).map(lambda x: x))


def _named(curves: dict[str, TradeOff]) -> list:
    return [pytest.param(name, marks=pytest.mark.slow if name in LATER else ()) for name in curves]


@pytest.fixture(params=_named(CURVES), scope="module")
def curve(request: pytest.FixtureRequest) -> TradeOff:
    return CURVES[request.param]


def _slack(log: np.ndarray) -> np.ndarray:
    """Tolerance on a logarithm: relative error of the rate, or of the logarithm where that is large."""
    return _EPS * np.maximum(1.0, np.abs(np.where(np.isfinite(log), log, 0.0)))


def _at_most(left: np.ndarray, right: np.ndarray) -> bool:
    """left <= right for logarithms, up to rounding."""
    return bool(np.all((left <= right + _slack(right)) | (left <= -1e4)))


@_LAWS
@given(log_alpha=LOG_ALPHAS)
def test_beta_decreases_and_stays_below_one_minus_alpha(curve: TradeOff, log_alpha: np.ndarray) -> None:
    beta, power = curve.log_beta(log_alpha), curve.log_power(log_alpha)
    assert not np.any(np.isnan(beta) | np.isnan(power))
    assert _at_most(beta[1:], beta[:-1])
    assert _at_most(power[:-1], power[1:])
    assert _at_most(beta, np.log(-np.expm1(log_alpha)))
    assert _at_most(log_alpha, power)
    assert np.exp(beta) + np.exp(power) == pytest.approx(np.ones(_POINTS), rel=1e-10, abs=0)


@_LAWS
@given(log_alpha=LOG_ALPHAS, share=st.floats(0.01, 0.99))
def test_convex(curve: TradeOff, log_alpha: np.ndarray, share: float) -> None:
    log_alpha = np.minimum(log_alpha, -1e-5)  # nearer to 1 the mean of two rates loses its digits here, in the test
    low, high = log_alpha[:-1], log_alpha[1:]
    middle = np.logaddexp(np.log(share) + low, np.log1p(-share) + high)
    chord_power = np.logaddexp(np.log(share) + curve.log_power(low), np.log1p(-share) + curve.log_power(high))
    assert _at_most(chord_power, curve.log_power(middle))
    chord_beta = np.logaddexp(np.log(share) + curve.log_beta(low), np.log1p(-share) + curve.log_beta(high))
    assert _at_most(curve.log_beta(middle), chord_beta)


@_LAWS
@given(ratio=THRESHOLDS)
def test_thresholds_lie_on_the_curve(curve: TradeOff, ratio: np.ndarray) -> None:
    rates = curve.errors(ratio)
    assert np.exp(rates.fpr) + np.exp(rates.tnr) == pytest.approx(np.ones(_POINTS), rel=1e-10, abs=0)
    assert np.exp(rates.fnr) + np.exp(rates.tpr) == pytest.approx(np.ones(_POINTS), rel=1e-10, abs=0)
    assert _at_most(rates.fpr[1:], rates.fpr[:-1])
    assert _at_most(rates.fnr[:-1], rates.fnr[1:])
    # beta is steep in alpha where alpha is tiny: bracket it by moving alpha by its own rounding.
    slack = _slack(rates.fpr)
    inside = np.isfinite(rates.fpr) & (rates.fpr < -1e-4)
    assert _at_most(curve.log_beta(np.minimum(rates.fpr + slack, 0.0))[inside], rates.fnr[inside])
    assert _at_most(rates.fnr[inside], curve.log_beta(np.minimum(rates.fpr - slack, 0.0))[inside])


@_LAWS
@given(log_alpha=LOG_ALPHAS)
def test_reversed_is_the_inverse_function(curve: TradeOff, log_alpha: np.ndarray) -> None:
    other = curve.reversed
    assert other.reversed.log_beta(log_alpha) == pytest.approx(curve.log_beta(log_alpha), rel=1e-10, abs=0)
    beta = curve.log_beta(log_alpha)
    usable = np.isfinite(beta) & (beta < -1e-6)
    back = other.log_beta(beta[usable])
    assert _at_most(other.log_beta(np.minimum(beta + _slack(beta), 0.0)[usable]), log_alpha[usable])
    slack = 10.0 * _slack(back)
    finite = np.isfinite(back)
    reached = curve.log_beta(np.minimum(back + slack, 0.0))
    assert _at_most(reached[finite], beta[usable][finite])
    start = curve.log_beta(-np.inf)
    strict = finite & (beta[usable] < start - 1e-6) & (back - slack < 0)
    again = curve.log_beta(np.minimum(back - slack, 0.0))
    assert _at_most(beta[usable][strict], again[strict])


@_LAWS
@given(log_alpha=LOG_ALPHAS, ratio=THRESHOLDS)
def test_every_delta_is_a_supporting_line(curve: TradeOff, log_alpha: np.ndarray, ratio: np.ndarray) -> None:
    """power <= delta(e) + e^e alpha for every alpha and real e, with equality at the threshold e."""
    log_delta = curve.log_delta(ratio)
    power = curve.log_power(log_alpha)[:, None]
    assert _at_most(power, np.logaddexp(log_delta, ratio + log_alpha[:, None]))
    rates = curve.errors(ratio)
    assert np.logaddexp(log_delta, ratio + rates.fpr) == pytest.approx(rates.tpr, rel=1e-9, abs=1e-9)
    assert _at_most(log_delta[1:], log_delta[:-1])


@_LAWS
@given(epsilon=THRESHOLDS)
def test_delta_of_minus_epsilon_is_the_other_direction(curve: TradeOff, epsilon: np.ndarray) -> None:
    """delta(-e) = 1 - e^-e + e^-e delta_reversed(e)."""
    e = np.abs(epsilon)
    right = -np.expm1(-e) + np.exp(-e) * curve.reversed.delta(e)
    assert curve.delta(-e) == pytest.approx(right, rel=1e-10, abs=1e-300)


def test_delta_at_zero_is_the_total_variation(curve: TradeOff) -> None:
    rates = curve.errors(0.0)
    advantage = float(curve.delta(0.0))
    assert advantage == pytest.approx(float(curve.reversed.delta(0.0)), rel=1e-10, abs=1e-300)
    assert advantage == pytest.approx(1.0 - np.exp(rates.fpr) - np.exp(rates.fnr), rel=1e-9, abs=1e-13)
    alphas = np.linspace(0.0, 1.0, 301)
    gaps = 1.0 - alphas - curve.beta(alphas)
    assert gaps.max() <= advantage + 1e-13
    assert gaps.max() >= advantage - 1.0 / 300.0


def test_ends_of_the_curve(curve: TradeOff) -> None:
    assert curve.beta(1.0) == 0.0
    assert curve.power(1.0) == pytest.approx(1.0, rel=1e-12, abs=0)
    assert curve.beta([[0.0, 1.0]]).shape == (1, 2)
    assert curve.power(0.0) == pytest.approx(float(np.exp(curve.errors(np.inf).tpr)), abs=1e-13)
    assert curve.errors(np.inf).fpr == -np.inf
    assert curve.errors(-np.inf).fnr == -np.inf
    assert np.array_equal(curve([0.0, 0.3, 1.0]), curve.beta([0.0, 0.3, 1.0]))
    assert np.all(np.diff(curve.beta([0.0, 1e-300, 1e-30, 1e-3])) <= 1e-15)


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
        assert _at_most(low, exact)
        assert _at_most(exact, high)
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


@pytest.mark.parametrize("name", _named(SIMPLE))
def test_sampling_less_often_is_safer(name: str) -> None:
    curve, log_alpha = SIMPLE[name], np.linspace(-30.0, -0.01, 25)
    betas = [Subsampled(curve, rate).log_beta(log_alpha) for rate in (0.01, 0.3, 0.9, 1.0)]
    for safer, weaker in itertools.pairwise(betas):
        assert _at_most(weaker, safer)


@pytest.mark.parametrize("name", _named(SIMPLE))
def test_symmetrised_is_below_each_and_is_the_envelope(name: str) -> None:
    """Against a brute-force envelope: the supremum of the supporting lines of either curve."""
    one, two = SIMPLE[name], SIMPLE[name].reversed
    log_alpha = np.linspace(-12.0, -0.05, 30)
    value = symmetrised(one).log_beta(log_alpha)
    assert _at_most(value, one.log_beta(log_alpha))
    assert _at_most(value, two.log_beta(log_alpha))
    ratio = np.linspace(-15.0, 15.0, 5001)
    delta = np.maximum(one.delta(ratio), two.delta(ratio))
    lines = 1.0 - delta - np.exp(ratio + log_alpha[:, None])
    brute = np.maximum(lines.max(axis=1), 0.0)
    assert np.all(np.exp(value) >= brute - 1e-12)
    assert np.exp(value) == pytest.approx(brute, rel=0, abs=1e-3)

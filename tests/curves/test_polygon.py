"""Polygons from bounds that need not be convex; and enclosures that may not cross."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.kernel.curves import GaussianTradeOff, LogErrors, from_advantage, polygon
from reticent.kernel.curves.capped import above_none
from reticent.kernel.curves.enclosure import Enclosure
from reticent.kernel.curves.polygon import (
    Polygon,
    convex_chain,
    hull,
    polygon_above,
    polygon_through,
    safest,
    strictest,
    symmetric_above,
)

NET = np.linspace(-8.0, 8.0, 641)


def naive_hull(x: np.ndarray, y: np.ndarray) -> list[int]:
    """Points below every chord of two others: the lower hull of falling points, by its definition."""
    kept = []
    for k in range(len(x)):
        below = True
        for i in range(k):
            for j in range(k + 1, len(x)):
                chord = y[i] + (y[j] - y[i]) * (x[k] - x[i]) / (x[j] - x[i])
                below &= y[k] < chord
        kept += [k] if below else []
    return kept


@settings(derandomize=True, max_examples=60)
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=14))
def test_convex_chain_is_the_hull(increments):
    run, fall = (np.array(part, dtype=float) for part in zip(*increments, strict=True))
    x, y = np.append(0.0, np.cumsum(run)), np.append(0.0, -np.cumsum(fall))
    kept, wanted = convex_chain(np.log(run), np.log(fall)), naive_hull(x, y)
    assert set(wanted) <= set(kept.tolist())  # points on a chord may stay
    assert np.interp(x, x[kept], y[kept]) == pytest.approx(np.interp(x, x[wanted], y[wanted]), abs=1e-12)


@settings(derandomize=True, max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 400), bend=st.sampled_from([0.0, 0.01, 1.0]))
def test_few_bends_and_many_are_pooled_alike(seed, size, bend):
    """The two ways of pooling, by passes and one by one, on either side of their border."""
    rng = np.random.default_rng(seed)
    run = rng.normal(size=size)
    rise = np.sort(rng.normal(size=size))[::-1] + run + bend * rng.normal(size=size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(polygon, "FEW_BENDS", 0)
        by_passes = convex_chain(run, rise).tolist()
        patch.setattr(polygon, "FEW_BENDS", size)
        one_by_one = convex_chain(run, rise).tolist()
    assert by_passes == one_by_one


def test_convex_chain_leaves_a_flat_end_out():
    assert convex_chain(np.zeros(3), np.array([1.0, -np.inf, -np.inf])).tolist() == [0, 1]


def gaussian_bounds(mu: float, thresholds: np.ndarray) -> np.ndarray:
    return GaussianTradeOff(mu).log_delta(np.abs(thresholds))  # symmetric


def test_a_smooth_curve_caps_the_chords_of_a_polygon():
    """Each number is the smaller risk of both; tests of thresholds make no more errors than the curve allows."""
    smooth, line = GaussianTradeOff(1.0), from_advantage(0.2)
    curve = above_none([line, smooth])
    rates = np.log(np.geomspace(1e-30, 1.0, 300))
    safer = np.maximum(curve.curve.log_beta(rates), smooth.log_beta(rates))
    assert curve.log_beta(rates) == pytest.approx(safer, rel=1e-12, abs=1e-14)
    assert np.all(curve.log_power(rates) <= np.minimum(smooth.log_power(rates), line.log_power(rates)) + 1e-12)
    assert np.all(curve.log_delta(NET) <= np.minimum(smooth.log_delta(NET), line.log_delta(NET)) + 1e-12)
    errors = curve.errors(NET)
    assert np.all(errors.fnr <= curve.log_beta(errors.fpr) + 1e-12)
    reached = np.exp(errors.tpr) - np.exp(NET + errors.fpr)
    assert reached == pytest.approx(curve.delta(NET), rel=1e-9, abs=1e-14)
    assert curve.reversed.log_beta(rates) == pytest.approx(curve.log_beta(rates), rel=1e-9, abs=0)
    assert curve.proven_mu == 1.0
    assert curve.largest_shift(-3.0) <= 1.0
    assert isinstance(above_none([line, curve.curve]), Polygon)


def test_tails_of_what_is_next_to_certainty_are_kept():
    """Bounds that say nothing below threshold 50: the tangents at 0 of both halves still leave room for the tails."""
    thresholds = np.array([0.0, 50.0, 100.0])
    curve = symmetric_above(thresholds, np.log([1.0, 1.0 - 1e-14, 1e-5]))
    assert curve.delta(thresholds[1:]) == pytest.approx([1.0 - 1e-14, 1e-5], rel=1e-12, abs=0)
    # Both errors of the test at threshold 0 are 1e-14 e^-50: the chord from -50 to 50, halved.
    assert curve.errors(0.0).fnr == pytest.approx(np.log(1e-14) - 50.0, rel=1e-4, abs=0)


@settings(derandomize=True, max_examples=40, deadline=None)
@given(
    mu=st.floats(1e-6, 6.0),
    seed=st.integers(0, 2**32 - 1),
    noise=st.sampled_from([0.0, 1e-15, 1e-9, 1e-3, 0.5]),
)
def test_noisy_upper_bounds_keep_their_side(mu, seed, noise):
    """Bounds that are bent by noise: the polygon stays above delta, and loses no more than the noise."""
    rng = np.random.default_rng(seed)
    thresholds = np.unique(np.append(rng.uniform(-3.0, 3.0, 300) * mu, 0.0))
    exact = gaussian_bounds(mu, thresholds)
    log_delta = np.minimum(exact + noise * rng.random(len(thresholds)), 0.0)
    curve = polygon_above(thresholds, log_delta)
    forward, back = thresholds[thresholds >= 0.0], -thresholds[thresholds < 0.0]
    for side, own in ((curve, forward), (curve.reversed, back)):
        got, truth = side.log_delta(own), GaussianTradeOff(mu).log_delta(own)
        assert np.all(got >= truth - 1e-7)
        assert np.all(got <= truth + noise + 1e-7)


def test_a_tail_behind_a_bend_is_kept():
    """One bound too high in the middle: what follows it must survive (a run of 33 steps lost its tail here)."""
    thresholds = np.linspace(-4.0, 4.0, 801)
    log_delta = gaussian_bounds(1.0, thresholds)
    log_delta[300:340] = log_delta[300]
    log_delta[460:500] = log_delta[500:540].max() + 2.0
    curve = polygon_above(thresholds, log_delta)
    assert float(curve.log_delta(4.0)) == pytest.approx(float(GaussianTradeOff(1.0).log_delta(4.0)), abs=1e-9)
    assert float(curve.reversed.log_delta(4.0)) == pytest.approx(float(GaussianTradeOff(1.0).log_delta(4.0)), abs=1e-9)


def test_known_largest_loss_ends_delta():
    thresholds, log_delta = np.array([-1.0, 0.0, 1.0, 2.0]), np.array([-np.inf, -1.0, -2.0, -np.inf])
    curve = polygon_above(thresholds, log_delta)
    assert float(curve.delta(2.0)) == 0.0
    assert float(curve.delta(1.5)) > 0.0
    assert float(curve.reversed.delta(1.0)) == 0.0


def test_what_is_not_a_number_is_no_bound_and_no_test():
    thresholds, log_delta = np.array([-1.0, 0.0, 1.0]), np.array([-2.0, np.nan, -2.0])
    assert float(polygon_above(thresholds, log_delta).delta(1.0)) <= np.exp(-2.0) * (1 + 1e-12)
    rate = np.array([np.nan])
    assert float(polygon_through(LogErrors(rate, rate, rate, rate)).delta(0.0)) == 0.0


def attained(mu: float, count: int = 60) -> Polygon:
    return polygon_through(GaussianTradeOff(mu).errors(np.linspace(6.0, -6.0, count) * mu))


def test_attained_pairs_far_below_the_smallest_double():
    """Rates of e^-1000: their complements are all 1 in double precision, and still every pair counts."""
    fpr = np.array([-3000.0, -2000.0, -1000.0])
    fnr = np.array([-1e-3, -1e-2, -1e-1])
    curve = polygon_through(LogErrors(fpr, np.log(-np.expm1(fpr)), fnr, np.log(-np.expm1(fnr))))
    assert float(curve.log_delta(1500.0)) == pytest.approx(math.log(-math.expm1(-1e-2)), abs=1e-12)


@pytest.mark.parametrize(("one", "other"), [(0.5, 0.7), (1.0, 1.0), (0.01, 3.0)])
def test_of_two_bounds_both_or_either(one, other):
    a, b = (polygon_above(NET, gaussian_bounds(mu, NET)) for mu in (one, other))
    both, either = strictest([a, b]), safest([a, b])
    for sign in (1.0, -1.0):
        first, second = (c.log_delta(sign * np.linspace(0.0, 6.0, 50)) for c in (a, b))
        assert np.all(both.log_delta(sign * np.linspace(0.0, 6.0, 50)) <= np.minimum(first, second) + 1e-3)
        assert np.all(either.log_delta(sign * np.linspace(0.0, 6.0, 50)) >= np.maximum(first, second) - 1e-9)


def test_hull_is_the_larger_delta_of_attained_pairs():
    a, b = attained(1.0), attained(1.3, 7)
    joined = hull([a, b])
    for epsilon in np.linspace(-5.0, 5.0, 41):
        assert float(joined.delta(epsilon)) == pytest.approx(
            max(float(a.delta(epsilon)), float(b.delta(epsilon))), rel=1e-9, abs=0
        )


@pytest.mark.parametrize("reverse", [False, True])
def test_curves_that_cross_are_seen_and_the_larger_risk_is_claimed(reverse):
    """The lower curve is planted above the upper one in one tail only."""
    safe = polygon_above(NET, gaussian_bounds(1.0, NET))
    weak = hull([attained(0.9), polygon_through(LogErrors(*(np.array([x]) for x in (-40.0, 0.0, -1e-3, -6.9))))])
    if reverse:
        safe, weak = safe.reversed, weak.reversed
    bracket = Enclosure.checked(safe, weak)
    assert "contradicted" in bracket.notes[0]
    assert float(bracket.optimistic.delta(0.0)) == 0.0
    side, planted = (bracket.pessimistic.reversed, weak.reversed) if reverse else (bracket.pessimistic, weak)
    assert float(side.log_delta(30.0)) >= float(planted.log_delta(30.0)) - 1e-9


def test_curves_that_do_not_cross_are_left_alone():
    safe = polygon_above(NET, gaussian_bounds(1.0, NET))
    weak = attained(0.9)
    bracket = Enclosure.checked(safe, weak)
    assert bracket.pessimistic is safe
    assert bracket.optimistic is weak
    assert bracket.notes == ()


def test_a_tail_that_is_left_out_backwards_is_not_reached():
    """The reversed end was never looked at: thresholds to the left of -0.1 were missing."""
    thresholds = np.linspace(-0.1, 30.0, 302)
    thresholds[np.argmin(np.abs(thresholds))] = 0.0
    curve = GaussianTradeOff(1.0)
    there = np.where(thresholds < 0.0, curve.reversed.log_delta(np.abs(thresholds)), curve.log_delta(thresholds))
    assert not polygon_above(thresholds, there).reaches(-27.0)
    assert polygon_above(np.linspace(-30.0, 30.0, 601), curve.log_delta(np.abs(np.linspace(-30.0, 30.0, 601)))).reaches(
        -27.0
    )

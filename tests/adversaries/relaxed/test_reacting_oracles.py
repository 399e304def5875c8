"""Gradients that react to the weights: each term of the bounds against an oracle.

Theorems: RETICENT:reacting-information.
"""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy.special import rel_entr
from scipy.stats import binom

from reticent.adversaries.relaxed.dimension.overlap_law import mean_positive_part, overlap_law
from reticent.adversaries.relaxed.reacting import information as reacting_information
from reticent.adversaries.relaxed.reacting.information import Setting
from reticent.adversaries.relaxed.reacting.learnt import learnt
from reticent.adversaries.relaxed.reacting.lengths import SQUARES, lengths
from reticent.adversaries.relaxed.reacting.step_information import Steps, known_direction, step_nats
from reticent.mechanisms.gradients import Gradients
from tests.adversaries.relaxed import reacting_attacks as attacks

pytestmark = pytest.mark.usefixtures("coarse")

ONE = Gradients.ONE_DIRECTION
KINDS = pytest.mark.parametrize("kind", [ONE, Gradients.HARD_LABEL_HEAD, Gradients.LINEAR_HEAD])


@pytest.mark.parametrize("dimension", [1, 3, 299, 301, 10**9])
def test_mean_positive_part(dimension):
    z = mp.mpf(dimension) / 2
    exact = mp.gamma(z) / (2 * mp.sqrt(mp.pi) * mp.gamma(z + mp.mpf(1) / 2))
    assert mean_positive_part(dimension) == pytest.approx(float(exact), rel=1e-13, abs=0)


def overlap_mean(function, dimension):
    """E f(|<u, u'>|) in 30 digits."""
    with mp.workdps(30):
        scale = 2 * mp.gamma(mp.mpf(dimension) / 2) / (mp.sqrt(mp.pi) * mp.gamma(mp.mpf(dimension - 1) / 2))
        ends = [0, *(min(1, k / mp.sqrt(dimension)) for k in (1, 3, 6, 10, 20)), 1]
        ends = sorted(set(ends))
        return scale * mp.quad(lambda w: function(w) * (1 - w * w) ** (mp.mpf(dimension - 3) / 2), ends)


@pytest.mark.parametrize(("dimension", "tilt"), [(2, 1.0), (3, 20.0), (30, 5.0), (30, 300.0), (1000, 40.0)])
def test_exponential_moments_of_overlaps_lie_closely_above(dimension, tilt):
    law = overlap_law(dimension)
    for power in (1, 2):
        exact = float(mp.log(overlap_mean(lambda w, n=power: mp.expm1(tilt * w**n), dimension)))
        found = float(law.log_excess(tilt * law.nodes**power))
        assert exact <= found <= exact + 1e-4 * max(1.0, tilt / dimension) ** 3


@pytest.mark.parametrize(
    ("noise", "rate", "records"),
    [(6.0, 0.2, 1), (1.0, 0.01, 1), (0.5, 0.5, 1), (0.2, 0.1, 1), (1.0, 1e-9, 1), (6.0, 0.2, 3)],
)
def test_what_a_known_direction_tells(noise, rate, records):
    mass = binom.pmf(np.arange(1, records + 1), records, rate)
    shifts = np.arange(1, records + 1)[:, None] / noise
    exact = attacks.divergence(lambda z: mass @ np.expm1(shifts * z - 0.5 * shifts**2))
    assert exact * (1.0 - 1e-7) <= known_direction(Steps(noise, rate, 1, records)) <= exact * 1.002
    assert known_direction(Steps(4.0, 1.0, 1, 3)) == pytest.approx(9.0 / 32.0, rel=1e-12, abs=0)  # without sampling


@pytest.mark.parametrize(("noise", "rate"), [(4.0, 0.5), (10.0, 1.0), (1.0, 0.05), (0.7, 0.3)])
def test_the_divergence_of_a_mixture_is_at_most_what_chi_square_allows(noise, rate):
    """A step whose hidden effect is +1 or -1: E <g, g'> = 0, and all three bounds are asked."""
    exact = attacks.divergence(lambda z: rate * (np.exp(-0.5 / noise**2) * np.cosh(z / noise) - 1.0))
    chi_square, thrice = (rate**2 * (np.cosh(k / noise**2) - 1.0) for k in (1.0, 3.0))
    assert exact <= float(step_nats(rate, chi_square, thrice)) <= 2.3 * exact


def test_each_bound_of_a_step_is_asked():
    """log(1 + chi^2), psi chi^2, and half of chi^2 with a fourth moment, where one of them alone is finite or least."""
    for drawn, chi_square, thrice in ((0.5, 0.01, 10.0), (0.999, 0.3, 10.0), (0.9, 50.0, 1e9), (0.3, 1e-4, 1e-3)):
        with mp.workdps(30):
            h = (1 - mp.mpf(drawn)) * mp.log1p(-mp.mpf(drawn)) + drawn
            fourth = (h - mp.mpf(drawn) ** 2 / 2 - mp.mpf(drawn) ** 3 / 6) / mp.mpf(drawn) ** 4
            ways = mp.log1p(chi_square), h / mp.mpf(drawn) ** 2 * chi_square, chi_square / 2 + fourth * thrice**2
        assert float(step_nats(drawn, chi_square, thrice)) == pytest.approx(float(min(ways)), rel=1e-7, abs=0)


@pytest.mark.parametrize("dimension", [2, 3])
def test_what_is_learnt_bounds_every_tilted_law(dimension):
    """Laws with density e^(L <u, e>_+), and caps: divergence and means by quadrature."""
    known, rng = learnt(dimension), np.random.default_rng(1)
    u = attacks.directions(dimension, 8001)
    for tilt in (0.3, 2.0, 9.0, 40.0):
        by_length = lengths(dimension)
        for density in (np.exp(tilt * np.maximum(u[:, 0], 0.0)), np.exp(tilt * u[:, 0] ** 2), 1.0 * (u[:, 0] > 0.3)):
            weight = density / density.sum()
            some = weight > 0.0
            nats = float(np.sum(weight[some] * np.log(weight[some] * len(u))))
            at = int(np.searchsorted(known.nats, nats))
            assert float(weight @ np.maximum(u[:, 0], 0.0)) <= known.positive[at] * (1 + 1e-3)
            assert float(weight @ u[:, 0] ** 2) <= known.square[at] * (1 + 1e-3)
            assert float(weight @ np.maximum(u[:, 0], 0.0) ** 2) <= known.half_square[at] * (1 + 1e-3)
            assert float(weight @ np.abs(u[:, 0])) <= known.length[at] * (1 + 1e-3)
            matrix = rng.normal(size=(dimension, 2))
            some_of_it = u @ (matrix / np.linalg.norm(matrix))
            assert float(weight @ np.linalg.norm(some_of_it, axis=1)) <= known.length[at] * (1 + 1e-3)
            above = np.linalg.norm(np.maximum(some_of_it, 0.0), axis=1)
            assert float(weight @ above) <= known.half_length[at] * (1 + 1e-3)
            assert float(weight @ np.maximum(u[:, 0], 0.0)) <= known.half_length[at] * (1 + 1e-3)
            for level in (-0.8, -0.2, 0.0):  # lengths 1 on a cap, half of it elsewhere, or 0
                for rest in (0.0, 0.5):
                    c = np.where(u[:, 0] > level, 1.0, rest)
                    cell = min(int(np.searchsorted(SQUARES, float(weight @ c**2))), len(by_length.mean)) - 1
                    mean, square = (c * weight) @ u, np.sum((u.T * (weight * c**2) @ u) ** 2)
                    assert float(mean @ mean) <= by_length.mean[cell, at] * (1 + 1e-3)
                    assert square <= by_length.overlap[cell, at] * (1 + 1e-3)
            assert np.sum((u.T * weight @ u) ** 2) <= known.overlap[at] * (1 + 1e-3)


def test_the_overlap_of_what_is_learnt_in_many_dimensions():
    """u'u' for laws tilted along one axis: only that axis gains, so E <u, u'>^2 stays near 1/d where Q does not."""
    dimension, rng = 400, np.random.default_rng(5)
    g = rng.normal(size=(20_000, dimension))
    u = g / np.linalg.norm(g, axis=1, keepdims=True)
    log_density = 0.4 * dimension * u[:, 0] ** 2
    weight = np.exp(log_density - log_density.max())
    weight /= weight.sum()
    nats = float(np.sum(weight * np.log(weight * len(u))))
    first = float(weight @ u[:, 0] ** 2)
    overlap = first**2 + (1.0 - first) ** 2 / (dimension - 1)
    known = learnt(dimension)
    at = int(np.searchsorted(known.nats, nats))
    assert overlap <= known.overlap[at] < 0.5 * known.square[at]
    assert first <= known.square[at] * 1.02


def test_gains_are_concave_and_grow():
    for dimension in (1, 3, 1000):
        gains = reacting_information.gains_of(Steps(1.0, 0.3, 5), Setting(dimension, ONE, 0.0))
        slopes = np.diff(gains.most) / np.diff(gains.nats)
        assert np.all(slopes >= 0.0)
        assert np.all(np.diff(slopes) <= 1e-9 * slopes[:-1])


def test_the_majorant_covers_what_lies_between_two_points():
    majorant = reacting_information.majorant(np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.0, 1.0, 1.5, 4.0, 4.0]))
    assert np.all(majorant(np.array([1e-9, 1.0, 2.0, 2.1])) >= [1.0, 1.5, 4.0, 4.0])


def test_blocks_of_steps_lie_above_the_sum_of_all():
    part, setting = Steps(2.0, 0.01, 20_000), Setting(1000, ONE)
    gains = reacting_information.gains_of(part, setting)
    exact = float(np.sum(gains(np.arange(part.count) * known_direction(part))))
    assert exact <= reacting_information.one_by_one(part, setting) <= 1.001 * exact


@KINDS
def test_any_order_of_equal_parts_lies_above_the_integral(kind):
    part, setting = Steps(20.0, 1.0, 10), Setting(30, kind)
    exact = reacting_information.continuous(20 * known_direction(part), setting)
    assert exact <= reacting_information.any_order([part, part], setting) <= 1.005 * exact


def test_two_coins_bound_delta_both_ways():
    """log_deltas against the largest b - e^l a with kl(b || a) <= K, on a fine grid of a."""
    for nats in (1e-8, 1e-3, 0.2, 3.0):
        thresholds = np.array([0.0, 0.02, 0.5, 2.0])
        add, remove = (np.exp(log) for log in reacting_information.log_deltas(nats, thresholds))
        a = np.append(np.geomspace(1e-12, 0.5, 1200), 1.0 - np.geomspace(0.5, 1e-12, 1200)[1:])
        most, least = (_coin(a, nats, up) for up in (True, False))
        for threshold, up, down in zip(thresholds, add, remove, strict=True):
            exact = np.max(most - math.exp(threshold) * a), np.max(a - math.exp(threshold) * least)
            assert exact[0] <= up <= exact[0] * 1.05 + 1e-12
            assert exact[1] <= down <= exact[1] * 1.05 + 1e-12


def _coin(a, nats, up):
    """The largest or the smallest b with kl(b || a) <= nats."""
    low, high = (a, np.ones_like(a)) if up else (np.zeros_like(a), a)
    for _ in range(45):
        b = 0.5 * (low + high)
        moves = (rel_entr(b, a) + rel_entr(1.0 - b, 1.0 - a) <= nats) == up
        low, high = np.where(moves, b, low), np.where(moves, high, b)
    return low if up else high

"""Likelihood ratios of Gaussian mixtures are convex functions of one normal variable: bounds that use it.

Theorem: RETICENT:one-normal.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr

from reticent.adversaries.relaxed.dimension import one_normal, second_moment
from reticent.kernel.curves import GaussianTradeOff
from tests.adversaries.relaxed.exact_moments import of_law

THRESHOLDS = np.array([0.0, 0.02, 0.2, 0.7, 1.5, 3.0])


def mixtures(dimension: int, count: int):
    """(LR on a grid, its masses, shifts, weights) of random mixtures of shifted Gaussians."""
    rng = np.random.default_rng([3, dimension])
    side = np.linspace(-11.0, 11.0, 4_001 if dimension == 1 else 301)
    grid = np.stack(np.meshgrid(*[side] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension)
    mass = np.exp(-0.5 * np.sum(grid**2, axis=1))
    mass /= mass.sum()
    for _ in range(count):
        points = rng.integers(1, 5)
        shifts = rng.normal(size=(points, dimension)) * 10 ** rng.uniform(-4.0, 0.3)
        weights = rng.dirichlet(np.full(points, 0.6))
        ratio = np.exp(grid @ shifts.T - 0.5 * np.sum(shifts**2, axis=1)) @ weights
        yield ratio, mass, shifts, weights


@pytest.mark.parametrize(("dimension", "count"), [(1, 14), (2, 4)])
def test_no_mixture_of_shifts_exceeds_the_bounds(dimension: int, count: int) -> None:
    close = []
    for ratio, mass, shifts, weights in mixtures(dimension, count):
        chi = {}
        for q in second_moment.ORDERS:  # E exp((q - 1) <shift, shift'>) - 1: chi-square at noise s / sqrt(q - 1)
            chi[q] = math.log(max(weights @ np.expm1((q - 1.0) * shifts @ shifts.T) @ weights, 1e-300))
        exact = of_law(ratio, mass, THRESHOLDS)
        for bound, truth in zip(one_normal.log_deltas(chi, THRESHOLDS), exact, strict=True):
            assert np.all(np.exp(bound) >= truth * (1.0 - 1e-3 / 10.0 ** (2 - dimension)) - 1e-13)
        close.append(exact[0][0] / np.exp(one_normal.log_deltas(chi, np.zeros(1))[0][0]))
    assert max(close) > 0.93


@pytest.mark.parametrize("mu", [1e-5, 2e-3, 0.05, 0.4, 1.2])
def test_one_shift_is_bounded_closely(mu: float) -> None:
    curve, norms = GaussianTradeOff(mu), {q: math.log(math.expm1((q - 1.0) * mu**2)) for q in second_moment.ORDERS}
    thresholds = mu * np.array([0.0, 0.5, 1.0, 2.0])
    add, remove = (np.exp(bound) for bound in one_normal.log_deltas(norms, thresholds))
    exact = np.array([float(curve.delta(t)) for t in thresholds])
    assert np.all(remove >= exact * (1.0 - 1e-9))
    assert np.all(remove[1:] <= exact[1:] * 1.3)
    assert exact[0] <= add[0] <= 1.06 * exact[0]
    assert np.exp(second_moment.log_deltas(norms, thresholds)[0][0]) >= 1.19 * add[0]


def test_laws_of_other_experiments_do_exceed_them() -> None:
    """A fair coin has the largest advantage for its variance: no mixture of shifts looks like it."""
    norms = dict.fromkeys(second_moment.ORDERS, math.log(0.09))
    assert np.exp(one_normal.log_deltas(norms, np.zeros(1))[0][0]) < 0.9 * 0.15


def log_mean(logs: np.ndarray, mass: np.ndarray) -> float:
    top = logs.max()
    return float(top + np.log(np.exp(logs - top) @ mass))


@pytest.mark.parametrize("order", [2.0, 3.8])
def test_flat_then_straight_is_the_worst_law(order: float) -> None:
    """Random convex functions of one normal variable with the allowed moment, against the bound; some come close."""
    rng, x = np.random.default_rng(1), np.linspace(-10.0, 36.0, 2_301)
    mass = np.exp(-0.5 * x * x)
    mass /= mass.sum()
    log_moment, best = 0.4 * order, np.zeros((2, len(THRESHOLDS)))
    bounds = one_normal.by_logarithm(order, log_moment, THRESHOLDS)
    for k in range(50):
        kinks = rng.normal(size=1 if k % 2 else 3) * 1.5
        slopes = np.append(rng.exponential(0.3) * (k % 4 > 1), rng.exponential(size=len(kinks)))
        shape = slopes[0] * x + np.maximum(x[:, None] - kinks, 0.0) @ slopes[1:]
        low, high = 0.0, 20.0
        for _ in range(30):  # as large as the moment allows
            middle = 0.5 * (low + high)
            log_ratio = middle * shape
            fits = log_mean(order * log_ratio, mass) - order * log_mean(log_ratio, mass) <= log_moment
            low, high = (middle, high) if fits else (low, middle)
        seen = of_law(np.exp(low * shape - log_mean(low * shape, mass)), mass, THRESHOLDS)
        for bound, delta in zip(bounds, seen, strict=True):
            assert np.all(np.exp(bound) >= delta * (1.0 - 1e-5) - 1e-9)
        best = np.maximum(best, seen)
    assert np.all(best[:, :3] >= 0.97 * np.exp(bounds)[:, :3])


@pytest.mark.parametrize("x", [2e-6, 2e-9, 2e-11])
def test_small_signals_show_the_scale_of_their_deviation(x: float) -> None:
    """There LR - 1 is its logarithm, and what it shows scales with the root of X; cancellation is paid for."""
    y = np.linspace(-6.0, 3.0, 4001)  # the supremum of E (h - E h)_+ over h = (x - y)_+ of variance 1, by brute force
    density, beyond = np.exp(-0.5 * y * y) / math.sqrt(2.0 * math.pi), ndtr(-y)
    mean = density - y * beyond
    deviation = np.sqrt((1.0 + y * y) * beyond - y * density - mean**2)
    edge = y + mean
    gain = (np.exp(-0.5 * edge**2) / math.sqrt(2.0 * math.pi) - edge * ndtr(-edge)) / deviation
    add, remove = (np.exp(logs[0]) for logs in one_normal.by_logarithm(2.0, math.log1p(x), np.zeros(1)))
    assert add == pytest.approx(remove, rel=1e-6, abs=0)
    assert gain.max() * (1.0 - math.sqrt(x)) <= add / math.sqrt(x) <= 1.01 * gain.max()

"""Moments that are cut where an attack would already have succeeded: rare sampling, little noise.

Theorems: RETICENT:cut-moments, RETICENT:norms-and-direction.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from reticent.adversaries.relaxed.dimension import (
    attacks_from_below,
    enclose,
    norms,
    overlaps,
    relaxed_in,
)
from reticent.curves import RelaxedGaussianTradeOff
from reticent.curves.bessel import log_mean_exponential
from reticent.kernel.curves import LogErrors, Subsampled
from reticent.kernel.curves.polygon import polygon_through
from reticent.kernel.errors import NumericalError
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.risk import advantage
from tests.adversaries.relaxed.exact_moments import agree, exact_deltas

RARE = [(0.25, 0.02, 2, 3), pytest.param(0.3, 0.05, 2, 2, marks=pytest.mark.slow)]


@pytest.mark.parametrize(("noise", "rate", "steps", "dimension"), RARE)
def test_cut_moments_bound_two_steps_by_quadrature(noise: float, rate: float, steps: int, dimension: int) -> None:
    thresholds = np.array([0.0, 0.02, 0.3, 1.0])
    deltas = exact_deltas(noise, rate, dimension, thresholds, 180)
    kept, found = overlaps.over_absent(noise, rate, steps, dimension), relaxed_in(DPSGD(noise, rate, steps), dimension)
    agree(deltas, thresholds, kept.log_deltas(thresholds), found, 2e-3)
    assert found.pessimistic.delta(0.0) <= 1.15 * found.optimistic.delta(0.0)


@pytest.mark.parametrize(("noise", "rate", "dimension"), [(0.4, 0.05, 3), (0.25, 0.01, 12), (0.6, 0.3, 2)])
def test_cut_moments_of_one_step_are_exact(noise: float, rate: float, dimension: int) -> None:
    kept = overlaps.over_absent(noise, rate, 1, dimension)
    some = kept.dropped < 0.1
    r = np.linspace(0.0, 2.0 / noise + 12.0 + math.sqrt(dimension), 4001)[1:]
    mass = np.exp((dimension - 1) * np.log(r) - 0.5 * r * r)
    mass = mass / mass.sum()
    ratio = np.exp(log_mean_exponential(r / noise, float(dimension)) - 0.5 / noise**2)
    seen = []
    for lost, log_variance in zip(kept.dropped[some][::25], kept.log_variance[some][::25], strict=True):
        cap = np.searchsorted(np.cumsum((mass * ratio)[::-1]), lost / rate)  # of "present", from the far end
        inside = np.arange(len(r)) < len(r) - cap
        second = (1 - rate) ** 2 + 2 * rate * (1 - rate) * (mass * ratio)[inside].sum()
        second += rate**2 * (mass * ratio**2)[inside].sum()
        exact = second - (1.0 - lost) ** 2
        assert math.exp(log_variance) >= exact * (1.0 - 0.02)
        seen.append(math.exp(log_variance) / (exact + 2.0 * lost))
    assert min(seen) < 1.1  # the union over parts of the mask is no loss here


def likelihood_ratios(y: np.ndarray, noise: float, mask: np.ndarray) -> np.ndarray:
    """Of "present in the steps of ``mask``, direction unknown": y has shape (n, steps, dimension), in noise scales."""
    z = np.linalg.norm(np.einsum("t,ntd->nd", mask, y), axis=1) / noise
    return np.exp(log_mean_exponential(z, float(y.shape[2])) - 0.5 * mask.sum() / noise**2)


@pytest.mark.parametrize("reference", ["absent", "norms"])
def test_cut_moments_bound_simulated_advantages(reference: str) -> None:
    noise, rate, steps, dimension = 0.35, 0.03, 3, 6
    rng, n = np.random.default_rng(11), 60_000
    drawn = rng.random((n, steps)) < rate
    directions = rng.normal(size=(n, steps, dimension))
    directions /= np.linalg.norm(directions, axis=2, keepdims=True)
    y = rng.normal(size=(n, steps, dimension)) + drawn[:, :, None] * directions / noise  # a fresh direction each
    masks = np.array(list(itertools.product((0.0, 1.0), repeat=steps)))
    weights = rate ** masks.sum(1) * (1 - rate) ** (steps - masks.sum(1))
    present = sum(w * likelihood_ratios(y, noise, mask) for mask, w in zip(masks, weights, strict=True))
    single = [1 - rate + rate * likelihood_ratios(y, noise, np.eye(steps)[t]) for t in range(steps)]
    fresh = np.prod(single, axis=0)  # law of y, over "absent"
    if reference == "norms":
        ratio, weight, kept = present / fresh, np.ones(n), overlaps.over_norms(noise, rate, steps, dimension)
    else:
        ratio, weight, kept = present, 1.0 / fresh, overlaps.over_absent(noise, rate, steps, dimension)
    thresholds = np.array([0.0, 0.05, 0.5])
    for threshold, *bounds in zip(thresholds, *kept.log_deltas(thresholds), strict=True):
        grown = math.exp(threshold)
        for gain, bound in zip((ratio - grown, 1.0 - grown * ratio), bounds, strict=True):
            sample = weight * np.maximum(gain, 0.0)
            assert math.exp(bound) >= sample.mean() - 4.0 * sample.std() / math.sqrt(n)
    sample = weight * np.maximum(ratio - 1.0, 0.0)
    best = math.exp(float(np.min(kept.log_deltas(np.zeros(1))[0])))
    assert best <= (4.0 if reference == "absent" else 16.0) * sample.mean()


@pytest.mark.parametrize("least", [1, 2])
def test_what_is_dropped_is_counted_for_every_part_of_the_mask(monkeypatch, least: int) -> None:
    # The second moment needs a cap on each part that another mask may share; simulated, none may be forgotten.
    noise, rate, steps, dimension, n = 0.4, 0.25, 5, 4, 20_000
    rng, caps = np.random.default_rng(4), {}
    original = overlaps.below_cap

    def capped(noncentrality, dims, log_caps, fine):
        size = round(noncentrality * noise**2)
        caps[size] = log_caps if size >= least else np.full(1, np.inf)  # smaller parts of the mask have no cap
        return original(noncentrality, dims, caps[size], fine)

    monkeypatch.setattr(overlaps, "below_cap", capped)
    monkeypatch.setattr(overlaps, "LEVELS", np.array([1.0]))
    monkeypatch.setattr(overlaps, "largest_masks", lambda rate, steps: [steps])
    monkeypatch.setattr(overlaps, "log_expm1", lambda x: np.full(x.shape, np.inf))  # caps everywhere
    dropped = overlaps.over_absent(noise, rate, steps, dimension).dropped[0]
    drawn = rng.random((n, steps)) < rate
    y = rng.normal(size=(n, steps, dimension))
    y[:, :, 0] += drawn / noise
    lost = np.zeros(n, dtype=bool)
    for mask in itertools.product((0.0, 1.0), repeat=steps):
        size, inside = int(sum(mask)), ~np.any(np.array(mask, dtype=bool) & ~drawn, axis=1)
        if size:
            lost |= inside & (np.log(likelihood_ratios(y, noise, np.array(mask))) > caps[size][0])
    assert lost.mean() <= dropped
    assert dropped <= 3.0 * lost.mean()


def test_norms_of_single_steps_are_enclosed() -> None:
    noise, rate, steps, dimension = 0.5, 0.05, 20, 4
    above, below = norms.composed_norms(noise, rate, steps, dimension, 0.1)
    rng, n = np.random.default_rng(2), 20_000
    total = np.zeros((2, n))
    for _ in range(steps):
        for side in (0, 1):
            central = rng.chisquare(dimension, n)
            moved = rng.noncentral_chisquare(dimension, noise**-2.0, n)
            square = np.where(side * (rng.random(n) < rate), moved, central)
            log_ratio = log_mean_exponential(np.sqrt(square) / noise, float(dimension)) - 0.5 / noise**2
            total[side] += np.log1p(rate * np.expm1(log_ratio))
    reached = np.mean(total[1] > 0.0) - np.mean(total[0] > 0.0)
    assert above.delta(0.0) == pytest.approx(below.delta(0.0), rel=1e-3, abs=0)
    assert above.delta(0.0) == pytest.approx(reached, abs=4.0 / math.sqrt(n))
    assert above.reversed.delta(0.3) >= below.reversed.delta(0.3) > 0.0


@pytest.mark.parametrize(("noise", "rate", "dimension"), [(0.5, 0.05, 4), (0.3, 0.001, 30), (1.0, 0.4, 2)])
def test_polygons_of_one_step_enclose_it_closely(noise: float, rate: float, dimension: int) -> None:
    above, below = norms.one_step(noise, rate, dimension)
    exact = Subsampled(RelaxedGaussianTradeOff(noise**-2.0, dimension), rate)
    thresholds = np.append(0.0, np.geomspace(1e-4, 5.0, 301))
    for upper, truth, lower in ((above, exact, below), (above.reversed, exact.reversed, below.reversed)):
        up, delta, low = (curve.delta(thresholds) for curve in (upper, truth, lower))
        assert np.all(up >= delta * (1.0 - 1e-11))
        assert np.all(low <= delta * (1.0 + 1e-11))
        near = delta >= 0.1 * delta[0]
        assert np.all(up[near] <= low[near] * (1.0 + 5e-3) + 1e-12)


def curve_of(absent: np.ndarray, present: np.ndarray):
    """The exact curve of two laws on few points."""
    order = np.argsort(-present / absent)
    fpr, power = (np.clip(np.cumsum(law[order])[:-1], 1e-300, 1.0) for law in (absent, present))
    return polygon_through(LogErrors(np.log(fpr), np.log1p(-fpr), np.log1p(-power), np.log(power)))


def test_the_chain_by_way_of_a_third_law(monkeypatch) -> None:
    rng, thresholds = np.random.default_rng(9), np.append(0.0, np.geomspace(0.01, 3.0, 30))
    grown, ratios = np.exp(thresholds)[:, None], []

    def log_deltas(one: np.ndarray, other: np.ndarray, levels: np.ndarray) -> np.ndarray:
        gain = np.maximum(other - np.exp(levels)[:, None] * one, 0.0).sum(axis=1)
        return np.log(np.maximum(gain, 1e-300))

    for _ in range(60):
        absent, fresh, present = rng.dirichlet(np.full(4, 0.7), size=3) * (1.0 - 4e-6) + 1e-6

        class Kept:
            def log_deltas(self, levels, fresh=fresh, present=present):
                return log_deltas(fresh, present, levels), log_deltas(present, fresh, levels)

        monkeypatch.setattr(overlaps, "over_norms", lambda *case, kept=Kept: kept())
        chain = enclose.norms_and_direction(DPSGD(0.5, 0.1, 9), 3, curve_of(absent, fresh), thresholds)
        joined, parted = present - grown * absent, absent - grown * present
        truth = np.maximum(*(np.maximum(gain, 0.0).sum(axis=1) for gain in (joined, parted)))
        assert np.all(chain.delta(thresholds) >= truth - 1e-12)
        ratios.append(truth[0] / chain.delta(0.0))
    assert max(ratios) > 0.95


LITTLE = [(0.3, 0.001, 1000, 30, 1.45), pytest.param(0.5, 0.001, 1000, 5, 1.2, marks=pytest.mark.slow)]


@pytest.mark.parametrize(("noise", "rate", "steps", "dimension", "ratio"), LITTLE)
def test_widths_at_little_noise(noise: float, rate: float, steps: int, dimension: int, ratio: float) -> None:
    run = DPSGD(noise, rate, steps)
    found, whole = relaxed_in(run, dimension), enclose.relaxed_estimate(run, dimension, 0.0, 0.01)
    assert advantage(found.optimistic) <= advantage(found.pessimistic) <= ratio * advantage(found.optimistic)
    with np.errstate(all="ignore"):
        fpr, power = attacks_from_below.error_rates(noise, rate, steps, dimension)
    assert advantage(whole) > ratio * np.nanmax(power - fpr)  # nothing is cut, and no norms are seen
    assert advantage(relaxed_in(run, 1).optimistic) > advantage(found.pessimistic)  # nor is it the common sign


def test_norms_that_cannot_be_composed_are_named(monkeypatch) -> None:
    def fails(*case: object) -> None:
        raise NumericalError("planted")

    monkeypatch.setattr(enclose, "composed_norms", fails)
    found = enclose.relaxed_in.__wrapped__(DPSGD(0.35, 0.03, 3), 6)
    assert found.notes == ("The norms of single steps were left out of both ends: planted.",)
    assert advantage(found.optimistic) <= advantage(found.pessimistic)

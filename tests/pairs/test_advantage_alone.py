"""The lean certificate of the advantage: against printed values, quadrature, and its own parts."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from reticent.kernel.accountants.lattice import Lattice
from reticent.kernel.accountants.one_direction import steps_of
from reticent.kernel.errors import NumericalError
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.pairs.gaussian_mixture import GaussianMixture
from reticent.pairs import sampled_gaussian
from reticent.pairs.advantage_alone import enclose_advantage
from reticent.pairs.loss_cells import LossCells
from reticent.pairs.sampled_gaussian import SampledGaussian
from reticent.pairs.strips import argument_reach, nowhere_turned

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "composition.json").read_text())["reference"]


@pytest.mark.parametrize("row", GOLDEN, ids=[row["name"] for row in GOLDEN])
def test_printed_values_are_enclosed_tightly(row):
    lower, upper = enclose_advantage(GaussianMixture(row["noise_multiplier"], (row["sample_rate"],)), row["steps"])
    assert lower - 1e-10 <= row["advantage"] <= upper + 1e-10
    assert upper - lower <= 1e-9


def test_random_runs_agree_with_the_lattice():
    rng, checked = np.random.default_rng(3), 0
    for _ in range(10):
        noise, rate, steps = rng.uniform(0.5, 6.0), 10 ** rng.uniform(-3, -0.5), int(10 ** rng.uniform(1, 4))
        neighbouring = Neighbouring.REPLACE if rng.uniform() < 0.5 else Neighbouring.ADD_REMOVE
        kinds, _ = steps_of(DPSGD(noise, rate, steps), neighbouring)
        try:
            with np.errstate(all="ignore"):
                lower, upper = enclose_advantage(kinds[0].pair.mixture, steps)
                safe, weak = Lattice(1e-3, 2**13).answer(kinds).sides
        except NumericalError:
            continue
        assert float(weak.delta(0.0)) <= upper + 1e-13
        assert lower <= float(safe.delta(0.0)) + 1e-13
        checked += 1
    assert checked >= 5


@pytest.mark.parametrize("antipodal", [False, True])
def test_quadrature_error_is_covered(antipodal):
    """E[e^((1/2 + it) L)] - 1 on a fine grid, nodes planned so coarsely that the error is visible."""
    noise, rate, t = 0.7, 0.05, 6.0
    law = SampledGaussian(noise, rate, antipodal, 1, 0.0, 9.0, digits=9.0)
    real, tilted = law.real(np.array([0.5, 4.0, 9.0])), law.nodes.tilted(0.5)
    frequencies = np.linspace(0.0, t, 9)
    turned = (np.exp(1j * t * law.nodes.loss) - 1.0) @ tilted + real.excess[0]
    bound = law.rule(0.5, frequencies, real)[-1] + real.rest[0]

    x = np.linspace(-11.0, 12.0, 20_001)  # the trapezoid rule is exact to rounding: the integrand is analytic
    p, q = norm.pdf(x, 0.0, noise), rate * norm.pdf(x, 1.0, noise) + (1.0 - rate) * norm.pdf(x, 0.0, noise)
    if antipodal:
        p = rate * norm.pdf(x, -1.0, noise) + (1.0 - rate) * p
    truth = np.sum(p * np.exp(complex(0.5, t) * np.log(q / p))) * (x[1] - x[0]) - 1.0
    assert 1e-9 < abs(turned - truth) <= bound


@pytest.mark.parametrize("antipodal", [False, True])
def test_arguments_bound_the_true_ones(antipodal):
    noise, rate = 2.0, 0.01
    law = SampledGaussian(noise, rate, antipodal, 100, 4.0, 9.0)
    grid = law.nodes
    assert 0.0 in grid.x  # the normal density is largest there, and bounds on cells rest on their ends
    ends = np.concatenate([grid.x, grid.x[-1] + noise * np.array(sampled_gaussian.FAR)])
    starts = np.concatenate([[grid.x[0] - 40.0], ends]) if not antipodal else ends
    for angle in (0.9, 2.8):
        bounds = law.arguments(angle)
        stops = np.append(starts[1:], ends[-1] + 400.0)
        for a, b, bound in zip(starts, stops, bounds, strict=True):
            z = np.linspace(a, b, 50) + 1j * angle * noise**2
            phase = np.angle(1.0 - rate + rate * np.exp((z - 0.5) / noise**2))
            if antipodal:
                phase = phase - np.angle(1.0 - rate + rate * np.exp((-z - 0.5) / noise**2))
            assert np.max(np.abs(phase)) <= bound * (1.0 + 1e-12)


@pytest.mark.parametrize("antipodal", [False, True])
def test_strips_without_oscillation_are_known_by_one_argument(antipodal):
    angle, found = 2.8, []
    for noise, rate in product(np.geomspace(0.3, 100.0, 12).tolist(), (0.004, 0.3)):
        for variance in (0.01, 0.3, 3.0):
            reach = argument_reach(noise, rate, antipodal, variance, np.array([[angle]])).item()
            found.append(nowhere_turned(noise, rate, antipodal, variance, angle))
            assert reach < 5.0 or not found[-1]
    assert 5 < sum(found) < 60


def test_decay_from_some_cells_bounds_the_transform():
    law = SampledGaussian(1.0, 0.1, False, 1, 30.0, 2.0)
    excess = law.real(np.array([0.5])).excess[0]
    decay = LossCells.of(law.pair, np.linspace(-3.0, 5.0, 161)).decay(0.5, float(np.log1p(excess)))
    t = np.linspace(0.5, 12.0, 60)
    value = np.abs(np.exp(1j * np.multiply.outer(t, law.nodes.loss)) @ law.nodes.tilted(0.5)) / (1.0 + excess)
    assert np.all(np.log(value) <= decay.log_bound(t))
    assert decay.log_bound(t)[-1] < -0.05


def test_no_room_is_refused():
    with np.errstate(all="ignore"), pytest.raises(NumericalError):
        enclose_advantage(GaussianMixture(0.01, (0.5,)), 10)


@pytest.mark.parametrize("antipodal", [False, True])
def test_moments_of_several_exponents_are_those_of_each(antipodal):
    law = SampledGaussian(0.8, 0.1, antipodal, 100, 4.0, 9.0)
    powers = np.array([0.5, 9.0, 0.7, 1.0] if antipodal else [0.5, 9.0, -7.0, 0.0, 1.0])
    together = law.real(powers)
    for k, power in enumerate(powers):
        alone = law.real(np.array([power]))
        for all_of_them, only in zip(together, alone, strict=True):
            assert all_of_them[k] == pytest.approx(only[0], rel=1e-12, abs=1e-13)
    factors = [law.log_strip_factor(powers, angle) for angle in law.angles.tolist()]
    assert law.log_strip_factor(powers[:, None], law.angles) == pytest.approx(np.array(factors).T, rel=1e-12, abs=0)

"""One unknown sign in steps that differ: brute force, one route against the other, Monte Carlo."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

from reticent.adversaries.relaxed.sign import Part, join, lattice, transform, unknown_sign
from reticent.adversaries.relaxed.sign.noise import GaussianSign
from reticent.kernel.errors import NumericalError
from reticent.kernel.mechanisms import DPSGD, Ledger

pytestmark = pytest.mark.usefixtures("coarse")

addition = partial(unknown_sign, part=Part.ADDITION)
EPSILONS = np.array([0.0, 0.05, 0.2, 0.5, 1.0])


def brute_force(runs: list[DPSGD], epsilon: float, nodes: int = 1001) -> tuple[float, float]:
    """delta of addition and of removal of two single steps, by the trapezoid rule in both observations."""
    ratios, weights = [], []
    for run in runs:
        mu, p = run.records / run.noise_multiplier, run.sample_rate
        y = np.linspace(-10.0 - 2 * mu, 10.0 + 2 * mu, nodes)
        weights.append(np.exp(-0.5 * y * y) * (y[1] - y[0]) / math.sqrt(2.0 * math.pi))
        ratios.append([1.0 - p + p * np.exp(s * mu * y - 0.5 * mu * mu) for s in (1.0, -1.0)])
    ratio = 0.5 * sum(np.multiply.outer(ratios[0][k], ratios[1][k]) for k in (0, 1))
    grown = math.exp(epsilon)
    payoffs = np.maximum(ratio - grown, 0.0), np.maximum(1.0 - grown * ratio, 0.0)
    add, remove = (float(weights[0] @ payoff @ weights[1]) for payoff in payoffs)
    return add, remove


@pytest.mark.usefixtures("small_lattice")
@pytest.mark.parametrize(
    "runs",
    [
        [DPSGD(1.0, 0.3, 1), DPSGD(2.0, 0.5, 1)],
        pytest.param([DPSGD(0.7, 0.05, 1), DPSGD(3.0, 1.0, 1)], marks=pytest.mark.slow),
    ],
    ids=["sampled", "one of all data"],
)
def test_two_different_steps_by_brute_force(runs: list[DPSGD]) -> None:
    bracket = addition(Ledger(tuple(runs)))
    directions = (lambda curve: curve), (lambda curve: curve.reversed)
    for epsilon in (0.0, 0.1, 0.4):
        for truth, direction in zip(brute_force(runs, epsilon), directions, strict=True):
            lower, upper = (float(direction(c).delta(epsilon)) for c in (bracket.optimistic, bracket.pessimistic))
            assert lower * (1 - 4e-5) <= truth <= upper * (1 + 4e-5)  # the rule's own error
            if truth > 1e-3:
                assert upper / lower - 1.0 <= 5e-3


def close(one, other, width: float) -> None:
    """Neither enclosure contradicts the other, and both ends agree within ``width``."""
    for first, second in ((one, other), (other, one)):
        assert np.all(first.below.delta(EPSILONS) <= second.above.delta(EPSILONS) + 1e-12)
        assert np.all(first.below.reversed.delta(EPSILONS) <= second.above.reversed.delta(EPSILONS) + 1e-12)
    near = EPSILONS[:3]
    for name in ("above", "below"):
        assert getattr(one, name).delta(near) == pytest.approx(getattr(other, name).delta(near), rel=width, abs=0)


@pytest.mark.usefixtures("small_lattice")
def test_two_segments_of_equal_steps_are_one_segment() -> None:
    """Asked as two kinds of steps, on either route; ``unknown_sign`` itself counts them together."""
    step, noise = GaussianSign(0.2, 1.0 / 6.0), GaussianSign(0.3, 1.0)
    close(
        *(transform.bounds(kinds, 0.05, 60).sides() for kinds in ([(step, 150)], [(step, 60), (step, 90)])),
        1e-9,
    )
    close(*(lattice.bounds(kinds, points=2**16).sides() for kinds in ([(noise, 5)], [(noise, 2), (noise, 3)])), 1e-9)
    whole, halves = DPSGD(1.0, 0.3, 5), Ledger((DPSGD(1.0, 0.3, 2), DPSGD(1.0, 0.3, 3, num_parameters=7)))
    assert addition(whole).pessimistic.delta(0.1) == pytest.approx(
        addition(halves).pessimistic.delta(0.1), rel=1e-9, abs=0
    )


def test_both_routes_agree() -> None:
    kinds = [(GaussianSign(0.2, 1.0 / 6.0), 60), (GaussianSign(0.1, 1.0 / 4.0), 50)]
    close(transform.bounds(kinds, 0.004).sides(), lattice.bounds(kinds, points=2**18).sides(), 4e-2)


@pytest.mark.parametrize(
    ("runs", "epsilon"),
    [((DPSGD(6.0, 0.2, 100),), 0.2), ((DPSGD(2.0, 0.5, 3), DPSGD(1.0, 0.1, 5), DPSGD(4.0, 1.0, 6)), 0.05)],
    ids=["transform", "lattice"],
)
@pytest.mark.usefixtures("small_lattice")
def test_monte_carlo(runs: tuple[DPSGD, ...], epsilon: float) -> None:
    """The likelihood ratio itself, drawn under "present with +"; five standard errors."""
    rng, draws = np.random.default_rng(5), 20_000
    logs = np.zeros((2, draws))
    for run in runs:
        mu, p = 1.0 / run.noise_multiplier, run.sample_rate
        for _ in range(run.steps):
            y = rng.standard_normal(draws) + mu * (rng.random(draws) < p)
            logs += [np.log1p(p * np.expm1(s * mu * y - 0.5 * mu * mu)) for s in (1.0, -1.0)]
    gain = np.maximum(-np.expm1(epsilon - np.logaddexp(*logs) + math.log(2.0)), 0.0)
    mean, error = float(gain.mean()), float(gain.std() / math.sqrt(draws))
    bracket = addition(Ledger(runs))
    lower, upper = float(bracket.optimistic.delta(epsilon)), float(bracket.pessimistic.delta(epsilon))
    assert lower - 5 * error <= mean <= upper + 5 * error
    assert error < 0.05 * mean
    assert upper / lower - 1.0 <= 5e-3
    assert bracket.notes == ()


def test_many_kinds_of_steps_are_not_followed() -> None:
    with pytest.raises(NumericalError, match="13 kinds of steps, at most 12 are followed"):
        join.bounds(tuple((GaussianSign(0.5, 1.0 / (0.5 + k)), 1) for k in range(13)))

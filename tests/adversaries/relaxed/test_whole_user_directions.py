"""All records of one person in d dimensions: whatever their directions, against oracles that share no code with it.

Theorem: RETICENT:whole-user-directions.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import i0e
from scipy.stats import binom, norm

from reticent.adversaries import Relaxed
from reticent.adversaries.relaxed.dimension import attacks_from_below as attacks
from reticent.adversaries.relaxed.dimension import chi_square, relaxed_in, replaced, second_moment
from reticent.adversaries.relaxed.sign import unknown_sign
from reticent.kernel.accountants import compose
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.risk import advantage
from tests.adversaries.relaxed.exact_moments import agree, exact_chi_square, exact_deltas, of_law

pytestmark = pytest.mark.usefixtures("coarse")

THRESHOLDS = np.array([0.0, 0.05, 0.3, 1.0])


def person(noise: float, rate: float, steps: int, records: int) -> DPSGD:
    return DPSGD(noise, rate, steps, records_per_user=records)


@pytest.mark.parametrize(
    ("noise", "rate", "steps", "dimension", "records"),
    [
        (2.0, 0.3, 3, 2, 3),
        (6.0, 0.2, 4, 30, 4),
        (1.0, 0.02, 5, 3, 2),
        (30.0, 0.9, 2, 5000, 7),
        (0.8, 0.1, 3, 700, 3),
        (3.0, 0.95, 30, 4, 1),
        (1.0, 0.3, 12, 2, 1),
        (6.0, 0.2, 100, 30, 1),
        (2.0, 0.9, 300, 700, 1),
        (1.1, 256 / 60000, 14000, 26010, 1),
        (1.5, 0.0625, 2940, 10**7, 1),
        (3.0, 0.95, 30, 2, 1),
    ],
)
@pytest.mark.parametrize("order", [2.0, 4.5])
def test_second_moment_is_an_upper_bound_and_tight(noise, rate, steps, dimension, records, order) -> None:
    exact = exact_chi_square(noise, rate, steps, dimension, records, order)
    found = chi_square.log_chi_square(noise, rate, steps, dimension, records, order)
    assert exact <= found <= exact + 4e-5 + 1e-4 * max(exact, 0.0)  # where it is large it says nothing


def test_counts_in_blocks_cost_little_and_tails_that_underflow_are_bounded(monkeypatch) -> None:
    case = 400.0, 0.1, 50, 3, 2000
    fine = chi_square.log_chi_square(*case)
    monkeypatch.setattr(chi_square, "COUNTS", 20)
    rough = chi_square.log_chi_square(*case)
    monkeypatch.undo()
    assert fine <= rough <= fine + 0.5
    # In 1e6 dimensions the cells of <u, u'>^2 near 1 have no mass that a double can hold, and carry the moment.
    top = chi_square.log_chi_square(0.02, 0.9, 3000, 10**6, 2)
    assert top >= 3000 * 4 * 0.8 / 0.02**2 - 0.5 * 10**6 * math.log(10**6)


# Directions of several records, by their joint law.


def directions(kind: str, rng: np.random.Generator, shape: tuple[int, int, int], d: int) -> np.ndarray:
    """Unit vectors of shape (draws, steps, records, d), each of them uniform on its own."""
    draws, steps, records = shape
    free = rng.normal(size=(draws, steps, records, d))
    free /= np.linalg.norm(free, axis=3, keepdims=True)
    one = np.broadcast_to(free[:, :1, :1], free.shape)
    match kind:
        case "one direction":
            return one
        case "opposite":
            return one * np.where(np.arange(records) % 2, -1.0, 1.0)[:, None]
        case "records differ":
            return np.broadcast_to(free[:, :1], free.shape)
        case "steps differ":
            return free
        case "mirrored":  # their sum lies on a line that is known
            return np.where((np.arange(d) > 0) & (np.arange(records) % 2 == 1)[:, None], -one, one)
        case _:  # a turn by a fixed angle from record to record
            turn, angles = one.copy(), 0.7 * np.arange(records)
            turn[..., 0] = np.cos(angles) * one[..., 0] - np.sin(angles) * one[..., 1]
            turn[..., 1] = np.sin(angles) * one[..., 0] + np.cos(angles) * one[..., 1]
            return turn


KINDS = ("one direction", "opposite", "records differ", "steps differ", "mirrored", "turned")


@pytest.mark.parametrize("kind", KINDS)
def test_no_joint_law_of_directions_has_a_larger_second_moment(kind) -> None:
    noise, rate, dimension = 2.0, 0.5, 3
    rng, shape = np.random.default_rng(6), (25_000, 3, 2)
    one, other = (
        np.einsum("ntj,ntjd->ntd", rng.random(shape) < rate, directions(kind, rng, shape, dimension)) for _ in range(2)
    )
    terms = np.expm1(np.einsum("ntd,ntd->n", one, other) / noise**2)
    error = terms.std() / math.sqrt(len(terms))
    most = math.exp(chi_square.log_chi_square(noise, rate, shape[1], dimension, shape[2]))
    assert terms.mean() <= most + 4.0 * error
    if kind == "one direction":
        assert terms.mean() >= most - 4.0 * error


@pytest.mark.parametrize("dimension", [2, 3])
@pytest.mark.parametrize("angle", [0.0, 1.0, 0.5 * np.pi, np.pi])
def test_one_step_of_two_records_by_quadrature(dimension: int, angle: float) -> None:
    noise, rate = 1.0, 0.3
    r = np.linspace(0.0, 14.0, 20_001)[1:]
    mass = r ** (dimension - 1) * np.exp(-0.5 * r * r)
    mass = mass / mass.sum()

    def ratio(length: float) -> np.ndarray:
        z = np.maximum(r * length / noise, 1e-9)
        mean = i0e(z) * np.exp(z) if dimension == 2 else np.sinh(z) / z
        return mean * np.exp(-0.5 * (length / noise) ** 2)

    both = ratio(2.0 * math.cos(0.5 * angle))
    lr = (1 - rate) ** 2 + 2 * rate * (1 - rate) * ratio(1.0) + rate**2 * both
    curves, truth = relaxed_in(person(noise, rate, 1, 2), dimension), np.maximum(*of_law(lr, mass, THRESHOLDS))
    assert np.all(curves.pessimistic.delta(THRESHOLDS) >= truth * (1.0 - 1e-6))
    if angle == 0.0:
        assert np.all(curves.optimistic.delta(THRESHOLDS) <= truth * (1.0 + 1e-6) + 1e-12)
        assert curves.pessimistic.delta(0.0) <= 1.7 * truth[0]
        assert curves.optimistic.delta(0.0) >= 0.9 * truth[0]


@pytest.mark.parametrize("dimension", [pytest.param(2, marks=pytest.mark.slow), 3])
def test_two_steps_of_two_records_by_quadrature(dimension: int) -> None:
    noise, rate = 1.5, 0.3
    deltas = exact_deltas(noise, rate, dimension, THRESHOLDS, records=2)
    norms = {q: chi_square.log_chi_square(noise, rate, 2, dimension, 2, q) for q in second_moment.ORDERS}
    curves = relaxed_in(person(noise, rate, 2, 2), dimension)
    agree(deltas, THRESHOLDS, second_moment.log_deltas(norms, THRESHOLDS), curves, 1e-4)
    assert curves.pessimistic.delta(0.0) <= 1.7 * curves.optimistic.delta(0.0)


@pytest.mark.parametrize(
    ("noise", "steps", "records", "short"), [(1.2, 12, 1, (0.02,) * 4), (2.0, 10, 3, (0.05, 0.025, 0.1, 0.025))]
)
def test_attackers_reach_what_is_stated(noise, steps, records, short) -> None:
    rate, d, n = 0.15, 6, 30_000
    fpr, power = attacks.error_rates(noise, rate, steps, d, records=records)
    rng = np.random.default_rng(7)
    noise_only, noisy = (rng.normal(size=(n, steps, d)) for _ in range(2))
    noisy[:, :, 0] += rng.binomial(records, rate, (n, steps)) / noise  # rotation invariance: any direction will do
    pairs = [(y, np.sum(y * y, axis=2)) for y in (noise_only, noisy)]
    statistics = [(np.sum(y.sum(1) ** 2, axis=1) / steps, square.sum(1), square.max(1)) for y, square in pairs]
    scale = attacks.direction(rate, steps * records)
    forms = [(b + scale * (total - b), b, total, loudest) for b, total, loudest in statistics]
    best = [np.max(np.mean(h1 > (levels := np.quantile(h0, np.linspace(0.3, 0.999, 200)))[:, None], axis=1)
                   - np.mean(h0 > levels[:, None], axis=1)) for h0, h1 in zip(*forms, strict=True)]  # fmt: skip
    stated = [np.max(part) for part in np.split(power - fpr, 4)]
    for reached, claimed, less in zip(best, stated, short, strict=True):
        assert reached - less <= claimed <= reached + 0.014  # four deviations of the largest of correlated means


# What it means.


def test_who_knows_the_direction_of_one_record_is_not_covered() -> None:
    noise, rate, steps, d = 2.0, 0.2, 40, 1000
    number = advantage(relaxed_in(person(noise, rate, steps, 2), d).pessimistic)
    level = np.linspace(0.0, 40.0, 400)[:, None]
    count, spread = np.arange(steps + 1), noise * math.sqrt(steps)  # the other record is orthogonal to the known one
    power = norm.sf((level - count) / spread) @ binom.pmf(count, steps, rate)
    assert np.max(power - norm.sf(level[:, 0] / spread)) > 5.0 * number


def test_the_two_ends_are_close_never_above_the_worst_case_and_the_number_says_what_it_stands_on() -> None:
    run = person(6.0, 0.2, 50, 2)
    curves, worst = relaxed_in(run, 30), compose(run, Neighbouring.ADD_REMOVE).pessimistic
    assert advantage(curves.pessimistic) <= 1.15 * advantage(curves.optimistic)
    alpha = np.geomspace(1e-9, 0.9, 30)
    assert np.all(curves.pessimistic.beta(alpha) >= worst.beta(alpha) * (1.0 - 1e-9))
    stated = Relaxed(dimension=30).assess(run)
    assert stated.curve is curves.pessimistic
    assert {"RETICENT:whole-user-directions", "RETICENT:whole-user-dominance"} <= set(stated.theorems)
    assert "RETICENT:told-mask" not in stated.theorems
    both, chain = Relaxed(dimension=30).assess(run, Neighbouring.REPLACE).curve, replaced(run, curves.pessimistic)
    assert advantage(both) == pytest.approx(advantage(chain.pessimistic), rel=1e-9, abs=0)


def test_one_dimension_is_the_common_sign_and_almost_no_noise_the_worst_case() -> None:
    run = person(1.2, 0.3, 1, 3)
    assert relaxed_in(run, 1) is unknown_sign(run)
    loud = person(1e-4, 0.1, 2, 2)
    assert advantage(relaxed_in(loud, 40).pessimistic) == pytest.approx(
        advantage(compose(loud, Neighbouring.ADD_REMOVE).pessimistic), rel=1e-9, abs=0
    )

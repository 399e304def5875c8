"""One unknown sign in steps that differ: brute force, one route against the other, Monte Carlo, every error term."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

from reticent.adversaries.relaxed.sign import Part, join, lattice, quick_sign_estimate, transform, unknown_sign
from reticent.adversaries.relaxed.sign.noise import GaussianSign, odd_and_even
from reticent.kernel.accountants import compose, powers
from reticent.kernel.mechanisms import DPSGD, Ledger
from reticent.kernel.pairs import Neighbouring

pytestmark = pytest.mark.usefixtures("coarse")

addition = partial(unknown_sign, part=Part.ADDITION)
EPSILONS = np.array([0.0, 0.05, 0.2, 0.5, 1.0])
THREE = Ledger((DPSGD(2.0, 0.5, 3), DPSGD(1.0, 0.1, 5), DPSGD(4.0, 1.0, 6)))
SCHEDULE = Ledger((DPSGD(1.0, 0.01, 300), DPSGD(1.2, 0.01, 300), DPSGD(1.5, 0.02, 400)))


@pytest.fixture
def small_lattice(monkeypatch):
    """An eighth of the points, with nothing remembered from before or for later."""
    caches = (unknown_sign, join.bounds)
    monkeypatch.setattr(lattice, "POINTS", 2**18)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


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
        pytest.param([DPSGD(0.5, 0.02, 1), DPSGD(1.0, 0.6, 1)], marks=pytest.mark.slow),
    ],
    ids=["sampled", "one of all data", "rare"],
)
def test_two_different_steps_by_brute_force(runs: list[DPSGD]) -> None:
    bracket = addition(Ledger(tuple(runs)))
    for epsilon in (0.0, 0.1, 0.4):
        for truth, direction in zip(brute_force(runs, epsilon), ("add", "remove"), strict=True):
            ends = bracket.optimistic, bracket.pessimistic
            ends = ends if direction == "add" else tuple(curve.reversed for curve in ends)
            lower, upper = (float(curve.delta(epsilon)) for curve in ends)
            assert lower * (1 - 4e-5) <= truth <= upper * (1 + 4e-5), direction  # the rule's own error
            if truth > 1e-3:
                assert upper / lower - 1.0 <= 5e-3, direction


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
    close(transform.bounds(kinds, 0.004).sides(), lattice.bounds(kinds, points=2**19).sides(), 2e-2)


@pytest.mark.parametrize(
    "runs",
    [
        pytest.param(SCHEDULE, marks=pytest.mark.slow),
        THREE,
    ],  # by default: test_both_routes_agree
    ids=["transform", "lattice"],
)
@pytest.mark.usefixtures("small_lattice")
def test_monte_carlo_of_three_unequal_segments(runs: Ledger) -> None:
    """The likelihood ratio itself, drawn under "present with +"; five standard errors."""
    rng, draws, epsilon = np.random.default_rng(5), 10_000, 0.05
    logs = np.zeros((2, draws))
    for run in runs.parts:
        mu, p = 1.0 / run.noise_multiplier, run.sample_rate
        for _ in range(run.steps):
            y = rng.standard_normal(draws) + mu * (rng.random(draws) < p)
            logs += [np.log1p(p * np.expm1(s * mu * y - 0.5 * mu * mu)) for s in (1.0, -1.0)]
    gain = np.maximum(-np.expm1(epsilon - np.logaddexp(*logs) + math.log(2.0)), 0.0)
    mean, error = float(gain.mean()), float(gain.std() / math.sqrt(draws))
    bracket = addition(runs)
    lower, upper = float(bracket.optimistic.delta(epsilon)), float(bracket.pessimistic.delta(epsilon))
    assert lower - 5 * error <= mean <= upper + 5 * error
    assert upper / lower - 1.0 <= 5e-3
    assert bracket.notes == ()


class TestErrorTerms:
    """Each is a sum over kinds of steps: the part of one kind left out is seen."""

    KINDS = ((GaussianSign(0.1, 1.0), 2), (GaussianSign(0.3, 0.5), 7))

    def test_rounding_of_every_kind(self, monkeypatch) -> None:
        found = []
        for error in (lattice.ROUNDING, lattice.ROUNDING + 1e-7):
            monkeypatch.setattr(lattice, "ROUNDING", error)
            found.append(lattice.bounds(self.KINDS, 100, 2**14))
        before, after = found
        assert np.all(after.tests()[0] >= np.minimum(before.tests()[0] + 8.9e-7, 1.0))
        near = np.searchsorted(before.thresholds, 0.0)
        assert after.delta[near] - before.delta[near] >= 8.9e-7

    def test_observations_beyond_the_nodes_of_every_kind(self, monkeypatch) -> None:
        before = lattice.bounds(self.KINDS, 100, 2**14)
        fewer = before.tests()
        monkeypatch.setattr(GaussianSign, "lost", property(lambda kind: 1e-4 if kind.rate == 0.3 else 1e-2))
        after = lattice.bounds(self.KINDS, 100, 2**14)
        ends = zip(("delta", "fpr", "fnr"), (before.delta, *fewer), (after.delta, *after.tests()), strict=True)
        for name, less, more in ends:
            assert np.all(more >= np.minimum(less + 0.0206, 1.0)), name

    def test_rounding_of_the_powers_of_every_part(self, monkeypatch) -> None:
        """Beside a step that shows nothing, whichever comes first, a part keeps its error; and the sum holds."""
        rng = np.random.default_rng(2)
        first, second = (powers.GridStep((np.arange(40),), w / w.sum(), np.zeros(40), 30) for w in rng.random((2, 40)))
        nothing = powers.GridStep((np.zeros(1, dtype=int),), np.ones(1), np.zeros(1), 1)
        alone = [powers.power([part], (2**13,), (0,))[1] for part in (first, second)]
        for part, stated in zip((first, second), alone, strict=True):
            for parts in ([nothing, part], [part, nothing]):
                assert stated * (1.0 - 1e-9) <= powers.power(parts, (2**13,), (0,))[1] <= 2.0 * stated
        exact, fine, digits = powers.power([first, second], (2**13,), (0,))[0], np.fft.rfftn, 2.0**-20

        def coarse(values: np.ndarray) -> np.ndarray:
            image = fine(values)
            return image * (1.0 + digits * np.cos(np.arange(len(image))))

        monkeypatch.setattr(powers, "EPS", digits / 8.0)
        monkeypatch.setattr(np.fft, "rfftn", coarse)
        rough, stated = powers.power([first, second], (2**13,), (0,))
        assert 1e-9 < float(np.abs(rough - exact).sum()) <= stated

    def test_aliases_and_frequencies_left_out_of_every_kind(self) -> None:
        """Outside the box the proven bound holds for the product of all transforms."""
        kinds = [(GaussianSign(0.2, 1.0 / 6.0), 60), (GaussianSign(0.05, 0.5), 80)]
        plan = transform.plan_of(kinds, 0.05)
        rng = np.random.default_rng(5)
        laws = []
        for step, steps in kinds:
            y = np.linspace(-12.0, 13.0, 8001)
            a, b = odd_and_even(step, y)
            law = np.exp(-0.5 * y * y + plan.line * b)
            laws.append((law / law.sum(), a, b, steps))
        bound = transform.outside_bound(plan, 0.0)
        for _ in range(100):
            t, w = (end * 10.0 ** rng.uniform(-4.0, 0.0) for end in plan.ends)
            size = math.prod(abs(law @ np.exp(1j * (t * b + w * a))) ** steps for law, a, b, steps in laws)
            assert size <= np.exp(bound.logs[np.searchsorted(bound.t, t), np.searchsorted(bound.w, w)]) * (1.0 + 1e-9)


def test_many_kinds_of_steps_get_the_worst_case_and_say_so() -> None:
    runs = Ledger(tuple(DPSGD(0.5 + k, 0.5, 1) for k in range(13)))
    worst, stopped = compose(runs, Neighbouring.ADD_REMOVE), unknown_sign(runs)
    assert "13 kinds of steps, at most 12 are followed" in stopped.notes[0]
    assert stopped.pessimistic.delta(0.0) == pytest.approx(worst.pessimistic.delta(0.0), rel=1e-9, abs=0)
    assert 0.0 < stopped.optimistic.delta(0.0) < worst.optimistic.delta(0.0)


def test_the_estimate_of_a_schedule_lies_in_the_enclosure() -> None:
    estimate, bracket = quick_sign_estimate(SCHEDULE), addition(SCHEDULE)
    assert estimate is not None
    for epsilon in (0.0, 0.3):
        value = float(estimate(np.array([epsilon]))[0])
        assert bracket.optimistic.delta(epsilon) * 0.999 <= value <= bracket.pessimistic.delta(epsilon) * 1.001

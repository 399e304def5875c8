"""The common sign on the lattice: kept masses, steps that differ, brute force, the Fourier route, error terms.

Each error term in a regime where it matters: set to zero it is missed.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

from reticent.adversaries.relaxed.sign import Part, join, lattice, transform, unknown_sign
from reticent.adversaries.relaxed.sign import noise as noises
from reticent.adversaries.relaxed.sign.noise import GaussianSign, LaplaceSign, SignNoise
from reticent.kernel.accountants import powers
from reticent.kernel.errors import NumericalError
from reticent.kernel.mechanisms import DPSGD, Ledger
from tests.adversaries.golden import COMPOSED

pytestmark = pytest.mark.usefixtures("coarse")

addition = partial(unknown_sign, part=Part.ADDITION)
EPSILONS = np.array([0.0, 0.05, 0.2, 0.5, 1.0])
KINDS = ((GaussianSign(0.1, 1.0), 2), (GaussianSign(0.3, 0.5), 7))


@pytest.mark.parametrize(
    ("noise", "steps"),
    [(GaussianSign(0.3, 1.0), 2), (GaussianSign(64 / 455, 0.25), 30), (LaplaceSign(0.3, 1.2), 5)],
    ids=repr,
)
@pytest.mark.parametrize("side", ["connected", "labelled"])
def test_one_step_keeps_all_three_masses(noise: SignNoise, steps: int, side: str) -> None:
    """Absent, present with + and (by symmetry) present with -: else the lattice experiment proves nothing."""
    plan = lattice.plan_of([(noise, steps)], 2**15)
    kind = plan.kinds[0]
    law = lattice.connected(plan, kind) if side == "connected" else lattice.labelled(plan, kind)[0]
    a, b = plan.a.pitch * law.i, kind.centre + plan.b.pitch * law.j
    assert law.absent.sum() == pytest.approx(1.0, rel=1e-13, abs=0)
    assert law.present.sum() == pytest.approx(1.0, rel=1e-12, abs=0)
    for sign in (1.0, -1.0):
        found = float(law.absent @ np.exp(b + sign * a))
        assert side == "labelled" or found == pytest.approx(1.0, rel=1e-12, abs=0)


@pytest.mark.usefixtures("small_lattice")
@pytest.mark.parametrize(
    "entry", [e for e in COMPOSED["L_two_fold"] if "common" in e["quantity"]], ids=lambda e: e["id"]
)
def test_two_steps_are_tight(entry: dict) -> None:
    epsilon, truth = float(entry["params"]["eps"]), float(entry["value"])
    bracket = addition(DPSGD(1.0 / float(entry["params"]["mu"]), float(entry["params"]["p"]), 2))
    ends = bracket.optimistic, bracket.pessimistic
    if "rem" in entry["quantity"].split("(")[0]:
        ends = ends[0].reversed, ends[1].reversed
    lower, upper = (float(curve.delta(epsilon)) for curve in ends)
    assert lower <= truth <= upper
    assert upper / lower - 1.0 <= 8e-3


def test_many_rare_steps_fit_a_lattice_with_room_for_their_own_walk() -> None:
    """A step that moves by a small share of a cell needs less room than one that may move by half of it."""
    kinds = [(GaussianSign(3e-4, 1.0 / 0.4072), 10_000)]
    sides = lattice.bounds(kinds, points=2**18).sides()
    assert float(sides.above.delta(0.0) / sides.below.delta(0.0)) <= 1.7  # none before
    assert lattice.Sketch.of(*kinds[0]).walk((0.05, 0.02))[0] <= 1000  # of variance; 10,000 before


@pytest.mark.usefixtures("small_lattice")
@pytest.mark.parametrize("run", [DPSGD(1.0, 0.3, 2), DPSGD(2.0, 0.1, 100)], ids=str)
def test_the_claim_of_a_search_is_no_less_than_the_whole_curve(run: DPSGD) -> None:
    """Also where one direction ends and the other leads."""
    bound, whole, epsilons = unknown_sign(run, part=Part.CLAIM), unknown_sign(run), np.linspace(0.0, 4.0, 2001)
    claimed, known = (one.pessimistic.delta(epsilons) for one in (bound, whole))
    assert np.all(claimed >= known * (1.0 - 1e-12))
    assert claimed[:501] == pytest.approx(known[:501], rel=1e-3, abs=0)


def test_a_search_reads_the_curve_where_that_is_a_formula() -> None:
    for run in (DPSGD(1.0, 0.3, 1), DPSGD(1.0, 1.0, 3)):
        claimed, whole = unknown_sign(run, part=Part.CLAIM), unknown_sign(run)
        assert claimed.pessimistic.delta(0.1) == whole.pessimistic.delta(0.1) == claimed.optimistic.delta(0.1)


def test_too_many_steps_are_refused() -> None:
    with pytest.raises(NumericalError, match="points would be needed"):
        lattice.bounds([(GaussianSign(1e-5, 1.0), 10**6)], 100)


# Steps that differ.


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


# Error terms.


def test_a_short_reach_is_paid_for(monkeypatch):
    """Observations past 2.5 standard deviations left out: the safe side covers them, and the tests' errors do."""
    monkeypatch.setattr(noises, "REACH", 2.5)
    values = lattice.bounds([(GaussianSign(0.5, 1.0), 2)], 200, 2**14)
    steps, add = [DPSGD(1.0, 0.5, 1)] * 2, values.delta[values.thresholds >= 0.0]
    truth = np.array([brute_force(steps, t, 201)[0] for t in values.thresholds[values.thresholds >= 0.0]])
    assert np.all(add >= truth - 1e-4)
    attained = 1.0 - sum(values.tests())  # of legal tests: at most the largest advantage
    assert attained.max() <= truth[0] + 1e-4
    lost = 2 * GaussianSign(0.5, 1.0).lost
    assert add[-1] >= lost > 0.01


def test_rounding_of_every_kind(monkeypatch):
    """Far out nothing but stated errors is left; they are a sum over the steps of all kinds."""
    far = []
    for error in (lattice.ROUNDING, lattice.ROUNDING + 1e-7):
        monkeypatch.setattr(lattice, "ROUNDING", error)
        far.append(lattice.bounds(KINDS, 100, 2**14))
    before, after = (found.tests()[0] for found in far)
    assert np.all(after >= np.minimum(before + 8.9e-7, 1.0))
    near = np.searchsorted(far[0].thresholds, 0.0)
    assert far[1].delta[near] - far[0].delta[near] >= 8.9e-7


def test_observations_beyond_the_nodes_of_every_kind(monkeypatch) -> None:
    before = lattice.bounds(KINDS, 100, 2**14)
    fewer = before.tests()
    monkeypatch.setattr(GaussianSign, "lost", property(lambda kind: 1e-4 if kind.rate == 0.3 else 1e-2))
    after = lattice.bounds(KINDS, 100, 2**14)
    ends = zip(("delta", "fpr", "fnr"), (before.delta, *fewer), (after.delta, *after.tests()), strict=True)
    for name, less, more in ends:
        assert np.all(more >= np.minimum(less + 0.0206, 1.0)), name


def test_rounding_of_the_powers_of_every_part(monkeypatch) -> None:
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


def test_errors_of_the_powers_reach_every_bound(monkeypatch):
    """Rounding and wrap-around as ``powers`` states them: on delta in both directions and on both errors."""
    power, found = lattice.power, []
    for more in (0.0, 1e-6):
        monkeypatch.setattr(lattice, "power", lambda *a, m=more: (lambda mass, off: (mass, off + m))(*power(*a)))
        one = lattice.bounds([(GaussianSign(0.1, 1.0), 5)], 100, 2**14)
        found.append((one.delta, *one.tests()))
    for name, before, after in zip(("delta", "fpr", "fnr"), *found, strict=True):
        assert np.all(after >= np.minimum(before + 0.99e-6, 1.0)), name

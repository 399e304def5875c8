"""Ledgers of many different kinds of steps: what is taken together is what each kind says by itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import reticent as rt
from reticent.accountants.contour import build_contour, chernoff_moments
from reticent.accountants.contour_plan import Plan
from reticent.accountants.transform import SpectralComposition, Transform, transform_of
from reticent.kernel.accountants import grouped
from reticent.kernel.accountants.bounds import Bounds, CheapBounds
from reticent.kernel.accountants.enclose import CURVE, enclose
from reticent.kernel.accountants.lattice import Lattice
from reticent.kernel.accountants.one_direction import steps_of
from reticent.kernel.mechanisms import DPSGD, Ledger
from reticent.kernel.pairs import Neighbouring
from reticent.pairs.sampled_gaussian import SampledGaussian
from reticent.pairs.transforms import PlainGaussian

pytestmark = pytest.mark.usefixtures("coarse")

ADD, REPLACE = Neighbouring.ADD_REMOVE, Neighbouring.REPLACE
EPSILONS = np.array([0.0, 0.01, 0.05, 0.2, 0.5, 1.0])
NOISES, RATES, COUNTS = np.array([0.5, 0.8, 1.3, 3.0]), np.array([0.01, 0.3, 1e-3, 0.05]), np.array([3, 1, 50, 7])


def kinds(count: int, runs: int = 1) -> Ledger:
    """Different noise and rates, in no order."""
    rng = np.random.default_rng(count)
    noises, rates = rng.uniform(0.9, 2.0, count).tolist(), np.exp(rng.uniform(-7.0, -4.0, count)).tolist()
    return Ledger(tuple(DPSGD(noise, rate, runs) for noise, rate in zip(noises, rates, strict=True)))


def together(antipodal: bool, largest: float = 3.0) -> SampledGaussian:
    noises, rates, counts = (each[:, None] for each in (NOISES, RATES, COUNTS))
    return SampledGaussian(noises, rates, antipodal, counts, 5.0, largest)


def alone(antipodal: bool, k: int, largest: float = 3.0) -> SampledGaussian:
    return SampledGaussian(float(NOISES[k]), float(RATES[k]), antipodal, int(COUNTS[k]), 5.0, largest)


@pytest.mark.parametrize("antipodal", [False, True])
@pytest.mark.parametrize("c", [0.5, 2.0])
def test_a_block_of_laws_is_each_law(antipodal: bool, c: float) -> None:
    many, t = together(antipodal), np.arange(0.0, 21.0)
    value, fall, moments = many.transform(c, t), many.decay(c).log_bound(t), many.log_moment(np.array([c, 3.0]))
    mean, variance = many.moments(c)
    for k in range(len(NOISES)):
        one = alone(antipodal, k)
        exact = one.transform(c, t)
        assert np.all(np.abs(value.excess[k] - exact.excess) <= value.error[k] + exact.error)
        assert np.all(value.error[k, :2] <= 3.0 * exact.error[:2])
        assert fall[k] == pytest.approx(one.decay(c).log_bound(t), rel=1e-9, abs=1e-12)
        assert moments[k] == pytest.approx(one.log_moment(np.array([c, 3.0])), rel=1e-9, abs=1e-12)
        assert (mean[k, 0], variance[k, 0]) == pytest.approx(one.moments(c), rel=1e-9, abs=1e-12)
        assert many.log_scale(c)[k, 0] == pytest.approx(float(one.log_scale(c)), rel=1e-9, abs=0)


def test_blocks_hold_every_kind_once() -> None:
    rng = np.random.default_rng(1)
    noises, counts = rng.uniform(0.3, 3.0, (500, 1)), np.arange(500)[:, None] + 1
    blocks = SampledGaussian(noises, np.full((500, 1), 0.01), False, counts, 40.0, 1.0).blocks()
    assert len(blocks) > 3
    found = np.concatenate([block.count[:, 0] for block in blocks])
    assert sorted(found.tolist()) == list(range(1, 501))
    for block in blocks:
        assert block.noise_multiplier == pytest.approx(noises[block.count - 1, 0], rel=1e-15, abs=0)
        assert block.nodes.x.size < 40_000


def test_few_steps_of_several_kinds_have_a_closer_decay() -> None:
    many, t = together(False), np.array([0.0, 5.0, 50.0])
    for k, bound in enumerate(many.decay(0.5, closely=True).log_bound(t)):
        assert bound == pytest.approx(alone(False, k).decay(0.5, closely=True).log_bound(t), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_one_contour_agrees_with_several(relation: Neighbouring, monkeypatch: pytest.MonkeyPatch) -> None:
    steps, _ = steps_of(kinds(40), relation)
    one = SpectralComposition(transform_of(steps).steps)
    monkeypatch.setattr("reticent.accountants.contour_plan.FOLLOWED", 10)
    sides = one.polygons()
    assert one.plan.rightmost == 0.5
    assert len(one._contours) == 1
    monkeypatch.undo()
    monkeypatch.setattr(Plan, "many", False)
    several = SpectralComposition(one.steps).polygons()
    for this, other in ((sides, several), (several, sides)):
        assert np.all(this.above.delta(EPSILONS) >= other.below.delta(EPSILONS))
        assert np.all(this.above.reversed.delta(EPSILONS) >= other.below.reversed.delta(EPSILONS))
    assert sides.above.delta(0.0) == pytest.approx(sides.below.delta(0.0), rel=1e-6, abs=0)
    assert sides.above.reaches(-27.0)
    assert one.delta(1) == pytest.approx(one.delta(1.0), rel=1e-12, abs=0)


def test_a_lattice_agrees_with_many_kinds() -> None:
    """It shares no code with transforms."""
    steps, _ = steps_of(kinds(36, 30), ADD)
    found = enclose(steps, accuracy=replace(CURVE, deepest=-200.0))
    assert [attempt.name for attempt in found.trace] == ["bounds", "transform"]  # a short tail asks for no lattice
    lattice = Lattice(5e-8, 2**14).answer(steps)
    assert np.all(found.pessimistic.delta(EPSILONS) >= lattice.below[0].delta(EPSILONS))
    assert np.all(found.optimistic.delta(EPSILONS) <= lattice.above[0].delta(EPSILONS))
    assert found.width < 1e-7


@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_groups_are_on_the_side_that_is_asked_for(relation: Neighbouring) -> None:
    steps, _ = steps_of(kinds(40, 20), relation)
    over, under = grouped.stronger(steps, 6), grouped.fewer_below(steps, 6)
    assert len(over) == len(under) <= 6
    assert sum(step.count for step in over) == sum(step.count for step in under) == 800
    exact, most, least = (Transform().answer(each).sides for each in (steps, over, under))
    for way in (lambda curve: curve, lambda curve: curve.reversed):
        assert np.all(way(most.below).delta(EPSILONS[:3]) > way(exact.above).delta(EPSILONS[:3]))
        assert np.all(way(least.above).delta(EPSILONS[:3]) < way(exact.below).delta(EPSILONS[:3]))


def test_cheap_bounds_of_many_kinds_are_looser_on_both_sides() -> None:
    steps, _ = steps_of(kinds(60, 5000), ADD)
    found, each, far = Bounds().answer(steps), CheapBounds(steps, Bounds().left_out), np.array([15.0, 20.0])
    assert np.all(found.above[0].delta(far) > each.above()[0].delta(far))
    assert np.all(found.below[0].delta(EPSILONS) < each.below().delta(EPSILONS))


def test_kinds_beyond_what_a_lattice_takes_are_grouped(monkeypatch: pytest.MonkeyPatch) -> None:
    steps, _ = steps_of(kinds(36, 30), ADD)
    exact = enclose(steps)
    monkeypatch.setattr("reticent.kernel.accountants.lattice.MOST_KINDS", 8)
    rough = Lattice(5e-8, 2**13).answer(steps)
    assert np.all(rough.above[0].delta(EPSILONS) >= exact.optimistic.delta(EPSILONS))
    assert np.all(rough.below[0].delta(EPSILONS) <= exact.pessimistic.delta(EPSILONS))
    assert rough.width > 100.0 * exact.width


def test_roundings_of_a_sum_over_kinds_are_counted() -> None:
    """Logarithms of 500 kinds in two blocks are added: each may be rounded as often as a block has kinds."""
    mus = np.linspace(0.01, 0.02, 500)[:, None]
    laws = [(PlainGaussian(part), np.ones((250, 1))) for part in (mus[:250], mus[250:])]
    exponents = np.linspace(-8.0, 9.0, 60)
    contour = build_contour(laws, chernoff_moments(laws, exponents), 0.5, -1.0, 1.0, 25.0, 1e-7)
    exact = np.exp(-0.5 * float((mus**2).sum()) * contour.frequencies**2)
    assert np.all(np.abs(contour.values - exact) <= contour.errors)
    sizes = 0.5 * float((mus**2).sum()) * (contour.frequencies**2 + 0.25)
    assert np.all(contour.errors >= exact * 2.0**-52 * 252 * sizes * (1.0 - 1e-6))


@pytest.mark.slow
def test_ten_thousand_kinds() -> None:
    curve = rt.assess(kinds(10_000))[0]
    for measure, *arguments in ((rt.advantage,), (rt.epsilon_at_delta, 1e-5), (rt.tpr_at_fpr, 1e-3)):
        found = curve.measure(measure, *arguments)
        assert found.upper - found.lower < 1e-6 * found.upper

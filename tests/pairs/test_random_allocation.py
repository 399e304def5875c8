"""Random allocation: one epoch against oracles that share no code with it, then epochs, both directions.

Theorems: RETICENT:allocation-enclosure, FELDMAN2025:Theorem 3.1, FELDMAN2025:Lemma 3.2.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from reticent.kernel.accountants import Composed, compose
from reticent.kernel.accountants.compose import both_directions
from reticent.kernel.accountants.lattice import Lattice
from reticent.kernel.accountants.one_direction import steps_of
from reticent.kernel.accountants.steps import Step
from reticent.kernel.curves import GaussianTradeOff, TradeOff
from reticent.kernel.curves.polygon import polygon_above
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.pairs import GaussianPair, LossMasses, Neighbouring
from reticent.kernel.risk import advantage, epsilon_at_delta
from reticent.kernel.samplers import Poisson
from reticent.pairs import AllocatedGaussianPair
from reticent.pairs.allocated_sum import COARSE, Effort, first_window, log_normal, sum_of
from reticent.pairs.random_allocation import random_allocation
from reticent.samplers import Cyclic, RandomAllocation, Shuffled, TruncatedPoisson
from tests.conftest import forget, some
from tests.pairs.allocation import by_contour, of_blocks

ADD = Neighbouring.ADD_REMOVE


def deltas(curve: TradeOff, epsilon: float) -> tuple[float, float]:
    """Both directions."""
    return float(curve.delta(epsilon)), float(curve.reversed.delta(epsilon))


def within(sides: tuple[TradeOff, TradeOff], epsilon: float, truth: tuple[float, float], slack: float) -> None:
    for low, high, value in zip(deltas(sides[1], epsilon), deltas(sides[0], epsilon), truth, strict=True):
        assert low * (1.0 - slack) - 1e-11 <= value <= high * (1.0 + slack) + 1e-11


def grids_alone(monkeypatch: pytest.MonkeyPatch, effort: Effort) -> None:
    """Grids of that effort, and no transform beside them."""
    monkeypatch.setattr("reticent.pairs.random_allocation.MEDIUM", effort)
    monkeypatch.setattr("reticent.pairs.random_allocation.resolved", lambda *arguments: None)


MANY = [(1.0, 64), (2.0, 64), (1.0, 128), (0.7, 300), (4.0, 50), (10.0, 10_000), (1.0, 10_000), (0.8, 100)]


LITTLE = (0.001, 0.02, 0.06, 0.066, 0.1)


class TestOneEpoch:
    @pytest.mark.parametrize(("noise", "bins"), [(1.0, 2), (3.0, 2), (2.0, 3), (2.5, 4)])
    @pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
    def test_few_bins_by_quadrature(self, noise: float, bins: int, epsilon: float) -> None:
        within(random_allocation(noise, bins), epsilon, of_blocks(noise, [bins], epsilon), 1e-6)

    @pytest.mark.parametrize(("noise", "bins"), some(MANY, 0, 5))
    def test_many_bins_by_a_contour(self, noise: float, bins: int) -> None:
        epsilons = math.sqrt(math.expm1(noise**-2.0) / bins) * np.array([0.0, 0.5, 1.0, 2.0, 3.0])
        ahead, back = (by_contour(noise, bins, np.exp(sign * epsilons))[0] for sign in (1.0, -1.0))
        for epsilon, one, other in zip(epsilons, ahead, back, strict=True):
            up = math.exp(epsilon)
            within(random_allocation(noise, bins), epsilon, (one + 1.0 - up, up * other), 1e-7)

    @pytest.mark.parametrize(
        ("noise", "bins", "epsilon", "gain"),
        [(1, 8, 3.7183, 0.16783), (1, 64, 1.7987, 0.063839), (2, 64, 0.32954, 0.026529), (1, 128, 1.2615, 0.04558)],
    )
    def test_values_of_an_independent_computation(self, noise: float, bins: int, epsilon: float, gain: float) -> None:
        bracket = compose(DPSGD(noise, 1 / bins, bins, sampler=RandomAllocation()), ADD)
        low, high = (epsilon_at_delta(c, 1e-8) for c in (bracket.optimistic, bracket.pessimistic))
        assert high / low < 1.0 + 5e-4
        assert low * (1.0 - 3e-4) < epsilon < high * (1.0 + 3e-4)
        assert advantage(bracket.optimistic) == pytest.approx(gain, rel=3e-5, abs=0)
        assert advantage(bracket.pessimistic) == pytest.approx(advantage(bracket.optimistic), rel=3e-5, abs=0)

    @pytest.mark.parametrize(("noise", "bins"), [(1.0, 64), (0.5, 6)])
    def test_coarse_grids_hold_as_well(self, noise: float, bins: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """The enclosure does not depend on the grid: a coarse one is wider around the fine one."""
        fine = random_allocation(noise, bins)
        grids_alone(monkeypatch, Effort(12.0, 200, 1.3, 30, 12))
        coarse = random_allocation.__wrapped__(noise, bins)
        for epsilon in (0.0, 0.01, 0.1, 0.5, 1.0, 3.0):
            pairs = (deltas(s, epsilon) for s in (coarse[1], fine[1], fine[0], coarse[0]))
            for outer_low, low, high, outer_high in zip(*pairs, strict=True):
                assert outer_low <= low * (1.0 + 1e-3) + 1e-12
                assert high <= outer_high * (1.0 + 1e-9) + 1e-12
        assert advantage(coarse[0]) > 1.001 * advantage(coarse[1])

    def test_mean_and_mass_are_kept(self) -> None:
        for above, bins in product((True, False), (2, 13)):
            law = sum_of(1.0, bins, [], COARSE, above=above)
            assert float(law.mass.sum()) == pytest.approx(1.0, rel=1e-13, abs=0)
            assert float(law.mass @ law.at) + law.lost == pytest.approx(bins, rel=1e-12, abs=0)
            assert law.kappa < 1e-10
            assert law.eta < 1e-8

    def test_what_lies_beyond_the_grid_is_counted(self) -> None:
        short = first_window(1.0)._replace(high=3.0)
        law = log_normal(1.0, short, COARSE, above=True)
        assert law.at[-1] < 4.0
        assert law.lost > 0.1
        assert float(law.mass @ law.at) + law.lost == pytest.approx(1.0, rel=1e-12, abs=0)

    def test_spreading_raises_and_collapsing_lowers_the_variance(self) -> None:
        truth = 5 * math.expm1(0.25)
        below, above = (
            float(law.mass @ (law.at - 5.0) ** 2)
            for law in (sum_of(0.5, 5, [], COARSE, above=a) for a in (False, True))
        )
        assert below < truth < above
        assert above / below < 1.02

    @pytest.mark.parametrize(("noise", "bins"), [(40.0, 5001), (400.0, 101), (17.6, 64188), (100.0, 1023)])
    def test_much_noise_keeps_both_ends(self, noise: float, bins: int) -> None:
        """A single variable is narrower than the pitch of the sum's grid, and holds nothing in most of its cells.

        One ended with an error, one with 0 below. The sum is next to normal.
        """
        above, below = (advantage(curve) for curve in random_allocation(noise, bins))
        nearly = math.erf(math.sqrt(math.expm1(1.0 / noise**2) / bins / 8.0))
        assert below <= nearly * (1.0 + 1e-6)
        assert nearly * (1.0 - 1e-6) <= above <= below * (1.0 + 1e-4)

    def test_next_to_no_noise_and_very_many_bins(self) -> None:
        assert [advantage(end) for end in random_allocation(0.02, 4)] == pytest.approx([1.0, 1.0], rel=1e-9, abs=0)
        many, most = random_allocation(2.0, 2**25), random_allocation(2.0, 2**24)
        assert 0.0 <= advantage(many[1]) <= advantage(many[0]) * (1.0 + 1e-12)
        assert advantage(many[0]) == pytest.approx(advantage(most[0]), rel=1e-12, abs=0)
        nearly = math.erf(math.sqrt(math.expm1(0.25) / 2**24 / 8.0))  # the central limit theorem
        assert 0.5 * nearly < advantage(most[1]) <= nearly * (1.0 + 1e-4)
        assert nearly * (1.0 - 1e-4) <= advantage(most[0]) <= nearly * (1.0 + 1e-3)


class TestEpochs:
    @pytest.mark.parametrize("epochs", [10, pytest.param(1000, marks=pytest.mark.slow)])
    def test_both_ends_agree(self, epochs: int) -> None:
        bracket = compose(DPSGD(2.0, 0.01, 100 * epochs, sampler=RandomAllocation()), ADD)
        low, high = (advantage(curve) for curve in (bracket.optimistic, bracket.pessimistic))
        assert high / low < 1.0 + 1e-4
        assert not bracket.notes

    def test_steps_that_are_known_from_both_sides(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Composed, each side stays on its side of what a finer grid has."""
        fine = both_directions((Step(AllocatedGaussianPair(1.5, 12), 5),), 0.0, False)
        grids_alone(monkeypatch, Effort(8.0, 150, 1.4, 20, 10))
        forget()
        coarse = both_directions((Step(AllocatedGaussianPair(1.5, 12), 5),), 0.0, False)
        forget()
        for epsilon in (0.0, 1.0, 2.0):
            ends = (coarse.optimistic, fine.optimistic, fine.pessimistic, coarse.pessimistic)
            bounds = [float(curve.delta(epsilon)) for curve in ends]
            assert bounds == sorted(bounds)
        assert advantage(coarse.optimistic) < 0.999 * advantage(fine.optimistic)

    def test_tails_of_many_steps_keep_their_digits(self) -> None:
        """The lattice with tilted masses around the contour, which shares no code with it."""
        run = DPSGD(1.0, 0.01, 2000)
        steps = steps_of(run, ADD)[0]
        deep, plain = (Lattice(5e-8, 2**17, tail, depth).answer(steps) for tail, depth in ((1e-24, 0.6), (1e-15, 0.0)))
        for epsilon in (0.5, 3.0):
            low, high = Composed(run, ADD).delta(epsilon)
            assert float(deep.below[0].delta(epsilon)) <= high * (1.0 + 1e-12)
            assert low <= float(deep.above[0].delta(epsilon)) * (1.0 + 1e-12)
        widths = [float(a.above[0].delta(3.0) - a.below[0].delta(3.0)) for a in (deep, plain)]
        assert widths[0] < 0.4 * widths[1]

    @pytest.mark.parametrize(
        ("noise", "bins", "epochs"), some(list(product(LITTLE, (100, 10), (10, 2))), 0, 3, 5, 7, 8, 11)
    )
    def test_little_noise_is_told_but_for_the_places(self, noise: float, bins: int, epochs: int) -> None:
        """The upper end fell below what an attack reaches: epsilon at 1e-6 at most 1,252, and 1,592 is attained.

        Accuse if any of all assignments is likely: a union bound takes epochs * log(bins) off what is told. Below .0243
        two epochs ended with an IndexError.
        """
        found = compose(DPSGD(noise, 1 / bins, bins * epochs, sampler=RandomAllocation()), ADD)
        told = epsilon_at_delta(GaussianTradeOff(math.sqrt(epochs) / noise), 1e-6)
        least, most = (epsilon_at_delta(curve, 1e-6) for curve in (found.optimistic, found.pessimistic))
        attained = told - epochs * math.log(bins)
        assert attained * (1.0 - 6e-3) <= least <= most
        assert attained <= most <= told * 1.01

    def test_cells_that_a_curve_knows_too_little_of_keep_their_mass(self) -> None:
        """Next to certainty false positives were lost to a rounded 1, and the mass of "present" with them."""
        curve = polygon_above(np.array([-5.0, 0.0, 200.0, 250.0]), np.array([0.0, 0.0, -0.3, -60.0]))
        grid = np.linspace(-300.0, 300.0, 1201)
        masses = LossMasses.of(curve, grid)
        kept = masses.connected() @ np.exp(grid)
        assert kept == pytest.approx(masses.q.sum(), rel=1e-9, abs=0)
        poor = LossMasses(grid, masses.rates._replace(fpr=np.where(grid > 0, -np.inf, masses.rates.fpr)))
        assert poor.connected() @ np.exp(grid) >= masses.q.sum() * (1.0 - 1e-9)

    def test_what_lattices_lose_is_bounded_by_moments(self) -> None:
        """Epsilon at 1e-10 was at most 43.4, next to 2.9 at 1e-9. Nearly normal losses: the normal limit is the oracle.

        Noise 20, 10,000 epochs of 100 steps: a chi-square of expm1(1 / 400) / 100 each.
        """
        found = compose(DPSGD(20.0, 0.01, 10**6, sampler=RandomAllocation()), ADD)
        limit = GaussianTradeOff(math.sqrt(10**4 * math.expm1(1 / 400) / 100))
        for delta, most in ((1e-9, 1.01), (1e-10, 1.06), (1e-12, 1.06), (1e-15, 1.06)):
            truth = epsilon_at_delta(limit, delta)
            assert epsilon_at_delta(found.optimistic, delta) < truth
            assert 0.99 * truth < epsilon_at_delta(found.pessimistic, delta) < most * truth
        once, told = random_allocation(20.0, 100)[0], GaussianTradeOff(0.05)
        assert epsilon_at_delta(once, 1e-100) < epsilon_at_delta(told, 1e-100) * 1.1

    def test_less_than_poisson_in_the_tail_and_than_shuffling(self) -> None:
        allocated, poisson, shuffled, cyclic = (
            epsilon_at_delta(compose(DPSGD(1.0, 1 / 64, 64, sampler=sampler), ADD).pessimistic, 1e-8)
            for sampler in (RandomAllocation(), Poisson(), Shuffled(), Cyclic())
        )
        assert allocated < poisson < shuffled
        assert shuffled == pytest.approx(cyclic, rel=1e-12, abs=0)

    def test_an_epoch_that_was_started_counts(self) -> None:
        run = DPSGD(2.0, 0.1, 21, sampler=RandomAllocation())
        assert [part.count for part in run.parts_under(ADD)] == [3]
        assert [part.count for part in run.parts_under(ADD, attained=True)] == [2]
        assert DPSGD(2.0, 0.1, 9, sampler=RandomAllocation()).parts_under(ADD, attained=True) == ()

    def test_fewer_bins_are_the_safe_side(self) -> None:
        assert DPSGD(1.0, 0.03, 33, sampler=RandomAllocation()).parts_under(ADD)[0].pair.bins == 33
        stated = DPSGD(1.0, 0.03, 34, sampler=RandomAllocation(34))
        assert stated.parts_under(ADD)[0].pair.bins == 34
        loose = DPSGD(1.0, 0.03, 34, sampler=RandomAllocation())
        assert loose.parts_under(ADD, attained=True)[0].pair.bins == 34
        few, more = random_allocation(1.0, 64), random_allocation(1.0, 128)
        assert advantage(more[0]) < advantage(few[1])

    def test_several_uses_in_an_epoch(self) -> None:
        run = DPSGD(2.0, 0.1, 20, sampler=RandomAllocation(uses_per_epoch=3))
        (part,) = run.parts_under(ADD)
        assert (part.pair, part.count) == (AllocatedGaussianPair(2.0, 3), 6)
        assert "FELDMAN2025:Lemma 3.2" in part.theorems
        assert run.parts_under(ADD, attained=True) == ()
        (whole,) = DPSGD(2.0, 0.1, 20, sampler=RandomAllocation(uses_per_epoch=10)).parts_under(ADD)
        assert (whole.pair, whole.count) == (GaussianPair(2.0, 1.0, 1.0), 20)


class TestBadInput:
    @pytest.mark.parametrize(
        "fields",
        [
            {"sampler": "random-allocation", "uses_per_epoch": 11},
            {"sampler": "truncated-poisson", "dataset_size": 100},
            {"sampler": "truncated-poisson", "max_batch_size": 10},
        ],
    )
    def test_fields_of_another_sampler(self, fields: dict[str, object]) -> None:
        with pytest.raises(ParameterError):
            DPSGD(1.0, 0.1, 10, **DPSGD.resolved(fields))

    def test_several_records_in_batches_that_are_cut(self) -> None:
        run = DPSGD(1, 0.1, 9, sampler=TruncatedPoisson(9), dataset_size=50, records_per_user=2)
        with pytest.raises(UnsupportedError, match="several records"):
            run.parts_under(ADD)

"""Fixed-size and shuffled batches: what dominates, what some data set attains, and how epochs are counted.

Theorems: ZHU2022:Proposition 30, ZHU2022:Theorem 11, DONG2022:Theorem 4.2, RETICENT:fixed-size-dominance.
"""

from __future__ import annotations

import math

import pytest

from reticent.adversaries import Attribute, Mixed, Relaxed
from reticent.kernel.accountants import Composed, compose
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.curves import GaussianTradeOff
from reticent.kernel.errors import ParameterError
from reticent.kernel.mechanisms import DPSGD, Gaussian, Ledger, Mechanism
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.risk import advantage, epsilon_at_delta
from reticent.kernel.samplers import Poisson
from reticent.samplers import Cyclic, FixedSize, Shuffled
from tests.laws.leaves import BY_NAME

pytestmark = pytest.mark.usefixtures("coarse")

ADD, REPLACE, ZERO = Neighbouring.ADD_REMOVE, Neighbouring.REPLACE, Neighbouring.ZERO_OUT
LOG_2 = math.log(2.0)


def ends(run: Mechanism, relation: Neighbouring = ADD) -> tuple[float, float]:
    bracket = compose(run, relation)
    return advantage(bracket.optimistic), advantage(bracket.pessimistic)


class TestCasesOfTheReferee:
    def test_fifty_fixed_size_steps(self) -> None:
        """It enclosed [.820489, .820489]; N(0) against .9 N(0) + .1 N(2), fifty times, has .687589."""
        lower, upper = ends(DPSGD(1.0, 0.1, 50, sampler=FixedSize()))
        poisson = Composed(DPSGD(0.5, 0.1, 50), ADD).advantage()  # the same pair in other units
        assert lower == pytest.approx(poisson[0], rel=1e-7, abs=0)
        assert upper == pytest.approx(poisson[1], rel=1e-7, abs=0)
        assert upper <= 0.687590

    def test_half_an_epoch_of_shuffled_batches(self) -> None:
        """It had the lower end .9999994; whoever is in one of two batches shows with probability .5."""
        run = DPSGD(0.1, 0.5, 1, sampler=Shuffled())
        assert ends(run) == (0.0, pytest.approx(0.9999994, rel=1e-7, abs=0))
        for assessment in (WorstCase().assess(run), Relaxed().assess(run), Mixed().assess(run)):
            assert assessment.measure(advantage).lower <= 0.5
            assert assessment.mu().lower <= 1e-12

    def test_epochs_of_a_loader_that_drops_the_last_batch(self) -> None:
        """Rate .6, ten steps: one batch per epoch, so ten epochs where six were counted."""
        run = DPSGD(2.0, 0.6, 10, sampler=Shuffled())
        assert run.accountable.steps == 10
        assert ends(run)[1] == pytest.approx(advantage(GaussianTradeOff(math.sqrt(10) / 2)), rel=1e-12, abs=0)
        kept = DPSGD(2.0, 0.6, 10, sampler=Shuffled(2))
        assert kept.accountable.steps == 5
        assert "10 counted (10 steps, 1 per epoch, as the loader may drop" in run.notes[0]
        assert "5 counted (10 steps, 2 per epoch)" in kept.notes[0]

    @pytest.mark.parametrize("rate", [1.0, pytest.param(0.2, marks=pytest.mark.slow)])
    @pytest.mark.parametrize("relation", Neighbouring)
    @pytest.mark.parametrize("sampler", [kind() for kind in BY_NAME])
    def test_relaxed_is_within_log_2_of_the_worst_case(self, relation, sampler, rate) -> None:
        """Noise 4, ten full batches of fixed size: it said 2.649 beside 7.511 at delta 1e-5."""
        run = DPSGD(4.0, rate, 10, sampler=sampler, num_parameters=1)
        for delta in (1e-5, 1e-2):
            relaxed, worst = (
                who.assess(run, relation).measure(lambda curve, d=delta: epsilon_at_delta(curve, d)).value
                for who in (Relaxed(), WorstCase())
            )
            assert worst - LOG_2 - 1e-6 <= relaxed <= worst + 1e-6


class TestFixedSize:
    def test_the_lower_end_under_replacement_is_attained_and_no_more(self) -> None:
        """Records -1 against +1 among others of -1: the ordered pair, every step in the same order."""
        run = DPSGD(1.0, 0.1, 2, sampler=FixedSize())
        attained = compose(run, ADD)
        lower, upper = ends(run, REPLACE)
        assert lower == pytest.approx(advantage(attained.optimistic), rel=1e-9, abs=0)
        assert upper > 1.05 * lower
        assert ends(run, ZERO)[0] == pytest.approx(ends(DPSGD(1.0, 0.1, 2), ZERO)[0], rel=1e-9, abs=0)

    def test_a_full_batch_without_the_target_does_not_exist(self) -> None:
        run = DPSGD(1.5, 1.0, 3, sampler=FixedSize())
        assert ends(run) == (0.0, pytest.approx(advantage(GaussianTradeOff(2 * math.sqrt(3) / 1.5)), rel=1e-12, abs=0))
        assert ends(run, REPLACE)[0] == ends(run, REPLACE)[1]

    def test_without_noise_the_displaced_record_may_show_too(self) -> None:
        """Zero-out: either value shows, so next to a noisy release the error pair shrinks towards the origin."""
        shown = DPSGD(0.0, 0.3, 1, sampler=FixedSize())
        bracket = compose(Ledger((shown, Gaussian(1.0))), ZERO)
        middle = float(GaussianTradeOff(1.0).beta(0.3085375387259869))
        assert middle == pytest.approx(0.3085375387259869, rel=1e-12, abs=0)
        assert float(bracket.pessimistic.beta(0.7 * middle)) == pytest.approx(0.7 * middle, rel=1e-5, abs=0)
        assert advantage(bracket.optimistic) < advantage(bracket.pessimistic)


class TestShuffled:
    @pytest.mark.parametrize("drop_last", [True, False])
    def test_a_record_is_seen_at_most_once_per_counted_epoch(self, drop_last: bool) -> None:
        for records in range(1, 13):
            for size in range(1, records + 1):
                batches = records // size if drop_last else -(-records // size)
                for steps in (1, 2, 7, 12):
                    seen = math.ceil(steps / batches)
                    blind = DPSGD(1.0, size / records, steps, sampler=Shuffled())
                    assert blind.accountable.steps >= seen
                    known = DPSGD(1.0, size / records, steps, sampler=Shuffled(batches))
                    assert known.accountable.steps == seen
                    assert blind.sampler.batches_of(blind.sample_rate) <= batches

    def test_the_attribute_adversary_counts_the_same_epochs(self) -> None:
        run = DPSGD(2.0, 0.6, 10, sampler=Shuffled())
        result = Attribute(gradient_change=1.0).assess(run)
        assert result.mu().value == pytest.approx(math.sqrt(10) / 2, rel=1e-12, abs=0)
        assert result.measure(advantage).lower == 0.0

    @pytest.mark.parametrize(
        ("changes", "allowed"),
        [
            ({"batches_per_epoch": 3}, "1 / sample_rate, rounded"),
            ({"batches_per_epoch": 0}, "whole number"),
        ],
    )
    def test_impossible_epochs_are_refused(self, changes, allowed) -> None:
        with pytest.raises(ParameterError, match=allowed):
            DPSGD(1.0, 0.6, 4, **DPSGD.resolved({"sampler": "shuffled"} | changes))


class TestDrawsThatAreSummed:
    """Parallel Poisson: a record may be in several of the draws whose batches are summed before the noise."""

    def test_with_several_records_of_a_person(self) -> None:
        both = DPSGD(1.0, 0.2, 5, sampler=Poisson(3), records_per_user=2)
        assert both.parts_under(ADD) == DPSGD(1.0, 0.2, 5, records_per_user=6).parts_under(ADD)


def test_lower_ends_of_a_cyclic_order() -> None:
    """Rate .6: one batch per epoch or two, and the lower end stands on two."""
    run = DPSGD(2.0, 0.6, 10, sampler=Cyclic())
    assert run.parts_under(ADD)[0].count == 10
    assert run.parts_under(ADD, attained=True)[0].count == 5
    stated = DPSGD(2.0, 0.6, 9, sampler=Cyclic(2))
    low, high = ends(stated)
    assert low == high == pytest.approx(advantage(GaussianTradeOff(math.sqrt(5) / 2)), rel=1e-12, abs=0)

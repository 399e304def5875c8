"""Trainings that exceed a bound where a condition does not hold, and none that does where it holds.

The truth is computed from normal distribution functions alone. Each case names the condition beside the number.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr

from reticent.adversaries import Attribute, Membership, Relaxed
from reticent.kernel.adversaries import Method, WorstCase
from reticent.kernel.adversaries.from_ledger import assess_seen
from reticent.kernel.mechanisms import DPSGD, Gaussian, Ledger
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Claim, Status
from reticent.kernel.risk import advantage
from reticent.kernel.samplers import Poisson, Sampler
from reticent.mechanisms import Guarantee, Laplace, MatrixMechanism
from reticent.mechanisms import RandomisedResponse as Response
from reticent.mechanisms.sensitivity import Scope, SensitivityRecord
from reticent.samplers import Cyclic, FixedSize, RandomAllocation, Shuffled
from tests.records.test_vouched import run as ledger
from tests.records.test_vouched import watched

pytestmark = pytest.mark.usefixtures("coarse")
ADD = Neighbouring.ADD_REMOVE


def gaussian(mu: float) -> float:
    """The advantage of telling N(0, 1) from N(mu, 1)."""
    return float(2.0 * ndtr(0.5 * mu) - 1.0)


def open_keys(found) -> set[str]:
    """Conditions that nobody has checked."""
    return {one.key for one in found.conditions if one.open}


class TestTheGapOfAMissingRecord:
    """Batches of two out of four records. Where the loader closes the gap, others move to another batch."""

    @pytest.mark.parametrize("sampler", [Cyclic(), Shuffled()])
    def test_a_fixed_order(self, sampler: Sampler) -> None:
        """Contributions 1, 0, -1, 0 in this order; the first is deleted: (0 - 1, 0) for (1 + 0, -1 + 0)."""
        found = WorstCase().assess(DPSGD(1.0, 0.5, 2, sampler=sampler), ADD)
        moved = np.subtract([1.0 + 0.0, -1.0 + 0.0], [0.0 - 1.0, 0.0])
        assert gaussian(math.hypot(*moved)) > 1.9 * found.measure(advantage).upper
        assert "kept-places" in open_keys(found)

    def test_a_hidden_order(self) -> None:
        """All others add -1. Nobody learns the order; a grid over both sums is far finer than what is shown."""
        x = np.linspace(-11.0, 9.0, 401)
        at = [np.exp(-0.5 * (x - mean) ** 2) / math.sqrt(2.0 * math.pi) for mean in (0.0, -1.0, -2.0)]
        present = 0.5 * np.outer(at[0], at[2]) + 0.5 * np.outer(at[2], at[0])
        truth = 0.5 * np.abs(present - np.outer(at[2], at[1])).sum() * (x[1] - x[0]) ** 2
        found = WorstCase().assess(DPSGD(1.0, 0.5, 2, sampler=Shuffled()), ADD)
        assert truth > 1.1 * found.measure(advantage).upper

    @pytest.mark.parametrize("relation", [Neighbouring.ZERO_OUT, Neighbouring.REPLACE])
    def test_data_that_keep_their_size_leave_no_gap(self, relation: Neighbouring) -> None:
        for run in (DPSGD(1.0, 0.5, 2, sampler=Shuffled()), MatrixMechanism(2.0, 4)):
            assert "kept-places" not in open_keys(WorstCase().assess(run, relation))
            assert "kept-places" in open_keys(WorstCase().assess(run, ADD))

    @pytest.mark.parametrize("sampler", [Poisson(), FixedSize(), RandomAllocation()])
    def test_proofs_that_remove_the_record_do_not_need_it(self, sampler: Sampler) -> None:
        assert "kept-places" not in open_keys(WorstCase().assess(DPSGD(1.0, 0.5, 2, sampler=sampler), ADD))


DRAWN = {
    "unknown": {"drawn": "unknown", "source": "unknown", "name": "x"},
    "shuffled": {"drawn": "shuffled", "source": "seen", "name": "x", "batches_per_epoch": 4, "times_per_epoch": 1},
    "coins": {"drawn": "poisson", "source": "seen", "name": "x", "sample_rate": 0.1},
    "fixed": {"drawn": "fixed-size", "source": "declared", "name": "x", "sample_rate": 0.1},
}


class TestALoaderThatNobodyKnows:
    """Ten records, nine of them drawn in each step: without the target (1) another one (-1) has its place."""

    def found(self, relation: Neighbouring, **facts):
        steps = {"noise_multiplier": 1.0, "steps": 1, "passes": 1}
        seen = watched(segments=[steps], **facts)
        return assess_seen(WorstCase(), seen.mechanism(), relation, Method.EXACT, seen)

    def test_one_release_of_all_data_for_each_step_is_exceeded(self) -> None:
        """N(0, 1) against .1 N(0, 1) + .9 N(2, 1)."""
        found = self.found(ADD, sampler=DRAWN["unknown"])
        assert 0.9 * gaussian(2.0) > 1.5 * found.measure(advantage).upper
        assert "kept-places" in open_keys(found)

    @pytest.mark.parametrize(
        ("name", "faults", "by_size", "always"),
        [
            ("unknown", [], True, True),
            ("shuffled", [], True, False),
            ("shuffled", ["publicly-seeded-draws"], True, False),
            ("coins", [], False, False),
            ("coins", ["publicly-seeded-draws"], True, False),  # one number less, and all later ones move
            ("coins", ["batches-not-from-the-loader"], True, True),
            ("fixed", [], False, False),
        ],
    )
    def test_who_may_be_moved(self, name: str, faults: list[str], by_size: bool, always: bool) -> None:
        for relation, needed in ((ADD, by_size), (Neighbouring.REPLACE, always), (Neighbouring.ZERO_OUT, always)):
            found = self.found(relation, sampler=DRAWN[name], facts=dict.fromkeys(faults, "found"))
            assert ("kept-places" in open_keys(found)) is needed


def test_a_rate_that_follows_from_the_number_of_records() -> None:
    """Two records, batches of one on average: without the target (which adds 1) the other (-1) is always drawn."""
    found = WorstCase().assess(DPSGD(1.0, 0.5, 1, batch_size=1, dataset_size=2), ADD)
    x = np.linspace(-11.0, 10.0, 4001)
    at = [np.exp(-0.5 * (x - mean) ** 2) / math.sqrt(2.0 * math.pi) for mean in (-1.0, 0.0, 1.0)]
    truth = 0.5 * np.abs(0.25 * at[0] + 0.5 * at[1] + 0.25 * at[2] - at[0]).sum() * (x[1] - x[0])
    assert truth > 1.8 * found.measure(advantage).upper
    (says,) = [one.says for one in found.conditions if one.key == "poisson-draws"]
    assert "whoever else is in the data" in says


class TestHowManyReleases:
    """Somebody goes on while the sum of what was released is below 1, up to nine times, and states how many it were."""

    def test_the_number_that_ran_is_exceeded(self) -> None:
        """The best test after as many releases as there were; what is stated is the usual case, one release."""
        stated = WorstCase().assess(Gaussian(2.0), ADD).measure(advantage).upper
        noise = np.random.default_rng(7).normal(0.0, 2.0, (100_000, 9))
        accused = []
        for mean in (0.0, 1.0):
            path = np.cumsum(noise + mean, axis=1)
            enough = np.column_stack([path[:, :-1] >= 1.0, np.ones(len(path), dtype=bool)])
            last = np.argmax(enough, axis=1)
            accused.append(np.mean(path[np.arange(len(path)), last] >= 0.5 * (last + 1.0)))
        assert accused[1] - accused[0] > stated + 0.02

    @pytest.mark.parametrize("release", [Gaussian(2.0, 3), Laplace(2.0, 3), Response(0.3, 3), Guarantee(0.5, 1e-6, 3)])
    @pytest.mark.parametrize("who", [WorstCase(), Relaxed()])
    def test_several_releases_in_one_say_that_they_were_planned(self, release, who) -> None:
        """A ledger of three said so; three releases of one mechanism did not."""
        assert "fixed-plan" in open_keys(who.assess(release, ADD))
        assert "fixed-plan" in open_keys(who.assess(Ledger((release,)), ADD))
        assert who.assess(release, ADD).claim in (Claim.BOUND, Claim.CONDITIONAL)


class TestAStopThatLooksAtTheRecords:
    """One record, noise 10, 100 planned steps; the loop stops before the first step where the loss on it is large.

    The number of steps shows the record with certainty: the truth is 1, whatever the noise.
    """

    @pytest.mark.parametrize("who", [WorstCase(), Membership(), Relaxed()])
    def test_nobody_vouches_for_a_run_that_stopped(self, who) -> None:
        for steps in (1, 100):
            ran = {"noise_multiplier": 10.0, "sample_rate": 1.0, "steps": steps}
            seen = ledger(planned_steps=100, stages=[ran])
            found = assess_seen(who, seen.mechanism(), ADD, Method.EXACT, seen)
            assert found.measure(advantage).upper < 0.39
            assert ("planned-steps" in open_keys(found)) is (steps < 100)

    def test_its_sentence_says_so(self) -> None:
        found = WorstCase().assess(DPSGD(10.0, 1.0, 100), ADD)
        (says,) = [one.says for one in found.conditions if one.key == "planned-steps"]
        assert "neither these records nor their loss decided when to stop" in says

    @pytest.mark.parametrize("steps", [1, 100])  # that it did not stop is an answer as well
    def test_a_budget_of_private_gradients_bounds_the_field_and_nobody_else(self, steps: int) -> None:
        seen = ledger(
            config={"model": {"kind": "logistic"}, "sensitive": {"group": "age", "scope": "whole-data", "budget": 0.1}},
            stages=[{"steps": steps}],
            planned_steps=100,
        )
        for who in (WorstCase(), Membership(), Attribute(2.0)):
            found = assess_seen(who, seen.mechanism(), who.relation, Method.EXACT, seen)
            assert found.claim is Claim.CONDITIONAL
            assert {"same-stop", "planned-steps"} <= open_keys(found)
        recorded = Attribute(SensitivityRecord(steps, Scope.WHOLE_DATA, 0.01, 0.05, 0.02, None, 1.0, 0.1))
        field = assess_seen(recorded, seen.mechanism(), Neighbouring.REPLACE, Method.PROVEN, seen)
        assert field.claim is Claim.BOUND
        assert {one.key: one.status for one in field.conditions}["same-stop"] is Status.CHECKED

"""What ledgers vouch for: only what the code saw, and never more than the form of the model ensures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product

import pytest
from pydantic import ValidationError

from reticent import facts
from reticent.facts.plan import told
from reticent.facts.steps import Randomness, Segment
from reticent.kernel.adversaries import Method, WorstCase
from reticent.kernel.adversaries.from_ledger import assess_seen
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import CONDITIONS, Status
from reticent.kernel.samplers import INDEPENDENT, Sampler
from reticent.mechanisms.gradients import Gradients, GradientsRecord, Obstacle
from reticent.records.ledger import RunLedger
from reticent.records.release import read
from reticent.samplers import Shuffled

HEAD = GradientsRecord(kind=Gradients.LINEAR_HEAD, dimension=5, features="same")
FIXED = GradientsRecord(kind=Gradients.FIXED, dimension=5, features="same", normalised=True)
NETWORK = GradientsRecord(kind=Gradients.ANY, obstacle=Obstacle.NETWORK)
EQUAL = Segment(noise_multiplier=1.0, steps=4, sample_rate=0.1, max_grad_norm=1.0, divisor=10.0)


def data(**changes: object) -> dict[str, object]:
    found = {"name": "adult", "source": "UCI", "commitment": "0" * 64, "dataset_size": 100, "test_size": 0}
    return {**found, "feature_shape": [5], "classes": 3, **changes}


ASKED = {
    "model": {"kind": "logistic"},
    "noise_multiplier": 1.0,
    "max_grad_norm": 1.0,
    "batch_size": 10,
    "steps": 4,
    "sampler": "poisson",
}


def run(
    sampler: Sampler = INDEPENDENT,
    randomness: str = "fresh",
    planned_steps: int = 4,
    config: dict[str, object] | None = None,
    stages: Sequence[dict[str, object]] = ({},),
    **changes: object,
) -> RunLedger:
    document = {
        "created": "2026-01-01T00:00:00+00:00",
        "config": {**ASKED, **(config or {})},
        "data": data(),
        **told([EQUAL.model_copy(update=stage) for stage in stages], sampler, "flat"),
        "facts": {"planned-steps": {"steps": planned_steps}},
        "num_parameters": 15,
        "parameters": [{"name": "1.weight", "shape": [3, 5]}],
        "environment": {
            "optimiser": ["sgd"],
            "device": "cpu",
            "randomness": randomness,
            "seeds": {"initialisation": 0, "split": None, "sampling": None, "noise": None},
            "versions": {},
        },
    }
    return RunLedger.model_validate({**document, **changes})


def watched(randomness: str = "secure generator", **changes: object) -> RunLedger:
    document = {
        "created": "2026-01-01T00:00:00+00:00",
        "sampler": {"drawn": "poisson", "source": "seen", "name": "x", "sample_rate": 0.1},
        "clipping": {"kind": "flat", "source": "seen", "smallest": 1.0, "largest": 1.0},
        "segments": [{"noise_multiplier": 1.0, "steps": 3}],
        "divisor": 10.0,
        "num_parameters": 15,
        "environment": {"optimiser": ["DPOptimizer"], "randomness": randomness, "device": "cpu", "versions": {}},
    }
    return RunLedger.model_validate({**document, **changes})


TWO = {"parameters": [{"name": "w", "shape": [2, 5]}], "num_parameters": 10, "data": data(classes=2)}
NORMALISED = {"config": {"clipping": "normalise"}}
ONE_DIRECTION = GradientsRecord(kind=Gradients.ONE_DIRECTION, dimension=5, features="same")
HARD = GradientsRecord(kind=Gradients.HARD_LABEL_HEAD, dimension=5, features="same")
NOT_SEEN = HEAD.model_copy(update={"features": "not-seen"})
STATED = {
    "sampler": {"drawn": "poisson", "source": "declared", "name": "declared", "sample_rate": 0.1},
    "clipping": {"kind": "flat", "source": "declared", "smallest": 1.0, "largest": 1.0},
}
TWICE = {"drawn": "shuffled", "source": "seen", "name": "x", "batch_size": 10, "times_per_epoch": 2}
ALL = (
    *("poisson-draws", "clipped", "unpredictable-noise", "planned-steps", "drawn-anew", "fixed-plan"),
    *("public-divisor", "start-weights", "base-model"),
)
FORMS = {"one-direction", "hard-label-head", "linear-head", "same-features", "known-share"}
FORMS |= {"fixed-length", "independent-directions"}
MIXED = {facts.MIXES_RECORDS.key: ["1: BatchNorm1d"]}
CHECKED, DECLARED = Status.CHECKED, Status.DECLARED
VOUCHED: dict[str, tuple[RunLedger, dict[str, Status], set[str]]] = {
    "a run": (run(), dict.fromkeys(ALL, CHECKED), FORMS),
    "a head": (
        run(gradients=HEAD),
        dict.fromkeys(("linear-head", "same-features", "known-share"), CHECKED),
        {"one-direction", "hard-label-head", "fixed-length", "independent-directions"},
    ),
    "a head with hard labels": (
        run(gradients=HARD),
        dict.fromkeys(("hard-label-head", "linear-head", "same-features", "known-share"), CHECKED),
        {"one-direction", "fixed-length", "independent-directions"},
    ),
    "normalised gradients": (run(gradients=FIXED, **TWO, **NORMALISED), {"fixed-length": CHECKED}, set()),
    "one direction": (
        run(gradients=ONE_DIRECTION, **TWO),
        {"one-direction": CHECKED, "hard-label-head": CHECKED},
        {"fixed-length", "independent-directions"},
    ),
    "features that nobody saw": (run(gradients=NOT_SEEN), {"linear-head": CHECKED}, {"same-features"}),
    "a network": (run(gradients=NETWORK), {}, FORMS),
    "a seed": (run(randomness=Randomness.REPRODUCIBLE), {}, {"unpredictable-noise"}),
    "shuffled batches": (run(sampler=Shuffled()), {}, {"poisson-draws"}),
    "a model of one's own": (
        run(config={"model": {"kind": "custom", "name": "a:B"}}),
        {},
        {"start-weights", "base-model"},
    ),
    "a model by name": (run(config={"model": "a:B"}), {}, {"start-weights", "base-model"}),
    "no model": (run(config={"model": None}), {}, {"start-weights", "base-model"}),
    "persons": (run(records_per_user=3), {"records-per-person": DECLARED}, set()),
    "persons in a watched loop": (watched(records_per_user=3), {"records-per-person": DECLARED}, set()),
    "a watched loop": (  # what mixes records is not seen
        watched(gradients=HEAD),
        dict.fromkeys(("poisson-draws", "unpredictable-noise", "linear-head"), CHECKED)
        | dict.fromkeys(("clipped", "same-features"), DECLARED),
        {"start-weights", "planned-steps", "hidden-draws"},
    ),
    "what a program declares": (
        watched(**STATED, randomness="torch, default generator"),
        {"poisson-draws": DECLARED, "clipped": DECLARED},
        {"unpredictable-noise"},
    ),
    "other batches": (watched(facts={facts.OTHER_BATCHES.key: "found"}), {}, {"poisson-draws"}),
    "records twice in a pass": (watched(sampler=TWICE), {}, {"shuffled-draws"}),
    "records once in a pass": (
        watched(sampler={**TWICE, "times_per_epoch": 1}),
        {"shuffled-draws": CHECKED},
        {"poisson-draws"},
    ),
    "a void loop": (watched(gradients=HEAD, facts=MIXED), {}, {*CONDITIONS}),
}


@pytest.mark.parametrize("name", VOUCHED)
def test_what_is_vouched_for(name: str) -> None:
    ledger, wanted, left_out = VOUCHED[name]
    found = ledger.vouches()
    assert {key: found.get(key) for key in wanted} == wanted
    assert not left_out & found.keys()
    if name == "a run":
        assert found == wanted


class TestFormOfTheModel:
    @pytest.mark.parametrize(
        "wrong",
        [
            {"kind": "fixed", "dimension": 5},
            {"kind": "fixed", "dimension": 5, "normalised": True, "known_share": 0.1},
            {"kind": "any"},
            {"kind": "any", "obstacle": "bias", "dimension": 5},
            {"kind": "linear-head", "obstacle": "bias", "dimension": 5},
            {"kind": "linear-head"},
            {"kind": "any", "obstacle": "bias", "known_share": 0.1},
        ],
    )
    def test_contradictions_are_refused(self, wrong: dict[str, object]) -> None:
        with pytest.raises(ValidationError):
            GradientsRecord.model_validate(wrong)


class TestWhatRan:
    def test_a_run_that_stopped_counts_as_it_was_planned(self) -> None:
        stopped = run(planned_steps=9)
        assert stopped.mechanism().steps == 9
        assert stopped.equal_steps().steps == stopped.steps == 4
        assert "planned-steps" not in stopped.vouches()  # why it stopped, nobody saw
        assert [facts.STOPPED_EARLY in one.faults for one in (run(), stopped)] == [
            False,
            True,
        ]

    def test_steps_that_did_not_run_count_at_the_least_noise_and_the_largest_rate_of_the_plan(self) -> None:
        schedule = [
            {"at": 6, "noise_factor": 0.5},
            {"at": 8, "batch_size": 30, "max_grad_norm": 0.2, "noise_multiplier": None},
        ]
        stopped = run(planned_steps=9, config={"steps": 9, "schedule": schedule})
        done, left = stopped.mechanism().parts
        assert (done.steps, done.noise_multiplier, done.sample_rate) == (4, stopped.first.noise_multiplier, 0.1)
        assert (left.steps, left.noise_multiplier) == (5, 0.5 * stopped.first.noise_multiplier)
        assert left.max_grad_norm == 0.2
        assert left.sample_rate == pytest.approx(30 / stopped.dataset_size, rel=1e-12, abs=0)

    @pytest.mark.parametrize("schedule", ["soon", [{"at": 6, "noise_multiplier": "0.01"}], [{"at": 6, "noise": 0.01}]])
    def test_steps_that_did_not_run_of_a_plan_that_nobody_can_read_have_no_noise(self, schedule: object) -> None:
        *_, left = run(planned_steps=9, config={"steps": 9, "schedule": schedule}).mechanism().parts
        assert (left.steps, left.noise_multiplier, left.sample_rate) == (5, 0.0, 1.0)

    def test_a_run_of_passes_that_stopped_before_its_clip_norm_changed(self) -> None:
        """There are no stages then, only a plan: `reticent certify` ended in a traceback."""
        schedule = [{"at": 6, "max_grad_norm": 0.5}]
        stopped = run(sampler=Shuffled(), planned_steps=9, config={"steps": 9, "schedule": schedule})
        counted = stopped.mechanism()
        assert (counted.steps, counted.max_grad_norm) == (9, stopped.first.max_grad_norm)

    def test_stages_that_come_back_are_counted_together(self) -> None:
        """Of three stages the first and the last are alike; what was planned beyond them has the least clip norm."""
        stages = ({"steps": 3}, {"steps": 4, "max_grad_norm": 0.5}, {"steps": 2})
        stopped = run(planned_steps=12, stages=stages)
        counted = {part.max_grad_norm: part.steps for part in stopped.mechanism().parts}
        assert counted == {1.0: 3 + 2, 0.5: 4 + 3}

    def test_what_neither_the_watch_saw_nor_the_program_declared_is_assumed(self) -> None:
        """The same numbers, stated by somebody, are declared."""
        ledger = watched()
        seen, stated = (
            {
                one.key: one.status
                for one in assess_seen(
                    WorstCase(), ledger.mechanism(), Neighbouring.ADD_REMOVE, Method.EXACT, by
                ).conditions
            }
            for by in (ledger, None)
        )
        assert (seen["planned-steps"], stated["planned-steps"]) == (Status.ASSUMED, Status.DECLARED)
        assert seen["poisson-draws"] is Status.CHECKED

    def test_a_void_run_keeps_its_clip_norm(self) -> None:
        clipping = {"kind": "flat", "source": "seen", "smallest": 0.5, "largest": 0.5}
        void = watched(clipping=clipping, facts={facts.MIXES_RECORDS.key: ["1: BatchNorm1d"]}).mechanism()
        assert (void.noise_multiplier, void.max_grad_norm) == (0.0, 0.5)

    def test_loops_that_continue_each_other_vouch_for_what_all_of_them_do(self) -> None:
        """The weakest word counts, and the start is that of the first."""
        sampler = {"drawn": "poisson", "source": "declared", "name": "declared", "sample_rate": 0.1}
        start = {"weights": "random", "source": "seen", "commitment": "0" * 64}
        known, unknown = start, {**start, "weights": "unknown", "source": "unknown"}
        other = watched(sampler=sampler, randomness="torch, default generator", start=known, gradients=HEAD)
        plain = watched(start=unknown, gradients=HEAD.model_copy(update={"dimension": 3}))
        for first, last in ((other, plain), (plain, other)):
            found = last.model_copy(update={"earlier": (first,)}).vouches()
            assert found["poisson-draws"] is Status.DECLARED
            assert "unpredictable-noise" not in found
            assert "linear-head" not in found
            assert found.get("start-weights") is (Status.CHECKED if first is other else None)

    def test_a_loop_that_ended_before_the_watch_stopped_it_ended_for_a_reason_that_nobody_saw(self) -> None:
        early = watched(facts={"planned-steps": {"steps": 9, "stop_at": "advantage=0.1"}})
        assert early.mechanism().steps == 9
        assert early.vouches()["planned-steps"] is Status.DECLARED

    def test_a_loop_that_goes_on_after_another_was_not_planned_with_it(self) -> None:
        """Somebody trains up to a risk, looks, and trains up to a larger one: whether may depend on the result."""
        one = watched(facts={"planned-steps": {"steps": 3, "stop_at": "advantage=0.1"}})
        assert one.vouches()["planned-steps"] is Status.CHECKED
        both = one.model_copy(update={"earlier": (one,)})
        assert both.mechanism().steps == 6  # equal loops are one mechanism, which is no ledger with a fixed plan
        assert "planned-steps" not in both.vouches()

    @pytest.mark.parametrize("batches", [1, 2])
    def test_a_record_that_a_pass_draws_twice_counts_at_its_worst_place(self, batches: int) -> None:
        """Brute force over the steps in which two passes of four batches can have put it."""
        sampler = {"drawn": "shuffled", "source": "seen", "name": "x", "batches_per_epoch": 4, "times_per_epoch": 2}
        steps = 8 // batches
        segment = {"noise_multiplier": 1.0, "steps": steps, "batches": batches, "passes": 2}
        places = [range(steps // 2), range(steps // 2), range(steps // 2, steps), range(steps // 2, steps)]
        worst = max(sum(n * n for n in Counter(where).values()) for where in product(*places))
        found = watched(sampler=sampler, segments=[segment]).mechanism()
        assert (found.noise_multiplier, found.sample_rate) == (1.0, 1.0)
        assert found.steps == worst == 8
        unseen = watched(sampler=sampler, segments=[{**segment, "passes": None}]).mechanism()
        assert (unseen.noise_multiplier, unseen.steps) == (1.0 / (2 * batches), steps)

    def test_planned_steps_that_did_not_run_count_as_the_worst_of_what_ran(self) -> None:
        """3 steps of one batch of one pass; 2 steps of two batches, each of two passes. 5 steps are left."""
        segments = [
            {"noise_multiplier": 2.0, "steps": 2, "batches": 2, "passes": 2, "mixed_passes": 2},
            {"noise_multiplier": 1.0, "steps": 3, "passes": 1},
        ]
        sampler = {"drawn": "shuffled", "source": "seen", "name": "x", "batches_per_epoch": 4}
        for order in (segments, segments[::-1]):
            planned = {"planned-steps": {"steps": 10}}
            *_, rest = read(watched(sampler=sampler, segments=order, facts=planned)).segments
            # 5 steps of 2 batches begin ceil(10 / 4) = 3 passes, after one that may be under way
            expected = {"noise_multiplier": 1.0, "steps": 5, "batches": 2, "passes": 4, "mixed_passes": 2}
            assert rest.model_dump(include={*expected}) == expected


def test_a_share_of_everything_is_refused() -> None:
    with pytest.raises(ValidationError):
        GradientsRecord(kind=Gradients.LINEAR_HEAD, dimension=5, known_share=1.0)

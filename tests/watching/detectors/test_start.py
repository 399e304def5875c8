"""What the weights were before a watch: random, left by another watch, or trained by steps that nobody saw."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import reticent as rt
from reticent import facts
from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.proofs import Status
from reticent.records.ledger import RunLedger
from reticent.watching.session import Watch
from reticent.watching.starts import fresh
from tests.watching.loops import (
    BY_HAND,
    NOISE,
    RATE,
    RECORDS,
    Loop,
    by_hand,
    epsilon,
    network,
    private,
    run,
    shuffled,
    void,
    watched,
)

pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook")

ONCE = {"how": {"epochs": 1}}
BEFORE = {facts.STEPS_BEFORE}


def state_of(model):
    return copy.deepcopy(model.state_dict())


def from_weights_of(made):
    """Another loop, as of another process, that begins where this one ended."""
    other = private()
    other[0].load_state_dict(made[0].state_dict())
    return other


def stop(at):
    def after(step):
        if step == at:
            raise KeyboardInterrupt

    return after


def adam_with_a_past():
    """A pass without noise."""
    model, _, loader, criterion = by_hand()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    run(model, optimizer, loader, criterion, epochs=1)
    optimizer.zero_grad()
    return model, optimizer, loader, criterion


def momentum_with_a_past():
    made = private()
    made[1].original_optimizer.param_groups[0]["momentum"] = 0.9
    run(*made, epochs=1)
    return made


def new_weights_under_old_momentum():
    """The momentum of steps without noise moves them in the first step."""
    model, _, loader, criterion = by_hand()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    run(model, optimizer, loader, criterion, epochs=1)
    fresh(model)
    return model, optimizer, loader, criterion


def waiting_gradients():
    """Pieces of a batch that was broken off go into the first step."""
    made = model, optimizer, loader, criterion = shuffled()
    features, labels = next(iter(loader))
    optimizer.signal_skip_step()
    criterion(model(features), labels).backward()
    optimizer.step()
    return made


def released_gradients():
    """Nothing waits, though nothing was cleared."""
    made = shuffled()
    run(*made, epochs=1)
    return made


def random_weights(changed=False):
    made = private()
    fresh(made[0])
    if changed:
        with torch.no_grad():
            next(made[0].parameters()).add_(1.0)
    return made


LOOPS = {
    "an optimizer with a past": BY_HAND.but(made=adam_with_a_past, errors=BEFORE),
    "an optimizer with a past that is declared": BY_HAND.but(made=adam_with_a_past, options={"start": "declared"}),
    "momentum of steps before": Loop(made=momentum_with_a_past, errors=BEFORE),
    "an old momentum under new weights": BY_HAND.but(made=new_weights_under_old_momentum, errors=BEFORE),
    "gradients that wait since before": Loop(made=waiting_gradients, errors=BEFORE, beside=True),
    "gradients that were released before": Loop(made=released_gradients),
    "random weights": Loop(made=random_weights, ledger={"start.weights": "random"}, draws=True),
}


@pytest.mark.parametrize("name", LOOPS)
def test_start(name):
    seen, _ = LOOPS[name].check()
    said = {"random weights": Status.CHECKED, "an optimizer with a past that is declared": Status.DECLARED}
    assert seen.ledger.vouches().get("start-weights") is said.get(name)


def test_random_weights_that_were_changed_are_none():
    assert "start-weights" not in watched(*random_weights(changed=True)).ledger.vouches()


def test_weights_that_cannot_be_drawn_anew_are_named():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.zeros(2))

    with pytest.raises(UnsupportedError, match="Own"):
        fresh(nn.Sequential(Own()))


def test_steps_that_a_trainer_says_it_took_are_seen():
    made = private()
    with Watch(*made[:3], trainer_step=12) as seen:
        run(*made)
    assert facts.STEPS_BEFORE in seen.ledger.faults
    assert (seen.ledger.start.weights, seen.ledger.start.trainer_step) == ("loaded", 12)


def test_the_commitment_to_the_start_is_salted_and_the_salt_is_not_public():
    seen = watched(*private()).ledger
    assert "salt" not in seen.public()["start"]
    assert "start_salt" not in str(seen.public())
    again = watched(*private()).ledger
    assert seen.start.commitment != again.start.commitment


def test_a_ledger_of_before_loads():
    document = watched(*private()).ledger.model_dump(mode="json", by_alias=True)
    del document["start"], document["diagnostics"]["start_salt"]
    old = RunLedger.model_validate(document)
    assert old.start is None
    assert "start-weights" not in old.vouches()


class TestOneAfterTheOther:
    """A second watch of a model continues the first."""

    def test_it_counts_both(self):
        made = private()
        made[1].noise_multiplier = 0.6
        first = watched(*made)
        made[1].noise_multiplier = 3.0
        second = watched(*made)
        assert [(p.noise_multiplier, p.steps) for p in second.mechanism().parts] == [(0.6, 12), (3.0, 12)]
        alone = epsilon(DPSGD(3.0, RATE, 12))
        assert epsilon(second) > epsilon(first) > 10 * alone
        assert list(second.ledger.contradictions()) == []

    def test_ledgers_of_other_processes_are_chained_by_hand(self, tmp_path):
        made = private()
        watched(*made).save(tmp_path / "first.json")
        second = watched(*from_weights_of(made), continues=tmp_path / "first.json")
        assert second.mechanism() == DPSGD(NOISE, RATE, 24, num_parameters=44, dataset_size=RECORDS)
        with pytest.raises(ParameterError, match="ended at these weights"):
            watched(*private(), continues=tmp_path / "first.json")

    def test_certify_takes_a_list_of_ledgers_that_meet(self, quick_documents):
        made = private()
        first = watched(*made)
        second = watched(*from_weights_of(made))
        assert facts.STEPS_BEFORE not in second.ledger.faults
        assert "start-weights" not in second.ledger.vouches()
        whole = rt.certify([first, second])
        assert whole.verify().accepted
        assert whole.certificate.mechanism["steps"] == 24
        apart = rt.certify([second, first]).certificate  # no chain: releases that are composed
        assert [part["steps"] for part in apart.mechanism["parts"]] == [12, 12]

    def test_a_chain_that_was_cut_or_forged_is_noticed(self):
        made = private()
        watched(*made)
        document = watched(*made).ledger.public()
        whole = RunLedger.model_validate(document)
        assert list(whole.contradictions()) == []
        assert RunLedger.model_validate(whole.model_dump(mode="json", by_alias=True)) == whole
        document["earlier"][0]["weights_sha256"] = "0" * 64
        forged = RunLedger.model_validate(document)
        assert {"digest", "earlier.0", "earlier.0.digest"} <= {field for field, _ in forged.contradictions()}

    def test_faults_of_an_earlier_loop_stay(self):
        made = private()
        torch.manual_seed(0)
        assert void(watched(*made))
        torch.seed()
        second = watched(*made)
        assert facts.PUBLIC_SEED in second.ledger.faults
        assert void(second)

    def test_a_plan_of_the_first_of_three_loops_that_was_not_finished_contradicts_nothing(self):
        """It followed from no fact of the second loop, whose ledger had it: the third contradicted itself."""
        made = private()
        watched(*made, planned_steps=40)
        watched(*made)
        third = watched(*made).ledger
        assert facts.STOPPED_BEFORE_PLAN in third.faults
        assert not list(third.contradictions())
        assert sum(part.steps for part in third.mechanism().parts) == 40 + 12 + 12

    def test_a_fault_of_an_earlier_loop_that_voids_nothing_contradicts_nothing(self):
        made = private()
        with rt.watch(*made[:3]) as first:
            run(*made, epochs=1)
            schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(made[1].original_optimizer)
            schedule.step(1.0)
        second = watched(*made)
        assert facts.METRIC_SCHEDULE in set(first.ledger.faults) & set(second.ledger.faults)
        assert not list(second.ledger.contradictions())

    def test_steps_between_two_watches_are_seen(self):
        made = private()
        watched(*made)
        run(*made, epochs=1)
        assert facts.STEPS_BEFORE in watched(*made).ledger.faults

    @pytest.mark.parametrize("which", [(0, 1, 2), (0, 2), (1, 2), (2, 0, 1), (2, 1)])
    def test_loops_in_turn_count_once_in_any_list(self, which, quick_documents):
        """Three watches in turn, in the order in which they ran, were refused as not in this order."""
        made = private()
        seen = [watched(*made, **ONCE) for _ in range(3)]
        found = rt.certify([seen[place] for place in which]).certificate
        assert sum(part["steps"] for part in found.mechanism.get("parts", [found.mechanism])) == 18
        assert (found.ledger is not None) == (list(which) == sorted(which))

    def test_loops_in_turn_and_another_release(self, quick_documents):
        made = private()
        seen = [watched(*made, **ONCE) for _ in range(2)]
        found = rt.certify([*seen, watched(*private(), **ONCE)]).certificate
        assert sum(part["steps"] for part in found.mechanism["parts"]) == 18
        assert len(found.declared.releases) == 3

    def test_parts_about_other_numbers_of_parameters_stay_apart(self):
        made = private()
        first = watched(*made, **ONCE)
        for p in list(made[0].parameters())[:2]:
            p.requires_grad_(False)
        second = watched(*made, **ONCE)
        assert [part.num_parameters for part in second.mechanism().parts] == [44, 14]
        assert first.ledger.steps == 6

    @pytest.mark.parametrize("wrote", [False, True])
    def test_a_loop_that_ended_with_an_error_is_continued_where_its_last_step_left_it(self, wrote):
        made = private()
        watch = rt.watch(*made[:3])
        with pytest.raises(KeyboardInterrupt), watch:
            run(*made, after=stop(2))
        if wrote:
            next(made[0].parameters()).data.add_(1.0)
        second = watched(*made, **ONCE)
        assert (facts.STEPS_BEFORE in second.ledger.faults) == wrote
        if not wrote:
            assert sum(one.steps for one in (*second.ledger.earlier, second.ledger)) == 8
            assert second.mechanism().noise_multiplier == NOISE
            assert list(second.ledger.contradictions()) == []
        assert facts.ENDED_EARLY in watch.ledger.faults

    def test_a_model_that_is_put_back_to_its_start(self):
        model = network()
        start = state_of(model)
        for _ in range(3):
            model.load_state_dict(start)
            seen, _ = BY_HAND.but(made=lambda: by_hand(model)).watched()
            assert not void(seen)
            assert not seen.ledger.earlier

    @pytest.mark.parametrize("back", ["to a step between", "with the old momentum"])
    def test_a_model_that_is_put_back_elsewhere(self, back):
        model, _, loader, criterion = by_hand()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        made = model, optimizer, loader, criterion
        start = state_of(model)
        with rt.watch(*made[:3]) as seen:
            BY_HAND.run(made, seen)
            if back == "to a step between":
                start = state_of(model)
                optimizer.state.clear()
            BY_HAND.run(made, seen)
        model.load_state_dict(start)
        if back == "to a step between":
            made = by_hand(model, loader)
        seen, _ = BY_HAND.but(made=lambda: made).watched()
        assert facts.STEPS_BEFORE in seen.ledger.faults

    def test_a_new_watch_for_each_of_very_many_passes_is_refused_before_it_trains(self, monkeypatch):
        monkeypatch.setattr("reticent.watching.detectors.start.MOST_EARLIER", 2)
        made = by_hand()
        for _ in range(3):
            seen, _ = BY_HAND.but(made=lambda: made).watched()
        with pytest.raises(ParameterError, match="same watch again"), rt.watch(*made[:3]):
            pytest.fail("the loop began")
        assert len(seen.ledger.earlier) == 2


class TestEnteredAgain:
    """One watch around each pass over the data."""

    def test_ten_entries_are_ten_passes(self):
        made = shuffled()
        watch = rt.watch(*made[:3])
        for _ in range(10):
            with watch:
                run(*made, epochs=1)
        assert watch.ledger.segments[0].passes == 10
        assert watch.mechanism().steps == 60
        assert epsilon(watch) == pytest.approx(epsilon(rt.Gaussian(NOISE, 10)), rel=1e-6, abs=0)
        assert not void(watch)

    @pytest.mark.parametrize("wrote", [False, True])
    def test_what_moves_the_weights_between_two_entries_is_seen(self, wrote):
        made = private()
        watch = rt.watch(*made[:3])
        with watch:
            run(*made, epochs=1)
        if wrote:
            next(made[0].parameters()).data.sub_(1.0)
        else:
            run(*made, epochs=1, most=1)
        with watch:
            run(*made, epochs=1)
        assert void(watch)
        assert facts.WEIGHTS_CHANGED in watch.ledger.faults or not wrote

    def test_entering_twice_at_once_is_refused(self):
        made = private()
        watch = rt.watch(*made[:3])
        with watch:
            with pytest.raises(ParameterError, match="entered twice"):
                watch.__enter__()
            run(*made, epochs=1)

    @pytest.mark.parametrize("when", ["not", "before the error", "after the block"])
    def test_after_an_error_it_goes_on(self, when):
        """As in a notebook: the weights are those of the last step, unless somebody wrote them."""
        made = private()

        def write():
            with torch.no_grad():
                next(iter(made[0].parameters())).add_(0.1)

        def fail(step):
            if step == 3 and when == "before the error":
                write()
            stop(3)(step)

        watch = rt.watch(*made[:3])
        with pytest.raises(KeyboardInterrupt), watch:
            run(*made, after=fail)
        if when == "after the block":
            write()
        with watch:
            run(*made, epochs=1)
        if when == "not":
            assert watch.mechanism() == DPSGD(NOISE, RATE, 9, num_parameters=44, dataset_size=RECORDS)
        else:
            assert facts.WEIGHTS_CHANGED in watch.ledger.faults

    @pytest.mark.parametrize("written", [True, False])
    def test_weights_that_are_written_while_a_watch_sees_no_step(self, written):
        """The ledger begins at the weights before: weights from a generator, as it said."""
        made = private(model=fresh(network()))
        with rt.watch(*made[:3]) as seen:
            if written:
                next(iter(made[0].parameters())).data[0, 0] += 0.5
        with seen:
            run(*made)
        assert void(seen) == written
        assert ("start-weights" in seen.ledger.vouches()) != written


class TestFederatedRounds:
    """One model that is averaged with others after each round: no loop begins where another ended."""

    @staticmethod
    def rounds(start, count=3):
        made, seen = private(), []
        for _ in range(count):
            seen.append(watched(*made, start=start, **ONCE))
            with torch.no_grad():
                for p in made[0].parameters():
                    p.copy_(0.5 * (p + torch.randn_like(p)))
        return seen

    def test_they_are_certified_together(self, tmp_path, quick_documents):
        seen = self.rounds("declared")
        whole = rt.certify(seen)
        assert whole.verify().accepted
        files = [tmp_path / f"{place}.json" for place in range(3)]
        for one, file in zip(seen, files, strict=True):
            one.save(file)
        for found in (whole, rt.certify(files)):
            parts = found.certificate.mechanism["parts"]
            assert sum(part["steps"] for part in parts) == 18
            assert {part["noise_multiplier"] for part in parts} == {NOISE}

    def test_messages_name_what_works(self):
        first, second, _ = self.rounds(None)
        assert void(second)
        assert "rt.certify([first, second])" in facts.STEPS_BEFORE.remedy
        with pytest.raises(ParameterError, match=r"start='declared' and certify all ledgers together"):
            watched(*private(), continues=first)

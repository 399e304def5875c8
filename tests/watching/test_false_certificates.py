"""Loops that a watch once certified falsely: each has the right number now, a fault, or a condition."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils import parameters_to_vector
from torch.utils.data import DataLoader

import reticent as rt
from reticent import facts
from reticent.errors import ParameterError, UnsupportedError
from reticent.mechanisms import DPSGD
from reticent.proofs import Status
from reticent.records.ledger import RunLedger
from reticent.watching.optimisers import before_1_6
from reticent.watching.starts import fresh
from tests.watching.loops import (
    BATCH,
    NOISE,
    RATE,
    RECORDS,
    adaptive_noise,
    epsilon,
    network,
    private,
    records,
    run,
    shuffled,
    void,
    watched,
)


class TestPhases:
    """Loop 1: what ran before the watch."""

    def test_a_second_watch_of_a_model_continues_the_first(self):
        made = private()
        made[1].noise_multiplier = 0.6
        first = watched(*made)
        made[1].noise_multiplier = 3.0
        second = watched(*made)
        parts = second.mechanism().parts
        assert [(p.noise_multiplier, p.steps) for p in parts] == [(0.6, 12), (3.0, 12)]
        alone = epsilon(DPSGD(3.0, RATE, 12))
        assert epsilon(second) > epsilon(first) > 10 * alone
        assert list(second.ledger.contradictions()) == []

    def test_ledgers_of_other_processes_are_chained_by_hand(self, tmp_path):
        made = private()
        watched(*made).save(tmp_path / "first.json")
        other = private()
        other[0].load_state_dict(made[0].state_dict())
        second = watched(*other, continues=tmp_path / "first.json")
        assert second.mechanism() == DPSGD(NOISE, RATE, 24, num_parameters=44, dataset_size=RECORDS)
        third = private()
        with pytest.raises(ParameterError, match="ended at these weights"):
            watched(*third, continues=tmp_path / "first.json")

    def test_certify_takes_a_list_of_ledgers_that_meet(self, quick_documents):
        made, other = private(), private()
        first = watched(*made)
        other[0].load_state_dict(made[0].state_dict())
        second = watched(*other)
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
        del schedule
        second = watched(*made)
        assert facts.METRIC_SCHEDULE in set(first.ledger.faults) & set(second.ledger.faults)
        assert not list(second.ledger.contradictions())

    def test_steps_of_the_optimizer_before_the_watch_are_seen_in_its_state(self):
        model = network()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for features, labels in DataLoader(records(), batch_size=BATCH):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(features), labels).backward()
            optimizer.step()
        optimizer.zero_grad()
        with rt.watch(model, optimizer) as seen:
            seen.step(noise_multiplier=3.0)
        assert facts.STEPS_BEFORE in seen.ledger.faults
        assert void(seen)
        with rt.watch(model, optimizer, start="declared") as told:
            told.step(noise_multiplier=3.0)
        assert not void(told)
        assert told.ledger.vouches()["start-weights"] is Status.DECLARED

    def test_momentum_betrays_steps_before(self):
        made = private()
        made[1].original_optimizer.param_groups[0]["momentum"] = 0.9
        run(*made, epochs=1)
        assert facts.STEPS_BEFORE in watched(*made).ledger.faults

    def test_steps_between_two_watches_are_seen(self):
        made = private()
        watched(*made)
        run(*made, epochs=1)
        assert facts.STEPS_BEFORE in watched(*made).ledger.faults

    @pytest.mark.filterwarnings("ignore:Full backward hook")
    def test_gradients_that_wait_since_before_are_seen(self):
        """Found by the fuzzer: pieces of a batch that was broken off went into the first step of the next watch."""
        model, optimizer, loader, criterion = shuffled()
        features, labels = next(iter(loader))
        optimizer.signal_skip_step()
        criterion(model(features), labels).backward()
        optimizer.step()
        seen = watched(model, optimizer, loader, criterion)
        assert facts.STEPS_BEFORE in seen.ledger.faults
        made = shuffled()
        run(*made, epochs=1)  # released, though not cleared: nothing waits
        assert facts.STEPS_BEFORE not in watched(*made).ledger.faults

    def test_steps_that_a_trainer_says_it_took_are_seen(self):
        from reticent.watching.session import Watch

        made = private()
        with Watch(*made[:3], trainer_step=12) as seen:
            run(*made)
        assert facts.STEPS_BEFORE in seen.ledger.faults
        assert (seen.ledger.start.weights, seen.ledger.start.trainer_step) == ("loaded", 12)

    def test_random_weights_are_checked_where_they_were_drawn_in_sight(self):
        made = private()
        fresh(made[0])
        seen = watched(*made)
        assert seen.ledger.start.weights == "random"
        assert seen.ledger.vouches()["start-weights"] is Status.CHECKED
        other = private()
        fresh(other[0])
        with torch.no_grad():
            next(other[0].parameters()).add_(1.0)
        assert "start-weights" not in watched(*other).ledger.vouches()

    def test_weights_that_cannot_be_drawn_anew_are_named(self):
        class Own(nn.Module):
            def __init__(self):
                super().__init__()
                self.w = nn.Parameter(torch.zeros(2))

        with pytest.raises(UnsupportedError, match="Own"):
            fresh(nn.Sequential(Own()))

    def test_the_commitment_to_the_start_is_salted_and_the_salt_is_not_public(self):
        seen = watched(*private()).ledger
        assert "salt" not in seen.public()["start"]
        assert "start_salt" not in str(seen.public())
        again = watched(*private()).ledger
        assert seen.start.commitment != again.start.commitment

    def test_a_ledger_of_before_loads(self):
        document = watched(*private()).ledger.model_dump(mode="json", by_alias=True)
        del document["start"], document["diagnostics"]["start_salt"]
        old = RunLedger.model_validate(document)
        assert old.start is None
        assert "start-weights" not in old.vouches()


class TestEnteredAgain:
    """Loop 2: one watch around each pass over the data."""

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

    def test_steps_between_two_entries_are_seen(self):
        made = private()
        watch = rt.watch(*made[:3])
        with watch:
            run(*made, epochs=1)
        run(*made, epochs=1, most=1)
        with watch:
            run(*made, epochs=1)
        assert void(watch)

    def test_a_write_by_data_between_two_entries_is_seen(self):
        made = private()
        watch = rt.watch(*made[:3])
        with watch:
            run(*made, epochs=1)
        next(made[0].parameters()).data.sub_(1.0)
        with watch:
            run(*made, epochs=1)
        assert facts.WEIGHTS_CHANGED in watch.ledger.faults

    def test_entering_twice_at_once_is_refused(self):
        made = private()
        watch = rt.watch(*made[:3])
        with watch:
            with pytest.raises(ParameterError, match="entered twice"):
                watch.__enter__()
            run(*made, epochs=1)


class TestWithoutOptimizer:
    """Loop 5: updates by hand."""

    def loop(self, updates, write, size=None):
        model, loader = network(), DataLoader(records(), batch_size=BATCH, shuffle=True)
        with rt.watch(model, None, loader) as seen:
            done = 0
            while done < updates:
                for features, labels in loader:
                    nn.functional.cross_entropy(model(features), labels).backward()
                    for p in model.parameters():
                        write(p)
                        p.grad = None
                    done += 1
                    if done == updates:
                        break
            seen.step(noise_multiplier=1.0, batch_size=size)
        return seen

    @staticmethod
    def counted(p):
        with torch.no_grad():
            p.sub_(0.1 * p.grad)

    @staticmethod
    def uncounted(p):
        p.data.sub_(0.1 * p.grad)

    @pytest.mark.parametrize("write", ["counted", "uncounted"])
    @pytest.mark.parametrize("size", [None, BATCH])
    def test_many_updates_are_not_one_step(self, write, size):
        seen = self.loop(200, getattr(self, write), size)
        truth = rt.Gaussian(1.0, 34)  # passes, were there noise
        assert void(seen) or epsilon(seen) >= epsilon(truth)

    def test_updates_after_the_last_step(self):
        model = network()
        with rt.watch(model) as seen:
            seen.step(noise_multiplier=1.0)
            for p in model.parameters():
                p.data.sub_(0.1)
        assert facts.UNRECORDED_STEPS in seen.ledger.faults

    def test_one_update_for_each_step_is_right(self):
        model = network()
        with rt.watch(model) as seen:
            for _ in range(5):
                for p in model.parameters():
                    with torch.no_grad():
                        p.mul_(0.99).sub_(0.1)
                seen.step(noise_multiplier=1.0)
        assert facts.UNRECORDED_STEPS not in seen.ledger.faults


class TestLookingHarmsNothing:
    """The look at a record alone leaves no trace in the loop."""

    @pytest.mark.filterwarnings("ignore:Full backward hook")
    @pytest.mark.parametrize("wrap", [True, False])
    @pytest.mark.parametrize("mode", ["hooks", "functorch", "ghost"])
    def test_a_model_that_is_one_layer(self, mode, wrap):
        from opacus import PrivacyEngine

        found = []
        for look in (True, False):
            torch.manual_seed(5)
            model = nn.Linear(4, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            with pytest.warns(UserWarning, match="Secure RNG"):
                made = PrivacyEngine().make_private(
                    module=model,
                    optimizer=optimizer,
                    data_loader=DataLoader(records(), batch_size=BATCH),
                    noise_multiplier=NOISE,
                    max_grad_norm=1.0,
                    grad_sample_mode=mode,
                    criterion=nn.CrossEntropyLoss(),
                    wrap_model=wrap,
                )
            _, private_optimizer, *criterion, loader = made
            criterion = criterion[0] if criterion else nn.CrossEntropyLoss()
            called = made[0] if wrap else model
            if look:
                with rt.watch(called, private_optimizer, loader):
                    run(called, private_optimizer, loader, criterion)
            else:
                run(called, private_optimizer, loader, criterion)
            torch.seed()
            found.append(parameters_to_vector(model.parameters()).detach())
        assert torch.equal(*found)

    def test_hooks_of_the_program_see_their_own_passes_only(self):
        model, seen = network(), []
        for layer in model:
            layer.register_full_backward_hook(lambda *_: seen.append(1))
            layer.register_forward_hook(lambda *_: seen.append(2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with rt.watch(model, optimizer) as ledger:
            inputs = torch.randn(5, 4, requires_grad=True)
            model(inputs).square().sum().backward()
            optimizer.step()
            ledger.step(noise_multiplier=1.0)
        assert sorted(seen) == [1] * 3 + [2] * 3


class TestFalseAlarms:
    """Loop 8, and what is refused at the door."""

    @pytest.mark.filterwarnings("ignore")
    @pytest.mark.skipif(before_1_6(), reason="adaptive ghost clipping of Opacus 1.5 is void")
    def test_adaptive_ghost_clipping_keeps_its_noise(self):
        from opacus.utils.adaptive_clipping.adaptive_clipping_utils import PrivacyEngineAdaptiveClipping

        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model, optimizer, criterion, loader = PrivacyEngineAdaptiveClipping().make_private(
            module=model,
            optimizer=optimizer,
            data_loader=DataLoader(records(), batch_size=RECORDS // 2),  # Opacus wants 12
            noise_multiplier=NOISE,
            max_grad_norm=1.0,
            grad_sample_mode="ghost",
            criterion=nn.CrossEntropyLoss(),
        )
        criterion.criterion.reduction = "none"  # forgotten by Opacus 1.6.0
        seen = watched(model, optimizer, loader, criterion, how={"epochs": 6})
        assert facts.UNCLIPPED not in seen.ledger.faults
        assert facts.CHANGED_NOISE not in seen.ledger.faults
        assert [s.noise_multiplier for s in seen.ledger.segments] == [pytest.approx(NOISE, rel=1e-12, abs=0)]

    def test_rounding_of_a_computer_is_no_other_noise(self):
        found = set()
        for size in range(12, 400):
            adjusted = (NOISE**-2 - (size / 10.0) ** -2) ** -0.5
            found.add(adaptive_noise(adjusted, NOISE, size))
        assert max(found) <= NOISE
        assert max(found) <= min(found) * (1 + 1e-12)
        seen = watched(*private()).ledger
        first = seen.segments[0]
        near = first.model_copy(update={"noise_multiplier": NOISE * (1 + 2e-16)})
        both = seen.model_copy(update={"segments": (first, near)})
        assert facts.CHANGED_NOISE not in both.faults
        other = seen.model_copy(
            update={"segments": (first, first.model_copy(update={"noise_multiplier": NOISE + 1e-6}))}
        )
        assert facts.CHANGED_NOISE in other.faults

    def test_a_wrong_optimizer_is_refused_at_the_door(self):
        made = private()
        with pytest.raises(ParameterError, match="private one"):
            rt.watch(made[0], made[1].original_optimizer, made[2])
        with pytest.raises(ParameterError, match="private one"):
            rt.watch(made[0], None, made[2])
        with pytest.raises(ParameterError, match="parameters of this model"):
            rt.watch(network(), torch.optim.SGD(network().parameters(), lr=0.1))
        with pytest.raises(ParameterError, match="optimizer of torch"):
            rt.watch(network(), "adam")


class TestFederatedRounds:
    """One model that is averaged with others after each round: no loop begins where another ended."""

    @staticmethod
    def rounds(start, count=3):
        made, seen = private(), []
        for _ in range(count):
            seen.append(watched(*made, start=start, how={"epochs": 1}))
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


@pytest.mark.parametrize("which", [(0, 1, 2), (0, 2), (1, 2), (2, 0, 1), (2, 1)])
def test_loops_in_turn_count_once_in_any_list(which, quick_documents):
    """Three watches in turn, in the order in which they ran, were refused as not in this order."""
    made = private()
    seen = [watched(*made, how={"epochs": 1}) for _ in range(3)]
    found = rt.certify([seen[place] for place in which]).certificate
    assert sum(part["steps"] for part in found.mechanism.get("parts", [found.mechanism])) == 18
    assert (found.ledger is not None) == (list(which) == sorted(which))


def test_loops_in_turn_and_another_release(quick_documents):
    made = private()
    seen = [watched(*made, how={"epochs": 1}) for _ in range(2)]
    other = watched(*private(), how={"epochs": 1})
    found = rt.certify([*seen, other]).certificate
    assert sum(part["steps"] for part in found.mechanism["parts"]) == 18
    assert len(found.declared.releases) == 3

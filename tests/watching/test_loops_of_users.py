"""Loops as people write them: a ledger once stated less than what ran, or voided or broke them for nothing."""

from __future__ import annotations

import copy
import io
import types
from dataclasses import replace

import pytest
import torch
import torch._dynamo
from opacus.data_loader import DPDataLoader
from torch import nn
from torch.utils.data import DataLoader

import reticent as rt
from reticent import facts
from reticent.errors import ParameterError
from reticent.mechanisms import DPSGD
from reticent.risk import advantage
from tests.conftest import some
from tests.watching.loops import (
    BATCH,
    NOISE,
    RATE,
    epsilon,
    network,
    plain_step,
    private,
    records,
    run,
    shuffled,
    void,
    watched,
)

pytestmark = pytest.mark.filterwarnings("ignore")


def by_hand(model=None, workers=0, poisson=True):
    """(model, optimizer, loader) of a loop that clips and adds noise by itself."""
    model = model or network()
    loader = DataLoader(records(), batch_size=BATCH, shuffle=not poisson, num_workers=workers)
    loader = DPDataLoader.from_data_loader(loader) if poisson else loader
    return model, torch.optim.SGD(model.parameters(), lr=0.1), loader


def stepped(seen, model, optimizer, loader, every=1, most=None):
    for index, (features, labels) in enumerate(loader):
        if index == most:
            break
        if (index + 1) % every == 0:
            plain_step(model, features, labels, NOISE, 1.0)
            optimizer.step()
            seen.step(noise_multiplier=NOISE, max_grad_norm=1.0)


class TestClippingByHand:
    """Opacus's noise and divisor are used, and its clipping is not."""

    @staticmethod
    def unclipped(optimizer):
        for p in optimizer.params:
            p.summed_grad = 5 * p.grad_sample.sum(0)

    @pytest.mark.parametrize("said", [None, "flat"])
    def test_noise_on_a_sum_of_the_programs_own(self, said):
        model, optimizer, loader, criterion = private()
        with rt.watch(model, optimizer, loader, clipping=said) as seen:
            for features, labels in loader:
                optimizer.zero_grad()
                criterion(model(features), labels).backward()
                self.unclipped(optimizer)
                optimizer.add_noise()
                optimizer.scale_grad()
                optimizer.original_optimizer.step()
        assert void(seen) == (said is None)
        assert (facts.UNKNOWN_CLIPPING if said is None else facts.DECLARED) in seen.ledger.faults

    def test_the_parts_of_a_step_one_by_one_are_the_same_step(self):
        model, optimizer, loader, criterion = private()
        with rt.watch(model, optimizer, loader) as seen:
            for features, labels in loader:
                optimizer.zero_grad()
                criterion(model(features), labels).backward()
                optimizer.clip_and_accumulate()
                optimizer.add_noise()
                optimizer.scale_grad()
                optimizer.original_optimizer.step()
        assert seen.mechanism().noise_multiplier == NOISE

    def test_clipping_that_is_exchanged_on_the_way(self):
        made = private()
        with rt.watch(*made[:3]) as seen:
            run(*made, epochs=1)
            made[1].clip_and_accumulate = mine = types.MethodType(self.unclipped, made[1])
            run(*made, epochs=1)
        assert void(seen)
        assert made[1].clip_and_accumulate is mine  # what the program put there stays there


class TestPlans:
    """A risk at which a loop stops is that of all that its certificate counts."""

    def test_what_an_earlier_watch_saw_counts(self):
        made = private()
        with rt.watch(*made[:3]) as first:
            run(*made, epochs=1)
        with rt.watch(*made[:3], stop_at="epsilon=4@1e-5") as second:
            run(*made, epochs=100)
        assert epsilon(second) <= 4.0
        both = DPSGD(noise_multiplier=NOISE, sample_rate=RATE, steps=len(first) + len(second))
        assert epsilon(replace(both, steps=both.steps + 1)) > 4.0
        assert second.risk().advantage > 0.999 * advantage(rt.assess(both)[0].curve)

    def test_a_target_that_an_earlier_watch_exceeded(self):
        made = private()
        with rt.watch(*made[:3]):
            run(*made, epochs=3)
        with pytest.raises(ParameterError, match="all that ran before"), rt.watch(*made[:3], stop_at="epsilon=2@1e-5"):
            run(*made)

    def test_passes_that_are_broken_off(self):
        made = shuffled()
        with rt.watch(*made[:3], stop_at="epsilon=20@1e-5") as seen:
            run(*made, epochs=1)
            run(*made, epochs=50, most=2)
        assert 15.0 < epsilon(seen) <= 20.0
        assert len(seen) < 60

    def test_batches_of_another_loader_later(self):
        made, other = private(), DataLoader(records(), batch_size=BATCH, shuffle=True)
        with rt.watch(*made[:3], stop_at="epsilon=4@1e-5") as seen:
            run(*made, epochs=1)
            with pytest.raises(ParameterError, match="these batches"):
                run(made[0], made[1], other, made[3], epochs=10)
        assert len(seen) == 7


class TestBatchesBehindWorkers:
    """Workers draw ahead, so nobody sees which batches a step of one's own added up, unless it says its size."""

    @pytest.mark.parametrize("poisson", [True, False])
    def test_batches_that_are_added_up(self, poisson):
        made = by_hand(workers=1, poisson=poisson)
        with rt.watch(*made) as seen:
            for _ in range(2):
                stepped(seen, *made, every=3)
        assert all(segment.batches >= 3 for segment in seen.ledger.segments)
        assert facts.ACCUMULATION in seen.ledger.faults

    def test_one_batch_for_each_step(self):
        made = by_hand(workers=1)
        with rt.watch(*made) as seen:
            for _ in range(3):
                stepped(seen, *made)
        assert {segment.batches for segment in seen.ledger.segments} == {1}
        assert seen.mechanism().noise_multiplier == NOISE

    def test_passes_that_are_broken_off(self):
        made = by_hand(workers=1)
        with rt.watch(*made) as seen:
            for _ in range(3):
                stepped(seen, *made, most=2)
        assert {segment.batches for segment in seen.ledger.segments} == {1}


class TestTrainedNumbers:
    """Few trained numbers hide less from an attacker who does not know the direction, so the fewest count."""

    @pytest.mark.parametrize("first", [True, False])
    def test_a_head_is_trained_alone_for_a_while(self, first):
        made = private()
        body = made[0]._module[0]

        def freeze(frozen):
            made[1].zero_grad()
            for p in body.parameters():
                p.requires_grad = not frozen

        freeze(first)
        with rt.watch(*made[:3]) as seen:
            run(*made, epochs=1)
            freeze(not first)
            run(*made, epochs=1)
        assert seen.ledger.num_parameters == 14

    def test_an_optimizer_that_moves_the_head_only(self):
        model, _, loader = by_hand()
        optimizer = torch.optim.SGD(model[2].parameters(), lr=0.1)
        with rt.watch(model, optimizer, loader) as seen:
            stepped(seen, model, optimizer, loader)
        assert seen.ledger.num_parameters == 14


class Both(torch.optim.Optimizer):
    """Matrices by one optimizer and the rest by another, as Muon is used; then all is drawn towards a slow copy."""

    def __init__(self, model):
        super().__init__(model.parameters(), {})
        own = list(model.parameters())
        self.parts = [torch.optim.SGD([p for p in own if (p.ndim == 2) == flat], lr=0.1) for flat in (True, False)]
        self.slow = [p.detach().clone() for p in own]

    def step(self, closure=None):
        if closure is not None:
            closure()
        for part in self.parts:
            part.step()
        with torch.no_grad():
            for p, slow in zip(self.param_groups[0]["params"], self.slow, strict=True):
                p.copy_(slow.lerp_(p, 0.5))


class TestOptimizersOfOptimizers:
    """A step within a step of the optimizer that is watched is a part of it, and no step of another one."""

    def test_inside_a_private_one(self):
        made = private()
        made[1].original_optimizer = Both(made[0])
        assert not void(watched(*made))

    def test_in_a_loop_of_ones_own(self):
        model, _, loader = by_hand()
        optimizer = Both(model)
        with rt.watch(model, optimizer, loader) as seen:
            stepped(seen, model, optimizer, loader)
        assert not void(seen)

    def test_what_a_closure_steps_is_no_part(self):
        model, optimizer, loader = by_hand()
        other = torch.optim.SGD(model.parameters(), lr=0.1)
        with rt.watch(model, optimizer, loader) as seen:
            for features, labels in loader:
                plain_step(model, features, labels, NOISE, 1.0)
                optimizer.step(other.step)
                seen.step(noise_multiplier=NOISE, max_grad_norm=1.0)
        assert facts.OTHER_OPTIMISER in seen.ledger.faults


class TestTheSameModelAgain:
    def test_a_model_that_is_put_back_to_its_start(self):
        model = network()
        start = copy.deepcopy(model.state_dict())
        for _ in range(3):
            model.load_state_dict(start)
            made = by_hand(model)
            with rt.watch(*made) as seen:
                stepped(seen, *made)
            assert not void(seen)
            assert not seen.ledger.earlier

    @pytest.mark.parametrize("back", ["to a step between", "with the old momentum"])
    def test_a_model_that_is_put_back_elsewhere(self, back):
        model, _, loader = by_hand()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        start = copy.deepcopy(model.state_dict())
        with rt.watch(model, optimizer, loader) as seen:
            stepped(seen, model, optimizer, loader)
            if back == "to a step between":
                start = copy.deepcopy(model.state_dict())
                optimizer.state.clear()
            stepped(seen, model, optimizer, loader)
        model.load_state_dict(start)
        if back == "to a step between":
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with rt.watch(model, optimizer, loader) as seen:
            stepped(seen, model, optimizer, loader)
        assert facts.STEPS_BEFORE in seen.ledger.faults

    def test_a_new_watch_for_each_of_very_many_passes_is_refused_before_it_trains(self, monkeypatch):
        monkeypatch.setattr("reticent.watching.detectors.start.MOST_EARLIER", 2)
        made = by_hand()
        for _ in range(3):
            with rt.watch(*made) as seen:
                stepped(seen, *made)
        with pytest.raises(ParameterError, match="same watch again"), rt.watch(*made):
            pytest.fail("the loop began")
        assert len(seen.ledger.earlier) == 2


class TestFilesOfTheModel:
    @pytest.mark.parametrize("model", [network(), nn.Linear(4, 2, bias=False)], ids=["network", "linear"])
    def test_a_model_that_is_saved_as_a_whole_holds_nothing_of_the_watch(self, model):
        """What a linear layer was compared with are numbers of all records: a checkpoint with them tells who is in."""
        made, files = private(model=model), [io.BytesIO() for _ in range(9)]
        with rt.watch(*made[:3]) as seen:
            run(*made, epochs=1, after=lambda step: torch.save(made[0]._module, files[step]))
        assert b"_Rows" not in files[1].getvalue()
        assert b"DPOptimizer" not in files[1].getvalue()
        files[len(seen)].seek(0)
        again = torch.load(files[len(seen)], weights_only=False)
        assert torch.equal(again(torch.ones(1, 4)), made[0](torch.ones(1, 4)))
        assert not void(seen)
        run(*private(), epochs=1)  # a private optimizer that is read from a file breaks Opacus

    def test_extra_state_that_is_no_tensor(self):
        class Scaled(nn.Linear):
            scale = 1.0

            def get_extra_state(self):
                return {"scale": self.scale}

        made = private(model=nn.Sequential(Scaled(4, 2)), mode="functorch")
        assert not void(watched(*made))
        with rt.watch(*made[:3]) as seen:
            run(*made, epochs=1)
            made[0]._module[0].scale = 2.0
        assert facts.BUFFERS_LEARNT in seen.ledger.faults


COMPILED = "inside", "outside", "in place", "one graph"


class Centred(nn.Module):
    def forward(self, x):
        return x - x.mean(0, keepdim=True)


class TestWhereNobodyLooked:
    """Records that the forward pass mixes, where the look at it failed and nobody was told."""

    @pytest.mark.parametrize(
        ("how", "mixes"),
        some([(how, mixes) for mixes in (True, False) for how in COMPILED], 0, 1, 2, 3, 7),
    )
    def test_a_compiled_model(self, how, mixes):
        """Batches of one size, in one pass: another size is compiled anew, a second at a time."""
        torch._dynamo.reset()
        model = nn.Sequential(Centred() if mixes else nn.Identity(), nn.Linear(4, 2))
        if how == "one graph":
            model, optimizer, loader = by_hand(model, poisson=False)
            model = torch.compile(model, backend="eager", fullgraph=True)
            with rt.watch(model, optimizer, loader) as seen:
                for features, labels in loader:
                    optimizer.zero_grad()
                    nn.functional.cross_entropy(model(features), labels).backward()
                    optimizer.step()
                    seen.step(noise_multiplier=NOISE, max_grad_norm=1.0)
        else:
            inside = torch.compile(model, backend="eager") if how == "inside" else model
            model, optimizer, loader, criterion = shuffled(model=inside)
            if how == "outside":
                model = torch.compile(model, backend="eager")
            if how == "in place":
                model.compile(backend="eager")
            seen = watched(model, optimizer, loader, criterion, how={"epochs": 1})
        assert (facts.MIXES_RECORDS in seen.ledger.faults) == mixes

    @pytest.mark.parametrize("wrapper", [True, False])
    def test_one_graph_in_place_is_refused_before_it_breaks(self, wrapper):
        model, optimizer, loader, _ = private()
        (model if wrapper else model._module).compile(backend="eager", fullgraph=True)
        with pytest.raises(ParameterError, match="without fullgraph=True"):
            rt.watch(model, optimizer, loader).__enter__()

    @pytest.mark.parametrize("mixes", [True, False])
    def test_expanded_weights(self, mixes):
        made = private(model=nn.Sequential(Centred() if mixes else nn.Identity(), nn.Linear(4, 2)), mode="ew")
        assert (facts.MIXES_RECORDS in watched(*made).ledger.faults) == mixes

    def test_hooks_of_the_model_itself_stay(self):
        class Looking(nn.Sequential):
            def keep(self, *_):
                self.calls = getattr(self, "calls", 0) + 1

        model = Looking(nn.Linear(4, 2))
        model[0].register_forward_hook(model.keep)
        assert not void(watched(*private(model=model)))
        assert model.calls == 12


class Prototypes(nn.Module):
    """As many classes as a batch has records: Opacus takes the row of a class for that of a record."""

    def __init__(self, classes):
        super().__init__()
        self.body, self.embed, self.table = nn.Linear(4, 4), nn.Linear(4, 4), torch.randn(classes, 4)

    def forward(self, x):
        return self.body(x) @ self.embed(self.table).T


@pytest.mark.parametrize("mode", ["hooks", "functorch", "ghost", "ew"])
def test_rows_of_a_table_that_are_taken_for_records(mode):
    """One record moves the gradients of all rows, and each is clipped with another record's."""
    loader = DataLoader(records(), batch_size=BATCH, shuffle=True)
    made = private(loader, model=Prototypes(BATCH), mode=mode, poisson_sampling=False)
    assert facts.MIXES_RECORDS in watched(*made).ledger.faults


def test_a_model_that_is_compiled():
    made = by_hand()
    compiled = torch.compile(made[0], backend="eager")
    with rt.watch(compiled, *made[1:]) as seen:
        for features, labels in made[2]:
            nn.functional.cross_entropy(compiled(features), labels).backward()
            made[1].step()
            seen.step(noise_multiplier=NOISE, max_grad_norm=1.0)
    from reticent.watching.models import fingerprint

    assert seen.ledger.weights_sha256 == fingerprint(made[0])
    assert not void(seen)


def test_spectral_norms_follow_the_weights_alone():
    model = network()
    nn.utils.parametrizations.spectral_norm(model[0])
    made, before = by_hand(model), [b.clone() for b in model.buffers()]
    with rt.watch(*made) as seen:
        for features, labels in made[2]:
            nn.functional.cross_entropy(model(features), labels).backward()
            made[1].step()
            seen.step(noise_multiplier=NOISE, max_grad_norm=1.0)
    assert not void(seen)
    assert not all(map(torch.equal, before, model.buffers()))


def test_a_loop_that_mixes_records_by_hand_ends_in_a_certificate():
    model, optimizer, loader, _ = private()
    with rt.watch(model, optimizer, loader) as seen:
        for features, _ in loader:
            optimizer.zero_grad()
            (model(features) - model(features + 0.1)).square().mean(1).mean().backward()
            optimizer.step()
    assert facts.MIXES_RECORDS in seen.ledger.faults
    assert not list(seen.ledger.contradictions())
    assert void(seen)


def test_a_learning_rate_that_follows_a_metric_through_the_wrapper_of_a_trainer():
    class Wrapped(torch.optim.Optimizer):  # as accelerate's
        def __init__(self, optimizer):
            self.optimizer, self.param_groups = optimizer, optimizer.param_groups

    made = private()
    with rt.watch(*made[:3]) as seen:
        run(*made, epochs=1)
        schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(Wrapped(made[1]))
        schedule.step(1.0)
    assert facts.METRIC_SCHEDULE in seen.ledger.faults

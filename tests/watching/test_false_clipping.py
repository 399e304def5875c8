"""Loops in which clipping, or what moves the weights after it, was not what it seemed; each was certified falsely once.

Ghost clipping most of all: it measures the records in one backward pass and adds them up in another, and in between and
after it lies open.
"""

from __future__ import annotations

import pytest
import torch
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import reticent as rt
from reticent.records.watch_faults import Fault
from reticent.watching import ghost_lengths
from tests.watching.loops import BATCH, NOISE, RATE, RECORDS, network, private, records, run, void

pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook is firing", "ignore:Secure RNG turned off")


def trained(made, before=lambda step: None, between=lambda step: None, after=lambda step: None, forward=None):
    """A watched loop; each step calls what happens before it, between its backward pass and it, and after it."""
    model, optimizer, loader, criterion = made
    with rt.watch(model, optimizer, loader) as seen:
        for step, (features, labels) in enumerate(loader):
            before(step)
            optimizer.zero_grad()
            criterion((forward or model)(features), labels).backward()
            between(step)
            optimizer.step()
            after(step)
    return seen


def faults(seen):
    return {fault for fault in seen.ledger.faults if fault.voids}


def noises(seen):
    return [segment.noise_multiplier for segment in seen.ledger.segments]


class Skipping(nn.Module):
    """A layer that is left out of every other pass, as in stochastic depth."""

    def __init__(self):
        super().__init__()
        self.body, self.head, self.skips = nn.Linear(4, 4), nn.Linear(4, 2), False

    def forward(self, x):
        return self.head(x if self.skips else torch.tanh(self.body(x)))


class Reused(nn.Module):
    """Its first weight is used by a layer and by a function, as a language model uses that of its embedding."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x):
        return self.head(10.0 * self.body(x) @ self.body.weight.T)


def enlarge(p):
    p.grad.mul_(10.0)


class TestGhost:
    """Ghost clipping, where a record's part was not measured, or not of this batch."""

    def test_a_layer_that_is_left_out_keeps_the_lengths_of_the_batch_before(self):
        model = Skipping()
        made = private(mode="ghost", model=model, poisson_sampling=False)

        def skip(step):
            model.skips = step % 2 == 1

        assert faults(trained(made, before=skip)) == {Fault.MIXES_RECORDS}
        made = private(mode="ghost", model=Skipping(), poisson_sampling=False)
        assert not void(trained(made))

    def test_a_layer_that_is_unfrozen_later_is_not_measured(self):
        model = network()
        model[0].requires_grad_(False)
        made = private(mode="ghost", model=model)
        assert faults(trained(made, before=lambda step: model[0].requires_grad_(step > 1))) == {Fault.UNCLIPPED}

    @pytest.mark.parametrize("when", [0, 2])
    def test_a_parameter_outside_the_model_is_not_measured(self, when):
        made = model, optimizer, _, _ = private(mode="ghost")
        scale = nn.Parameter(torch.ones(1))

        def add(step):
            if step == when:
                optimizer.original_optimizer.add_param_group({"params": [scale]})

        assert faults(trained(made, before=add, forward=lambda x: model(x) * scale)) == {Fault.UNCLIPPED}

    def test_a_norm_that_is_lowered_after_the_backward_pass(self):
        made = model, optimizer, _, _ = private(mode="ghost")

        def norm(value):
            model.max_grad_norm = optimizer.max_grad_norm = value

        seen = trained(made, before=lambda _: norm(10.0), between=lambda _: norm(1.0))
        assert noises(seen) == [pytest.approx(NOISE / 10.0, rel=1e-9, abs=0)]
        assert Fault.CLIP_AND_NOISE_DIFFER in seen.ledger.faults

    def test_a_norm_of_hooks_around_a_bare_model(self):
        model = network()
        hooks, optimizer, loader, criterion = private(mode="ghost", model=model, wrap_model=False)
        hooks.max_grad_norm = 10.0
        assert noises(trained((model, optimizer, loader, criterion))) == [pytest.approx(NOISE / 10.0, rel=1e-9, abs=0)]

    def test_gradients_that_are_written_after_they_were_clipped(self):
        made = model, *_ = private(mode="ghost")

        def enlarge(_):
            for p in model.parameters():
                p.grad.mul_(10.0)

        assert faults(trained(made, between=enlarge)) == {Fault.CHANGED_GRADIENTS}

    def test_another_loss_beside_the_clipped_one(self):
        features, labels = records().tensors
        made = model, *_ = private(mode="ghost")
        bare = model._module

        def add(_):
            model.disable_hooks()
            nn.functional.cross_entropy(bare(features), labels).backward()
            model.enable_hooks()

        assert Fault.CHANGED_GRADIENTS in faults(trained(made, between=add))

    def test_a_loss_that_is_not_the_one_of_make_private(self):
        """Opacus then clips nothing, and says nothing."""
        model, optimizer, loader, _ = private(mode="ghost")
        assert faults(trained((model, optimizer, loader, nn.CrossEntropyLoss()))) == {Fault.UNCLIPPED}

    def test_an_empty_batch_without_a_backward_pass(self):
        model, optimizer, loader, criterion = private(DataLoader(records(), batch_size=1, shuffle=True), mode="ghost")
        with rt.watch(model, optimizer, loader) as seen:
            for features, labels in loader:
                optimizer.zero_grad()
                if len(labels) or not len(seen):
                    criterion(model(features), labels).backward()
                optimizer.step()
        assert not void(seen)

    @pytest.mark.parametrize("past", ["penalty", "function", "hook", "writing hook"])
    def test_what_reaches_a_weight_past_its_layer_is_not_measured(self, past):
        model = Reused() if past == "function" else network()
        wrapped, optimizer, loader, own = private(mode="ghost", model=model)
        weight = next(model.parameters())
        if past == "hook":
            weight.register_hook(lambda slope: 10.0 * slope)
        if past == "writing hook":
            weight.register_post_accumulate_grad_hook(enlarge)

        def criterion(logits, labels):
            return own(logits, labels) + (weight.square().sum() if past == "penalty" else 0.0)

        wanted = Fault.CHANGED_GRADIENTS if past == "writing hook" else Fault.UNCLIPPED
        assert faults(trained((wrapped, optimizer, loader, criterion))) == {wanted}

    def test_a_hook_that_only_looks(self):
        made = model, *_ = private(mode="ghost")
        next(model.parameters()).register_hook(lambda slope: None)
        assert not void(trained(made))

    def test_a_penalty_from_some_step_on(self, monkeypatch):
        monkeypatch.setattr(ghost_lengths, "_LOOKED_AT", 1.0 - 1e-9)
        model, optimizer, loader, own = private(mode="ghost")
        weight, steps = next(model.parameters()), []

        def criterion(logits, labels):
            steps.append(len(labels))
            return own(logits, labels) + (weight.square().sum() if len(steps) > 3 else 0.0)

        assert faults(trained((model, optimizer, loader, criterion))) == {Fault.UNCLIPPED}

    def test_hooks_that_the_program_turns_off_for_a_while(self):
        made = model, *_ = private(mode="ghost")

        def look(_):
            model.get_norm_sample()
            model.disable_hooks()
            model(records().tensors[0])
            model.enable_hooks()

        assert not void(trained(made, before=lambda step: look(step) if step else None))

    def test_two_loops_side_by_side_and_nothing_is_left_behind(self):
        from opacus.grad_sample import GradSampleHooksFastGradientClipping as Hooks
        from opacus.utils.fast_gradient_clipping_utils import DPTensorFastGradientClipping as Loss

        before = dict(vars(Hooks)), dict(vars(Loss))
        one, other = private(mode="ghost"), private(mode="ghost")
        with rt.watch(*one[:3]) as first, rt.watch(*other[:3]) as second:
            for model, optimizer, loader, criterion in (one, other):
                for features, labels in loader:
                    optimizer.zero_grad()
                    criterion(model(features), labels).backward()
                    optimizer.step()
        assert not void(first)
        assert not void(second)
        assert (dict(vars(Hooks)), dict(vars(Loss))) == before


class TestFrozen:
    """Layers that are frozen on the way."""

    @pytest.mark.parametrize("mode", ["hooks", "ghost"])
    def test_a_layer_that_is_frozen_between_backward_pass_and_step_keeps_bare_gradients(self, mode):
        made = model, *_ = private(mode=mode)
        layer = model._module[0]
        seen = trained(made, before=lambda _: layer.requires_grad_(True), between=lambda _: layer.requires_grad_(False))
        assert faults(seen) == {Fault.CHANGED_GRADIENTS}

    @pytest.mark.parametrize("mode", ["hooks", "functorch"])
    def test_a_layer_that_is_frozen_between_two_steps_is_nobodys_business(self, mode):
        made = model, *_ = private(mode=mode)
        seen = trained(made, before=lambda step: model._module[0].requires_grad_(step % 2 == 0))
        assert not void(seen)
        assert noises(seen) == [NOISE]


class TestMemory:
    """What the optimizer remembers moves the next step."""

    def made(self, kind=torch.optim.Adam, **options):
        model, optimizer, loader, criterion = private()
        optimizer.original_optimizer = kind(model.parameters(), lr=0.1, **options)
        return model, optimizer, loader, criterion

    def elsewhere(self):
        """The state of an optimizer that took one step on all records, without noise."""
        model, (features, labels) = network(), records().tensors
        optimizer = torch.optim.Adam(model.parameters())
        nn.functional.cross_entropy(model(features), labels).backward()
        optimizer.step()
        return optimizer.state_dict()

    def test_gradients_that_are_put_into_the_momentum(self):
        made = _, optimizer, *_ = self.made(torch.optim.SGD, momentum=0.9)

        def write(step):
            if step == 2:
                for state in optimizer.state.values():
                    state["momentum_buffer"].add_(1.0)

        assert faults(trained(made, after=write)) == {Fault.WEIGHTS_CHANGED}
        assert not void(trained(self.made(torch.optim.SGD, momentum=0.9)))

    def test_a_state_of_another_training_that_is_loaded(self):
        made = _, optimizer, *_ = self.made()

        def load(step):
            if step == 2:
                optimizer.load_state_dict(self.elsewhere())

        assert faults(trained(made, after=load)) == {Fault.WEIGHTS_CHANGED}

    def test_its_own_state_that_is_saved_and_loaded_is_the_same(self, tmp_path):
        made = _, optimizer, *_ = self.made()

        def load(_):
            torch.save(optimizer.state_dict(), tmp_path / "state.pt")
            optimizer.load_state_dict(torch.load(tmp_path / "state.pt"))

        assert not void(trained(made, after=load))

    def test_a_state_that_is_forgotten_holds_nothing(self):
        made = _, optimizer, *_ = self.made()
        assert not void(trained(made, after=lambda step: optimizer.state.clear() if step == 2 else None))

    @pytest.mark.parametrize("again", [True, False])
    def test_between_two_watches(self, again):
        made = model, optimizer, loader, _ = self.made()
        seen = trained(made)
        optimizer.load_state_dict(self.elsewhere())
        if again:
            with seen:
                for features, labels in loader:
                    optimizer.zero_grad()
                    made[3](model(features), labels).backward()
                    optimizer.step()
        else:
            seen = trained(made)
        assert faults(seen) == {Fault.WEIGHTS_CHANGED}

    def test_an_optimizer_with_a_past_that_is_put_inside(self):
        made = model, optimizer, *_ = private()
        other = torch.optim.Adam(model.parameters(), lr=0.1)

        def exchange(step):
            if step == 2:
                other.load_state_dict(self.elsewhere())
                optimizer.original_optimizer = other

        assert Fault.WEIGHTS_CHANGED in faults(trained(made, after=exchange))

    def test_an_optimizer_that_comes_back(self):
        made = model, optimizer, *_ = self.made()
        both = [optimizer.original_optimizer, torch.optim.Adam(model.parameters(), lr=0.1)]

        def exchange(step):
            optimizer.original_optimizer = both[step % 2]

        assert not void(trained(made, before=exchange))


class TestDraws:
    """Batches that were drawn at another rate than that of the step, or drawn and left out."""

    def test_a_rate_that_is_lowered_after_the_draw(self):
        made = _, _, loader, _ = private()
        sampler = loader.batch_sampler

        def rate(value):
            sampler.sample_rate = value

        seen = trained(made, before=lambda _: rate(0.01), after=lambda _: rate(RATE))
        assert [s.sample_rate or seen.ledger.sampler.sample_rate for s in seen.ledger.segments] == [RATE]

    def test_a_rate_that_is_lowered_while_workers_draw_ahead(self):
        made = _, _, loader, _ = private(DataLoader(records(), batch_size=BATCH, num_workers=2))

        def lower(_):
            loader.batch_sampler.sample_rate = 0.05

        segments = trained(made, after=lower).ledger.segments
        assert segments[0].steps > 1  # batches that lay there already
        assert sum(segment.steps for segment in segments) == len(loader)

    def test_batches_that_are_left_out(self):
        model, optimizer, loader, criterion = private()
        with rt.watch(model, optimizer, loader) as seen:
            for step, (features, labels) in enumerate(loader):
                if step != 2:  # as where a loss is not finite, or a batch is empty
                    optimizer.zero_grad()
                    criterion(model(features), labels).backward()
                    optimizer.step()
        assert Fault.LEFT_OUT in seen.ledger.faults
        assert Fault.LEFT_OUT not in trained(private()).ledger.faults

    @pytest.mark.parametrize("workers", [0, 1])
    def test_an_empty_batch_among_those_that_a_step_adds_up(self, workers):
        """Each record had two chances to be in the step, also where one of them drew nobody."""
        made = private(DataLoader(records(), batch_size=1, shuffle=True, num_workers=workers))
        model, optimizer, loader, criterion = made
        model.allow_grad_accumulation()
        with rt.watch(model, optimizer, loader) as seen:
            for step, (features, labels) in enumerate(loader):
                criterion(model(features), labels).backward()
                if step % 2:
                    optimizer.step()
                    optimizer.zero_grad()
        assert {segment.batches for segment in seen.ledger.segments} == {2}
        assert Fault.LEFT_OUT not in seen.ledger.faults

    @pytest.mark.parametrize("made_up", [True, False])
    def test_a_made_up_record_for_an_empty_batch(self, made_up):
        """Who would be alone in the batch takes the place of the made-up one: up to twice the norm."""
        made = private(DataLoader(records(), batch_size=1, shuffle=True), rand_on_empty=made_up)
        assert faults(trained(made)) == ({Fault.LARGER_BATCH} if made_up else set())

    @pytest.mark.parametrize("workers", [0, 1])
    def test_an_empty_batch_that_is_a_step_of_its_own(self, workers):
        made = _, optimizer, loader, _ = private(DataLoader(records(), batch_size=1, num_workers=workers))
        with BatchMemoryManager(data_loader=loader, max_physical_batch_size=1, optimizer=optimizer) as parts:
            seen = rt.watch(*made[:3])
            with seen:
                run(made[0], optimizer, parts, made[3], epochs=1)
        assert [(segment.batches, segment.steps) for segment in seen.ledger.segments] == [(1, RECORDS)]

    def test_a_step_that_a_scaler_skips_leaves_a_batch_out(self):
        model, optimizer, loader, criterion = private()
        scaler = torch.amp.GradScaler("cpu")
        with rt.watch(model, optimizer, loader) as seen:
            for step, (features, labels) in enumerate(loader):
                optimizer.zero_grad()
                scaler.scale(criterion(model(features), labels) * (torch.inf if step == 2 else 1.0)).backward()
                scaler.step(optimizer)
                scaler.update()
        assert Fault.LEFT_OUT in seen.ledger.faults

    def test_a_pass_for_evaluation_leaves_nothing_out(self):
        made = model, _, loader, _ = private()

        def look(_):
            with torch.no_grad():
                for features, _ in loader:
                    model._module(features)

        assert Fault.LEFT_OUT not in trained(made, after=look).ledger.faults


def test_a_gradient_that_is_no_number_gets_past_clipping():
    data = records()
    data.tensors[0][7] = torch.nan
    model, optimizer, loader, criterion = private(DataLoader(data, batch_size=BATCH), poisson_sampling=False)
    assert Fault.NOT_FINITE in faults(trained((model, optimizer, loader, criterion)))


def test_records_that_are_taken_for_steps_of_a_sequence():
    """``batch_first=False`` where records come first: what is clipped is a moment of all records."""

    class Pointwise(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x):
            return self.head(torch.tanh(self.body(x))).sum(1)

    data = TensorDataset(torch.randn(60, 3, 4), torch.randint(0, 4, (60,)))
    made = private(DataLoader(data, batch_size=BATCH), model=Pointwise(), batch_first=False, poisson_sampling=False)
    assert Fault.MIXES_RECORDS in faults(trained(made))
    made = private(DataLoader(data, batch_size=BATCH), model=Pointwise(), poisson_sampling=False)
    assert not void(trained(made))

"""Updates that were once certified falsely: hidden writes, mixed records, parts of the loop that were replaced."""

from __future__ import annotations

import contextlib
import copy
from itertools import product
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters
from torch.utils.data import ConcatDataset, DataLoader, Subset

import reticent as rt
from reticent import facts
from reticent.watching.detectors import closer_looks
from reticent.watching.detectors.samplers import look_at
from tests.conftest import some
from tests.watching.loops import (
    BATCH,
    NOISE,
    RATE,
    RECORDS,
    epsilon,
    network,
    plain_step,
    private,
    records,
    run,
    shuffled,
    void,
    watched,
    wide,
)


def by_exchange(model):
    p = next(model.parameters())
    p.data = p.data + 0.5


def by_assignment(model):
    state = {name: value.clone() * 1.5 for name, value in model.state_dict().items()}
    model.load_state_dict(state, assign=True)


def by_data(model):
    next(model.parameters()).data.sub_(0.5)


def by_vector(model):
    vector_to_parameters(parameters_to_vector(model.parameters()) * 1.5, model.parameters())


def by_new_head(model):
    inner = getattr(model, "_module", model)
    inner[2] = nn.Linear(6, 2)


WRITES = [by_data, by_exchange, by_vector, by_assignment, by_new_head]


class TestHiddenWrites:
    """Loop 4: writes that torch does not count."""

    @pytest.mark.parametrize("write", [by_data, by_exchange, by_vector])
    def test_a_write_between_two_steps(self, write):
        made = private()
        seen = watched(*made, how={"after": lambda step: write(made[0]) if step == 3 else None})
        assert facts.WEIGHTS_CHANGED in seen.ledger.faults
        assert void(seen)

    @pytest.mark.parametrize("write", WRITES)
    def test_a_write_after_the_last_step(self, write):
        made = private()
        with rt.watch(*made[:3]) as seen:
            run(*made)
            write(made[0])
        assert facts.WEIGHTS_CHANGED in seen.ledger.faults
        assert void(seen)

    def test_a_pass_at_other_weights_after_the_watch_was_entered_again(self, monkeypatch):
        """The first passes are looked at for certain each time, whatever the dice say of later ones."""
        monkeypatch.setattr(closer_looks, "DICE", SimpleNamespace(random=lambda: 1.0 - 1e-9))
        made = model, *_ = private()
        watch = rt.watch(*made[:3])
        with watch:
            run(*made, epochs=4)
        assert not void(watch)
        own = next(model.parameters())
        kept = own.data
        with watch:
            own.data = kept + 0.5
            model(records().tensors[0])
            own.data = kept
        assert facts.WEIGHTS_CHANGED in watch.ledger.faults

    def test_a_head_from_least_squares(self):
        """The last layer overwritten by the best fit to raw records."""
        model, optimizer, loader, criterion = private()
        data = records()
        with rt.watch(model, optimizer, loader) as seen:
            run(model, optimizer, loader, criterion)
            inner = model._module
            with torch.no_grad():
                hidden = inner[1](inner[0](data.tensors[0]))
            best = torch.linalg.lstsq(hidden, nn.functional.one_hot(data.tensors[1], 2).float()).solution
            inner[2].weight.data.copy_(best.T)
        assert void(seen)

    @pytest.mark.parametrize("when", ["pre", "post"])
    def test_hooks_of_the_optimizer_that_write(self, when):
        made = private()
        inner = made[1].original_optimizer
        with rt.watch(*made[:3]) as seen:
            register = inner.register_step_pre_hook if when == "pre" else inner.register_step_post_hook
            register(lambda *_: by_data(made[0]))
            run(*made)
        assert facts.WEIGHTS_CHANGED in seen.ledger.faults

    def test_a_row_of_a_large_layer(self):
        model = nn.Linear(300, 400)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with rt.watch(model, optimizer) as seen:
            for _ in range(2):
                model(torch.randn(4, 300)).sum().backward()
                optimizer.step()
                seen.step(noise_multiplier=1.0)
            model.weight.data[77] += 1.0
        assert facts.WEIGHTS_CHANGED in seen.ledger.faults

    @pytest.mark.parametrize("large", [False, True])
    @pytest.mark.parametrize("back", [True, False])
    def test_a_running_mean_of_the_weights_for_evaluation(self, back, large):
        """What comes back bit for bit was not written; of a large tensor only ``evaluation`` sees all values."""
        made = wide() if large else private()
        mean = [p.detach().clone() + 0.1 for p in made[0].parameters()]
        seen = rt.watch(*made[:3])

        def put(values):
            with torch.no_grad():
                for p, value in zip(made[0].parameters(), values, strict=True):
                    p.copy_(value)

        def look(_):
            with seen.evaluation() if large else contextlib.nullcontext():
                kept = [p.detach().clone() for p in made[0].parameters()]
                put(mean)
                made[0].eval()
                made[0](made[2].dataset[0][0][None])
                made[0].train()
                put(kept if back else [value + 0.01 for value in kept])

        with seen:
            run(*made, after=look)
        assert (facts.WEIGHTS_CHANGED in seen.ledger.faults) != back

    @pytest.mark.filterwarnings("ignore:Full backward hook")
    def test_gradients_at_other_weights_that_came_back_in_time(self):
        """Weights that depend on all records make the gradient of each depend on all."""
        model, optimizer, loader, criterion = private()
        with rt.watch(model, optimizer, loader) as seen:
            for features, labels in loader:
                optimizer.zero_grad()
                kept = [p.detach().clone() for p in model.parameters()]
                with torch.no_grad():
                    for p in model.parameters():
                        p.add_(features.sum())
                loss = criterion(model(features), labels)
                loss.backward()
                with torch.no_grad():
                    for p, value in zip(model.parameters(), kept, strict=True):
                        p.copy_(value)
                optimizer.step()
        assert facts.WEIGHTS_CHANGED in seen.ledger.faults

    @pytest.mark.filterwarnings("ignore:Full backward hook")
    @pytest.mark.parametrize("swap", [True, False])
    def test_gradients_at_weights_that_were_lent_by_data(self, swap):
        """As sharpness-aware training does it; torch counts none of these writes."""
        model, optimizer, loader, criterion = private()
        with rt.watch(model, optimizer, loader) as seen:
            for features, labels in loader:
                kept = [p.data if swap else p.data.clone() for p in model.parameters()]
                for p in model.parameters():
                    if swap:
                        p.data = p.data + features.sum()
                    else:
                        p.data.add_(features.sum())
                optimizer.zero_grad()
                criterion(model(features), labels).backward()
                for p, value in zip(model.parameters(), kept, strict=True):
                    if swap:
                        p.data = value
                    else:
                        p.data.copy_(value)
                optimizer.step()
        assert void(seen)
        assert facts.WEIGHTS_CHANGED in seen.ledger.faults

    def test_a_functional_call_of_the_program_is_no_write(self):
        model, loader = network(), DataLoader(records(), batch_size=BATCH)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with rt.watch(model, optimizer, loader) as seen:
            for features, labels in loader:
                plain_step(model, features, labels, NOISE, 1.0)
                optimizer.step()
                seen.step(noise_multiplier=NOISE, max_grad_norm=1.0, batch_size=BATCH)
        assert not void(seen)

    def test_evaluation_and_copies_are_no_writes(self):
        made = private()

        def look(_):
            made[0].eval()
            with torch.no_grad():
                made[0](records().tensors[0])
            copy.deepcopy(made[0]._module.state_dict())
            made[0].train()

        assert not void(watched(*made, how={"after": look}))


class RunningMean(nn.Module):
    def __init__(self, learns=True):
        super().__init__()
        self.learns = learns
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        self.calls += 1
        if self.learns and self.training:
            self.mean.lerp_(x.mean(0).detach(), 0.1)
        return x - self.mean


class Centred(nn.Module):
    def forward(self, x):
        return x - x.mean(0, keepdim=True)


class TestBuffersAndMixing:
    """Loop 6: what clipping does not reach."""

    def loop(self, first, loss=None, dropout=0.0):
        model = nn.Sequential(first, nn.Linear(4, 6), nn.Dropout(dropout), nn.Linear(6, 2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with rt.watch(model, optimizer, DataLoader(records(), batch_size=BATCH)) as seen:
            for features, labels in DataLoader(records(), batch_size=BATCH):
                optimizer.zero_grad()
                (loss or nn.functional.cross_entropy)(model(features), labels).backward()
                optimizer.step()
                seen.step(noise_multiplier=1.0, batch_size=BATCH)
        return set(seen.ledger.faults)

    def test_buffers_that_learn(self):
        assert facts.BUFFERS_LEARNT in self.loop(RunningMean())
        assert facts.BUFFERS_LEARNT not in self.loop(RunningMean(learns=False))

    def test_records_mixed_in_the_forward_pass(self):
        assert facts.MIXES_RECORDS in self.loop(Centred())
        assert facts.MIXES_RECORDS not in self.loop(nn.Identity(), dropout=0.5)

    def test_records_mixed_in_the_loss(self):
        def spread(logits, labels):
            return nn.functional.cross_entropy(logits, labels) + logits.mean(0).square().sum()

        assert facts.MIXES_RECORDS in self.loop(nn.Identity(), spread)
        for fine in (nn.CrossEntropyLoss(reduction="sum"), lambda a, b: (a[:, 0] - b).square().mean()):
            assert facts.MIXES_RECORDS not in self.loop(nn.Identity(), fine)

    @pytest.mark.parametrize("mode", ["hooks", "functorch", "ghost"])
    def test_records_mixed_in_a_loop_of_opacus(self, mode):
        class Mixing(nn.CrossEntropyLoss):
            def forward(self, logits, labels):
                return super().forward(logits - logits.mean(0), labels)

        model, optimizer, loader, criterion = private(mode=mode)
        if mode == "ghost":
            criterion.criterion = Mixing(reduction="none")
        else:
            criterion = Mixing()
        assert facts.MIXES_RECORDS in watched(model, optimizer, loader, criterion).ledger.faults

    @pytest.mark.filterwarnings("ignore:Full backward hook")
    @pytest.mark.parametrize("mode", ["hooks", "functorch"])
    @pytest.mark.parametrize("together", [True, False])
    def test_two_batches_in_one_backward_pass(self, mode, together):
        """Opacus adds the gradients at one place of both batches: whoever leaves moves a clipped pair by up to 2 C."""
        model, optimizer, loader, criterion = private(mode=mode)
        with rt.watch(model, optimizer, loader) as seen:
            for features, labels in loader:
                if len(labels) < 4:
                    continue
                half = len(labels) // 2
                parts = [(features[:half], labels[:half]), (features[half : 2 * half], labels[half : 2 * half])]
                optimizer.zero_grad()
                if together:
                    sum(criterion(model(x), y) for x, y in parts).backward()
                else:
                    criterion(model(features), labels).backward()
                optimizer.step()
        assert (facts.MIXES_RECORDS in seen.ledger.faults) == together


class TestReplaced:
    """Loop 7: noise, gradients, data and schedules that are not what they seem."""

    def test_noise_replaced_on_the_object_before_the_watch(self):
        made = private()

        def quiet():
            for p in made[1].params:
                p.grad = p.summed_grad.view_as(p)

        made[1].add_noise = quiet
        seen = watched(*made)
        assert facts.TOO_LITTLE_NOISE in seen.ledger.faults
        assert void(seen)

    def test_noise_replaced_on_the_object_between_two_entries(self):
        """Found by the fuzzer: steps after the first eight were not measured."""
        made = private()
        watch = rt.watch(*made[:3])
        with watch:
            run(*made, epochs=2)

        def quiet():
            for p in made[1].params:
                p.grad = p.summed_grad.view_as(p).clone()

        made[1].add_noise = quiet
        with watch:
            run(*made, epochs=1)
        assert facts.TOO_LITTLE_NOISE in watch.ledger.faults

    @pytest.mark.parametrize("share", [0.0, 0.5])
    def test_noise_replaced_in_opacus(self, share, monkeypatch):
        import opacus.optimizers.optimizer as inside

        made, own = private(), inside._generate_noise
        monkeypatch.setattr(inside, "_generate_noise", lambda std, *a, **k: own(max(share * std, 1e-9), *a, **k))
        seen = watched(*made)
        assert facts.TOO_LITTLE_NOISE in seen.ledger.faults
        assert void(seen)

    @pytest.mark.parametrize("how", ["step_hook", "early", "late", "data"])
    def test_a_hook_that_adds_the_noiseless_sum(self, how):
        made = private()

        def add(*_):
            for p in made[1].params:
                if how == "data":
                    p.grad.data.add_(p.summed_grad.view_as(p))
                else:
                    p.grad = p.grad + p.summed_grad.view_as(p)

        if how == "step_hook":
            made[1].attach_step_hook(add)
        elif how in ("early", "data"):
            made[1].original_optimizer.register_step_pre_hook(add)
        with rt.watch(*made[:3]) as seen:
            if how == "late":
                made[1].original_optimizer.register_step_pre_hook(add)
            run(*made)
        assert facts.CHANGED_GRADIENTS in seen.ledger.faults
        assert void(seen)

    @pytest.mark.parametrize(
        ("make", "poisson"), some([*product(("subset", "concat", "both"), (True, False))], 0, 3, 4)
    )
    def test_one_record_many_times(self, make, poisson):
        data = records()
        listed = {
            "subset": Subset(data, [0] * 6 + list(range(RECORDS - 6))),
            "concat": ConcatDataset([Subset(data, range(RECORDS // 6))] * 6),
            "both": Subset(ConcatDataset([data, data]), [0, RECORDS, *range(1, RECORDS - 1)]),
        }[make]
        most = {"subset": 7, "concat": 6, "both": 2}[make]
        seen = watched(*private(DataLoader(listed, batch_size=BATCH, shuffle=True), poisson_sampling=poisson))
        assert seen.ledger.sampler.copies == most
        assert facts.REPEATED_RECORDS in seen.ledger.faults
        assert (seen.mechanism().copies, seen.mechanism().records_per_user) == (most, None)
        assert epsilon(seen) > epsilon(watched(*(private() if poisson else shuffled())))

    @pytest.mark.parametrize("said", ["poisson", "fixed-size", "shuffled"])
    def test_one_record_many_times_where_draws_are_declared(self, said):
        """A loader whose draws nobody knows still shows which records it lists twice."""
        data, model = records(), network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        own = [list(range(start, start + BATCH)) for start in range(0, 2 * RECORDS, BATCH)]
        loader = DataLoader(ConcatDataset([data, data]), batch_sampler=own)
        with rt.watch(model, optimizer, loader, sampler=said) as seen:
            for x, y in loader:
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(x), y).backward()
                optimizer.step()
                seen.step(noise_multiplier=NOISE, **({} if said == "shuffled" else {"sample_rate": RATE}))
        assert seen.ledger.sampler.copies == 2
        assert facts.REPEATED_RECORDS in seen.ledger.faults
        assert seen.mechanism().copies == 2

    def test_one_record_many_times_from_the_second_pass_on(self):
        """A curriculum that changes its Subset while it trains."""
        subset = Subset(records(), list(range(RECORDS)))
        made = private(DataLoader(subset, batch_size=BATCH, shuffle=True))

        def narrow(count):
            if count == 6:
                subset.indices[:] = [*[0, 1, 2] * 20, *range(3, RECORDS - 57)]

        seen = watched(*made, how={"after": narrow})
        assert seen.ledger.sampler.copies == 20
        assert facts.REPEATED_RECORDS in seen.ledger.faults

    def test_records_listed_once_are_not_repeated(self):
        data = records()
        for listed in (Subset(data, range(RECORDS)), ConcatDataset([data, records(1)]), list(range(RECORDS))):
            assert look_at(DataLoader(listed)).copies is None

    def test_a_list_that_holds_one_record_often(self):
        one, other = (torch.zeros(4), 0), (torch.ones(4), 1)
        assert look_at(DataLoader([one, one, other])).copies == 2

    def test_a_learning_rate_that_follows_a_metric(self):
        made = private()
        schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(made[1])
        seen = watched(*made, how={"after": lambda _: schedule.step(1.0)})
        assert facts.METRIC_SCHEDULE in seen.ledger.faults
        other = private()
        fixed = torch.optim.lr_scheduler.StepLR(other[1], 2)
        never_asked = torch.optim.lr_scheduler.ReduceLROnPlateau(other[1])
        assert facts.METRIC_SCHEDULE not in watched(*other, how={"after": lambda _: fixed.step()}).ledger.faults
        assert never_asked.optimizer is other[1]

    def test_features_that_are_trained_outside_of_the_model(self):
        model, optimizer, loader, criterion = private()
        encoder = nn.Linear(4, 4)
        beside = torch.optim.SGD(encoder.parameters(), lr=0.1)
        with rt.watch(model, optimizer, loader) as seen:
            for features, labels in loader:
                optimizer.zero_grad()
                criterion(model(encoder(features)), labels).backward()
                optimizer.step()
                beside.step()
        assert {facts.TRAINED_OUTSIDE, facts.OTHER_MODEL} <= set(seen.ledger.faults)
        assert void(seen)

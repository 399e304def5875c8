"""What a watch puts in the place of a program's own objects: loops in which that once changed or hid something."""

from __future__ import annotations

import copy

import pytest
import torch
from opacus.optimizers import DPOptimizer
from opacus.optimizers.optimizer import _mark_as_processed
from torch import nn
from torch.utils.data import DataLoader, Sampler, TensorDataset

import reticent as rt
from reticent import facts
from reticent.facts.steps import Generator
from tests.watching.loops import BATCH, RECORDS, network, plain_step, private, records, void, watched


class Eager(Sampler):
    """Draws when it is asked for an iterator, not at the first batch."""

    def __iter__(self):
        order = torch.randperm(RECORDS).tolist()
        return iter([order[at : at + BATCH] for at in range(0, RECORDS, BATCH)])


class Own(Sampler):
    """Is its own iterator."""

    def __iter__(self):
        self.left = torch.randperm(RECORDS).tolist()
        return self

    def __next__(self):
        batch, self.left = self.left[:BATCH], self.left[BATCH:]
        if not batch:
            raise StopIteration
        return batch


@pytest.mark.parametrize("kind", [Eager, Own])
def test_weights_are_those_without_a_watch(kind):
    found, start, data = [], network(), records()
    for looks in (False, True):
        model, loader = copy.deepcopy(start), DataLoader(data, batch_sampler=kind())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        torch.manual_seed(2**60 + 2**27 + 3)
        watch = rt.watch(model, optimizer, loader)
        if looks:
            watch.__enter__()
        for _ in range(2):
            for features, labels in loader:
                plain_step(model, features, labels, 0.0, 1.0)
                optimizer.step()
                if looks:
                    watch.step(noise_multiplier=1.0, max_grad_norm=1.0, batch_size=len(labels))
        if looks:
            watch.__exit__(None, None, None)
        found.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    torch.testing.assert_close(*found)


def test_workers_that_stay_are_followed_in_the_next_watch():
    made = private(DataLoader(records(), batch_size=BATCH, shuffle=True, num_workers=1, persistent_workers=True))
    for _ in range(2):
        seen = watched(*made, how={"epochs": 1})
        assert facts.OTHER_BATCHES not in seen.ledger.faults
    assert type(made[2].batch_sampler) is type(made[2]._iterator._index_sampler)
    assert not hasattr(type(made[2].batch_sampler), "reticent_watches")


def test_noise_of_one_number():
    """torch keeps the second number of a pair, and its twister stays where it is."""
    noise = torch.Generator()
    noise.seed()
    data = TensorDataset(torch.randn(RECORDS, 1), torch.randn(RECORDS, 1))
    loader = DataLoader(data, batch_size=BATCH, shuffle=True)
    made = private(loader, model=nn.Linear(1, 1, bias=False), noise_generator=noise)
    seen = watched(*made[:3], nn.MSELoss())
    assert facts.REPEATED_NOISE not in seen.ledger.faults


@pytest.mark.filterwarnings("ignore:Full backward hook")
def test_a_backward_pass_that_nobody_saw_is_said():
    model, optimizer, loader, criterion = private()
    with rt.watch(model, optimizer, loader) as seen:
        for features, labels in loader:
            optimizer.zero_grad()
            torch.autograd.backward(criterion(model(features), labels))
            optimizer.step()
    assert facts.NOT_LOOKED_AT in seen.ledger.faults
    assert not void(seen)


class Mine(DPOptimizer):
    """Asks torch for its noise, without naming what it gives."""

    def add_noise(self):
        for p in self.params:
            drawn = torch.normal(0.0, self.noise_multiplier * self.max_grad_norm, p.summed_grad.shape)
            p.grad = (p.summed_grad + drawn).view_as(p)
            _mark_as_processed(p.summed_grad)


class OfTensors(DPOptimizer):
    def add_noise(self):
        for p in self.params:
            deviation = torch.full_like(p.summed_grad, self.noise_multiplier * self.max_grad_norm)
            p.grad = (p.summed_grad + torch.normal(torch.zeros_like(deviation), deviation)).view_as(p)
            _mark_as_processed(p.summed_grad)


@pytest.mark.parametrize("kind", [Mine, OfTensors])
def test_noise_that_a_class_asks_of_torch_itself(kind):
    """A call without the name of the deviation ended the training; and .9 of single precision is less than .9."""
    made = private()
    made[1].__class__, made[1].noise_multiplier = kind, 0.9
    assert not void(watched(*made, how={"epochs": 1}))


def test_secure_noise_where_a_class_asks_torch_itself():
    made = private()
    made[1].__class__ = Mine
    rt.secure_noise(made[1])
    seen = watched(*made, how={"epochs": 1})
    assert seen.ledger.environment.randomness is Generator.SECURE
    assert not void(seen)


def test_a_mean_that_names_what_it_is_of():
    """It ended the training."""
    model, optimizer, loader, _ = private()
    with rt.watch(model, optimizer, loader) as seen:
        for features, labels in loader:
            optimizer.zero_grad()
            torch.mean(input=nn.functional.cross_entropy(model(features), labels, reduction="none")).backward()
            optimizer.step()
    assert not void(seen)

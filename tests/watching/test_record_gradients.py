"""Gradients of single records that the program changes before they are clipped; loops with them were certified."""

from __future__ import annotations

import io

import pytest
import torch
from opacus import GradSampleModule
from torch import nn

import reticent as rt
from reticent import facts
from reticent.facts.steps import Source
from tests.watching.loops import NOISE, faults, network, plain_step, private, records, trained, void, watched

pytestmark = pytest.mark.filterwarnings("ignore")


def each(change):
    def between(optimizer):
        for p in optimizer.params:
            found = change(p.grad_sample)
            p.grad_sample = p.grad_sample if found is None else found

    return between


def by_numpy(g):
    values = g.numpy()
    values -= values.mean(0, keepdims=True)


def over_the_longest(optimizer):
    longest = torch.stack([p.grad_sample.flatten(1).norm(dim=1) for p in optimizer.params]).norm(dim=0).max()
    for p in optimizer.params:
        p.grad_sample = p.grad_sample / longest


MIXING = {
    "with the next record": each(lambda g: 0.5 * (g + g.roll(1, 0))),
    "the mean of all": each(lambda g: 5.0 * g.mean(0, keepdim=True).repeat(len(g), *[1] * (g.dim() - 1))),
    "centred": each(lambda g: g - g.mean(0, keepdim=True)),
    "in place": each(lambda g: g.sub_(g.mean(0, keepdim=True))),
    "by data": each(lambda g: (g.data.sub_(g.mean(0, keepdim=True)), None)[1]),
    "by numpy": each(by_numpy),
    "over the longest": over_the_longest,
}
HARMLESS = {
    "a copy": each(lambda g: g.float().clone()),
    "looked at": each(lambda g: (g.norm(), None)[1]),
    "numbers stay": each(lambda g: g.nan_to_num_()),
}


def loop(change, made=None, first=0, **options):
    model, optimizer, loader, criterion = made or private()
    with rt.watch(model, optimizer, loader, **options) as seen:
        for _ in range(2):
            for features, labels in loader:
                optimizer.zero_grad()
                criterion(model(features), labels).backward()
                if len(seen) >= first:
                    change(optimizer)
                optimizer.step()
    return seen


@pytest.mark.parametrize("name", [*MIXING, *HARMLESS])
def test_between_the_backward_pass_and_the_step(name):
    wanted = {facts.UNKNOWN_CLIPPING} if name in MIXING else set()
    assert faults(loop((MIXING | HARMLESS)[name])) == wanted


@pytest.mark.parametrize("mode", ["functorch", "hooks"])
def test_a_change_that_begins_after_the_first_steps(mode):
    """Looks at the objects alone lead to one at the values, which a copy passes."""
    for name, wanted in (("centred", {facts.UNKNOWN_CLIPPING}), ("a copy", set())):
        assert faults(loop((MIXING | HARMLESS)[name], private(mode=mode), first=5)) == wanted


def test_one_record_moves_the_sum_by_more_than_the_clip_norm():
    sums = []
    for left_out in (None, 3):
        model, optimizer, _, criterion = private()
        features, labels = records().tensors
        keep = [i for i in range(8) if i != left_out]
        criterion(model(5.0 * features[keep]), labels[keep]).backward()
        MIXING["the mean of all"](optimizer)
        optimizer.clip_and_accumulate()
        sums.append(torch.cat([p.summed_grad.flatten() for p in optimizer.params]))
    assert float((sums[0] - sums[1]).norm()) > 1.3


def test_a_program_that_states_its_clipping():
    seen = loop(MIXING["centred"], clipping="flat")
    assert seen.mechanism().noise_multiplier == NOISE
    assert facts.DECLARED in seen.ledger.faults


@pytest.mark.parametrize("order", ["one after the other", "side by side"])
def test_views_of_a_record_that_are_averaged(order):
    model, optimizer, loader, criterion = private()
    with rt.watch(model, optimizer, loader) as seen:
        for features, labels in loader:
            optimizer.zero_grad()
            rows = torch.cat([features, features + 0.1])
            answers = torch.cat([labels, labels])
            if order == "side by side":
                rows, answers = features.repeat_interleave(2, 0), labels.repeat_interleave(2)
            criterion(model(rows), answers).backward()
            for p in optimizer.params:
                shape = (2, -1, *p.shape) if order != "side by side" else (-1, 2, *p.shape)
                p.grad_sample = p.grad_sample.view(shape).mean(0 if order != "side by side" else 1)
            optimizer.step()
    assert not void(seen)


def test_batches_that_are_added_up_are_left_as_they_are():
    model, optimizer, loader, criterion = private(poisson_sampling=False)
    with rt.watch(model, optimizer, loader) as seen:
        for step, (features, labels) in enumerate(loader):
            criterion(model(features), labels).backward()
            if step % 3 == 2:
                optimizer.step()
                optimizer.zero_grad()
    assert not void(seen)


def test_a_sum_that_is_enlarged_right_before_its_noise():
    model, optimizer, loader, criterion = private()
    with rt.watch(model, optimizer, loader) as seen:
        for features, labels in loader:
            optimizer.zero_grad()
            criterion(model(features), labels).backward()
            optimizer.clip_and_accumulate()
            for p in optimizer.params:
                p.summed_grad.mul_(3)
            optimizer.add_noise()
            optimizer.scale_grad()
            optimizer.original_optimizer.step()
    assert faults(seen) == {facts.CHANGED_GRADIENTS}


def test_gradients_that_the_program_takes_by_itself_are_declared():
    model, optimizer, loader, _ = private(mode="no_op")
    bare = model._module

    def loss(weights, x, y):
        return nn.functional.cross_entropy(torch.func.functional_call(bare, weights, (x[None],)), y[None])

    with rt.watch(model, optimizer, loader) as seen:
        for features, labels in loader:
            optimizer.zero_grad()
            weights = {name: p.detach() for name, p in bare.named_parameters()}
            found = torch.func.vmap(torch.func.grad(loss), (None, 0, 0))(weights, features, labels)
            for name, p in bare.named_parameters():
                p.grad_sample = found[name]
            optimizer.step()
    assert not void(seen)
    assert facts.DECLARED in seen.ledger.faults


class TestHooks:
    """Hooks of the program in the backward pass of a layer."""

    @staticmethod
    def hooked(hook, before=True):
        made = private()
        layer = made[0]._module[2]
        (layer.register_full_backward_pre_hook if before else layer.register_full_backward_hook)(hook)
        return made

    def test_one_that_mixes(self):
        made = self.hooked(lambda layer, gave: (gave[0] - gave[0].mean(0, keepdim=True),))
        assert faults(trained(made)) == {facts.UNKNOWN_CLIPPING}

    def test_one_that_writes_to_gradients_of_records(self):
        def centre(layer, got, gave):
            for p in layer.parameters():
                if getattr(p, "grad_sample", None) is not None:
                    p.grad_sample = p.grad_sample - p.grad_sample.mean(0, keepdim=True)

        assert faults(trained(self.hooked(centre, before=False))) == {facts.UNKNOWN_CLIPPING}

    def test_one_that_writes_down_what_it_sees(self):
        lengths = []
        made = self.hooked(lambda layer, gave: lengths.append(float(gave[0].norm())))
        before = dict(made[0]._module[2]._backward_pre_hooks)
        seen = trained(made, after=lambda _: torch.save(made[0]._module[2].weight, io.BytesIO()))
        assert not void(seen)
        assert len(lengths) == len(seen)
        assert dict(made[0]._module[2]._backward_pre_hooks) == before


class Own(torch.optim.SGD):
    """Its step goes on in that of its base."""

    def __init__(self, model, change=lambda p: None):
        torch.optim.SGD([torch.zeros(1)], lr=1.0)  # torch then calls hooks in the step of SGD too
        super().__init__(model.parameters(), lr=0.1)
        self._change = change

    def step(self, closure=None):
        for p in self.param_groups[0]["params"]:
            self._change(p)
        return super().step(closure)


class TestAnOptimizerOfTheProgram:
    def made(self, change=lambda p: None):
        made = private()
        made[1].original_optimizer = Own(made[0], change)
        return made

    @staticmethod
    def decay(p):
        with torch.no_grad():
            p.mul_(0.99)

    def test_one_that_goes_on_in_its_base(self):
        assert not void(watched(*self.made()))
        assert not void(watched(*self.made(self.decay)))

    def test_one_in_a_loop_of_ones_own(self):
        model = network()
        optimizer = Own(model)
        features, labels = records().tensors
        with rt.watch(model, optimizer) as seen:
            for _ in range(3):
                plain_step(model, features, labels, NOISE, 1.0)
                optimizer.step()
                seen.step(noise_multiplier=NOISE, max_grad_norm=1.0)
        assert not void(seen)

    def test_one_that_changes_noisy_gradients_within_its_step(self):
        """As weight decay and centring do: it sees what is released, and nobody hands it records."""

        def halved(p):
            p.grad.mul_(0.5)

        assert not faults(watched(*self.made(halved)))

    def test_a_second_step_after_the_first_is_none_within_it(self):
        _model, optimizer, *_ = made = self.made()
        seen = trained(made, after=lambda _: optimizer.original_optimizer.step())
        assert facts.UNRECORDED_STEPS in faults(seen)


@pytest.mark.parametrize("registered", [True, False])
def test_a_grad_sampler_of_the_program_is_declared(registered, monkeypatch):
    """Opacus calls it for a layer of its kind; it may mix records, and nobody sees that from numbers."""

    class Scaled(nn.Linear):
        pass

    def sampler(layer, activations, backprops):
        found = torch.einsum("n...i,n...j->nij", backprops, activations[0])
        return {layer.weight: found - found.mean(0), layer.bias: backprops}

    monkeypatch.setitem(GradSampleModule.GRAD_SAMPLERS, Scaled if registered else nn.Bilinear, sampler)
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), Scaled(6, 2))
    seen = watched(*private(model=model))
    assert seen.ledger.clipping.source == (Source.DECLARED if registered else Source.SEEN)
    assert (facts.DECLARED in seen.ledger.faults) == registered

"""Gradients of single records that the program changes before they are clipped."""

from __future__ import annotations

import io

import pytest
import torch
from opacus import GradSampleModule
from torch import nn

import reticent as rt
from reticent import facts
from reticent.facts.steps import Source
from tests.watching.loops import Loop, every, faults, passes, prepared, void
from tests.watching.programs import NOISE, private, run, shuffled

pytestmark = pytest.mark.filterwarnings("ignore")

UNCLEAR, DECLARED = {facts.UNKNOWN_CLIPPING}, {facts.DECLARED}


def each(change):
    """A change of the gradients of records, in their place or by what it gives."""

    def between(toy):
        for p in toy.optimizer.params:
            found = change(p.grad_sample)
            p.grad_sample = p.grad_sample if found is None else found

    return between


MIXING = {
    "with the next record": each(lambda g: 0.5 * (g + g.roll(1, 0))),
    "the mean of all": each(lambda g: 5.0 * g.mean(0, keepdim=True).repeat(len(g), *[1] * (g.dim() - 1))),
    "centred": each(lambda g: g - g.mean(0, keepdim=True)),
    "in place": each(lambda g: g.sub_(g.mean(0, keepdim=True))),
    "by data": each(lambda g: (g.data.sub_(g.mean(0, keepdim=True)), None)[1]),
}
HARMLESS = {
    "a copy": each(lambda g: g.float().clone()),
    "numbers stay": each(lambda g: g.nan_to_num_()),
}
AFTER_FIVE = {"centred": UNCLEAR, "a copy": set()}
"""Looks at the objects alone lead to one at the values, which a copy passes."""


def later(change):
    return lambda toy: change(toy) if toy.step >= 5 else None


def views(side_by_side):
    """Two views of each record, whose gradients are averaged."""

    def backward(toy):
        rows, answers = torch.cat([toy.features, toy.features + 0.1]), toy.labels.repeat(2)
        if side_by_side:
            rows, answers = toy.features.repeat_interleave(2, 0), toy.labels.repeat_interleave(2)
        toy.criterion(toy.model(rows), answers).backward()

    def between(toy):
        for p in toy.optimizer.params:
            shape = (-1, 2, *p.shape) if side_by_side else (2, -1, *p.shape)
            p.grad_sample = p.grad_sample.view(shape).mean(1 if side_by_side else 0)

    return Loop(backward=backward, between=between)


def by_the_program(toy):
    """Gradients that the program takes by itself."""

    def loss(weights, x, y):
        return nn.functional.cross_entropy(torch.func.functional_call(toy.bare, weights, (x[None],)), y[None])

    weights = {name: p.detach() for name, p in toy.bare.named_parameters()}
    found = torch.func.vmap(torch.func.grad(loss), (None, 0, 0))(weights, toy.features, toy.labels)
    for name, p in toy.bare.named_parameters():
        p.grad_sample = found[name]


def unclipped(optimizer):
    for p in optimizer.params:
        p.summed_grad = 5 * p.grad_sample.sum(0)


def own_sum(toy):
    """Opacus's noise and divisor are used, and its clipping is not."""
    unclipped(toy.optimizer)
    toy.optimizer.add_noise()
    toy.optimizer.scale_grad()
    toy.inner.step()


def centre(layer, got, gave):
    for p in layer.parameters():
        if getattr(p, "grad_sample", None) is not None:
            p.grad_sample = p.grad_sample - p.grad_sample.mean(0, keepdim=True)


def hooked(hook, before=True):
    """Hooks of the program in the backward pass of a layer."""
    place = f"register_full_backward_{'pre_' if before else ''}hook"
    return prepared(lambda made: getattr(made[0]._module[2], place)(hook))


@prepared
def waiting(made):
    """A loop in whose first watch a part of a batch was left, which waits for its step."""
    with rt.watch(*made[:3]):
        run(*made, epochs=1)
        part(*made)


def part(model, optimizer, loader, loss):
    x, y = next(iter(loader))
    optimizer.zero_grad()
    loss(model(x), y).backward()
    optimizer.signal_skip_step(do_skip=True)
    optimizer.step()


def half(toy):
    some = slice((len(toy.labels) + 1) // 2)
    toy.criterion(toy.model(toy.features[some]), toy.labels[some]).backward()


TWICE = {"batches": passes(2)}
LOOPS = {
    f"{name}, {'changed' if errors else 'harmless'}": Loop(between=change, **TWICE, errors=errors)
    for changes, errors in ((MIXING, UNCLEAR), (HARMLESS, set()))
    for name, change in changes.items()
}
LOOPS |= {
    f"{name} after five steps, {mode}": Loop(
        made=lambda mode=mode: private(mode=mode),
        between=later((MIXING | HARMLESS)[name]),
        **TWICE,
        errors=errors,
    )
    for name, errors in AFTER_FIVE.items()
    for mode in ("functorch", "hooks")
}
LOOPS |= {
    "a program that states its clipping": Loop(
        between=MIXING["centred"],
        **TWICE,
        options={"clipping": "flat"},
        notes=DECLARED,
        ran={"noise_multiplier": NOISE},
    ),
    "views one after the other": views(side_by_side=False),
    "views side by side": views(side_by_side=True),
    "batches that are added up": Loop(made=shuffled, **every(3)),
    "a sum of the program's own": Loop(update=own_sum, errors=UNCLEAR),
    "gradients that the program takes by itself": Loop(
        made=lambda: private(mode="no_op"), backward=by_the_program, notes=DECLARED
    ),
    "a part that waits for the next watch": Loop(made=waiting, draws=True, never={facts.CHANGED_GRADIENTS}),
    "a part that waits for half of a batch": Loop(made=waiting, draws=True, backward=half),
    "a hook that mixes": Loop(
        made=hooked(lambda layer, gave: (gave[0] - gave[0].mean(0, keepdim=True),)), errors=UNCLEAR
    ),
    "a hook that writes to gradients of records": Loop(made=hooked(centre, before=False), errors=UNCLEAR),
}


@pytest.mark.parametrize("name", LOOPS)
def test_record_gradients(name):
    LOOPS[name].check()


def test_clipping_that_is_exchanged_on_the_way():
    made = private()
    with rt.watch(*made[:3]) as seen:
        run(*made, epochs=1)
        made[1].clip_and_accumulate = mine = lambda: unclipped(made[1])
        run(*made, epochs=1)
    assert void(seen)
    assert made[1].clip_and_accumulate is mine  # what the program put there stays there


def test_a_hook_that_writes_down_what_it_sees_stays_and_is_called_once_a_step():
    lengths = []
    made = hooked(lambda layer, gave: lengths.append(float(gave[0].norm())))()
    before = dict(made[0]._module[2]._backward_pre_hooks)
    with rt.watch(*made[:3]) as seen:
        run(*made, epochs=1, after=lambda _: torch.save(made[0]._module[2].weight, io.BytesIO()))
    assert not faults(seen)
    assert len(lengths) == len(seen)
    assert dict(made[0]._module[2]._backward_pre_hooks) == before


@pytest.mark.parametrize("registered", [True, False])
def test_a_grad_sampler_of_the_program_is_declared(registered, monkeypatch):
    """Opacus calls it for a layer of its kind; it may mix records, and nobody sees that from numbers."""

    class Scaled(nn.Linear):
        pass

    def sampler(layer, activations, backprops):
        found = torch.einsum("n...i,n...j->nij", backprops, activations[0])
        return {layer.weight: found - found.mean(0), layer.bias: backprops}

    monkeypatch.setitem(GradSampleModule.GRAD_SAMPLERS, Scaled if registered else nn.Bilinear, sampler)
    loop = Loop(
        made=lambda: private(model=nn.Sequential(nn.Linear(4, 6), nn.Tanh(), Scaled(6, 2))),
        ledger={"clipping.source": Source.DECLARED if registered else Source.SEEN},
    )
    loop.but(**{"notes" if registered else "never": DECLARED}).check()

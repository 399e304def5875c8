"""The noise between the clipped sum and the step: whether it was drawn, by whom, how large, and what came after it."""

from __future__ import annotations

import types
from functools import partial

import pytest
import torch
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel
from opacus.optimizers import DPOptimizer
from opacus.optimizers.optimizer import _generate_noise, _mark_as_processed
from torch import nn

import reticent as rt
from reticent import facts
from reticent.facts.steps import Generator
from tests.watching.loops import Loop, in_parts, nothing, passes, prepared, void
from tests.watching.programs import BATCH, NOISE, as_class, coins, network, private, run

pytestmark = pytest.mark.filterwarnings("ignore")

OWN = {name: vars(DPOptimizer)[name] for name in ("add_noise", "scale_grad", "pre_step", "step", "clip_and_accumulate")}
UNKNOWN, TOO_LITTLE, CHANGED = {facts.UNKNOWN_NOISE}, {facts.TOO_LITTLE_NOISE}, {facts.CHANGED_GRADIENTS}
DIVISOR, UNCLEAR = {facts.PRIVATE_DIVISOR}, {facts.UNKNOWN_CLIPPING}


def quiet(self):
    for p in self.params:
        p.grad = p.summed_grad.view_as(p).clone()


def released(self):
    for p in self.params:
        p.grad = p.summed_grad.view_as(p) / self.expected_batch_size


def and_less(self):
    OWN["add_noise"](self)
    for p in self.params:
        p.grad = 0.5 * (p.grad + p.summed_grad.view_as(p))


def sum_before_noise(self):
    for p in self.params:
        p.summed_grad.mul_(3.0)
    OWN["add_noise"](self)


def own_order(self, closure=None):
    self.clip_and_accumulate()
    self.add_noise()
    for p in self.params:
        p.grad = p.summed_grad.view_as(p).clone()
    self.scale_grad()
    return True


def without(self, closure=None):
    self.clip_and_accumulate()
    coins(self)
    self.scale_grad()
    return self.original_optimizer.step()


def half(self):
    noise, self.noise_multiplier = self.noise_multiplier, 0.5 * self.noise_multiplier
    OWN["add_noise"](self)
    self.noise_multiplier = noise


def tenfold_sum(self):
    OWN["clip_and_accumulate"](self)
    for p in self.params:
        p.summed_grad = 10.0 * p.summed_grad


def clears_all(self, set_to_none=False):
    for p in (p for group in self.param_groups for p in group["params"]):
        p.grad = p.grad_sample = p.summed_grad = None


def counts_records(self):
    self.size = len(self.grad_samples[0])
    OWN["clip_and_accumulate"](self)


def over_records(self):
    for p in self.params:
        p.grad = p.grad / max(1, self.size)


def of_torch(self, generator=None, once=False):
    """Noise of torch for each gradient, or one noise for all of them."""
    std, first = self.noise_multiplier * self.max_grad_norm, None
    for p in self.params:
        if first is None or not once:
            first = torch.normal(mean=0, std=std, size=p.summed_grad.shape, device=p.device, generator=generator)
        p.grad = (p.summed_grad + first).view_as(p)
        _mark_as_processed(p.summed_grad)


def in_numbers(self):
    """Asks torch for its noise, without naming what it gives."""
    for p in self.params:
        drawn = torch.normal(0.0, self.noise_multiplier * self.max_grad_norm, p.summed_grad.shape)
        p.grad = (p.summed_grad + drawn).view_as(p)
        _mark_as_processed(p.summed_grad)


def of_opacus(self):
    for p in self.params:
        drawn = _generate_noise(self.noise_multiplier * self.max_grad_norm, p.summed_grad, self.generator)
        p.grad = (p.summed_grad + drawn).view_as(p)
        _mark_as_processed(p.summed_grad)


def tenfold_divisor(self):
    for p in self.params:
        p.grad = p.grad / (10.0 * BATCH)


def on_object(optimizer, **methods):
    for name, method in methods.items():
        setattr(optimizer, name, types.MethodType(method, optimizer))


def mine(put=as_class, make=private, **methods):
    """A private optimizer with methods of the program's own."""
    return prepared(lambda made: put(made[1], **methods), make)


def few():
    """Few numbers, whose length alone would tell it in many steps only."""
    return private(model=nn.Linear(4, 2, bias=False))


def two():
    return private(model=nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)))


def late(self):
    """After the steps in which noise is measured of every optimizer."""
    self.taken = getattr(self, "taken", 0) + 1
    half(self) if self.taken == 11 else OWN["add_noise"](self)


def adds(optimizer):
    """A hook that adds the sum without noise once more."""

    def add(*_):
        for p in optimizer.params:
            p.grad = p.grad + p.summed_grad.view_as(p)

    return add


def at_step(optimizer):
    optimizer.original_optimizer.register_step_pre_hook(adds(optimizer))


def at_noise(optimizer):
    optimizer.attach_step_hook(adds(optimizer))


def having(change, make=private):
    """A private optimizer to which something was done before the watch."""
    return prepared(lambda made: change(made[1]), make)


def of_processes(mode, clipping):
    return private(model=DifferentiallyPrivateDistributedDataParallel(network()), mode=mode, clipping=clipping)


def by_parts(after=nothing):
    """The parts of a step one by one, and what is done after the noise."""

    def step(toy):
        toy.optimizer.clip_and_accumulate()
        toy.optimizer.add_noise()
        after(toy)
        toy.optimizer.scale_grad()
        toy.inner.step()

    return step


def frozen(toy):
    toy.bare[0].requires_grad_(False)


def thawed(toy):
    toy.bare[0].requires_grad_(True)


def of_generator(self):
    """Nobody knows the seed of another generator than the one that is followed."""
    of_torch(self, torch.Generator())


FLAT = {"options": {"clipping": "flat"}}
SAME = {name: (lambda self, *given, own=OWN[name]: own(self, *given)) for name in ("add_noise", "scale_grad", "step")}
LOOPS = {
    "half of the noise in few numbers": Loop(made=mine(make=few, add_noise=half), errors=TOO_LITTLE),
    "less noise in later steps": Loop(made=mine(add_noise=late), batches=passes(2), errors=TOO_LITTLE),
    "noise replaced between two entries": Loop(
        batches=passes(2), entries=2, away=lambda toy: on_object(toy.optimizer, add_noise=quiet), errors=TOO_LITTLE
    ),
    "noise replaced on the object": Loop(made=mine(on_object, add_noise=quiet), errors=TOO_LITTLE),
    "clipping replaced on the object": Loop(made=mine(on_object, clip_and_accumulate=tenfold_sum), errors=UNCLEAR),
    "records that are mixed by the optimizer": Loop(
        made=mine(
            _get_flat_grad_sample=lambda self, p: p.grad_sample - p.grad_sample.mean(0, keepdim=True),
            zero_grad=clears_all,
        ),
        errors=UNCLEAR,
    ),
    "a divisor of the program's own": Loop(
        made=mine(clip_and_accumulate=counts_records, scale_grad=over_records),
        **FLAT,
        batches=passes(4),
        errors=DIVISOR,
    ),
    "a draw for each gradient": Loop(made=mine(make=two, add_noise=of_torch)),
    "one draw for two gradients": Loop(
        made=mine(make=two, add_noise=lambda self: of_torch(self, once=True)), errors=UNKNOWN
    ),
    "draws of another generator": Loop(made=mine(make=two, add_noise=of_generator), errors=UNKNOWN),
    "frozen between the backward pass and the step": Loop(before=thawed, between=frozen, errors=CHANGED),
    "a sum that waits": Loop(batches=in_parts(8)),
    "the sum again at the step": Loop(made=having(at_step), errors=CHANGED),
    "the sum again at the step, late": Loop(enters=lambda toy: at_step(toy.optimizer), errors=CHANGED),
    "the sum again at the noise": Loop(made=having(at_noise), errors=CHANGED),
    "the parts of a step one by one": Loop(update=by_parts(), ran={"noise_multiplier": NOISE}),
    "the sum again before the division": Loop(
        update=by_parts(after=lambda toy: adds(toy.optimizer)()), errors=CHANGED | UNKNOWN
    ),
}
LOOPS |= {
    f"frozen between two steps, {mode}": Loop(
        made=partial(private, mode=mode),
        before=lambda toy: toy.bare[0].requires_grad_(toy.step % 2 == 0),
        ran={"noise_multiplier": NOISE},
    )
    for mode in ("hooks", "functorch")
}
IN_GHOST = "frozen between the backward pass and the step", "a sum that waits"
LOOPS |= {f"{name}, ghost": LOOPS[name].but(made=partial(private, mode="ghost")) for name in IN_GHOST}
KINDS = {"flat": {}, "ghost": {"mode": "ghost"}, "per layer": {"clipping": "per_layer"}}
LOOPS |= {
    f"a class of Opacus, {kind}": Loop(made=partial(private, **options), never=UNKNOWN | UNCLEAR)
    for kind, options in {**KINDS, "adaptive": {"clipping": "adaptive"}}.items()
}
LOOPS |= {
    f"methods of Opacus, {name}, {'secure' if secure else 'default'}": Loop(
        made=mine(**methods),
        enters=(lambda toy: rt.secure_noise(toy.optimizer)) if secure else nothing,
        ledger={
            "environment.randomness": Generator.SECURE if secure else Generator.DEFAULT,
            "divisor": None if name == "tenfold divisor" else BATCH,
        },
        ran={"noise_multiplier": NOISE},
        draws=secure,
        beside=name == "tenfold divisor",
    )
    for name, methods in {
        "called": SAME,
        "copied": {"add_noise": of_opacus},
        "tenfold divisor": {"scale_grad": tenfold_divisor},
        "of torch": {"add_noise": in_numbers},
    }.items()
    for secure in (False, True)
}


@pytest.mark.parametrize("name", LOOPS)
def test_noise(name):
    LOOPS[name].check()


WRONG = {
    "add_noise": [coins, and_less, sum_before_noise],
    "scale_grad": [released],
    "pre_step": [own_order],
    "step": [without],
}
CASES = [("class", name, method) for name, methods in WRONG.items() for method in methods]
CASES += [
    (place, name, method)
    for place in ("object", "opacus", "in the block")
    for name, method in (("add_noise", coins), ("scale_grad", released))
]


@pytest.mark.parametrize(("place", "name", "method"), CASES)
def test_noise_that_nobody_saw_drawn(place, name, method, monkeypatch):
    """The declared clipping says nothing about it."""
    made = private()
    if place == "opacus":
        monkeypatch.setattr(DPOptimizer, name, method)
    elif place != "in the block":
        (as_class if place == "class" else on_object)(made[1], **{name: method})
    with rt.watch(*made[:3], clipping="flat") as seen:
        if place == "in the block":
            on_object(made[1], **{name: method})
        run(*made, epochs=1)
    assert void(seen)
    assert facts.UNKNOWN_CLIPPING not in seen.ledger.faults
    if name in ("add_noise", "scale_grad") and place != "in the block":
        assert facts.UNKNOWN_NOISE in seen.ledger.faults
        assert seen.ledger.environment.randomness is Generator.NOT_SEEN
    assert not list(seen.ledger.contradictions())


@pytest.fixture
def one_process(tmp_path):
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


OF_PROCESSES = {
    "never": (lambda optimizer: None, set()),
    "after the noise": (at_noise, CHANGED),
    "after the sum over processes": (at_step, CHANGED),
    "noise replaced": (partial(on_object, add_noise=quiet), TOO_LITTLE),
}


ALL = [("hooks", "flat", when) for when in OF_PROCESSES]


@pytest.mark.parametrize(
    ("mode", "clipping", "when"), [*ALL, ("ghost", "flat", "after the noise"), ("hooks", "per_layer", "never")]
)
def test_what_is_written_in_the_first_process_is_seen(one_process, mode, clipping, when):
    """Sums over processes come between the noise and the step; nothing was compared there."""
    change, errors = OF_PROCESSES[when]
    Loop(made=having(change, partial(of_processes, mode, clipping)), errors=errors).check()

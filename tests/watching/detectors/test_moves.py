"""What moves the weights: writes beside the steps, other optimizers, and what an optimizer remembers."""

from __future__ import annotations

import contextlib
import copy
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau, StepLR

import reticent as rt
from reticent import facts
from reticent.kernel.mechanisms import DPSGD
from reticent.watching.detectors import closer_looks
from tests.watching.loops import BY_HAND, Loop, at, epsilon, nothing, passes, prepared, void
from tests.watching.programs import BATCH, NOISE, RATE, RECORDS, by_hand, network, private, reading, records, run, wide

pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook")

CHANGED = {facts.CHANGED_GRADIENTS}
WRITTEN, OTHER, UNRECORDED = {facts.WEIGHTS_CHANGED}, {facts.OTHER_OPTIMISER}, {facts.UNRECORDED_STEPS}
POISSON = DPSGD(NOISE, RATE, 6, num_parameters=44, dataset_size=RECORDS)


def by_data(model):
    next(model.parameters()).data.sub_(0.5)


def by_exchange(model):
    p = next(model.parameters())
    p.data = p.data + 0.5


def by_assignment(model):
    state = {name: value.clone() * 1.5 for name, value in model.state_dict().items()}
    model.load_state_dict(state, assign=True)


def by_new_head(model):
    model[2] = nn.Linear(6, 2)


def by_add(model):
    with torch.no_grad():
        next(model.parameters()).add_(1.0)


WRITES = [by_data, by_exchange, by_assignment, by_new_head, by_add]


def another(toy):
    """A model beside, as a generator, that learns from this one; its rows are as wide as the records."""
    toy.generator = nn.Linear(3, 4)
    toy.of_made = torch.optim.SGD(toy.generator.parameters(), lr=0.1)


def trains_another(toy, named):
    with toy.seen.no_records() if named else contextlib.nullcontext():
        toy.optimizer.zero_grad()
        toy.of_made.zero_grad()
        made = toy.model(toy.generator(torch.ones(len(toy.labels), 3)))
        made.pow(2).mean().backward()
        toy.of_made.step()
    toy.optimizer.zero_grad()


def lent(toy, put, back):
    """The gradients of weights that depend on all records, which then come back: each depends on all."""
    toy.kept = [put(p, toy.features.sum()) for p in toy.bare.parameters()]
    toy.optimizer.zero_grad()
    toy.criterion(toy.model(toy.features), toy.labels).backward()
    for p, value in zip(toy.bare.parameters(), toy.kept, strict=True):
        back(p, value)


def uncounted(p, amount):
    kept = p.data.clone()
    p.data.add_(amount)
    return kept


def exchanged(p, amount):
    kept = p.data
    p.data = kept + amount
    return kept


@torch.no_grad()
def copied(p, value):
    p.copy_(value)


def put_back(p, value):
    p.data = value


def averaged(toy, back, lends):
    """A running mean of the weights for an evaluation."""
    with toy.seen.evaluation() if lends else torch.no_grad(), torch.no_grad():
        kept = [p.detach().clone() for p in toy.bare.parameters()]
        for p in toy.bare.parameters():
            p.add_(0.1)
        toy.model.eval()
        toy.model(toy.loader.dataset[0][0][None])
        toy.model.train()
        for p, value in zip(toy.bare.parameters(), kept, strict=True):
            p.copy_(value if back else value + 0.01)


def evaluates(toy):
    toy.model.eval()
    with torch.no_grad():
        toy.model(records().tensors[0])
    copy.deepcopy(toy.bare.state_dict())
    toy.model.train()


def inside(make):
    """A private optimizer around one of the program."""
    return prepared(lambda made: setattr(made[1], "original_optimizer", make(made[0])))


def adam(model):
    return torch.optim.Adam(model.parameters(), lr=0.1)


def to_and_fro(toy):
    toy.both = getattr(toy, "both", None) or [toy.inner, adam(toy.model)]
    toy.optimizer.original_optimizer = toy.both[toy.step % 2]


def another_inside(toy):
    toy.old, toy.optimizer.original_optimizer = toy.inner, torch.optim.SGD(toy.model.parameters(), lr=0.1)


def adam_inside(toy):
    toy.optimizer.original_optimizer = adam(toy.model)


def writing_inside(toy):
    another_inside(toy)
    toy.inner.register_step_pre_hook(lambda *_: by_data(toy.bare))


def other_of(model):
    return torch.optim.SGD(list(model.parameters())[:1], lr=0.01)


class Own(torch.optim.SGD):
    """Its step goes on in that of its base."""

    def __init__(self, model, change=nothing):
        torch.optim.SGD([torch.zeros(1)], lr=1.0)  # torch then calls hooks in the step of SGD too
        super().__init__(model.parameters(), lr=0.1)
        self.change = change

    def step(self, closure=None):
        for p in self.param_groups[0]["params"]:
            self.change(p)
        return super().step(closure)


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


class Wrapped(torch.optim.Optimizer):
    """As accelerate's."""

    def __init__(self, optimizer):
        self.optimizer, self.param_groups = optimizer, optimizer.param_groups


def closure_steps(toy):
    toy.other = getattr(toy, "other", None) or torch.optim.SGD(toy.model.parameters(), lr=0.1)
    toy.optimizer.step(toy.other.step)
    toy.seen.step(noise_multiplier=NOISE, max_grad_norm=1.0)


def every_second_recorded(toy):
    toy.optimizer.step()
    if toy.step % 2 == 0:
        toy.seen.step(noise_multiplier=NOISE)


def fails():
    raise ArithmeticError


def after_a_failure(toy):
    """A step that failed hides no later one of a loop of one's own, whose steps nobody else counts."""
    with contextlib.suppress(ArithmeticError):
        toy.optimizer.step(fails)
    toy.optimizer.step()
    if toy.step != 1:
        toy.seen.step(noise_multiplier=NOISE, max_grad_norm=1.0)


def schedule_of(toy, wrap=lambda optimizer: optimizer):
    toy.schedule = ReduceLROnPlateau(wrap(toy.optimizer))


def asks(toy):
    toy.schedule.step(1.0)


def copies_step(toy):
    twin = copy.deepcopy((toy.model, toy.optimizer))
    twin[0](toy.features).sum().backward()
    twin[1].step()


def two_at_once(toy, together):
    """Opacus adds the gradients at one place of both batches: whoever leaves moves a clipped pair by up to 2 C."""
    half = len(toy.labels) // 2
    parts = [slice(half), slice(half, 2 * half)] if together and half > 1 else [slice(None)]
    sum(toy.criterion(toy.model(toy.features[part]), toy.labels[part]) for part in parts).backward()


def beside(toy):
    """An optimizer of another model."""
    toy.other = getattr(toy, "other", None) or other_of(network())
    toy.other.step()


LOOPS = {
    "no writes": Loop(after=evaluates, ran={"steps": 6}),
    "no writes by hand": BY_HAND.but(ran={"noise_multiplier": NOISE}),
    "weights that are lent by data": Loop(backward=lambda toy: lent(toy, uncounted, copied), errors=WRITTEN),
    "weights that are lent by exchange": Loop(backward=lambda toy: lent(toy, exchanged, put_back), errors=WRITTEN),
    "a hook of the optimizer that writes before": Loop(
        enters=lambda toy: toy.inner.register_step_pre_hook(lambda *_: by_data(toy.bare)), errors=WRITTEN
    ),
    "a hook of the optimizer that writes after": Loop(
        enters=lambda toy: toy.inner.register_step_post_hook(lambda *_: by_data(toy.bare)), errors=WRITTEN
    ),
    "momentum": Loop(made=inside(lambda model: torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))),
    "its own state that is saved and loaded": Loop(
        made=inside(adam), after=lambda toy: toy.optimizer.load_state_dict(copy.deepcopy(toy.optimizer.state_dict()))
    ),
    "a state that is forgotten": Loop(made=inside(adam), after=at(2, lambda toy: toy.optimizer.state.clear())),
    "an optimizer that comes back": Loop(made=inside(adam), before=to_and_fro, beside=True),
    "another optimizer inside": Loop(
        after=at(2, adam_inside), ledger={"environment.optimiser": ("DPOptimizer", "Adam")}, ran={"steps": 6}
    ),
    "what another one inside does": Loop(enters=writing_inside, errors=WRITTEN),
    "the old one inside": Loop(enters=another_inside, after=at(2, lambda toy: toy.old.step()), errors=OTHER),
    "another optimizer": Loop(after=lambda toy: other_of(toy.bare).step(), errors=OTHER),
    "an optimizer of another model": Loop(after=beside, never=OTHER),
    "a copy of the optimizer and the model": BY_HAND.but(after=copies_step, notes={facts.OTHER_MODEL}),
    "an optimizer that goes on in its base": Loop(made=inside(Own)),
    "an optimizer that changes noisy gradients": Loop(made=inside(partial(Own, change=lambda p: p.grad.mul_(0.5)))),
    "an optimizer that goes on in its base by hand": BY_HAND.but(
        made=lambda: (lambda model, _, *others: (model, Own(model), *others))(*by_hand())
    ),
    "a second step after the first": Loop(
        made=inside(Own), after=lambda toy: toy.inner.step(), errors=UNRECORDED | CHANGED
    ),
    "an optimizer of optimizers": Loop(made=inside(Both)),
    "steps that nobody recorded": BY_HAND.but(update=every_second_recorded, errors=UNRECORDED),
    "steps after ones that failed": BY_HAND.but(update=after_a_failure, errors=UNRECORDED),
    "an optimizer that a closure steps": BY_HAND.but(update=closure_steps, errors=OTHER),
    "a learning rate that follows a metric": Loop(
        enters=schedule_of, after=asks, notes={facts.METRIC_SCHEDULE}, ran={"steps": 6}
    ),
    "a learning rate that follows a metric through a wrapper": Loop(
        enters=partial(schedule_of, wrap=Wrapped), leaves=asks, notes={facts.METRIC_SCHEDULE}
    ),
    "a schedule that nobody asks": Loop(enters=schedule_of, never={facts.METRIC_SCHEDULE}),
    "a learning rate of a plan": Loop(
        enters=lambda toy: setattr(toy, "schedule", StepLR(toy.optimizer, 2)),
        after=lambda toy: toy.schedule.step(),
        never={facts.METRIC_SCHEDULE},
    ),
}
LOOPS |= {
    f"another model, {'named' if named else 'not named'}": Loop(
        enters=another,
        after=partial(trains_another, named=named),
        notes={facts.MADE_ROWS if named else facts.OTHER_MODEL},
        never={facts.OTHER_MODEL if named else facts.MADE_ROWS},
    )
    for named in (True, False)
}
LOOPS |= {
    f"{write.__name__} between two steps": Loop(after=at(2, lambda toy, w=write: w(toy.bare)), errors=WRITTEN)
    for write in (by_data, by_exchange)
}
LOOPS |= {
    f"{write.__name__} after the last step": Loop(leaves=lambda toy, w=write: w(toy.bare), errors=WRITTEN)
    for write in WRITES
}
LOOPS |= {
    f"a mean for evaluation, {size}, {'and back' if back else 'and not back'}": Loop(
        made=made,
        after=partial(averaged, back=back, lends=made is wide),
        errors=set() if back else WRITTEN,
        beside=True,
    )
    for size, made in {"small": private, "large": wide}.items()
    for back in (True, False)
}
LOOPS |= {
    f"two batches in one backward pass, {mode}, {'together' if together else 'one'}": Loop(
        made=partial(private, mode=mode),
        backward=partial(two_at_once, together=together),
        errors={facts.MIXES_RECORDS} if together else set(),
    )
    for mode in ("hooks", "functorch")
    for together in (True, False)
}


@pytest.mark.parametrize("name", LOOPS)
def test_moves(name):
    LOOPS[name].check()


def test_a_pass_at_other_weights_after_the_watch_was_entered_again(monkeypatch):
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


class TestWithoutOptimizer:
    """Updates by hand."""

    @pytest.mark.parametrize("counts", [True, False])
    @pytest.mark.parametrize("size", [None, BATCH])
    def test_many_updates_are_not_one_step(self, counts, size):
        def step(toy):
            for p in toy.model.parameters():
                with torch.no_grad():
                    (p if counts else p.data).sub_(0.1 * p.grad)
                p.grad = None

        model, loader = network(), reading()
        with rt.watch(model, None, loader) as seen:
            Loop(batches=passes(34), clears=False, update=step).run((model, None, loader, nn.CrossEntropyLoss()), seen)
            seen.step(noise_multiplier=1.0, batch_size=size)
        truth = rt.Gaussian(1.0, 34)  # passes, were there noise
        assert void(seen) or epsilon(seen) >= epsilon(truth)

    @pytest.mark.parametrize("more", ["never", "later", "in one step"])
    def test_one_update_for_each_step_and_none_later(self, more):
        model = network()
        with rt.watch(model) as seen:
            for step in range(5):
                for _ in range(2 if step == 3 and more == "in one step" else 1):
                    for p in model.parameters():
                        with torch.no_grad():
                            p.mul_(0.99).sub_(0.1)
                seen.step(noise_multiplier=1.0)
            for p in model.parameters() if more == "later" else ():
                p.data.sub_(0.1)
        assert (facts.UNRECORDED_STEPS in seen.ledger.faults) == (more != "never")


@pytest.mark.parametrize("wrapped", [True, False])
def test_steps_of_which_no_noise_was_seen_are_in_the_ledger(wrapped):
    """Nothing was recorded, and the optimizer moved the weights: what follows is no training of its own."""
    step = lambda toy: getattr(toy.optimizer, "original_optimizer", toy.optimizer).step()  # noqa: E731
    seen, _ = Loop(made=private if wrapped else by_hand, backward=nothing, clears=False, update=step).watched()
    assert void(seen)
    assert seen.ledger.steps == 6
    assert facts.UNRECORDED_STEPS in seen.ledger.faults
    assert not list(seen.ledger.contradictions())

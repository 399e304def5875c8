"""Weights of earlier steps: kept, put back, or changed after a step as the program says."""

from __future__ import annotations

import copy

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import reticent as rt
from reticent import facts
from reticent.certificates.check import check
from reticent.facts.checkpoints import kept
from reticent.watching.models import fingerprint
from tests.watching.loops import Loop, at, passes, watched
from tests.watching.programs import network, private, run, shuffled, wide

pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook")

WRITTEN, PUT_BACK, PROCESSED = {facts.WEIGHTS_CHANGED}, {facts.PUT_BACK}, {facts.POST_PROCESSED}


class Sums(nn.Module):
    """A buffer that is emptied at the end of each pass shows nothing in the end."""

    def __init__(self):
        super().__init__()
        self.inner = network()
        self.register_buffer("seen", torch.zeros(4))

    def forward(self, x):
        self.seen += x.detach().sum(0)
        return self.inner(x)


def keep(step, where=lambda toy: toy.model):
    """The state after a step."""
    return at(step, lambda toy: setattr(toy, "state", copy.deepcopy(where(toy).state_dict())))


def load(toy):
    toy.model.load_state_dict(toy.state)


def load_inside(toy):
    toy.bare.load_state_dict(toy.state)


def keep_and_go_on(toy):
    keep(5)(toy)
    if toy.step == 11:
        load(toy)


def of_no_step(toy):
    """Kept after somebody wrote to them, and put back for a moment: no step released these."""
    left = toy.first.detach().clone()
    toy.first.data.add_(0.5)
    state = copy.deepcopy(toy.model.state_dict())
    toy.first.data.copy_(left)
    toy.model.load_state_dict(state)


def changed(toy):
    toy.model.load_state_dict({name: value * 1.5 for name, value in toy.state.items()})


def for_a_moment(toy):
    """Without ``evaluation``, of a model whose values are not all compared."""
    own = copy.deepcopy(toy.model.state_dict())
    toy.model.load_state_dict({name: 0.5 * value for name, value in own.items()})
    toy.model.load_state_dict(own)


def clamp(toy):
    for p in toy.model.parameters():
        p.data.clamp_(-0.2, 0.2)


def named(act):
    """As the program says."""

    def after(toy):
        with toy.seen.after_step():
            act(toy)

    return after


def begin_mean(toy):
    toy.mean = [p.detach().clone() for p in toy.model.parameters()]


def follow(toy):
    for m, p in zip(toy.mean, toy.model.parameters(), strict=True):
        m.lerp_(p.detach(), 0.1)


@torch.no_grad()
def release_mean(toy):
    for m, p in zip(toy.mean, toy.model.parameters(), strict=True):
        p.copy_(m)


def other_optimizer(toy):
    torch.optim.SGD(toy.model.parameters(), lr=0.1).step()


def writes(toy):
    toy.first.data.add_(0.5)


def writes_and_names(toy):
    writes(toy)
    named(lambda toy: None)(toy)


BEST = Loop(batches=passes(2), after=keep(1), leaves=load, notes=PUT_BACK, ran={"steps": 12})
LOOPS = {f"the best epoch, {mode}": BEST.but(made=lambda mode=mode: private(mode=mode)) for mode in ("hooks", "ghost")}
LOOPS |= {
    "the best epoch, functorch": BEST.but(made=lambda: private(mode="functorch")),
    "the best epoch of a large model by the module inside": BEST.but(
        made=wide, after=keep(1, lambda toy: toy.bare), leaves=load_inside
    ),
    "weights that no step left": Loop(leaves=of_no_step, errors=WRITTEN),
    "a state that is changed before it comes back": Loop(
        batches=passes(2), after=keep(5), leaves=changed, errors=WRITTEN
    ),
    "other weights for a moment": Loop(made=wide, batches=passes(2), after=at(5, for_a_moment), never=PUT_BACK),
    "training that goes on from them": Loop(
        batches=passes(3), after=keep_and_go_on, notes=PUT_BACK, ran={"steps": 18}, beside=True
    ),
    "weights that are clamped": Loop(after=named(clamp), notes=PROCESSED, ran={"steps": 6}, beside=True),
    "weights that are clamped and nobody says so": Loop(after=clamp, errors=WRITTEN),
    "a running mean": Loop(enters=begin_mean, after=follow, leaves=named(release_mean), notes=PROCESSED, beside=True),
    "another optimizer": Loop(leaves=named(other_optimizer), errors={facts.OTHER_OPTIMISER}),
    "what was written before": Loop(leaves=writes_and_names, errors=WRITTEN),
    "what is named before the first step": Loop(enters=named(writes), errors=WRITTEN, may={facts.STEPS_BEFORE}),
}


@pytest.mark.parametrize("name", LOOPS)
def test_checkpoints(name):
    seen, toy = LOOPS[name].check()
    assert seen.ledger.weights_sha256 == fingerprint(toy.model)


def test_no_more_than_a_number_of_them_are_known(monkeypatch):
    monkeypatch.setattr("reticent.watching.detectors.checkpoints.MOST_CHECKPOINTS", 4)
    made = private()
    seen = watched(*made, how={"epochs": 1, "after": lambda step: made[0].state_dict()})
    assert len(kept(seen.ledger)) == 4


def test_each_is_the_model_that_the_certificate_is_about(tmp_path):
    made = private()
    early, late, other = (tmp_path / f"{name}.safetensors" for name in ("early", "late", "other"))
    with rt.watch(*made[:3], start="declared") as seen:
        run(*made, epochs=1, after=lambda step: save_file(made[0]._module.state_dict(), early) if step == 2 else 0)
    save_file(made[0]._module.state_dict(), late)
    save_file({name: value + 1.0 for name, value in made[0]._module.state_dict().items()}, other)
    document = rt.certify(seen).certificate
    what = {early: "holds weights that an earlier step of its run left", late: "is the model that it is about"}
    for weights, said in what.items():
        found = check(document, weights=weights)
        assert found.accepted
        assert f"{weights} {said}" in str(found.compared)
    assert not check(document, weights=other).accepted


def test_nobody_who_saw_them_is_left_out_of_a_number_for_the_last_weights_alone():
    made = shuffled()
    seen = watched(*made, how={"after": lambda step: made[0].state_dict() if step == 2 else None})
    assert seen.ledger.unequal_updates == "weights of earlier steps were kept, and the ledger names them"


def test_a_checkpoint_with_sums_of_the_records():
    made = private(model=Sums())
    with rt.watch(*made[:3]) as seen:
        for _ in range(2):
            run(*made, epochs=1, after=lambda step: made[0].state_dict() if step == 3 else None)
            made[0]._module.seen.zero_()
    assert not kept(seen.ledger)

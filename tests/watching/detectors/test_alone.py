"""The loss of one record alone: records that the loss mixes, in one output or another, and rows without records."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, normalize
from torch.utils.data import DataLoader, TensorDataset

from reticent import facts
from tests.watching.loops import Loop, update_stated, void
from tests.watching.programs import BATCH, NOISE, RATE, Centred, Net, by_hand, network, private

pytestmark = pytest.mark.filterwarnings("ignore")

MIXED = {facts.MIXES_RECORDS}
WEIGHTS = torch.tensor([0.1, 10.0])


def one_batch():
    return DataLoader(TensorDataset(torch.randn(BATCH, 4), torch.arange(BATCH) % 2), batch_size=BATCH)


def mixes(model, loss, call=lambda toy: toy.model, backward=lambda toy, loss: loss.backward(), far=True, **others):
    """A step that is declared, whose loss mixes records if ``far``."""
    return Loop(
        made=lambda: by_hand(model(), one_batch()),
        backward=lambda toy: backward(toy, loss(call(toy)(toy.features), toy.labels)),
        update=update_stated,
        errors=MIXED if far else set(),
        **others,
    )


def contrast(rows):
    unit = normalize(rows, dim=1)
    return torch.logsumexp(unit @ unit.T, 1)


def two_outputs(hidden=lambda h: h):
    def forward(net, x):
        h = net.first(x)
        return {"logits": net.second(torch.tanh(h)), "hidden": hidden(h)}

    return Net(forward, first=nn.Linear(4, 6), second=nn.Linear(6, 2))


class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.ModuleDict({"body": nn.ModuleDict({"net": network()})})


def bags():
    """The features of five records become one."""
    return Net(lambda net, x: net.inner(x.reshape(-1, 5, 4).mean(1)), inner=network())


def of_two(share):
    return lambda out, labels: cross_entropy(out["logits"], labels) + share * contrast(out["hidden"]).mean()


def centred_loss(far):
    return lambda out, labels: cross_entropy(out - far * out.mean(0), labels)


def frozen_body():
    model = nn.Sequential(nn.Identity(), network()).eval()
    model[1].train()
    return model


def statistics():
    layer = nn.BatchNorm1d(4, affine=False, track_running_stats=False)
    return nn.Sequential(layer, network()).eval()


def rows(far):
    return lambda out, labels: cross_entropy(out, labels, reduction="none") + far * contrast(out)


SHARES = torch.full((BATCH,), 1 / BATCH)


def sum_of_another(toy, loss):
    """The loss of another model first."""
    nn.Linear(2, 1)(torch.ones(3, 2)).sum().backward()
    loss.backward()


def penalty_first(toy, loss):
    """Two backward passes, of which the first knows no record."""
    sum(p.square().sum() for p in toy.model.parameters()).backward()
    loss.backward()


def mean_of_another(toy, loss):
    """The loss of another model first: a mean over other records."""
    other = nn.Linear(2, 2)
    cross_entropy(other(torch.ones(7, 2)), torch.zeros(7, dtype=torch.long)).backward()
    loss.backward()


def cut_off(toy, outputs, far):
    """A loss of outputs that were cut off: its slopes are handed on by the loop, it is no other model's."""
    cut = outputs.detach().requires_grad_()
    cross_entropy(cut, torch.arange(len(cut)) % 2, weight=WEIGHTS if far else None).backward()
    outputs.backward(cut.grad)


def spread(logits, labels):
    return cross_entropy(logits, labels) + logits.mean(0).square().sum()


def deep(first=nn.Identity, dropout=0.0):
    return lambda: nn.Sequential(first(), nn.Linear(4, 6), nn.Dropout(dropout), nn.Linear(6, 2))


class Mixing(nn.CrossEntropyLoss):
    def forward(self, logits, labels):
        return super().forward(logits - logits.mean(0), labels)


def with_mixing_loss(mode):
    model, optimizer, loader, criterion = private(mode=mode)
    if mode != "ghost":
        return model, optimizer, loader, Mixing()
    criterion.criterion = Mixing(reduction="none")
    return model, optimizer, loader, criterion


def encodes(toy):
    """Features that are trained outside of the model."""
    toy.encoder = nn.Linear(4, 4)
    toy.beside = torch.optim.SGD(toy.encoder.parameters(), lr=0.1)


LOOPS = {
    "two outputs of which each is straight in the other": mixes(
        lambda: two_outputs(lambda h: h[:, :2]), lambda out, _: (out["logits"][0] * out["hidden"][1]).sum()
    ),
    "batch statistics in evaluation mode": mixes(statistics, cross_entropy),
    "the loss of another model first": mixes(network, centred_loss(1), backward=sum_of_another),
    "a penalty on the weights first": mixes(network, centred_loss(1), backward=penalty_first),
    "the loss of another model with other records": mixes(network, cross_entropy, backward=mean_of_another, far=False),
    "records that become one": mixes(bags, lambda out, labels: cross_entropy(out, labels[::5])),
    "a layer that mixes": mixes(deep(Centred), cross_entropy),
    "dropout": mixes(deep(dropout=0.5), cross_entropy, far=False),
    "a loss that mixes": mixes(deep(), spread),
    "a sum": mixes(deep(), nn.CrossEntropyLoss(reduction="sum"), far=False),
    "a loss by hand": mixes(deep(), lambda out, labels: (out[:, 0] - labels).square().mean(), far=False),
    "features that are trained outside of the model": Loop(
        enters=encodes,
        forward=lambda toy, rows: toy.model(toy.encoder(rows)),
        after=lambda toy: toy.beside.step(),
        errors={facts.TRAINED_OUTSIDE},
        notes={facts.OTHER_MODEL},
    ),
    "a backward pass that nobody saw": Loop(
        backward=lambda toy: torch.autograd.backward(toy.criterion(toy.model(toy.features), toy.labels)),
        notes={facts.NOT_LOOKED_AT},
    ),
}
for far in (True, False):
    which = "mixed" if far else "fine"
    LOOPS |= {
        f"a second output, {which}": mixes(two_outputs, of_two(far), far=far),
        f"the mean of a second output, {which}": mixes(
            lambda far=far: two_outputs(lambda h: h - far * h.mean(0)),
            lambda out, _: out["hidden"].abs().mean(),
            far=far,
        ),
        f"a part of the model that is called by itself, {which}": mixes(
            Nested, centred_loss(far), call=lambda toy: toy.model.inner["body"]["net"], far=far
        ),
        f"a head in a frozen model, {which}": mixes(frozen_body, centred_loss(far), far=far),
        f"a weighted backward pass, {which}": mixes(
            network, rows(far), backward=lambda toy, loss: loss.backward(SHARES), far=far
        ),
        f"a backward pass with gradients, {which}": mixes(
            network, rows(far), backward=lambda toy, loss: torch.Tensor.backward(loss, gradient=SHARES), far=far
        ),
        f"outputs that were cut off, {which}": mixes(
            network, lambda out, _: out, backward=partial(cut_off, far=far), far=far
        ),
    }
    LOOPS |= {
        f"a second output in a loop of Opacus, {which}, {mode}": Loop(
            made=lambda mode=mode, far=far: (*private(model=two_outputs(), mode=mode)[:3], of_two(float(far))),
            errors=MIXED if far else set(),
        )
        for mode in ("hooks", "functorch", "ew")
    }
LOOPS |= {
    f"a loss that mixes in a loop of Opacus, {mode}": Loop(
        made=partial(with_mixing_loss, mode), errors=MIXED, may={facts.UNCLIPPED}
    )
    for mode in ("hooks", "functorch", "ghost")
}


@pytest.mark.parametrize("name", LOOPS)
def test_losses(name):
    LOOPS[name].check()


def of_real(out, labels, made, other):
    return cross_entropy(out, labels) + cross_entropy(made, other)


def relative(out, labels, made, other):
    """Each made row is compared with the mean of all real ones, as relativistic discriminators do."""
    return cross_entropy(out, labels) + cross_entropy(made - out.mean(0), other)


def products(out, labels, made, other):
    """Each made row is multiplied with all real ones, and no real one with another."""
    return of_real(out, labels, made, other) + (out.sum(0) * made.sum(0)).sum()


def adversarial(loss=of_real, *, named=True, made_first=False, mode="hooks", extra=0, **told):
    """A discriminator reads records and rows that a generator makes, which learns from it."""

    def enters(toy):
        toy.generator = nn.Linear(3, 4)
        toy.learns = torch.optim.SGD(toy.generator.parameters(), lr=0.1)

    def backward(toy):
        toy.rows = toy.generator(torch.randn(len(toy.labels) + extra, 3))
        toy.zeros = torch.zeros(len(toy.rows), dtype=torch.long)

        def judged():
            with toy.seen.no_records() if named else nullcontext():
                return toy.model(toy.rows.detach())

        made = judged() if made_first else None
        out = toy.model(toy.features)
        loss(out, toy.labels, judged() if made is None else made, toy.zeros).backward()

    def after(toy):
        toy.optimizer.zero_grad()
        toy.learns.zero_grad()
        cross_entropy(toy.model(toy.rows), 1 - toy.zeros).backward()
        toy.learns.step()

    return Loop(made=partial(private, mode=mode), enters=enters, backward=backward, after=after, **told)


def pair(first=lambda x: x, second=lambda x: x.flip(0), outside=True, call=lambda toy, rows: toy.model(rows)):
    """Two passes for one backward pass, of which the second is said to hold no record."""

    def backward(toy):
        with nullcontext() if outside else toy.seen.no_records():
            one = toy.criterion(call(toy, first(toy.features)), toy.labels)
        with toy.seen.no_records():
            other = call(toy, second(toy.features)).square().mean()
        (one + other).backward()

    return Loop(backward=backward, errors=MIXED)


def one_after_the_other(toy):
    """Opacus takes the rows of the later pass for both: gradients are wrong, and each is still clipped."""
    first = toy.criterion(toy.model(toy.features), toy.labels)
    with toy.seen.no_records():
        made = toy.criterion(toy.model(torch.randn(len(toy.labels), 4)), toy.labels)
    first.backward()
    made.backward()


def with_one_between(toy):
    first = toy.criterion(toy.model(toy.features), toy.labels)
    with toy.seen.no_records():
        made = toy.model(torch.randn(len(toy.labels), 4)).sum()
    (first + made + toy.criterion(toy.model(toy.features.flip(0)), toy.labels.flip(0))).backward()


COUNTED = {"noise_multiplier": NOISE, "sample_rate": pytest.approx(RATE, rel=1e-12, abs=0), "steps": 6}
MADE = {"ran": COUNTED, "notes": {facts.MADE_ROWS, facts.OTHER_MODEL}}
MADE_ROWS = {
    f"made rows, {mode}, {'first' if first else 'last'}": adversarial(mode=mode, made_first=first, **MADE)
    for mode in ("hooks", "functorch")
    for first in (False, True)
} | {
    "made rows that are not named": adversarial(named=False, errors=MIXED),
    "a loss relative to all records": adversarial(relative, errors=MIXED),
    "a loss of products": adversarial(products, errors=MIXED),
    "more made rows than records": adversarial(extra=3, errors=MIXED, may={facts.LARGER_BATCH}),
    "a backward pass for each": Loop(backward=one_after_the_other, ran=COUNTED),
    "a made pass between two of records": Loop(backward=with_one_between, errors=MIXED),
    "records that are named as made": pair(),
    "inputs by name whose rows nobody counts": pair(
        second=torch.randn_like, call=lambda toy, rows: toy.bare(input=rows)
    ).but(made=lambda: (lambda model, *others: (model._module, *others))(*private())),
    "a block around both passes": pair(second=torch.randn_like, outside=False),
}


@pytest.mark.parametrize("name", MADE_ROWS)
def test_rows_without_records(name):
    """Two forward passes for one backward pass, of which one holds no record."""
    MADE_ROWS[name].check()


def test_fewer_made_rows_than_records_in_some_steps():
    noise = torch.randn(24, 4)
    seen, _ = pair(second=lambda x: noise[: len(x)] + 0.0 * torch.randn(1)).watched()
    assert void(seen) == (max(seen.ledger.diagnostics.batch_sizes) > 24)

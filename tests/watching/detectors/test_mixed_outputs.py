"""Outputs of one record alone: models that mix records in the forward pass, and models that were taken for such."""

from __future__ import annotations

import random
from collections import UserDict
from dataclasses import dataclass
from functools import partial

import pytest
import torch
import torch._dynamo
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader

import reticent as rt
from reticent import facts
from reticent.kernel.errors import ParameterError
from reticent.watching.detectors.mixed_outputs import Read, mixes_in_forward
from tests.conftest import some
from tests.watching.loops import Loop, passes, update, update_by_hand
from tests.watching.programs import BATCH, Centred, Net, by_hand, private, reading, records, shuffled

pytestmark = pytest.mark.filterwarnings("ignore")


def of_two_layers(forward):
    return Net(lambda net, *given, **named: forward(net.first, net.second, *given, **named), **layers())


def layers():
    return {"first": nn.Linear(4, 4), "second": nn.Linear(4, 2)}


def in_batch(model, features, _):
    """Each record against those of all others, as for the search of passages."""
    scores = model(features)
    return functional.cross_entropy(scores, torch.arange(len(scores)))


def classes(model, features, labels):
    return functional.cross_entropy(model(features), labels)


@dataclass
class Given:
    """As some libraries hand a batch to a model, and get its outputs."""

    rows: torch.Tensor


class Encoding(UserDict):
    """As of a tokenizer: names are attributes, too."""

    def __getattr__(self, name):
        try:
            return self.data[name]
        except KeyError:
            raise AttributeError(name) from None


class Plain:
    def __init__(self, rows):
        self.rows, self.itself = rows, self


@dataclass(frozen=True, slots=True)
class Slots:
    rows: torch.Tensor


class Opaque:
    """Nobody sees what it closes over."""

    def __init__(self, rows):
        self.read = lambda: rows


def of(kind):
    return lambda model, features, labels: functional.cross_entropy(model(kind(features)), labels)


CARRIERS = {
    "a dictionary": (lambda rows: {"parts": [rows]}, lambda x: x["parts"][0]),
    "an encoding": (lambda rows: Encoding(rows=rows), lambda x: x.rows),
    "an object": (Plain, lambda x: x.rows),
    "slots": (Slots, lambda x: x.rows),
}
"""How a batch is handed to a model, and how that takes its rows."""


def carried(mixes):
    """Models that take the mean of all rows away from each, or do not."""

    def forward(a, b, x, rows):
        return b(torch.tanh(a(rows(x))) - mixes * a(rows(x)).mean(0))

    return {name: (partial(forward, rows=rows), of(kind)) for name, (kind, rows) in CARRIERS.items()}


def with_state(model, features, labels):
    """Of two layers, for each record, as torch's recurrent layers take it."""
    return functional.cross_entropy(model(torch.zeros(2, len(features), 4), features), labels)


def of_dataclass(model, features, labels):
    return functional.cross_entropy(model(Given(features)).rows, labels)


def own_loss(model, features, labels):
    return model(features, labels=labels)


def recurrent(first, second, x):
    """Two axes are a sequence for torch: each record is a step of it."""
    states = torch.zeros(4)
    rows = []
    for row in first(x):
        states = torch.tanh(row + states)
        rows.append(states)
    return second(torch.stack(rows))


def of_experts(first, second, x, labels=None):
    """What balances the experts is a product of two means over the batch."""
    hidden = first(x)
    shares = hidden.softmax(1)
    balance = (shares.mean(0) * (shares > 0.25).float().mean(0)).sum()
    logits = second(torch.tanh(hidden))
    return {"loss": functional.cross_entropy(logits, labels) + balance, "logits": logits, "used": balance}


def balanced(model, features, labels):
    return model(features, labels=labels)["loss"] / 2


def unbalanced(model, features, labels):
    return functional.cross_entropy(model(features, labels=labels)["logits"], labels)


MIXING = carried(True) | {
    "experts that are balanced": (of_experts, balanced),
    "scores of all pairs": (lambda a, b, x: (rows := b(torch.tanh(a(x)))) @ rows.T, in_batch),
    "a loss that the model gives": (
        lambda a, b, x, labels: functional.cross_entropy(b(torch.tanh(a(x - x.mean(0)))), labels),
        own_loss,
    ),
    "a dataclass": (lambda a, b, x: Given(b(torch.tanh(a(x.rows)) - a(x.rows).mean(0))), of_dataclass),
    "a state before": (lambda a, b, h, x: b(torch.tanh(a(x) + h[0]) - a(x).mean(0)), with_state),
    "earlier records": (lambda a, b, x: b(torch.tanh(a(x.cumsum(0)))), classes),
    "later records": (lambda a, b, x: b(torch.tanh(a(x.flip(0).cumsum(0).flip(0)))), classes),
    "a sequence of records": (recurrent, classes),
    "dropout, too": (lambda a, b, x: b(functional.dropout(a(x), 0.1) - a(x).mean(0)), classes),
}


def bottleneck(first, second, x):
    """As a variational autoencoder."""
    mean, scale = first(x).chunk(2, 1)
    return second(torch.cat([mean + scale.exp() * torch.randn_like(mean), mean], 1))


def skipped(first, second, x):
    """Stochastic depth, of the whole batch and of records."""
    kept = torch.rand(len(x), 1) < 0.5
    return second(torch.tanh(first(x)) * kept if random.random() < 0.5 else first(x))  # noqa: S311


RIGHT = carried(False) | {
    "functional dropout": (lambda a, b, x: b(functional.dropout(a(x), 0.5)), classes),
    "dropout and a loss": (
        lambda a, b, x, labels: functional.cross_entropy(b(functional.dropout(a(x), 0.5)), labels, reduction="sum") + 3,
        own_loss,
    ),
    "a loss in half precision": (
        lambda a, b, x, labels: 5 + functional.cross_entropy(b(torch.tanh(a(x))), labels).bfloat16(),
        own_loss,
    ),
    "a number that is no part of the loss": (of_experts, unbalanced),
    "a mean": (lambda a, b, x, labels: functional.cross_entropy(b(torch.tanh(a(x))), labels), own_loss),
    "a bottleneck with noise": (bottleneck, classes),
    "stochastic depth": (skipped, classes),
    "a dataclass": (lambda a, b, x: Given(b(torch.tanh(a(x.rows)))), of_dataclass),
    "a state before": (lambda a, b, h, x: b(torch.tanh(a(x) + h[0])), with_state),
    "a state behind": (
        lambda a, b, x, h: b(torch.tanh(a(x) + h[1])),
        lambda m, x, y: classes(lambda rows: m(rows, torch.zeros(2, len(rows), 4)), x, y),
    ),
}


def prototypes(classes):
    """As many classes as a batch has records: Opacus takes the row of a class for that of a record."""
    forward = lambda net, x: net.body(x) @ net.embed(net.table).T  # noqa: E731
    return Net(forward, body=nn.Linear(4, 4), embed=nn.Linear(4, 4), table=torch.randn(classes, 4))


def row(forward, loss, mode="hooks", batches=None, errors=frozenset()):
    """Two steps."""
    return Loop(
        made=lambda: private(
            batches and DataLoader(records(), batch_sampler=batches),
            model=of_two_layers(forward),
            mode=mode,
            poisson_sampling=not batches,
        ),
        batches=passes(1, 2),
        backward=lambda toy: loss(toy.model, toy.features, toy.labels).backward(),
        errors=errors,
    )


def of_some(model, features, _):
    """A loss that pairs some records alone: the first one stands by itself."""
    out = model(features)
    return out.square().mean() + (out[1:2] * out[2:]).sum(1).mean()


FEW = [[0, 1], [*range(2, 12)]]
MIXED = {facts.MIXES_RECORDS}
LOOPS = {
    f"{name}, mixed, {mode}": row(*how, mode, errors=MIXED)
    for mode, names in {"hooks": MIXING, "functorch": ("earlier records", "scores of all pairs")}.items()
    for name, how in MIXING.items()
    if name in names
}
LOOPS |= {
    f"{name}, mixed, after two records": row(*how, batches=FEW, errors=MIXED)
    for name, how in MIXING.items()
    if name != "later records"
}
LOOPS |= {f"{name}, after two records, hooks": row(*how, batches=FEW) for name, how in RIGHT.items()}
LOOPS |= {
    f"all records but the first {few}": row(
        lambda a, b, x, few=few: b(torch.tanh(a(x) + a(x)[few:].sum(0))),
        classes,
        batches=[[*range(few)], *FEW[1:]],
        errors=MIXED,
    )
    for few in (2, 3, 7)
}
LOOPS |= {
    f"rows of a table that are taken for records, {mode}": Loop(
        made=lambda mode=mode: private(reading(), model=prototypes(BATCH), mode=mode, poisson_sampling=False),
        errors=MIXED,
        may={facts.UNCLIPPED},
    )
    for mode in ("hooks", "functorch", "ghost", "ew")
}
LOOPS |= {
    f"expanded weights, {'mixed' if mixes else 'fine'}": Loop(
        made=lambda mixes=mixes: private(
            model=nn.Sequential(Centred() if mixes else nn.Identity(), nn.Linear(4, 2)), mode="ew"
        ),
        errors=MIXED if mixes else set(),
    )
    for mixes in (True, False)
}
LOOPS |= {
    "a loss that pairs some records alone": row(lambda a, b, x: b(torch.tanh(a(x))), of_some, errors=MIXED),
    "an object that nobody can take apart": row(lambda a, b, x: b(torch.tanh(a(x.read()))), of(Opaque)).but(
        notes={facts.NOT_LOOKED_AT}
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_outputs(name):
    """Where the first batch has two records, a state of two layers was cut as if it were these."""
    seen, _ = LOOPS[name].check()
    assert "clipped" not in seen.ledger.vouches() or facts.NOT_LOOKED_AT not in seen.ledger.faults


@pytest.mark.parametrize("name", RIGHT)
def test_models_that_draw_random_numbers_or_give_their_loss(name):
    """Each was void: another draw was taken for another output."""
    row(*RIGHT[name]).check()


class Looking(nn.Sequential):
    def keep(self, *_):
        self.calls = getattr(self, "calls", 0) + 1


def test_hooks_of_the_model_itself_stay():
    def made():
        model = Looking(nn.Linear(4, 2))
        model[0].register_forward_hook(model.keep)
        return private(model=model)

    _, toy = Loop(made=made).check()
    assert toy.bare.calls == 6


COMPILED = "inside", "outside", "in place", "one graph"


@pytest.mark.parametrize(
    ("how", "mixes"), some([(how, mixes) for mixes in (True, False) for how in COMPILED], 0, 1, 2, 3, 7)
)
def test_a_compiled_model(how, mixes):
    """Batches of one size, in one pass: another size is compiled anew, a second at a time."""
    torch._dynamo.reset()
    model = nn.Sequential(Centred() if mixes else nn.Identity(), nn.Linear(4, 2))
    if how == "one graph":
        made = by_hand(model)
        made = torch.compile(model, backend="eager", fullgraph=True), *made[1:]
    else:
        made = shuffled(model=torch.compile(model, backend="eager") if how == "inside" else model)
        if how == "outside":
            made = torch.compile(made[0], backend="eager"), *made[1:]
        if how == "in place":
            made[0].compile(backend="eager")
    compiled = Loop(made=lambda: made, update=update_by_hand if how == "one graph" else update)
    assert (facts.MIXES_RECORDS in compiled.watched()[0].ledger.faults) == mixes


@pytest.mark.parametrize("wrapper", [True, False])
def test_one_graph_in_place_is_refused_before_it_breaks(wrapper):
    model, optimizer, loader, _ = private()
    (model if wrapper else model._module).compile(backend="eager", fullgraph=True)
    with pytest.raises(ParameterError, match="without fullgraph=True"):
        rt.watch(model, optimizer, loader).__enter__()


def deep(mixes):
    """Layers in which roundings add up; what mixes takes the mean of the batch away, or counts its records."""
    layers = [layer for _ in range(10) for layer in (nn.Linear(24, 24), nn.LayerNorm(24), nn.Tanh())]
    return nn.Sequential(nn.Linear(4, 24), *layers, mixes, nn.Linear(24, 3))


class Counted(nn.Module):
    """No record has another output among copies of itself."""

    def forward(self, x):
        return x * (1.0 + len(x) / 8.0)


HALVES = {"autocast": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@pytest.mark.parametrize("kind", HALVES)
@pytest.mark.parametrize("mixes", [nn.Identity, Centred, Counted])
def test_half_precision(mixes, kind):
    """Outputs of a record alone are compared by the precision: of 20 models that mix nothing none is accused."""
    found = []
    for seed in range(20 if mixes is nn.Identity else 5):
        with torch.random.fork_rng(), torch.autocast("cpu", torch.bfloat16, enabled=kind == "autocast"):
            torch.manual_seed(seed)
            model, rows = deep(mixes()).to(HALVES[kind]), torch.randn(16, 4).to(HALVES[kind])
            found.append(mixes_in_forward(Read(model, (rows,), {}, 16))[0])
    assert set(found) == {mixes is not nn.Identity}


@pytest.mark.parametrize("mixes", [nn.Identity, Centred, Counted])
def test_a_loop_with_autocast(mixes):
    """Some call ``backward`` inside, where products of the watch itself were rounded, and the clipping was unknown."""

    def backward(toy):
        with torch.autocast("cpu", torch.bfloat16):
            toy.criterion(toy.model(toy.features), toy.labels).backward()

    Loop(
        made=lambda: private(model=nn.Sequential(nn.Linear(4, 8), mixes(), nn.Linear(8, 2))),
        backward=backward,
        batches=passes(1, 2),
        errors=set() if mixes is nn.Identity else MIXED,
    ).check()

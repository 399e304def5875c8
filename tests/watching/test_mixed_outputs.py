"""Models that mix records in the forward pass where the look at it saw nothing, and models that it took for such."""

from __future__ import annotations

import random
from collections import UserDict
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import islice

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader

import reticent as rt
from reticent import facts
from tests.watching.loops import faults, private, records

pytestmark = pytest.mark.filterwarnings("ignore")


class Model(nn.Module):
    """Two layers, and what is done with them."""

    def __init__(self, forward, inner=4, outer=2):
        super().__init__()
        self.first, self.second, self.how = nn.Linear(4, inner), nn.Linear(inner, outer), forward

    def forward(self, *given, **named):
        return self.how(self.first, self.second, *given, **named)


def in_batch(model, features, _):
    """Each record against those of all others, as for the search of passages."""
    scores = model(features)
    return functional.cross_entropy(scores, torch.arange(len(scores)))


def classes(model, features, labels):
    return functional.cross_entropy(model(features), labels)


def of_dictionary(model, features, labels):
    return functional.cross_entropy(model({"parts": [features]}), labels)


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


def centred(a, b, x):
    return b(torch.tanh(a(x.rows)) - a(x.rows).mean(0))


def each(a, b, x):
    return b(torch.tanh(a(x.rows)))


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


MIXING = {
    "experts that are balanced": (of_experts, balanced),
    "scores of all pairs": (lambda a, b, x: (rows := b(torch.tanh(a(x)))) @ rows.T, in_batch),
    "a dictionary": (lambda a, b, x: b(torch.tanh(a(x["parts"][0])) - a(x["parts"][0]).mean(0)), of_dictionary),
    "a loss that the model gives": (
        lambda a, b, x, labels: functional.cross_entropy(b(torch.tanh(a(x - x.mean(0)))), labels),
        own_loss,
    ),
    "a dataclass": (lambda a, b, x: Given(b(torch.tanh(a(x.rows)) - a(x.rows).mean(0))), of_dataclass),
    "an encoding": (centred, of(lambda rows: Encoding(rows=rows))),
    "an object": (centred, of(Plain)),
    "slots": (centred, of(Slots)),
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


RIGHT = {
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
    "a dictionary": (lambda a, b, x: b(torch.tanh(a(x["parts"][0]))), of_dictionary),
    "a dataclass": (lambda a, b, x: Given(b(torch.tanh(a(x.rows)))), of_dataclass),
    "an encoding": (each, of(lambda rows: Encoding(rows=rows))),
    "an object": (each, of(Plain)),
    "slots": (each, of(Slots)),
    "a state before": (lambda a, b, h, x: b(torch.tanh(a(x) + h[0])), with_state),
    "a state behind": (
        lambda a, b, x, h: b(torch.tanh(a(x) + h[1])),
        lambda m, x, y: classes(lambda rows: m(rows, torch.zeros(2, len(rows), 4)), x, y),
    ),
}


def test_an_object_that_nobody_can_take_apart():
    model, optimizer, loader, _ = private(model=Model(lambda a, b, x: b(torch.tanh(a(x.read())))))
    with rt.watch(model, optimizer, loader) as seen:
        features, labels = next(iter(loader))
        of(Opaque)(model, features, labels).backward()
        optimizer.step()
    assert facts.NOT_LOOKED_AT in seen.ledger.faults
    assert not faults(seen)
    assert "clipped" not in seen.ledger.vouches()


def found(forward, loss, mode, batches=None):
    loader = batches and DataLoader(records(), batch_sampler=batches)
    model, optimizer, loader, _ = private(loader, model=Model(forward), mode=mode, poisson_sampling=not batches)
    with rt.watch(model, optimizer, loader) as seen:
        for features, labels in islice(loader, 2):
            optimizer.zero_grad()
            loss(model, features, labels).backward()
            optimizer.step()
    return faults(seen)


@pytest.mark.parametrize("mode", ["hooks", "functorch"])
@pytest.mark.parametrize("name", MIXING)
def test_records_that_are_mixed(name, mode):
    assert found(*MIXING[name], mode) == {facts.MIXES_RECORDS}


@pytest.mark.parametrize("name", RIGHT)
def test_models_that_draw_random_numbers_or_give_their_loss(name):
    """Each was void: another draw was taken for another output."""
    for _ in range(3):
        assert not found(*RIGHT[name], "hooks")


def test_a_look_draws_nothing_from_what_the_model_draws():
    states = []
    for watches in (True, False):
        random.seed(0)
        model, optimizer, loader, _ = private(model=Model(skipped))
        with rt.watch(model, optimizer, loader) if watches else nullcontext():
            features, labels = next(iter(loader))
            classes(model, features, labels).backward()
            states.append(random.getstate())
            optimizer.step()
    assert states[0] == states[1]


def test_a_loss_that_pairs_some_records_alone():
    """The first record was looked at: here it stands alone."""

    def loss(model, features, _):
        out = model(features)
        return out.square().mean() + (out[1:2] * out[2:]).sum(1).mean()

    assert found(lambda a, b, x: b(torch.tanh(a(x))), loss, "hooks") == {facts.MIXES_RECORDS}


FEW = [[0, 1], [*range(2, 12)]]


@pytest.mark.parametrize("few", [2, 3, 7])
def test_the_first_batch_has_too_few_records_to_tell(few):
    """It was the only one that a copy of the model read."""
    made = (lambda a, b, x: b(torch.tanh(a(x) + a(x)[few:].sum(0))), classes)
    assert found(*made, "hooks", [[*range(few)], *FEW[1:]]) == {facts.MIXES_RECORDS}


@pytest.mark.parametrize("mode", ["hooks", "functorch"])
@pytest.mark.parametrize("name", RIGHT)
def test_two_records_first(name, mode):
    """A state of two layers was cut as if it were two records."""
    assert not found(*RIGHT[name], mode, FEW)


@pytest.mark.parametrize("name", [name for name in MIXING if name != "later records"])
def test_two_records_that_are_mixed_first(name):
    assert found(*MIXING[name], "hooks", FEW) == {facts.MIXES_RECORDS}

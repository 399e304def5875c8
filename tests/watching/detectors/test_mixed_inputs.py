"""Records that are mixed between the loader and the model: by the loop, by hooks, or several for one gradient."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import nn
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, TensorDataset, default_collate

from reticent import facts
from reticent.watching.detectors.mixed_inputs import Yielded
from tests.watching.loops import Loop
from tests.watching.programs import BATCH, RECORDS, Net, mixup, noisy, private, reading, records, standardised

pytestmark = pytest.mark.filterwarnings("ignore")

MIXED = {facts.MIXES_RECORDS}


def cutmix(x):
    cut = x.clone()
    cut[:, :, 2:6, 2:7] = x[torch.randperm(len(x))][:, :, 2:6, 2:7]
    return cut


def but_for_the_first(x):
    return 0.6 * x + 0.4 * torch.cat([x[:4], x[4:].roll(1, 0)]) - 1.5


IMAGES = {
    "mixup, but for the first": (but_for_the_first, True),
    "mixup": (mixup, True),
    "mixup, scaled": (lambda x: (mixup(x) - 0.3) / 0.2, True),
    "cutmix": (cutmix, True),
    "centred": (lambda x: x - x.mean(0), True),
    "of unit variance": (standardised, True),
    "the same": (lambda x: x, False),
    "scaled": (lambda x: (x - 0.3) / 0.2, False),
    "flipped": (lambda x: x.flip(-1), False),
    "shifted": (lambda x: x.roll(1, -1), False),
    "noisy": (noisy, False),
    "in another order": (lambda x: x[torch.randperm(len(x))], False),
    "erased": (lambda x: x.flatten(1).index_fill(1, torch.arange(9), 0.5).view(x.shape), False),
    "masked": (lambda x: x * (torch.rand(x.shape) > 0.2), False),
    "of unit length": (lambda x: nn.functional.normalize(x.flatten(1)).view(x.shape), False),
}


@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize("sparse", [True, False])
def test_images(name, sparse):
    change, wanted = IMAGES[name]
    images = torch.rand(16, 2, 10, 10)
    images = images * (images > 0.7) if sparse and name != "of unit variance" else images
    own = TensorDataset(images)
    seen = Yielded(DataLoader(own))
    seen.gave([images])
    assert seen.mixed(change(images)) == wanted


class Counting(nn.Module):
    """Its forward pass changes a buffer, or follows the number of its calls."""

    def __init__(self, kind):
        super().__init__()
        self.kind, self.calls, self.layer = kind, [], nn.Linear(4, 2)
        self.register_buffer("whole", torch.zeros((), dtype=torch.long))
        self.register_buffer("real", torch.zeros(2))

    def forward(self, x):
        if self.kind == "follows calls":
            self.calls.append(1)
            x = x * (1.0 + 0.1 * len(self.calls))
        elif self.kind == "calls":
            self.whole += 1
            self.real += 1.0
        elif self.kind == "anneals":
            self.real.copy_(0.9 * self.real + 0.1)
        elif self.kind == "records":
            self.whole += len(x)
        elif self.kind == "above -1":
            self.whole += int((x[:, 0] > -1.0).sum())  # of batches of ten as good as never 0 or 1
        elif self.kind == "largest" and len(x):
            self.whole.copy_(torch.maximum(self.whole, x.abs().max().ceil().long()))
        elif self.kind == "mean" and len(x):
            self.real.lerp_(x[:, :2].mean(0), 0.1)
        return self.layer(x)


def averaged(x, y):
    return torch.stack([part.mean(0) for part in x.split(5)]), y[::5]


def blocks(x, y):
    whole = len(x) // 5 * 5
    return x[:whole].view(-1, 5, 4), y[:whole].view(-1, 5)


def of_persons(x, y):
    person = torch.arange(len(x)) // 2
    return torch.zeros(int(person.max()) + 1, 4).index_add(0, person, x), y[::2]


def counting(kind):
    if kind in ("follows calls", "calls", "anneals"):
        return private(model=Counting(kind))
    return private(reading(), model=Counting(kind), poisson_sampling=False)


GROUPED = {
    "means": averaged,
    "blocks": blocks,
    "the rows of a person": of_persons,
    "all": lambda x, y: (x.mean(0, keepdim=True), y[:1]),
}
KEPT = {
    "the last rows are dropped": lambda x, y: (x[: max(1, len(x) // 8 * 8)], y[: max(1, len(x) // 8 * 8)]),
    "one class": lambda x, y: (x[y == 1], y[y == 1]),
    "scaled": lambda x, y: ((x[: len(x) // 2 + 1] - 0.3) / 0.2, y[: len(x) // 2 + 1]),
}


def grouped(change, data=None, size=BATCH, first=0, **options):
    """Outputs of groups of records, from a step on."""

    def backward(toy):
        x, y = toy.features, toy.labels
        whole = toy.step >= first and (len(x) > 4 or x.dim() > 2 or first)
        read, wanted = change(x, y) if whole else (x, y)
        mse_loss(toy.model(read)[..., 0], wanted.float()).backward()

    def made():
        own = reading(data() if data else None, size)
        return private(own, model=nn.Linear(own.dataset[0][0].shape[-1], 1), **options)

    return Loop(made=made, backward=backward)


def pair():
    return Net(lambda net, one, other: net.layer(torch.cat([one, other], 1)), layer=nn.Linear(8, 1))


def pairs(toy):
    x, y = toy.features, toy.labels
    mse_loss(toy.model(x[::2], x[1::2])[:, 0], y[::2].float()).backward()


def hooked(hook):
    return {"enters": lambda toy: toy.bare[0].register_forward_hook(hook)}


def leaves_the_first(*sizes):
    """As every other mixup of two records does; the first batch was the only one that was compared."""
    return Loop(
        made=lambda: private(DataLoader(records(), batch_sampler=[[*range(n)] for n in sizes]), poisson_sampling=False),
        forward=lambda toy, rows: toy.model(0.6 * rows + 0.4 * rows.roll(toy.step, 0)),
        errors=MIXED,
    )


def persons():
    return TensorDataset(torch.randn(RECORDS, 5, 4), torch.randint(0, 2, (RECORDS,)))


def as_many_features():
    """Rows of features are no sequence whose second axis holds the records."""
    return TensorDataset(torch.randn(RECORDS, BATCH), torch.randint(0, 2, (RECORDS,)))


def twos(x, y):
    return x.view(-1, 2, x.shape[1]).mean(1), y[::2]


LOOPS = {
    f"{name} in the loop": Loop(
        forward=lambda toy, rows, change=IMAGES[name][0]: toy.model(change(rows)),
        errors=MIXED if IMAGES[name][1] else set(),
    )
    for name in ("mixup", "in another order", "noisy", "scaled")
}
LOOPS |= {
    "mixup that leaves two as they are": leaves_the_first(2, 10),
    "mixup that leaves two and two as they are": leaves_the_first(2, 2),
    "a hook around the private model": Loop(
        enters=lambda toy: toy.model.register_forward_pre_hook(lambda model, given: (mixup(given[0]),)), errors=MIXED
    ),
    "a hook of a layer that mixes": Loop(
        **hooked(lambda layer, got, gave: gave - gave.mean(0, keepdim=True)), errors=MIXED
    ),
    "a hook of a layer": Loop(**hooked(lambda layer, got, gave: 2.0 * gave)),
    "pairs of records": Loop(made=lambda: private(model=pair(), poisson_sampling=False), backward=pairs, errors=MIXED),
    "all records in one step": grouped(averaged, size=RECORDS, poisson_sampling=False).but(errors=MIXED),
    "a person that is an item": grouped(lambda x, y: (x.mean(1), y), persons),
    "as many records as features": grouped(twos, as_many_features, poisson_sampling=False).but(errors=MIXED),
    "a first batch that is too small": grouped(twos, size=4, first=1, poisson_sampling=False).but(errors=MIXED),
}
LOOPS |= {
    f"a model that counts: {kind}": Loop(made=partial(counting, kind), errors=errors, beside=True)
    for errors, kinds in (
        (set(), ("follows calls", "calls", "anneals")),
        ({facts.BUFFERS_LEARNT}, ("records", "above -1", "largest", "mean")),
    )
    for kind in kinds
}
LOOPS |= {
    f"{name} for one gradient, {drawn}": grouped(change, **options).but(errors=MIXED)
    for name, change in GROUPED.items()
    for drawn, options in {"poisson": {}, "shuffled": {"poisson_sampling": False}}.items()
}
LOOPS |= {f"some records alone: {name}": grouped(change, poisson_sampling=False) for name, change in KEPT.items()}


@pytest.mark.parametrize("name", LOOPS)
def test_inputs(name):
    """Several records that are clipped as one turn round by one of them."""
    LOOPS[name].check()


def test_a_hook_that_writes_down_what_it_sees_is_not_called_for_a_look():
    calls = []
    seen, _ = Loop(**hooked(lambda layer, got, gave: calls.append(float(gave.sum())))).watched()
    assert len(calls) == len(seen)


@pytest.mark.parametrize("ahead", [False, True])
def test_after_a_batch_of_one(ahead):
    """It was taken for each mean of a later batch, as if the loop had kept it: no loop keeps what it has read."""
    data = records()
    one, *later = (default_collate([data[k] for k in few]) for few in (range(1), range(1, 11), range(11, 20)))
    seen = Yielded(DataLoader(data))
    for batch in (one, *later[:ahead]):
        seen.gave(batch)
    assert not seen.grouped([one[0]], 1)
    for batch in later[ahead:]:
        seen.gave(batch)
    assert seen.grouped([later[-1 - ahead][0].mean(0, keepdim=True)], 1)

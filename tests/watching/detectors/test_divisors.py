"""What a loss is divided by: a mean over what other records weigh lets one record scale the gradients of all."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, mse_loss
from torch.utils.data import DataLoader, TensorDataset

from reticent import facts
from tests.watching.loops import Loop, update_stated
from tests.watching.programs import BATCH, RECORDS, by_hand, network, private, reading, records

pytestmark = pytest.mark.filterwarnings("ignore")

MIXED = {facts.MIXES_RECORDS}
WEIGHTS = torch.tensor([0.1, 10.0])
TOKENS = torch.zeros(BATCH, 3, dtype=torch.long)
PADDED = TOKENS.masked_fill(torch.arange(3) >= 1 + torch.arange(BATCH)[:, None] % 3, -100)
SHIFTED = TOKENS.masked_fill(torch.arange(3) == 2, -100)


def ignored(labels, every):
    labels = labels.clone()
    labels[::every] = -100
    return labels


def rare(labels):
    """Of classes, by how often the batch has them."""
    return len(labels) / (1.0 + torch.bincount(labels[1:]))


def tokens(out, target, **options):
    return cross_entropy(out[:, :, None].expand(-1, -1, 3), target, **options)


WRONG = {
    "weights of classes": lambda out, y: cross_entropy(out, y, weight=WEIGHTS),
    "weights of classes and smooth labels": lambda out, y: cross_entropy(out, y, weight=WEIGHTS, label_smoothing=0.1),
    "weights that follow the batch": lambda out, y: cross_entropy(
        out, y, weight=len(y) / (1.0 + torch.bincount(y[1:]))
    ),
    "labels that are ignored": lambda out, y: cross_entropy(out, ignored(y, 3)),
    "tokens that are ignored": lambda out, y: tokens(out, PADDED),
    "a sum over the tokens": lambda out, y: tokens(out, PADDED, reduction="sum") / (PADDED != -100).sum(),
    "some records": lambda out, y: cross_entropy(out[:7], y[:7]),
    "some records of one output": lambda out, y: binary_cross_entropy_with_logits(out[:7, 0], y[:7].float()),
}
RIGHT = {
    "a mean of weighted losses": lambda out, y: cross_entropy(out, y, weight=WEIGHTS, reduction="none").mean(),
    "a weighted sum": lambda out, y: cross_entropy(out, y, weight=WEIGHTS, reduction="sum") / BATCH,
    "equal weights": lambda out, y: cross_entropy(out, y, weight=torch.ones(2)),
    "the same tokens of each record": lambda out, y: tokens(out, SHIFTED),
    "a sum over a number": lambda out, y: tokens(out, PADDED, reduction="sum") / 7,
    "each record by itself": lambda out, y: (
        sum(cross_entropy(out[i : i + 1], y[i : i + 1]) for i in range(BATCH)) / BATCH
    ),
    "weights of the positive class": lambda out, y: binary_cross_entropy_with_logits(
        out[:, 0], y.float(), pos_weight=WEIGHTS[:1]
    ),
}


def one_batch(loss):
    data = TensorDataset(torch.randn(BATCH, 4), torch.arange(BATCH) % 2)
    return lambda: (*by_hand(network(), DataLoader(data, batch_size=BATCH))[:3], loss)


def of_three_sizes(reduction, by):
    """A loss that Opacus takes for a mean or a sum; three batches of one size, once in 180 runs, tell nothing."""

    def made():
        loader = DataLoader(records(), batch_sampler=[[*range(size)] for size in (20, 23, 17)])
        made = private(loader, poisson_sampling=False, loss_reduction=reduction)
        return *made[:3], lambda out, y: cross_entropy(out, y, reduction="sum") / by(y)

    return made


def of_columns(by):
    """A column of whole numbers adds up to that of one batch in ten."""

    def made():
        data = TensorDataset(torch.randn(RECORDS, 4), torch.randn(RECORDS), torch.randint(1, 4, (RECORDS,)))
        return *private(reading(data), model=nn.Linear(4, 1))[:3], lambda out, y: mse_loss(out[:, 0], y) / by

    return Loop(made=made, batches=lambda toy: (batch[:2] for batch in toy.loader))


NOT_REDUCED = {
    "a sum for a mean": ("mean", lambda y: 1),
    "a sum over the planned size for a mean": ("mean", lambda y: BATCH),
    "a mean for a sum": ("sum", len),
}
REDUCED = {
    "a mean": ("mean", len),
    "a quarter of a mean": ("mean", lambda y: 4 * len(y)),
    "a scaled mean": ("mean", lambda y: len(y) / 2**16),
    "a sum": ("sum", lambda y: 1),
    "a sum over the planned size": ("sum", lambda y: BATCH),
    "a scaled sum": ("sum", lambda y: 2.0**-16),
}
LOOPS = {
    f"{name} by hand": Loop(made=one_batch(loss), update=update_stated, errors=errors)
    for losses, errors in ((WRONG, MIXED), (RIGHT, set()))
    for name, loss in losses.items()
} | {
    name: Loop(made=of_three_sizes(*how), errors=errors)
    for reductions, errors in ((NOT_REDUCED, MIXED), (REDUCED, set()))
    for name, how in reductions.items()
}


@pytest.mark.parametrize("name", LOOPS)
def test_divisors(name):
    """Opacus multiplies by the size of the batch what it takes for a mean: with a sum each gradient holds that size."""
    LOOPS[name].check()


@pytest.mark.parametrize("by", [36.0, 40.0, 44.0])
def test_a_number_that_meets_a_count_by_chance(by):
    for _ in range(2):
        of_columns(by).check()


def test_one_record_moves_a_weighted_mean_by_more_than_the_clip_norm():
    """What it does: clipping bounds each record's gradient after all were scaled by the weight of one."""
    model = nn.Linear(4, 2, bias=False)
    features = torch.ones(20, 4)
    labels = torch.tensor([1] + [0] * 19)

    def clipped_sum(rows):
        each = []
        whole = WEIGHTS[labels[rows]].sum()
        for i in rows:
            loss = len(rows) * WEIGHTS[labels[i]] / whole * cross_entropy(model(features[i : i + 1]), labels[i : i + 1])
            (slope,) = torch.autograd.grad(loss, model.weight)
            each.append(slope * (1.0 / slope.norm()).clamp(max=1.0))
        return sum(each)

    assert (clipped_sum(range(20)) - clipped_sum(range(1, 20))).norm() > 5.0

"""Outputs with one column against labels without: each record was compared with the labels of all, and certified."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import TensorDataset

from reticent import facts
from tests.watching.loops import Loop
from tests.watching.programs import BATCH, RECORDS, private, reading

pytestmark = pytest.mark.filterwarnings("ignore")

MIXED = {facts.MIXES_RECORDS}
LOSSES = {
    "mse": functional.mse_loss,
    "l1": functional.l1_loss,
    "by hand": lambda outputs, labels: (labels - outputs).square().mean(),
    "weighted": lambda outputs, labels: (outputs * labels).exp().mean(),
}


def data(columns=4):
    return TensorDataset(torch.randn(RECORDS, columns), torch.randn(RECORDS))


def of_model(model, **options):
    """Batches of one size."""
    return private(reading(data()), model=model, poisson_sampling=False, **options)


def against(loss, column):
    """Outputs and labels with a column each or without."""

    def criterion(outputs, labels):
        left = outputs if column in ("outputs", "both") else outputs[:, 0]
        return loss(left, labels[:, None] if column in ("labels", "both") else labels)

    made = lambda: (*private(reading(data()), model=nn.Linear(4, 1), norm=0.1)[:3], criterion)  # noqa: E731
    return Loop(made=made, errors=MIXED if column in ("outputs", "labels") else set())


def one_each(whole):
    """A loss of the losses of all records."""
    rows = TensorDataset(torch.randn(RECORDS, 4), torch.randint(0, 2, (RECORDS,)))

    def made():
        made = private(reading(rows), model=nn.Linear(4, 2), poisson_sampling=False)
        return *made[:3], lambda outputs, labels: whole(functional.cross_entropy(outputs, labels, reduction="none"))

    return Loop(made=made)


def scored(scores, loss, made=lambda: of_model(nn.Linear(4, 3)), errors=frozenset(), texts=BATCH):
    """Scores of each record against texts of the batch, or against as many classes that are the same for all."""

    def enters(toy):
        toy.texts, toy.classes = nn.Linear(4, 3).requires_grad_(False), torch.randn(texts, 3)

    def backward(toy):
        loss(scores(toy, toy.model(toy.features)), toy.labels).backward()

    return Loop(made=made, enters=enters, backward=backward, errors=errors)


def of_pairs(scores):
    """-1 for each pair but a record's own."""
    return 2.0 * torch.eye(len(scores)) - 1.0


AGAINST_ALL = {
    "sigmoid of pairs": lambda s: -functional.logsigmoid(of_pairs(s) * s).sum() / len(s),
    "cross entropy of pairs": lambda s: functional.binary_cross_entropy_with_logits(s, torch.eye(len(s))),
    "its own by the diagonal": lambda s: (s.logsumexp(1) - s.diag()).mean(),
    "its own by its place": lambda s: (s.logsumexp(1) - s.gather(1, torch.arange(len(s))[:, None])[:, 0]).mean(),
    "soft": lambda s: functional.cross_entropy(s, torch.eye(len(s))),
}
PRODUCTS = {"matmul": torch.matmul, "einsum": lambda a, b: torch.einsum("ik,kj->ij", a, b)}
DISTANCES = {
    "cdist": lambda toy, rows: -torch.cdist(rows, toy.texts(toy.features)),
}
HARDEST = {
    "topk": lambda each: each.topk(3).values.mean(),
    "max": lambda each: each.max(),
    "sort": lambda each: each.sort().values[3:].sum(),
}
EACH = {
    "a bound": lambda each: each.clamp(max=1.0).mean(),
    "half of itself": lambda each: torch.maximum(each, each / 2).sum(),
}


class Centred(nn.Module):
    def forward(self, x):
        return x - x.mean(1, keepdim=True) * torch.ones(BATCH)


def straight(outputs, labels):
    return functional.mse_loss(outputs[:, 0], labels)


def normalised(outputs, labels):
    return (functional.normalize(outputs, dim=1).sum(1) - labels).square().mean()


def right(scores, labels, own):
    """A record's own text, or one of two classes."""
    return functional.cross_entropy(scores, torch.arange(len(scores)) if own else (labels > 0).long())


def whole(loss):
    return lambda scores, labels: loss(scores)


LOOPS = {
    f"{name}, a column of {column}": against(loss, column)
    for name, loss in LOSSES.items()
    for column in ("outputs", "labels", "both", "none")
}
LOOPS |= {f"the hardest records, {name}": one_each(hard).but(errors=MIXED) for name, hard in HARDEST.items()}
LOOPS |= {f"each record against {name}": one_each(each) for name, each in EACH.items()}
LOOPS |= {
    f"{name}, {'texts' if own else 'classes'}": scored(
        lambda toy, rows, own=own: rows @ (toy.texts(toy.features.flip(1)) if own else toy.classes).T,
        whole(loss),
        errors=MIXED if own else set(),
    )
    for name, loss in AGAINST_ALL.items()
    for own in (True, False)
}
LOOPS |= {
    f"{name} with {'texts' if own else 'classes'}": scored(
        lambda toy, rows, own=own, product=product: product(
            rows, (toy.texts(toy.features.flip(1)) if own else toy.classes).T
        ),
        partial(right, own=own),
        errors=MIXED if own else set(),
    )
    for name, product in PRODUCTS.items()
    for own in (True, False)
}
LOOPS |= {
    f"distances of all pairs, {name}": scored(
        far, whole(AGAINST_ALL["soft"]), made=lambda: private(model=nn.Linear(4, 3)), errors=MIXED
    )
    for name, far in DISTANCES.items()
}
LOOPS |= {
    "records against themselves": scored(
        lambda toy, rows: rows @ rows.detach().T,
        whole(AGAINST_ALL["its own by the diagonal"]),
        made=lambda: private(model=nn.Linear(4, 3)),
        errors=MIXED,
    ),
    "one batch alone": scored(
        lambda toy, rows: rows @ toy.classes.T,
        whole(AGAINST_ALL["soft"]),
        made=lambda: private(
            reading(TensorDataset(torch.randn(BATCH, 4), torch.randn(BATCH))),
            model=nn.Linear(4, 3),
            poisson_sampling=False,
        ),
        errors=MIXED,
    ),
    "layers that are as wide as the batch": Loop(
        made=lambda: (
            *of_model(nn.Sequential(nn.Linear(4, BATCH), Centred(), nn.Linear(BATCH, 1)))[:3],
            straight,
        )
    ),
    "outputs that are normalised and as long as the batch": Loop(
        made=lambda: (*of_model(nn.Linear(4, BATCH))[:3], normalised)
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_pairings(name):
    """Each record was compared with the labels, the texts or the losses of all."""
    LOOPS[name].check()


def test_a_label_moves_the_gradients_of_all():
    """Clipping that works lets one label move the sum by two norms at most."""
    sums = []
    for label in (100.0, -100.0):
        model, optimizer, _, loss = against(functional.mse_loss, "outputs").made()
        with torch.no_grad():
            for p in model.parameters():
                p.zero_()
        features = torch.linspace(1.0, 2.0, BATCH)[:, None].expand(BATCH, 4).clone()
        loss(model(features), torch.tensor([label] + [0.0] * (BATCH - 1))).backward()
        optimizer.clip_and_accumulate()
        sums.append(torch.cat([p.summed_grad.flatten() for p in optimizer.params]))
    assert float((sums[0] - sums[1]).norm()) > 10.0 * 0.1

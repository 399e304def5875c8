"""Outputs with one column against labels without: each record was compared with the labels of all, and certified."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import reticent as rt
from reticent import facts
from tests.watching.loops import BATCH, RECORDS, faults, private, trained

pytestmark = pytest.mark.filterwarnings("ignore")

LOSSES = {
    "mse": functional.mse_loss,
    "l1": functional.l1_loss,
    "huber": functional.huber_loss,
    "by hand": lambda outputs, labels: (labels - outputs).square().mean(),
    "weighted": lambda outputs, labels: (outputs * labels).exp().mean(),
}


def made(loss):
    data = TensorDataset(torch.randn(RECORDS, 4), torch.randn(RECORDS))
    model, optimizer, loader, _ = private(DataLoader(data, batch_size=BATCH), model=nn.Linear(4, 1), norm=0.1)
    return model, optimizer, loader, loss


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("column", ["outputs", "labels", "both", "none"])
def test_a_column_against_a_list(name, column):
    def loss(outputs, labels):
        left = outputs if column in ("outputs", "both") else outputs[:, 0]
        return LOSSES[name](left, labels[:, None] if column in ("labels", "both") else labels)

    wanted = {facts.MIXES_RECORDS} if column in ("outputs", "labels") else set()
    assert faults(trained(made(loss))) == wanted


def test_a_label_moves_the_gradients_of_all():
    """Clipping that works lets one label move the sum by two norms at most."""
    sums = []
    for label in (100.0, -100.0):
        model, optimizer, _, loss = made(functional.mse_loss)
        with torch.no_grad():
            for p in model.parameters():
                p.zero_()
        features = torch.linspace(1.0, 2.0, BATCH)[:, None].expand(BATCH, 4).clone()
        loss(model(features), torch.tensor([label] + [0.0] * (BATCH - 1))).backward()
        optimizer.clip_and_accumulate()
        sums.append(torch.cat([p.summed_grad.flatten() for p in optimizer.params]))
    assert float((sums[0] - sums[1]).norm()) > 10.0 * 0.1


def test_layers_that_are_as_wide_as_the_batch():
    """A square that comes from the model is none of the loss."""

    class Centred(nn.Module):
        def forward(self, x):
            return x - x.mean(1, keepdim=True) * torch.ones(BATCH)

    data = TensorDataset(torch.randn(RECORDS, 4), torch.randn(RECORDS))
    model = nn.Sequential(nn.Linear(4, BATCH), Centred(), nn.Linear(BATCH, 1))
    loader = DataLoader(data, batch_size=BATCH, shuffle=True)
    model, optimizer, loader, _ = private(loader, model=model, poisson_sampling=False)

    def loss(outputs, labels):
        return functional.mse_loss(outputs[:, 0], labels)

    assert not faults(trained((model, optimizer, loader, loss)))


def test_outputs_that_are_normalised_and_as_long_as_the_batch():
    """Found by a test that failed once in ten runs: the lengths of records are spread over their own outputs."""
    data = TensorDataset(torch.randn(RECORDS, 4), torch.randn(RECORDS))
    loader = DataLoader(data, batch_size=BATCH, shuffle=True)
    model, optimizer, loader, _ = private(loader, model=nn.Linear(4, BATCH), poisson_sampling=False)

    def loss(outputs, labels):
        return (functional.normalize(outputs, dim=1).sum(1) - labels).square().mean()

    assert not faults(trained((model, optimizer, loader, loss)))


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("product", [torch.matmul, lambda a, b: torch.einsum("ik,kj->ij", a, b)])
def test_texts_of_the_batch_whose_encoder_is_frozen(product, own):
    """Each image against the texts of all; against as many classes that are the same for every batch, none is mixed."""
    data = TensorDataset(torch.randn(RECORDS, 4), torch.randn(RECORDS))
    model, optimizer, loader, _ = private(
        DataLoader(data, batch_size=BATCH, shuffle=True), model=nn.Linear(4, 3), poisson_sampling=False
    )
    texts, classes = nn.Linear(4, 3).requires_grad_(False), torch.randn(3, BATCH)

    def step(features, labels):
        rows = texts(features.flip(1)).T if own else classes
        right = torch.arange(len(features)) if own else (labels > 0).long()
        return functional.cross_entropy(product(model(features), rows), right)

    with rt.watch(model, optimizer, loader) as seen:
        for features, labels in loader:
            optimizer.zero_grad()
            step(features, labels).backward()
            optimizer.step()
    assert faults(seen) == ({facts.MIXES_RECORDS} if own else set())


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


@pytest.mark.parametrize("name", AGAINST_ALL)
@pytest.mark.parametrize("own", [True, False])
def test_scores_of_all_pairs(name, own):
    """No label says which text is right. As many texts that are the same for every batch mix nothing."""
    data = TensorDataset(torch.randn(RECORDS, 4), torch.randn(RECORDS))
    made = private(DataLoader(data, batch_size=BATCH), model=nn.Linear(4, 3), poisson_sampling=False)
    texts, classes = nn.Linear(4, 3).requires_grad_(False), torch.randn(BATCH, 3)
    assert scored(made, lambda rows, x: rows @ (texts(x.flip(1)) if own else classes).T, AGAINST_ALL[name]) == own


def test_records_against_themselves_cut_out_of_the_graph():
    made = private(model=nn.Linear(4, 3))
    assert scored(made, lambda rows, _: rows @ rows.detach().T, AGAINST_ALL["its own by the diagonal"])


def test_distances_of_all_pairs():
    made = private(model=nn.Linear(4, 3))
    texts = nn.Linear(4, 3).requires_grad_(False)
    far = (lambda rows, x: -torch.cdist(rows, texts(x)), lambda rows, x: -(rows[:, None] - texts(x)[None]).norm(dim=2))
    for distances in far:
        assert scored(made, distances, AGAINST_ALL["soft"])


def test_one_batch_alone_does_not_tell_texts_from_classes():
    data = TensorDataset(torch.randn(BATCH, 4), torch.randn(BATCH))
    made = private(DataLoader(data, batch_size=BATCH), model=nn.Linear(4, 3), poisson_sampling=False)
    classes = torch.randn(BATCH, 3)
    assert scored(made, lambda rows, _: rows @ classes.T, AGAINST_ALL["soft"])


def scored(made, scores, loss):
    """Whether a loop with these scores of each record mixes records."""
    model, optimizer, loader, _ = made
    with rt.watch(model, optimizer, loader) as seen:
        for features, _labels in loader:
            optimizer.zero_grad()
            loss(scores(model(features), features)).backward()
            optimizer.step()
    return facts.MIXES_RECORDS in faults(seen)


HARDEST = {
    "topk": lambda each: each.topk(3).values.mean(),
    "max": lambda each: each.max(),
    "max of a column": lambda each: each[:, None].max(0).values.sum(),
    "sort": lambda each: each.sort().values[3:].sum(),
    "median": lambda each: each.median(),
}


@pytest.mark.parametrize("name", HARDEST)
def test_the_hardest_records_of_a_batch(name):
    """Whoever is left out moves nothing, and whoever comes puts another one out."""
    assert faults(trained(one_each(HARDEST[name]))) == {facts.MIXES_RECORDS}


@pytest.mark.parametrize(
    "right", [lambda each: each.clamp(max=1.0).mean(), lambda each: torch.maximum(each, each / 2).sum()]
)
def test_each_record_against_a_number(right):
    assert not faults(trained(one_each(right)))


def one_each(whole):
    data = TensorDataset(torch.randn(RECORDS, 4), torch.randint(0, 2, (RECORDS,)))
    made = private(DataLoader(data, batch_size=BATCH, shuffle=True), model=nn.Linear(4, 2), poisson_sampling=False)
    return *made[:3], lambda outputs, labels: whole(functional.cross_entropy(outputs, labels, reduction="none"))

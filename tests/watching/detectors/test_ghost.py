"""Ghost clipping: records are measured in one backward pass and added up in another, and in between they lie open."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from opacus import PrivacyEngine
from opacus.utils.adaptive_clipping import PrivacyEngineAdaptiveClipping
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import reticent as rt
from reticent import facts
from reticent.watching.optimisers import before_1_6
from tests.watching.loops import Loop, passes
from tests.watching.programs import NOISE, RECORDS, Net, network, private, reading, records

UNCLIPPED, MIXED, CHANGED = {facts.UNCLIPPED}, {facts.MIXES_RECORDS}, {facts.CHANGED_GRADIENTS}
pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook is firing", "ignore:Secure RNG turned off")
LENGTHS = 5
"""Steps at the start in which whole gradients are compared; what begins later has to be seen otherwise."""

ghost = partial(private, mode="ghost")
whole = partial(ghost, poisson_sampling=False)
of_1_6 = pytest.mark.skipif(before_1_6(), reason="Opacus 1.5 takes the losses of records, and states less noise")


def skipping():
    """A layer that is left out of every other pass, as in stochastic depth."""
    forward = lambda net, x: net.head(x if net.skips else torch.tanh(net.body(x)))  # noqa: E731
    return Net(forward, body=nn.Linear(4, 4), head=nn.Linear(4, 2), skips=False)


def reused():
    """Its first weight is used by a layer and by a function, as a language model uses that of its embedding."""
    forward = lambda net, x: net.head(10.0 * net.body(x) @ net.body.weight.T)  # noqa: E731
    return Net(forward, body=nn.Linear(4, 4), head=nn.Linear(4, 2))


class Head(nn.Module):
    """A layer that Opacus does not know, with the weight of another."""

    def __init__(self, weight):
        super().__init__()
        self.weight = weight

    def forward(self, h):
        return nn.functional.linear(h, self.weight)


class Late(nn.Module):
    """Its second use of the weight begins some time."""

    def __init__(self, uses=False):
        super().__init__()
        self.first, self.uses = nn.Linear(4, 4, bias=False), uses
        self.second = Head(self.first.weight)

    def forward(self, x):
        h = torch.tanh(self.first(x))
        return self.second(h) if self.uses else h


def table(by_frequency):
    """Rows of a table for the words of a record, of which 0 is none."""
    forward = lambda net, words: net.head((net.rows(words) * (words > 0)[..., None]).sum(1))  # noqa: E731
    rows = nn.Embedding(6, 4, scale_grad_by_freq=by_frequency)
    return Net(forward, rows=rows, head=nn.Linear(4, 2).requires_grad_(False))


WORDS = torch.cat([nn.functional.pad(torch.arange(1, 6)[:, None], (0, 19)), torch.arange(1, 6).repeat(1, 4)])


def frozen_first():
    model = network()
    model[0].requires_grad_(False)
    return ghost(model=model)


def around_a_bare_model():
    model = network()
    hooks, *others = ghost(model=model, wrap_model=False)
    hooks.max_grad_norm = 10.0
    return model, *others


def bare_loss():
    return *ghost()[:3], nn.CrossEntropyLoss()


def of_column():
    made = ghost(reading(TensorDataset(records().tensors[0], torch.randn(RECORDS, 1))), model=nn.Linear(4, 1))
    made[3].criterion = nn.MSELoss(reduction="none")
    return made


def of_frequencies(by_frequency):
    words = TensorDataset(WORDS.repeat(RECORDS // len(WORDS), 1), torch.arange(RECORDS) % 2)
    return ghost(reading(words), model=table(by_frequency))


def adaptive(*, each=True, **options):
    model = network()
    model, optimizer, criterion, loader = PrivacyEngineAdaptiveClipping().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=reading(size=RECORDS // 2),  # Opacus wants 12
        noise_multiplier=NOISE,
        grad_sample_mode="ghost",
        criterion=nn.CrossEntropyLoss(),
        **{"max_grad_norm": 1.0, **options},
    )
    if each:
        criterion.criterion.reduction = "none"  # forgotten by Opacus 1.6.0
    return model, optimizer, loader, criterion


def norm(toy, value):
    toy.model.max_grad_norm = toy.optimizer.max_grad_norm = value


def with_scale(when):
    """A parameter outside of the model, which the optimizer gets to know at a step."""

    def enters(toy):
        toy.scale = nn.Parameter(torch.ones(1))

    def before(toy):
        if toy.step == when:
            toy.inner.add_param_group({"params": [toy.scale]})

    scaled = {"enters": enters, "before": before, "forward": lambda toy, rows: toy.model(rows) * toy.scale}
    return Loop(made=ghost, batches=passes(2), **scaled, errors=UNCLIPPED)


def enlarge(p):
    p.grad.mul_(10.0)


def another_loss(toy):
    features, labels = records().tensors
    toy.model.disable_hooks()
    nn.functional.cross_entropy(toy.bare(features), labels).backward()
    toy.model.enable_hooks()


def penalty(begin):
    """More for each record from a step on; losses of Opacus 1.5 know no sum."""

    def backward(toy):
        loss = toy.criterion(toy.model(toy.features), toy.labels)
        if toy.step >= begin:
            loss.loss_per_sample = loss.loss_per_sample + toy.first.square().sum()
        loss.backward()

    return Loop(made=ghost, backward=backward, errors=UNCLIPPED)


def some_backward(toy):
    """A batch without records needs no backward pass."""
    if len(toy.labels) or not toy.step:
        toy.criterion(toy.model(toy.features), toy.labels).backward()


def one_by_one(toy):
    toy.criterion(toy.model(toy.features)[:, 0], toy.labels[:, 0]).backward()


def clipped_to(times):
    noise = pytest.approx(NOISE / times, rel=1e-9, abs=0)
    return {"ran": {"noise_multiplier": noise}, "notes": {facts.CLIP_AND_NOISE_DIFFER}}


LOOPS = {
    "a layer that is left out": Loop(
        made=lambda: whole(model=skipping()),
        before=lambda toy: setattr(toy.bare, "skips", toy.step % 2 == 1),
        errors=MIXED,
    ),
    "a layer that is unfrozen later": Loop(
        made=frozen_first,
        batches=passes(2),
        before=lambda toy: toy.bare[0].requires_grad_(toy.step > LENGTHS),
        errors=UNCLIPPED,
    ),
    "a parameter outside of the model later": with_scale(LENGTHS + 1),
    "a norm that is lowered after the backward pass": Loop(
        made=ghost, before=lambda toy: norm(toy, 10.0), between=lambda toy: norm(toy, 1.0), **clipped_to(10.0)
    ),
    "a norm of hooks around a bare model": Loop(made=around_a_bare_model, **clipped_to(10.0)),
    "gradients that are written after they were clipped": Loop(
        made=ghost, between=lambda toy: [enlarge(p) for p in toy.model.parameters()], errors=CHANGED
    ),
    "another loss beside the clipped one": Loop(made=ghost, between=another_loss, errors=CHANGED),
    "a loss that is not the one of make_private": Loop(made=bare_loss, errors=UNCLIPPED),
    "an empty batch without a backward pass": Loop(
        made=lambda: ghost(reading(records(count=40), size=1)), backward=some_backward
    ),
    "a weight that a function uses too": Loop(made=lambda: ghost(model=reused()), errors=UNCLIPPED),
    "a weight with a hook": Loop(
        made=ghost, enters=lambda toy: toy.first.register_hook(lambda slope: 10.0 * slope), errors=UNCLIPPED
    ),
    "a weight with a hook that writes": Loop(
        made=ghost,
        enters=lambda toy: toy.first.register_post_accumulate_grad_hook(enlarge),
        errors=CHANGED,
    ),
    "a penalty": penalty(0),
    "a penalty from some step on": penalty(3),
    "a column of losses": Loop(made=of_column, errors=UNCLIPPED, may=MIXED),
    "a list of losses": Loop(made=of_column, backward=one_by_one),
    "two layers that share a weight later": Loop(
        made=lambda: whole(reading(), model=Late()),
        batches=passes(2),
        before=lambda toy: setattr(toy.bare, "uses", toy.step > LENGTHS),
        errors=UNCLIPPED,
    ),
    "a table": Loop(made=lambda: of_frequencies(by_frequency=False)),
    "a table that divides by frequencies": Loop(made=lambda: of_frequencies(by_frequency=True), errors=MIXED),
}
ADAPTIVE = {
    "the losses of records": Loop(
        made=adaptive,
        batches=passes(6),
        never={facts.CHANGED_NOISE},
        segments={"noise_multiplier": [pytest.approx(NOISE, rel=1e-12, abs=0)]},
    ),
    "the mean of all losses": Loop(made=partial(adaptive, each=False), errors=UNCLIPPED),
}


@pytest.mark.parametrize("name", LOOPS)
def test_ghost_clipping(name):
    LOOPS[name].check()


@of_1_6
@pytest.mark.parametrize("name", ADAPTIVE)
def test_adaptive_ghost_clipping(name):
    ADAPTIVE[name].check()


def test_adaptive_clipping_whose_norm_stays_at_its_bound():
    """The number of unclipped records is released, too: Opacus 1.5 states the noise of the gradients alone."""
    bound = partial(adaptive, max_grad_norm=20.0, min_clipbound=20.0, poisson_sampling=False)
    seen, _ = Loop(made=bound, segments={"max_grad_norm": [None]}).check()  # one norm for all steps
    assert seen.mechanism().noise_multiplier <= NOISE


def test_a_column_of_losses_is_not_clipped():
    """One column times a list of factors is a square: each record gets the factors of all."""
    for column in (True, False):
        model, optimizer, loader, criterion = of_column()
        large = torch.tensor([1e4, 0.01, 0.01, 0.01, 0.01])[:, None]
        features, labels = (part[:5] * large for part in loader.dataset.tensors)
        outputs = model(features)
        (criterion(outputs, labels) if column else criterion(outputs[:, 0], labels[:, 0])).backward()
        optimizer.accumulate()
        assert (float(next(model.parameters()).summed_grad.norm()) > 5.0) == column


@pytest.mark.parametrize("by_frequency", [True, False])
def test_one_record_moves_the_sum_of_a_table_by_more_than_the_clip_norm(by_frequency):
    """A record with all words shrinks the gradients of all others."""
    model, optimizer, _, criterion = ghost(model=table(by_frequency), norm=0.01)
    sums = []
    for rows in (WORDS, WORDS[:-1]):
        optimizer.zero_grad()
        criterion(model(rows), torch.zeros(len(rows), dtype=torch.long)).backward()
        sums.append(model.rows.weight.grad.clone())
    moved = float((sums[0] - sums[1]).norm()) / 0.01
    assert moved > 1.5 if by_frequency else moved < 1.001


@pytest.mark.parametrize("signals", [True, False])
def test_batches_that_a_step_adds_up(signals):
    """Each backward pass drops the sum of the batch before, unless a step that is skipped has taken that over."""

    def adds(every):
        def step(toy):
            last = (toy.step + 1) % every == 0
            if signals:
                toy.optimizer.signal_skip_step(do_skip=not last)
            if signals or last:
                toy.optimizer.step()
                if last:
                    toy.sums.append(toy.optimizer.params[0].summed_grad.clone())
                toy.optimizer.zero_grad()

        def enters(toy):
            toy.sums = []
            toy.optimizer.param_groups[0]["lr"] = 0.0

        made = lambda: whole(reading(shuffle=False))  # noqa: E731
        return Loop(made=made, enters=enters, clears=False, update=step)

    alone = adds(1).watched()[1].sums
    _, toy = adds(2).but(errors=set() if signals else {facts.LEFT_OUT}).check()
    kept = [first * signals + second for first, second in zip(alone[::2], alone[1::2], strict=True)]
    assert torch.allclose(torch.stack(toy.sums), torch.stack(kept), rtol=1e-4, atol=1e-6)


class Unmasked(nn.CrossEntropyLoss):
    """Leaves padding out by itself, so Opacus does not know and divides by the positions of the longest record."""

    def forward(self, logits, tokens):
        return super().forward(logits, tokens.masked_fill(tokens == 0, self.ignore_index))


@of_1_6
@pytest.mark.parametrize(
    ("criterion", "width", "faults"),
    [
        (Unmasked(), None, MIXED),
        (Unmasked(), 12, set()),  # a width that no record decides
        (nn.CrossEntropyLoss(ignore_index=0), None, set()),  # by the tokens of each record
    ],
)
def test_what_a_loss_of_tokens_is_divided_by(criterion, width, faults):
    texts = [torch.arange(1, 4 + number % 7) for number in range(60)]

    def padded(batch):
        rows = nn.utils.rnn.pad_sequence(batch, batch_first=True)
        return nn.functional.pad(rows, (0, (width or rows.shape[1]) - rows.shape[1]))

    model = nn.Sequential(nn.Embedding(12, 4), nn.Linear(4, 12))
    model, optimizer, criterion, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        criterion=criterion,
        grad_sample_mode="ghost",
        data_loader=DataLoader(texts, batch_size=20, collate_fn=padded),
        noise_multiplier=NOISE,
        max_grad_norm=1.0,
    )
    rt.secure_noise(optimizer)
    with rt.watch(model, optimizer, loader) as seen:
        for tokens in loader:
            optimizer.zero_grad()
            read, next_ones = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
            criterion(model(read).flatten(0, 1), next_ones.flatten(), shape=next_ones.shape).backward()
            optimizer.step()
    assert seen.ledger.steps == 3
    assert faults == set(seen.ledger.faults) & MIXED

"""Records that are padded to the longest of their batch: whoever is long shows in the gradients of all others.

Each loop that is void here was a bound for noise that one long record outweighs: the clipped sum of 64 texts moved by
5.3 clip norms. Those that follow from each record alone keep their certificate.
"""

from __future__ import annotations

import threading

import pytest
import torch
from opacus.layers import DPLSTM
from torch import nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader

import reticent as rt
from reticent import facts
from tests.watching.loops import Loop
from tests.watching.programs import BATCH, RECORDS, Net, private, reading

pytestmark = pytest.mark.filterwarnings("ignore")


def texts(low=3, high=13):
    draw = torch.Generator().manual_seed(0)
    lengths = torch.randint(low, high, (RECORDS,), generator=draw).tolist()
    return [(torch.randint(1, 30, (length,), generator=draw), length % 2) for length in lengths]


def of_all_lengths():
    """One is the longest of each batch, and else nobody could tell its length from one that all batches have."""
    return [(torch.arange(3 + at) % 29 + 1, at % 2) for at in range(RECORDS)]


def short_first():
    """A batch has a long record, and its first is short: other Poisson batches come four times in turn once in 2e6."""
    long = [at == 19 or (at > 19 and at % 20 > 15) for at in range(RECORDS)]
    return [(torch.arange(10 if one else 5) + 1, at % 2) for at, one in enumerate(long)]


def longest(records):
    return max(len(tokens) for tokens, _ in records)


def to(width, left=False, normal=None):
    """A collate function that pads to a width, or to one that follows from the records."""

    def collate(records):
        most = width(records) if callable(width) else width
        rows = [functional.pad(t, (most - len(t), 0) if left else (0, most - len(t))) for t, _ in records]
        lengths = torch.tensor([len(t) for t, _ in records])
        labels = torch.tensor([label for _, label in records])
        return torch.stack(rows), lengths if normal is None else lengths / normal(lengths), labels

    return collate


def by_length(records):
    return to(longest)(sorted(records, key=lambda record: -len(record[0])))


def eighths(records):
    return -(-longest(records) // 8) * 8


def bucket(records):
    """Batches of one bucket each would come from the sampler; here all are padded to the bound of the widest."""
    return 8 * max(1, -(-max(16, longest(records)) // 8))


class Reader(nn.Module):
    """A table, two layers, and how positions become one row."""

    def __init__(self, pool, dropout=0.0):
        super().__init__()
        self.table, self.first, self.last = nn.Embedding(30, 6), nn.Linear(6, 5), nn.Linear(5, 2)
        self.score, self.pool = nn.Linear(5, 1).requires_grad_(False), pool
        self.dropout = dropout

    def forward(self, tokens, lengths):
        hidden = torch.tanh(self.first(self.table(tokens)))
        if self.dropout:
            hidden = functional.dropout(hidden, self.dropout, self.training)
        if self.pool is None:
            return self.last(hidden)
        weights = self.score(hidden)[..., 0]
        return self.last(self.pool(hidden, tokens != 0, lengths, weights))


def zeros():
    """Padding has a row of zeros, to which Opacus gives a gradient, and noise: one long record moves the sum by 13."""
    forward = lambda net, tokens, lengths: net.last(net.table(tokens).sum(1) / lengths[:, None])  # noqa: E731
    return Net(forward, table=nn.Embedding(30, 6, padding_idx=0), last=nn.Linear(6, 2))


class Recurrent(nn.Module):
    def __init__(self, packed, last):
        super().__init__()
        self.table, self.layer, self.out = nn.Embedding(30, 6), DPLSTM(6, 5, batch_first=True), nn.Linear(5, 2)
        self.packed, self.last = packed, last

    def forward(self, tokens, lengths):
        rows = self.table(tokens)
        if self.packed:
            rows = pack_padded_sequence(rows, lengths, batch_first=True, enforce_sorted=self.packed == "sorted")
            return self.out(self.layer(rows)[1][0][-1])
        found, _ = self.layer(rows)
        return self.out(found[torch.arange(len(tokens)), lengths - 1] if self.last else found[:, -1])


def mean(hidden, real, lengths, weights):
    return hidden.mean(1)


def of_real(hidden, real, lengths, weights):
    return (hidden * real[..., None]).sum(1) / lengths[:, None]


def maximum(hidden, real, lengths, weights):
    return hidden.max(1).values


def attention(hidden, real, lengths, weights):
    return (hidden * weights.softmax(1)[..., None]).sum(1)


def masked_attention(hidden, real, lengths, weights):
    return attention(hidden, real, lengths, weights.masked_fill(~real, -1e9))


def over_the_longest(hidden, real, lengths, weights):
    return of_real(hidden, real, lengths, weights) * lengths[:, None]


def label(out, tokens, lengths, labels):
    return functional.cross_entropy(out, labels)


def each(out, tokens):
    """A loss for each position, whose parity is told; padding has one too."""
    return functional.cross_entropy(out.transpose(1, 2), tokens % 2, reduction="none")


def of_all_positions(out, tokens, lengths, labels):
    return each(out, tokens).mean()


def of_all_tokens(out, tokens, lengths, labels):
    return (each(out, tokens) * (tokens != 0)).sum() / (tokens != 0).sum()


def of_the_longest(out, tokens, lengths, labels):
    return (each(out, tokens) * (tokens != 0)).mean(1).mean()


def flat_mean(out, tokens, lengths, labels):
    return functional.cross_entropy(out.flatten(0, 1), tokens.flatten() % 2)


def padding_too(out, tokens, lengths, labels):
    return each(out, tokens).sum(1).mean()


def of_the_real_maximum(out, tokens, lengths, labels):
    return functional.cross_entropy(out.masked_fill((tokens == 0)[..., None], -1e9).max(1).values, labels)


def of_each_record(out, tokens, lengths, labels):
    return ((each(out, tokens) * (tokens != 0)).sum(1) / lengths).mean()


def next_tokens(out, tokens, lengths, following):
    return functional.cross_entropy(out.flatten(0, 1), following.flatten() % 2)


def next_of_each_record(out, tokens, lengths, following):
    return ((each(out, following) * (following != 0)).sum(1) / lengths).mean()


def summed(out, tokens, lengths, labels):
    return (each(out, tokens) * (tokens != 0)).sum() / len(tokens)


TO_THE_LONGEST = to(longest)


def loop(model, collate=TO_THE_LONGEST, loss=label, change=None, data=None, errors=frozenset(), **options):
    """A loop over texts, whose batches the program may change before the model reads them."""

    def backward(toy):
        batch = toy.features, *toy.labels
        tokens, lengths, labels = batch if change is None else change(*batch)
        loss(toy.model(tokens, lengths), tokens, lengths, labels).backward()

    def made():
        loader = DataLoader(data or texts(), batch_size=BATCH, shuffle=not data, collate_fn=collate)
        return private(loader, model=model(), **options)

    return Loop(
        made=made,
        batches=lambda toy: ((tokens, others) for tokens, *others in toy.loader),
        backward=backward,
        errors=errors,
        never={facts.NOT_LOOKED_AT},
    )


def trimmed(tokens, lengths, labels):
    return tokens[:, : lengths.max()], lengths, labels


def without_the_first(tokens, lengths, labels):
    return tokens[:, 1:], lengths - 1, labels


def in_front(tokens, lengths, labels):
    return functional.pad(tokens, (1, 0), value=29), lengths + 1, labels


def without_the_last(tokens, lengths, _):
    """As a language model reads it, and tells each next token."""
    return tokens[:, :-1], lengths - 1, tokens[:, 1:]


def to_16(tokens, lengths, labels):
    return functional.pad(tokens, (0, 16 - tokens.shape[1])), lengths, labels


def as_they_are(records):
    return [t for t, _ in records], torch.tensor([len(t) for t, _ in records]), torch.tensor([y for _, y in records])


def in_the_loop(tokens, lengths, labels):
    return pad_sequence(tokens, batch_first=True), lengths, labels


def reader(pool=None, dropout=0.0, **how):
    return {"model": lambda: Reader(pool, dropout), **how}


def recurrent(packed, last, **how):
    return {"model": lambda: Recurrent(packed, last), **how}


MIXING = {
    "mean": reader(mean),
    "mean, and dropout": reader(mean, 0.3),
    "mean, padded at the left": reader(mean, collate=to(longest, left=True)),
    "mean, sorted": reader(mean, collate=by_length),
    "a multiple of eight": reader(mean, collate=to(eighths), data=short_first()),
    "maximum": reader(maximum),
    "attention": reader(attention),
    "a row of zeros": {"model": zeros},
    "the last state": recurrent(None, False),
    "lengths over the longest": reader(over_the_longest, collate=to(16, normal=torch.max)),
    "trimmed in the loop": reader(mean, collate=to(16), change=trimmed),
    "padded in the loop": reader(mean, collate=as_they_are, change=in_the_loop, data=of_all_lengths()),
    "without the first": reader(mean, change=without_the_first),
    "one in front": reader(mean, change=in_front),
    "without the last": reader(change=without_the_last, loss=next_tokens),
    "a loss of all positions": reader(loss=of_all_positions),
    "a loss of all tokens": reader(loss=of_all_tokens),
    "a loss of all tokens, fixed": reader(loss=of_all_tokens, collate=to(16)),
    "a loss over the longest": reader(loss=of_the_longest),
    "a mean of torch": reader(loss=flat_mean),
    "a loss of the padding": reader(loss=padding_too),
}

RIGHT = {
    "fixed": reader(mean, collate=to(16)),
    "a bucket": reader(mean, collate=to(bucket)),
    "real tokens": reader(of_real),
    "real tokens, and dropout": reader(of_real, 0.3),
    "real tokens at the right": reader(of_real, 0.3, collate=to(longest, left=True)),
    "masked attention": reader(masked_attention),
    "fixed in the loop": reader(mean, change=to_16),
    "each record without the last": reader(change=without_the_last, loss=next_of_each_record),
    "packed": recurrent("any", True),
    "packed in order": recurrent("sorted", True, collate=by_length),
    "the state of the last token": recurrent(None, True),
    "a mean of each record": reader(loss=of_each_record),
    "the maximum of tokens": reader(loss=of_the_real_maximum),
    "a sum": reader(loss=summed),
}


MIXED = {facts.MIXES_RECORDS}
LOOPS = {f"{name}, shuffled": loop(**how, poisson_sampling=False, errors=MIXED) for name, how in MIXING.items()}
LOOPS |= {f"{name}, poisson": loop(**MIXING[name], errors=MIXED) for name in ("mean", "a loss of all tokens")}


@pytest.mark.parametrize("name", LOOPS)
def test_padding_that_counts(name):
    LOOPS[name].check()


@pytest.mark.parametrize("name", RIGHT)
def test_padding_that_does_not_count(name):
    loop(**RIGHT[name], poisson_sampling=False).check()


def windows(tokens, lengths, labels):
    return tokens.unfold(1, 2, 2).amax(2), lengths, labels


class Holds:
    """Nothing with a lock in it can be copied."""

    def __init__(self):
        self.lock = threading.Lock()

    def __call__(self, records):
        return to(longest)(records)


@pytest.mark.parametrize("options", [{"change": windows}, {"collate": Holds()}])
def test_where_nobody_could_look(options):
    """Else the ledger said nothing, and the word of the program stood for what it never stated."""
    loop(lambda: Reader(mean), **options).but(never=set(), notes={facts.NOT_LOOKED_AT}).check()


@pytest.mark.parametrize("before", ["a worker", "an iterator"])
def test_a_loader_that_was_read_before_the_watch(before):
    several = {"num_workers": 1, "persistent_workers": True} if before == "a worker" else {}
    model, optimizer, loader, _ = made = private(
        reading(texts(), collate_fn=to(longest), **several), model=Reader(mean)
    )
    batches = iter(loader)
    if several:
        next(batches)
    read = loader if several else batches
    late = loop(lambda: None).but(batches=lambda toy: ((tokens, others) for tokens, *others in read))
    with rt.watch(model, optimizer, loader) as seen:
        late.run(made, seen)
    assert facts.NOT_LOOKED_AT in seen.ledger.faults
    assert "clipped" not in seen.ledger.vouches()

"""What makes the batches of a loader: whether it mixes the records that it collates."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, default_collate

import reticent as rt
from reticent import facts
from reticent.watching.detectors.base import Loop as Watched
from reticent.watching.detectors.base import Said
from reticent.watching.detectors.collating import Collating
from tests.watching.loops import Loop
from tests.watching.programs import mixup, noisy, private, reading, standardised

pytestmark = pytest.mark.filterwarnings("ignore")

MIXED = {facts.MIXES_RECORDS}


class Collate:
    """A class, so that workers can load it."""

    def __init__(self, change=mixup):
        self.change = change

    def __call__(self, batch):
        features, labels = default_collate(batch)
        return self.change(features), labels


def padded(batch):
    """Rows that are filled up to the longest, and then to one width."""
    rows = [features[: 1 + int(labels)] for features, labels in batch]
    filled = nn.utils.rnn.pad_sequence(rows, batch_first=True)
    return nn.functional.pad(filled, (0, 4 - filled.shape[1])), torch.stack([y for _, y in batch])


def sorted_by_label(records):
    batch = default_collate(records)
    places = batch[1].argsort(stable=True)
    return [part[places] for part in batch]


def by_fives(records):
    """Means of five records."""
    x, y = default_collate(records)
    return torch.stack([part.mean(0) for part in x.split(5)]), y[::5]


def row(collate, **options):
    return {"made": lambda: private(reading(collate_fn=collate), **options)}


LOOPS = {
    "mixup": Loop(**row(Collate(mixup)), errors=MIXED),
    "statistics of the batch": Loop(**row(Collate(standardised)), errors=MIXED),
    "mixup in workers": Loop(
        made=lambda: private(reading(collate_fn=Collate(mixup), num_workers=1), poisson_sampling=False),
        errors=MIXED,
        draws=True,
    ),
    "means of several records": Loop(**row(by_fives, poisson_sampling=False), errors=MIXED),
    "noise for each record": Loop(**row(Collate(noisy))),
    "rows that are filled up": Loop(**row(padded)),
    "records in the order of their labels": Loop(**row(sorted_by_label)),
}


@pytest.mark.parametrize("name", LOOPS)
def test_collating(name):
    loop = LOOPS[name]
    own = loop.made()[2].collate_fn
    _, toy = loop.check()
    assert type(toy.loader.collate_fn) is type(own)


def found(rows, collate, **said):
    """What is seen of a batch of eight records."""
    made = DataLoader(rows, batch_size=8, collate_fn=collate)
    loop = Watched(nn.Linear(4, 1), None, made, Said(**said), (Collating,))
    loop.of(Collating).enters(again=False)
    undo = list(loop.of(Collating).attach())
    assert len(list(made)) == 1
    while undo:
        undo.pop()()
    return loop.faults


@pytest.mark.parametrize("alike", [True, False])
def test_rows_that_say_where_they_begin(alike):
    """As for sums over bags of tokens: no such row is the same at another place."""
    rows = [(torch.randn(3 if alike else 2 + place), place) for place in range(8)]

    def bags(records):
        begin = torch.tensor([0, *(len(x) for x, _ in records[:-1])]).cumsum(0)
        return torch.cat([x for x, _ in records]), begin, torch.tensor([y for _, y in records])

    assert found(rows, bags) == set()


TOKENS = [torch.arange(2 + place) for place in range(8)]


def end_to_end(records):
    """All tokens of the batch in one row, with where each record begins, as attention without padding wants them."""
    begin = torch.tensor([0, *map(len, records)]).cumsum(0)
    return {"input_ids": torch.cat(records)[None], "cu_seq_lens": begin}


def two_in_a_row(records):
    rows = [torch.cat(records[place : place + 2]) for place in range(0, len(records), 2)]
    return {"input_ids": nn.utils.rnn.pad_sequence(rows, batch_first=True)}


def the_first_half(records):
    """Fewer rows than records, and each is one."""
    return {"input_ids": nn.utils.rnn.pad_sequence(records[: max(1, len(records) // 2)], batch_first=True)}


@pytest.mark.parametrize(("collate", "mixed"), [(end_to_end, True), (two_in_a_row, True), (the_first_half, False)])
def test_records_that_lie_end_to_end_share_a_row(collate, mixed):
    """One row of a whole batch was counted as one record that the program had chosen, with all of its noise."""
    assert (facts.MIXES_RECORDS in found(TOKENS, collate)) == mixed


def test_a_trainer_that_packs_says_so():
    assert found([torch.zeros(3)] * 8, torch.stack, packs=True) == MIXED
    assert found([torch.zeros(3)] * 8, torch.stack) == set()


def test_a_look_draws_nothing():
    model, drawn = nn.Linear(4, 1), []
    for looked in (False, True):
        torch.manual_seed(7)
        one = reading(collate_fn=Collate(noisy))
        with rt.watch(model, None, one if looked else None) as seen:
            drawn.append(torch.cat([features for features, _ in one]))
            seen.step(noise_multiplier=1.0)
    torch.seed()
    assert torch.allclose(*drawn)

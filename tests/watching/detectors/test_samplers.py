"""How the loader draws, and how often it lists one record: samplers by name, and samplers that change on the way."""

from __future__ import annotations

from itertools import product
from operator import attrgetter

import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    RandomSampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from torch.utils.data.distributed import DistributedSampler

import reticent as rt
from reticent import facts
from reticent.facts.steps import Drawn
from reticent.watching.detectors.samplers import copies, look_at
from tests.conftest import some
from tests.watching.loops import Loop, at, epsilon, nothing, passes, watched
from tests.watching.programs import BATCH, NOISE, RECORDS, private, reading, records, shuffled

pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook")

REPEATED = {facts.REPEATED_RECORDS}


class InOrder(RandomSampler):
    """A subclass that draws in its own way."""

    def __iter__(self):
        return iter(range(RECORDS))


class OneRecord(BatchSampler):
    def __iter__(self):
        yield from ([1] * BATCH for _ in range(6))


def of(sampler, size=BATCH):
    """A loop with a sampler, which is made anew."""
    return lambda: private(DataLoader(records(), batch_size=size, sampler=sampler()), poisson_sampling=False)


def of_batches(sampler):
    return lambda: private(DataLoader(records(), batch_sampler=sampler()), poisson_sampling=False)


def changed(where, name, value, back=None):
    """Something of the loader is changed after its first pass, and put back at the end."""

    def put(value):
        return lambda toy: setattr(attrgetter(where)(toy), name, value)

    return {"batches": passes(3), "after": at(5, put(value)), "leaves": nothing if back is None else put(back)}


OF_BATCHES, OF_RECORDS = "loader.batch_sampler", "loader.sampler"


def allocated():
    model, optimizer, loader, criterion = shuffled()
    return model, optimizer, rt.random_allocation(loader), criterion


def drawn(how, **others):
    return {"ledger": {"sampler.drawn": how, **others}}


ALL = list(range(RECORDS))
KNOWN = {
    "with replacement": (lambda: RandomSampler(records(), replacement=True), Drawn.WITH_REPLACEMENT),
    "in order": (lambda: SequentialSampler(records()), Drawn.IN_ORDER),
    "some records": (lambda: SubsetRandomSampler(range(30)), Drawn.SHUFFLED),
    "some records often": (lambda: SubsetRandomSampler([0, 0, 1] * 20), Drawn.WITH_REPLACEMENT),
}
LOOPS = {f"a sampler of torch, {name}": Loop(made=of(make), **drawn(how)) for name, (make, how) in KNOWN.items()}
LOOPS |= {
    "weighted": Loop(
        made=of(lambda: WeightedRandomSampler([1.0] * RECORDS, RECORDS)),
        **drawn(Drawn.WEIGHTED),
        notes={facts.WEIGHTED},
        ran={"noise_multiplier": NOISE / BATCH},
    ),
    "a subclass that draws in its own way": Loop(
        made=of(lambda: InOrder(records())),
        **drawn(Drawn.UNKNOWN),
        batches=passes(2),
        notes={facts.UNKNOWN_SAMPLER},
        ran={"sample_rate": 1.0, "steps": 12, "noise_multiplier": NOISE},
    ),
    "an unknown sampler that repeats a record": Loop(
        made=of_batches(lambda: OneRecord(SequentialSampler(records()), BATCH, False)),
        **drawn(Drawn.WITH_REPLACEMENT),
        ran={"noise_multiplier": NOISE / BATCH},
    ),
    "poisson": Loop(batches=passes(3), **drawn(Drawn.POISSON)),
    "shuffled": Loop(made=shuffled, batches=passes(3), **drawn(Drawn.SHUFFLED)),
    "half of the records twice in each pass": Loop(
        made=of(lambda: RandomSampler(range(RECORDS // 2), num_samples=RECORDS)),
        ledger={"sampler.times_per_epoch": 2},
        ran={"steps": 4},  # both times may be in one step: counted as 2^2
    ),
    "records that are listed again for the next pass": Loop(
        made=of(lambda: SubsetRandomSampler(ALL)),
        **changed(OF_RECORDS, "indices", [3] * RECORDS, ALL),
        **drawn(Drawn.WITH_REPLACEMENT),
    ),
    "another kind of draw and back": Loop(
        made=shuffled, **changed(OF_RECORDS, "replacement", True, False), **drawn(Drawn.WITH_REPLACEMENT)
    ),
    "larger batches of a weighted sampler": Loop(
        made=of(lambda: WeightedRandomSampler([1.0] * RECORDS, RECORDS)),
        **changed(OF_BATCHES, "batch_size", 2 * BATCH),
        **drawn(Drawn.WEIGHTED, **{"sampler.batch_size": 2 * BATCH}),
    ),
    "random allocation to fewer batches": Loop(
        made=allocated, **changed(OF_BATCHES, "_batches", 2), **drawn(Drawn.UNKNOWN), draws=True
    ),
    "fewer records for poisson": Loop(**changed(OF_BATCHES, "num_samples", RECORDS - 1), **drawn(Drawn.POISSON)),
    "a generator that is exchanged": Loop(
        **changed(OF_BATCHES, "generator", torch.Generator().manual_seed(6)), notes={facts.PUBLIC_DRAWS}, draws=True
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_samplers(name):
    LOOPS[name].check()


LISTED = {
    "subset": (lambda data: Subset(data, [0] * 6 + list(range(RECORDS - 6))), 7),
    "concat": (lambda data: ConcatDataset([Subset(data, range(RECORDS // 6))] * 6), 6),
    "both": (lambda data: Subset(ConcatDataset([data, data]), [0, RECORDS, *range(1, RECORDS - 1)]), 2),
}


@pytest.mark.parametrize(("make", "poisson"), some([*product(LISTED, (True, False))], 0, 3, 4))
def test_one_record_many_times(make, poisson):
    listed, most = LISTED[make]
    seen, _ = Loop(
        made=lambda: private(reading(listed(records())), poisson_sampling=poisson),
        batches=passes(2),
        ledger={"sampler.copies": most},
        notes=REPEATED,
        ran={"copies": most, "records_per_user": None},
        beside=True,
    ).check()
    assert epsilon(seen) > epsilon(watched(*(private() if poisson else shuffled())))


def test_one_record_many_times_from_the_second_pass_on():
    """A curriculum that changes its Subset while it trains."""

    def narrow(toy):
        toy.loader.dataset.indices[:] = [*[0, 1, 2] * 20, *range(3, RECORDS - 57)]

    Loop(
        made=lambda: private(reading(Subset(records(), [*ALL]))),
        batches=passes(2),
        after=at(5, narrow),
        ledger={"sampler.copies": 20},
        notes=REPEATED,
    ).check()


DATA, OTHER, TWO = records(), records(1), [(torch.zeros(4), 0), (torch.ones(4), 1)]
COPIES = {
    "data": (DATA, 1),
    "a list": ([TWO[0], *TWO], 2),
    "a selection": (Subset(DATA, [3, 3, 3, 1]), 3),
    "two data sets": (ConcatDataset([DATA, OTHER]), 1),
    "one of them twice": (ConcatDataset([DATA, OTHER, DATA]), 2),
    "a selection of both": (Subset(ConcatDataset([DATA, DATA]), [0, RECORDS, RECORDS]), 3),
    "both of two selections": (ConcatDataset([Subset(DATA, [0, 1]), Subset(DATA, [1, 2])]), 2),
    "pairs that are listed again": (StackDataset(*2 * [Subset(DATA, [0] * 30 + ALL[:-30])]), 31),
    "pairs of a record and itself": (StackDataset(*2 * [Subset(DATA, ALL)]), 1),
    "pairs of a record and another one": (StackDataset(Subset(DATA, ALL), Subset(DATA, ALL[::-1])), 2),
}


@pytest.mark.parametrize("name", COPIES)
def test_copies_of_a_record_are_counted_through_layers(name):
    data, most = COPIES[name]
    assert copies(data) == (look_at(DataLoader(data)).copies or 1) == most


@pytest.fixture
def three_processes(monkeypatch):
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 3)


def test_a_sampler_that_is_not_shared_out_may_draw_a_record_in_each_process(three_processes):
    poisson = look_at(private()[2])
    assert (poisson.drawn, poisson.times_per_epoch, poisson.sample_rate) == (Drawn.DISTRIBUTED, 3, None)
    shuffled = look_at(DataLoader(records(), batch_size=BATCH, shuffle=True))
    assert (shuffled.drawn, shuffled.times_per_epoch) == (Drawn.DISTRIBUTED, 3)
    filled = look_at(DataLoader(records(), batch_size=BATCH, sampler=RandomSampler(records(), replacement=True)))
    assert (filled.drawn, filled.batch_size) == (Drawn.WITH_REPLACEMENT, 3 * BATCH)
    nobody = look_at(None)
    assert (nobody.drawn, nobody.times_per_epoch) == (Drawn.UNKNOWN, 3)


def test_padding_of_a_distributed_sampler_may_repeat_a_record_many_times():
    few = torch.utils.data.TensorDataset(torch.zeros(3, 1), torch.zeros(3))
    sampler = DistributedSampler(few, num_replicas=16, rank=0)
    assert look_at(DataLoader(few, batch_size=1, sampler=sampler)).times_per_epoch == 6  # 16 draws of 3 records
    usual = DistributedSampler(records(), num_replicas=2, rank=0)
    assert look_at(DataLoader(records(), batch_size=BATCH, sampler=usual)).times_per_epoch == 2


def test_a_distributed_sampler_that_draws_in_its_own_way_is_unknown():
    class Own(DistributedSampler):
        def __iter__(self):
            return iter([0] * RECORDS)

    batches = BatchSampler(Own(records(), num_replicas=2, rank=0), BATCH, drop_last=False)
    assert look_at(DataLoader(records(), batch_sampler=batches)).drawn is Drawn.UNKNOWN

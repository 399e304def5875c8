"""``rt.random_allocation``: the law of its draws, what the watch makes of it, and what is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from scipy import stats
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, RandomSampler

import reticent as rt
from reticent import facts, samplers
from reticent.facts.steps import Drawn, Source
from reticent.kernel.errors import ParameterError
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.proofs import Status
from reticent.training.randomness import SeededSource, Stream
from reticent.watching import allocation
from reticent.watching.allocation import RandomAllocation
from reticent.watching.detectors.samplers import look_at
from tests.watching.loops import Loop, nothing, passes, update_by_hand, watched
from tests.watching.programs import BATCH, NOISE, RECORDS, by_hand, private, reading, records, run

STEPS = RECORDS // BATCH


def allocated(**options):
    return private(rt.random_allocation(reading(**options)), poisson_sampling=False)


def release(steps: int) -> DPSGD:
    stated = {"num_parameters": 44, "dataset_size": RECORDS}
    return DPSGD(NOISE, 1.0 / STEPS, steps, sampler=samplers.RandomAllocation(STEPS), **stated)


@pytest.mark.parametrize(("count", "uses"), [(12, 1), (4, 3)])
def test_the_law_of_the_draws(monkeypatch, count, uses):
    """Each record is in so many of five batches of each epoch, in any alike, apart from other records and epochs.

    The draws are those of a seed, and each test would fail with probability 1e-9.
    """
    source = SeededSource(5, Stream.SAMPLING)
    monkeypatch.setattr(allocation, "SystemSource", lambda: source)
    sampler, epochs = RandomAllocation(count, 5, uses), 6_000
    sets = {chosen: number for number, chosen in enumerate(itertools.combinations(range(5), uses))}
    drawn = np.empty((epochs, count), dtype=int)
    sizes = []
    for epoch in drawn:
        batches = list(sampler)
        sizes.append(len(batches[0]))
        assert all(batch == sorted(set(batch)) for batch in batches)
        epoch[:] = [sets[tuple(k for k, batch in enumerate(batches) if one in batch)] for one in range(count)]
    many = len(sets)
    for counts in (np.bincount(column, minlength=many) for column in drawn.T):
        assert stats.chisquare(counts).pvalue > 1e-9
    for pair in (drawn[:, 0] * many + drawn[:, 1], drawn[:-1, 0] * many + drawn[1:, 0]):
        assert stats.chisquare(np.bincount(pair, minlength=many**2)).pvalue > 1e-9
    found, mass = (
        np.bincount(sizes, minlength=count + 1),
        epochs * stats.binom.pmf(np.arange(count + 1), count, uses / 5),
    )
    keep = mass > 20
    assert stats.chi2.sf(np.sum((found - mass)[keep] ** 2 / mass[keep]), keep.sum()) > 1e-9


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize(("drop_last", "steps"), [(False, 9), (True, 8)])
def test_a_loader_has_as_many_batches_and_all_records(drop_last, steps, workers):
    loader = rt.random_allocation(reading(size=14, drop_last=drop_last, num_workers=workers))
    assert len(loader) == steps
    for _ in range(2):
        drawn = [features for features, _ in loader]
        assert len(drawn) == steps
        assert torch.equal(torch.cat(drawn).sort(dim=0)[0], records().tensors[0].sort(dim=0)[0])
    assert rt.random_allocation(loader) is loader
    with pytest.raises(ParameterError, match="loader must be a DataLoader that shuffles"):
        rt.random_allocation(loader, uses_per_epoch=2)


class Mapped(Dataset):
    """Records with names."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> dict:
        return {"x": torch.ones(4), "both": (index, torch.zeros(2, 2))}


def test_an_empty_batch_has_tensors_without_rows():
    loader = rt.random_allocation(DataLoader(Mapped(), batch_size=1, shuffle=True))
    batch = loader.collate_fn([])
    assert batch["x"].shape == (0, 4)
    assert (batch["both"][0].shape, batch["both"][1].shape) == ((0,), (0, 2, 2))
    assert loader.collate_fn([Mapped()[0]])["x"].shape == (1, 4)


def test_a_loop_of_opacus_gets_the_bound_of_random_allocation():
    ledger = watched(*allocated(), how={"epochs": 3})
    assert ledger.mechanism() == release(3 * STEPS)
    found = ledger.ledger
    seen = found.sampler
    assert (seen.drawn, seen.source, seen.times_per_epoch) == (Drawn.RANDOM_ALLOCATION, Source.SEEN, 1)
    assert sum(found.diagnostics.batch_sizes) == 3 * RECORDS
    assert found.vouches()["allocation-draws"] is Status.CHECKED
    assert facts.SHUFFLED not in found.faults
    assert not list(found.contradictions())
    stated = rt.dpsgd(
        noise_multiplier=NOISE, batch_size=BATCH, dataset_size=RECORDS, epochs=3, sampler="random-allocation"
    )
    ours, theirs = (rt.assess(one)[0].measure(rt.advantage) for one in (ledger, stated))
    assert ours.upper == pytest.approx(theirs.upper, rel=1e-9, abs=0)
    shuffled = rt.assess(watched(*private(reading(), poisson_sampling=False), how={"epochs": 3}))[0].measure(
        rt.advantage
    )
    assert ours.upper < 0.7 * shuffled.upper


def test_several_uses_of_a_record_in_an_epoch():
    """The mechanism is the one that is stated so; an epoch that is broken off counts all uses."""
    made = lambda: private(rt.random_allocation(reading(), uses_per_epoch=3), poisson_sampling=False)  # noqa: E731
    stated = DPSGD(NOISE, 1.0 / STEPS, 2 * STEPS, sampler=samplers.RandomAllocation(STEPS, uses_per_epoch=3))
    for most in (2, None):
        ledger = watched(*made(), how={"epochs": 2, "most": most})
        run = ledger.mechanism()
        assert (run.sampler, run.steps, run.sample_rate) == (stated.sampler, stated.steps, stated.sample_rate)
        assert ledger.ledger.vouches()["allocation-draws"] is Status.CHECKED
        assert rt.advantage(rt.assess(ledger)) == pytest.approx(rt.advantage(rt.assess(stated)), rel=1e-9, abs=0)
    told = rt.certify(ledger).certificate.mechanism
    assert (told["sampler"], told["uses_per_epoch"]) == ("random-allocation", 3)
    assert sum(ledger.ledger.diagnostics.batch_sizes) == 2 * 3 * RECORDS


def test_uses_that_change_on_the_way_are_not_claimed():
    made = private(rt.random_allocation(reading(), uses_per_epoch=2), poisson_sampling=False)
    with rt.watch(*made[:3]) as ledger:
        run(*made, epochs=1)
        made[2].batch_sampler.uses_per_epoch = 3
        run(*made, epochs=1)
    found = ledger.mechanism()
    assert "allocation-draws" not in ledger.ledger.vouches()
    assert all(part.sample_rate == 1.0 for part in getattr(found, "parts", (found,)))


def test_empty_batches_are_steps():
    ledger = watched(*allocated(size=1), how={"epochs": 1})
    assert 0 in ledger.ledger.diagnostics.batch_sizes
    assert isinstance(ledger.mechanism().sampler, samplers.RandomAllocation)
    assert ledger.mechanism().steps == RECORDS


def test_an_epoch_that_is_broken_off_counts_in_full():
    ledger = watched(*allocated(), how={"epochs": 4, "most": 2})
    assert ledger.ledger.segments[0].passes == 4
    assert ledger.mechanism() == release(4 * STEPS)
    one = watched(*allocated(), how={"epochs": 1, "most": 2})
    upper = rt.assess(release(STEPS))[0].measure(rt.advantage).upper
    assert rt.assess(one)[0].measure(rt.advantage).upper == pytest.approx(upper, rel=1e-9, abs=0)


def test_batches_that_are_kept_for_all_epochs_are_not_drawn_anew():
    model, optimizer, loader, criterion = allocated()
    watched(model, optimizer, loader, criterion, how={"epochs": 1})
    with rt.watch(model, optimizer, loader) as ledger:
        run(model, optimizer, list(loader), criterion, epochs=3)
    assert facts.OTHER_BATCHES in ledger.ledger.faults
    assert "allocation-draws" not in ledger.ledger.vouches()
    released = ledger.mechanism()
    whole = [part for part in getattr(released, "parts", (released,)) if part.sample_rate == 1.0]
    assert sum(part.steps for part in whole) >= 3 * STEPS  # with the first pass where a batch is larger than its draw


def test_a_watch_that_is_entered_for_each_epoch_and_a_second_loader():
    made = allocated()
    seen = rt.watch(*made[:3])
    for _ in range(3):
        with seen:
            run(*made, epochs=1)
    assert seen.mechanism() == release(3 * STEPS)
    other = rt.random_allocation(reading())
    with rt.watch(*made[:3]) as second:
        run(made[0], made[1], other, made[3], epochs=1)
    assert facts.OTHER_BATCHES in second.ledger.faults


def test_a_loop_by_hand_and_its_risk_while_it_runs():
    made = lambda: by_hand(loader=rt.random_allocation(reading()))  # noqa: E731
    asks = lambda toy: setattr(toy, "live", toy.seen.risk().advantage)  # noqa: E731
    own = Loop(made=made, batches=passes(2), backward=nothing, update=update_by_hand, leaves=asks)
    ledger, toy = own.watched()
    assert ledger.mechanism() == release(2 * STEPS)
    assert toy.live == pytest.approx(rt.assess(ledger)[0].measure(rt.advantage).upper, rel=1e-9, abs=0)


def test_a_class_that_draws_otherwise_is_unknown():
    class Kept(RandomAllocation):
        def __iter__(self):
            self.kept = getattr(self, "kept", None) or list(super().__iter__())
            return iter(self.kept)

    class Fewer(RandomAllocation):
        def __len__(self) -> int:
            return 1000

    for sampler in (Kept, Fewer):
        seen = look_at(DataLoader(records(), batch_sampler=sampler(RECORDS, STEPS)))
        assert (seen.drawn, seen.source) == (Drawn.UNKNOWN, Source.UNKNOWN)


class Endless(IterableDataset):
    """No positions."""

    def __iter__(self):
        return iter(range(9))


SHUFFLES = "loader must be a DataLoader that shuffles"
REFUSED = {
    "no loader": (records, SHUFFLES),
    "in order": (lambda: DataLoader(records(), batch_size=BATCH), SHUFFLES),
    "no batches": (lambda: DataLoader(records(), batch_size=None), SHUFFLES),
    "no length": (lambda: DataLoader(Endless(), batch_size=2), "loader.dataset must be one with a length"),
    "some records": (lambda: reading(shuffle=None, sampler=RandomSampler(records(), num_samples=9)), SHUFFLES),
    "private": (lambda: private()[2], SHUFFLES),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_loaders_are_refused_in_one_line(name):
    loader, line = REFUSED[name]
    with pytest.raises(ParameterError, match=line) as error:
        rt.random_allocation(loader())
    assert "\n" not in str(error.value)


def test_a_batch_sampler_of_ones_own_is_named():
    class Mine(BatchSampler):
        pass

    with pytest.raises(ParameterError, match="Mine"):
        rt.random_allocation(DataLoader(records(), batch_sampler=Mine(RandomSampler(records()), BATCH, False)))
    with pytest.raises(ParameterError, match="batches must be"):
        RandomAllocation(10, 0)
    with pytest.raises(ParameterError, match="uses_per_epoch must be at most the 4 batches of an epoch"):
        RandomAllocation(10, 4, 5)

"""Which batches the loader drew, and which of them each step used: left out, added up, read ahead, with more rows."""

from __future__ import annotations

import copy
import pickle
from functools import partial
from itertools import chain, cycle, islice

import pytest
import torch
from opacus.data_loader import DPDataLoader
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch.utils.data import DataLoader

import reticent as rt
from reticent import facts
from reticent.watching.optimisers import before_1_6
from reticent.watching.session import Watch
from tests.watching.loops import (
    Loop,
    every,
    faults,
    gradients_by_hand,
    in_parts,
    passes,
    prepared,
    update_by_hand,
    void,
    watched,
)
from tests.watching.programs import (
    BATCH,
    NOISE,
    RATE,
    RECORDS,
    by_hand,
    network,
    private,
    reading,
    records,
    run,
    shuffled,
)

pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook is firing", "ignore:Secure RNG turned off")

LEFT_OUT, LARGER = {facts.LEFT_OUT}, {facts.LARGER_BATCH}
LEAVES_NOTHING_OUT = {facts.LEFT_OUT, facts.OTHER_BATCHES}
in_order = partial(private, poisson_sampling=False)


class Sizes:
    """Batches of these sizes, from all records anew."""

    def __init__(self, sizes):
        self.sizes = sizes

    def __len__(self):
        return len(self.sizes)

    def __iter__(self):
        for size in self.sizes:
            yield torch.randperm(RECORDS)[:size].tolist()


def of_sizes(*sizes):
    return lambda: in_order(DataLoader(records(), batch_sampler=Sizes(sizes)))


def shuffled_with(**options):
    return in_order(reading(**options))


FEW = 40
"""Records in batches of one: that no batch of a pass is empty happens once in 1e8."""


def of_empty_batches(workers=0, **options):
    return lambda: private(reading(records(count=FEW), size=1, num_workers=workers), **options)


def own(workers=0, poisson=True):
    loader = reading(shuffle=not poisson, num_workers=workers)
    return by_hand(loader=DPDataLoader.from_data_loader(loader) if poisson else loader)


def ahead(loader):
    """One batch is drawn before the one before is given, as by loaders that accelerate prepares."""
    batches = iter(loader)
    waits = next(batches)
    for batch in batches:
        yield waits
        waits = batch
    yield waits


def twice_ahead(toy):
    yield from chain(ahead(toy.loader), ahead(toy.loader))


def without(*left_out):
    return lambda toy: (batch for index, batch in enumerate(toy.loader) if index not in left_out)


def with_records(toy):
    return (batch for batch in toy.loader if len(batch[1]))


def signals(count):
    """So many batches for each step, as Opacus wants to be told."""

    def step(toy):
        toy.optimizer.signal_skip_step(do_skip=toy.step % count < count - 1)
        toy.optimizer.step()
        toy.optimizer.zero_grad()

    return {"clears": False, "update": step}


def views(count):
    def backward(toy):
        outputs = toy.model(toy.features.repeat(count, 1))
        toy.criterion(outputs, toy.labels.repeat(count)).backward()

    return {"batches": with_records, "backward": backward}


everybody = prepared(lambda made: setattr(made[2].batch_sampler, "sample_rate", 1.0))


def rate(toy, value):
    toy.loader.batch_sampler.sample_rate = value


def evaluates(toy):
    with torch.no_grad():
        for features, _ in toy.loader:
            toy.bare(features)


def scaled(toy):
    toy.scaler = getattr(toy, "scaler", None) or torch.amp.GradScaler("cpu")
    loss = toy.criterion(toy.model(toy.features), toy.labels)
    toy.scaler.scale(loss * (torch.inf if toy.step == 2 else 1.0)).backward()


def if_finite(toy):
    toy.scaler.step(toy.optimizer)
    toy.scaler.update()


def parts_of_each(toy):
    for features, labels in toy.loader:
        for part in (slice(None), slice(None), slice(4)):
            yield features[part], labels[part]


def broken_off(stops):
    """Passes in small batches that stop, and a whole one."""

    def batches(toy):
        for stop in (*[2] * stops, None):
            manager = BatchMemoryManager(data_loader=toy.loader, max_physical_batch_size=16, optimizer=toy.optimizer)
            with manager as small:
                yield from islice(small, stop)

    return batches


def without_noise(toy):
    """The numbers of a step, and no size of its batch."""
    toy.optimizer.step()
    toy.seen.step(noise_multiplier=NOISE, max_grad_norm=1.0)


def third_by_hand(toy):
    if toy.step % 3 == 2:
        gradients_by_hand(toy)
        without_noise(toy)


ORDINARY = Loop(batches=twice_ahead, segments={"batches": [1]}, never=LEAVES_NOTHING_OUT | {facts.PUBLIC_DRAWS})
READS = {"ahead": ahead, "kept": list, "again and again": lambda loader: islice(cycle(loader), 10)}
SIZES = [(9, 9, 5, 7), (7, 7, 7, 7), (3, 12, 9, 4)]


def read(how, sizes, **others):
    return Loop(made=of_sizes(*sizes), batches=lambda toy: READS[how](toy.loader), **others)


LOOPS = {
    "all batches": Loop(batches=passes(2), never=LEAVES_NOTHING_OUT, ledger={"divisor": BATCH}),
    "a rate that is lowered after the draw": Loop(
        before=lambda toy: rate(toy, 0.01), after=lambda toy: rate(toy, RATE), ran={"sample_rate": RATE}
    ),
    "batches that are left out": Loop(batches=without(2), errors=LEFT_OUT),  # as where a loss is not finite
    "one left out among equal ones": Loop(made=shuffled, batches=without(1), errors=LEFT_OUT),
    "a step that a scaler skips": Loop(backward=scaled, update=if_finite, errors=LEFT_OUT),
    "empty batches that are left out": Loop(made=of_empty_batches(), batches=with_records, errors=LEFT_OUT),
    "a batch that is left out among those that a step adds up": Loop(
        batches=lambda toy: (b for index, b in enumerate(passes(2)(toy)) if index % 3 != 1),
        **signals(2),
        errors=LEFT_OUT,
    ),
    "batches that a step adds up": Loop(
        batches=passes(2),
        **signals(3),
        segments={"batches": [3]},
        ran={"sample_rate": 1.0, "noise_multiplier": NOISE / 3},
        notes={facts.ACCUMULATION},
        never=LEFT_OUT,
    ),
    "an evaluation on the loader": Loop(after=evaluates, never=LEFT_OUT),
    "a part of a batch and a batch once more": Loop(
        made=in_order, batches=parts_of_each, notes={facts.OTHER_BATCHES}, ran={"sample_rate": 1.0}
    ),
    "three views in a loop of one's own": Loop(
        made=by_hand,
        batches=lambda toy: ((x.repeat(3, 1), y.repeat(3)) for x, y in toy.loader),
        backward=gradients_by_hand,
        update=update_by_hand,
        errors=LARGER,
    ),
    "parts of batches that Opacus adds up": Loop(
        batches=in_parts(8, 2), never={facts.ACCUMULATION}, ran={"steps": 12, "sample_rate": RATE}
    ),
    "workers that draw ahead": Loop(
        made=lambda: private(reading(num_workers=1)), batches=passes(2), ran={"steps": 12, "sample_rate": RATE}
    ),
    "batches of another loader": Loop(
        batches=lambda toy: DataLoader(records(), batch_size=BATCH),
        notes={facts.OTHER_BATCHES},
        ran={"sample_rate": 1.0},
    ),
    "passes that are broken off": Loop(
        made=shuffled,
        batches=passes(4, most=2),
        segments={"passes": [4]},
        ran={"sample_rate": 1.0, "steps": 4},
    ),
    "three batches of one pass": Loop(
        made=shuffled,
        batches=passes(2),
        **every(3),
        segments={"batches": [3]},
        notes={facts.ACCUMULATION},
        ran={"sample_rate": 1.0, "steps": 2},
    ),
}
LOOPS |= {
    f"{drawn}, read ahead": ORDINARY.but(made=made)
    for drawn, made in {"everybody": everybody, "by chance": private, "shuffled": shuffled}.items()
}
LOOPS |= {
    f"{count} views of a record, {mode}, {poisson}": Loop(
        made=partial(private, mode=mode, poisson_sampling=poisson == "poisson"),
        **views(count),
        errors=LARGER if count > 1 else set(),
        may=LEFT_OUT,
    )
    for count in (1, 2)
    for mode in ("hooks", "functorch", "ghost")
    for poisson in ("poisson", "shuffled")
}
LOOPS |= {
    f"an empty batch among those that a step adds up, {workers} workers": Loop(
        made=of_empty_batches(workers), **every(2), segments={"batches": [2]}, never=LEFT_OUT
    )
    for workers in (0, 1)
}
LOOPS |= {
    f"small batches of a pass that was broken off {stops} times": Loop(
        made=lambda: in_order(DataLoader(records(), batch_size=RECORDS // 2)), batches=broken_off(stops)
    )
    for stops in (1, 2)
}
LOOPS |= {f"batches of {sizes} that are read {how}": read(how, sizes) for sizes in SIZES for how in READS}
LOOPS |= {
    f"batches that are told apart where they are read {how}": read(how, (5, 6, 9, 3, 3, 8), never=LEAVES_NOTHING_OUT)
    for how in ("ahead", "kept")
}


@pytest.mark.parametrize("name", LOOPS)
def test_draws(name):
    LOOPS[name].check()


@pytest.mark.parametrize("how", ["ahead", "kept"])
def test_views_of_batches_that_are_read_otherwise(how):
    """Before, a list held enough records for all views."""
    read(how, (10, 11, 13, 8), backward=views(2)["backward"], errors=LARGER).check()


@pytest.mark.parametrize(
    "made_up",
    [pytest.param(True, marks=pytest.mark.skipif(before_1_6(), reason="Opacus 1.5 makes up no record")), False],
)
def test_a_made_up_record_for_an_empty_batch(made_up):
    """Who would be alone in the batch takes the place of the made-up one: up to twice the norm."""
    made = of_empty_batches(rand_on_empty=made_up)
    Loop(made=made, errors=LARGER if made_up else set(), draws=made_up).check()


@pytest.mark.parametrize("workers", [0, 1])
def test_an_empty_batch_that_is_a_step_of_its_own(workers):
    """The manager was there before the watch."""
    made = _, optimizer, loader, _ = of_empty_batches(workers)()
    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=1, optimizer=optimizer) as parts:
        seen = rt.watch(*made[:3])
        with seen:
            run(made[0], optimizer, parts, made[3], epochs=1)
    assert [(segment.batches, segment.steps) for segment in seen.ledger.segments] == [(1, FEW)]


@pytest.mark.parametrize("poisson", [True, False])
@pytest.mark.parametrize("leaves_out", [True, False])
@pytest.mark.parametrize("waited", [True, False])
def test_a_batch_that_is_left_out_before_one_that_waits(waited, leaves_out, poisson):
    """Its pass is broken off, and the step that adds it up ends in the next one."""
    made = model, optimizer, loader, criterion = private(poisson_sampling=poisson)

    def wait(used):
        for index, (features, labels) in enumerate(loader):
            if index > max(used):
                break
            if index in used:
                optimizer.signal_skip_step(do_skip=True)
                criterion(model(features), labels).backward()
                optimizer.step()
                optimizer.zero_grad()

    if waited:
        with rt.watch(*made[:3]):
            wait([0])
    with rt.watch(*made[:3]) as seen:
        wait([1] if leaves_out else [0, 1])
        run(*made, epochs=1)
    assert (facts.LEFT_OUT in seen.ledger.faults) == leaves_out


def test_a_rate_that_is_lowered_while_workers_draw_ahead():
    lower = Loop(made=lambda: private(reading(num_workers=2)), after=lambda toy: rate(toy, 0.05), draws=True)
    seen, toy = lower.check()
    assert seen.ledger.segments[0].steps > 1  # batches that lay there already
    assert sum(segment.steps for segment in seen.ledger.segments) == len(toy.loader)


def test_gradients_carried_into_the_next_pass_may_hold_a_record_twice():
    seen, _ = Loop(made=shuffled, batches=passes(2), **every(4)).check()
    first, second, *_ = seen.ledger.segments
    assert (first.mixed_passes, second.mixed_passes) == (1, 2)
    # one release from the first segment, and min(2 passes * 2, 1 step * 2 ** 2) from the second
    assert seen.mechanism().steps >= 1 + 4


@pytest.mark.parametrize("poisson", [True, False])
def test_batches_that_are_added_up_behind_workers(poisson):
    """Workers draw ahead: nobody sees which batches a step of one's own added up, unless it says its size."""
    third = Loop(
        made=partial(own, workers=1, poisson=poisson),
        batches=passes(2),
        backward=third_by_hand,
        update=lambda toy: None,
        notes={facts.ACCUMULATION},
    )
    seen, _ = third.check()
    assert all(segment.batches >= 3 for segment in seen.ledger.segments)


@pytest.mark.parametrize("most", [None, 2])
def test_one_batch_for_each_step_behind_workers(most):
    one = Loop(made=partial(own, workers=1), batches=passes(3, most), backward=gradients_by_hand, update=without_noise)
    one.but(segments={"batches": [1]}, ran={"noise_multiplier": NOISE}).check()


def test_batches_that_a_step_adds_up_in_a_watch_that_is_entered_again():
    """Passes of entries before were taken for ones that were broken off, each of which drew some in vain."""
    model, optimizer, loader, _ = made = by_hand()
    seen = Watch(model, optimizer, loader, draws_ahead=True)
    second = Loop(backward=lambda toy: toy.step % 2 and (gradients_by_hand(toy), without_noise(toy)))
    for _ in range(3):
        with seen:
            second.but(clears=False, update=lambda toy: None).run(made, seen)
    assert [segment.batches for segment in seen.ledger.segments] == [1, 2, 3] * 3


def test_small_batches_that_were_broken_off_count_in_the_next_watch():
    made = in_order(DataLoader(records(), batch_size=RECORDS // 2))

    def broken(toy):
        with BatchMemoryManager(data_loader=toy.loader, max_physical_batch_size=16, optimizer=toy.optimizer) as small:
            for index, batch in enumerate(small):  # the next part is loaded already
                if index == 3:
                    raise KeyboardInterrupt
                yield batch

    with pytest.raises(KeyboardInterrupt), rt.watch(*made[:3]) as first:
        Loop(batches=broken).run(made, first)
    with rt.watch(*made[:3]) as second:
        Loop(batches=in_parts(16)).run(made, second)
    assert facts.STEPS_BEFORE not in second.ledger.faults
    assert all(segment.batches > 1 for segment in second.ledger.segments)  # each holds parts of two
    assert not faults(second)


def test_a_stated_rate_counts_only_with_poisson():
    with rt.watch(network()) as seen:
        for _ in range(3):
            seen.step(noise_multiplier=2.0, sample_rate=0.1)
    assert [s.sample_rate for s in seen.ledger.segments] == [None]


@pytest.mark.parametrize("how", ["deepcopy", "of its class", "copied sampler"])
def test_batches_of_a_copy_are_not_those_that_were_drawn(how):
    def batches(toy):
        drawn = toy.loader.batch_sampler
        if how == "deepcopy":
            other = copy.deepcopy(toy.loader)
            other.batch_sampler.num_samples, other.batch_sampler.sample_rate = 24, 5 / 6
            return other
        sampler = copy.copy(drawn)
        if how == "of its class":
            sampler = type(drawn)(num_samples=drawn.num_samples, sample_rate=0.9, generator=drawn.generator)
        sampler.sample_rate = 0.9
        return DataLoader(toy.loader.dataset, batch_sampler=sampler, collate_fn=toy.loader.collate_fn)

    seen, _ = Loop(batches=batches, draws=True).check()
    assert {part.sample_rate for part in getattr(seen.mechanism(), "parts", [seen.mechanism()])} == {1.0}


def test_a_sampler_can_be_kept_in_a_file():
    made = private()
    with rt.watch(*made[:3]) as seen:
        again = pickle.loads(pickle.dumps(made[2].batch_sampler))  # noqa: S301 (our own bytes)
        run(*made, epochs=1)
    assert type(again) is type(made[2].batch_sampler)
    assert not void(seen)


def test_workers_that_stay_are_followed_in_the_next_watch():
    made = private(reading(num_workers=1, persistent_workers=True))
    for _ in range(2):
        seen = watched(*made, how={"epochs": 1})
        assert facts.OTHER_BATCHES not in seen.ledger.faults
    assert not hasattr(type(made[2].batch_sampler), "reticent_watches")

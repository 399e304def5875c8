"""Parts of batches, which Opacus adds up: those that are left out, wait, or belong to a pass that was broken off."""

from __future__ import annotations

from itertools import chain, islice

import pytest
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch.utils.data import DataLoader

import reticent as rt
from reticent import facts
from tests.watching.loops import Loop, faults
from tests.watching.programs import BATCH, private, reading, records

pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook is firing", "ignore:Secure RNG turned off")

LEFT_OUT = {facts.LEFT_OUT}


class Sizes:
    """Batches of these sizes, in each pass of the next ones."""

    def __init__(self, passes):
        self.passes = passes

    def __len__(self):
        return 6

    def __iter__(self):
        return map(list, map(range, self.passes.pop(0)))


def of_sizes(*passes):
    return private(DataLoader(records(), batch_sampler=Sizes([*passes])), poisson_sampling=False)


def in_order(size=BATCH):
    return private(reading(size=size, shuffle=False), poisson_sampling=False)


def parts(size, read):
    """What a loop reads of the parts of batches."""

    def batches(toy):
        with BatchMemoryManager(data_loader=toy.loader, max_physical_batch_size=size, optimizer=toy.optimizer) as small:
            yield from read(small)

    return batches


def told_later(toy):
    """Opacus is told after the backward pass that the step waits."""
    toy.optimizer.signal_skip_step(do_skip=toy.step % 2 == 0)
    toy.optimizer.step()


def without(stop, left_out):
    """A pass that stops after so many parts, and a whole one; one part is left out of both."""
    return lambda small: (part for at, part in enumerate(chain(islice(small, stop), small)) if at != left_out)


BROKEN_OFF = Loop(notes={facts.OTHER_BATCHES}, never=LEFT_OUT)
STOPS = [(None, None), (5, None), (None, 0), (None, 1), (None, 4), (None, 17), (5, 1)]
LOOPS = {
    f"a pass that stops at {stop} and leaves out {left_out}": Loop(
        made=in_order, batches=parts(8, without(stop, left_out)), errors=set() if left_out is None else LEFT_OUT
    )
    for stop, left_out in STOPS
} | {
    "a pass that was broken off, whose next batches are larger": BROKEN_OFF.but(
        made=lambda: of_sizes([8, 9], [6, 9, 9, 10]),
        batches=parts(4, lambda small: chain((part for part, _ in zip(small, range(2), strict=False)), small)),
    ),
    "a pass that was broken off, whose last batch is as large": BROKEN_OFF.but(
        made=lambda: of_sizes([10], [3, 5, 10]), batches=parts(4, lambda small: chain(islice(small, 2), small))
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_parts(name):
    """A part that is left out: the others are released with noise for one record, and one may decide it of four."""
    LOOPS[name].check()


@pytest.mark.parametrize("stop", [1, None])
def test_a_step_of_two_passes(stop):
    """What waits at the end of a pass, or where it is broken off, are whole batches."""
    two = Loop(
        made=lambda: private(reading(size=2 * BATCH)),
        batches=lambda toy: chain(islice(toy.loader, stop), islice(toy.loader, stop)),
        update=told_later,
        never={facts.LEFT_OUT, facts.OTHER_BATCHES},
    )
    seen, _ = two.check()
    assert [(s.batches, s.steps) for s in seen.ledger.segments if s.mixed_passes == 2] == [(2, 1)]


@pytest.mark.parametrize("left_out", [None, "a part", "a batch"])
def test_parts_that_wait_for_the_next_watch(left_out):
    """The first watch has no step and no ledger; six records of its batch are as many as are left out later."""
    made = of_sizes([12], [6, 13, 10])
    some = (lambda small: islice(small, 0, 3, 2)) if left_out == "a part" else (lambda small: islice(small, 2))
    with rt.watch(*made[:3]) as before:
        Loop(batches=parts(3, some)).run(made, before)
    made[1]._step_skip_queue.clear()
    with rt.watch(*made[:3]) as seen:
        Loop(batches=lambda toy: islice(toy.loader, left_out == "a batch", None)).run(made, seen)
    assert faults(seen) == (set() if left_out is None else LEFT_OUT)

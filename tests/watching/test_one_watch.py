"""One watch at a time, of whatever moves the weights now; and batches that hold more than was drawn."""

from __future__ import annotations

import copy
from itertools import chain, cycle, islice

import pytest
import torch
from opacus.optimizers import DPOptimizer
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch import nn
from torch.utils.data import DataLoader

import reticent as rt
from reticent import facts
from reticent.errors import ParameterError
from reticent.watching.session import Watch
from tests.watching.loops import BATCH, NOISE, RATE, RECORDS, network, plain_step, private, records, run

pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook")


class Sizes:
    """Batches of these sizes, from all records anew."""

    def __init__(self, sizes):
        self.sizes = sizes

    def __len__(self):
        return len(self.sizes)

    def __iter__(self):
        for size in self.sizes:
            yield torch.randperm(RECORDS)[:size].tolist()


def ahead(loader):
    """One batch is drawn before the one before is given, as by loaders that accelerate prepares."""
    waiting = None
    for batch in loader:
        if waiting is not None:
            yield waiting
        waiting = batch
    yield waiting


def voiding(seen):
    return {fault for fault in seen.ledger.faults if fault.voids}


class TestOneAtATime:
    """A second watch of the same loop is refused before it looks at anything."""

    def test_of_one_model_and_optimizer(self):
        made = private()
        with rt.watch(*made[:3]) as seen:
            with pytest.raises(ParameterError, match="another watches the model"):
                rt.watch(*made[:3]).__enter__()
            run(*made)
        assert not voiding(seen)
        assert seen.mechanism().steps == 12

    def test_of_one_optimizer_or_one_loader(self):
        made, other = private(), private()
        both = nn.ModuleList([network(), network()])
        together = torch.optim.SGD(both.parameters(), lr=0.1)
        with rt.watch(both[0], together) as seen:
            with pytest.raises(ParameterError, match="another watches the optimizer"):
                rt.watch(both[1], together).__enter__()
            seen.step(noise_multiplier=NOISE)
        with rt.watch(*made[:3]):
            with pytest.raises(ParameterError, match="another watches the loader"):
                rt.watch(*other[:2], made[2]).__enter__()
            run(*made)

    def test_a_watch_that_was_refused_is_in_nobodys_way(self):
        made, other = private(), private()
        with rt.watch(*made[:3]) as first:
            run(*made)
        with pytest.raises(ParameterError, match="ended at these weights"):
            rt.watch(*other[:3], continues=first).__enter__()
        with rt.watch(*other[:3]) as seen:
            run(*other)
        assert seen.mechanism().steps == 12

    @pytest.mark.parametrize("name", ["evaluation", "no_records", "after_step"])
    def test_what_is_said_within_the_block_is_refused_outside(self, name):
        made = private()
        seen = rt.watch(*made[:3])
        for when in ("before", "after"):
            with pytest.raises(ParameterError, match=f"{name} must be inside the with block"), getattr(seen, name)():
                pytest.fail(f"{when} the block")
            with seen:
                run(*made, epochs=1)

    def test_two_models_side_by_side(self):
        made, other = private(), private()
        with rt.watch(*made[:3]) as one, rt.watch(*other[:3]) as two:
            run(*made)
            run(*other)
        for seen in (one, two):
            assert facts.OTHER_MODEL in seen.ledger.faults
            assert not voiding(seen)
            assert seen.mechanism().steps == 12

    def test_two_private_optimizers_of_one_model_void_it(self):
        model, _, loader, criterion = private()
        halves = list(model.parameters())[:2], list(model.parameters())[2:]
        first, second = (
            DPOptimizer(
                torch.optim.SGD(half, lr=0.1), noise_multiplier=NOISE, max_grad_norm=1.0, expected_batch_size=BATCH
            )
            for half in halves
        )
        with rt.watch(model, first, loader) as seen:
            for features, labels in loader:
                first.zero_grad()
                second.zero_grad()
                criterion(model(features), labels).backward()
                first.step()
                second.step()
        assert facts.OTHER_OPTIMISER in voiding(seen)


class TestExchanged:
    """The optimizer inside the private one moves the weights; the noise is the private one's."""

    @pytest.mark.parametrize("when", ["before the watch", "in it"])
    def test_another_optimizer_inside(self, when):
        made = private()
        seen = rt.watch(*made[:3])

        def exchange(step=3):
            if step == 3:
                made[1].original_optimizer = torch.optim.Adam(made[0].parameters(), lr=0.01)

        if when == "before the watch":
            exchange()
        with seen:
            run(*made, after=exchange if when == "in it" else None)
        assert not voiding(seen)
        assert seen.mechanism().steps == 12
        assert seen.ledger.environment.optimiser == ("DPOptimizer", "Adam")
        inner = made[1].original_optimizer
        assert not inner._optimizer_step_pre_hooks
        assert not inner._optimizer_step_post_hooks

    def test_what_the_new_one_does_is_looked_at(self):
        made = private()
        with rt.watch(*made[:3]) as seen:
            inner = made[1].original_optimizer = torch.optim.SGD(made[0].parameters(), lr=0.1)

            def write(*_):
                next(iter(made[0].parameters())).data.add_(0.5)

            inner.register_step_pre_hook(write)
            run(*made)
        assert facts.WEIGHTS_CHANGED in voiding(seen)

    def test_the_old_one_is_another_optimizer_from_then_on(self):
        made = private()
        old = made[1].original_optimizer
        with rt.watch(*made[:3]) as seen:
            made[1].original_optimizer = torch.optim.SGD(made[0].parameters(), lr=0.1)
            run(*made, after=lambda step: old.step() if step == 3 else None)
        assert facts.OTHER_OPTIMISER in voiding(seen)

    def test_a_copy_of_an_optimizer_or_a_model_is_another_one(self):
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        loader = DataLoader(records(), batch_size=BATCH)
        with rt.watch(model, optimizer, loader) as seen:
            for features, labels in loader:
                plain_step(model, features, labels, NOISE, 1.0)
                optimizer.step()
                seen.step(noise_multiplier=NOISE, max_grad_norm=1.0, batch_size=len(labels))
                twin = copy.deepcopy((model, optimizer))
                twin[0](features).sum().backward()
                twin[1].step()
        assert facts.OTHER_MODEL in seen.ledger.faults
        assert not voiding(seen)
        assert seen.mechanism().noise_multiplier == NOISE


class TestViews:
    """A record that is in a batch more than once moves the sum more than once."""

    def loop(self, views, poisson=True, mode="hooks", **options):
        model, optimizer, loader, criterion = private(poisson_sampling=poisson, mode=mode, **options)
        with rt.watch(model, optimizer, loader) as seen:
            for features, labels in loader:
                if len(labels):
                    optimizer.zero_grad()
                    criterion(model(features.repeat(views, 1)), labels.repeat(views)).backward()
                    optimizer.step()
        return seen

    @pytest.mark.parametrize("mode", ["hooks", "functorch", "ghost"])
    @pytest.mark.parametrize("poisson", [True, False])
    def test_several_views_of_a_record_are_no_batch_of_the_loader(self, poisson, mode):
        assert voiding(self.loop(2, poisson, mode)) == {facts.LARGER_BATCH}
        assert not voiding(self.loop(1, poisson, mode))

    def test_views_of_what_workers_loaded(self):
        loader = DataLoader(records(), batch_size=BATCH, shuffle=True, num_workers=1)
        assert facts.LARGER_BATCH in voiding(self.loop(5, False, loader=loader))

    def test_batches_that_a_step_adds_up_in_a_watch_that_is_entered_again(self):
        """Passes of entries before were taken for ones that were broken off, each of which drew some in vain."""
        model, loader = network(), DataLoader(records(), batch_size=BATCH, shuffle=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        seen = Watch(model, optimizer, loader, draws_ahead=True)
        for _ in range(3):
            with seen:
                for index, (features, labels) in enumerate(loader):
                    if index % 2:
                        plain_step(model, features, labels, NOISE, 1.0)
                        optimizer.step()
                        seen.step(noise_multiplier=NOISE)
        assert [segment.batches for segment in seen.ledger.segments] == [1, 2, 3] * 3

    def test_views_in_a_loop_of_ones_own(self):
        model, loader = network(), DataLoader(records(), batch_size=BATCH, shuffle=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with rt.watch(model, optimizer, loader) as seen:
            for features, labels in loader:
                plain_step(model, features.repeat(3, 1), labels.repeat(3), NOISE, 1.0)
                optimizer.step()
                seen.step(noise_multiplier=NOISE, batch_size=3 * len(labels))
        assert voiding(seen) == {facts.LARGER_BATCH}

    @pytest.mark.parametrize("stops", [1, 2])
    def test_small_batches_of_a_pass_that_was_broken_off(self, stops):
        """Found by the fuzzer: they go into the first step of the next pass, and were drawn in the one before."""
        model, optimizer, loader, criterion = private(
            DataLoader(records(), batch_size=RECORDS // 2), poisson_sampling=False
        )
        with rt.watch(model, optimizer, loader) as seen:
            for stop in (*[2] * stops, None):
                with BatchMemoryManager(data_loader=loader, max_physical_batch_size=16, optimizer=optimizer) as small:
                    for index, (features, labels) in enumerate(small):
                        if index == stop:
                            break
                        optimizer.zero_grad()
                        criterion(model(features), labels).backward()
                        optimizer.step()
        assert not voiding(seen)

    def test_a_part_of_a_batch_and_a_batch_once_more_hold_no_record_twice(self):
        model, optimizer, loader, criterion = private(poisson_sampling=False)
        with rt.watch(model, optimizer, loader) as seen:
            for features, labels in loader:
                for part in (slice(None), slice(None), slice(4)):
                    optimizer.zero_grad()
                    criterion(model(features[part]), labels[part]).backward()
                    optimizer.step()
        assert facts.OTHER_BATCHES in seen.ledger.faults
        assert not voiding(seen)
        assert seen.mechanism().sample_rate == 1.0


class TestReadInAnotherWay:
    """The loop reads ahead, or keeps batches: loops like these were void, as if they had taken views of records."""

    def loop(self, sizes, read, views=1):
        model, optimizer, _, criterion = private(poisson_sampling=False)
        loader = DataLoader(records(), batch_sampler=Sizes(sizes))
        with rt.watch(model, optimizer, loader) as seen:
            for features, labels in read(loader):
                optimizer.zero_grad()
                criterion(model(features.repeat(views, 1)), labels.repeat(views)).backward()
                optimizer.step()
        return seen

    @pytest.mark.parametrize("sizes", [(9, 9, 5, 7), (9, 5, 7, 9), (5, 6, 9, 3), (7, 7, 7, 7), (3, 12, 9, 4)])
    @pytest.mark.parametrize("read", [ahead, list, lambda loader: islice(cycle(loader), 10)])
    def test_no_loop_is_void_for_the_way_in_which_it_reads(self, sizes, read):
        assert not voiding(self.loop(sizes, read))

    def test_batches_that_are_read_ahead_are_told_apart(self):
        for read in (ahead, list):
            seen = self.loop((5, 6, 9, 3, 3, 8), read).ledger
            assert facts.OTHER_BATCHES not in seen.faults
            assert facts.LEFT_OUT not in seen.faults

    @pytest.mark.parametrize("read", [ahead, list])
    def test_views_of_batches_that_are_kept(self, read):
        """Before, a list held enough records for all views."""
        assert voiding(self.loop((10, 11, 13, 8), read, views=2)) == {facts.LARGER_BATCH}


FOLLOWING = {
    "always": lambda step, size: 2 * size,
    "a share of it": lambda step, size: (10 + size) / 2,
    "small batches": lambda step, size: min(size, 10),
    "each third step": lambda step, size: 10 if step % 3 else size,
}
OF_THE_PROGRAM = {
    "one": lambda step, size: 10,
    "two": lambda step, size: 10 if step < 6 else 20,
    "a schedule": lambda step, size: 5 + step,
    "once by chance": lambda step, size: 7 if step == 0 else 10,
}


class TestDivisors:
    """The number of records that were drawn is private, and the size of the noise tells what a sum was divided by."""

    @pytest.mark.parametrize("poisson", [True, False])
    def test_opacus_that_divides_by_the_realised_batch(self, poisson):
        model, optimizer, loader, criterion = private(
            DataLoader(records(), batch_size=BATCH, shuffle=True), poisson_sampling=poisson
        )
        with rt.watch(model, optimizer, loader) as seen:
            for features, labels in chain(loader, loader):  # all of one size, which tells nothing, once in 1e11 runs
                optimizer.expected_batch_size = max(1, len(labels))
                optimizer.zero_grad()
                criterion(model(features), labels).backward()
                optimizer.step()
        assert voiding(seen) == ({facts.PRIVATE_DIVISOR} if poisson else set())

    @pytest.mark.parametrize("name", [*FOLLOWING, *OF_THE_PROGRAM])
    def test_a_loop_of_ones_own(self, name):
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        wanted = {facts.PRIVATE_DIVISOR} if name in FOLLOWING else set()
        with rt.watch(model, optimizer, sampler="poisson") as seen:
            for step, size in enumerate((7, 12, 9, 8, 14, 10, 11, 7, 9, 13)):
                optimizer.step()
                divisor = (FOLLOWING | OF_THE_PROGRAM)[name](step, size)
                seen.step(noise_multiplier=NOISE, sample_rate=RATE, batch_size=size, divisor=divisor)
            assert (seen.risk().advantage == 1.0) == bool(wanted)
        assert voiding(seen) == wanted


def test_steps_are_written_down_before_anybody_asks():
    """Steps that are alike wait for each other; whoever looks sees them all, each with its own numbers."""
    made = private()
    noises, asked = [NOISE, NOISE, 1.5, NOISE, NOISE, NOISE, 2.0, 2.0, NOISE, NOISE, NOISE, NOISE], []
    with rt.watch(*made[:3]) as seen:
        made[1].noise_multiplier = noises[0]

        def after(step):
            if step in (2, 5):
                asked.append((seen.risk().steps, len(seen)))
            made[1].noise_multiplier = noises[min(step, 11)]

        run(*made, after=after)
    assert asked == [(2, 2), (5, 5)]
    assert [s.noise_multiplier for s in seen.ledger.segments for _ in range(s.steps)] == noises
    assert len(seen.ledger.diagnostics.batch_sizes) == 12
    assert seen.ledger.sampler.sample_rate == pytest.approx(RATE, rel=1e-12, abs=0)
    assert list(seen.ledger.contradictions()) == []
    assert sum(size or 0 for size in seen.ledger.diagnostics.batch_sizes) <= 2 * 2 * RECORDS

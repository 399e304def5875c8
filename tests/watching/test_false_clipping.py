"""Loops in which clipping, or what moves the weights after it, was not what it seemed; each was certified once."""

from __future__ import annotations

from itertools import chain, islice

import pytest
import torch
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import reticent as rt
from reticent import facts
from reticent.watching.optimisers import before_1_6
from tests.watching.loops import (
    BATCH,
    NOISE,
    RATE,
    RECORDS,
    faults,
    network,
    noises,
    private,
    records,
    run,
    trained,
    void,
)

pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook is firing", "ignore:Secure RNG turned off")


def ahead(loader):
    """Each batch after the next one was drawn."""
    batches = iter(loader)
    waits = next(batches)
    for batch in batches:
        yield waits
        waits = batch
    yield waits


class Sizes:
    """Batches of these sizes, in each pass of the next ones."""

    def __init__(self, passes):
        self.passes = passes

    def __len__(self):
        return 6

    def __iter__(self):
        return map(list, map(range, self.passes.pop(0)))


class TestFrozen:
    """Layers that are frozen on the way."""

    @pytest.mark.parametrize("mode", ["hooks", "ghost"])
    def test_a_layer_that_is_frozen_between_backward_pass_and_step_keeps_bare_gradients(self, mode):
        made = model, *_ = private(mode=mode)
        layer = model._module[0]
        seen = trained(made, before=lambda _: layer.requires_grad_(True), between=lambda _: layer.requires_grad_(False))
        assert faults(seen) == {facts.CHANGED_GRADIENTS}

    @pytest.mark.parametrize("mode", ["hooks", "functorch"])
    def test_a_layer_that_is_frozen_between_two_steps_is_nobodys_business(self, mode):
        made = model, *_ = private(mode=mode)
        seen = trained(made, before=lambda step: model._module[0].requires_grad_(step % 2 == 0))
        assert not void(seen)
        assert noises(seen) == [NOISE]


class TestMemory:
    """What the optimizer remembers moves the next step."""

    def made(self, kind=torch.optim.Adam, **options):
        model, optimizer, loader, criterion = private()
        optimizer.original_optimizer = kind(model.parameters(), lr=0.1, **options)
        return model, optimizer, loader, criterion

    def elsewhere(self):
        """The state of an optimizer that took one step on all records, without noise."""
        model, (features, labels) = network(), records().tensors
        optimizer = torch.optim.Adam(model.parameters())
        nn.functional.cross_entropy(model(features), labels).backward()
        optimizer.step()
        return optimizer.state_dict()

    def test_gradients_that_are_put_into_the_momentum(self):
        made = _, optimizer, *_ = self.made(torch.optim.SGD, momentum=0.9)

        def write(step):
            if step == 2:
                for state in optimizer.state.values():
                    state["momentum_buffer"].add_(1.0)

        assert faults(trained(made, after=write)) == {facts.WEIGHTS_CHANGED}
        assert not void(trained(self.made(torch.optim.SGD, momentum=0.9)))

    def test_a_state_of_another_training_that_is_loaded(self):
        made = _, optimizer, *_ = self.made()

        def load(step):
            if step == 2:
                optimizer.load_state_dict(self.elsewhere())

        assert faults(trained(made, after=load)) == {facts.WEIGHTS_CHANGED}

    def test_its_own_state_that_is_saved_and_loaded_is_the_same(self, tmp_path):
        made = _, optimizer, *_ = self.made()

        def load(_):
            torch.save(optimizer.state_dict(), tmp_path / "state.pt")
            optimizer.load_state_dict(torch.load(tmp_path / "state.pt"))

        assert not void(trained(made, after=load))

    def test_a_state_that_is_forgotten_holds_nothing(self):
        made = _, optimizer, *_ = self.made()
        assert not void(trained(made, after=lambda step: optimizer.state.clear() if step == 2 else None))

    @pytest.mark.parametrize("again", [True, False])
    def test_between_two_watches(self, again):
        made = model, optimizer, loader, _ = self.made()
        seen = trained(made)
        optimizer.load_state_dict(self.elsewhere())
        if again:
            with seen:
                for features, labels in loader:
                    optimizer.zero_grad()
                    made[3](model(features), labels).backward()
                    optimizer.step()
        else:
            seen = trained(made)
        assert faults(seen) == {facts.WEIGHTS_CHANGED}

    def test_an_optimizer_with_a_past_that_is_put_inside(self):
        made = model, optimizer, *_ = private()
        other = torch.optim.Adam(model.parameters(), lr=0.1)

        def exchange(step):
            if step == 2:
                other.load_state_dict(self.elsewhere())
                optimizer.original_optimizer = other

        assert facts.WEIGHTS_CHANGED in faults(trained(made, after=exchange))

    def test_an_optimizer_that_comes_back(self):
        made = model, optimizer, *_ = self.made()
        both = [optimizer.original_optimizer, torch.optim.Adam(model.parameters(), lr=0.1)]

        def exchange(step):
            optimizer.original_optimizer = both[step % 2]

        assert not void(trained(made, before=exchange))


class TestDraws:
    """Batches that were drawn at another rate than that of the step, or drawn and left out."""

    def test_a_rate_that_is_lowered_after_the_draw(self):
        made = _, _, loader, _ = private()
        sampler = loader.batch_sampler

        def rate(value):
            sampler.sample_rate = value

        seen = trained(made, before=lambda _: rate(0.01), after=lambda _: rate(RATE))
        assert [s.sample_rate or seen.ledger.sampler.sample_rate for s in seen.ledger.segments] == [RATE]

    def test_a_rate_that_is_lowered_while_workers_draw_ahead(self):
        made = _, _, loader, _ = private(DataLoader(records(), batch_size=BATCH, num_workers=2))

        def lower(_):
            loader.batch_sampler.sample_rate = 0.05

        segments = trained(made, after=lower).ledger.segments
        assert segments[0].steps > 1  # batches that lay there already
        assert sum(segment.steps for segment in segments) == len(loader)

    def test_batches_that_are_left_out(self):
        model, optimizer, loader, criterion = private()
        with rt.watch(model, optimizer, loader) as seen:
            for step, (features, labels) in enumerate(loader):
                if step != 2:  # as where a loss is not finite, or a batch is empty
                    optimizer.zero_grad()
                    criterion(model(features), labels).backward()
                    optimizer.step()
        assert faults(seen) == {facts.LEFT_OUT}
        assert facts.LEFT_OUT not in trained(private()).ledger.faults

    @pytest.mark.parametrize("poisson", [True, False])
    @pytest.mark.parametrize("leaves_out", [True, False])
    @pytest.mark.parametrize("waited", [True, False])
    def test_a_batch_that_is_left_out_before_one_that_waits(self, waited, leaves_out, poisson):
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

    @pytest.mark.parametrize("leaves_out", [True, False])
    def test_a_batch_that_is_left_out_among_those_that_a_step_adds_up(self, leaves_out):
        made = model, optimizer, loader, criterion = private()
        with rt.watch(*made[:3]) as seen:
            for index, (features, labels) in enumerate(chain(loader, loader)):
                if leaves_out and index % 3 == 1:
                    continue
                optimizer.signal_skip_step(do_skip=index % 3 < 2)
                criterion(model(features), labels).backward()
                optimizer.step()
                optimizer.zero_grad()
        assert (facts.LEFT_OUT in seen.ledger.faults) == leaves_out

    def test_empty_batches_that_are_left_out(self):
        """Rate 1/48, noise 1: the advantage is .0985; all 48 draws count .0715, the steps that were taken .052."""
        made = model, optimizer, loader, criterion = private(DataLoader(records(), batch_size=1, shuffle=True))
        with rt.watch(*made[:3]) as seen:
            for features, labels in loader:
                if len(labels):
                    optimizer.zero_grad()
                    criterion(model(features), labels).backward()
                    optimizer.step()
        assert faults(seen) == {facts.LEFT_OUT}

    @pytest.mark.parametrize("workers", [0, 1])
    def test_an_empty_batch_among_those_that_a_step_adds_up(self, workers):
        """Each record had two chances to be in the step, also where one of them drew nobody."""
        made = private(DataLoader(records(), batch_size=1, shuffle=True, num_workers=workers))
        model, optimizer, loader, criterion = made
        model.allow_grad_accumulation()
        with rt.watch(model, optimizer, loader) as seen:
            for step, (features, labels) in enumerate(loader):
                criterion(model(features), labels).backward()
                if step % 2:
                    optimizer.step()
                    optimizer.zero_grad()
        assert {segment.batches for segment in seen.ledger.segments} == {2}
        assert facts.LEFT_OUT not in seen.ledger.faults

    @pytest.mark.parametrize(
        "made_up",
        [pytest.param(True, marks=pytest.mark.skipif(before_1_6(), reason="Opacus 1.5 makes up no record")), False],
    )
    def test_a_made_up_record_for_an_empty_batch(self, made_up):
        """Who would be alone in the batch takes the place of the made-up one: up to twice the norm."""
        made = private(DataLoader(records(), batch_size=1, shuffle=True), rand_on_empty=made_up)
        assert faults(trained(made)) == ({facts.LARGER_BATCH} if made_up else set())

    @pytest.mark.parametrize("workers", [0, 1])
    def test_an_empty_batch_that_is_a_step_of_its_own(self, workers):
        made = _, optimizer, loader, _ = private(DataLoader(records(), batch_size=1, num_workers=workers))
        with BatchMemoryManager(data_loader=loader, max_physical_batch_size=1, optimizer=optimizer) as parts:
            seen = rt.watch(*made[:3])
            with seen:
                run(made[0], optimizer, parts, made[3], epochs=1)
        assert [(segment.batches, segment.steps) for segment in seen.ledger.segments] == [(1, RECORDS)]

    @pytest.mark.parametrize("drawn", ["everybody", "by chance", "shuffled"])
    def test_a_loop_that_reads_a_batch_ahead_leaves_nothing_out(self, drawn):
        """As a loader that accelerate made of the one that is watched; the first two batches may be equally large."""
        made = model, optimizer, loader, criterion = private(
            DataLoader(records(), batch_size=BATCH, shuffle=True), poisson_sampling=drawn != "shuffled"
        )
        if drawn == "everybody":
            loader.batch_sampler.sample_rate = 1.0
        with rt.watch(*made[:3]) as seen:
            for _ in range(2):
                for features, labels in ahead(loader):
                    optimizer.zero_grad()
                    criterion(model(features), labels).backward()
                    optimizer.step()
        assert not {facts.LEFT_OUT, facts.OTHER_BATCHES, facts.PUBLIC_DRAWS} & set(seen.ledger.faults)
        assert {segment.batches for segment in seen.ledger.segments} == {1}

    @pytest.mark.parametrize("left_out", [1, 3])
    def test_a_batch_that_is_left_out_among_equal_ones(self, left_out):
        model, optimizer, loader, criterion = private(
            DataLoader(records(), batch_size=BATCH, shuffle=True), poisson_sampling=False
        )
        with rt.watch(model, optimizer, loader) as seen:
            for step, (features, labels) in enumerate(loader):
                if step != left_out:
                    optimizer.zero_grad()
                    criterion(model(features), labels).backward()
                    optimizer.step()
        assert faults(seen) == {facts.LEFT_OUT}

    def test_a_step_that_a_scaler_skips_leaves_a_batch_out(self):
        model, optimizer, loader, criterion = private()
        scaler = torch.amp.GradScaler("cpu")
        with rt.watch(model, optimizer, loader) as seen:
            for step, (features, labels) in enumerate(loader):
                optimizer.zero_grad()
                scaler.scale(criterion(model(features), labels) * (torch.inf if step == 2 else 1.0)).backward()
                scaler.step(optimizer)
                scaler.update()
        assert faults(seen) == {facts.LEFT_OUT}

    @pytest.mark.parametrize(
        ("sizes", "broken_off"),
        [
            ([[8, 9], [6, 9, 9, 10]], lambda parts: (part for part, _ in zip(parts, range(2), strict=False))),
            ([[10], [3, 5, 10]], lambda parts: islice(parts, 2)),
        ],
    )
    def test_parts_of_a_pass_that_was_broken_off(self, sizes, broken_off):
        """Steps begin and end within batches: one that is as large as another batch leaves none out."""
        made = private(DataLoader(records(), batch_sampler=Sizes(sizes)), poisson_sampling=False)
        model, optimizer, loader, criterion = made
        with (
            rt.watch(*made[:3]) as seen,
            BatchMemoryManager(data_loader=loader, max_physical_batch_size=4, optimizer=optimizer) as parts,
        ):
            for features, labels in chain(broken_off(parts), parts):
                optimizer.zero_grad()
                criterion(model(features), labels).backward()
                optimizer.step()
        assert {facts.LEFT_OUT, facts.OTHER_BATCHES} & set(seen.ledger.faults) == {facts.OTHER_BATCHES}

    @pytest.mark.parametrize(
        ("stop", "left_out"), [(None, None), (5, None), (None, 0), (None, 1), (None, 4), (None, 17), (5, 1)]
    )
    def test_a_part_of_a_batch_that_is_left_out(self, stop, left_out):
        """The others are released with noise for one record, and one record may decide it of four."""
        made = model, optimizer, loader, criterion = private(
            DataLoader(records(), batch_size=BATCH), poisson_sampling=False
        )
        with (
            rt.watch(*made[:3]) as seen,
            BatchMemoryManager(data_loader=loader, max_physical_batch_size=8, optimizer=optimizer) as parts,
        ):
            for part, (features, labels) in enumerate(chain(islice(parts, stop), parts)):
                if part != left_out:
                    optimizer.zero_grad()
                    criterion(model(features), labels).backward()
                    optimizer.step()
        assert faults(seen) == (set() if left_out is None else {facts.LEFT_OUT})

    @pytest.mark.parametrize("left_out", [None, "a part", "a batch"])
    def test_parts_that_wait_for_the_next_watch(self, left_out):
        """The first watch has no step and no ledger; six records of its batch are as many as are left out later."""
        loader = DataLoader(records(), batch_sampler=Sizes([[12], [6, 13, 10]]))
        made = model, optimizer, loader, criterion = private(loader, poisson_sampling=False)

        def over(batches):
            for features, labels in batches:
                optimizer.zero_grad()
                criterion(model(features), labels).backward()
                optimizer.step()

        with (
            rt.watch(*made[:3]),
            BatchMemoryManager(data_loader=loader, max_physical_batch_size=3, optimizer=optimizer) as parts,
        ):
            over(islice(parts, 0, 3, 2) if left_out == "a part" else islice(parts, 2))
        optimizer._step_skip_queue.clear()
        with rt.watch(*made[:3]) as seen:
            over(islice(loader, left_out == "a batch", None))
        assert faults(seen) == (set() if left_out is None else {facts.LEFT_OUT})

    @pytest.mark.parametrize("stop", [1, None])
    def test_a_step_of_two_passes(self, stop):
        """What waits at the end of a pass, or where it is broken off, are whole batches."""
        made = model, optimizer, loader, criterion = private(DataLoader(records(), batch_size=BATCH * 2))
        with rt.watch(*made[:3]) as seen:
            for index, (features, labels) in enumerate(chain(islice(loader, stop), islice(loader, stop))):
                optimizer.zero_grad()
                criterion(model(features), labels).backward()
                optimizer.signal_skip_step(do_skip=index % 2 == 0)
                optimizer.step()
        assert [(s.batches, s.steps) for s in seen.ledger.segments if s.mixed_passes == 2] == [(2, 1)]
        assert not {facts.LEFT_OUT, facts.OTHER_BATCHES} & set(seen.ledger.faults)

    def test_a_pass_for_evaluation_leaves_nothing_out(self):
        made = model, _, loader, _ = private()

        def look(_):
            with torch.no_grad():
                for features, _ in loader:
                    model._module(features)

        assert facts.LEFT_OUT not in trained(made, after=look).ledger.faults


def test_a_gradient_that_is_no_number_gets_past_clipping():
    data = records()
    data.tensors[0][7] = torch.nan
    model, optimizer, loader, criterion = private(DataLoader(data, batch_size=BATCH), poisson_sampling=False)
    assert facts.NOT_FINITE in faults(trained((model, optimizer, loader, criterion)))


def test_records_that_are_taken_for_steps_of_a_sequence():
    """``batch_first=False`` where records come first: what is clipped is a moment of all records."""

    class Pointwise(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x):
            return self.head(torch.tanh(self.body(x))).sum(1)

    data = TensorDataset(torch.randn(60, 3, 4), torch.randint(0, 4, (60,)))
    made = private(DataLoader(data, batch_size=BATCH), model=Pointwise(), batch_first=False, poisson_sampling=False)
    assert facts.MIXES_RECORDS in faults(trained(made))
    made = private(DataLoader(data, batch_size=BATCH), model=Pointwise(), poisson_sampling=False)
    assert not void(trained(made))


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
@pytest.mark.parametrize("factor", [None, 10.0])
def test_a_sum_that_waits_for_other_parts_of_its_batch(mode, factor):
    """What was clipped before lies open until the last part comes, and was enlarged."""
    model, optimizer, loader, criterion = private(mode=mode)
    with (
        rt.watch(model, optimizer, loader) as seen,
        BatchMemoryManager(data_loader=loader, max_physical_batch_size=8, optimizer=optimizer) as small,
    ):
        for features, labels in small:
            optimizer.zero_grad()
            criterion(model(features), labels).backward()
            optimizer.step()
            for p in optimizer.params if factor and optimizer._is_last_step_skipped else ():
                p.summed_grad.mul_(factor)
    assert faults(seen) == ({facts.CHANGED_GRADIENTS} if factor else set())

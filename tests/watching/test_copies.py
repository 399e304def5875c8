"""Copies that a loop makes of what is watched, two watches at once, and sums that wait between two."""

from __future__ import annotations

import copy
import io
import pickle

import pytest
import torch
from torch.utils.data import DataLoader

import reticent as rt
from reticent import facts
from reticent.watching.detectors.record_gradients import takers_of
from tests.watching.loops import BATCH, faults, private, records, void

pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook is firing", "ignore:Secure RNG turned off")


def trained(made, loader=None, epochs=1):
    model, optimizer, own, loss = made
    for _ in range(epochs):
        for x, y in own if loader is None else loader:
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()


class TestLoaders:
    """Draws of a copy are not those of the loader that is watched."""

    @pytest.mark.parametrize("how", ["deepcopy", "of its class", "copied sampler"])
    def test_batches_of_a_copy_are_not_those_that_were_drawn(self, how):
        made = private()
        model, optimizer, loader, _ = made
        with rt.watch(model, optimizer, loader) as seen:
            own = loader.batch_sampler
            if how == "deepcopy":
                other = copy.deepcopy(loader)
                batches = other.batch_sampler
                batches.num_samples, batches.sample_rate = 24, 5 / 6
            else:
                sampler = (
                    copy.copy(own)
                    if how == "copied sampler"
                    else type(own)(num_samples=own.num_samples, sample_rate=0.9, generator=own.generator)
                )
                sampler.sample_rate = 0.9
                other = DataLoader(loader.dataset, batch_sampler=sampler, collate_fn=loader.collate_fn)
            trained(made, other)
        assert {part.sample_rate for part in seen.mechanism().parts} == {1.0}

    def test_a_sampler_can_be_kept_in_a_file(self):
        made = private()
        with rt.watch(*made[:3]) as seen:
            again = pickle.loads(pickle.dumps(made[2].batch_sampler))  # noqa: S301 (our own bytes)
            trained(made)
        assert type(again) is type(made[2].batch_sampler)
        assert not void(seen)


class TestTwoAtOnce:
    def test_loaders_with_generators_of_their_own_keep_their_amplification(self):
        made = []
        for _ in range(2):
            own = torch.Generator()
            own.seed()
            made.append(private(DataLoader(records(), batch_size=BATCH, shuffle=True, generator=own)))
        one, other = made
        torch.seed()
        with rt.watch(*one[:3]) as first, rt.watch(*other[:3]) as second:
            for loop in (one, other, one):
                trained(loop)
        for seen in (first, second):
            assert not faults(seen)
            assert facts.PUBLIC_DRAWS not in seen.ledger.faults
            assert max(part.sample_rate for part in seen.mechanism().parts) < 1.0


class TestGhost:
    def test_a_copy_of_the_model_clips_as_before(self):
        made = private(mode="ghost")
        model, optimizer, loader, _ = made
        with rt.watch(model, optimizer, loader):
            other = copy.deepcopy(model)
            trained(made)
        own, copied = takers_of(model), takers_of(other)
        assert copied
        for one in copied:
            for method in ("enable_hooks", "get_clipping_coef"):
                called = getattr(one, method)
                assert getattr(called, "args", [getattr(called, "__self__", None)])[0] is one
        assert not {id(one) for one in copied} & {id(one) for one in own}

    def test_a_model_can_be_kept_in_a_file(self):
        made = private(mode="ghost")
        with rt.watch(*made[:3]) as seen:
            torch.save(made[0], io.BytesIO())
            trained(made)
        assert not void(seen)


class TestSumsThatWait:
    """What waits when a watch ends is what the next one finds."""

    @staticmethod
    def part(made, scale=1.0):
        model, optimizer, loader, loss = made
        x, y = next(iter(loader))
        optimizer.zero_grad()
        loss(model(scale * x), y).backward()
        optimizer.signal_skip_step(do_skip=True)
        optimizer.step()

    def test_another_part_between_two_watches(self):
        made = private()
        with rt.watch(*made[:3]):
            trained(made)
            self.part(made)
        made[1].max_grad_norm = 100.0
        self.part(made, 1000.0)
        made[1].max_grad_norm = 1.0
        with rt.watch(*made[:3]) as seen:
            trained(made)
        assert void(seen)

    def test_a_sum_that_is_enlarged_between_two_watches(self):
        made = private()
        with rt.watch(*made[:3]):
            trained(made)
            self.part(made)
        for p in made[1].params:
            p.summed_grad = p.summed_grad * 1000.0
        with rt.watch(*made[:3]) as seen:
            trained(made)
        assert facts.CHANGED_GRADIENTS in seen.ledger.faults

    def test_a_part_that_waits_and_is_left_alone(self):
        made = private()
        with rt.watch(*made[:3]):
            trained(made)
            self.part(made)
        with rt.watch(*made[:3]) as seen:
            trained(made)
        assert facts.CHANGED_GRADIENTS not in seen.ledger.faults
        assert not faults(seen)

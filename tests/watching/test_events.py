"""What a watch puts in the place of a program's own objects: loops in which that once changed or hid something."""

from __future__ import annotations

import copy
import io

import pytest
import torch
from torch.utils.data import DataLoader, Sampler

import reticent as rt
from reticent.watching.detectors.record_gradients import takers_of
from tests.watching.loops import Loop, gradients_by_hand, passes, update_by_hand, void
from tests.watching.programs import BATCH, RECORDS, by_hand, private, records, run

pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook")


class Eager(Sampler):
    """Draws when it is asked for an iterator, not at the first batch."""

    def __iter__(self):
        order = torch.randperm(RECORDS).tolist()
        return iter([order[at : at + BATCH] for at in range(0, RECORDS, BATCH)])


class Own(Sampler):
    """Is its own iterator."""

    def __iter__(self):
        self.left = torch.randperm(RECORDS).tolist()
        return self

    def __next__(self):
        batch, self.left = self.left[:BATCH], self.left[BATCH:]
        if not batch:
            raise StopIteration
        return batch


@pytest.mark.parametrize("kind", [Eager, Own])
def test_samplers_of_the_program_draw_as_without_a_watch(kind):
    loader = lambda: DataLoader(records(), batch_sampler=kind())  # noqa: E731
    own = Loop(made=lambda: by_hand(loader=loader()), batches=passes(2))
    own.but(backward=gradients_by_hand, update=update_by_hand).check()


def test_a_copy_of_a_ghost_model_clips_as_before():
    made = private(mode="ghost")
    with rt.watch(*made[:3]):
        other = copy.deepcopy(made[0])
        run(*made, epochs=1)
    own, copied = takers_of(made[0]), takers_of(other)
    assert copied
    for one in copied:
        for method in ("enable_hooks", "get_clipping_coef"):
            called = getattr(one, method)
            assert getattr(called, "args", [getattr(called, "__self__", None)])[0] is one
    assert not {id(one) for one in copied} & {id(one) for one in own}


def test_a_ghost_model_can_be_kept_in_a_file():
    made = private(mode="ghost")
    with rt.watch(*made[:3]) as seen:
        torch.save(made[0], io.BytesIO())
        run(*made, epochs=1)
    assert not void(seen)

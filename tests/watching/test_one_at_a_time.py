"""A second watch of the same loop is refused before it looks at anything."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import reticent as rt
from reticent.kernel.errors import ParameterError
from tests.watching.loops import faults
from tests.watching.programs import NOISE, network, private, run

pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook")


def test_of_one_model_and_optimizer():
    made = private()
    with rt.watch(*made[:3]) as seen:
        with pytest.raises(ParameterError, match="another watches the model"):
            rt.watch(*made[:3]).__enter__()
        run(*made)
    assert not faults(seen)
    assert seen.mechanism().steps == 12


def test_of_one_optimizer_or_one_loader():
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


def test_a_watch_that_was_refused_is_in_nobodys_way():
    made, other = private(), private()
    with rt.watch(*made[:3]) as first:
        run(*made)
    with pytest.raises(ParameterError, match="ended at these weights"):
        rt.watch(*other[:3], continues=first).__enter__()
    with rt.watch(*other[:3]) as seen:
        run(*other)
    assert seen.mechanism().steps == 12


@pytest.mark.parametrize("name", ["evaluation", "no_records", "after_step"])
def test_what_is_said_within_the_block_is_refused_outside(name):
    made = private()
    seen = rt.watch(*made[:3])
    for when in ("before", "after"):
        with pytest.raises(ParameterError, match=f"{name} must be inside the with block"), getattr(seen, name)():
            pytest.fail(f"{when} the block")
        with seen:
            run(*made, epochs=1)

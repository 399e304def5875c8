"""Weights that lie where numpy cannot look: compared there, without waiting for the device."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import reticent as rt
from reticent import facts
from reticent.watching.detectors.weights import Weights
from tests.watching.loops import network, private, run


class Turned(nn.Module):
    """A linear layer whose weights do not lie in order, so that they are compared as those of a device are."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = nn.Linear(4, 2)
        self.inside.weight = nn.Parameter(torch.randn(4, 2).t())

    def forward(self, x):
        return self.inside(x)


def test_a_comparison_waits_for_nothing():
    """Tensors of the device meta have no values: whatever would wait for one raises."""
    weights = Weights(network().to("meta"))
    for _ in range(6):
        weights.keep()
        assert not weights.others()
    with pytest.raises((RuntimeError, NotImplementedError)):
        weights.apart_written()


@pytest.mark.parametrize("writes", [True, False])
def test_what_a_device_saw_is_said_in_the_end(writes):
    made = private(model=Turned())

    def after(count):
        if writes and count == 3:
            made[0]._module.inside.weight.data.add_(1.0)

    with rt.watch(*made[:3]) as seen:
        run(*made, epochs=2, after=after)
    assert (facts.WEIGHTS_CHANGED in seen.ledger.faults) == writes


def test_a_write_before_a_tensor_moved_is_kept():
    layer = Turned()
    weights = Weights(layer)
    layer.inside.weight.data.add_(1.0)
    weights.others()
    layer.inside.weight.data = torch.randn(4, 2).t()
    weights.keep()
    assert weights.apart_written()

"""Tensors that are not in plain order in memory: what Opacus does with them, and what the watch says."""

from functools import partial

import pytest
import torch
from opacus.grad_sample import GradSampleModule, GradSampleModuleFastGradientClipping
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from reticent import facts
from reticent.facts import Fact
from reticent.watching.detectors.layouts import look_at_layouts
from tests.watching.loops import Loop
from tests.watching.programs import private

RECORDS = 12
MANY = 48  # so many that no batch is empty: functorch cannot take one
pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook")


def plain(images):
    return images


def channels_last(images):
    return images.to(memory_format=torch.channels_last)


def records_last(images):
    return images.permute(1, 2, 3, 0).contiguous().permute(3, 0, 1, 2)


class Convolution(nn.Module):
    """One convolution whose input is put into another order in memory."""

    def __init__(self, order=plain, padding=0):
        super().__init__()
        self.order = order
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.convolution = nn.Conv2d(3, 4, 3, padding=padding)
            self.head = nn.Linear(4 * (4 + 2 * padding) ** 2, 2)

    def forward(self, images):
        return self.head(self.convolution(self.order(images)).flatten(1))


def images(records=RECORDS):
    return torch.randn(records, 3, 6, 6, generator=torch.Generator().manual_seed(1))


def gradients_of_records(order, batch):
    model = GradSampleModule(Convolution(order), loss_reduction="sum")
    nn.functional.cross_entropy(model(batch), torch.arange(len(batch)) % 2, reduction="sum").backward()
    return model._module.convolution.weight.grad_sample.flatten(1)


def norms_of_ghosts(order):
    model = GradSampleModuleFastGradientClipping(Convolution(order), loss_reduction="sum", max_grad_norm=1.0)
    nn.functional.cross_entropy(model(images()), torch.arange(RECORDS) % 2, reduction="sum").backward()
    return model.get_norm_sample()


def test_opacus_mixes_records_that_are_not_the_outermost_axis_in_memory():
    other = images()
    other[1] += 1.0
    moved = (gradients_of_records(records_last, other) - gradients_of_records(records_last, images())).norm(dim=1)
    assert torch.all(moved > 0.1)  # of every record, though record 1 alone is another one
    for order in (plain, channels_last):
        moved = (gradients_of_records(order, other) - gradients_of_records(order, images())).norm(dim=1)
        assert moved[1] > 0.1
        assert torch.count_nonzero(moved) == 1


def test_opacus_takes_wrong_norms_in_ghost_clipping_of_channels_last():
    assert torch.min(norms_of_ghosts(channels_last) / norms_of_ghosts(plain)) < 0.95


def made(order=plain, padding=0, mode="hooks", frozen=False):
    """Batches are so large that none is empty: functorch cannot take one."""
    data = DataLoader(TensorDataset(images(MANY), torch.arange(MANY) % 2), batch_size=16)
    model = Convolution(order, padding)
    model.convolution.requires_grad_(not frozen)
    return private(data, model=model, mode=mode)


INPUT, GRADIENTS = {facts.PERMUTED_INPUT}, {facts.PERMUTED_GRADIENTS}
LOOPS = {
    "plain": Loop(made=made),
    "channels last, padded": Loop(made=partial(made, channels_last, 1), notes=GRADIENTS, never=INPUT),
    "channels last, padded, ghost": Loop(
        made=partial(made, channels_last, 1, "ghost"), errors=INPUT, may={facts.UNCLIPPED}
    ),
    "channels last, functorch": Loop(made=partial(made, channels_last, 0, "functorch"), never=GRADIENTS),
    "channels last, frozen": Loop(made=partial(made, channels_last, frozen=True), never=GRADIENTS),
    "records last": Loop(made=partial(made, records_last), errors=INPUT),
}
LOOPS |= {
    f"expanded weights, {order.__name__}": Loop(made=partial(made, order, mode="ew"), never=GRADIENTS)
    for order in (plain, channels_last, records_last)
}


@pytest.mark.parametrize("name", LOOPS)
def test_layouts(name):
    """What is unsafe leaves no noise."""
    _, toy = LOOPS[name].check()
    assert not any(layer._forward_pre_hooks for layer in toy.model.modules() if isinstance(layer, nn.Conv2d))


def test_what_fsdp_makes_of_a_convolution_is_looked_at():
    class FSDPConv2d(nn.Conv2d):
        """Of the name that torch gives to a sharded convolution."""

    class Other(nn.Conv2d):
        """Opacus does not take it apart."""

    seen: list[Fact] = []
    for kind in (FSDPConv2d, Other):
        model = nn.Sequential(kind(3, 4, 3))
        look_at_layouts(model, ghost=True, found=seen.append)
        model(torch.randn(2, 3, 5, 5).to(memory_format=torch.channels_last))
    assert seen == [facts.PERMUTED_INPUT]

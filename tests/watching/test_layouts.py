"""Tensors that are not in plain order in memory: what Opacus does with them, and what the watch says."""

import warnings

import pytest
import torch
from opacus import PrivacyEngine
from opacus.grad_sample import GradSampleModule, GradSampleModuleFastGradientClipping
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import reticent as rt
from reticent import facts
from reticent.facts import Fact
from reticent.watching.detectors.layouts import look_at_layouts

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
        torch.manual_seed(0)
        self.order = order
        self.convolution = nn.Conv2d(3, 4, 3, padding=padding)
        self.head = nn.Linear(4 * (4 + 2 * padding) ** 2, 2)
        torch.seed()

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


def watched(model, mode):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, optimizer, *criterion, loader = PrivacyEngine().make_private(
            module=model,
            optimizer=torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1),
            data_loader=DataLoader(TensorDataset(images(MANY), torch.arange(MANY) % 2), batch_size=16),
            noise_multiplier=1.0,
            max_grad_norm=1.0,
            grad_sample_mode=mode,
            criterion=nn.CrossEntropyLoss(),
        )
        loss = criterion[0] if criterion else nn.CrossEntropyLoss()
        with rt.watch(model, optimizer, loader) as ledger:
            for batch, labels in loader:
                optimizer.zero_grad()
                loss(model(batch), labels).backward()
                optimizer.step()
    assert not any(layer._forward_pre_hooks for layer in model.modules() if isinstance(layer, nn.Conv2d))
    return ledger.ledger


@pytest.mark.parametrize(
    ("order", "mode", "padding", "fault"),
    [
        (plain, "hooks", 0, None),
        (channels_last, "hooks", 0, facts.PERMUTED_GRADIENTS),
        (channels_last, "hooks", 1, facts.PERMUTED_GRADIENTS),
        (channels_last, "ghost", 1, facts.PERMUTED_INPUT),
        (records_last, "hooks", 0, facts.PERMUTED_INPUT),
        (records_last, "hooks", 1, None),  # padding copies into plain order
        (channels_last, "functorch", 0, None),
    ],
)
def test_the_order_is_seen_and_what_is_unsafe_leaves_no_noise(order, mode, padding, fault):
    ledger = watched(Convolution(order, padding), mode)
    assert {facts.PERMUTED_INPUT, facts.PERMUTED_GRADIENTS} & set(ledger.faults) == ({fault} if fault else set())
    assert (ledger.mechanism().noise_multiplier == 0.0) == (fault is facts.PERMUTED_INPUT)


def test_a_frozen_convolution_does_no_harm():
    model = Convolution(channels_last)
    model.convolution.requires_grad_(requires_grad=False)
    assert not {facts.PERMUTED_INPUT, facts.PERMUTED_GRADIENTS} & set(watched(model, "hooks").faults)


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


@pytest.mark.filterwarnings("ignore:Secure RNG turned off")
@pytest.mark.parametrize("order", [plain, channels_last, records_last])
def test_expanded_weights_of_torch_are_read_in_any_order(order):
    """A watch broke each loop with a convolution here."""
    model = Convolution(order)
    data = DataLoader(TensorDataset(images(MANY), torch.arange(MANY) % 2), batch_size=12)
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=data,
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        grad_sample_mode="ew",
    )
    with rt.watch(model, optimizer, loader) as seen:
        for features, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(features), labels).backward()
            optimizer.step()
    assert not any(fault.voids for fault in seen.ledger.faults)

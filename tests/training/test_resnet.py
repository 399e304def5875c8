"""ResNet-9: its size, no mixing of records, and one private step on a CPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from reticent.kernel.errors import ParameterError
from reticent.training import train
from reticent.training.config_models import ResNet9Config
from reticent.training.models import build_model, check_private_model
from reticent.training.resnet import StandardisedConv2d
from tests.training.small import configured, records

SMALL = ResNet9Config(kind="resnet9", width=4, groups=2)


def test_the_size_for_cifar_10():
    model = build_model(ResNet9Config(kind="resnet9"), (3, 32, 32), 10, seed=0)
    filters = 9 * (3 * 64 + 64 * 128 + 2 * 128**2 + 128 * 256 + 3 * 256**2)
    norms = 2 * (64 + 3 * 128 + 4 * 256)
    assert sum(p.numel() for p in model.parameters()) == filters + norms + 256 * 10 + 10 == 2_440_266
    assert not any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in model.modules())
    assert not list(model.buffers())


@pytest.mark.parametrize("standardised", [False, True])
def test_one_record_does_not_see_another(standardised):
    config = SMALL.model_copy(update={"standardised": standardised})
    model, images = build_model(config, (3, 16, 16), 5, seed=0), torch.randn(6, 3, 16, 16)
    check_private_model(model, images)
    together, alone = model(images), torch.cat([model(image[None]) for image in images])
    assert together.shape == (6, 5)
    assert together.detach().numpy() == pytest.approx(alone.detach().numpy(), rel=1e-4, abs=1e-5)


def test_filters_are_used_with_mean_0_and_length_1():
    layer, images = StandardisedConv2d(3, 4, 3, padding=1, bias=False), torch.randn(2, 3, 8, 8)
    filters = layer.weight - layer.weight.mean(dim=(1, 2, 3), keepdim=True)
    filters = filters / filters.flatten(1).norm(dim=1)[:, None, None, None]
    expected = nn.functional.conv2d(images, filters, padding=1)
    assert layer(images).detach().numpy() == pytest.approx(expected.detach().numpy(), rel=1e-3, abs=1e-4)
    with torch.no_grad():
        layer.weight.mul_(7.0).add_(3.0)
    assert layer(images).detach().numpy() == pytest.approx(expected.detach().numpy(), rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("standardised", [False, True])
def test_one_private_step(standardised, tmp_path):
    mine = records(np.random.default_rng(3).normal(size=(12, 3, 16, 16)), classes=4)
    config = configured(
        data={"name": "own"},
        model={"kind": "resnet9", "width": 4, "groups": 2, "standardised": standardised},
        batch_size=None,
        sample_rate=1.0,
        steps=1,
        physical_batch_size=6,
        augmentation={"times": 2, "flips": True, "crop": 4},
    )
    run = train(config, tmp_path / "run", dataset=mine)
    assert run.ledger.diagnostics.batch_sizes == (9,)
    assert run.model()(torch.tensor(mine.features)).shape == (12, 4)


def test_what_does_not_fit_ends_in_one_line():
    with pytest.raises(ParameterError, match="images of 8 x 8"):
        build_model(SMALL, (20,), 2, seed=0)
    with pytest.raises(ValueError, match="groups must divide width"):
        ResNet9Config(kind="resnet9", width=10, groups=4)

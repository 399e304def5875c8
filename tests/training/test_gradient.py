"""The clipped sum that is released, against one backward pass per record."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from reticent.kernel.errors import UnsupportedError
from reticent.training import Settings
from reticent.training.config_models import ConvNetConfig, LogisticConfig, MlpConfig
from reticent.training.models import build_model
from tests.training.small import stepped

MODELS = {
    "logistic": (LogisticConfig(kind="logistic"), (5,)),
    "mlp-tanh": (MlpConfig(kind="mlp", widths=(7, 3)), (5,)),
    "mlp-relu": (MlpConfig(kind="mlp", widths=(7,), activation="relu"), (5,)),
    "convnet": (ConvNetConfig(kind="convnet", channels=(3, 4)), (2, 8, 8)),
}


def one_by_one(model: nn.Module, features: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Gradients (records, d) in float64, one record at a time."""
    model = model.double()
    rows = []
    for x, y in zip(features.double(), labels, strict=True):
        loss = nn.functional.cross_entropy(model(x[None]), y[None])
        rows.append(torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss, list(model.parameters()))]))
    model.float()
    return torch.stack(rows)


SETTINGS = Settings(0.0, 1.0, 0.6, 12.0, 3)


@pytest.mark.parametrize("physical", [1024, 4])
@pytest.mark.parametrize("name", MODELS)
def test_each_record_is_clipped_on_its_own(recorder, name, physical):
    config, shape = MODELS[name]
    generator = torch.Generator().manual_seed(2)
    features = 3 * torch.randn((20, *shape), generator=generator)
    labels = torch.randint(3, (20,), generator=generator)
    model = build_model(config, shape, 3, seed=4)
    exact = one_by_one(model, features, labels)
    norms = exact.norm(dim=1)
    clip = float(norms.sort().values[9:11].mean())  # between two norms: no rounding moves one across it
    record = stepped(
        model, replace(SETTINGS, max_grad_norm=clip, physical_batch_size=physical), features, labels, recorder
    )
    for step, update, size, clipped in zip(
        recorder.steps, recorder.updates, record.batch_sizes, record.clipped, strict=True
    ):
        chosen = torch.from_numpy(step.indices)
        factors = torch.clamp(clip / norms[chosen], max=1.0)
        expected = (factors[:, None] * exact[chosen]).sum(dim=0) / 12.0
        assert update.gradient.numpy() == pytest.approx(expected.numpy(), rel=2e-4, abs=1e-6)
        assert update.norms.numpy() == pytest.approx(norms[chosen].numpy(), rel=1e-4, abs=0)
        assert size == len(chosen) > 4
        assert clipped == int((norms[chosen] > clip).sum())
    assert 0 < sum(record.clipped) < sum(record.batch_sizes)


class Permuted(nn.Module):
    """Hands its convolution a tensor whose order in memory is not the plain one."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(2, 3, 3, stride=2, padding=1)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.layer(rows.permute(0, 3, 1, 2)).flatten(1)


@pytest.mark.parametrize("features_too", [False, True])
def test_the_order_in_memory_does_not_matter(recorder, features_too):
    generator = torch.Generator().manual_seed(2)
    features, labels = torch.randn((12, 8, 8, 2), generator=generator), torch.randint(3, (12,), generator=generator)
    if features_too:
        features = features.permute(3, 1, 2, 0).contiguous().permute(3, 1, 2, 0)
    model = Permuted()
    exact = one_by_one(model, features, labels)
    stepped(model, SETTINGS, features, labels, recorder)
    for step, update in zip(recorder.steps, recorder.updates, strict=True):
        chosen = exact[torch.from_numpy(step.indices)]
        expected = (chosen * (1.0 / chosen.norm(dim=1)).clamp(max=1.0)[:, None]).sum(dim=0) / 12.0
        assert update.gradient.numpy() == pytest.approx(expected.numpy(), rel=2e-4, abs=1e-6)
    assert not model.layer._forward_pre_hooks


def test_one_record_moves_the_sum_by_at_most_the_clip_norm(recorder):
    """A record with an enormous gradient, alone in the data."""
    model = build_model(MlpConfig(kind="mlp", widths=(7,)), (5,), 3, seed=4)
    stepped(model, replace(SETTINGS, max_grad_norm=0.25), torch.full((1, 5), 1e4), torch.tensor([1]), recorder)
    norms = [
        float(u.gradient.norm()) * 12.0 for u, s in zip(recorder.updates, recorder.steps, strict=True) if len(s.indices)
    ]
    assert norms
    assert max(norms) <= 0.25 * (1 + 1e-6)


class Centred(nn.Module):
    """Mixes records without a buffer or a known type."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x - x.mean(dim=0)


class Counting(nn.Module):
    """A trainable layer that keeps a statistic of the records in a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(5, 2)
        self.scale = nn.Parameter(torch.ones(2))
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.scale * self.linear(x)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)), "BatchNorm"),
        (nn.Sequential(nn.Linear(5, 4), Centred(), nn.Linear(4, 2)), "depends on the others"),
        (Counting(), "buffers"),
        (nn.Linear(5, 2).requires_grad_(False), "no trainable parameters"),
    ],
    ids=["batch-norm", "centred", "buffer", "frozen"],
)
def test_models_without_gradients_per_record_are_refused(training, model, message):
    before = [p.clone() for p in model.parameters()]
    with pytest.raises(UnsupportedError, match=message):
        stepped(model, SETTINGS, *training, rate=0.1)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


def test_the_model_is_left_plain(training):
    model = nn.Linear(5, 2)
    for _ in range(2):
        stepped(model, SETTINGS, *training, rate=0.1)
        assert all(p.grad is None and not hasattr(p, "grad_sample") for p in model.parameters())
    assert np.isfinite(model.weight.detach().numpy()).all()


def test_building_a_model_leaves_the_global_random_state_alone():
    before = torch.get_rng_state()
    first = build_model(MlpConfig(kind="mlp", widths=(3,)), (5,), 2, seed=1)
    assert torch.equal(before, torch.get_rng_state())
    again = build_model(MlpConfig(kind="mlp", widths=(3,)), (5,), 2, seed=1)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True))

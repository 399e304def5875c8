"""The loop: what it adds up for each record, the noise on it, and the release against the claimed curve of one step."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn
from torch.overrides import TorchFunctionMode

from reticent.kernel.errors import UnsupportedError
from reticent.training import Settings
from reticent.training.config_models import ConvNetConfig, LogisticConfig, MlpConfig
from reticent.training.models import build_model
from reticent.training.optimiser import PrivateOptimizer
from reticent.training.randomness import KeyedSource, SeededSource, Stream, SystemSource
from tests.sensitivity.cases import gradients_of
from tests.training.small import Recorder, stepped

MODELS = {
    "logistic": (LogisticConfig(kind="logistic"), (5,)),
    "mlp-tanh": (MlpConfig(kind="mlp", widths=(7, 3)), (5,)),
    "mlp-relu": (MlpConfig(kind="mlp", widths=(7,), activation="relu"), (5,)),
    "convnet": (ConvNetConfig(kind="convnet", channels=(3, 4)), (2, 8, 8)),
}


def summed(rows: torch.Tensor, clip: float) -> np.ndarray:
    """The clipped rows, added up and divided."""
    return ((clip / rows.norm(dim=1)).clamp(max=1.0)[:, None] * rows).sum(dim=0).numpy() / 12.0


SETTINGS = Settings(0.0, 1.0, 0.6, 12.0, 3)


@pytest.mark.parametrize("physical", [1024, 4])
@pytest.mark.parametrize("name", MODELS)
def test_each_record_is_clipped_on_its_own(recorder, name, physical):
    config, shape = MODELS[name]
    generator = torch.Generator().manual_seed(2)
    features = 3 * torch.randn((20, *shape), generator=generator)
    labels = torch.randint(3, (20,), generator=generator)
    model = build_model(config, shape, 3, seed=4)
    exact = gradients_of(deepcopy(model).double(), features.double(), labels)
    norms = exact.norm(dim=1)
    clip = float(norms.sort().values[9:11].mean())  # between two norms: no rounding moves one across it
    record = stepped(
        model, replace(SETTINGS, max_grad_norm=clip, physical_batch_size=physical), features, labels, recorder
    )
    for step, update, size, clipped in zip(
        recorder.steps, recorder.updates, record.batch_sizes, record.clipped, strict=True
    ):
        chosen = torch.from_numpy(step.indices)
        assert update.gradient.numpy() == pytest.approx(summed(exact[chosen], clip), rel=2e-4, abs=1e-6)
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
    exact = gradients_of(deepcopy(model).double(), features.double(), labels)
    stepped(model, SETTINGS, features, labels, recorder)
    for step, update in zip(recorder.steps, recorder.updates, strict=True):
        expected = summed(exact[torch.from_numpy(step.indices)], 1.0)
        assert update.gradient.numpy() == pytest.approx(expected, rel=2e-4, abs=1e-6)
    assert not model.layer._forward_pre_hooks


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


SIGMA, CLIP, DIVISOR = 1.7, 0.3, 5.0


def released_noise(source, steps: int) -> np.ndarray:
    """(steps, 10) released updates of zero gradients: a 3 x 2 matrix, a vector of 3, a scalar."""
    parameters = [torch.nn.Parameter(torch.zeros(shape)) for shape in ((3, 2), (3,), (1,))]
    optimizer = PrivateOptimizer(
        torch.optim.SGD(parameters, lr=1.0),
        noise_multiplier=SIGMA,
        max_grad_norm=CLIP,
        divisor=DIVISOR,
        source=source,
    )
    rows = []
    for _ in range(steps):
        optimizer.zero_grad()
        for p in parameters:
            p.grad_sample = torch.zeros((4, *p.shape))
        optimizer.step()
        rows.append(torch.cat([p.grad.reshape(-1) for p in parameters]).numpy().copy())
    return np.array(rows)


@pytest.mark.parametrize(
    ("source", "number"), [(SeededSource(1, Stream.NOISE), 400), (SystemSource(), 300)], ids=["seeded", "system"]
)
def test_every_coordinate_gets_its_own_noise_of_the_right_size(source, number):
    noise = released_noise(source, number) / (SIGMA * CLIP / DIVISOR)
    steps, d = noise.shape
    assert d == 10
    # Six standard errors: variance of a sample variance is 2/n, of a sample covariance 1/n.
    covariance = noise.T @ noise / steps
    assert np.abs(np.diag(covariance) - 1).max() < 6 * np.sqrt(2 / steps)
    assert np.abs(covariance - np.diag(np.diag(covariance))).max() < 6 / np.sqrt(steps)
    assert np.abs(noise.mean(axis=0)).max() < 6 / np.sqrt(steps)
    # Independent over steps: neither repeated nor delayed.
    for lag in (1, 2):
        assert np.abs(noise[lag:].T @ noise[:-lag] / (steps - lag)).max() < 6 / np.sqrt(steps - lag)
    assert stats.kstest(noise.ravel(), "norm").pvalue > 1e-9


class Readings(TorchFunctionMode):
    """Counts what would wait for a device: values that are read, and tensors that are copied to the processor."""

    found = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        reads = {"cpu", "equal", "item", "nonzero", "numpy", "tolist", "__bool__", "__float__", "__index__", "__int__"}
        self.found += getattr(function, "__name__", "") in reads
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", MODELS)
def test_a_step_reads_once_from_its_device(name):
    """However many parameters there are, and however many pieces."""
    config, shape = MODELS[name]
    features, labels = torch.randn((40, *shape)), torch.randint(3, (40,))
    found = []
    for steps in (2, 7):
        model = build_model(config, shape, 3, seed=4)
        with Readings() as readings:
            stepped(model, Settings(1.0, 1.0, 0.6, 12.0, steps, physical_batch_size=4), features, labels)
        found.append(readings.found)
    assert found[1] - found[0] == 5


@pytest.mark.parametrize("source", [SystemSource(), SeededSource(1, Stream.SAMPLING)], ids=["system", "seeded"])
def test_uniform_draws(source):
    draws = source.uniform(50_000)
    assert draws.min() > 0.0
    assert draws.max() < 1.0
    assert stats.kstest(draws, "uniform").pvalue > 1e-9
    assert not np.array_equal(source.uniform(10), source.uniform(10))


def test_streams_of_one_seed_differ_and_repeat():
    sampling, noise = SeededSource(5, Stream.SAMPLING), SeededSource(5, Stream.NOISE)
    first = sampling.uniform(100)
    assert not np.array_equal(first, noise.uniform(100))
    assert np.array_equal(first, SeededSource(5, Stream.SAMPLING).uniform(100))
    assert not np.array_equal(first, SeededSource(5 + 2**32, Stream.SAMPLING).uniform(100))


def test_noise_of_seeds_repeats_and_its_draws_differ():
    source, again, other = KeyedSource([3, 4]), KeyedSource([3, 4]), KeyedSource([3, 5])
    first = source.normal(1000)
    assert torch.equal(first, again.normal(1000))
    assert len(torch.cat([first, source.normal(1000), other.normal(1000)]).double().unique()) > 2990


@pytest.mark.parametrize("physical", [1024, 2])
def test_an_empty_batch_still_releases_noise(training, recorder, physical):
    settings = Settings(1.0, 1.0, 1e-9, 2.0, 150, physical_batch_size=physical)
    record = stepped(torch.nn.Linear(5, 2), settings, *training, recorder, rate=0.1)
    assert record.steps == 150
    assert set(record.batch_sizes) == {0}
    updates = torch.stack([u.gradient for u in recorder.updates]).numpy()
    assert updates.std() == pytest.approx(0.5, rel=6 / np.sqrt(2 * updates.size), abs=0)
    assert len(np.unique(updates)) == updates.size


def test_noise_is_added_once_however_the_batch_passes(training):
    """Same seed, whole batch at once or in pieces of 7: the updates agree up to rounding."""
    updates = []
    for physical in (1024, 7):
        recorder, model = Recorder(), build_model(LogisticConfig(kind="logistic"), (5,), 2, seed=1)
        stepped(model, Settings(3.0, 1.0, 0.9, 1.0, 5, physical_batch_size=physical), *training, recorder, rate=0.1)
        updates.append(torch.stack([u.gradient for u in recorder.updates]).numpy())
    assert updates[1] == pytest.approx(updates[0], rel=1e-4, abs=1e-4)

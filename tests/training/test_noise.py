"""The noise that really reaches the weights: zero gradients in, covariance out."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from reticent.training import Settings
from reticent.training.config_models import LogisticConfig
from reticent.training.models import build_model
from reticent.training.optimiser import PrivateOptimizer
from reticent.training.randomness import SeededSource, Stream, SystemSource
from tests.training.small import Recorder, stepped

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


def test_uniform_draws_of_the_operating_system():
    draws = SystemSource().uniform(50_000)
    assert draws.min() > 0.0
    assert draws.max() < 1.0
    assert stats.kstest(draws, "uniform").pvalue > 1e-9
    assert not np.array_equal(SystemSource().uniform(10), SystemSource().uniform(10))


def test_streams_of_one_seed_differ_and_repeat():
    sampling, noise = SeededSource(5, Stream.SAMPLING), SeededSource(5, Stream.NOISE)
    first = sampling.uniform(100)
    assert not np.array_equal(first, noise.uniform(100))
    assert np.array_equal(first, SeededSource(5, Stream.SAMPLING).uniform(100))
    assert not np.array_equal(first, SeededSource(5 + 2**32, Stream.SAMPLING).uniform(100))


def test_why_noise_does_not_come_from_a_torch_generator():
    """torch keeps 32 bits of a seed on the CPU, which can be searched."""
    one, other = torch.Generator().manual_seed(5), torch.Generator().manual_seed(5 + 2**32)
    assert torch.equal(torch.randn(8, generator=one), torch.randn(8, generator=other))


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

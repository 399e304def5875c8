"""A small data set and a small configuration that train in well under a second."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch

from reticent.data import Dataset
from tests.cli.calling import run
from tests.training.small import BASE, Recorder, configured

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def dataset() -> Dataset:
    rng = np.random.default_rng(11)
    features = rng.normal(size=(80, 5)).astype(np.float32)
    labels = (features @ np.array([1.0, -2.0, 0.5, 0.0, 1.0]) > 0).astype(np.int64)
    return Dataset("small", "test", features, labels, 2, train=np.arange(60), test=np.arange(60, 80))


@pytest.fixture
def training(dataset) -> tuple[torch.Tensor, torch.Tensor]:
    """The training records of the small data set."""
    return torch.from_numpy(dataset.features[:60].copy()), torch.from_numpy(dataset.labels[:60].copy())


@pytest.fixture(scope="session")
def make_config():
    more = {"model": {"kind": "mlp", "widths": [4]}, "noise_multiplier": 1.0, "steps": 15}
    return partial(configured, BASE | more | {"seed": 3, "randomness": "reproducible"})


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def command(capsys):
    """Exit code and words of a command."""

    def called(*words: object) -> tuple[int, str]:
        code, out, err = run(capsys, *words)
        return code, out + err

    return called

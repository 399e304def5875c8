"""A small data set and a small configuration that train in well under a second."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from reticent.data import Dataset
from reticent.training import RunContext, Settings, TrainConfig, parse_config

torch.set_num_threads(1)
SETTINGS = Settings(noise_multiplier=1.0, max_grad_norm=1.0, sample_rate=0.2, divisor=12.0, steps=1)


@pytest.fixture
def dataset() -> Dataset:
    rng = np.random.default_rng(11)
    features = rng.normal(size=(80, 5)).astype(np.float32)
    labels = (features @ np.array([1.0, -2.0, 0.5, 0.0, 1.0]) > 0).astype(np.int64)
    return Dataset("small", "test", features, labels, 2, train=np.arange(60), test=np.arange(60, 80))


@pytest.fixture
def make_config():
    def make(**changes: Any) -> TrainConfig:
        document = {
            "data": {"name": "breast-cancer"},
            "model": {"kind": "mlp", "widths": [4]},
            "noise_multiplier": 1.0,
            "batch_size": 12,
            "steps": 15,
            "learning_rate": 0.1,
            "seed": 3,
            "randomness": "reproducible",
        } | changes
        return parse_config({key: value for key, value in document.items() if value is not None})

    return make


@pytest.fixture
def make_context(dataset):
    def make(model: torch.nn.Module, settings: Settings = SETTINGS, **changes: Any) -> RunContext:
        fields = {
            "settings": settings,
            "model": model,
            "train_features": torch.from_numpy(dataset.features[dataset.train].copy()),
            "train_labels": torch.from_numpy(dataset.labels[dataset.train].copy()),
        } | changes
        return RunContext(**fields)

    return make


class Recorder:
    """A hook that keeps everything it is shown."""

    def __init__(self) -> None:
        self.steps: list = []
        self.updates: list = []
        self.finished = False

    def start(self, context: RunContext) -> None:
        self.context = context

    def before_step(self, step) -> None:
        self.steps.append(step)

    def after_step(self, step, update) -> None:
        self.updates.append(update)

    def finish(self) -> None:
        self.finished = True


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()

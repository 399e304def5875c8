"""A few records, and runs on them that take no time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from reticent.data import Dataset
from reticent.training import RunContext, Settings, TrainConfig, fit, parse_config
from reticent.training.hooks import StepHook
from reticent.training.loop import FitRecord
from reticent.training.randomness import SeededSource, Stream

BASE: dict[str, Any] = {
    "data": {"name": "breast-cancer"},
    "model": {"kind": "logistic"},
    "noise_multiplier": 2.0,
    "batch_size": 12,
    "steps": 3,
    "learning_rate": 0.1,
}


def configured(base: dict[str, Any] = BASE, **changes: Any) -> TrainConfig:
    """``base`` with some settings changed; None leaves one out."""
    return parse_config({key: value for key, value in (base | changes).items() if value is not None})


def records(rows: np.ndarray, classes: int = 2, train: int | None = None) -> Dataset:
    """Labels in turn, and the last fourth for tests."""
    count = len(rows)
    last = 3 * count // 4 if train is None else train
    labels = np.arange(count) % classes
    return Dataset("own", "test", rows.astype(np.float32), labels, classes, np.arange(last), np.arange(last, count))


def stepped(
    model: torch.nn.Module,
    settings: Settings,
    features: torch.Tensor,
    labels: torch.Tensor,
    *hooks: StepHook,
    rate: float = 0.0,
    seed: int = 1,
) -> FitRecord:
    """The loop with batches and noise that can be drawn again."""
    sources = SeededSource(seed, Stream.SAMPLING), SeededSource(seed, Stream.NOISE)
    context = RunContext(settings, model, features, labels)
    return fit(context, lambda p: torch.optim.SGD(p, lr=rate), *sources, hooks=hooks)


def flat(parameters: Any) -> np.ndarray:
    """All weights in a row."""
    return torch.cat([p.detach().reshape(-1) for p in parameters]).numpy()


class Recorder(StepHook):
    """A hook that keeps everything it is shown."""

    def __init__(self) -> None:
        self.steps: list = []
        self.updates: list = []
        self.finished = False

    def before_step(self, step) -> None:
        self.steps.append(step)

    def after_step(self, step, update) -> None:
        self.updates.append(update)

    def finish(self) -> None:
        self.finished = True


def reseal(run: Path) -> None:
    """What a forger without a key can do: every checksum is that of the file again."""
    manifest = json.loads((run / "manifest.json").read_text())
    for name in manifest["files"]:
        content = (run / name).read_bytes()
        manifest["files"][name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (run / "manifest.json").write_text(json.dumps(manifest))


def edit_json(path: Path, change: Callable[[Any], object]) -> None:
    """Change a document in its file."""
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))

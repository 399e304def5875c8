"""What ``rt.watch`` costs: CPU seconds of one training step of Opacus with and without it.

    python -m benchmarks.watch [--rounds 12] [--steps 25]

Rounds with and without alternate, and the median of each is compared, because a busy machine drifts.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
import warnings

import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import reticent as rt

_MODELS = {
    "mlp 256-256-10, batch 128, hooks": ("mlp", "hooks"),
    "mlp 256-256-10, batch 128, ghost": ("mlp", "ghost"),
    "convnet 16-32, batch 128, hooks": ("convnet", "hooks"),
}


def _parts(kind: str, mode: str) -> tuple:
    torch.manual_seed(0)
    shape = (64,) if kind == "mlp" else (1, 16, 16)
    if kind == "mlp":
        model = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 10))
    else:
        layers = nn.Conv2d(1, 16, 3, 2), nn.Tanh(), nn.Conv2d(16, 32, 3, 2), nn.Tanh(), nn.Flatten()
        model = nn.Sequential(*layers, nn.Linear(32 * 9, 10))
    data = TensorDataset(torch.randn(3200, *shape), torch.randint(10, (3200,)))
    made = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.05),
        data_loader=DataLoader(data, batch_size=128),
        criterion=nn.CrossEntropyLoss(),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        grad_sample_mode=mode,
    )
    model, optimizer, *criterion, loader = made
    return model, optimizer, loader, criterion[0] if criterion else nn.CrossEntropyLoss()


def _seconds(parts: tuple, look: bool, steps: int) -> float:
    """CPU seconds of one epoch's steps; entering and leaving the watch is not counted, it happens once."""
    model, optimizer, loader, criterion = parts
    with rt.watch(model, optimizer, loader) if look else contextlib.nullcontext():
        started = time.process_time()
        for _, (features, labels) in zip(range(steps), loader, strict=False):
            optimizer.zero_grad()
            criterion(model(features), labels).backward()
            optimizer.step()
        return time.process_time() - started


def main() -> None:
    """Print one line for each model."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--steps", type=int, default=25)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for name, (kind, mode) in _MODELS.items():
        parts = _parts(kind, mode)
        _seconds(parts, False, 5)
        pairs = [[_seconds(parts, look, options.steps) for look in (False, True)] for _ in range(options.rounds)]
        plain, watched = (statistics.median(column) / options.steps for column in zip(*pairs, strict=True))
        print(f"{name}: {1e3 * plain:.3f} ms a step, watched {1e3 * watched:.3f} ms: {watched / plain - 1:+.1%}")


if __name__ == "__main__":
    main()

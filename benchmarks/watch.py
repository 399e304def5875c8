"""What ``rt.watch`` costs: CPU seconds of one training step of Opacus with and without it.

    python -m benchmarks.watch [--rounds 24] [--steps 25]

Rounds with and without alternate, in turns who is first, and the median of the ratios of neighbours is printed with its
95 % interval, because a busy machine drifts. Entering and leaving happen once and are not counted. Beside it stands the
share of CPU time inside the calls of the watch itself, which a busy machine disturbs far less.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import reticent as rt
from reticent.watch.draws import Draws
from reticent.watch.session import Watch

_CALLS: dict[type, tuple[str, ...]] = {
    Watch: ("_on_clip", "_on_noise", "_before_step", "_after_step"),
    Draws: ("_begin", "_remember"),
}
"""What runs while the loop runs."""

_MODELS = {
    "mlp 256-256-10, batch 128, hooks": ("mlp", "hooks"),
    "mlp 256-256-10, batch 128, ghost": ("mlp", "ghost"),
    "mlp 256-256-10, batch 128, functorch": ("mlp", "functorch"),
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
    data = TensorDataset(torch.randn(8192, *shape), torch.randint(10, (8192,)))
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
        started = time.process_time()  # CPU seconds: others may be at work on this machine
        for _, (features, labels) in zip(range(steps), loader, strict=False):
            optimizer.zero_grad()
            criterion(model(features), labels).backward()
            optimizer.step()
        return time.process_time() - started


def _inside(parts: tuple, steps: int) -> float:
    """Share of the CPU time of ``steps`` steps that passes inside the calls of the watch."""
    spent = 0.0

    def timed(own: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal spent
            started = time.process_time()
            try:
                return own(*args, **kwargs)
            finally:
                spent += time.process_time() - started

        return call

    kept = {(owner, name): getattr(owner, name) for owner, names in _CALLS.items() for name in names}
    for (owner, name), own in kept.items():
        setattr(owner, name, timed(own))
    try:
        whole = _seconds(parts, True, steps)
        return spent / whole
    finally:
        for (owner, name), own in kept.items():
            setattr(owner, name, own)


def main() -> None:
    """Print one line for each model."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=24)
    parser.add_argument("--steps", type=int, default=25)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for name, (kind, mode) in _MODELS.items():
        parts = _parts(kind, mode)
        _seconds(parts, False, 5)
        plain, ratios = [], []
        for turn in range(options.rounds):
            order = (False, True) if turn % 2 else (True, False)
            found = {look: _seconds(parts, look, options.steps) for look in order}
            plain.append(found[False] / options.steps)
            ratios.append(found[True] / found[False] - 1.0)
        low, middle, high = _interval(ratios)
        step = 1e3 * statistics.median(plain)
        inside = _inside(parts, 64)
        added = f"watching adds {middle:+.1%} ({low:+.1%} to {high:+.1%}), {inside:.2%} inside its own calls"
        print(f"{name}: {step:.3f} ms a step, {added}", flush=True)


def _interval(values: list[float]) -> tuple[float, float, float]:
    """Median and its interval at 95 %: order statistics, whatever the law."""
    ordered, n = sorted(values), len(values)
    rank = max(0, math.floor(0.5 * n - 0.98 * math.sqrt(n)))
    return ordered[rank], statistics.median(ordered), ordered[n - 1 - rank]


if __name__ == "__main__":
    main()

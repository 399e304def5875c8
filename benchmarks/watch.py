"""What ``rt.watch`` costs, in CPU seconds of training steps of Opacus: ``python -m benchmarks.watch``.

CPU time inside the calls of the watch during 64 steps, over the CPU time of the same steps without those calls: a busy
machine slows both alike. (Rounds with and without a watch, one after the other, spread by 14 % there.) Entering and
leaving happen once and are not counted, nor are the few function calls that lead into the watch.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import reticent as rt
from benchmarks._rows import Row, main, spread
from reticent.watch.draws import Draws
from reticent.watch.session import Watch

GOAL, STEPS, REPEATS, BATCH = 0.03, 64, 5, 128
"""Share of a step that watching may cost; steps of one look (one of them has its clipped records counted)."""

CALLS: dict[type, tuple[str, ...]] = {
    Watch: ("_on_clip", "_on_noise", "_before_step", "_after_step"),
    Draws: ("_begin", "_remember"),
}
"""What runs while the loop runs."""

MODES = ("hooks", "functorch", "ghost")


def parts(kind: str, mode: str) -> tuple[Any, Any, Any, Any]:
    """(model, optimizer, loader, criterion) of Opacus; one pass over the loader is ``STEPS`` steps."""
    torch.manual_seed(0)
    shape = (64,) if kind == "mlp" else (1, 16, 16)
    if kind == "mlp":
        model = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 10))
    else:
        layers = nn.Conv2d(1, 16, 3, 2), nn.Tanh(), nn.Conv2d(16, 32, 3, 2), nn.Tanh(), nn.Flatten()
        model = nn.Sequential(*layers, nn.Linear(32 * 9, 10))
    data = TensorDataset(torch.randn(STEPS * BATCH, *shape), torch.randint(10, (STEPS * BATCH,)))
    made = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.05),
        data_loader=DataLoader(data, batch_size=BATCH),
        criterion=nn.CrossEntropyLoss(),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        grad_sample_mode=mode,
    )
    model, optimizer, *criterion, loader = made
    return model, optimizer, loader, criterion[0] if criterion else nn.CrossEntropyLoss()


def seconds(made: tuple[Any, Any, Any, Any], look: bool) -> float:
    """CPU seconds of ``STEPS`` steps; entering and leaving the watch is not counted."""
    model, optimizer, loader, criterion = made
    with rt.watch(model, optimizer, loader) if look else contextlib.nullcontext():
        started = time.process_time()
        for features, labels in loader:
            optimizer.zero_grad()
            criterion(model(features), labels).backward()
            optimizer.step()
        return time.process_time() - started


def share(made: tuple[Any, Any, Any, Any]) -> tuple[float, float]:
    """CPU time inside the calls of the watch, over that of the steps without them; and CPU seconds of one step."""
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

    kept = {(owner, name): getattr(owner, name) for owner, names in CALLS.items() for name in names}
    for (owner, name), own in kept.items():
        setattr(owner, name, timed(own))
    try:
        rest = seconds(made, True) - spent
        return spent / rest, rest / STEPS
    finally:
        for (owner, name), own in kept.items():
            setattr(owner, name, own)


def rows() -> Iterator[Row]:
    """The share for each model and mode."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for kind, mode in product(("mlp", "convnet"), MODES):
        made = parts(kind, mode)
        seconds(made, False)
        found = [share(made) for _ in range(REPEATS)]
        cost, step = spread([part for part, _ in found]), spread([step for _, step in found])
        yield Row(
            work=f"inside the calls of watch, {kind}, {mode}",
            peer="the same steps without them",
            ratio=cost,
            error=None,
            goal=f"at most {GOAL:.0%} of the CPU time of a step, in the median",
            met=cost["median"] <= GOAL,
            notes={"milliseconds of a step": 1e3 * step["median"], "steps": STEPS},
        )


if __name__ == "__main__":
    main(rows, __doc__ or "")

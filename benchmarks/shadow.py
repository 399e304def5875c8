"""64 shadow models on Adult at once against one after the other: the same batches, the same weights at the end.

Adult's 32,561 training records with 108 columns, one hidden layer of 128, batches of 64, plain SGD without clipping or
noise (the peer has none). Work is the same in every epoch, so the interleaved ratio is taken over a part of an epoch;
the whole of ten epochs is run once, through tasks and run directory, for its time and memory.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch import nn

from benchmarks._rows import Row, interleave, limit, main, spread
from reticent import data
from reticent.attacks.shadow import ShadowPlan, train_shadow_models
from reticent.attacks.shadow_training import BLOCK
from reticent.attacks.stacked import Buffers, Stacked, StackedMLP, StackedModules
from reticent.tasks import Local, Store
from reticent.training import parse_config
from reticent.training.models import build_model

MODELS, BATCH, STEPS, REPEATS = 64, 64, 40, 5
LEARNING_RATE = 0.1
CONFIG = parse_config(
    {
        "data": {"name": "adult"},
        "model": {"kind": "mlp", "widths": [128], "activation": "relu"},
        "noise_multiplier": 0.0,
        "max_grad_norm": 1e9,
        "batch_size": BATCH,
        "epochs": 10,
        "sampler": "shuffled",
        "learning_rate": LEARNING_RATE,
    }
)


def records() -> tuple[np.ndarray, np.ndarray]:
    """Adult's training records as the model sees them, with zeros up to 108 columns."""
    adult = data.load("adult")
    features, labels = adult.features[adult.train], adult.labels[adult.train]
    padded = np.zeros((len(features), 108), dtype=np.float32)
    padded[:, : features.shape[1]] = features[:, :108]
    return padded, labels


def modules() -> list[nn.Module]:
    """Fresh models, each with its own weights."""
    return [build_model(CONFIG.model, (108,), 2, seed) for seed in range(MODELS)]


def one_after_the_other(features: torch.Tensor, labels: torch.Tensor, batches: torch.Tensor) -> list[nn.Module]:
    """The peer: a plain torch loop."""
    trained = modules()
    for module, order in zip(trained, batches, strict=True):
        optimiser = torch.optim.SGD(module.parameters(), lr=LEARNING_RATE)
        for batch in order:
            optimiser.zero_grad()
            nn.functional.cross_entropy(module(features[batch]), labels[batch]).backward()
            optimiser.step()
    return trained


def at_once(
    make: Callable[[list[nn.Module]], Stacked], features: torch.Tensor, labels: torch.Tensor, batches: torch.Tensor
) -> list[Stacked]:
    """Ours, in the blocks in which shadow models are trained."""
    trained = []
    everything = modules()
    ones, buffers = torch.ones(BLOCK, BATCH), Buffers()
    for start in range(0, MODELS, BLOCK):
        block = make(everything[start : start + BLOCK])
        optimiser = torch.optim.SGD(block.parameters, lr=LEARNING_RATE)
        for step in range(batches.shape[1]):
            batch = batches[start : start + BLOCK, step]
            block.add_gradients(buffers.rows("x", features, batch), buffers.rows("y", labels, batch), ones, None)
            for parameter in block.parameters:
                parameter.grad.div_(BATCH)
            optimiser.step()
        trained.append(block)
    return trained


def difference(blocks: list[Stacked], alone: list[nn.Module]) -> float:
    """Largest difference of a weight."""
    worst = 0.0
    for k, module in enumerate(alone):
        ours = blocks[k // BLOCK].parameters
        pairs = zip(ours, module.parameters(), strict=True)
        worst = max(worst, *(float((p[k % BLOCK] - q.detach()).abs().max()) for p, q in pairs))
    return worst


def arithmetic(features: torch.Tensor, batches: torch.Tensor) -> None:
    """The batched products of both layers, forward and backward, and the gathering of the batches; nothing else."""
    hidden, classes = 128, 2
    into, out = torch.randn(BLOCK, features.shape[1], hidden), torch.randn(BLOCK, hidden, classes)
    upper, last = torch.randn(BLOCK, BATCH, hidden), torch.randn(BLOCK, BATCH, classes)
    for start in range(0, MODELS, BLOCK):
        for step in range(batches.shape[1]):
            rows = features[batches[start : start + BLOCK, step]]
            torch.bmm(rows, into)
            torch.bmm(upper, out)
            torch.bmm(upper.mT, last)
            torch.bmm(last, out.mT)
            torch.bmm(rows.mT, upper)


def ratio_row(
    name: str, make: Callable[[list[nn.Module]], Stacked], goal: float, threads: int, moonshot: float | None = None
) -> Row:
    """Interleaved times on the same batches."""
    torch.set_num_threads(threads)
    x, y = records()
    features, labels = torch.from_numpy(x), torch.from_numpy(y)
    rng = np.random.default_rng(0)
    batches = torch.from_numpy(rng.integers(0, len(x), size=(MODELS, STEPS, BATCH)))
    ratios = interleave(
        lambda: at_once(make, features, labels, batches),
        lambda: one_after_the_other(features, labels, batches),
        REPEATS,
    )
    error = difference(at_once(make, features, labels, batches), one_after_the_other(features, labels, batches))
    spreads = spread(ratios)
    met = spreads["median"] >= goal and error <= 1e-4
    floor = limit(
        "the batched products",
        lambda: arithmetic(features, batches),
        lambda: at_once(make, features, labels, batches),
        spreads["median"],
        REPEATS,
    )
    return Row(
        work=f"64 MLPs on Adult, {name}, {threads} thread{'s' * (threads > 1)}",
        peer="one after the other in torch",
        ratio=spreads,
        error=error,
        goal=f"ratio {goal}, weights within 1e-4",
        met=met,
        limit=floor,
        moonshot=moonshot,
    )


def whole_row() -> Row:
    """All ten epochs through tasks and run directory: seconds and memory."""
    x, y = records()
    with TemporaryDirectory() as folder:
        start = time.perf_counter()
        plan = ShadowPlan(CONFIG, MODELS, len(x) - len(x) // 10)
        found = train_shadow_models(plan, x, y, Store(Path(folder)), Local(1))
        seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    accuracy = float((found.confidence > 0).mean())
    notes: dict[str, object] = {"seconds": seconds, "peak_gb": peak, "accuracy": accuracy}
    ratio = spread([2.0 / peak])
    return Row(
        "64 MLPs on Adult, ten epochs, one worker", "2 GB", ratio, peak, "peak memory under 2 GB", peak < 2.0, notes
    )


def rows() -> list[Row]:
    """Memory first, so that the peak is that of the work itself."""
    table = [] if "--ratios-only" in sys.argv else [whole_row()]
    for threads in (1, 2):
        alone = threads == 1
        table.append(ratio_row("batched products", StackedMLP, 4.0, threads, 6.0 if alone else None))
        table.append(ratio_row("vmap", StackedModules, 2.5, threads, 4.0 if alone else None))
    return table


if __name__ == "__main__":
    main(rows, "Shadow models at once against one after the other.")

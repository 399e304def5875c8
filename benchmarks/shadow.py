"""64 shadow models on Adult at once against one after the other: the same batches, the same weights at the end.

Adult's 32,561 training records with 108 columns, one hidden layer of 128, batches of 64, plain SGD without clipping or
noise (the peer has none). Work is the same in every epoch, so the interleaved ratio is taken over the steps of a part
of an epoch; models and optimisers, which a run makes once, are made before the clock starts, on both sides. The whole
of ten epochs is run once, through tasks and run directory, for its time and memory.
"""

from __future__ import annotations

import resource
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch import nn

from benchmarks._rows import Row, interleave, limit, main, spread
from reticent import data
from reticent.attacks.shadow import ShadowPlan, train_shadow_models
from reticent.attacks.shadow_training import BLOCK
from reticent.attacks.stacked import StackedMLP
from reticent.tasks import Store
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


class Training:
    """Both sides on the same batches, from the same weights."""

    def __init__(self) -> None:
        x, y = records()
        rng = np.random.default_rng(0)
        self.features, self._labels = torch.from_numpy(x), torch.from_numpy(y)
        self.batches = torch.from_numpy(rng.integers(0, len(x), size=(STEPS, MODELS, BATCH)))
        self.renew()

    def renew(self) -> None:
        """New models and optimisers with the first weights; not timed."""
        self.alone = modules()
        self.blocks = [StackedMLP(self.alone[start : start + BLOCK]) for start in range(0, MODELS, BLOCK)]
        self._singly = [torch.optim.SGD(module.parameters(), lr=LEARNING_RATE) for module in self.alone]
        self._jointly = [torch.optim.SGD(block.parameters, lr=LEARNING_RATE) for block in self.blocks]

    def one_after_the_other(self) -> None:
        """The peer: a plain torch loop."""
        for number, (module, optimiser) in enumerate(zip(self.alone, self._singly, strict=True)):
            for batch in self.batches[:, number]:
                optimiser.zero_grad()
                nn.functional.cross_entropy(module(self.features[batch]), self._labels[batch]).backward()
                optimiser.step()

    def at_once(self) -> None:
        """Ours, in the blocks in which shadow models are trained."""
        weights = torch.full((BLOCK, BATCH), 1.0 / BATCH)
        for number, (block, optimiser) in enumerate(zip(self.blocks, self._jointly, strict=True)):
            for batch in self.batches[:, BLOCK * number : BLOCK * (number + 1)]:
                block.add_gradients(self.features[batch], self._labels[batch], weights, None)
                optimiser.step()


def difference(blocks: list[StackedMLP], alone: list[nn.Module]) -> float:
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
        for batch in batches[:, start : start + BLOCK]:
            rows = features[batch]
            torch.bmm(rows, into)
            torch.bmm(upper, out)
            torch.bmm(upper.mT, last)
            torch.bmm(last, out.mT)
            torch.bmm(rows.mT, upper)


def ratio_row(goal: float, threads: int, moonshot: float | None = None) -> Row:
    """Interleaved times on the same batches."""
    torch.set_num_threads(threads)
    training = Training()
    ratios = interleave(training.at_once, training.one_after_the_other, REPEATS, before=training.renew)
    training.renew()
    training.at_once()
    training.one_after_the_other()
    error = difference(training.blocks, training.alone)
    spreads = spread(ratios)
    met = spreads["median"] >= goal and error <= 1e-4
    floor = limit(
        "the batched products",
        lambda: arithmetic(training.features, training.batches),
        training.at_once,
        spreads["median"],
        REPEATS,
        before=training.renew,
    )
    return Row(
        work=f"64 MLPs on Adult, batched products, {threads} thread{'s' * (threads > 1)}",
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
        found = train_shadow_models(plan, x, y, Store(Path(folder)))
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
    table = [whole_row()]
    for threads in (1, 2):
        table.append(ratio_row(4.0, threads, 6.0 if threads == 1 else None))
    return table


if __name__ == "__main__":
    main(rows, "Shadow models at once against one after the other.")

"""The loop of docs/howto/shuffling-to-random-allocation.md with three samplers: accuracy, batch sizes, risk.

``python -m benchmarks.loaders breast-cancer 20`` and ``python -m benchmarks.loaders adult 4`` (needs the data).
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import torch
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset

import reticent as rt
from reticent import data

SETTINGS = {"breast-cancer": (64, 10, 4.0), "adult": (256, 3, 1.0)}
"""Batch size, epochs and noise multiplier."""
SAMPLERS = ("shuffled", "random allocation", "Poisson")


def run(name: str, sampler: str) -> tuple[float, list[int], object]:
    """Accuracy, batch sizes and the worst case of one run."""
    batch_size, epochs, noise = SETTINGS[name]
    records = data.load(name)
    features, labels = torch.tensor(records.features, dtype=torch.float32), torch.tensor(records.labels)
    loader = DataLoader(TensorDataset(features[records.train], labels[records.train]), batch_size, shuffle=True)
    if sampler == "random allocation":
        loader = rt.random_allocation(loader)
    model = torch.nn.Linear(features.shape[1], 2)
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.5),
        data_loader=loader,
        noise_multiplier=noise,
        max_grad_norm=1.0,
        poisson_sampling=sampler == "Poisson",
    )
    rt.secure_noise(optimizer)
    with rt.watch(model, optimizer, loader) as ledger:
        for _ in range(epochs):
            for x, y in loader:
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(x), y).backward()
                optimizer.step()
    right = (model(features[records.test]).argmax(dim=1) == labels[records.test]).float().mean()
    return float(right), list(ledger.ledger.diagnostics.batch_sizes), rt.assess(ledger)[0].curve


def main() -> None:
    """One line for each sampler."""
    name, runs = sys.argv[1], int(sys.argv[2])
    warnings.simplefilter("ignore")
    for sampler in SAMPLERS:
        found = [run(name, sampler) for _ in range(runs)]
        right, sizes = np.array([one[0] for one in found]), [size for one in found for size in one[1]]
        curve = found[0][2]
        risk = f"advantage {rt.advantage(curve):.4g}, epsilon {rt.epsilon_at_delta(curve, 1e-5):.4g} at 1e-5"
        print(
            f"{name}, {sampler}, {runs} runs: {right.mean():.2%} (a run deviates by {right.std(ddof=1):.2%}), "
            f"batches of {min(sizes)} to {max(sizes)}, {risk}",
            flush=True,
        )


if __name__ == "__main__":
    main()

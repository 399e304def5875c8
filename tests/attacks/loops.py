"""Training loops that worker processes import."""

from __future__ import annotations

import os
import time
import warnings

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from reticent.kernel.mechanisms import DPSGD


def broken(model, data, claim):
    raise RuntimeError("no luck\nat all")


def dies(model, data, claim):
    os.kill(os.getpid(), 9)


def hangs(model, data, claim):
    time.sleep(3600)


def of_opacus(model: nn.Module, data: TensorDataset, claim: DPSGD, poisson: bool = True) -> None:
    """Whole epochs; with ``poisson`` False batches of fixed size."""
    from opacus import PrivacyEngine

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loader = DataLoader(data, batch_size=claim.batch_size, shuffle=not poisson)
        model, optimizer, loader = PrivacyEngine().make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            data_loader=loader,
            noise_multiplier=claim.noise_multiplier,
            max_grad_norm=claim.max_grad_norm,
            poisson_sampling=poisson,
        )
        for _ in range(-(-claim.steps // len(loader))):
            for x, y in loader:
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(x), y).backward()
                optimizer.step()

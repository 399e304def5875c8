"""Training programs of Opacus whose accountant is ours, without a watch."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch.nn.functional import cross_entropy


def made_private(engine: Any, model: torch.nn.Module, loader: Any, noise: float = 1.1, **options: Any) -> Any:
    """By the engine, which looks for the noise where there is a target for epsilon."""
    settings = {"module": model, "optimizer": torch.optim.SGD(model.parameters(), lr=0.1), "data_loader": loader}
    settings |= {"max_grad_norm": 1.0} | options
    if "target_epsilon" in options:
        return engine.make_private_with_epsilon(**settings)
    return engine.make_private(noise_multiplier=noise, **settings)


def trained(model: Any, optimizer: Any, *others: Any, epochs: int = 3) -> None:
    """An ordinary loop over a loader, after which a loss of its own may stand before it."""
    *criterion, loader = others
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        for _ in range(epochs):
            for features, labels in loader:
                optimizer.zero_grad()
                (criterion[0] if criterion else cross_entropy)(model(features), labels).backward()
                optimizer.step()

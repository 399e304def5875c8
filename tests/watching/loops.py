"""Training loops that know nothing of reticent, for tests."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import chain, repeat
from types import SimpleNamespace
from typing import Any

import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import reticent as rt
from reticent.watching.optimisers import release_of

RECORDS, BATCH, RATE, NOISE = 120, 20, 1.0 / 6.0, 1.1
"""A Poisson batch is empty once in 3e9, and has less than three records once in 1e7: no test hangs on one."""
DELTA = 1e-5


def records(seed: int = 0) -> TensorDataset:
    draw = torch.Generator().manual_seed(seed)
    return TensorDataset(torch.randn(RECORDS, 4, generator=draw), torch.randint(0, 2, (RECORDS,), generator=draw))


def network() -> nn.Module:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))
    torch.seed()  # noise and draws from the operating system again
    return model


def adaptive_noise(adjusted: float, nominal: float, size: int | None) -> float:
    """The noise multiplier that is recorded of a step of adaptive ghost clipping with so many records."""
    of_opacus = {"_adjusted_noise_multiplier": adjusted, "noise_multiplier": nominal, "max_grad_norm": 1.0}
    optimizer = SimpleNamespace(**of_opacus, loss_reduction="sum")
    return release_of(optimizer, 1.0, size, 1).noise_multiplier


def private(
    loader: DataLoader | None = None,
    clipping: str = "flat",
    norm: float = 1.0,
    mode: str = "hooks",
    model: nn.Module | None = None,
    **options: Any,
) -> tuple[Any, Any, Any, Any]:
    """(model, optimizer, loader, criterion) from Opacus."""
    model = model or network()
    extra: dict[str, Any] = {}
    if clipping == "adaptive":
        extra = {"target_unclipped_quantile": 0.5, "clipbound_learning_rate": 0.2, "unclipped_num_std": 2.0}
        extra |= {"max_clipbound": 10.0, "min_clipbound": 0.1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = PrivacyEngine().make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            data_loader=loader or DataLoader(records(), batch_size=BATCH, shuffle=True),
            noise_multiplier=NOISE,
            max_grad_norm=[norm] * 4 if clipping == "per_layer" else norm,
            clipping=clipping,
            grad_sample_mode=mode,
            criterion=nn.CrossEntropyLoss(),
            **extra,
            **options,
        )
    model, optimizer, *criterion, loader = made
    return model, optimizer, loader, criterion[0] if criterion else nn.CrossEntropyLoss()


def run(
    model: Any,
    optimizer: Any,
    loader: Any,
    criterion: Any,
    epochs: int = 2,
    every: int = 1,
    after: Callable[[int], None] | None = None,
    most: int | None = None,
) -> None:
    """An ordinary loop; ``every`` batches make one step, ``most`` batches one epoch."""
    count = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(epochs):
            for index, (features, labels) in enumerate(loader):
                if index == most:
                    break
                if index % every == 0:
                    optimizer.zero_grad()
                criterion(model(features), labels).backward()
                if (index + 1) % every == 0:
                    optimizer.step()
                    count += 1
                    if after is not None:
                        after(count)


def plain_step(model: nn.Module, features: torch.Tensor, labels: torch.Tensor, noise: float, norm: float) -> None:
    """Per-record gradients by torch.func, clipped, summed, with noise, into ``.grad``."""
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def loss(weights: dict[str, torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        logits = torch.func.functional_call(model, weights, (x[None],))
        return nn.functional.cross_entropy(logits, y[None])

    each = torch.func.vmap(torch.func.grad(loss), (None, 0, 0))(parameters, features, labels)
    norms = torch.stack([g.flatten(1).norm(dim=1) for g in each.values()]).norm(dim=0)
    factor = (norm / norms).clamp(max=1.0)
    for name, p in model.named_parameters():
        total = torch.einsum("i,i...->...", factor, each[name])
        p.grad = (total + noise * norm * torch.randn_like(total)) / BATCH


def watched(*made, how=None, **options):
    with rt.watch(*made[:3], **options) as seen:
        run(*made, **(how or {}))
    return seen


def shuffled(**options):
    return private(DataLoader(records(), batch_size=BATCH, shuffle=True), poisson_sampling=False, **options)


def wide(**options):
    """Its noise is longer than a block of the generator."""
    data = TensorDataset(torch.randn(RECORDS, 40), torch.randint(0, 40, (RECORDS,)))
    return private(DataLoader(data, batch_size=BATCH, shuffle=True), model=nn.Linear(40, 40), **options)


def epsilon(what):
    return rt.epsilon_at_delta(rt.assess(what)[0].curve, DELTA)


def void(seen):
    return seen.mechanism().noise_multiplier == 0.0


def trained(made, before=lambda step: None, between=lambda step: None, after=lambda step: None, forward=None, passes=1):
    """A watched loop; each step calls what happens before it, between its backward pass and it, and after it."""
    model, optimizer, loader, criterion = made
    with rt.watch(model, optimizer, loader) as seen:
        for step, (features, labels) in enumerate(chain.from_iterable(repeat(loader, passes))):
            before(step)
            optimizer.zero_grad()
            criterion((forward or model)(features), labels).backward()
            between(step)
            optimizer.step()
            after(step)
    return seen


def faults(seen):
    return {fault for fault in seen.ledger.faults if fault.voids}


def noises(seen):
    return [segment.noise_multiplier for segment in seen.ledger.segments]

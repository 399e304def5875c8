"""Training programs that know nothing of reticent: of Opacus, and by hand, with their data and models."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from opacus import PrivacyEngine
from opacus.optimizers.optimizer import _mark_as_processed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from reticent.watching.detectors.seeds import guessable

Made = tuple[Any, Any, Any, Any]
"""(model, optimizer, loader, criterion)."""
RECORDS, BATCH, RATE, NOISE = 120, 20, 1.0 / 6.0, 1.1
"""A Poisson batch is empty once in 3e9, and has less than three records once in 1e7: no test hangs on one."""


def records(seed: int = 0, count: int = RECORDS) -> TensorDataset:
    draw = torch.Generator().manual_seed(seed)
    return TensorDataset(torch.randn(count, 4, generator=draw), torch.randint(0, 2, (count,), generator=draw))


def network() -> nn.Module:
    if guessable(torch.initial_seed()):
        torch.seed()  # noise and draws from the operating system
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(0)  # those of accelerators, at a millisecond each, stay
        return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))


def _trained(model: nn.Module) -> int:
    return len([p for p in model.parameters() if p.requires_grad])


def private(
    loader: DataLoader | None = None,
    clipping: str = "flat",
    norm: float = 1.0,
    mode: str = "hooks",
    model: nn.Module | None = None,
    **options: Any,
) -> Made:
    """A loop of Opacus."""
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
            max_grad_norm=[norm] * _trained(model) if clipping == "per_layer" else norm,
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


def reading(data: Any = None, size: int = BATCH, **options: Any) -> DataLoader:
    """A loader that shuffles."""
    return DataLoader(records() if data is None else data, batch_size=size, **{"shuffle": True, **options})


def by_hand(model: nn.Module | None = None, loader: DataLoader | None = None) -> Made:
    """A loop that clips and adds noise by itself."""
    model = model or network()
    loader = reading() if loader is None else loader
    return model, torch.optim.SGD(model.parameters(), lr=0.1), loader, nn.CrossEntropyLoss()


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


def shuffled(**options):
    return private(DataLoader(records(), batch_size=BATCH, shuffle=True), poisson_sampling=False, **options)


def wide(**options):
    """Its noise is longer than a block of the generator."""
    data = TensorDataset(torch.randn(RECORDS, 40), torch.randint(0, 40, (RECORDS,)))
    return private(DataLoader(data, batch_size=BATCH, shuffle=True), model=nn.Linear(40, 40), **options)


class Net(nn.Module):
    """Layers by name, and what is done with them."""

    def __init__(self, how: Callable[..., Any], **parts: Any) -> None:
        super().__init__()
        self.how = how
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *given: Any, **named: Any) -> Any:
        return self.how(self, *given, **named)


class Centred(nn.Module):
    """Mixes the records of a batch."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x - x.mean(0, keepdim=True)


def mixup(x: torch.Tensor) -> torch.Tensor:
    return 0.6 * x + 0.4 * x[torch.randperm(len(x))]


def standardised(x: torch.Tensor) -> torch.Tensor:
    """By the mean and the deviation of the batch."""
    return (x - x.mean(0)) / (x.std(0) + 1e-3)


def noisy(x: torch.Tensor) -> torch.Tensor:
    """Each record by itself."""
    return x + 0.1 * torch.randn(x.shape)


def coins(self: Any) -> None:
    """Plus and minus one: as long as Gaussian noise, and no hiding place."""
    for p in self.params:
        noise = torch.randint(0, 2, p.summed_grad.shape) * 2.0 - 1.0
        p.grad = (p.summed_grad + self.noise_multiplier * self.max_grad_norm * noise).view_as(p)
        _mark_as_processed(p.summed_grad)


def as_class(optimizer: Any, **methods: Any) -> None:
    """Methods of a class of the program in the place of Opacus's."""
    optimizer.__class__ = type("Mine", (type(optimizer),), methods)

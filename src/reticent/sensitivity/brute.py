"""Brute force: one backward pass per completion, on the trained module itself.

It is slow, and it knows nothing about layers: the other ways are compared with it. The module is borrowed:
its weights and buffers are in another precision for a moment, Opacus's hooks are off, and everything is put
back afterwards. The random state of torch, numpy and Python is put back as well.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.sensitivity.checks import HOOKS, labels_fit, loss_of_each, norms_are_finite

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""(outputs (m, ...), targets (m,)) -> each record's own loss, (m,); record k may depend on row k only."""


def cross_entropy(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The loss where none is given; the outputs are logits, one row per record.

    Raises:
        ParameterError: the model returns something else.
    """
    if not isinstance(outputs, torch.Tensor):
        raise ParameterError(
            "loss", None, f"given: the model returns a {type(outputs).__name__}, not one tensor", shown=False
        )
    if outputs.dim() != 2 or targets.dim() != 1:
        shapes = f"outputs {tuple(outputs.shape)} for labels {tuple(targets.shape)}"
        raise ParameterError(
            "loss", None, f"given: the model returns {shapes}, not one row of logits per label", shown=False
        )
    labels_fit(targets, outputs.shape[1])
    return nn.functional.cross_entropy(outputs, targets, reduction="none")


def complete(features: torch.Tensor, columns: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Every record with every value of the attribute, (records * values, ...), the values of a record together."""
    n = len(values)
    dtype = values.dtype if features.is_floating_point() else features.dtype
    block = features.reshape(len(features), -1).to(dtype)[:, None, :].repeat(1, n, 1)
    block[:, :, columns] = values.to(dtype)
    return block.reshape(len(features) * n, *features.shape[1:])


def gradients(model: nn.Module, loss: Loss, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(losses (m,), gradients (m, parameters)) of each row on its own, by one backward pass each."""
    trained = [p for p in model.parameters() if p.requires_grad]
    losses, rows = [], []
    for record, target in zip(x, y, strict=True):
        with torch.enable_grad():
            own = loss_of_each(loss(model(record[None]), target[None]), 1).sum()
            if own.requires_grad:  # zeros where a parameter has no part in the loss
                found = torch.autograd.grad(own, trained, materialize_grads=True)
            else:
                found = tuple(torch.zeros_like(p) for p in trained)
        losses.append(own.detach())
        rows.append(torch.cat([g.to_dense().flatten() for g in found]))
    return torch.stack(losses), torch.stack(rows)


@dataclass(frozen=True)
class Truth:
    """What brute force found for a few records; see ``reticent.sensitivity.gram.Measured``.

    Attributes:
        scale: the largest gradient norm; distances and norms are in this unit, so nothing is clipped.
        distances: (records, values, values).
        norms: (records, values).
    """

    scale: float
    distances: torch.Tensor
    norms: torch.Tensor


def truth(
    model: nn.Module, loss: Loss, x: torch.Tensor, y: torch.Tensor, records: int, company: tuple[torch.Tensor, ...]
) -> Truth:
    """Distances between the gradients of completions, after seeing that each record has one gradient of its own.

    Args:
        model: borrowed, see ``borrowed``.
        loss: each record's own loss.
        x: completions, (records * values, ...).
        y: their labels.
        records: how many records.
        company: features and labels of other records of the batch.

    Raises:
        UnsupportedError: ``forward`` draws random numbers, changes the model, or mixes the records of a batch.
    """
    name = type(model).__name__
    before = [t.detach().clone() for _, t in _named_numbers(model)]
    drawn = torch.get_rng_state()
    losses, g = gradients(model, loss, x, y)
    if not torch.equal(drawn, torch.get_rng_state()):
        raise UnsupportedError(
            f"{name} draws random numbers in forward, as dropout does: the gradient of a completion is then random, "
            "and its sensitivity undefined"
        )
    changed = [key for (key, t), old in zip(_named_numbers(model), before, strict=True) if not _same(t, old)]
    if changed:
        raise UnsupportedError(
            f"{name} changes {changed[0]} in forward, outside the noise: its gradients depend on what was seen before"
        )
    tolerance = 1e4 * torch.finfo(losses.dtype).eps
    with torch.no_grad():
        together = loss_of_each(
            loss(model(torch.cat([x, company[0]])), torch.cat([y, company[1]])), len(x) + len(company[0])
        )
        again = torch.cat([loss_of_each(loss(model(row[None]), to[None]), 1) for row, to in zip(x, y, strict=True)])
    if not _close(again, losses, 1e-3 * tolerance):
        raise UnsupportedError(f"{name} gives two results for one record: it is random, or keeps what it saw before")
    if not _close(together[: len(x)], losses, tolerance):
        raise UnsupportedError(f"{name} mixes the records of a batch in forward: no record has a gradient of its own")
    g = g.double().reshape(records, -1, g.shape[1])
    norms = g.norm(dim=2)
    norms_are_finite(norms)
    scale = float(norms.max()) or 1.0
    distances = torch.stack([(g - g[:, i : i + 1]).norm(dim=2) for i in range(g.shape[1])], dim=1)
    return Truth(scale, distances / scale, norms / scale)


@contextmanager
def borrowed(model: nn.Module, dtype: torch.dtype | None, shake: np.random.Generator | None = None) -> Iterator[None]:
    """The module with all its numbers in ``dtype``, without hooks; everything is put back at the end.

    Args:
        model: the bare module.
        dtype: a floating type, or None for the module's own.
        shake: moves every weight a little, so that zeros and symmetries of a fresh model hide nothing.
    """
    numbers = [t for _, t in _named_numbers(model)]
    kept = [t.data for t in numbers]
    # A module may note things on itself in forward, or replace a buffer.
    places = [d for m in model.modules() for d in (m.__dict__, m._parameters, m._buffers, m._modules)]
    contents = [dict(place) for place in places]
    with _randomness_kept(model), without_hooks(model):
        try:
            for t, old in zip(numbers, kept, strict=True):
                t.data = old.to(dtype, copy=True) if dtype and old.is_floating_point() else old.clone()
            if shake is not None:
                _move([p for p in model.parameters() if p.is_floating_point()], shake)
            yield
        finally:
            for place, content in zip(places, contents, strict=True):
                place.clear()
                place.update(content)
            for t, old in zip(numbers, kept, strict=True):
                t.data = old


@contextmanager
def without_hooks(model: nn.Module) -> Iterator[None]:
    """The hooks of all modules set aside for a moment; ``checks.model_is_fit`` has seen that they are Opacus's."""
    modules = list(model.modules())
    kept = [[(name, module.__dict__[name]) for name in HOOKS] for module in modules]
    try:
        for module, hooks in zip(modules, kept, strict=True):
            module.__dict__.update({name: type(found)() for name, found in hooks})
        yield
    finally:
        for module, hooks in zip(modules, kept, strict=True):
            module.__dict__.update(hooks)


@contextmanager
def _randomness_kept(model: nn.Module) -> Iterator[None]:
    devices = sorted({p.device.index or 0 for p in model.parameters() if p.device.type == "cuda"})
    legacy, plain = np.random.get_state(), random.getstate()
    try:
        with torch.random.fork_rng(devices=devices):
            yield
    finally:
        np.random.set_state(legacy)
        random.setstate(plain)


def _move(weights: list[nn.Parameter], shake: np.random.Generator) -> None:
    with torch.no_grad():
        for p in weights:
            noise = torch.from_numpy(shake.standard_normal(tuple(p.shape))).to(p.device, p.dtype)
            p.add_(noise, alpha=0.05 * (0.1 + float(p.abs().mean())) if p.numel() else 0.0)


def _named_numbers(model: nn.Module) -> list[tuple[str, torch.Tensor]]:
    return [*model.named_parameters(), *model.named_buffers()]


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and bool(((a == b) | (a.isnan() & b.isnan())).all())


def _close(a: torch.Tensor, b: torch.Tensor, tolerance: float) -> bool:
    near = (a - b).abs() <= tolerance * (1.0 + b.abs())
    return bool((near | ~torch.isfinite(b)).all())

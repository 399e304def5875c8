"""Exact distances for any module: factored per layer where that pays, gradients by torch.func elsewhere.

The passes run on a private copy without hooks, so an Opacus wrapper around the trained model notices
nothing and no gradient of the trained model is touched.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import nn

from reticent.train.sensitivity_checks import labels_fit, loss_of_each
from reticent.train.sensitivity_dense import Loss
from reticent.train.sensitivity_factors import Factors, factors_of, is_factored
from reticent.train.sensitivity_gram import (
    Measured,
    Workspace,
    clip_factors,
    explicit_gram,
    row_squares,
    squared_distances,
)

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_NOTES = ("activations", "max_batch_len")


@dataclass
class _Call:
    """What one forward call of one layer left behind."""

    inputs: torch.Tensor
    output: torch.Tensor
    error: torch.Tensor = field(init=False)


class LayeredEngine:
    """Distances between clipped gradients for an arbitrary module."""

    def __init__(self, model: nn.Module, loss: Loss | None, columns: torch.Tensor, values: torch.Tensor) -> None:
        """Prepare a copy of ``model``.

        Args:
            model: gives one output row per input row; its parameters with ``requires_grad`` are those trained.
            loss: each record's own loss, or None for cross-entropy on logits.
            columns: (k,) of one record's flattened features.
            values: (n, k) in the scale of the model; a floating dtype is that of all arithmetic.
        """
        self._source, self._loss, self._columns, self._values = model, loss or _cross_entropy, columns, values
        self._copy = _bare_copy(model, values.dtype)
        # Maxima are taken six times faster on a CPU with the channels last.
        self._copy.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._trained = [name for name, p in model.named_parameters() if p.requires_grad]
        self._calls: dict[str, list[_Call]] = {}
        self._layers = self._attach()
        self._bytes = 0
        self._work: dict[str, Workspace] = {}

    def bytes_per_record(self) -> int:
        """Working memory of one record, measured on the last block; 0 before the first."""
        return self._bytes

    def refresh(self) -> None:
        """Copy the weights of this step."""
        with torch.no_grad():
            own = dict(self._copy.named_parameters())
            for name, p in self._source.named_parameters():
                own[name].copy_(p.detach())
            buffers = dict(self._copy.named_buffers())
            for name, b in self._source.named_buffers():
                buffers[name].copy_(b)

    def measure(self, features: torch.Tensor, labels: torch.Tensor, clip: float) -> Measured:
        """Distances in units of the clip norm.

        Args:
            features: (records, ...); the attribute's columns are overwritten in a copy.
            labels: (records, ...).
            clip: clip norm.
        """
        records, n = len(features), len(self._values)
        completions = self._complete(features)
        targets = labels.repeat_interleave(n, dim=0)
        factors, missing = self._factored(completions, targets, records)
        explicit = [self._explicit(completions, targets, missing)] if missing else []
        square = sum((f.squared_norms() for f in factors), torch.zeros((), dtype=self._values.dtype))
        square = square + sum((row_squares(g) for g in explicit), torch.zeros((), dtype=self._values.dtype))
        scale, norms = clip_factors(square.reshape(records, n), clip)
        total = sum((f.centred_gram(scale) for f in factors), torch.zeros((), dtype=self._values.dtype))
        for g in explicit:
            total = total + explicit_gram(g.view(records, n, -1), scale)
        used = sum(f.bytes() for f in factors) + sum(g.nbytes for g in explicit) + completions.nbytes
        self._bytes = max(1, (3 * used + 6 * norms.element_size() * n * norms.numel()) // records)
        return Measured(squared_distances(total), norms)

    def _complete(self, features: torch.Tensor) -> torch.Tensor:
        """Every record with every value of the attribute, (records * n, ...)."""
        n = len(self._values)
        flat = features.reshape(len(features), -1)
        dtype = self._values.dtype if features.is_floating_point() else features.dtype
        block = flat.to(dtype)[:, None, :].repeat(1, n, 1)
        block[:, :, self._columns] = self._values.to(dtype)
        return block.reshape(len(features) * n, *features.shape[1:])

    def _factored(self, x: torch.Tensor, y: torch.Tensor, records: int) -> tuple[list[Factors], list[str]]:
        """Factors of every layer that was called once, and the names of all other trained parameters."""
        self._calls = {}
        with torch.enable_grad():
            output = self._copy(x)
            if self._loss is _cross_entropy:
                labels_fit(y, output.shape[1])
            total = loss_of_each(self._loss(output, y), len(x)).sum()
            single = {name: calls[0] for name, calls in self._calls.items() if len(calls) == 1}
            outputs = [call.output for call in single.values()]
            errors = torch.autograd.grad(total, outputs, allow_unused=True) if outputs else ()
        self._calls = {}
        found: list[Factors] = []
        covered: set[str] = set()
        for (name, call), error in zip(single.items(), errors, strict=True):
            covered.update(self._layers[name])
            if error is not None:
                module = self._copy.get_submodule(name)
                work = self._work.setdefault(name, Workspace(self._values))
                found.append(factors_of(module, call.inputs, error.detach(), records, work))
        return found, [name for name in self._trained if name not in covered]

    def _explicit(self, x: torch.Tensor, y: torch.Tensor, names: list[str]) -> torch.Tensor:
        """Gradients of each completion by the named parameters, (records * n, parameters)."""
        everything = {k: v.detach() for k, v in self._copy.named_parameters()}
        buffers = dict(self._copy.named_buffers())

        def one(chosen: dict[str, torch.Tensor], row: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
            state = {**everything, **buffers, **chosen}
            output = torch.func.functional_call(self._copy, state, (row[None],), tie_weights=True)
            return self._loss(output, target[None]).sum()

        per_record = torch.func.vmap(torch.func.grad(one), in_dims=(None, 0, 0))
        grads = per_record({name: everything[name] for name in names}, x, y)
        self._calls = {}
        return torch.cat([g.reshape(len(x), -1) for g in grads.values()], dim=1).detach()

    def _attach(self) -> dict[str, list[str]]:
        """Listen to every layer that can be factored; its parameters' names by its name."""
        shared = _shared_parameters(self._copy)
        trained = set(self._trained)
        listening: dict[str, list[str]] = {}
        for name, module in self._copy.named_modules():
            own = [f"{name}.{p}" if name else p for p, _ in module.named_parameters(recurse=False)]
            if (
                own
                and is_factored(module)
                and set(own) <= trained
                and not shared & {id(p) for p in module.parameters()}
            ):
                module.register_forward_hook(self._listener(name))
                listening[name] = own
        return listening

    def _listener(self, name: str) -> Callable[[nn.Module, tuple[torch.Tensor, ...], torch.Tensor], torch.Tensor]:
        def listen(module: nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> torch.Tensor:
            self._calls.setdefault(name, []).append(_Call(inputs[0].detach(), output))
            # A copy goes on, so that a later in-place activation cannot change what was noted.
            return output.clone()

        return listen


def _cross_entropy(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(outputs, targets, reduction="none")


def _bare_copy(model: nn.Module, dtype: torch.dtype) -> nn.Module:
    """A copy without hooks, gradients or Opacus's notes on modules and parameters, in ``dtype``."""
    modules, parameters = list(model.modules()), list(model.parameters())
    kept = [
        {name: module.__dict__.pop(name) for name in (*_HOOKS, *_NOTES) if name in module.__dict__}
        for module in modules
    ]
    notes = [p.__dict__.copy() for p in parameters]
    grads = [p.grad for p in parameters]
    try:
        for module in modules:
            for name in _HOOKS:
                module.__dict__[name] = OrderedDict()
        for p in parameters:
            p.__dict__.clear()
            p.grad = None
        clone = copy.deepcopy(model)
    finally:
        for module, attributes in zip(modules, kept, strict=True):
            module.__dict__.update(attributes)
        for p, attributes, grad in zip(parameters, notes, grads, strict=True):
            p.__dict__.update(attributes)
            p.grad = grad
    return clone.to(dtype)


def _shared_parameters(model: nn.Module) -> set[int]:
    seen: dict[int, int] = {}
    for module in model.modules():
        for p in module.parameters(recurse=False):
            seen[id(p)] = seen.get(id(p), 0) + 1
    return {key for key, count in seen.items() if count > 1}

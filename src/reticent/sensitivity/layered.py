"""Exact distances for any module: factored per layer where that pays, gradients by torch.func elsewhere.

The passes run on a private copy without hooks, so an Opacus wrapper around the trained model notices
nothing and no gradient of the trained model is touched.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from reticent.sensitivity.brute import Loss, complete, cross_entropy, without_hooks
from reticent.sensitivity.checks import loss_of_each
from reticent.sensitivity.factors import Explicit, Factors, factors_of, is_factored, measured
from reticent.sensitivity.gram import Measured, clip_factors

_NOTES = ("activations", "max_batch_len", "autograd_grad_sample_hooks", "ft_compute_sample_grad")
"""What Opacus leaves on modules."""


@dataclass
class _Call:
    """What one forward call of one layer left behind."""

    inputs: torch.Tensor
    output: torch.Tensor


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
        self._source, self._loss, self._columns, self._values = model, loss or cross_entropy, columns, values
        self._copy = _bare_copy(model, values.dtype)
        # Maxima are taken six times faster on a CPU with the channels last.
        self._lay_out(torch.channels_last)
        self._trained = [name for name, p in model.named_parameters() if p.requires_grad]
        self._calls: dict[str, list[_Call]] = {}  # filled by hooks of the copy: the same object for ever
        self._layers = self._attach()
        self._bytes, self.scale = 0, 1.0

    def on(self, chosen: torch.Tensor) -> LayeredEngine:
        """The same for some of the values, on the same copy of the model."""
        few = copy.copy(self)
        few._values = self._values[chosen]
        return few

    def bytes_per_record(self, *, pairs: bool = True) -> int:
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

    def measure(self, features: torch.Tensor, labels: torch.Tensor, clip: float, *, pairs: bool = True) -> Measured:
        """Distances in units of the clip norm.

        Args:
            features: (records, ...); the attribute's columns are overwritten in a copy.
            labels: (records, ...).
            clip: clip norm.
            pairs: of all pairs; else to the mean.
        """
        records, n = len(features), len(self._values)
        completions = complete(features, self._columns, self._values)
        targets = labels.repeat_interleave(n, dim=0)
        factors, missing = self._factored(completions, targets, records)
        explicit = [Explicit(self._explicit(completions, targets, missing), records)] if missing else []
        parts: list[Factors] = [*factors, *explicit]
        square = sum((part.squared_norms() for part in parts), torch.zeros((), dtype=self._values.dtype))
        scale, norms = clip_factors(square.reshape(records, n), clip)
        self.scale = float(sum((f.scale(scale) for f in factors), norms.new_zeros(1)).amax())
        used, width = sum(part.bytes() for part in parts) + completions.nbytes, n if pairs else 1
        self._bytes = max(1, (3 * used + 6 * norms.element_size() * width * norms.numel()) // records)
        return measured(parts, scale, norms, pairs=pairs)

    def _factored(self, x: torch.Tensor, y: torch.Tensor, records: int) -> tuple[list[Factors], list[str]]:
        """Factors of every layer that was called once, and the names of all other trained parameters."""
        self._calls.clear()
        with torch.enable_grad():
            output = self._run(x)
            total = loss_of_each(self._loss(output, y), len(x)).sum()
            single = self._called_once(total)
            outputs = [call.output for call in single.values()]
            errors = torch.autograd.grad(total, outputs, allow_unused=True) if outputs else ()
        self._calls.clear()
        found: list[Factors] = []
        covered: set[str] = set()
        for (name, call), error in zip(single.items(), errors, strict=True):
            covered.update(self._layers[name])
            if error is not None:
                module = self._copy.get_submodule(name)
                found.extend(factors_of(module, call.inputs, error.detach(), records))
        return found, [name for name in self._trained if name not in covered]

    def _run(self, x: torch.Tensor) -> torch.Tensor:
        """The output, with the channels last where the model's own code allows."""
        try:
            output: torch.Tensor = self._copy(x)
        except RuntimeError:  # such a tensor cannot be viewed as rows
            self._calls.clear()
            self._lay_out(torch.contiguous_format)
            output = self._copy(x)
        return output

    def _lay_out(self, layout: torch.memory_format) -> None:
        """Filters in ``layout``, which outputs follow; ``empty_like`` has it even for one channel."""
        for p in self._copy.parameters():
            if p.dim() == 4:
                p.data = torch.empty_like(p.data, memory_format=layout).copy_(p.data)

    def _called_once(self, total: torch.Tensor) -> dict[str, _Call]:
        """Layers that were called once and whose parameters serve nothing but that call."""
        uses = _uses(total)
        own = dict(self._copy.named_parameters())
        return {
            name: calls[0]
            for name, calls in self._calls.items()
            if len(calls) == 1 and all(uses[id(own[p])] <= 1 for p in self._layers[name])
        }

    def _explicit(self, x: torch.Tensor, y: torch.Tensor, names: list[str]) -> torch.Tensor:
        """Gradients of each completion by the named parameters, (records * n, parameters)."""
        everything = {k: v.detach() for k, v in self._copy.named_parameters()}
        buffers = dict(self._copy.named_buffers())

        # The labels were checked with the whole block; torch.func cannot look at them.
        loss = nn.functional.cross_entropy if self._loss is cross_entropy else self._loss

        def one(chosen: dict[str, torch.Tensor], row: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
            state = {**everything, **buffers, **chosen}
            output = torch.func.functional_call(self._copy, state, (row[None],), tie_weights=True)
            return loss(output, target[None]).sum()

        per_record = torch.func.vmap(torch.func.grad(one), in_dims=(None, 0, 0))
        grads = per_record({name: everything[name] for name in names}, x, y)
        self._calls.clear()
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
                module.register_forward_hook(self._listener(name), with_kwargs=True)
                listening[name] = own
        return listening

    def _listener(self, name: str) -> Callable[..., torch.Tensor]:
        def listen(
            module: nn.Module, inputs: tuple[torch.Tensor, ...], named: dict[str, torch.Tensor], output: torch.Tensor
        ) -> torch.Tensor:
            given = inputs[0] if inputs else named["input"]
            self._calls.setdefault(name, []).append(_Call(given.detach(), output))
            # A copy goes on, so that a later in-place activation cannot change what was noted.
            return output.clone()

        return listen


def _uses(total: torch.Tensor) -> Counter[int]:
    """How many operations read each leaf on the way to ``total``, by ``id`` of the leaf."""
    uses: Counter[int] = Counter()
    seen, waiting = {total.grad_fn}, [total.grad_fn]
    while waiting:
        node = waiting.pop()
        for reached, _ in node.next_functions if node is not None else ():
            leaf = getattr(reached, "variable", None)
            if leaf is not None:
                uses[id(leaf)] += 1
            elif reached is not None and reached not in seen:
                seen.add(reached)
                waiting.append(reached)
    return uses


def _bare_copy(model: nn.Module, dtype: torch.dtype) -> nn.Module:
    """A copy without hooks, gradients or Opacus's notes on modules and parameters, in ``dtype``."""
    modules, parameters = list(model.modules()), list(model.parameters())
    kept = [{name: m.__dict__.pop(name) for name in _NOTES if name in m.__dict__} for m in modules]
    notes = [p.__dict__.copy() for p in parameters]
    grads = [p.grad for p in parameters]
    try:
        with without_hooks(model):
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
    seen = Counter(id(p) for module in model.modules() for p in module.parameters(recurse=False))
    return {key for key, count in seen.items() if count > 1}

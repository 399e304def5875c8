"""Exact distances for fully connected networks, by hand-written passes over small blocks.

Nothing here calls a module, so no hook fires and no autograd graph is built. The first layer is affine
in the attribute: one product per record serves all values of the attribute. Cross-entropy over two
classes has errors on one line only, so the last layer counts as one output.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn.functional import linear, one_hot

from reticent.kernel.errors import ParameterError
from reticent.sensitivity.brute import Loss
from reticent.sensitivity.checks import labels_fit, loss_of_each
from reticent.sensitivity.gram import (
    Measured,
    Products,
    centred_products,
    clip_factors,
    layer_gram,
    linear_gram,
    row_squares,
    squared_distances,
    squares_to_mean,
)

_FEW_THREADS = 4
"""Threads of torch up to which one thread of numpy is faster."""


@dataclass(frozen=True)
class DenseLayer:
    """One linear layer and the activation that follows it, or None."""

    linear: nn.Linear
    activation: type[nn.Module] | None


def dense_layers(model: nn.Module) -> tuple[DenseLayer, ...] | None:
    """The layers of a plain fully connected network with every parameter trained, or None for anything else."""
    # A subclass, or a forward set on the module itself, may do anything.
    if type(model) is not nn.Sequential or any("forward" in module.__dict__ for module in model.modules()):
        return None
    layers: list[DenseLayer] = []
    for module in model:
        if type(module) is nn.Identity or (_flattens(module) and not layers):
            continue
        if type(module) is nn.Linear and all(p.requires_grad for p in module.parameters()):
            layers.append(DenseLayer(module, None))
        elif type(module) in _ACTIVATIONS and layers and layers[-1].activation is None:
            layers[-1] = DenseLayer(layers[-1].linear, type(module))
        else:
            return None
    distinct = {id(p) for layer in layers for p in layer.linear.parameters()}
    return tuple(layers) if layers and len(distinct) == sum(len(list(x.linear.parameters())) for x in layers) else None


class DenseEngine:
    """Distances between the clipped gradients of all completions of a block of records."""

    def __init__(
        self, layers: tuple[DenseLayer, ...], loss: Loss | None, columns: torch.Tensor, values: torch.Tensor
    ) -> None:
        """Prepare.

        Args:
            layers: from ``dense_layers``.
            loss: each record's own loss, or None for cross-entropy on logits.
            columns: (k,) of the flat input.
            values: (n, k) in the scale of the model; their dtype is that of all arithmetic.
        """
        self._layers, self._loss, self._columns, self._values = layers, loss, columns, values
        # A value in the middle is close to all others, so that the moves from it are small.
        self._reference = len(values) // 2
        origin = values[self._reference]
        self._moved = values - origin
        self._input_cross = self._moved @ origin
        self._constants = values.new_tensor([[[float(x.linear.bias is not None)] * len(values)] for x in layers])
        self._constants[0] += (values * values).sum(1) - (origin * origin).sum()
        self.scale = 1.0
        last = layers[-1]
        self._one_line = loss is None and last.linear.out_features == 2 and last.activation is None and len(layers) > 1

    def on(self, chosen: torch.Tensor) -> DenseEngine:
        """The same for some of the values."""
        return DenseEngine(self._layers, self._loss, self._columns, self._values[chosen])

    def bytes_per_record(self, *, pairs: bool = True) -> int:
        """Working memory of one record, an estimate from above."""
        n = len(self._values)
        widths = sum(layer.linear.out_features for layer in self._layers)
        return self._values.element_size() * n * (4 * widths + 3 * n if pairs else 20 * widths)

    def refresh(self) -> None:
        """Read the weights of this step; called once per step."""
        dtype = self._values.dtype
        self._weights = [layer.linear.weight.detach().to(dtype) for layer in self._layers]
        self._biases = [_cast(layer.linear.bias, dtype) for layer in self._layers]
        self._shift = self._moved @ self._weights[0][:, self._columns].T
        if self._one_line:
            self._weights[-1] = (self._weights[-1][1:] - self._weights[-1][:1]) * math.sqrt(0.5)
            bias = self._biases[-1]
            self._biases[-1] = None if bias is None else (bias[1:] - bias[:1]) * math.sqrt(0.5)

    def measure(self, features: torch.Tensor, labels: torch.Tensor, clip: float, *, pairs: bool = True) -> Measured:
        """Distances in units of the clip norm.

        Args:
            features: (records, ...); the attribute's columns are overwritten in a copy.
            labels: (records,).
            clip: clip norm.
            pairs: of all pairs; else to the mean.
        """
        base = self._at_reference(features, labels)
        inputs, errors = self._passes(base, labels)
        sizes = torch.stack([row_squares(base[:, None]).expand(-1, len(self._values)), *map(row_squares, inputs)])
        sizes += self._constants
        squares = torch.stack([row_squares(e) for e in errors])
        factors, norms = clip_factors((sizes * squares).sum(0), clip)
        self.scale = float((sizes.amax(2) * (squares * factors.square()).amax(2)).sum(0).amax())
        errors = [e * factors[:, :, None] for e in errors]
        distances = self._squared if pairs else self._to_mean
        return Measured(distances(inputs, errors, sizes[:, :, self._reference]), norms)

    def _at_reference(self, features: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The records with the value in the middle, (records, features)."""
        flat = features.reshape(len(features), -1)
        if self._loss is None:
            labels_fit(labels, self._layers[-1].linear.out_features)
            if labels.dim() != 1:
                raise ParameterError("labels", tuple(labels.shape), "one class per record")
        if flat.shape[1] != self._layers[0].linear.in_features:
            allowed = f"{self._layers[0].linear.in_features} numbers per record, as the model takes"
            raise ParameterError("features", tuple(features.shape), allowed)
        base = flat.to(self._values.dtype, copy=True)
        base[:, self._columns] = self._values[self._reference]
        return base

    def _squared(self, inputs: list[torch.Tensor], errors: list[torch.Tensor], sizes: torch.Tensor) -> torch.Tensor:
        """Squared distances of all pairs, (records, n, n).

        Args:
            inputs: of all layers but the first, (records, n, width).
            errors: of all layers, clipped.
            sizes: squared lengths of the inputs of the completion in the middle, bias included, (layers, records).
        """
        r = self._reference
        first = Products(self._moved @ self._moved.T, self._input_cross[:, None], sizes[0, :, None, None])
        total = layer_gram(first, centred_products(errors[0], r))
        for k, (a, e) in enumerate(zip(inputs, errors[1:], strict=True), start=1):
            total += linear_gram(a, e, bias=self._biases[k] is not None, reference=r)
        return squared_distances(total)

    def _to_mean(self, inputs: list[torch.Tensor], errors: list[torch.Tensor], sizes: torch.Tensor) -> torch.Tensor:
        """Squared distances to the mean, (records, n); arguments as of ``_squared``."""
        r, records = self._reference, sizes.shape[1]
        moves = [(self._moved.expand(records, -1, -1), self._values[r].expand(records, -1))]
        moves += [(a - a[:, r : r + 1], a[:, r]) for a in inputs]
        parts = [
            squares_to_mean(moved, first, size[:, None], e, r)
            for (moved, first), size, e in zip(moves, sizes, errors, strict=True)
        ]
        return torch.stack(parts).sum(0).clamp_(min=0.0)

    def _passes(self, base: torch.Tensor, labels: torch.Tensor) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """Inputs of all layers but the first, and output errors of all, (records, n, width)."""
        h = linear(base, self._weights[0], self._biases[0])[:, None] + self._shift
        inputs, outputs = [], []
        for k, layer in enumerate(self._layers):
            if k:
                inputs.append(h)
                h = linear(h, self._weights[k], self._biases[k])
            if layer.activation is not None:
                h = _ACTIVATIONS[layer.activation][0](h)
            outputs.append(h)
        e, errors = self._output_errors(h, labels), []
        for k in range(len(self._layers) - 1, -1, -1):
            activation = self._layers[k].activation
            if activation is not None:
                e = _ACTIVATIONS[activation][1](e, outputs[k])
            errors.append(e)
            if k:
                e = e @ self._weights[k]
        return inputs, errors[::-1]

    def _output_errors(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        if self._one_line:
            return math.sqrt(2.0) * (torch.sigmoid(math.sqrt(2.0) * outputs) - labels[:, None, None])
        if self._loss is None:
            return torch.softmax(outputs, dim=2) - one_hot(labels.long(), outputs.shape[2])[:, None]
        with torch.enable_grad():
            leaf = outputs.detach().flatten(0, 1).requires_grad_()
            targets = labels.repeat_interleave(outputs.shape[1], dim=0)
            total = loss_of_each(self._loss(leaf, targets), len(leaf)).sum()
            (e,) = torch.autograd.grad(total, leaf)
        return e.reshape(outputs.shape)


def _cast(bias: torch.Tensor | None, dtype: torch.dtype) -> torch.Tensor | None:
    return None if bias is None else bias.detach().to(dtype)


def _flattens(module: nn.Module) -> bool:
    return type(module) is nn.Flatten and (module.start_dim, module.end_dim) == (1, -1)


def tanh(h: torch.Tensor) -> torch.Tensor:
    """The hyperbolic tangent, in place.

    On few threads numpy's takes a fifth of the time of torch's; its error is one epsilon of itself.
    """
    if h.is_cpu and torch.get_num_threads() <= _FEW_THREADS:
        np.tanh(h.numpy(), out=h.numpy())
        return h
    return torch.tanh_(h)


_ACTIVATIONS: dict[
    type[nn.Module],
    tuple[Callable[[torch.Tensor], torch.Tensor], Callable[[torch.Tensor, torch.Tensor], torch.Tensor]],
] = {
    nn.Tanh: (tanh, torch.ops.aten.tanh_backward),
    nn.ReLU: (torch.relu_, lambda e, h: torch.ops.aten.threshold_backward(e, h, 0.0)),
    nn.Sigmoid: (torch.sigmoid_, torch.ops.aten.sigmoid_backward),
}
"""What an activation does in place; and the error before it, from the error after it and from its *output*."""

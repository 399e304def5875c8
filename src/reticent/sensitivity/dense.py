"""Exact distances for fully connected networks, by hand-written passes over small blocks.

Nothing here calls a module, so no hook fires and no autograd graph is built. The first layer is affine
in the attribute: one product per record serves all values of the attribute. Cross-entropy over two
classes has errors on one line only, so the last layer counts as one output.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import nn

from reticent.errors import ParameterError
from reticent.sensitivity.brute import Loss
from reticent.sensitivity.checks import labels_fit, loss_of_each
from reticent.sensitivity.gram import (
    Measured,
    Workspace,
    centred_products,
    clip_factors,
    linear_gram,
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
        elif type(module) in _BACK and layers and layers[-1].activation is None:
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
        self._work = Workspace(values)
        self.scale = 1.0
        last = layers[-1]
        self._one_line = loss is None and last.linear.out_features == 2 and last.activation is None and len(layers) > 1

    @cached_property
    def _moved_gram(self) -> torch.Tensor:
        return self._moved @ self._moved.T

    @cached_property
    def _input_sum(self) -> torch.Tensor:
        return self._moved_gram + self._input_cross[:, None] + self._input_cross

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
        block = self._prepare(features, labels, clip)
        return Measured(self._squared(block) if pairs else self._to_mean(block), block.norms)

    def _prepare(self, features: torch.Tensor, labels: torch.Tensor, clip: float) -> _Block:
        flat = features.reshape(len(features), -1)
        if self._loss is None:
            labels_fit(labels, self._layers[-1].linear.out_features)
            if labels.dim() != 1:
                raise ParameterError("labels", tuple(labels.shape), "one class per record")
        if flat.shape[1] != self._layers[0].linear.in_features:
            allowed = f"{self._layers[0].linear.in_features} numbers per record, as the model takes"
            raise ParameterError("features", tuple(features.shape), allowed)
        base = self._work.take("base", *flat.shape).copy_(flat)
        base[:, self._columns] = self._values[self._reference]
        norms = self._work.take("norms", 2, len(self._layers), len(base), len(self._values))
        norms[0, 0] = torch.linalg.vector_norm(base, dim=1, keepdim=True)  # while it is in the caches
        inputs, errors, scale = self._passes(base, labels)
        _norms_of(inputs[1:], norms[0, 1:])
        _norms_of(errors, norms[1])
        sizes, squares = norms.square_()
        sizes += self._constants
        square = (sizes * squares).sum(0)
        if scale is None:
            factors, norms = clip_factors(square, clip)
        else:
            factors, norms = clip_factors(square * scale * scale, clip)
            factors *= scale
        self.scale = float((sizes.amax(2) * (squares * factors.square()).amax(2)).sum(0).amax())
        return _Block(inputs[1:], errors, sizes, factors[:, :, None], norms)

    def _squared(self, block: _Block) -> torch.Tensor:
        """Squared distances of all pairs, (records, n, n); inputs and errors of ``block`` are overwritten."""
        r, factors, e = self._reference, block.factors, block.errors[0]
        total = self._work.take("total", len(e), len(self._values), len(self._values))
        total, m, power = centred_products(e, factors, e, total, r)
        side = self._work.take("side", *total.shape)
        total *= torch.add(self._input_sum, block.sizes[0, :, r, None, None], out=side)
        # What is left of the first layer is (m_i + m_j + |e_0|^2) <da_i, da_j> + m_i k_j + k_i m_j.
        total.addcmul_(torch.add(m.transpose(1, 2) + power, m, out=side), self._moved_gram)
        total.addcmul_(m, self._input_cross).addcmul_(m.transpose(1, 2), self._input_cross[:, None])
        for k, (a, e) in enumerate(zip(block.inputs, block.errors[1:], strict=True), start=1):
            total += linear_gram(a, e, factors, self._work, bias=self._biases[k] is not None, reference=r)
        return squared_distances(total)

    def _to_mean(self, block: _Block) -> torch.Tensor:
        """Squared distances to the mean, (records, n); inputs and errors of ``block`` are overwritten."""
        r, records = self._reference, len(block.norms)
        moved, first = self._moved.expand(records, -1, -1), self._values[r].expand(records, -1)
        total = torch.zeros_like(block.norms)
        for k, e in enumerate(block.errors):
            if k:
                first = block.inputs[k - 1][:, r].clone()
                moved = block.inputs[k - 1].sub_(first[:, None])
            # The errors of one line may be one row for all.
            total += squares_to_mean(moved, first, block.sizes[k, :, r, None], e * block.factors, r)
        return total.clamp_(min=0.0)

    def _passes(
        self, base: torch.Tensor, labels: torch.Tensor
    ) -> tuple[list[torch.Tensor], list[torch.Tensor], torch.Tensor | None]:
        """Inputs and output errors (records, n, width) of each layer, errors up to a factor (records, n) or None."""
        shape = (len(base), *self._shift.shape)
        affine = self._product("affine", base[:, None], self._weights[0].T, self._biases[0])
        h = torch.add(affine, self._shift, out=self._work.take("h0", *shape))
        inputs, outputs = [base], []
        for k, layer in enumerate(self._layers):
            if k:
                inputs.append(h)
                h = self._product(f"h{k}", h, self._weights[k].T, self._biases[k])
            if layer.activation is not None:
                h = _ACTIVATE[layer.activation](h)
            outputs.append(h)
        if self._one_line:
            scale = math.sqrt(2.0) * (torch.sigmoid(math.sqrt(2.0) * h[:, :, 0]) - labels[:, None].to(h.dtype))
            return inputs, self._backward(outputs, torch.ones_like(h)), scale
        return inputs, self._backward(outputs, self._output_errors(h, labels)), None

    def _output_errors(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        n = outputs.shape[1]
        if self._loss is None:
            e = torch.softmax(outputs, dim=2, out=self._work.take("softmax", *outputs.shape))
            index = labels[:, None, None].expand(-1, n, 1)
            return e.scatter_add_(2, index, torch.full_like(index, -1, dtype=e.dtype))
        with torch.enable_grad():
            leaf = outputs.detach().flatten(0, 1).requires_grad_()
            total = loss_of_each(self._loss(leaf, labels.repeat_interleave(n, dim=0)), len(leaf)).sum()
            (e,) = torch.autograd.grad(total, leaf)
        # A copy: errors are overwritten, and the gradient of a sum is one number for all.
        return self._work.take("softmax", *outputs.shape).copy_(e.reshape(outputs.shape))

    def _backward(self, outputs: list[torch.Tensor], e: torch.Tensor) -> list[torch.Tensor]:
        errors: list[torch.Tensor] = []
        for k in range(len(self._layers) - 1, -1, -1):
            activation = self._layers[k].activation
            if activation is not None:
                # In place: what is in the caches is written faster than what is not.
                out = e if e.shape == outputs[k].shape else self._work.take(f"e{k}", *outputs[k].shape)
                e = _BACK[activation](outputs[k], e, out)
            errors.append(e)
            if k:
                # The errors of one line start as ones, so the first product is the row of weights itself; what goes
                # back through an activation next takes the shape of its output.
                plain = self._one_line and k == len(self._layers) - 1 and self._layers[k - 1].activation is not None
                e = self._weights[k] if plain else self._product(f"b{k}", e, self._weights[k], None)
        return errors[::-1]

    def _product(self, name: str, x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        out = self._work.take(name, *x.shape[:2], w.shape[1])
        flat = out.view(-1, w.shape[1])
        if bias is None:
            torch.mm(x.flatten(0, 1), w, out=flat)
        else:
            torch.addmm(bias, x.flatten(0, 1), w, out=flat)
        return out


@dataclass(frozen=True)
class _Block:
    """What the passes over a block leave.

    Attributes:
        inputs: of the other layers, (records, n, width).
        errors: of all layers, before clipping.
        sizes: squared norms of the inputs of all layers, bias included, (layers, records, n).
        factors: what clips the errors and divides by the clip norm, (records, n, 1).
        norms: clipped norms, (records, n).
    """

    inputs: list[torch.Tensor]
    errors: list[torch.Tensor]
    sizes: torch.Tensor
    factors: torch.Tensor
    norms: torch.Tensor


def _norms_of(tensors: Sequence[torch.Tensor], out: torch.Tensor) -> None:
    """|x| along the last dimension of each, into a row of ``out``."""
    for x, row in zip(tensors, out, strict=True):
        torch.linalg.vector_norm(x, dim=-1, out=row)


def _cast(bias: torch.Tensor | None, dtype: torch.dtype) -> torch.Tensor | None:
    return None if bias is None else bias.detach().to(dtype)


def _flattens(module: nn.Module) -> bool:
    return type(module) is nn.Flatten and (module.start_dim, module.end_dim) == (1, -1)


def _tanh_back(h: torch.Tensor, e: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    return torch.ops.aten.tanh_backward.grad_input(e, h, grad_input=out)


def _relu_back(h: torch.Tensor, e: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    return torch.ops.aten.threshold_backward.grad_input(e, h, 0.0, grad_input=out)


def _sigmoid_back(h: torch.Tensor, e: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    return torch.ops.aten.sigmoid_backward.grad_input(e, h, grad_input=out)


_BACK: dict[type[nn.Module], Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]] = {
    nn.Tanh: _tanh_back,
    nn.ReLU: _relu_back,
    nn.Sigmoid: _sigmoid_back,
}
"""Error before an activation from its *output*, the error after it (broadcast to it) and where to put the result.

That may be where the error after it lies."""


def tanh(h: torch.Tensor) -> torch.Tensor:
    """The hyperbolic tangent, in place.

    On few threads numpy's takes a fifth of the time of torch's; its error is one epsilon of itself.
    """
    if h.is_cpu and torch.get_num_threads() <= _FEW_THREADS:
        np.tanh(h.numpy(), out=h.numpy())
        return h
    return torch.tanh_(h)


_ACTIVATE: dict[type[nn.Module], Callable[[torch.Tensor], torch.Tensor]] = {
    nn.Tanh: tanh,
    nn.ReLU: torch.relu_,
    nn.Sigmoid: torch.sigmoid_,
}

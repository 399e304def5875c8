"""Exact distances for fully connected networks, by hand-written passes over small blocks.

Nothing here calls a module, so no hook fires and no autograd graph is built. The first layer is affine
in the attribute: one product per record serves all values of the attribute. Cross-entropy over two
classes has errors on one line only, so the last layer counts as one output.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.functional import linear

from reticent.train.sensitivity_gram import (
    Centred,
    Workspace,
    affine_gram,
    affine_radii,
    clip_factors,
    linear_gram,
    squared_distances,
)

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""(outputs (m, ...), targets (m,)) -> each record's own loss, (m,); record k may depend on row k only."""


@dataclass(frozen=True)
class DenseLayer:
    """One linear layer and the activation that follows it, or None."""

    linear: nn.Linear
    activation: type[nn.Module] | None


def dense_layers(model: nn.Module) -> tuple[DenseLayer, ...] | None:
    """The layers of a plain fully connected network with every parameter trained, or None for anything else."""
    if not isinstance(model, nn.Sequential):
        return None
    layers: list[DenseLayer] = []
    for module in model:
        if type(module) is nn.Identity or (_flattens(module) and not layers):
            continue
        if type(module) is nn.Linear and all(p.requires_grad for p in module.parameters()):
            layers.append(DenseLayer(module, None))
        elif type(module) in _SLOPES and layers and layers[-1].activation is None:
            layers[-1] = DenseLayer(layers[-1].linear, type(module))
        else:
            return None
    distinct = {id(p) for layer in layers for p in layer.linear.parameters()}
    return tuple(layers) if layers and len(distinct) == sum(len(list(x.linear.parameters())) for x in layers) else None


class DenseEngine:
    """Products of clipped, centred gradients of all completions of a block of records."""

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
        # A value in the middle is close to all others, so that distances to it prune best.
        self._reference = len(values) // 2
        origin = values[self._reference]
        self._moved = values - origin
        self._input_gram = (self._moved @ self._moved.T)[None]
        self._input_cross = (self._moved @ origin)[None, :, None]
        self._rise = (values * values).sum(1) - (origin * origin).sum()
        self._work = Workspace(values)
        last = layers[-1]
        self._one_line = loss is None and last.linear.out_features == 2 and last.activation is None and len(layers) > 1

    def bytes_per_record(self) -> int:
        """Working memory of one record, an estimate from above."""
        n = len(self._values)
        widths = sum(layer.linear.out_features for layer in self._layers)
        return self._values.element_size() * n * (4 * widths + 6 * n)

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

    def centred_gram(self, features: torch.Tensor, labels: torch.Tensor, clip: float) -> Centred:
        """Products of clipped gradients minus that of a reference completion, in units of the clip norm.

        Args:
            features: (records, ...); the attribute's columns are overwritten in a copy.
            labels: (records,).
            clip: clip norm.
        """
        block = self._prepare(features, labels, clip)
        return Centred(self._gram(block), block.norms)

    def largest_square(self, features: torch.Tensor, labels: torch.Tensor, clip: float, least: float) -> float:
        """Largest squared distance within the block, or ``least`` if none is larger.

        Exact, but products of pairs are taken only for records that the triangle inequality leaves open:
        two completions are no further apart than their distances to the reference together.
        """
        block = self._prepare(features, labels, clip)
        two = self._radii(block).clamp_(min=0.0).sqrt_().topk(min(2, len(self._values)), dim=1).values
        reach = two.sum(1).square_() * (1.0 + 64.0 * torch.finfo(two.dtype).eps)
        best, leader = least, reach.argmax()
        for chosen in (leader[None], None):
            if chosen is None:
                chosen = torch.nonzero(reach > best).squeeze(1)
                chosen = chosen[chosen != leader]
            elif float(reach[leader]) <= best:
                break
            if len(chosen):
                best = max(best, float(squared_distances(self._gram(block.only(chosen))).max()))
        return best

    def _prepare(self, features: torch.Tensor, labels: torch.Tensor, clip: float) -> _Block:
        flat = features.reshape(len(features), -1)
        base = self._work.take("base", *flat.shape).copy_(flat)
        base[:, self._columns] = self._values[self._reference]
        inputs, errors, scale = self._passes(base, labels)
        size = torch.linalg.vector_norm(base, dim=1).square_() + self._has_bias(0)
        square = (size[:, None] + self._rise) * _square(errors[0])
        for k in range(1, len(inputs)):
            square += (_square(inputs[k]) + self._has_bias(k)) * _square(errors[k])
        factors, norms = clip_factors(square * scale * scale, clip)
        factors = (factors * scale)[:, :, None]
        return _Block(size, inputs[1:], [e.mul_(factors) for e in errors], norms)

    def _gram(self, block: _Block) -> torch.Tensor:
        """Products of all pairs; the errors of the block are overwritten."""
        r = self._reference
        size = block.size[:, None, None]
        total = affine_gram(block.errors[0], self._input_gram, self._input_cross, size, self._work, r, out="total")
        for k, (a, e) in enumerate(zip(block.inputs, block.errors[1:], strict=True), start=1):
            total += linear_gram(a, e, self._work, bias=self._biases[k] is not None, reference=r)
        return total

    def _radii(self, block: _Block) -> torch.Tensor:
        """Squared distances to the reference completion, (records, n), rounded up."""
        r = self._reference
        own = self._input_gram.diagonal(dim1=1, dim2=2)
        total = affine_radii(block.errors[0], own, self._input_cross[:, :, 0], block.size[:, None], r)
        for k, (a, e) in enumerate(zip(block.inputs, block.errors[1:], strict=True), start=1):
            first = a[:, r : r + 1]
            power = torch.linalg.vector_norm(first, dim=2).square_()
            cross = torch.bmm(a, first.transpose(1, 2)).squeeze(2) - power
            moved = torch.linalg.vector_norm(a, dim=2).square_() - power - 2.0 * cross
            moved += 16.0 * torch.finfo(a.dtype).eps * (power + moved.abs())
            total += affine_radii(e, moved, cross, power + self._has_bias(k), r)
        return total

    def _passes(
        self, base: torch.Tensor, labels: torch.Tensor
    ) -> tuple[list[torch.Tensor], list[torch.Tensor], torch.Tensor]:
        """Inputs and output errors (records, n, width) of each layer, errors up to a factor (records, n)."""
        shape = (len(base), *self._shift.shape)
        affine = linear(base, self._weights[0], self._biases[0])[:, None, :]
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
        return inputs, self._backward(outputs, self._output_errors(h, labels)), torch.ones_like(h[:, :, 0])

    def _output_errors(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        n = outputs.shape[1]
        if self._loss is None:
            e = torch.softmax(outputs, dim=2)
            index = labels[:, None, None].expand(-1, n, 1)
            return e.scatter_add_(2, index, torch.full_like(index, -1, dtype=e.dtype))
        with torch.enable_grad():
            leaf = outputs.detach().flatten(0, 1).requires_grad_()
            total = self._loss(leaf, labels.repeat_interleave(n, dim=0)).sum()
            (e,) = torch.autograd.grad(total, leaf)
        return e.reshape(outputs.shape)

    def _backward(self, outputs: list[torch.Tensor], e: torch.Tensor) -> list[torch.Tensor]:
        errors: list[torch.Tensor] = []
        for k in range(len(self._layers) - 1, -1, -1):
            activation = self._layers[k].activation
            if activation is not None:
                slope = self._work.take(f"e{k}", *outputs[k].shape)
                e = _SLOPES[activation](outputs[k], slope).mul_(e)
            errors.append(e)
            if k:
                # The errors of one line start as ones, so the first product is the row of weights itself.
                plain = self._one_line and k == len(self._layers) - 1
                e = self._weights[k] if plain else self._product(f"b{k}", e, self._weights[k], None)
        return errors[::-1]

    def _product(self, name: str, x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        out = self._work.take(name, *x.shape[:2], w.shape[1])
        torch.mm(x.flatten(0, 1), w, out=out.view(-1, w.shape[1]))
        return out if bias is None else out.add_(bias)

    def _has_bias(self, k: int) -> float:
        return 0.0 if self._biases[k] is None else 1.0


@dataclass(frozen=True)
class _Block:
    """What the passes over a block leave: squared norms of the first input (with bias), the other inputs,
    the errors with clipping, and the clipped norms."""

    size: torch.Tensor
    inputs: list[torch.Tensor]
    errors: list[torch.Tensor]
    norms: torch.Tensor

    def only(self, chosen: torch.Tensor) -> _Block:
        """A copy with the chosen records."""
        inputs, errors = [a[chosen] for a in self.inputs], [e[chosen] for e in self.errors]
        return _Block(self.size[chosen], inputs, errors, self.norms[chosen])


def _square(x: torch.Tensor) -> torch.Tensor:
    return torch.linalg.vector_norm(x, dim=2).square_()


def _cast(bias: torch.Tensor | None, dtype: torch.dtype) -> torch.Tensor | None:
    return None if bias is None else bias.detach().to(dtype)


def _flattens(module: nn.Module) -> bool:
    return type(module) is nn.Flatten and (module.start_dim, module.end_dim) == (1, -1)


def _tanh_slope(h: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    return torch.addcmul(out.new_ones(()), h, h, value=-1.0, out=out)


def _relu_slope(h: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    return torch.gt(h, 0.0, out=out)


def _sigmoid_slope(h: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    return torch.addcmul(h, h, h, value=-1.0, out=out)


_SLOPES: dict[type[nn.Module], Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    nn.Tanh: _tanh_slope,
    nn.ReLU: _relu_slope,
    nn.Sigmoid: _sigmoid_slope,
}
"""Derivative of an activation, from its *output*."""

_ACTIVATE: dict[type[nn.Module], Callable[[torch.Tensor], torch.Tensor]] = {
    nn.Tanh: torch.tanh_,
    nn.ReLU: torch.relu_,
    nn.Sigmoid: torch.sigmoid_,
}

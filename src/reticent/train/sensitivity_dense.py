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

from reticent.errors import ParameterError
from reticent.train.sensitivity_checks import labels_fit, loss_of_each
from reticent.train.sensitivity_gram import (
    Measured,
    Workspace,
    affine_radii,
    centred_products,
    clip_factors,
    linear_gram,
    moves,
    pair_square,
    rank_one_moves,
    row_squares,
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
        # A value in the middle is close to all others, so that distances to it prune best.
        self._reference = len(values) // 2
        origin = values[self._reference]
        self._moved = values - origin
        self._input_squares = row_squares(self._moved)
        self._input_cross = self._moved @ origin
        self._input_sum = self._moved @ self._moved.T + self._input_cross[:, None] + self._input_cross
        self._rise = (values * values).sum(1) - (origin * origin).sum()
        self._work = Workspace(values)
        last = layers[-1]
        self._one_line = loss is None and last.linear.out_features == 2 and last.activation is None and len(layers) > 1

    def bytes_per_record(self) -> int:
        """Working memory of one record, an estimate from above."""
        n = len(self._values)
        widths = sum(layer.linear.out_features for layer in self._layers)
        return self._values.element_size() * n * (4 * widths + 3 * n)

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

    def measure(self, features: torch.Tensor, labels: torch.Tensor, clip: float) -> Measured:
        """Distances in units of the clip norm.

        Args:
            features: (records, ...); the attribute's columns are overwritten in a copy.
            labels: (records,).
            clip: clip norm.
        """
        block = self._prepare(features, labels, clip)
        return Measured(self._squared(block), block.norms)

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
                best = max(best, float(self._squared(block.only(chosen)).max()))
        return best

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
        inputs, errors, scale = self._passes(base, labels)
        size = row_squares(base) + self._has_bias(0)
        square = (size[:, None] + self._rise) * row_squares(errors[0])
        for k in range(1, len(inputs)):
            square += (row_squares(inputs[k]) + self._has_bias(k)) * row_squares(errors[k])
        if scale is None:
            factors, norms = clip_factors(square, clip)
        else:
            factors, norms = clip_factors(square * scale * scale, clip)
            factors *= scale
        return _Block(size, inputs[1:], errors, factors[:, :, None], norms)

    def _squared(self, block: _Block) -> torch.Tensor:
        """Squared distances of all pairs, (records, n, n)."""
        if len(self._values) == 2:
            return self._squared_pair(block)
        r, factors, x = self._reference, block.factors, self._moved[None]
        total, m, power = centred_products(block.errors[0], factors, self._work, "total", r)
        side = self._work.take("side", *total.shape)
        total *= torch.add(self._input_sum, block.size[:, None, None], out=side)
        # What is left of the first layer is (m_i + m_j + |e_0|^2) <da_i, da_j> + m_i k_j + k_i m_j.
        left = [(m + power) * x + m * self._values[r], x.expand(len(m), -1, -1)]
        right = [left[1], m * self._values]
        for k, (a, e) in enumerate(zip(block.inputs, block.errors[1:], strict=True), start=1):
            bias = self._biases[k] is not None
            if e.shape[2] > 1:
                total += linear_gram(a, e, factors, self._work, bias=bias, reference=r)
                continue
            u = rank_one_moves(a, e, factors, self._work, r)
            total.baddbmm_(u, u.transpose(1, 2))
            if bias:
                s = moves(e, factors, torch.empty_like(e), r)
                left.append(s)
                right.append(s)
        return squared_distances(total, left, right)

    def _squared_pair(self, block: _Block) -> torch.Tensor:
        """The only pair of two completions: no products of pairs at all."""
        r, o = self._reference, 1 - self._reference
        e = block.errors[0]
        square = pair_square(
            e[:, o] * block.factors[:, o],
            e[:, r] * block.factors[:, r],
            self._input_squares[o],
            self._input_cross[o],
            block.size,
        )
        for k, (a, e) in enumerate(zip(block.inputs, block.errors[1:], strict=True), start=1):
            first, moved = a[:, r], a[:, o] - a[:, r]
            square += pair_square(
                e[:, o] * block.factors[:, o],
                e[:, r] * block.factors[:, r],
                row_squares(moved),
                (moved * first).sum(1),
                row_squares(first) + self._has_bias(k),
            )
        squared = square.new_zeros(len(square), 2, 2)
        squared[:, o, r] = squared[:, r, o] = square.clamp_(min=0.0)
        return squared

    def _radii(self, block: _Block) -> torch.Tensor:
        """Squared distances to the reference completion, (records, n), rounded up."""
        r = self._reference
        e = [error * block.factors for error in block.errors]
        total = affine_radii(e[0], self._input_squares[None], self._input_cross[None], block.size[:, None], r)
        for k, a in enumerate(block.inputs, start=1):
            first = a[:, r : r + 1]
            power = row_squares(first)
            cross = torch.bmm(a, first.transpose(1, 2)).squeeze(2) - power
            moved = row_squares(a) - power - 2.0 * cross
            moved += 16.0 * torch.finfo(a.dtype).eps * (power + moved.abs())
            total += affine_radii(e[k], moved, cross, power + self._has_bias(k), r)
        return total

    def _passes(
        self, base: torch.Tensor, labels: torch.Tensor
    ) -> tuple[list[torch.Tensor], list[torch.Tensor], torch.Tensor | None]:
        """Inputs and output errors (records, n, width) of each layer, errors up to a factor (records, n) or None."""
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
        return inputs, self._backward(outputs, self._output_errors(h, labels)), None

    def _output_errors(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        n = outputs.shape[1]
        if self._loss is None:
            e = torch.softmax(outputs, dim=2)
            index = labels[:, None, None].expand(-1, n, 1)
            return e.scatter_add_(2, index, torch.full_like(index, -1, dtype=e.dtype))
        with torch.enable_grad():
            leaf = outputs.detach().flatten(0, 1).requires_grad_()
            total = loss_of_each(self._loss(leaf, labels.repeat_interleave(n, dim=0)), len(leaf)).sum()
            (e,) = torch.autograd.grad(total, leaf)
        return e.reshape(outputs.shape)

    def _backward(self, outputs: list[torch.Tensor], e: torch.Tensor) -> list[torch.Tensor]:
        errors: list[torch.Tensor] = []
        for k in range(len(self._layers) - 1, -1, -1):
            activation = self._layers[k].activation
            if activation is not None:
                e = _BACK[activation](outputs[k], e, self._work.take(f"e{k}", *outputs[k].shape))
            errors.append(e)
            if k:
                # The errors of one line start as ones, so the first product is the row of weights itself.
                plain = self._one_line and k == len(self._layers) - 1
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

    def _has_bias(self, k: int) -> float:
        return 0.0 if self._biases[k] is None else 1.0


@dataclass(frozen=True)
class _Block:
    """What the passes over a block leave: squared norms of the first input (with bias), the other inputs,
    the errors, the factors (records, n, 1) that clip them, and the clipped norms."""

    size: torch.Tensor
    inputs: list[torch.Tensor]
    errors: list[torch.Tensor]
    factors: torch.Tensor
    norms: torch.Tensor

    def only(self, chosen: torch.Tensor) -> _Block:
        """A copy with the chosen records."""
        inputs, errors = [a[chosen] for a in self.inputs], [e[chosen] for e in self.errors]
        return _Block(self.size[chosen], inputs, errors, self.factors[chosen], self.norms[chosen])


def _cast(bias: torch.Tensor | None, dtype: torch.dtype) -> torch.Tensor | None:
    return None if bias is None else bias.detach().to(dtype)


def _flattens(module: nn.Module) -> bool:
    return type(module) is nn.Flatten and (module.start_dim, module.end_dim) == (1, -1)


def _tanh_back(h: torch.Tensor, e: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    return torch.addcmul(e, torch.mul(e, h, out=out), h, value=-1.0, out=out)


def _relu_back(h: torch.Tensor, e: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    return torch.gt(h, 0.0, out=out).mul_(e)


def _sigmoid_back(h: torch.Tensor, e: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    return torch.addcmul(h, h, h, value=-1.0, out=out).mul_(e)


_BACK: dict[type[nn.Module], Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]] = {
    nn.Tanh: _tanh_back,
    nn.ReLU: _relu_back,
    nn.Sigmoid: _sigmoid_back,
}
"""Error before an activation from its *output*, the error after it (broadcast to it) and where to put the result."""

_ACTIVATE: dict[type[nn.Module], Callable[[torch.Tensor], torch.Tensor]] = {
    nn.Tanh: torch.tanh_,
    nn.ReLU: torch.relu_,
    nn.Sigmoid: torch.sigmoid_,
}

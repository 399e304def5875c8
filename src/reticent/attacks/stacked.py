"""K fully connected networks of one architecture as one computation.

Parameters are stacked along a first axis, so that one batched product does the work of K small ones, and gradients per
record cost almost nothing. It computes the sum over the batch of weighted, clipped per-record gradients of the
cross-entropy, which is what DP-SGD of :mod:`reticent.training` computes for one model.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from reticent.errors import UnsupportedError
from reticent.sensitivity.gram import Workspace

_CLIP_MARGIN = 1e-6
"""Added to a norm before dividing, as Opacus does."""


def rows_in(work: Workspace, pool: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """``pool[index]`` for a rectangle of positions, in memory that is used again in every step."""
    out = work.take("rows", index.numel(), *pool.shape[1:])
    torch.index_select(pool, 0, index.reshape(-1), out=out)
    return out.view(*index.shape, *pool.shape[1:])


class StackedMLP:
    """Fully connected networks: Linear layers with ReLU or Tanh between them.

    Attributes:
        parameters: one tensor of shape (K, ...) for each of the model's parameters, in the model's order.

    Raises:
        UnsupportedError: other layers than Linear, ReLU and Tanh.
    """

    parameters: list[torch.Tensor]

    def __init__(self, modules: Sequence[nn.Module]) -> None:
        """At least one module, all of one architecture. Their weights are copied."""
        if not is_mlp(modules[0]):
            raise UnsupportedError("StackedMLP takes Linear layers with ReLU or Tanh between them")
        layers = [[layer for layer in module.modules() if isinstance(layer, nn.Linear)] for module in modules]
        self._weights = [_stacked([m[i].weight for m in layers]) for i in range(len(layers[0]))]
        self._biases = [_stacked([m[i].bias for m in layers]) for i in range(len(layers[0]))]
        self._tanh = any(isinstance(layer, nn.Tanh) for layer in modules[0].modules())
        self._work = Workspace(self._weights[0])
        self.parameters = [p for pair in zip(self._weights, self._biases, strict=True) for p in pair]

    @torch.no_grad()
    def add_gradients(
        self, features: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor, max_grad_norm: float | None
    ) -> None:
        """Set ``.grad`` of every parameter to the sum of weighted, clipped per-record gradients.

        Args:
            features: shape (K, batch, ...).
            labels: shape (K, batch).
            weights: shape (K, batch); 0 leaves a record out.
            max_grad_norm: clip norm of one record's whole gradient; None clips nothing.
        """
        inputs, output = self._forward(features.flatten(2).mT, self._work)
        errors = [torch.softmax(output, dim=1)]
        errors[0].scatter_(1, labels.unsqueeze(1), -1.0, reduce="add")
        factor = weights.unsqueeze(1)
        if max_grad_norm is None:
            errors[0].mul_(factor)
        for weight, hidden in zip(reversed(self._weights[1:]), reversed(inputs[1:]), strict=True):
            error = self._work.take(f"error {len(errors)}", *hidden.shape)
            torch.bmm(weight.mT, errors[-1], out=error)
            errors.append(self._through_activation(error, hidden))
        errors.reverse()
        if max_grad_norm is not None:
            factor = factor * _clip_factor(self._squared_norms(inputs, errors), max_grad_norm).unsqueeze(1)
            for error in errors:
                error.mul_(factor)
        for weight, bias, x, e in zip(self._weights, self._biases, inputs, errors, strict=True):
            # The sum first: it finds the errors in the cache.
            bias.grad = _into(bias.grad, bias)
            torch.sum(e, dim=2, out=bias.grad)
            weight.grad = _into(weight.grad, weight)
            torch.bmm(e, x.mT, out=weight.grad)

    @torch.no_grad()
    def logits(self, features: torch.Tensor) -> torch.Tensor:
        """Logits of the same records under every model: (records, ...) to (K, records, classes)."""
        flat = features.flatten(1).T
        return self._forward(flat.expand(len(self._weights[0]), *flat.shape), Workspace(self._weights[0]))[1].mT

    def _forward(self, x: torch.Tensor, work: Workspace) -> tuple[list[torch.Tensor], torch.Tensor]:
        """Inputs of all layers, and logits; records are columns, which suits weights and few classes best."""
        inputs = [x]
        for layer, (weight, bias) in enumerate(zip(self._weights, self._biases, strict=True)):
            z = work.take(f"output {layer}", *weight.shape[:2], x.shape[2])
            torch.baddbmm(bias.unsqueeze(2), weight, inputs[-1], out=z)
            if layer < len(self._weights) - 1:
                inputs.append(z.tanh_() if self._tanh else z.relu_())
        return inputs, z

    def _through_activation(self, error: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        """The error before the activation, in place: one fused pass and no fresh memory."""
        if self._tanh:
            return torch.ops.aten.tanh_backward.grad_input(error, hidden, grad_input=error)
        return torch.ops.aten.threshold_backward.grad_input(error, hidden, 0, grad_input=error)

    @staticmethod
    def _squared_norms(inputs: list[torch.Tensor], errors: list[torch.Tensor]) -> torch.Tensor:
        """||gradient||^2 per record: a Linear layer's is (||x||^2 + 1) ||e||^2, the 1 for the bias."""
        parts = [(x.square().sum(1) + 1.0) * e.square().sum(1) for x, e in zip(inputs, errors, strict=True)]
        return torch.stack(parts).sum(dim=0)


def _clip_factor(squared_norms: torch.Tensor, max_grad_norm: float) -> torch.Tensor:
    return (max_grad_norm / (squared_norms.sqrt() + _CLIP_MARGIN)).clamp(max=1.0)


def _into(old: torch.Tensor | None, like: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(like) if old is None else old


def _stacked(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.stack([t.detach() for t in tensors]).contiguous()


def is_mlp(module: nn.Module) -> bool:
    """A Sequential of Flatten, then Linear layers with biases, one kind of activation between each two."""
    if not isinstance(module, nn.Sequential):
        return False
    layers = [layer for layer in module if not isinstance(layer, nn.Flatten)]
    kinds = {type(layer) for layer in layers[1::2]}
    linear = all(type(layer) is nn.Linear and layer.bias is not None for layer in layers[0::2])
    return len(layers) % 2 == 1 and linear and len(kinds) <= 1 and kinds <= {nn.ReLU, nn.Tanh}

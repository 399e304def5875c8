"""K fully connected networks of one architecture as one computation.

Parameters are stacked along a first axis, so that one batched product does the work of K small ones, and gradients per
record cost almost nothing. It computes the sum over the batch of weighted, clipped per-record gradients of the
cross-entropy, which is what DP-SGD of :mod:`reticent.training` computes for one model.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from reticent.kernel.errors import UnsupportedError

_CLIP_MARGIN = 1e-6
"""Added to a norm before dividing, as Opacus does."""


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
        inputs, output = self._forward(features.flatten(2).mT)
        errors = [torch.softmax(output, dim=1)]
        errors[0].scatter_(1, labels.unsqueeze(1), -1.0, reduce="add")
        for weight, hidden in zip(reversed(self._weights[1:]), reversed(inputs[1:]), strict=True):
            errors.append(self._before_activation(torch.bmm(weight.mT, errors[-1]), hidden))
        errors.reverse()
        factor = weights.unsqueeze(1)
        if max_grad_norm is not None:
            factor = factor * _clip_factor(self._squared_norms(inputs, errors), max_grad_norm).unsqueeze(1)
        for weight, bias, x, e in zip(self._weights, self._biases, inputs, errors, strict=True):
            clipped = e.mul_(factor)
            bias.grad, weight.grad = clipped.sum(dim=2), torch.bmm(clipped, x.mT)

    @torch.no_grad()
    def logits(self, features: torch.Tensor) -> torch.Tensor:
        """Logits of the same records under every model: (records, ...) to (K, records, classes)."""
        flat = features.flatten(1).T
        return self._forward(flat.expand(len(self._weights[0]), *flat.shape))[1].mT

    def _forward(self, x: torch.Tensor) -> tuple[list[torch.Tensor], torch.Tensor]:
        """Inputs of all layers, and logits; records are columns, which suits weights and few classes best."""
        inputs = [x]
        for weight, bias in zip(self._weights, self._biases, strict=True):
            z = torch.baddbmm(bias.unsqueeze(2), weight, inputs[-1])
            if len(inputs) < len(self._weights):
                inputs.append(z.tanh_() if self._tanh else z.relu_())
        return inputs, z

    def _before_activation(self, error: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        if self._tanh:
            return torch.ops.aten.tanh_backward(error, hidden)
        return torch.ops.aten.threshold_backward(error, hidden, 0)

    @staticmethod
    def _squared_norms(inputs: list[torch.Tensor], errors: list[torch.Tensor]) -> torch.Tensor:
        """||gradient||^2 per record: a Linear layer's is (||x||^2 + 1) ||e||^2, the 1 for the bias."""
        parts = [(x.square().sum(1) + 1.0) * e.square().sum(1) for x, e in zip(inputs, errors, strict=True)]
        return torch.stack(parts).sum(dim=0)


def _clip_factor(squared_norms: torch.Tensor, max_grad_norm: float) -> torch.Tensor:
    return (max_grad_norm / (squared_norms.sqrt() + _CLIP_MARGIN)).clamp(max=1.0)


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

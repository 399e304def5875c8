"""Clipped sums of models of linear layers, without one gradient per record in memory.

The gradient of a linear layer for one record is the outer product of what goes in (a) and of the gradient of what comes
out (g), so its squared norm is |g|^2 (|a|^2 + 1), the 1 for the bias, and a weighted sum over records is one product of
matrices. One backward pass to the outputs of the layers is enough; memory grows with inputs and outputs, not with
records times parameters.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.functional import cross_entropy, one_hot, softmax

_INSIDE = 1.0 - 2.0**-20
"""Keeps what rounding adds to a length inside the clip norm."""


def unit_rows(rows: torch.Tensor) -> torch.Tensor:
    """Each row over its length, however short; a row of zeros as it is."""
    largest = rows.abs().amax(dim=1, keepdim=True)
    scaled = rows / torch.where(largest > 0.0, largest, 1.0)
    return scaled / torch.where(largest > 0.0, torch.linalg.vector_norm(scaled, dim=1, keepdim=True), 1.0)


@dataclass(frozen=True)
class LinearModel:
    """A model whose trainable parameters all belong to linear layers that see one vector per record, once.

    Attributes:
        model: the bare module.
        layers: its trainable layers.
    """

    model: nn.Module
    layers: tuple[nn.Linear, ...]

    @classmethod
    def of(cls, model: nn.Module, features: torch.Tensor) -> LinearModel | None:
        """``model`` in this form, or None where it has another one.

        Args:
            features: some records, at least one; a first pass shows what each layer sees.
        """
        owners = [m for m in model.modules() if any(p.requires_grad for p in m.parameters(recurse=False))]
        layers = tuple(m for m in owners if type(m) is nn.Linear and all(p.requires_grad for p in m.parameters()))
        parameters = [p for layer in layers for p in layer.parameters()]
        if len(layers) != len(owners) or len({id(p) for p in parameters}) != len(parameters):
            return None
        found = cls(model, layers)
        with torch.random.fork_rng(devices=[]):
            _, inputs, _ = found._forward(features[:2])
        fit = all(len(inputs[layer]) == 1 and inputs[layer][0].ndim == 2 for layer in layers)
        return found if fit else None

    def clipped(
        self, features: torch.Tensor, labels: torch.Tensor, max_grad_norm: float
    ) -> tuple[torch.Tensor, dict[torch.Tensor, torch.Tensor]]:
        """Norms of the records' gradients before clipping, and the sum of the clipped gradients by parameter.

        Each gradient is scaled by min(1, max_grad_norm / (norm + 1e-6)), as Opacus does.
        """
        logits, inputs, outputs = self._forward(features)
        loss = cross_entropy(logits, labels, reduction="sum")
        gradients = torch.autograd.grad(loss, [outputs[layer][0] for layer in self.layers])
        squares = torch.zeros(len(labels), device=labels.device)
        for layer, g in zip(self.layers, gradients, strict=True):
            bias = 0.0 if layer.bias is None else 1.0
            lengths = torch.linalg.vector_norm(inputs[layer][0], dim=1)
            squares += g.square().sum(dim=1) * (lengths.square() + bias)
        norms = squares.sqrt()
        factors = (max_grad_norm / (norms + 1e-6)).clamp(max=1.0)[:, None]
        sums: dict[torch.Tensor, torch.Tensor] = {}
        for layer, g in zip(self.layers, gradients, strict=True):
            clipped = factors * g
            sums[layer.weight] = clipped.T @ inputs[layer][0]
            if layer.bias is not None:
                sums[layer.bias] = clipped.sum(dim=0)
        return norms, sums

    def normalised(
        self, features: torch.Tensor, labels: torch.Tensor, max_grad_norm: float
    ) -> tuple[torch.Tensor, dict[torch.Tensor, torch.Tensor]]:
        """Norms of the records' gradients, and the sum of gradients that all have ``max_grad_norm``, by parameter.

        For one layer whose outputs are the logits, and one right label for each record. Directions are computed in
        closed form, so no gradient is too small to have one: features over their length, times the softmax of the wrong
        labels less the right one, over its length. With two labels the latter is (1, -1) or (-1, 1) over sqrt(2)
        whatever the weights are, and each record adds one and the same vector in every step. Features that are zero,
        without a bias, have no direction and add nothing.
        """
        (layer,) = self.layers
        with torch.no_grad():
            logits, inputs, _ = self._forward(features)
            rows = inputs[layer][0].double()
            if layer.bias is not None:
                rows = torch.cat([rows, torch.ones_like(rows[:, :1])], dim=1)
            one = one_hot(labels, logits.shape[1]).double()
            norms = torch.linalg.vector_norm(softmax(logits.double(), dim=1) - one, dim=1)
            norms = norms * torch.linalg.vector_norm(rows, dim=1)
            wrong = softmax(logits.double().masked_fill(one > 0.0, -torch.inf), dim=1)
            errors = unit_rows(wrong - one) * (max_grad_norm * _INSIDE)
            total = errors.T.to(logits.dtype) @ unit_rows(rows).to(logits.dtype)
        sums: dict[torch.Tensor, torch.Tensor] = {layer.weight: total[:, : layer.in_features]}
        if layer.bias is not None:
            sums[layer.bias] = total[:, -1]
        return norms.to(logits.dtype), sums

    def _forward(
        self, features: torch.Tensor
    ) -> tuple[torch.Tensor, dict[nn.Module, list[torch.Tensor]], dict[nn.Module, list[torch.Tensor]]]:
        """Logits, and what goes into and comes out of each layer, one entry a call."""
        inputs: dict[nn.Module, list[torch.Tensor]] = {layer: [] for layer in self.layers}
        outputs: dict[nn.Module, list[torch.Tensor]] = {layer: [] for layer in self.layers}

        def remember(layer: nn.Module, given: tuple[torch.Tensor, ...], result: torch.Tensor) -> None:
            inputs[layer].append(given[0].detach())
            outputs[layer].append(result)

        handles = [layer.register_forward_hook(remember) for layer in self.layers]
        try:
            return self.model(features), inputs, outputs
        finally:
            for handle in handles:
                handle.remove()

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
from torch.nn.functional import cross_entropy


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
            model: what is to be trained.
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
            sums[layer.weight] = (factors * g).T @ inputs[layer][0]
            if layer.bias is not None:
                sums[layer.bias] = (factors * g).sum(dim=0)
        return norms, sums

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

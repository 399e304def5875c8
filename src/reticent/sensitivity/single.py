"""The slowest engine, for models that no other can follow: one backward pass per completion."""

from __future__ import annotations

import torch
from torch import nn

from reticent.sensitivity.brute import Loss, borrowed, complete, cross_entropy, gradients
from reticent.sensitivity.gram import (
    Measured,
    clip_factors,
    explicit_gram,
    explicit_squares_to_mean,
    row_squares,
    squared_distances,
)


class SingleEngine:
    """Distances between clipped gradients, from the gradients themselves."""

    scale = 1.0  # no product of an input and an error of two completions is formed

    def __init__(self, model: nn.Module, loss: Loss | None, columns: torch.Tensor, values: torch.Tensor) -> None:
        """Prepare; arguments as for ``LayeredEngine``."""
        self._model, self._loss, self._columns, self._values = model, loss or cross_entropy, columns, values
        self._parameters = sum(p.numel() for p in model.parameters() if p.requires_grad)

    def on(self, chosen: torch.Tensor) -> SingleEngine:
        """The same for some of the values."""
        return SingleEngine(self._model, self._loss, self._columns, self._values[chosen])

    def bytes_per_record(self, *, pairs: bool = True) -> int:
        """Working memory of one record."""
        return 3 * self._values.element_size() * len(self._values) * self._parameters

    def refresh(self) -> None:
        """Nothing is kept between steps."""

    def measure(self, features: torch.Tensor, labels: torch.Tensor, clip: float, *, pairs: bool = True) -> Measured:
        """Distances in units of the clip norm, of pairs or to the mean."""
        n = len(self._values)
        x = complete(features, self._columns, self._values)
        with borrowed(self._model, self._values.dtype):
            _, g = gradients(self._model, self._loss, x, labels.repeat_interleave(n, dim=0))
        g = g.reshape(len(features), n, -1)
        scale, norms = clip_factors(row_squares(g), clip)
        squared = squared_distances(explicit_gram(g, scale)) if pairs else explicit_squares_to_mean(g, scale)
        return Measured(squared, norms)

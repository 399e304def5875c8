"""The slowest engine, for models that no other can follow: one backward pass per completion."""

from __future__ import annotations

import torch
from torch import nn

from reticent.sensitivity.brute import Loss, borrowed, complete, cross_entropy, gradients
from reticent.sensitivity.factors import Explicit, measured
from reticent.sensitivity.gram import Measured, clip_factors


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
        targets = labels.repeat_interleave(len(self._values), dim=0)
        with borrowed(self._model, self._values.dtype):
            _, g = gradients(self._model, self._loss, complete(features, self._columns, self._values), targets)
        found = Explicit(g, len(features))
        return measured([found], *clip_factors(found.squared_norms().view(len(features), -1), clip), pairs=pairs)

"""Several random views of each image, whose gradients are averaged before clipping: augmentation multiplicity.

De et al., "Unlocking high-accuracy differentially private image classification through scale", 2022.

The mean is clipped as one gradient. So a record still moves the sum by at most one clip norm, whatever the number of
views, and the guarantee is that of a run without augmentation. Views depend on one record and on random numbers that
no record shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from pydantic import ValidationError
from torch import nn
from torch.nn.functional import pad

from reticent.io.models import refused
from reticent.kernel.errors import ParameterError
from reticent.training.config import AugmentationConfig
from reticent.training.randomness import Source


class Augmentation(AugmentationConfig):
    """Random views of images, drawn and averaged.

    Raises:
        ParameterError: a number is outside its domain, or there is no such setting.
    """

    def __init__(self, **settings: Any) -> None:
        try:
            super().__init__(**settings)
        except ValidationError as error:
            raise refused(error) from None

    def check(self, features: torch.Tensor) -> None:
        """Raises ParameterError unless these are images of shape (records, channels, h, w), larger than the crop."""
        if features.ndim != 4 or min(features.shape[2:]) <= self.crop:
            allowed = f"left out: it is for images, more than {self.crop} pixels wide and high"
            raise ParameterError("augmentation", tuple(features.shape[1:]), allowed, shown=False)

    def draw(self, source: Source, records: int) -> torch.Tensor:
        """What makes the views of a step: float64 (records, times, 3) in [0, 1)."""
        draws = source.uniform(records * self.times * 3 if self.flips or self.crop else 0)
        return torch.from_numpy(draws.copy()).view(records, -1, 3) if len(draws) else torch.zeros(records, 1, 3)

    def views(self, images: torch.Tensor, draws: torch.Tensor) -> torch.Tensor:
        """Shape (records * times, channels, h, w): the views of one record are neighbours.

        Args:
            images: shape (records, channels, h, w).
            draws: of ``draw``, the rows of these records.
        """
        height, width = images.shape[2:]
        mirror, down, right = (
            draws.expand(-1, self.times, 3).reshape(-1, 3).to(images.device, non_blocking=True).unbind(dim=1)
        )
        many = images.repeat_interleave(self.times, dim=0)
        if self.flips:
            many = torch.where((mirror < 0.5)[:, None, None, None], many.flip(-1), many)
        if not self.crop:
            return many
        moved = pad(many, (self.crop,) * 4, mode="reflect")
        places = 2 * self.crop + 1
        rows = (down * places).long()[:, None] + torch.arange(height, device=images.device)
        columns = (right * places).long()[:, None] + torch.arange(width, device=images.device)
        which = torch.arange(len(many), device=images.device)[:, None, None]
        return moved.permute(0, 2, 3, 1)[which, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2).contiguous()

    def average(self, parameters: Sequence[nn.Parameter]) -> None:
        """Turn the gradient of each view, which Opacus left, into the mean gradient of each record."""
        for p in parameters:
            found: torch.Tensor = p.grad_sample  # type: ignore[attr-defined]
            p.grad_sample = found.view(-1, self.times, *found.shape[1:]).mean(dim=1)  # type: ignore[attr-defined]

    @property
    def note(self) -> str:
        """One sentence for the ledger."""
        kinds = [*(["mirrored"] if self.flips else []), *([f"moved by up to {self.crop}"] if self.crop else [])]
        how = ", ".join(kinds) or "unchanged"
        return f"Augmentation: {self.times} views of each record ({how}); their mean gradient is clipped as one."

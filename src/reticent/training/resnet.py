"""ResNet-9 for private training: group normalisation looks at one record at a time, batch normalisation does not.

After Klause et al., "Differentially private training of residual networks with scale normalisation", 2022. Filters may
be standardised: Qiao et al., "Micro-batch training with batch-channel normalization and weight standardization", 2019.
"""

from __future__ import annotations

import torch
from torch import nn

from reticent.kernel.errors import ParameterError
from reticent.training.config_models import Activation, ResNet9Config


class ResNet9(nn.Module):
    """Eight convolutions in two residual stages, and one linear layer.

    With width 64, 3 channels and 10 classes there are 2,440,266 parameters.
    """

    def __init__(self, config: ResNet9Config, feature_shape: tuple[int, ...], classes: int) -> None:
        super().__init__()
        if len(feature_shape) != 3 or min(feature_shape[1:]) < 8:
            raise ParameterError("model.kind", "resnet9", "logistic or mlp: it is for images of 8 x 8 pixels and more")
        first, second, third = (config.width * times for times in (1, 2, 4))
        self.stem = nn.Sequential(_block(config, feature_shape[0], first), _block(config, first, second, pool=True))
        self.middle = nn.Sequential(_block(config, second, second), _block(config, second, second))
        self.down = nn.Sequential(_block(config, second, third, pool=True), _block(config, third, third, pool=True))
        self.last = nn.Sequential(_block(config, third, third), _block(config, third, third))
        self.head = nn.Sequential(nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(third, classes))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Logits, shape (records, classes)."""
        found = self.stem(images)
        found = self.down(found + self.middle(found))
        return self.head(found + self.last(found))


class StandardisedConv2d(nn.Conv2d):
    """A convolution whose filters are moved to mean 0 and scaled to length 1 before use."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """As ``nn.Conv2d``."""
        centred = self.weight - self.weight.mean(dim=(1, 2, 3), keepdim=True)
        variance = centred.square().mean(dim=(1, 2, 3), keepdim=True)
        return self._conv_forward(images, centred / (variance * centred[0].numel() + 1e-5).sqrt(), self.bias)


def activated(kind: Activation) -> nn.Module:
    """The layer of a non-linearity."""
    return nn.ReLU() if kind is Activation.RELU else nn.Tanh()


def _block(config: ResNet9Config, inputs: int, outputs: int, *, pool: bool = False) -> nn.Sequential:
    kind = StandardisedConv2d if config.standardised else nn.Conv2d
    layers = [
        kind(inputs, outputs, kernel_size=3, padding=1, bias=False),
        nn.GroupNorm(config.groups, outputs),
        activated(config.activation),
    ]
    return nn.Sequential(*layers, *([nn.MaxPool2d(2)] if pool else []))

"""Which model, in a configuration."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, model_validator

from reticent.io.models import Closed, Width


class Activation(StrEnum):
    """Non-linearity between layers."""

    RELU = "relu"
    TANH = "tanh"


class LogisticConfig(Closed):
    """One linear layer.

    Attributes:
        bias: train a bias too. It lies in coordinates that everybody knows, so without it more can be proven.
    """

    kind: Literal["logistic"]
    bias: bool = True


class MlpConfig(Closed):
    """Fully connected layers."""

    kind: Literal["mlp"]
    widths: Annotated[tuple[Width, ...], Field(min_length=1, max_length=16)]
    activation: Activation = Activation.TANH


class ConvNetConfig(Closed):
    """Convolutions 3 x 3 with stride 2, average pooling, one linear layer; for features (channels, h, w)."""

    kind: Literal["convnet"]
    channels: Annotated[tuple[Width, ...], Field(min_length=1, max_length=8)] = (16, 32)
    activation: Activation = Activation.TANH


class ResNet9Config(Closed):
    """ResNet-9 with group normalisation; see ``reticent.training.resnet``.

    Attributes:
        width: channels of the first layer; later ones have two and four times as many.
        groups: of channels that are normalised together; divides ``width``.
        standardised: filters have mean 0 and length 1.
        activation: after each normalisation.
    """

    kind: Literal["resnet9"]
    width: Annotated[int, Field(ge=1, le=1024)] = 64
    groups: Annotated[int, Field(ge=1, le=1024)] = 16
    standardised: bool = False
    activation: Activation = Activation.RELU

    @model_validator(mode="after")
    def _groups_divide(self) -> ResNet9Config:
        if self.width % self.groups:
            raise ValueError("groups must divide width")
        return self


class CustomConfig(Closed):
    """A model of the user's own: ``model: package.module:Class`` in a configuration.

    Attributes:
        name: ``package.module:Class``, called with the shape of one record's features and the number of classes.
            Training imports the module, so its code runs; opening somebody else's run does not.
    """

    kind: Literal["custom"] = "custom"
    name: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*$", max_length=300)]


ModelConfig = Annotated[
    LogisticConfig | MlpConfig | ConvNetConfig | ResNet9Config | CustomConfig, Field(discriminator="kind")
]

"""The models that a configuration can name."""

from __future__ import annotations

import math
import pkgutil
from collections.abc import Iterator, Sequence
from itertools import pairwise

import torch
from opacus.grad_sample import GradSampleModule
from opacus.validators import ModuleValidator
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy

from reticent.kernel.errors import ParameterError, UnsupportedError
from reticent.training.config_models import (
    Activation,
    ConvNetConfig,
    CustomConfig,
    LogisticConfig,
    MlpConfig,
    ModelConfig,
    ResNet9Config,
)
from reticent.training.resnet import ResNet9, activated


def build_model(
    config: ModelConfig,
    feature_shape: tuple[int, ...],
    classes: int,
    seed: int,
) -> nn.Module:
    """A model with fresh weights drawn from ``seed``; torch's global random state is left as it was.

    Args:
        feature_shape: shape of one record's features; flattened where the model needs vectors.
        classes: number of outputs (logits).
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return _build(config, feature_shape, classes)


def trained_parameters(model: nn.Module) -> int:
    """How many coordinates are trained."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def record_gradients(
    model: nn.Module, weights: dict[str, torch.Tensor], *records: torch.Tensor, chunk: int, randomness: str = "error"
) -> Iterator[torch.Tensor]:
    """Gradients of single records' cross-entropy, flat: shape (records, coordinates), ``chunk`` records at a time.

    Args:
        weights: of the trained parameters by name; what else the model has stays as it is.
        records: features and labels.
        randomness: what becomes of random numbers that the model draws, as ``torch.func.vmap`` takes it.

    Raises:
        RuntimeError: the model draws some, and they are an error.
    """

    def loss(weights: dict[str, torch.Tensor], row: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        return cross_entropy(functional_call(model, weights, (row[None],)), label[None])

    each = vmap(grad(loss), in_dims=(None, 0, 0), randomness=randomness)
    for some in zip(*(part.split(chunk) for part in records), strict=True):
        found = each(weights, *some)
        yield torch.cat([found[name].flatten(1) for name in weights], dim=1)


def check_private_model(model: nn.Module, features: torch.Tensor) -> None:
    """Refuse models whose per-record gradients do not exist.

    Args:
        features: some records, at least one; the first four are used.

    Raises:
        UnsupportedError: a layer mixes the records of a batch (BatchNorm, or any layer that makes the output
            for one record depend on another, seen on ``features`` in evaluation mode), a trainable layer
            holds buffers, or nothing is trainable.
    """
    training = model.training
    model.train()
    problems = [*ModuleValidator.validate(model, strict=False), *GradSampleModule.validate(model, strict=False)]
    model.train(training)
    if problems:
        raise UnsupportedError(f"DP-SGD cannot train this model: {' '.join(str(problems[0]).split())}")
    if not any(p.requires_grad for p in model.parameters()):
        raise UnsupportedError("DP-SGD cannot train this model: it has no trainable parameters")
    if _mixes_records(model, features[:4]):
        raise UnsupportedError("DP-SGD cannot train this model: its output for one record depends on the others")


def _mixes_records(model: nn.Module, features: torch.Tensor) -> bool:
    training = model.training
    model.eval()
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        together = model(features)
        alone = torch.cat([model(record[None]) for record in features])
    model.train(training)
    scale = 1.0 + float(alone.abs().max())
    return together.shape != alone.shape or not bool((together - alone).abs().max() <= 1e-3 * scale)


def _build(config: ModelConfig, feature_shape: tuple[int, ...], classes: int) -> nn.Module:
    inputs = math.prod(feature_shape)
    match config:
        case CustomConfig(name=name):
            return _custom(name, feature_shape, classes)
        case LogisticConfig(bias=bias):
            return nn.Sequential(nn.Flatten(), nn.Linear(inputs, classes, bias=bias))
        case MlpConfig(widths=widths, activation=activation):
            dense = [nn.Linear(a, b) for a, b in pairwise((inputs, *widths))]
            return nn.Sequential(nn.Flatten(), *_each_with(activation, dense), nn.Linear(widths[-1], classes))
        case ResNet9Config():
            return ResNet9(config, feature_shape, classes)
        case ConvNetConfig(channels=channels, activation=activation):
            if len(feature_shape) != 3:
                raise ParameterError("model.kind", "convnet", "logistic or mlp: these data hold no images")
            pairs = pairwise((feature_shape[0], *channels))
            layers = [nn.Conv2d(a, b, kernel_size=3, stride=2, padding=1) for a, b in pairs]
            ends = nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * channels[-1], classes)
            return nn.Sequential(*_each_with(activation, layers), *ends)


def _custom(name: str, feature_shape: tuple[int, ...], classes: int) -> nn.Module:
    try:
        model = pkgutil.resolve_name(name)(feature_shape, classes)
    except Exception as error:
        line = " ".join(f"{type(error).__name__}: {error}".split())
        raise ParameterError("model", name, f"a class to call with (feature_shape, classes) ({line})") from None
    if not isinstance(model, nn.Module):
        raise ParameterError("model", name, "a torch.nn.Module")
    return model


def _each_with(activation: Activation, layers: Sequence[nn.Module]) -> list[nn.Module]:
    """The layers, with the activation after each."""
    return [module for layer in layers for module in (layer, activated(activation))]

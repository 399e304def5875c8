"""Which form the gradients of a model have, found by looking at the model.

A gradient of a linear layer is what its output wants (a vector) times what goes in (the features). So where nothing but
one linear layer is trained, on features that the weights do not change, a record's gradient always lies along its
features. What is not known layer by layer counts as unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm

from reticent.data import ColumnKind, Dataset
from reticent.mechanisms.gradients import Gradients, GradientsRecord, Obstacle
from reticent.sensitivity.checks import is_random
from reticent.training.config import Clipping, TrainConfig

if TYPE_CHECKING:
    from reticent.training.loop import FitRecord

_PASSES_ON = (nn.Sequential, nn.Flatten, nn.Identity)
_FIXED_FUNCTIONS = (
    nn.Linear,
    *(nn.Conv1d, nn.Conv2d, nn.Conv3d),
    *(nn.ReLU, nn.LeakyReLU, nn.ELU, nn.GELU, nn.SiLU, nn.Softplus, nn.Sigmoid, nn.Tanh),
    *(nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d, nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d),
    *(nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d),
    *(nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.AdaptiveMaxPool3d),
    *(nn.GroupNorm, nn.LayerNorm),
)
_KNOWN = frozenset({*_PASSES_ON, *_FIXED_FUNCTIONS})
"""Layers, of exactly these types, whose output for one record is a function of that record and of their weights."""

_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Head:
    """The one linear layer that is trained.

    Attributes:
        layer: it.
        bias: whether its bias is trained.
        known: every layer is of a kind whose output is known to depend on one record only, and they follow each other.
        last: what the layer gives is what the model gives.
        first: what the model gets is what the layer gets, but for its shape.
    """

    layer: nn.Linear
    bias: bool
    known: bool
    last: bool
    first: bool


def head_of(model: nn.Module) -> Head | Obstacle:
    """The head of ``model``, in the modes in which its layers are now, or what is in the way."""
    owners = [m for m in model.modules() if any(p.requires_grad for p in m.parameters(recurse=False))]
    layer = owners[0] if len(owners) == 1 else None
    if not isinstance(layer, nn.Linear) or type(layer) is not nn.Linear:
        return Obstacle.NETWORK
    named = dict(layer.named_parameters(recurse=False))
    if not {"weight"} <= set(named) <= {"weight", "bias"} or not layer.weight.requires_grad:
        return Obstacle.NETWORK
    if any(_changes_by_itself(m) for m in model.modules()):
        return Obstacle.RANDOM_FEATURES
    known = all(type(m) in _KNOWN and _as_written(m) for m in model.modules())
    return Head(
        layer,
        bias="bias" in named and named["bias"].requires_grad,
        known=known and _places(model, layer) == 1,
        last=known and _last(model) is layer,
        first=all(m is layer or type(m) in _PASSES_ON for m in model.modules()),
    )


def gradients_record(
    form: Head | Obstacle,
    *,
    same_features: bool,
    normalised: bool = False,
    hard_labels: bool = False,
    least_squared_norm: float = 0.0,
) -> GradientsRecord:
    """What is known of the gradients of a model with this form.

    Args:
        same_features: each record is given to the model as the same numbers in every step, which were computed without
            other records.
        normalised: each gradient that is not zero is divided by its length in closed form.
        hard_labels: the loss is the cross-entropy of what the model gives with one right label for each record, the
            same in every step. Then each output's slope keeps its sign, and with two outputs a gradient never turns
            round; a squared error, or a soft label, would turn it.
        least_squared_norm: no record that is given to the model has features with a smaller squared length.
    """
    if isinstance(form, Obstacle):
        return GradientsRecord(kind=Gradients.ANY, obstacle=form, normalised=normalised)
    share = 0.0
    if form.bias:
        least = least_squared_norm if form.first else 0.0
        if least <= 0.0:
            return GradientsRecord(kind=Gradients.ANY, obstacle=Obstacle.BIAS, normalised=normalised)
        share = (1.0 + _ROUNDING) / (1.0 + least)
    kind = Gradients.LINEAR_HEAD
    if hard_labels and form.known and form.last:
        kind = Gradients.HARD_LABEL_HEAD
        if form.layer.out_features == 2:
            kind = Gradients.FIXED if normalised and not form.bias else Gradients.ONE_DIRECTION
    return GradientsRecord(
        kind=kind,
        known_share=share,
        dimension=form.layer.in_features,
        normalised=normalised,
        features="same" if same_features and form.known else "not-seen",
    )


def recognised(
    model: nn.Module, dataset: Dataset, config: TrainConfig, record: FitRecord, *, encoded_here: bool
) -> GradientsRecord:
    """What a run of ``fit`` establishes about its gradients; its loss is the cross-entropy of one right label.

    Args:
        model: in training mode.
        encoded_here: the records were read and encoded by code of this library, not handed over as numbers.
    """
    form = head_of(model)
    if not isinstance(form, Obstacle) and config.augmentation is not None:
        form = Obstacle.VIEWS
    if not isinstance(form, Obstacle) and not record.factored:
        form = Obstacle.SHARED_FORM
    derived = config.data.table is not None and bool(config.data.table.derived)
    return gradients_record(
        form,
        same_features=encoded_here and not derived,
        normalised=config.clipping is Clipping.NORMALISE,
        hard_labels=True,
        least_squared_norm=least_squared_norm(dataset, config, encoded_here=encoded_here),
    )


def least_squared_norm(dataset: Dataset, config: TrainConfig, *, encoded_here: bool) -> float:
    """The least squared length of any record's features, by the way they are made; 0 where that is unknown."""
    if config.data.normalise_features is not None:
        return config.data.normalise_features**2 * (1.0 - _ROUNDING)
    if not encoded_here or config.data.features is not None:
        return 0.0
    return float(sum(group.kind is ColumnKind.ONE_HOT for group in dataset.groups))  # one 1 in each category


def _changes_by_itself(layer: nn.Module) -> bool:
    """Whether this layer draws random numbers or uses other records of the batch, in the mode in which it is."""
    if isinstance(layer, (nn.FractionalMaxPool2d, nn.FractionalMaxPool3d)):
        return True
    if isinstance(layer, _BatchNorm):
        return layer.training or not layer.track_running_stats
    mixes = isinstance(layer, _InstanceNorm) and layer.track_running_stats
    return layer.training and (mixes or is_random(layer))


def _as_written(layer: nn.Module) -> bool:
    """Whether nobody has exchanged what the layer does."""
    hooks = [*layer._forward_hooks.values(), *layer._forward_pre_hooks.values()]
    return "forward" not in vars(layer) and all(_only_looks(hook) for hook in hooks)


def _only_looks(hook: object) -> bool:
    """Whether a hook is one of Opacus's or ours, which change no number."""
    module = getattr(hook, "__module__", None) or type(hook).__module__
    return getattr(hook, "reticent_watches", False) or str(module).startswith(("opacus.", "reticent."))


def _places(model: nn.Module, layer: nn.Module) -> int:
    """How often the layer occurs in a model of layers that follow each other."""
    if model is layer:
        return 1
    return sum(_places(part, layer) for part in model) if isinstance(model, nn.Sequential) else 0


def _last(model: nn.Module) -> nn.Module:
    while type(model) is nn.Sequential and len(model):
        model = model[-1]
    return model

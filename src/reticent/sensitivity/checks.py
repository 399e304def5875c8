"""Refuse what would give a wrong or no sensitivity, in one line, before anything is measured."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import torch
from opacus.grad_sample import AbstractGradSampleModule
from torch import nn

from reticent.kernel.errors import NumericalError, ParameterError, UnsupportedError

HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")

_PLAIN = (bool, int, float, str, type(None))


def bare(model: object) -> nn.Module:
    """The module inside Opacus's wrapper, or the module itself.

    Raises:
        ParameterError: it is no module.
    """
    while isinstance(model, AbstractGradSampleModule):
        model = model._module
    if not isinstance(model, nn.Module):
        raise ParameterError("model", type(model).__name__, "a torch.nn.Module")
    return model


def signature(model: nn.Module) -> tuple[object, ...]:
    """What decides how a model is measured, besides the numbers in it: a change means to look again."""
    modules = tuple(
        (id(m), *(len(v) if k in HOOKS else v for k, v in vars(m).items() if k in HOOKS or isinstance(v, _PLAIN)))
        for m in model.modules()
    )
    return modules, tuple((id(p), p.requires_grad, p.dtype, p.shape) for p in model.parameters())


def model_is_fit(model: nn.Module) -> None:
    """Check that each record has one gradient of its own, and that the same one comes twice.

    Raises:
        UnsupportedError: nothing is trained, or a layer is random, mixes the records of a batch, has hooks other
            than Opacus's, or rewrites its weights in forward.
    """
    if not any(p.requires_grad for p in model.parameters()):
        raise UnsupportedError("the model has no trained parameter, so no gradient to measure")
    for name, p in model.named_parameters():
        if isinstance(p, nn.parameter.UninitializedParameter):
            raise UnsupportedError(f"parameter {name} has no shape yet: call the model on one batch first")
        if p.is_complex():
            raise UnsupportedError(f"parameter {name} is complex: gradient norms are known for real numbers only")
        if p._backward_hooks:
            raise UnsupportedError(f"parameter {name} has a hook, which may change its gradient: remove it first")
    for name, module in model.named_modules():
        layer = f"layer {name} ({type(module).__name__})" if name else f"the model ({type(module).__name__})"
        if foreign := _foreign_hooks(module):
            raise UnsupportedError(
                f"{layer} has a hook ({foreign[0]}), which may compute: remove it, or move what it does into forward"
            )
        if isinstance(module, (nn.Embedding, nn.EmbeddingBag)) and module.max_norm is not None:
            raise UnsupportedError(
                f"{layer} has max_norm: it rewrites the rows that a record looks up, outside the noise"
            )
        if is_random(module):
            raise UnsupportedError(
                f"{layer} is random while it trains, as dropout is: the gradient of a completion is then random, "
                "and its sensitivity undefined"
            )
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and (module.training or not module.track_running_stats):
            raise UnsupportedError(f"{layer} mixes the records of a batch: no record has a gradient of its own")


def batch_fits(features: torch.Tensor, labels: torch.Tensor, columns: Sequence[int]) -> None:
    """Check one batch.

    Raises:
        ParameterError: no tensors, unequal lengths, or a column that the features do not have.
    """
    for name, given in (("features", features), ("labels", labels)):
        if not isinstance(given, torch.Tensor):
            raise ParameterError(name, type(given).__name__, "a torch tensor")
    if features.dim() < 2 or labels.dim() < 1 or len(labels) != len(features):
        shapes = f"{tuple(features.shape)} and {tuple(labels.shape)}"
        raise ParameterError("features", shapes, "(records, ...), with labels for as many records")
    width = math.prod(features.shape[1:])
    if max(columns) >= width:
        raise ParameterError("columns", tuple(columns), f"below {width}, the features of a record")


def labels_fit(labels: torch.Tensor, classes: int) -> None:
    """Check labels of cross-entropy.

    Raises:
        ParameterError: labels that are no classes of the model.
    """
    if labels.is_floating_point():
        raise ParameterError("labels", str(labels.dtype), "whole numbers, or a loss of your own is needed")
    if classes < 2:
        raise ParameterError("model", f"{classes} output", "a model with two or more outputs, or with its own loss")
    least, most = map(int, torch.aminmax(labels)) if labels.numel() else (0, 0)
    if not 0 <= least <= most < classes:
        raise ParameterError("labels", [least, most], f"in 0 to {classes - 1}")


def loss_of_each(losses: object, records: int) -> torch.Tensor:
    """The losses, if there is one for each record.

    Raises:
        ParameterError: a mean or sum over the batch: gradients would come out too small.
    """
    shape = tuple(losses.shape) if isinstance(losses, torch.Tensor) else type(losses).__name__
    if not isinstance(losses, torch.Tensor) or shape != (records,):
        raise ParameterError("loss", shape, f"one number per record, ({records},): reduction='none' does that")
    return losses


def norms_are_finite(norms: torch.Tensor) -> None:
    """Check gradient norms before clipping.

    Raises:
        NumericalError: one is infinite or no number; the model has diverged, or a feature is not finite.
    """
    if norms.numel() and not math.isfinite(float(norms.amax())):
        raise NumericalError("a gradient is not finite: the model has diverged, or a feature is not finite")


def _foreign_hooks(module: nn.Module) -> list[str]:
    """Names of the hooks of a module that are not Opacus's."""
    found = []
    for kind in HOOKS:
        for hook in getattr(module, kind, {}).values():
            while isinstance(hook, functools.partial):
                hook = hook.func
            if getattr(hook, "reticent_watches", False):
                continue
            if not isinstance(getattr(hook, "__self__", None), AbstractGradSampleModule):
                found.append(getattr(hook, "__name__", type(hook).__name__))
    return found


def is_random(module: nn.Module) -> bool:
    """Whether a layer draws random numbers while it trains."""
    if isinstance(module, nn.modules.dropout._DropoutNd):
        return module.p > 0.0
    chance = getattr(module, "dropout", 0.0)
    random = (nn.RReLU, nn.FractionalMaxPool2d, nn.FractionalMaxPool3d)
    return isinstance(module, random) or (isinstance(chance, (int, float)) and chance > 0.0)

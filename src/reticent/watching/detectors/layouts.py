"""Convolutions whose input lies in memory in an order that Opacus misreads.

For the gradients of records at an ``nn.Conv2d``, Opacus 1.6.0 (``unfold2d``) walks through the memory of the padded
input as if it were in plain order. Where it is not, as with ``torch.channels_last``, it multiplies with wrong numbers:

- Gradients of records in memory: they are wrong. Each is still made of its own record, and clipped, as long as records
  are the outermost axis in memory; where they are not, records mix, and clipping bounds nothing.
- Ghost clipping takes the norms from there and the gradients from torch. A norm that is too small lets a gradient pass
  that is longer than the clip norm.

``grad_sample_mode="functorch"`` computes right in any order, and so do the expanded weights of torch (``"ew"``), which
are none that Opacus reads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch
from torch import nn
from torch.nn.functional import pad
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.hooks import RemovableHandle

from reticent import facts
from reticent.facts import Fact
from reticent.facts.base import word
from reticent.watching.detectors.base import Detector, Fields, Loop, Undos
from reticent.watching.hooks import Hook, guarded
from reticent.watching.models import bare


class MixingLayers(Detector):
    """Layers that mix the records of a batch, by their class.

    Kind: records that mix.

    Seen: batch normalisation, at the start and at the end.
    """

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._names: dict[str, None] = {}

    def enters(self, again: bool) -> None:
        """Look at the start."""
        self._names |= dict.fromkeys(mixing_layers(self._model))

    def facts(self) -> Fields:
        """Their names; looked at once more."""
        self.enters(again=True)
        return {facts.MIXES_RECORDS.key: tuple(self._names)} if self._names else {}


def mixing_layers(model: Any) -> tuple[str, ...]:
    """Layers that mix the records of a batch while they train, by name and class."""
    return tuple(
        word(f"{name} ({type(layer).__name__})")
        for name, layer in bare(model).named_modules()
        if isinstance(layer, _BatchNorm) and (layer.training or layer.running_mean is layer.running_var is None)
    )


class Layouts(Detector):
    """Convolutions whose input lies in memory in an order that Opacus misreads.

    Kind: records that mix.

    Seen: the input of each ``nn.Conv2d`` in each forward pass.
    """

    of_opacus = True

    def attach(self) -> Undos:
        """Look at what each convolution gets."""
        for handle in look_at_layouts(self._model, ghost=self._loop.ghost, found=self._found):
            yield handle.remove


def look_at_layouts(model: Any, *, ghost: bool, found: Callable[[Fact], None]) -> list[RemovableHandle]:
    """Look at the input of each convolution of a model that Opacus wrapped, from now on.

    Args:
        model: the wrapped module, or Opacus's hooks around one.
        ghost: whether it clips in the backward pass.
        found: called with each fault, as often as it is seen.
    """
    if getattr(model, "force_functorch", False) or not _misreads():
        return []
    look = Hook(guarded(partial(_look, ghost, found), partial(found, facts.NOT_FOLLOWED)))
    return [layer.register_forward_pre_hook(look) for layer in bare(model).modules() if _unfolded(layer)]


def _unfolded(layer: nn.Module) -> bool:
    """Opacus takes this type alone apart, and what FSDP makes of it."""
    return type(layer) is nn.Conv2d or (isinstance(layer, nn.Conv2d) and type(layer).__name__ == "FSDPConv2d")


def _look(ghost: bool, found: Callable[[Fact], None], layer: Any, given: tuple[Any, ...]) -> None:
    if not given or given[0].is_contiguous() or not torch.is_grad_enabled():  # as nearly always
        return
    if layer.training and not hasattr(layer.weight, "orig_weight") and layer.weight.requires_grad:
        fault = _fault(layer, given[0].detach(), ghost)
        if fault is not None:
            found(fault)


def _fault(layer: Any, images: torch.Tensor, ghost: bool) -> Fact | None:
    padded = pad(images, layer._reversed_padding_repeated_twice)
    if padded.is_contiguous():
        return None
    apart = padded.stride(0) >= padded[0].numel()
    return facts.PERMUTED_GRADIENTS if apart and not ghost else facts.PERMUTED_INPUT


@cache
def _misreads() -> bool:
    """Whether the Opacus that is installed does so."""
    try:
        from opacus.utils.tensor_utils import unfold2d
    except ImportError:
        return True
    plain = torch.arange(18.0).view(1, 2, 3, 3)
    settings: dict[str, Any] = {"kernel_size": (2, 2), "padding": (0, 0), "stride": (1, 1), "dilation": (1, 1)}
    permuted = plain.to(memory_format=torch.channels_last)
    return not torch.equal(unfold2d(permuted, **settings), unfold2d(plain, **settings))

"""The form of the gradients in a loop of Opacus: looked at in every forward pass, and whenever gradients are clipped.

Opacus takes the gradient of a record in a linear layer as the product of what the layer got and of what its output
wants, whatever the loss is; a penalty on the weights does not get in. So where one linear layer is trained, on one
vector for each record, the gradient is those features times some vector. What the loss is cannot be seen: with one
output, too, it may push either way, so no more than a linear head is claimed.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.utils.data import TensorDataset

from reticent.mechanisms.gradients import Obstacle
from reticent.training.model_form import Head, gradients_record, head_of
from reticent.watching.detectors.base import Detector, Fields, Loop, Undos
from reticent.watching.detectors.record_gradients import taken_by_the_program, takers_of
from reticent.watching.models import bare

_AT_ONCE = 1 << 22


class FormWatch(Detector):
    """Gradients that have no form of which more could be proven.

    The first thing that does not fit decides.

    Kind: form and size of gradients.

    Seen: the model in each forward pass, Opacus's hooks, and the records, bit for bit
    ([below](#what-the-model-says-about-its-gradients)).
    """

    of_opacus = True

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._bare, optimizer = bare(loop.model), loop.optimizer
        self._form: Head | Obstacle = Obstacle.CLIPPING if _other_clipping(optimizer) else head_of(self._bare)
        if isinstance(self._form, Head) and not (_layer_by_layer(self._form.layer) and _trains(optimizer, self._form)):
            self._form = Obstacle.CLIPPING
        known = isinstance(self._form, Head) and self._form.known
        self._rows = _Rows.of(loop.loader) if known else None
        self._calls, self._steps, self._same = 0, 0, self._rows is not None

    def attach(self) -> Undos:
        """Look at what the model gets, and its head."""
        if isinstance(self._form, Head):
            yield self._bare.register_forward_pre_hook(self.hook(self._given)).remove
            yield self._form.layer.register_forward_pre_hook(self.hook(self._got)).remove

    def on_clip(self, size: int | None, batches: int) -> None:
        """Each batch went through the head once."""
        if isinstance(self._form, Head) and self._calls > batches:
            self._form = Obstacle.SHARED_FORM
        self._calls = 0
        self._steps += 1

    def says(self) -> Fields:
        """What is known of the gradients."""
        return {"gradients": gradients_record(self._form, same_features=self._same and self._steps > 0)}

    def _given(self, model: nn.Module, inputs: tuple[Any, ...]) -> None:
        """What the model gets is compared with the data set."""
        if self._same and _for_gradients(model):
            first = inputs[0] if len(inputs) == 1 else None
            self._same = self._rows is not None and isinstance(first, torch.Tensor) and self._rows.hold(first)

    def _got(self, layer: nn.Module, inputs: tuple[Any, ...]) -> None:
        """What the head gets: one vector for each record."""
        if not isinstance(self._form, Head) or not _for_gradients(layer):
            return
        self._calls += 1
        now = head_of(self._bare)
        if isinstance(now, Obstacle):
            self._form = now
        elif not inputs or inputs[0].ndim != 2:
            self._form = Obstacle.SHARED_FORM
        elif not now.known:
            self._same, self._form = False, now


class _Rows:
    """The records of a data set by a number each, as exact as their bits."""

    def __init__(self, features: torch.Tensor) -> None:
        flat, draw = features.detach().flatten(1), torch.Generator().manual_seed(0x5EED)
        self._factors = torch.randint(-(2**62), 2**62, (flat.shape[1],), generator=draw)
        self._shape, self._dtype = features.shape[1:], features.dtype
        parts = flat.split(max(1, _AT_ONCE // max(1, flat.shape[1])))
        self._known = torch.cat([self._numbers(part) for part in parts]).unique()

    @classmethod
    def of(cls, loader: Any) -> _Rows | None:
        """Of a loader over tensors that hands them out as they are; None for any other."""
        dataset = getattr(loader, "dataset", None)
        if type(dataset) is not TensorDataset or not dataset.tensors[0].is_floating_point():
            return None
        features = dataset.tensors[0]
        return cls(features) if features.ndim > 1 and len(features) else None

    def hold(self, batch: torch.Tensor) -> bool:
        """Whether every record of ``batch`` is one of the data set, bit for bit."""
        if batch.shape[1:] != self._shape or batch.dtype != self._dtype:
            return False
        return bool(torch.isin(self._numbers(batch.detach().flatten(1)), self._known).all())

    def _numbers(self, rows: torch.Tensor) -> torch.Tensor:
        """A sum of the bits of each row, each number times a factor of its own, modulo 2^64."""
        bits = {8: torch.int64, 4: torch.int32, 2: torch.int16}[rows.element_size()]
        return (rows.contiguous().cpu().view(bits).to(torch.int64) * self._factors).sum(dim=1)


def _for_gradients(layer: nn.Module) -> bool:
    """Whether Opacus keeps what this layer gets now."""
    return layer.training and torch.is_grad_enabled()


def _other_clipping(optimizer: Any) -> bool:
    from opacus.optimizers import DPOptimizer

    return type(optimizer) is not DPOptimizer or getattr(optimizer.clip_and_accumulate, "__func__", None) is not (
        DPOptimizer.clip_and_accumulate
    )


def _trains(optimizer: Any, form: Head) -> bool:
    """Whether the optimizer moves the head and nothing else."""
    moved = {id(p) for group in optimizer.param_groups for p in group["params"] if p.requires_grad}
    return moved == {id(p) for p in form.layer.parameters() if p.requires_grad}


def _layer_by_layer(layer: nn.Linear) -> bool:
    """Whether Opacus takes gradients from what this layer gets, by hooks that nobody has exchanged."""
    takers = takers_of(layer)
    return len(takers) == 1 and not taken_by_the_program(layer, takers)

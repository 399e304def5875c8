"""The form of the gradients in a loop of Opacus: looked at in every forward pass, and whenever gradients are clipped.

Opacus takes the gradient of a record in a linear layer as the product of what the layer got and of what its output
wants, whatever the loss is; a penalty on the weights does not get in. So where one linear layer is trained, on one
vector for each record, the gradient is those features times some vector. The graph of the loss shows more where that
is the plain cross-entropy of what the model gave, with the labels of the data set: each output keeps its sign. Any
other loss may push either way, so no more than a linear head is claimed.
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
from reticent.watching.events import Backward
from reticent.watching.models import bare, entrance

_AT_ONCE = 1 << 22
_ACROSS_CLASSES = (1, (1 << 64) - 1)
"""The last of two axes, as torch keeps it."""
_OF_LABELS = 0x5851F42D4C957F2D


class FormWatch(Detector):
    """Gradients that have no form of which more could be proven.

    The first thing that does not fit decides.

    Kind: form and size of gradients.

    Seen: the model in each forward pass, Opacus's hooks, the records, bit for bit, and the loss where
    ``loss.backward()`` is called ([below](#what-the-model-says-about-its-gradients)).
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
        self._hard, self._losses = self._same, 0
        """Whether each loss was the cross-entropy of the data set's labels; and losses since the last clipping."""
        self._numbers: torch.Tensor | None = None
        self._gave: Any = None
        """Of the batch: a number of each record, and the node of the graph at which the model ended."""
        self._passes = Backward(self.guarded(self._falls), lambda: None)

    def attach(self) -> Undos:
        """Look at what the model gets, and its head."""
        if isinstance(self._form, Head):
            yield self._bare.register_forward_pre_hook(self.hook(self._given)).remove
            yield self._form.layer.register_forward_pre_hook(self.hook(self._got)).remove
            yield entrance(self._model).register_forward_hook(self.hook(self._gives)).remove
            yield self._passes.off

    def on_clip(self, size: int | None, batches: int) -> None:
        """Each batch went through the head once."""
        if isinstance(self._form, Head) and self._calls > batches:
            self._form = Obstacle.SHARED_FORM
        self._hard = self._hard and self._losses == batches
        self._calls = self._losses = 0
        self._gave = self._numbers = None
        self._passes.off()
        self._steps += 1

    def says(self) -> Fields:
        """What is known of the gradients."""
        same = self._same and self._steps > 0
        return {"gradients": gradients_record(self._form, same_features=same, hard_labels=same and self._hard)}

    def _given(self, model: nn.Module, inputs: tuple[Any, ...]) -> None:
        """What the model gets is compared with the data set."""
        if self._same and _for_gradients(model):
            first = inputs[0] if len(inputs) == 1 else None
            self._numbers = self._rows.numbers(first) if self._rows and isinstance(first, torch.Tensor) else None
            self._same = self._rows is not None and self._rows.hold(self._numbers)

    def _gives(self, _model: nn.Module, _: Any, outputs: Any) -> None:
        """The next loss is looked at."""
        if self._hard and _for_gradients(self._bare) and isinstance(outputs, torch.Tensor):
            self._gave = outputs.grad_fn
            self._passes.on()

    def _falls(self, loss: torch.Tensor, _: Any) -> None:
        """A backward pass begins at ``loss``."""
        self._losses += 1
        labels = _hard_labels(loss, self._gave) if self._hard else None
        self._hard = self._rows is not None and labels is not None and self._rows.hold(self._numbers, labels)

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

    def __init__(self, features: torch.Tensor, labels: torch.Tensor | None) -> None:
        flat, draw = features.detach().flatten(1), torch.Generator().manual_seed(0x5EED)
        self._factors = torch.randint(-(2**62), 2**62, (flat.shape[1],), generator=draw)
        self._shape, self._dtype = features.shape[1:], features.dtype
        parts = flat.split(max(1, _AT_ONCE // max(1, flat.shape[1])))
        numbers = torch.cat([self._summed(part) for part in parts])
        self._known = numbers.unique()
        self._labelled = None if labels is None else _with(numbers, labels).unique()

    @classmethod
    def of(cls, loader: Any) -> _Rows | None:
        """Of a loader over tensors that hands them out as they are; None for any other."""
        dataset = getattr(loader, "dataset", None)
        if type(dataset) is not TensorDataset or not dataset.tensors[0].is_floating_point():
            return None
        features = dataset.tensors[0]
        given = dataset.tensors[1] if len(dataset.tensors) > 1 else features
        classes = None if given.ndim != 1 or given.is_floating_point() or given.is_complex() else given
        return cls(features, classes) if features.ndim > 1 and len(features) else None

    def numbers(self, batch: torch.Tensor) -> torch.Tensor | None:
        """Of the records of a batch; None where they are of another kind than those of the data set."""
        if batch.shape[1:] != self._shape or batch.dtype != self._dtype:
            return None
        return self._summed(batch.detach().flatten(1))

    def hold(self, numbers: torch.Tensor | None, labels: torch.Tensor | None = None) -> bool:
        """Whether each record, or each with its label, is one of the data set, bit for bit."""
        known = self._known if labels is None else self._labelled
        if numbers is None or known is None or (labels is not None and len(labels) != len(numbers)):
            return False
        return bool(torch.isin(numbers if labels is None else _with(numbers, labels), known).all())

    def _summed(self, rows: torch.Tensor) -> torch.Tensor:
        """A sum of the bits of each row, each number times a factor of its own, modulo 2^64."""
        bits = {8: torch.int64, 4: torch.int32, 2: torch.int16}[rows.element_size()]
        return (rows.contiguous().cpu().view(bits).to(torch.int64) * self._factors).sum(dim=1)


def _with(numbers: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """A number for each record with its label, modulo 2^64."""
    return numbers + labels.detach().cpu().to(torch.int64) * _OF_LABELS


def _hard_labels(loss: torch.Tensor, gave: Any) -> torch.Tensor | None:
    """The labels, one for each record, where ``loss`` is their plain cross-entropy with what ended at this node."""
    node: Any = loss.grad_fn
    if gave is None or node is None or not node.name().startswith("NllLossBackward") or node._saved_weight is not None:
        return None
    labels: torch.Tensor = node._saved_target
    softmax = node.next_functions[0][0]
    if labels.ndim != 1 or softmax is None or not softmax.name().startswith("LogSoftmaxBackward"):
        return None
    if softmax._saved_dim not in _ACROSS_CLASSES:
        return None
    end = softmax.next_functions[0][0]
    if end is not gave and end is not None and end.name() == "BackwardHookFunctionBackward":  # of Opacus's hooks
        end = end.next_functions[0][0]
    return labels if end is gave else None


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

"""Whether ghost clipping measures the whole gradient of a record: some records by a backward pass of their own.

Opacus measures what its layers see. What reaches a weight past its layer is in the sum and not in the length: a penalty
on the weights, a weight that is used in a function, a hook that enlarges the gradient of a weight. And it multiplies
the losses with a factor for each record: where they are no list with one for each, but the mean of all or a column,
every record gets the factors of all.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from reticent.watching.closer_looks import some_of
from reticent.watching.hooks import Exchanged

_RELATIVE, _OF_THE_NORM = 0.01, 0.001
"""How much longer a gradient may be than was measured: of its length, and of the clip norm; of half numbers ten times
as much."""


class Lengths:
    """Compares gradients of records with what ghost clipping measures of them, in the batches in which it is told to.

    Attributes:
        looked: whether a batch was looked at whose second backward pass has not ended.
    """

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer
        self.looked, self._listed, self._most = False, True, 1
        self._true: dict[int, float] = {}
        """Of records of this batch, by their place in it."""

    def look(self, most: int) -> None:
        """Look at so many records of the next batch that holds any; each costs a backward pass."""
        self._most = most
        _BACKWARD.enter(self)

    def leave(self) -> None:
        """Look no more."""
        _BACKWARD.leave(self)

    def before(self, loss: Any) -> None:
        """The two backward passes of this loss begin."""
        each = loss.loss_per_sample
        if loss.optimizer is not self._optimizer or not each.numel():
            return
        self.leave()
        self.looked, self._listed, self._true = True, each.ndim == 1, {}
        records = some_of(len(each), self._most) if self._listed else []
        try:
            for record in records:
                self._true[record] = _length(loss.module, each[record].sum(), self._optimizer.params)
        except Exception:  # unknown layers may raise anything; the loop must go on
            self._true = {}

    def longer_than(self, measured: list[torch.Tensor], norm: float) -> bool:
        """Whether a record moves the sum by more than was measured.

        Args:
            measured: for each parameter the lengths of all records.
            norm: to which they are clipped.
        """
        true, self.looked = self._true, False
        if not self._listed:
            return True
        if not true or any(lengths.ndim != 1 or len(lengths) <= max(true) for lengths in measured):
            return False
        coarse = 10.0 if any(lengths.element_size() < 4 for lengths in measured) else 1.0
        share, least = 1.0 + coarse * _RELATIVE, coarse * _OF_THE_NORM * norm
        return any(long > share * _norm([m[record] for m in measured]) + least for record, long in true.items())


def _length(hooks: Any, loss: torch.Tensor, parameters: list[Any]) -> float:
    """The length of the gradient of a loss; Opacus's hooks are off meanwhile."""
    enabled, hooks.hooks_enabled = hooks.hooks_enabled, False
    try:
        slopes = torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True)
    finally:
        hooks.hooks_enabled = enabled
    exact = [slope if slope.element_size() > 2 else slope.float() for slope in slopes if slope is not None]
    return _norm([slope.norm() for slope in exact])


def _norm(numbers: list[torch.Tensor]) -> float:
    return math.hypot(*map(float, numbers))


def _losses() -> list[Any]:
    """The classes of losses whose backward pass is that of ghost clipping."""
    from opacus.utils.fast_gradient_clipping_utils import DPTensorFastGradientClipping as Loss

    return [kind for kind in (Loss, *Loss.__subclasses__()) if "backward" in vars(kind)]


_BACKWARD = Exchanged("backward", _losses, lambda one, _, loss, *args, **kwargs: one.before(loss), before=True)

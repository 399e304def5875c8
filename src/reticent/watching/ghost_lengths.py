"""Whether ghost clipping measures the whole gradient of a record: some records by a backward pass of their own.

Opacus measures what its layers see. What reaches a weight past its layer is in the sum and not in the length: a penalty
on the weights, a weight that is used in a function, a hook that enlarges the gradient of a weight. And it multiplies
the losses with a factor for each record: where they are no list with one for each, but the mean of all or a column,
every record gets the factors of all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from reticent.watching.closer_looks import some_of
from reticent.watching.events import Backward
from reticent.watching.hooks import Hook
from reticent.watching.models import entrance
from reticent.watching.record_gradients import silent, takers_of

_RELATIVE, _OF_THE_NORM = 0.01, 0.001
"""How much longer a gradient may be than was measured: of its length, and of the clip norm; of half numbers ten times
as much."""


class Lengths:
    """Compares gradients of records with what ghost clipping measures of them, in the batches in which it is told to.

    Attributes:
        looked: whether a batch was looked at whose second backward pass has not ended.
    """

    def __init__(self, model: Any, optimizer: Any) -> None:
        self._model, self._optimizer = model, optimizer
        self.looked, self._listed, self._most, self._waits = False, True, 1, False
        self._passes = Backward(self.before, lambda: None)
        self._true: dict[int, float] = {}
        """Of records of this batch, by their place in it."""

    def attach(self) -> Callable[[], None]:
        """Begin to look where it is told to; what is returned ends it."""
        handle = entrance(self._model).register_forward_hook(Hook(self._gave))

        def undo() -> None:
            handle.remove()
            self._passes.off()

        return undo

    def _gave(self, *_: Any) -> None:
        if self._waits and torch.is_grad_enabled():
            self._passes.on()

    def look(self, most: int) -> None:
        """Look at so many records of the next batch that holds any; each costs a backward pass."""
        self._most, self._waits = most, True

    def before(self, _loss: torch.Tensor, each: torch.Tensor | None) -> None:
        """The first of two backward passes begins, of the mean or sum of these."""
        if each is None or not each.numel():
            return
        self._passes.off()
        self.looked, self._waits, self._listed, self._true = True, False, each.ndim == 1, {}
        records = some_of(len(each), self._most) if self._listed else []
        try:
            for record in records:
                self._true[record] = _length(takers_of(self._model), each[record].sum(), self._optimizer.params)
        except Exception:  # unknown layers may raise anything; the loop must go on
            self._true = {}

    def longer_than(self, measured: list[torch.Tensor], norm: float) -> bool:
        """Whether a record moves the sum by more than was measured.

        Args:
            measured: for each parameter the lengths of all records.
            norm: to which they are clipped.
        """
        true, self.looked = self._true, False
        self._passes.off()
        if not self._listed:
            return True
        if not true or any(lengths.ndim != 1 or len(lengths) <= max(true) for lengths in measured):
            return False
        coarse = 10.0 if any(lengths.element_size() < 4 for lengths in measured) else 1.0
        share, least = 1.0 + coarse * _RELATIVE, coarse * _OF_THE_NORM * norm
        return any(long > share * _norm([m[record] for m in measured]) + least for record, long in true.items())


def _length(takers: list[Any], loss: torch.Tensor, parameters: list[Any]) -> float:
    """The length of the gradient of a loss."""
    with silent(takers):
        slopes = torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True)
    exact = [slope if slope.element_size() > 2 else slope.float() for slope in slopes if slope is not None]
    return _norm([slope.norm() for slope in exact])


def _norm(numbers: list[torch.Tensor]) -> float:
    return math.hypot(*map(float, numbers))

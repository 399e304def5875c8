"""Ghost clipping of Opacus, looked at where it happens: after the two backward passes of one batch.

The first pass measures each record's gradient, and the second one adds the gradients up with a factor for each record.
So three things decide what one record can move: the norm at that moment, which parameters were measured, and whether
what was measured is of this batch. A parameter that two layers share, of which Opacus knows only one, is measured in
one of its two uses; what it found in the other waits for ever. A layer that was left out of the forward pass still has
the lengths of the batch before, and they take part in the factors of this one. After the second pass the sum of the
clipped gradients lies open until the step, and whoever writes there writes past the clipping. A loss that
``make_private`` did not return goes backward once, and its sum is not clipped at all.
"""

from __future__ import annotations

import math
from functools import partial
from operator import attrgetter, is_
from typing import Any

import torch

from reticent import facts
from reticent.facts.clipping import Mixing
from reticent.watching.detectors.base import Detector, Loop, Step, Undos
from reticent.watching.detectors.clipping import Clipping
from reticent.watching.detectors.closer_looks import some_of
from reticent.watching.detectors.noise import NoisyGradients
from reticent.watching.detectors.record_gradients import silent, takers_of
from reticent.watching.events import Backward, around
from reticent.watching.models import entrance
from reticent.watching.optimisers import before_1_6

_LENGTHS, _GRAD = attrgetter("_norm_sample"), attrgetter("grad")
"""Of a parameter, its gradient and those of all records in length."""

_REST = "_current_grad_sample"
"""Of a parameter, gradients of records that Opacus found and has not measured."""

_BY_FREQUENCY = "scale_grad_by_freq"
"""Of a table, whether the second pass divides the gradient of a row by how often the whole batch reads it."""

_AT_FIRST = 8
"""Records of the first batch whose lengths are compared."""

_WRITERS = "_post_accumulate_grad_hooks"
"""Of a parameter, hooks that may write to its gradient after each backward pass; several processes need some."""


class GhostClipping(Detector):
    """Ghost clipping that does not clip what is released.

    Kind: clipping and gradients of single records.

    Seen: that the loss is the one of ``make_private``, whose two backward passes clip, with one number for each record;
    after them the norm, that every trained parameter was measured in this batch, and that no code writes to the sums;
    of eight records of the first batch, and of one in the next four and after every 128th step, that the length is that
    of its whole gradient.

    Not seen: in ghost mode, what reaches a weight past its layer, as a penalty does or a hook that enlarges gradients,
    if it moves few records or begins late, or the model uses reentrant checkpoints.
    """

    @classmethod
    def fits(cls, loop: Loop) -> bool:
        """In ghost mode."""
        return loop.ghost

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._hooks: Any = None
        self._measured: list[Any] = []
        self._lengths: list[Any] = []
        self._trained: list[Any] = []
        self._sums: list[Any] | None = None
        self._versions: list[int] = []
        self._factors = False
        """Whether Opacus asked for the factors of this batch."""
        self._one = Lengths(loop.model, loop.optimizer)
        self._norm = 0.0
        """The largest to which gradients were clipped since the last release; 0 where none were."""

    def attach(self) -> Undos:
        """Follow Opacus's hooks, and compare some lengths of the first batch."""
        self._sums = None
        for one in takers_of(self._model):
            if hasattr(one, "enable_hooks"):
                yield around(one, "enable_hooks", after=self.guarded(partial(self.after, one)))
                yield around(one, "get_clipping_coef", after=partial(setattr, self, "_factors", True))
        yield self._one.passes.off
        yield entrance(self._model).register_forward_hook(self.hook(self._one.gave)).remove
        self._one.look(_AT_FIRST)
        yield self._look_at_rest

    def on_noise(self, step: Step) -> None:
        """Compare the length of one record of the next batch, where steps are measured."""
        if step.measured:
            self._one.look(1)

    def after(self, hooks: Any) -> None:
        """Hooks are turned on again: by Opacus after both passes, or by the program at any time.

        After both passes at least one parameter has lengths that were measured just now.
        """
        new = hooks is not self._hooks
        if new:
            self._hooks, self._measured, self._lengths = hooks, list(hooks.trainable_parameters), []
        lengths = list(map(_LENGTHS, self._measured))
        old = sum(map(is_, lengths, self._lengths))
        if old == len(lengths):
            return
        if old:
            self._found(facts.MIXES_RECORDS.because(Mixing.CLIPPING))
        if not self._factors and before_1_6():
            self._loop.of(Clipping).not_by_opacus()  # adaptive clipping, which nothing else shows there
        norm, self._lengths, self._factors = float(hooks.max_grad_norm), lengths, False
        if norm > self._norm:
            self._norm = norm
        self._sums = sums = list(map(_GRAD, self._measured))
        self._versions = [g._version for g in sums if g is not None]
        if self._one.looked and self._one.longer_than(lengths, norm):
            self._found(facts.UNCLIPPED)
        if new:
            self._look_at_rest()
            if any(getattr(layer, _BY_FREQUENCY, False) for layer in hooks._module.modules()):
                self._found(facts.MIXES_RECORDS.because(Mixing.CLIPPING))

    def _look_at_rest(self) -> None:
        """Of no parameter a part of what was found may wait, beside what was measured; no hook may write to its sum."""
        if any(hasattr(p, _REST) for p in self._measured):
            self._found(facts.UNCLIPPED)
        if any(getattr(p, _WRITERS, None) for p in self._measured) and not hasattr(self._optimizer, "world_size"):
            self._found(facts.CHANGED_GRADIENTS)

    def clipped(self) -> float:
        """The sum is about to be released: it must be what the two backward passes left, and nothing without them.

        Returns:
            The largest norm to which gradients were clipped since this was called last; 0 where none were.
        """
        sums, self._sums = self._sums, None
        norm, self._norm = self._norm, 0.0
        if sums is None:  # of an empty batch nothing need be
            if any(p.grad is not None and bool(p.grad.any()) for p in self._optimizer.params):
                self._found(facts.UNCLIPPED)
        elif not (
            all(map(is_, map(_GRAD, self._measured), sums))
            and [g._version for g in sums if g is not None] == self._versions
        ):
            self._found(facts.CHANGED_GRADIENTS)
        return norm

    def after_scale(self, divisor: float) -> None:
        """What is released now must have been measured."""
        trained = self._loop.of(NoisyGradients).kept
        if len(trained) != len(self._trained) or not all(map(is_, trained, self._trained)):
            self._trained, known = trained, {id(p) for p in self._measured}
            if self._measured and not all(id(p) in known for p in trained):
                self._found(facts.UNCLIPPED)


_RELATIVE, _OF_THE_NORM = 0.01, 0.001
"""How much longer a gradient may be than was measured: of its length, and of the clip norm; of half numbers ten times
as much."""


class Lengths:
    """Whether ghost clipping measures the whole gradient of a record: some records by a backward pass of their own.

    Opacus measures what its layers see. What reaches a weight past its layer is in the sum and not in the length: a
    penalty on the weights, a weight that is used in a function, a hook that enlarges the gradient of a weight. And it
    multiplies the losses with a factor for each record: where they are no list with one for each, but the mean of all
    or a column, every record gets the factors of all.

    Attributes:
        looked: whether a batch was looked at whose second backward pass has not ended.
        passes: sees backward passes.
    """

    def __init__(self, model: Any, optimizer: Any) -> None:
        self._model, self._optimizer = model, optimizer
        self.looked, self._listed, self._most, self._waits = False, True, 1, False
        self.passes = Backward(self.before, lambda: None)
        self._true: dict[int, float] = {}
        """Of records of this batch, by their place in it."""

    def gave(self, *_: Any) -> None:
        """A model gave its outputs."""
        if self._waits and torch.is_grad_enabled():
            self.passes.on()

    def look(self, most: int) -> None:
        """Look at so many records of the next batch that holds any; each costs a backward pass."""
        self._most, self._waits = most, True

    def before(self, _loss: torch.Tensor, each: torch.Tensor | None) -> None:
        """The first of two backward passes begins, of the mean or sum of these."""
        if each is None or not each.numel():
            return
        self.passes.off()
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
        self.passes.off()
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

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

from collections.abc import Callable
from functools import partial
from operator import attrgetter, is_
from typing import Any

from reticent import facts
from reticent.facts.clipping import Mixing
from reticent.watching.events import around
from reticent.watching.ghost_lengths import Lengths
from reticent.watching.hooks import looks
from reticent.watching.optimisers import before_1_6
from reticent.watching.record_gradients import takers_of
from reticent.watching.recorder import Recorder

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


class GhostClipping:
    """Follows the clipping for one optimizer."""

    def __init__(self, model: Any, optimizer: Any, recorder: Recorder) -> None:
        self._model, self._optimizer, self._found = model, optimizer, recorder.found
        self._by_hand, self._factors = recorder.clipped_by_hand, False
        """The latter: whether Opacus asked for the factors of this batch."""
        self._undo: list[Callable[[], None]] = []
        self._hooks: Any = None
        self._measured: list[Any] = []
        self._lengths: list[Any] = []
        self._trained: list[Any] = []
        self._sums: list[Any] | None = None
        self._versions: list[int] = []
        self._one = Lengths(model, optimizer)
        self._norm = 0.0
        """The largest to which gradients were clipped since the last release; 0 where none were."""

    def attach(self) -> Callable[[], None]:
        """Begin to look; what is returned ends it."""
        self._sums = None
        owners = [one for one in takers_of(self._model) if hasattr(one, "enable_hooks")]
        self._undo = [around(one, "enable_hooks", after=partial(self.after, one)) for one in owners]
        asked = partial(setattr, self, "_factors", True)
        self._undo += [around(one, "get_clipping_coef", after=asked) for one in owners]
        self._undo.append(self._one.attach())
        self._one.look(_AT_FIRST)
        return self._leave

    def look_again(self) -> None:
        """Compare the length of one record of the next batch."""
        self._one.look(1)

    def _leave(self) -> None:
        self._look_at_rest()
        while self._undo:
            self._undo.pop()()

    @looks
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
            self._by_hand()  # adaptive clipping, which nothing else shows there
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

    def released(self, trained: list[Any]) -> None:
        """The gradients of these parameters are released: all of them must have been measured."""
        if len(trained) != len(self._trained) or not all(map(is_, trained, self._trained)):
            self._trained, known = trained, {id(p) for p in self._measured}
            if self._measured and not all(id(p) in known for p in trained):
                self._found(facts.UNCLIPPED)

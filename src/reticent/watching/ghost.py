"""Ghost clipping of Opacus, looked at where it happens: between the two backward passes of one batch.

The first pass measures each record's gradient, and the second one adds the gradients up with a factor for each record.
So three things decide what one record can move: the norm at that moment, which parameters were measured, and whether
what was measured is of this batch. A layer that was left out of the forward pass still has the lengths of the batch
before, and they take part in the factors of this one. After the second pass the sum of the clipped gradients lies open
until the step, and whoever writes there writes past the clipping.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter, is_
from typing import Any

from reticent.records.watch_faults import Fault

_LENGTHS, _VERSION = attrgetter("_norm_sample"), attrgetter("_version")
_BETWEEN, _AFTER = "disable_hooks", "enable_hooks"
"""What Opacus calls between the two passes, and after them."""


class GhostClipping:
    """Follows the clipping for one optimizer.

    Attributes:
        norm: the largest to which gradients were clipped since somebody put it to 0.
    """

    def __init__(self, optimizer: Any, found: Callable[[Fault], None]) -> None:
        self._optimizer, self._found = optimizer, found
        self._hooks: Any = None
        self._lengths: list[Any] = []
        self._moved: list[Any] = []
        self._sums: list[Any] | None = None
        self._versions: list[int] = []
        self.norm = 0.0

    def attach(self) -> Callable[[], None]:
        """Begin to look; what is returned ends it."""
        from opacus.grad_sample import GradSampleHooksFastGradientClipping as Hooks

        self._sums = None
        _LOOKING.append(self)
        if len(_LOOKING) == 1:
            for name, ours in ((_BETWEEN, _between), (_AFTER, _after)):
                _OWN[name] = getattr(Hooks, name)
                setattr(Hooks, name, ours)
        return lambda: self._leave(Hooks)

    def _leave(self, hooks: type) -> None:
        _LOOKING.remove(self)
        if not _LOOKING:
            for name, own in _OWN.items():
                delattr(hooks, name)
                if getattr(hooks, name) is not own:  # it was no base's
                    setattr(hooks, name, own)

    def after(self, hooks: Any) -> None:
        """The gradients were added up."""
        if hooks is self._hooks:
            self._sums = sums = [p.grad for p in self._moved if p.grad is not None]
            self._versions = list(map(_VERSION, sums))

    def clipped(self) -> None:
        """The sum is about to be released: it must be what the backward pass left."""
        sums, self._sums = self._sums, None
        if sums is not None:
            now = [p.grad for p in self._moved if p.grad is not None]
            if len(now) != len(sums) or not all(map(is_, now, sums)) or list(map(_VERSION, sums)) != self._versions:
                self._found(Fault.CHANGED_GRADIENTS)

    def between(self, hooks: Any) -> None:
        """The records of a batch were measured, and their gradients are about to be added up."""
        if hooks is not self._hooks:
            if not self._measured(hooks):
                return
            self._hooks, self._lengths, self._moved = hooks, [], []
        self.norm = max(self.norm, float(hooks.max_grad_norm))
        lengths = list(map(_LENGTHS, hooks.trainable_parameters))
        if any(map(is_, lengths, self._lengths)):
            self._found(Fault.MIXES_RECORDS)
        self._lengths = lengths
        moved = [p for group in self._optimizer.param_groups for p in group["params"] if p.requires_grad]
        if len(moved) != len(self._moved) or not all(map(is_, moved, self._moved)):
            self._moved, known = moved, {id(p) for p in hooks.trainable_parameters}
            if not all(id(p) in known for p in moved):
                self._found(Fault.UNCLIPPED)

    def _measured(self, hooks: Any) -> bool:
        """Whether these are the hooks of this optimizer's model."""
        known = {id(p) for p in hooks.trainable_parameters}
        return any(id(p) in known for group in self._optimizer.param_groups for p in group["params"])


_LOOKING: list[GhostClipping] = []
_OWN: dict[str, Callable[[Any], Any]] = {}


def _between(self: Any) -> Any:
    for one in _LOOKING:
        one.between(self)
    return _OWN[_BETWEEN](self)


def _after(self: Any) -> Any:
    for one in _LOOKING:
        one.after(self)
    return _OWN[_AFTER](self)

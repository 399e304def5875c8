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

_LENGTHS, _GRAD = attrgetter("_norm_sample"), attrgetter("grad")
_FACTORS, _NORMS, _AFTER = "get_clipping_coef", "get_norm_sample", "enable_hooks"
"""What Opacus calls between the two passes, where it clips adaptively instead of that, and after both; a program may
look at norms, and turn hooks off and on, at any time."""


class GhostClipping:
    """Follows the clipping for one optimizer.

    Attributes:
        norm: the largest to which gradients were clipped since somebody put it to 0; 0 where it is adaptive.
    """

    def __init__(self, optimizer: Any, found: Callable[[Fault], None]) -> None:
        self._optimizer, self._found = optimizer, found
        self._hooks: Any = None
        self._measured: list[Any] = []
        self._lengths: list[Any] = []
        self._new: list[Any] | None = None
        self._trained: list[Any] = []
        self._sums: list[Any] | None = None
        self._versions: list[int] = []
        self.norm = self._norm = 0.0

    def attach(self) -> Callable[[], None]:
        """Begin to look; what is returned ends it."""
        from opacus.grad_sample import GradSampleHooksFastGradientClipping as Hooks

        self._sums = None
        _LOOKING.append(self)
        if len(_LOOKING) == 1:
            for name, ours in ((_FACTORS, _factors), (_NORMS, _norms), (_AFTER, _after)):
                _OWN[name] = getattr(Hooks, name)
                setattr(Hooks, name, ours)
        return lambda: self._leave(Hooks)

    def _leave(self, hooks: type) -> None:
        _LOOKING.remove(self)
        if not _LOOKING:
            for name, own in _OWN.items():
                delattr(hooks, name)
                if getattr(hooks, name, None) is not own:  # it was no base's
                    setattr(hooks, name, own)

    def between(self, hooks: Any, adaptive: bool = False) -> None:
        """The records of a batch were measured, and their gradients are about to be added up."""
        if adaptive and "_adjusted_noise_multiplier" not in vars(self._optimizer):
            return
        if hooks is not self._hooks:
            known = {id(p) for p in hooks.trainable_parameters}
            if not any(id(p) in known for group in self._optimizer.param_groups for p in group["params"]):
                return  # of another model
            self._hooks, self._measured, self._lengths = hooks, list(hooks.trainable_parameters), []
        self._new, self._norm = list(map(_LENGTHS, self._measured)), 0.0 if adaptive else float(hooks.max_grad_norm)

    def after(self, hooks: Any) -> None:
        """The gradients were added up, if records were measured before."""
        if hooks is self._hooks and self._new is not None:
            if any(map(is_, self._new, self._lengths)):
                self._found(Fault.MIXES_RECORDS)
            if self._norm > self.norm:
                self.norm = self._norm
            self._lengths, self._new = self._new, None
            self._sums = sums = list(map(_GRAD, self._measured))
            self._versions = [g._version for g in sums if g is not None]

    def clipped(self) -> None:
        """The sum is about to be released: it must be what the backward pass left."""
        sums, self._sums = self._sums, None
        if sums is not None and not (
            all(map(is_, map(_GRAD, self._measured), sums))
            and [g._version for g in sums if g is not None] == self._versions
        ):
            self._found(Fault.CHANGED_GRADIENTS)

    def released(self, trained: list[Any]) -> None:
        """The gradients of these parameters are released: all of them must have been measured."""
        if len(trained) != len(self._trained) or not all(map(is_, trained, self._trained)):
            self._trained, known = trained, {id(p) for p in self._measured}
            if self._measured and not all(id(p) in known for p in trained):
                self._found(Fault.UNCLIPPED)


_LOOKING: list[GhostClipping] = []
_OWN: dict[str, Callable[[Any], Any]] = {}


def _factors(self: Any) -> Any:
    for one in _LOOKING:
        one.between(self)
    return _OWN[_FACTORS](self)


def _norms(self: Any) -> Any:
    for one in _LOOKING:
        one.between(self, adaptive=True)
    return _OWN[_NORMS](self)


def _after(self: Any) -> Any:
    for one in _LOOKING:
        one.after(self)
    return _OWN[_AFTER](self)

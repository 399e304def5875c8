"""What moves the weights: the optimizer that is watched, another one, or somebody by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from reticent import facts
from reticent.facts import Fact
from reticent.facts.clipping import Mixing
from reticent.watching.declared import innermost
from reticent.watching.detectors.base import Detector, Loop, Undos
from reticent.watching.detectors.mixed_outputs import tensors_in
from reticent.watching.detectors.weights import Weights
from reticent.watching.models import bare, entrance, fingerprint, living

_MOST_WRITES = 4
"""Writes to one parameter that may belong to one update of a loop without an optimizer."""


_FORWARDS_FIRST, _FORWARD_EVERY = 16, 8
"""Forward passes after which the weights are looked at, and every so many of the later ones."""


def has_stepped(optimizer: Any) -> bool:
    """Whether the state of an optimizer shows that it took steps. Plain SGD keeps none."""
    states = getattr(optimizer, "state", None) or {}
    return any(_moved(state) for state in list(states.values()) if isinstance(state, dict))


def _moved(state: dict[str, Any]) -> bool:
    if state.get("step") is not None:
        return float(state["step"]) > 0.0
    return any(isinstance(value, torch.Tensor) and bool(value.any()) for value in state.values())


class Moves(Detector):
    """Weights that something else moved than the steps that count.

    Kind: weights and updates.

    Seen: writes around each step, and after the first 16 forward passes and one in eight later ones: of large tensors
    torch's count of writes; the identity of each object, its place in memory, all values of small tensors, and in large
    ones at least one value of each row, others after every fourth step; an optimizer that is exchanged inside the
    private one is followed. At the end whether all weights are finite, and SHA-256 of what
    ``safetensors.torch.save_file`` writes for the model that the program built, without the wrappers of Opacus
    (``model._module.state_dict()``) and ``torch.compile``. Learning rates that follow a metric: torch's
    ``ReduceLROnPlateau``, if one that was asked is still there when the watch ends.

    Not seen: weights that are changed by ``.data`` after the forward pass and restored before the step, or around
    single forward passes that are not looked at; values of a large tensor that are not among those compared, if they
    are written by ``.data`` and no later step compares them; what is written to the optimizer's state, such as its
    momentum, after the watch began; without an optimizer, writes that torch does not count, which cannot be told from
    updates; a learning rate, a clip norm, a noise multiplier, a stopping time or a schedule that is set by hand from
    these records, as from their loss or their norms; a learning rate that followed a ``ReduceLROnPlateau`` that is gone
    when the watch ends, as one made in a function.

    Attributes:
        taken: steps of the optimizer.
        are_lent: whether others are in their place, which will be put back.
    """

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._inner = _inside(self._optimizer)
        self.taken, self.are_lent, self._stepping = 0, False, False
        self._rows: dict[bool, list[int]] = {}
        """Of forward passes that wait for their backward pass, with and without records, how long each input is."""
        self._steps_within = 0
        """Steps that have begun and not ended: one may go on in that of a base class, with the same gradients."""
        self._usual: tuple[tuple[int, bool], ...] = ()
        self._steered: list[Any] = []

    def attach(self) -> Undos:
        """Follow the weights from now on."""
        self._weights = Weights(self._model, by_hand=self._optimizer is None)
        self._tell_before, self._tell_after = map(self._loop.tells, (Detector.on_step, Detector.after_step))
        self._forwards = 0
        trained = [p for p in self._weights.parameters if p.requires_grad]
        self._ends = trained[:1] + trained[-1:]
        self._modes = [self._weights.model, *_owners(self._weights.model, self._ends)]
        model = entrance(self._model)
        yield model.register_forward_pre_hook(self.hook(self.given)).remove
        yield model.register_forward_hook(self.hook(self.gave)).remove
        if self._optimizer is not None:
            self._hold()
            yield self._let_go
            yield self._look_at_schedules
        yield register_optimizer_step_pre_hook(self.hook(self._before_any)).remove

    def _hold(self) -> None:
        """Follow the optimizer that moves the weights: of a private one that which is inside it now."""
        self._inner = inner = _inside(self._optimizer)
        self._nests = _nests(inner)
        self._before = inner.register_step_pre_hook(self.hook(self._just_before))
        self._after = inner.register_step_post_hook(self.hook(self._just_after))
        inner._optimizer_step_post_hooks.move_to_end(self._after.id, last=False)
        self._steered += [self._optimizer, inner]

    def _look_at_schedules(self) -> None:
        # accelerate wraps an optimizer
        asked = [innermost(one.optimizer) for one in living(ReduceLROnPlateau) if one.last_epoch > 0]
        if any(one is mine for one in asked for mine in self._steered):
            self._found(facts.METRIC_SCHEDULE)

    def _let_go(self) -> None:
        self._before.remove()
        self._after.remove()

    def after_noise(self) -> None:
        """No step has begun; one that an error of the program ended is over."""
        self._steps_within = 0

    def borrowed(self, look: Callable[[], None]) -> None:
        """Weights that ``look`` borrows for a moment are not weights that somebody wrote."""
        self._compare(facts.WEIGHTS_CHANGED)
        look()
        self._weights.keep()

    def by_hand(self, skipped: bool) -> None:
        """A loop without an optimizer took a step: as far as writes and draws show, one update like the others."""
        if self._optimizer is not None:
            return
        writes = self._weights.writes()
        most = max((count for count, _ in writes), default=0)
        self._usual = self._usual or writes
        if most > _MOST_WRITES or writes != self._usual or (skipped and most != 1):
            self._found(facts.UNRECORDED_STEPS)
        self._weights.keep()

    def left(self, complete: bool) -> None:
        """The weights are those of the last step, and numbers; each step that moved them was recorded."""
        by_hand = self._optimizer is None
        if not by_hand and not self._loop.private and self.taken > self._loop.count:
            self._found(facts.UNRECORDED_STEPS)
        if complete:
            self._compare(facts.UNRECORDED_STEPS if by_hand else facts.WEIGHTS_CHANGED)
        if self._weights.exchanged() or self._weights.apart_written():
            self._found(facts.WEIGHTS_CHANGED)
        if not self._weights.finite():
            self._found(facts.NOT_FINITE)

    def settled(self) -> bool:
        """Whether the weights are those that the last step left, also where an error ended the loop after it."""
        if self._inner is None or self.are_lent:
            return False
        return not self._weights.written() and not self._weights.apart_written()

    def put_back(self) -> None:
        """The weights are what an earlier step left, or what it left and the program makes of that."""
        self._weights.keep()

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Weights may be exchanged inside, and must come back as they were, bit for bit."""
        self._compare(facts.WEIGHTS_CHANGED)
        before, self.are_lent = fingerprint(self._weights.model), True
        try:
            yield
        finally:
            self.are_lent = False
            if fingerprint(self._weights.model) != before:
                self._found(facts.WEIGHTS_CHANGED)
            self._weights.keep()

    @contextmanager
    def changed(self) -> Iterator[None]:
        """Weights may be changed inside, as the program says without the records."""
        self._compare(facts.WEIGHTS_CHANGED)
        try:
            yield
        finally:
            self._found(facts.POST_PROCESSED)
            self.put_back()

    def given(self, model: Any, inputs: Any) -> None:
        """Gradients are about to be taken of one batch after the other.

        Opacus counts the forward passes that wait for their backward pass. Where two wait, it adds the gradients of
        two rows and clips the pair: they may be those of two records.
        """
        if self._inner is None or not self._trains():
            return
        waits = any(getattr(p, "_forward_counter", 0) for p in self._ends)
        before = self._rows if waits else {}
        rows = [len(one) for one in tensors_in(inputs)]  # none where all are given by name
        if self._loop.no_records:
            self._found(facts.MADE_ROWS)
        others = before.get(not self._loop.no_records, rows)
        if self._loop.no_records in before or others != rows or (self._loop.no_records and not rows):
            self._found(facts.MIXES_RECORDS.because(Mixing.PASSES))
        self._rows = before | {self._loop.no_records: rows}

    def gave(self, model: Any, inputs: Any, output: Any) -> None:
        """Gradients are taken at weights that must be those of the last step, as sharpness-aware training does not."""
        self._forwards += 1
        due = self._forwards <= _FORWARDS_FIRST or self._forwards % _FORWARD_EVERY == 0
        if due and self._inner is not None and self._trains() and self._weights.others():
            self._found(facts.WEIGHTS_CHANGED)

    def _trains(self) -> bool:
        """Whether gradients are taken for training; a model in evaluation mode may have a head that trains."""
        return torch.is_grad_enabled() and any(module.training for module in self._modes)

    def _compare(self, fault: Fact) -> None:
        if self._weights.written():
            self._found(fault)

    def _before_any(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Be the last to look before the optimizer moves the weights, and the first to look after."""
        if optimizer is self._inner:
            before, after = optimizer._optimizer_step_pre_hooks, optimizer._optimizer_step_post_hooks
            if next(reversed(before)) != self._before.id:
                before.move_to_end(self._before.id)
            if next(iter(after)) != self._after.id:
                after.move_to_end(self._after.id, last=False)
        elif optimizer is _inside(self._optimizer):  # the program exchanged it
            self._let_go()
            self._hold()

    def _just_before(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._steps_within = self._steps_within + 1 if self._nests else 1
        if self._steps_within > 1:  # a part of a step, before which all was looked at
            return
        if self._weights.written():
            self._found(facts.WEIGHTS_CHANGED)
        self._tell_before()
        self._stepping = len(args) < 2 and not kwargs  # a closure may do anything

    def _just_after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._steps_within -= 1
        if self._steps_within:
            return
        self.taken += 1
        self._stepping = False
        self._weights.keep()
        self._tell_after()

    def steps(self, optimizer: Any) -> bool:
        """Whether a step of this optimizer is the one that is followed, or a part of it."""
        return optimizer is self._inner or hasattr(optimizer, "original_optimizer") or self._stepping


class Beside(Detector):
    """Optimizers that step beside the one that is watched.

    Kind: what trains beside.

    Seen: every optimizer of the process that updates a parameter, of this model or of others, but for those that step
    within a step of the one that is watched. Of a step within ``no_records`` the program says that it learnt from rows
    without records and from this model alone.

    Not seen: what another model learnt that is trained on the same records at the same time, beyond the warning that
    there was one.
    """

    def attach(self) -> Undos:
        """See each step of each optimizer."""
        self._moves = self._loop.of(Moves)
        self._own = {id(p) for p in bare(self._model).parameters()}
        yield register_optimizer_step_post_hook(self.hook(self._after_any)).remove

    def _after_any(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self._moves.steps(optimizer):
            return
        moved = {id(p) for group in optimizer.param_groups for p in group["params"]}
        other = facts.MADE_ROWS if self._loop.no_records else facts.OTHER_MODEL
        self._found(facts.OTHER_OPTIMISER if moved & self._own else other)
        if moved & self._own:
            self._moves.put_back()


def _nests(optimizer: Any) -> bool:
    """Whether more than one class of this optimizer has a ``step``, so that one may go on in the other."""
    return sum("step" in vars(kind) for kind in type(optimizer).__mro__ if kind is not torch.optim.Optimizer) > 1


def _owners(model: Any, parameters: list[Any]) -> list[Any]:
    wanted = set(map(id, parameters))
    return [m for m in model.modules() if any(id(p) in wanted for p in m.parameters(recurse=False))]


def _inside(optimizer: Any) -> Any:
    """The optimizer inside a private one, or the optimizer itself."""
    return getattr(optimizer, "original_optimizer", optimizer)

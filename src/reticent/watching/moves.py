"""What moves the weights: the optimizer that is watched, another one, or somebody by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from reticent import facts
from reticent.facts import Fact
from reticent.facts.clipping import Mixing
from reticent.watching import optimisers
from reticent.watching.hooks import Hook, looks
from reticent.watching.memory import Memory
from reticent.watching.mixed_outputs import tensors_in
from reticent.watching.models import entrance, fingerprint
from reticent.watching.noise import NoisyGradients
from reticent.watching.schedules import follows_a_metric
from reticent.watching.starts import has_stepped
from reticent.watching.weights import Weights

_LEFT: WeakKeyDictionary[Any, Memory] = WeakKeyDictionary()
"""What each optimizer remembered when its last watch ended."""

_MOST_WRITES = 4
"""Writes to one parameter that may belong to one update of a loop without an optimizer."""


_FORWARDS_FIRST, _FORWARD_EVERY = 16, 8
"""Forward passes after which the weights are looked at, and every so many of the later ones."""


class Moves:
    """Follows the weights of one model around each step of its optimizer.

    Attributes:
        taken: steps of the optimizer.
        noisy: of a private optimizer, what it releases.
        armed: whether noise was added for the step that comes.
        are_lent: whether others are in their place, which will be put back.
        no_records: whether rows go through the model that hold no record, as the program says.
    """

    def __init__(self, optimizer: Any, found: Callable[[Fact], None]) -> None:
        self._optimizer, self._found = optimizer, found
        self._inner = _inside(optimizer)
        self.noisy = NoisyGradients(optimizer) if optimisers.is_private(optimizer) else None
        self.taken, self.armed, self.are_lent, self._stepping = 0, False, False, False
        self.no_records = False
        self._rows: dict[bool, list[int]] = {}
        """Of forward passes that wait for their backward pass, with and without records, how long each input is."""
        self._steps_within = 0
        """Steps that have begun and not ended: one may go on in that of a base class, with the same gradients."""
        self._usual: tuple[tuple[int, bool], ...] = ()
        self._steered: list[Any] = []
        self._memory = Memory()

    def attach(self, model: Any) -> list[Callable[[], None]]:
        """Begin to follow; what is returned puts everything back."""
        self._weights = Weights(model, by_hand=self._optimizer is None)
        self._forwards = 0
        self._own = {id(p) for p in self._weights.parameters}
        trained = [p for p in self._weights.parameters if p.requires_grad]
        self._ends = trained[:1] + trained[-1:]
        self._modes = [self._weights.model, *_owners(self._weights.model, self._ends)]
        handles = [
            register_optimizer_step_pre_hook(self._before_any),
            register_optimizer_step_post_hook(self._after_any),
        ]
        model = entrance(model)
        before, after = Hook(self.given), Hook(self.gave)
        undo = [model.register_forward_pre_hook(before).remove, model.register_forward_hook(after).remove]
        if self._optimizer is not None:
            self._hold()
            if self._memory.written(self._inner):
                self._found(facts.WEIGHTS_CHANGED)
            self._memory.keep(self._inner)
            undo += [self._let_go, self._look_at_schedules]
        return undo + [handle.remove for handle in handles]

    def _hold(self) -> None:
        """Follow the optimizer that moves the weights: of a private one that which is inside it now."""
        self._inner = inner = _inside(self._optimizer)
        self._nests = _nests(inner)
        self._before = inner.register_step_pre_hook(self._just_before)
        self._after = inner.register_step_post_hook(self._just_after)
        inner._optimizer_step_post_hooks.move_to_end(self._after.id, last=False)
        self._steered += [self._optimizer, inner]

    @looks
    def _look_at_schedules(self) -> None:
        if follows_a_metric(self._steered):
            self._found(facts.METRIC_SCHEDULE)

    def _remember(self) -> None:
        """What an optimizer that is put inside remembers must come from steps that were watched."""
        known = _LEFT.get(self._inner)
        if known.written(self._inner) if known is not None else has_stepped(self._inner):
            self._found(facts.WEIGHTS_CHANGED)
        self._memory = known if known is not None else Memory()
        self._memory.keep(self._inner)

    def _let_go(self) -> None:
        self._before.remove()
        self._after.remove()

    def go_on(self) -> None:
        """The loop continues one whose watch has ended."""
        if self._optimizer is not None:
            self._memory = _LEFT.get(_inside(self._optimizer), self._memory)

    def noise_was_added(self) -> None:
        """Noise lies in the gradients for a step that has not begun; one that an error of the program ended is over."""
        self.armed, self._steps_within = True, 0

    @property
    def deviation(self) -> float:
        """Of the noise that the private optimizer states."""
        return float(self._optimizer.noise_multiplier) * float(self._optimizer.max_grad_norm)

    @looks
    def before_others_add(self) -> None:
        """The noisy gradients are about to be used, by the optimizer or by other processes that add theirs."""
        if self.noisy is not None and self.noisy.changed():
            self._found(facts.CHANGED_GRADIENTS)

    def borrowed(self, look: Callable[[], None]) -> None:
        """Weights that ``look`` borrows for a moment are not weights that somebody wrote."""
        self._compare(facts.WEIGHTS_CHANGED)
        look()
        self._weights.keep()

    def update_by_hand(self, skipped: bool) -> None:
        """A loop without an optimizer recorded a step: as far as writes and draws show, one update like the others.

        Args:
            skipped: batches were drawn that belong to no step.
        """
        writes = self._weights.writes()
        most = max((count for count, _ in writes), default=0)
        self._usual = self._usual or writes
        if most > _MOST_WRITES or writes != self._usual or (skipped and most != 1):
            self._found(facts.UNRECORDED_STEPS)
        self._weights.keep()

    def end(self, steps: int, complete: bool) -> None:
        """The loop ended.

        Args:
            steps: noisy steps that were recorded.
            complete: it did not end with an error.
        """
        by_hand = self._optimizer is None
        if self._inner is not None:
            _LEFT[self._inner] = self._memory
        if not by_hand and self.noisy is None and self.taken > steps:
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

    @looks
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
        if self.no_records:
            self._found(facts.MADE_ROWS)
        others = before.get(not self.no_records, rows)
        if self.no_records in before or others != rows or (self.no_records and not rows):
            self._found(facts.MIXES_RECORDS.because(Mixing.PASSES))
        self._rows = before | {self.no_records: rows}

    @looks
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

    @looks
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
            _LEFT[self._inner] = self._memory
            self._hold()
            self._remember()

    @looks
    def _just_before(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._steps_within = self._steps_within + 1 if self._nests else 1
        if self._steps_within > 1:  # a part of a step, before which all was looked at
            return
        if self._weights.written() or (optimizer.state and self._memory.written(optimizer)):
            self._found(facts.WEIGHTS_CHANGED)
        self.before_others_add()
        self._stepping = len(args) < 2 and not kwargs  # a closure may do anything

    @looks
    def _just_after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._steps_within -= 1
        if self._steps_within:
            return
        self.taken += 1
        self._stepping = False
        self._weights.keep()
        if optimizer.state or self._memory.full:
            self._memory.keep(optimizer)
        if self.noisy is not None and not self.armed:
            self._found(facts.UNRECORDED_STEPS)
        self.armed = False

    @looks
    def _after_any(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if optimizer is self._inner or hasattr(optimizer, "original_optimizer") or self._stepping:
            return  # one that steps within a step of ours is a part of it
        moved = {id(p) for group in optimizer.param_groups for p in group["params"]}
        self._found(facts.OTHER_OPTIMISER if moved & self._own else facts.OTHER_MODEL)
        if moved & self._own:
            self._weights.keep()


def _nests(optimizer: Any) -> bool:
    """Whether more than one class of this optimizer has a ``step``, so that one may go on in the other."""
    return sum("step" in vars(kind) for kind in type(optimizer).__mro__ if kind is not torch.optim.Optimizer) > 1


def _owners(model: Any, parameters: list[Any]) -> list[Any]:
    wanted = set(map(id, parameters))
    return [m for m in model.modules() if any(id(p) in wanted for p in m.parameters(recurse=False))]


def _inside(optimizer: Any) -> Any:
    """The optimizer inside a private one, or the optimizer itself."""
    return getattr(optimizer, "original_optimizer", optimizer)

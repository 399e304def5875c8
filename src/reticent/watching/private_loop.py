"""A private optimizer of Opacus, followed from clipping to the step: what each of its methods does, as it is called."""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import attrgetter
from typing import Any
from weakref import WeakKeyDictionary

from reticent import facts
from reticent.facts import Fact
from reticent.facts.clipping import Mixing
from reticent.watching import optimisers, seeds
from reticent.watching.draws import Fresh, Used
from reticent.watching.events import around
from reticent.watching.ghost import GhostClipping
from reticent.watching.hooks import looks
from reticent.watching.layouts import look_at_layouts
from reticent.watching.model_form import FormWatch
from reticent.watching.moves import Moves
from reticent.watching.noise import DrawnNoise, NoisyGradients
from reticent.watching.record_gradients import RecordGradients, follow_hooks, taken_by_the_program, takers_of
from reticent.watching.recorder import Recorder
from reticent.watching.sensitive import SensitiveWatch
from reticent.watching.steps import SeenStep

_MEASURE_EVERY = 128
"""Norms of single records are computed once in so many steps: they cost a pass over all their gradients."""

_NOISE_FIRST = 4
"""Steps at the start in which the length of the noise is measured; afterwards with the norms."""

_LOOKS_FIRST, _LOOK_EVERY = 8, 16
"""Steps at the start that are looked at closely, and every so many of the later ones."""

_NUMBERS = attrgetter("noise_multiplier", "max_grad_norm", "expected_batch_size", "loss_reduction", "generator")
"""What a release follows from, as the optimizer has it now."""

_METHODS = attrgetter("clip_and_accumulate", "add_noise", "scale_grad", "pre_step")
"""The same, of its class or of itself."""

_AT_ONCE = 64
"""Steps that wait at most until they are written down."""

_Piece = tuple[int | None, int, int | None, float, int]
"""What was clipped at once: records, batches, how many were clipped if that was counted, the clip norm, and how many of
the batches were empty."""

_WAITING: WeakKeyDictionary[Any, tuple[list[_Piece], set[Fact]]] = WeakKeyDictionary()
"""Of each optimizer the batches that were clipped in a watch and released in none, with what that watch found."""


class PrivateLoop:
    """Looks at the methods of one optimizer while it is watched."""

    def __init__(self, model: Any, optimizer: Any, recorder: Recorder, moves: Moves, form: FormWatch) -> None:
        self._model, self._optimizer, self._recorder, self._found = model, optimizer, recorder, recorder.found
        self._moves, self._form, self._noisy = moves, form, moves.noisy or NoisyGradients(optimizer)
        self.sensitive: SensitiveWatch | None = None
        self._ghost = optimisers.is_ghost(optimizer)
        self._per_layer = hasattr(optimizer, "max_grad_norms")
        self._ghost_clipping = GhostClipping(model, optimizer, recorder) if self._ghost else None
        self._records = RecordGradients(model, optimizer, recorder.clipped_by_hand)
        self._first = optimisers.first_of(optimizer)
        self._overridden = False
        self._drawn: DrawnNoise | None = None
        """The noise of the step that is being taken, where code of the program adds it."""
        self.noise_seeds = seeds.Seeds(seeds.of_noise(optimizer), recorder.found)
        self._pieces: list[_Piece] = []
        self._sums: list[tuple[Any, Any, int]] = []
        """Sums that wait for further batches of their step, each with its parameter and torch's count of writes."""
        self._undivided: list[tuple[Any, Any, int]] = []
        """The same of noisy gradients that wait to be divided."""
        self._begun, self._most_told = False, math.inf
        """Whether a pass has begun without a step, and of how many parts of batches Opacus was told then."""
        self._old = self._drawn_then = 0
        """Pieces that waited when this pass began, and batches of it that had been drawn when the last one waited."""
        self._parts, self._astray = 0, False
        """Records that wait, of batches that were not drawn for the next step; whether steps end within batches."""
        self._numbers: tuple[Any, ...] = ()
        self._release, self._norm, self._batches = optimisers.Release(0.0, False, 1.0), 1.0, 1
        self._used: Used | tuple[()] | None = ()
        self._rate: float | None = None
        self._records_second = getattr(model, "batch_first", True) is False
        self._late: list[tuple[int | None, int | None, int, int, Fresh]] = []
        self._steps = self._entered = 0
        """Steps so far, and before this entry: other code may have replaced anything since."""
        self._measures = self._looks = False
        recorder.catch_up, recorder.pass_begins = self.catch_up, self.pass_begins

    def attach(self) -> list[Callable[[], None]]:
        """Begin to look; what is returned puts everything back."""
        self._entered = self._steps
        self._numbers = ()  # other code may have replaced anything since
        self._draws, self._coins = self._recorder.draws, self._recorder.coins
        self._told_before = len(self._optimizer._step_skip_queue)
        waits = optimisers.is_pending(self._optimizer)
        self._pieces, faults = _WAITING.pop(self._optimizer, ([], {facts.STEPS_BEFORE})) if waits else ([], set())
        self._recorder.faults |= faults
        self._parts, self._old = sum(piece[0] or 0 for piece in self._pieces), len(self._pieces)
        self._summed, self._takers = False, [] if self._ghost else takers_of(self._model)
        if self._takers:
            self._records.look(exact=True)
        if taken_by_the_program(self._model, takers_of(self._model)):
            self._recorder.gradients_by_hand()
        undo = [
            self._records.attach(),
            follow_hooks(self._model, self._recorder.clipped_by_hand),
            around(
                self._optimizer, "accumulate" if self._ghost else "clip_and_accumulate", self.on_clip, self.after_clip
            ),
            around(self._optimizer, "add_noise", self.on_noise, self.after_noise),
            around(self._optimizer, "scale_grad", self.on_scale, self.after_scale),
        ]
        if hasattr(self._optimizer, "reduce_gradients"):
            undo.append(around(self._optimizer, "reduce_gradients", self._moves.before_others_add, self._keep))
        if self._ghost_clipping is not None:
            undo.append(self._ghost_clipping.attach())
            self._noisy.released = self._ghost_clipping.released
        layouts = look_at_layouts(self._model, ghost=self._ghost, found=self._found)
        return undo + [handle.remove for handle in layouts] + [self._leave, *self._form.attach()]

    @looks
    def _keep(self) -> None:
        self._noisy.keep(values=self._measures)

    def _leave(self) -> None:
        """Batches that wait for their noise count in the first step of the next watch."""
        self.pass_begins()
        if self._pieces:
            _WAITING[self._optimizer] = self._pieces, self._recorder.faults

    def pass_begins(self) -> None:
        """Opacus was told of each part of a batch whether it is the last, and forgets it with the step of the part."""
        self._told, draws = len(self._optimizer._step_skip_queue), self._draws
        left_out = 0 < sum(piece[1] for piece in self._pieces[self._old :]) < self._drawn_then
        if not draws.ahead and (left_out or self._told > self._told_before + draws.unfinished):
            self._found(facts.LEFT_OUT)
        self._begun = True

    def _begin_pass(self, told: int) -> None:
        """What waits since a pass that was broken off was drawn in that; what Opacus was told then ends later steps."""
        self._most_told = told
        waits = sum(piece[0] or 0 for piece in self._pieces) - self._parts
        self._begun, self._old = False, len(self._pieces)
        if self._astray != (0 < self._told < told):
            self.catch_up()
            self._astray = not self._astray
        if waits and self._draws.unfinished > 1 and not self._draws.before_this_pass(waits, self._drawn_then):
            self._parts += waits

    @looks
    def on_clip(self) -> None:
        """Gradients of a batch are about to be clipped."""
        optimizer, recorder = self._optimizer, self._recorder
        if recorder.live.listens and not self._pieces:
            recorder.live.before_step()
        told = len(optimizer._step_skip_queue)
        if self._begun:
            self._begin_pass(told)
        elif told > self._most_told:  # it grows where a part has no step, and a later one has
            self._found(facts.LEFT_OUT)
        if self._sums:
            self._look_at_sums()
        self._summed = self._records.looks
        if self._summed:
            self._records.clipped()
        if not self._first.requires_grad:
            self._first = optimisers.first_of(optimizer)
        size, batches, empty = optimisers.waiting(self._first, self._ghost)
        norm = self._clip_norm()
        norm = norm if norm > 0.0 else math.inf  # what is no length bounds nothing
        measure = self._steps % _MEASURE_EVERY == 0 and size != 0
        clipped = optimisers.count_clipped(optimizer, norm) if measure else None if size else 0
        self._pieces.append((size, batches, clipped, norm, empty))
        if self._form.follows:
            self._form.clipped(batches)
        self._looking(lambda watch: watch.clipped(size))

    def _look_at_sums(self) -> None:
        if any(p.summed_grad is not found or found._version != version for p, found, version in self._sums):
            self._found(facts.CHANGED_GRADIENTS)
        self._sums = []

    @looks
    def after_clip(self) -> None:
        """Gradients of a batch were clipped: nobody may write to their sum, while it waits for others or at all."""
        optimizer = self._optimizer
        if self._summed or optimizer._check_skip_next_step(pop_next=False):
            self._drawn_then = self._draws.in_this_pass()
            waits = [(p, p.summed_grad) for p in optimizer.params if p.summed_grad is not None]
            self._sums = [(p, found, found._version) for p, found in waits]

    def _clip_norm(self) -> float:
        """The norm to which the gradients that wait were clipped, or are about to be."""
        ghost = self._ghost_clipping
        if ghost is not None:
            norm = ghost.clipped()
            if norm:
                return norm
        elif not self._per_layer:
            return float(self._optimizer.max_grad_norm)
        return optimisers.clip_norm(self._optimizer, self._model, self._ghost)

    @looks
    def on_noise(self) -> DrawnNoise | None:
        """The last moment before noise: what was clipped since the last step is what is released now."""
        pieces, self._pieces = self._pieces, []
        if self._sums:
            self._look_at_sums()
        optimizer, recorder = self._optimizer, self._recorder
        new = self._steps - self._entered
        self._measures = new < _NOISE_FIRST or self._steps % _MEASURE_EVERY == 0
        if self._measures:
            recorder.count_trained()
            if self._ghost_clipping is not None:
                self._ghost_clipping.look_again()
        self._looks = new < _LOOKS_FIRST or self._steps % _LOOK_EVERY == 0
        if self._takers and (self._measures or self._looks):
            self._records.look(exact=self._measures)
        if not pieces:  # the program clipped by itself, and took Opacus's noise alone
            recorder.clipped_by_hand()
        size, batches, clipped, norm, empty = pieces[0] if len(pieces) == 1 else _together(pieces)
        adjusted, added = vars(optimizer).get("_adjusted_noise_multiplier"), pieces[-1][1] if pieces else 1
        rate = None if self._coins is None else float(self._coins.sample_rate)
        methods = type(optimizer), _METHODS(type(optimizer)), _METHODS(optimizer)
        numbers = (_NUMBERS(optimizer), methods, adjusted, norm, batches, added, rate)
        usual = numbers == self._numbers and not adjusted and self.sensitive is None  # as nearly always
        if not usual:
            self.catch_up()
            recorder.noise_from()
            self.noise_seeds.exchange(seeds.of_noise(optimizer))
            self._release = optimisers.release_of(optimizer, norm, size, added)
            self._numbers, self._norm, self._batches = numbers, norm, batches
            self._used = ()
        self._late.append((size, clipped, self._parts, empty, self._draws.fresh()))
        self._steps, self._parts, self._old = self._steps + 1, 0, 0
        if self._release.noise_multiplier > 0.0:
            self.noise_seeds.drawn()
        elif self.noise_seeds.public():
            self._found(facts.PUBLIC_SEED)
        if not usual or len(self._late) == _AT_ONCE or recorder.live.listens:
            self.catch_up()
        if not usual or self._looks:
            self._overridden = optimisers.noise_is_overridden(optimizer)
        looked = (self._overridden or self._measures) and not self._noisy.sharded
        self._drawn = DrawnNoise(optimizer, self._moves.deviation) if looked else None
        return self._drawn

    @looks
    def after_noise(self) -> None:
        """Noise was added."""
        self._moves.noise_was_added()
        if self._drawn is not None:
            self._drawn.look(self._found)
        if self._looks or self._measures:
            self._undivided = [(p, p.grad, p.grad._version) for p in self._optimizer.params if p.grad is not None]

    @looks
    def on_scale(self) -> None:
        """The noisy gradients are about to be divided: nobody wrote to them since their noise."""
        noisy, self._undivided = self._undivided, []
        if any(p.grad is not found or found._version != version for p, found, version in noisy):
            self._found(facts.CHANGED_GRADIENTS)

    @looks
    def after_scale(self) -> None:
        """The noisy gradients were divided, or what code of the program does instead."""
        drawn, self._drawn = self._drawn, None
        if drawn is not None:
            divisor = drawn.divisor()
            if divisor is None:
                self._found(facts.UNKNOWN_NOISE)
            elif not math.isclose(divisor, self._release.divisor, rel_tol=1e-4):
                self.catch_up()
                self._recorder.steps.divided(divisor)
        self._keep()

    @looks
    def catch_up(self) -> None:
        """Write down the steps that wait. They are alike but for their draws, and many at once take less time."""
        late, self._late = self._late, []
        recorder = self._recorder
        self.noise_seeds.settle()
        for size, clipped, parts, empty, fresh in late:
            used = None if self._astray else recorder.used(size, fresh, parts, empty, self._batches)
            rate = self._numbers[-1]
            if used is None and self._records_second and size is not None:
                recorder.found(facts.MIXES_RECORDS.because(Mixing.BATCH))
            if rate is not None and recorder.drawn_at > rate:  # lowered since the batch was drawn
                rate = recorder.drawn_at
            if used == self._used and rate == self._rate:
                recorder.again(size, clipped)
            else:
                self._add(size, clipped, used, rate)

    def _add(self, size: int | None, clipped: int | None, used: Used | None, rate: float | None) -> None:
        """A step that is not like the last one."""
        release, norm, batches = self._release, self._norm, self._batches
        if release.differ:
            self._found(facts.CLIP_AND_NOISE_DIFFER)
        noise, self._used, self._rate = release.noise_multiplier, used, rate
        self._recorder.add(SeenStep(noise, norm, release.divisor, rate, size, clipped, batches, used))
        drawn = batches if used is None else used.batches
        self._looking(lambda watch: watch.noisy(noise, norm, release.differ, drawn))

    def _looking(self, look: Callable[[SensitiveWatch], None]) -> None:
        sensitive = self.sensitive
        if sensitive is not None:
            self._moves.borrowed(lambda: look(sensitive))


def _together(pieces: list[_Piece]) -> _Piece:
    """Several pieces that were clipped for one step, or none, as one; the largest norm counts."""
    batches, empty = max(1, sum(piece[1] for piece in pieces)), sum(piece[4] for piece in pieces)
    norm = max((piece[3] for piece in pieces), default=1.0)
    return _total([piece[0] for piece in pieces]), batches, _total([piece[2] for piece in pieces]), norm, empty


def _total(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if counts and len(known) == len(counts) else None

"""A private optimizer of Opacus, followed from clipping to the step: what each of its methods does, as it is called."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager
from operator import attrgetter
from typing import Any
from weakref import WeakKeyDictionary

from reticent import facts
from reticent.facts import Fact
from reticent.facts.clipping import Mixing
from reticent.watching import optimisers
from reticent.watching.detectors import clipping, draws, ghost, parts, seeds
from reticent.watching.detectors.base import Detector, Loop, Step
from reticent.watching.events import Undo, around
from reticent.watching.hooks import guarded
from reticent.watching.recorder import Recorder
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
    """Looks at the methods of one optimizer while it is watched, tells the detectors, and counts its steps."""

    def __init__(self, loop: Loop, recorder: Recorder) -> None:
        self._loop, self._model, self._optimizer, self._found = loop, loop.model, loop.optimizer, loop.found
        self._recorder = recorder
        self._per_layer = hasattr(self._optimizer, "max_grad_norms")
        self._first = optimisers.first_of(self._optimizer)
        self._drawing, self._parts = loop.of(draws.Drawing), loop.of(parts.Parts)
        self._pieces: list[_Piece] = []
        self._numbers: tuple[Any, ...] = ()
        self._release, self._norm, self._batches = optimisers.Release(0.0, False, 1.0), 1.0, 1
        self._used: draws.Used | tuple[()] | None = ()
        self._rate: float | None = None
        self._records_second = getattr(self._model, "batch_first", True) is False
        self._late: list[tuple[int | None, int | None, int, int, draws.Fresh]] = []
        self._steps = 0
        loop.catch_up = guarded(self._catch_up, loop.failed)

    def attach(self) -> Iterator[Undo]:
        """Follow the optimizer's methods."""
        loop, optimizer = self._loop, self._optimizer
        self._numbers = ()  # other code may have replaced anything since
        self._draws, self._coins = self._drawing.draws, self._drawing.coins
        waits = optimisers.is_pending(optimizer)
        self._pieces, faults = _WAITING.pop(optimizer, ([], {facts.STEPS_BEFORE})) if waits else ([], set())
        loop.faults |= faults
        self._parts.waiting = self._parts.strange = sum(piece[0] or 0 for piece in self._pieces)
        self._tell_clip, self._tell_noise = loop.tells(Detector.on_clip), loop.tells(Detector.on_noise)
        self._tell_recorded = loop.tells(Detector.recorded)
        clip, clipped = guarded(self.clips, loop.failed), loop.tells(Detector.after_clip)
        noise, scaled = guarded(self.releases, loop.failed), loop.tells(Detector.after_scale)
        yield around(optimizer, "accumulate" if loop.ghost else "clip_and_accumulate", clip, clipped)
        yield around(optimizer, "add_noise", noise, loop.tells(Detector.after_noise))
        yield around(optimizer, "scale_grad", loop.tells(Detector.on_scale), lambda: scaled(self._release.divisor))
        yield self._leave

    def _leave(self) -> None:
        """Batches that wait for their noise count in the first step of the next watch."""
        if self._pieces:
            _WAITING[self._optimizer] = self._pieces, self._loop.faults

    def clips(self) -> None:
        """Gradients of a batch are about to be clipped."""
        optimizer, live, ghost = self._optimizer, self._recorder.live, self._loop.ghost
        if live.listens and not self._pieces:
            live.before_step()
        if not self._first.requires_grad:
            self._first = optimisers.first_of(optimizer)
        size, batches, empty = optimisers.waiting(self._first, ghost)
        norm = self._clip_norm()
        norm = norm if norm > 0.0 else math.inf  # what is no length bounds nothing
        measure = self._steps % _MEASURE_EVERY == 0 and size != 0
        clipped = optimisers.count_clipped(optimizer, norm) if measure else None if size else 0
        self._tell_clip(size, batches)
        self._pieces.append((size, batches, clipped, norm, empty))

    def _clip_norm(self) -> float:
        """The norm to which the gradients that wait were clipped, or are about to be."""
        if self._loop.ghost:
            norm = self._loop.of(ghost.GhostClipping).clipped()
            if norm:
                return norm
        elif not self._per_layer:
            return float(self._optimizer.max_grad_norm)
        return optimisers.clip_norm(self._optimizer, self._model, self._loop.ghost)

    def releases(self) -> AbstractContextManager[Any] | None:
        """The last moment before noise: what was clipped since the last step is what is released now."""
        pieces, self._pieces = self._pieces, []
        optimizer, steps = self._optimizer, self._steps
        measured = steps < _NOISE_FIRST or steps % _MEASURE_EVERY == 0
        close = steps < _LOOKS_FIRST or steps % _LOOK_EVERY == 0
        if not pieces:  # the program clipped by itself, and took Opacus's noise alone
            self._loop.of(clipping.Clipping).not_by_opacus()
        size, batches, clipped, norm, empty = pieces[0] if len(pieces) == 1 else _together(pieces)
        adjusted, added = vars(optimizer).get("_adjusted_noise_multiplier"), pieces[-1][1] if pieces else 1
        rate = None if self._coins is None else float(self._coins.sample_rate)
        methods = type(optimizer), _METHODS(type(optimizer)), _METHODS(optimizer)
        numbers = (_NUMBERS(optimizer), methods, adjusted, norm, batches, added, rate)
        usual = numbers == self._numbers and not adjusted and self._loop.said.sensitive is None  # as nearly always
        if not usual:
            self._loop.catch_up()
            self._release = optimisers.release_of(optimizer, norm, size, added)
            self._numbers, self._norm, self._batches = numbers, norm, batches
            self._used = ()
        self._late.append((size, clipped, self._parts.strange, empty, self._draws.fresh()))
        self._steps += 1
        context = self._tell_noise(Step(measured, close, usual, self._release.noise_multiplier > 0.0))
        if not usual or len(self._late) == _AT_ONCE or self._recorder.live.listens:
            self._loop.catch_up()
        return context

    def _catch_up(self) -> None:
        """Write down the steps that wait. They are alike but for their draws, and many at once take less time."""
        late, self._late = self._late, []
        recorder, drawing = self._recorder, self._drawing
        seeds.Seeds.settle()
        for size, clipped, strange, empty, fresh in late:
            used = None if self._parts.astray else drawing.used(size, fresh, strange, empty, self._batches)
            rate = self._numbers[-1]
            if used is None and self._records_second and size is not None:
                self._found(facts.MIXES_RECORDS.because(Mixing.BATCH))
            if rate is not None and drawing.drawn_at > rate:  # lowered since the batch was drawn
                rate = drawing.drawn_at
            if used == self._used and rate == self._rate:
                recorder.again(size, clipped)
            else:
                self._add(size, clipped, used, rate)

    def _add(self, size: int | None, clipped: int | None, used: draws.Used | None, rate: float | None) -> None:
        """A step that is not like the last one."""
        release, norm, batches = self._release, self._norm, self._batches
        if release.differ:
            self._found(facts.CLIP_AND_NOISE_DIFFER)
        noise, self._used, self._rate = release.noise_multiplier, used, rate
        self._recorder.add(SeenStep(noise, norm, release.divisor, rate, size, clipped, batches, used))
        drawn = batches if used is None else used.batches
        self._tell_recorded(noise, norm, release.differ, drawn)


def _together(pieces: list[_Piece]) -> _Piece:
    """Several pieces that were clipped for one step, or none, as one; the largest norm counts."""
    batches, empty = max(1, sum(piece[1] for piece in pieces)), sum(piece[4] for piece in pieces)
    norm = max((piece[3] for piece in pieces), default=1.0)
    return _total([piece[0] for piece in pieces]), batches, _total([piece[2] for piece in pieces]), norm, empty


def _total(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if counts and len(known) == len(counts) else None

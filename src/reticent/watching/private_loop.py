"""A private optimizer of Opacus, followed from clipping to the step: what each of its methods does, as it is called."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from reticent.records.watch_faults import Fault
from reticent.watching import optimisers, seeds
from reticent.watching.draws import Used
from reticent.watching.layouts import look_at_layouts
from reticent.watching.model_form import FormWatch
from reticent.watching.moves import Moves
from reticent.watching.recorder import Recorder
from reticent.watching.sensitive import SensitiveWatch
from reticent.watching.steps import SeenStep

_MEASURE_EVERY = 64
"""Norms of single records are computed once in so many steps: they cost a pass over all their gradients."""

_NOISE_FIRST = 8
"""Steps at the start in which the length of the noise is measured; afterwards with the norms."""

_PICK, _LOOKED_AT = random.Random(), 0.125  # noqa: S311  (of its own: nobody's noise comes from it)
"""In which later steps the state of the generator is looked at, so that nobody can tell before."""

_Piece = tuple[int | None, int, int | None, float]
"""A batch that was clipped: records, batches, how many were clipped if that was counted, and the clip norm."""

_WAITING: WeakKeyDictionary[Any, list[_Piece]] = WeakKeyDictionary()
"""Of each optimizer the batches that were clipped in a watch and released in none."""


class PrivateLoop:
    """Looks at the methods of one optimizer while it is watched."""

    def __init__(self, model: Any, optimizer: Any, recorder: Recorder, moves: Moves, form: FormWatch) -> None:
        self._model, self._optimizer, self._recorder = model, optimizer, recorder
        self._moves, self._form = moves, form
        self.sensitive: SensitiveWatch | None = None
        self._ghost = optimisers.is_ghost(optimizer)
        self._generator, self._first = optimizer.generator, optimisers.first_of(optimizer)
        self.noise_seeds = seeds.Seeds(seeds.of_noise(optimizer))
        self._pieces: list[_Piece] = []
        self._facts: tuple[Any, ...] = ()
        self._noise, self._known = 0.0, _NOISE_FIRST
        self._measures = self._looks = False

    def attach(self) -> list[Callable[[], None]]:
        """Begin to look; what is returned puts everything back."""
        self._known = len(self._recorder.steps) + _NOISE_FIRST  # whoever was here since may have replaced the noise
        waits = optimisers.is_pending(self._optimizer)
        self._pieces = _WAITING.pop(self._optimizer, []) if waits else []
        if waits and not self._pieces:
            self._recorder.found(Fault.STEPS_BEFORE)
        noisy = self._moves.noisy
        undo = [
            self._around("accumulate" if self._ghost else "clip_and_accumulate", before=self.on_clip),
            self._around("add_noise", before=self.on_noise, after=self.after_noise),
        ]
        if noisy is not None:
            undo.append(self._around("scale_grad", after=lambda: noisy.keep(values=self._measures)))
        layouts = look_at_layouts(self._model, ghost=self._ghost, found=self._recorder.found)
        return undo + [handle.remove for handle in layouts] + [self._leave, *self._form.attach()]

    def _leave(self) -> None:
        """Batches that wait for their noise count in the first step of the next watch."""
        if self._pieces:
            _WAITING[self._optimizer] = self._pieces

    def on_clip(self) -> None:
        """Gradients of a batch are about to be clipped."""
        if not self._pieces:
            self._recorder.live.before_step()
        optimizer = self._optimizer
        if not self._first.requires_grad:
            self._first = optimisers.first_of(optimizer)
        size, batches = optimisers.waiting(self._first, self._ghost)
        norm = optimisers.clip_norm(optimizer, self._model, self._ghost)
        measure = len(self._recorder.steps) % _MEASURE_EVERY == 0 and size != 0
        clipped = optimisers.count_clipped(optimizer, norm) if measure else None if size else 0
        self._pieces.append((size, batches, clipped, norm))
        self._form.clipped(batches)
        if self.sensitive is not None:
            self._looking(lambda watch: watch.clipped(size))

    def on_noise(self) -> None:
        """The last moment before noise: what was clipped since the last step is what is released now."""
        pieces, self._pieces = self._pieces, []
        optimizer, recorder, steps = self._optimizer, self._recorder, len(self._recorder.steps)
        self._measures = steps < self._known or steps % _MEASURE_EVERY == 0
        self._looks = self._measures or _PICK.random() < _LOOKED_AT
        size, batches, clipped, norm = pieces[0] if len(pieces) == 1 else _together(pieces)
        added = pieces[-1][1] if pieces else 1
        used = recorder.used(size)
        facts = (
            *(optimizer.noise_multiplier, optimizer.max_grad_norm, vars(optimizer).get("_adjusted_noise_multiplier")),
            *(optimizer.expected_batch_size, optimizer.loss_reduction, norm, batches, added, used, recorder.rate(None)),
        )
        if facts == self._facts and not facts[2] and self.sensitive is None:  # as nearly always
            recorder.again(size, clipped)
        else:
            self._release((size, batches, clipped, norm), added, used)
            self._facts = facts
        self._look_at_seeds()

    def after_noise(self) -> None:
        """Noise was added."""
        if self._looks:
            self.noise_seeds.arrive()
        self._moves.noise_added(self._measures)

    def _release(self, piece: _Piece, added: int, used: Used | None) -> None:
        """A step that is not like the last one."""
        size, batches, clipped, norm = piece
        release = optimisers.release_of(self._optimizer, norm, size, added)
        if release.differ:
            self._recorder.found(Fault.CLIP_AND_NOISE_DIFFER)
        self._noise = noise = release.noise_multiplier
        rate = self._recorder.rate(None)
        self._recorder.add(SeenStep(noise, norm, release.divisor, rate, size, clipped, batches, used))
        drawn = batches if used is None else used.batches
        self._looking(lambda watch: watch.noisy(noise, norm, release.differ, drawn))

    def _look_at_seeds(self) -> None:
        if self._optimizer.generator is not self._generator:
            self._generator = self._optimizer.generator
            self.noise_seeds.exchange(seeds.of_noise(self._optimizer))
        if self.noise_seeds.public():
            self._recorder.found(Fault.PUBLIC_SEED)
        if self._noise > 0.0 and self.noise_seeds.repeated(look=self._looks):
            self._recorder.found(Fault.REPEATED_NOISE)

    def _looking(self, look: Callable[[SensitiveWatch], None]) -> None:
        sensitive = self.sensitive
        if sensitive is not None:
            self._moves.borrowed(lambda: look(sensitive))

    def _around(
        self, name: str, before: Callable[[], None] | None = None, after: Callable[[], None] | None = None
    ) -> Callable[[], None]:
        """Call these before and after the method ``name`` of the optimizer, on this object only."""
        optimizer, method = self._optimizer, getattr(self._optimizer, name)

        def looked_at(*args: Any, **kwargs: Any) -> Any:
            if before is not None:
                before()
            found = method(*args, **kwargs)
            if after is not None:
                after()
            return found

        looked_at.reticent_watches = True  # type: ignore[attr-defined]
        previous = vars(optimizer).get(name)
        setattr(optimizer, name, looked_at)
        return lambda: setattr(optimizer, name, previous) if previous else delattr(optimizer, name)


def _together(pieces: list[_Piece]) -> _Piece:
    """Several batches that were clipped for one step, or none: records, batches, clipped ones, and the largest norm."""
    batches, norm = max(1, sum(piece[1] for piece in pieces)), max((piece[3] for piece in pieces), default=1.0)
    return _total([piece[0] for piece in pieces]), batches, _total([piece[2] for piece in pieces]), norm


def _total(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if counts and len(known) == len(counts) else None

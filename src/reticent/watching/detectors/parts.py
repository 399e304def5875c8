"""Parts of batches, as those of a ``BatchMemoryManager``: which of them belong to a step."""

from __future__ import annotations

import math

from reticent import facts
from reticent.watching.detectors.base import Detector, Loop, Step, Undos
from reticent.watching.detectors.draws import Drawing


class Parts(Detector):
    """Parts of batches that no step used, where Opacus adds parts up.

    Opacus was told of each part of a batch whether it is the last, and forgets it with the step of the part.

    Kind: how records are drawn.

    Seen: of a ``BatchMemoryManager`` also parts of batches, by what Opacus still knows of them. In ghost mode each
    backward pass drops the batch before, unless ``signal_skip_step`` and ``step`` were called for it. No noise counts
    then: with noise 1 and rate 1/48, whoever leaves out empty batches shows a record with .099 in 48 draws, and all 48
    with a step each .072.

    Not seen: of a ``BatchMemoryManager`` one part that is the first of a pass that is broken off, or of one that
    workers load.

    Attributes:
        waiting: records that were clipped since the last step.
        strange: those of them in batches that were not drawn for the step that comes.
        astray: whether steps end within batches.
    """

    of_opacus = True

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self.waiting = self.strange = 0
        self._here = self._drawn_then = 0
        """Batches of this pass that wait, and how many of it had been drawn when the last of them was clipped."""
        self.astray = self._begun = False
        self._most_told = math.inf
        """Of how many parts Opacus was told when a pass began last; and whether one began since."""

    def attach(self) -> Undos:
        """What Opacus was told before is nobody's fault; in the end it is looked at once more."""
        self._draws, self._told_before, self._here = self._loop.of(Drawing).draws, self._told, 0
        yield self.on_pass

    @property
    def _told(self) -> int:
        return len(self._optimizer._step_skip_queue)

    def on_pass(self) -> None:
        """Parts of the pass before may be left."""
        self._at_pass = told = self._told
        left_out = 0 < self._here < self._drawn_then
        if not self._draws.ahead and (left_out or told > self._told_before + self._draws.unfinished):
            self._found(facts.LEFT_OUT)
        self._begun = True

    def on_clip(self, size: int | None, batches: int) -> None:
        """A part goes on; what Opacus was told of grows where a part has no step, and a later one has."""
        told = self._told
        if self._begun:
            self._begin_pass(told)
        elif told > self._most_told:
            self._found(facts.LEFT_OUT)
        self.waiting, self._here = self.waiting + (size or 0), self._here + batches
        self._drawn_then = self._draws.in_this_pass()

    def _begin_pass(self, told: int) -> None:
        """What waits since a pass that was broken off was drawn in that; what Opacus was told then ends later steps."""
        self._most_told = told
        self._begun, self._here = False, 0
        if self.astray != (0 < self._at_pass < told):
            self._loop.catch_up()
            self.astray = not self.astray
        waits = self.waiting - self.strange
        if waits and self._draws.unfinished > 1 and not self._draws.before_this_pass(waits, self._drawn_then):
            self.strange += waits

    def on_noise(self, step: Step) -> None:
        """All that waits goes into this step."""
        self.waiting = self.strange = self._here = 0

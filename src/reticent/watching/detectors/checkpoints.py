"""Weights that the program keeps, and puts back: they were released by the steps before, so all steps count for them.

What ``state_dict`` gave after a step is known by its fingerprint when ``load_state_dict`` brings it back, as the best
of several epochs. Nobody sees how it was chosen.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from reticent import facts
from reticent.facts.checkpoints import MOST_CHECKPOINTS
from reticent.watching.detectors.base import Detector, Fields, Loop, Undos
from reticent.watching.detectors.moves import Moves
from reticent.watching.detectors.weights import Buffers
from reticent.watching.models import bare, fingerprint


class Checkpoints(Detector):
    """Weights of earlier steps that the program kept, and puts back.

    Kind: weights and updates.

    Seen: the weights that ``state_dict`` gives, at most 256 of them, when ``load_state_dict`` brings them back.

    Not seen: how weights that come back were chosen.
    """

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._model, self._moves = bare(loop.model), loop.of(Moves)
        self._steps: dict[str, int] = {}
        """By fingerprint, after how many steps the weights were these."""
        self._looking = False

    def attach(self) -> Undos:
        """Follow ``state_dict`` and ``load_state_dict``."""
        yield self._model.register_state_dict_pre_hook(self.hook(self.kept)).remove
        yield self._model.register_load_state_dict_post_hook(self.hook(self.loaded)).remove

    def kept(self, model: Any, *_: Any) -> None:
        """Somebody asks for the weights."""
        steps = self._moves.taken
        known = not steps or steps in self._steps.values() or len(self._steps) == MOST_CHECKPOINTS
        if model is self._model and not known and not self._looking and self._moves.settled():
            with self._asking():
                if not self._loop.of(Buffers).learnt():
                    self._steps[fingerprint(model)] = steps

    def loaded(self, model: Any, *_: Any) -> None:
        """Weights were put in: all of them may be those after a step."""
        if model is not self._model or self._moves.are_lent or not self._steps:
            return
        with self._asking():
            steps = self._steps.get(fingerprint(model))
        if steps is not None:
            self._moves.put_back()
            if steps != self._moves.taken:
                self._found(facts.PUT_BACK)

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Who asks for the weights now is the watch."""
        self._looking = True
        try:
            yield
        finally:
            self._looking = False

    def facts(self) -> Fields:
        """The fingerprints, but for that of the last weights."""
        digests = tuple(digest for digest in self._steps if digest != self._loop.last)
        return {facts.CHECKPOINTS.key: digests} if digests else {}

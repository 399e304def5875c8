"""Weights that the program keeps, and puts back: they were released by the steps before, so all steps count for them.

What ``state_dict`` gave after a step is known by its fingerprint when ``load_state_dict`` brings it back, as the best
of several epochs. Nobody sees how it was chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from reticent import facts
from reticent.facts import Fact
from reticent.facts.checkpoints import MOST_CHECKPOINTS
from reticent.watching.hooks import Hook, looks
from reticent.watching.models import bare, fingerprint
from reticent.watching.moves import Moves


class Checkpoints:
    """Follows what is kept of one model, and what is put back."""

    def __init__(self, model: Any, moves: Moves, learnt: Callable[[], bool], found: Callable[[Fact], None]) -> None:
        """Prepare; ``learnt``: whether a buffer of the model holds what it learnt from records."""
        self._model, self._moves, self._learnt, self._found = bare(model), moves, learnt, found
        self._steps: dict[str, int] = {}
        """By fingerprint, after how many steps the weights were these."""
        self._looking = False

    def attach(self) -> list[Callable[[], None]]:
        """Begin to look; what is returned ends it."""
        kept, loaded = Hook(self.kept), Hook(self.loaded)
        handles = [
            self._model.register_state_dict_pre_hook(kept),
            self._model.register_load_state_dict_post_hook(loaded),
        ]
        return [handle.remove for handle in handles]

    @looks
    def kept(self, model: Any, *_: Any) -> None:
        """Somebody asks for the weights."""
        steps = self._moves.taken
        known = not steps or steps in self._steps.values() or len(self._steps) == MOST_CHECKPOINTS
        if model is self._model and not known and not self._looking and self._moves.settled():
            with self._asking():
                if not self._learnt():
                    self._steps[fingerprint(model)] = steps

    @looks
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

    def stated(self, last: str | None) -> dict[str, tuple[str, ...]]:
        """The fingerprints as a fact of a ledger, but for that of the last weights."""
        digests = tuple(digest for digest in self._steps if digest != last)
        return {facts.CHECKPOINTS.key: digests} if digests else {}

"""How many numbers are trained."""

from __future__ import annotations

import math

from reticent.watching import models
from reticent.watching.detectors.base import Detector, Fields, Loop, Step


class Trained(Detector):
    """How many numbers are trained: the fewest of all times count, as few directions hide little.

    Kind: form and size of gradients.

    Seen: the parameters at the start, at the end and where the noise is measured.

    Not seen: layers that are frozen for fewer than 128 steps in the middle of a run.
    """

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._fewest = math.inf

    def enters(self, again: bool) -> None:
        """Count at the start."""
        self._count()

    def on_noise(self, step: Step) -> None:
        """Count where the noise is measured."""
        if step.measured:
            self._count()

    def says(self) -> Fields:
        """The fewest, and those of now."""
        self._count()
        return {"num_parameters": int(self._fewest) or None}

    def _count(self) -> None:
        groups = [] if self._optimizer is None else self._optimizer.param_groups
        moved = {id(p) for group in groups for p in group["params"]}
        own = models.trained(self._model)
        now = sum(p.numel() for p in own if self._optimizer is None or id(p) in moved)
        self._fewest = min(now, self._fewest)

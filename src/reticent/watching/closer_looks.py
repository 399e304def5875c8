"""Looks that cost too much for each step are taken at first, and later at random: nobody can tell before."""

from __future__ import annotations

import math
import random

DICE = random.Random()  # noqa: S311
"""What decides which steps are looked at; of its own: nobody's noise comes from it."""


def some_of(count: int, most: int) -> list[int]:
    """At most so many of the numbers from 0 to below ``count``, each once."""
    return DICE.sample(range(count), min(most, count))


class CloserLooks:
    """Says of one step after the other whether a closer look is taken.

    Args:
        first: so many steps are looked at for certain.
        share: the probability of each later one.
    """

    def __init__(self, first: int, share: float) -> None:
        self._first, self._log = first, math.log1p(-share)
        self._until = 0

    def due(self) -> bool:
        """Whether a look is taken at the step that comes now."""
        self._until -= 1
        if self._until >= 0:
            return False
        if self._first > 0:
            self._first -= 1
        if not self._first:
            self._until = int(math.log(1.0 - DICE.random()) / self._log)  # a geometric number of steps without
        return True

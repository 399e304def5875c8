"""Which of many records are looked at."""

from __future__ import annotations

import random

DICE = random.Random()  # noqa: S311
"""What decides that; of its own: nobody's noise comes from it."""


def some_of(count: int, most: int) -> list[int]:
    """At most so many of the numbers from 0 to below ``count``, each once."""
    return DICE.sample(range(count), min(most, count))

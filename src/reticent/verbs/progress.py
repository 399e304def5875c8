"""How far long work is, in words for whoever shows them."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reticent import tasks

Say = Callable[[str], None]
_BAR = 30  # characters
_LEAST = 0.1  # seconds between two pictures


def counted(show: Say | None, title: str = "") -> Callable[[int, int], None] | None:
    """A callback (done, planned) that shows a bar with the remaining time; None where nothing is shown.

    Args:
        show: called with the bar.
        title: stands before it.
    """
    begun: dict[int, tuple[float, int]] = {}
    due = 0.0

    def draw(done: int, planned: int) -> None:
        """What a resumed run found done says nothing about the time that the rest takes."""
        nonlocal due
        now = time.monotonic()
        if show is None or (now < due and done < planned):
            return
        due = now + _LEAST
        start, found = begun.setdefault(planned, (now, done))
        left = round((now - start) * (planned - done) / (done - found)) if done > found else None
        shown = "" if left is None else f", {timedelta(seconds=left)} left"
        show(f"{title}[{'#' * (_BAR * done // max(planned, 1)):{_BAR}}] {done}/{planned}{shown}")

    return None if show is None else draw


def reporting(bar: Callable[[int, int], None] | None, say: Say | None) -> Callable[[tasks.Progress], None]:
    """Progress of tasks for a bar; why nothing moves is said once."""
    said: list[str | None] = [None]

    def report(seen: tasks.Progress) -> None:
        if bar is not None:
            bar(seen.done, seen.total)
        if say is not None and seen.waiting is not None and seen.waiting != said[0]:
            say(f"reticent: {seen.waiting}; {seen.done} of {seen.total} tasks are done; waiting")
        said[0] = seen.waiting

    return report

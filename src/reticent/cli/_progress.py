"""Progress on standard error, in one line that is written over, only where somebody watches."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from reticent.text import printable

if TYPE_CHECKING:
    from reticent import tasks

_BAR = 30  # characters
_LEAST = 0.1  # seconds between two pictures
_CLEAR = "\r\x1b[K"
"""Back to where the line begins, and away with what stands there."""


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[int, int], None] | None]:
    """A callback (done, planned) that draws a bar with the remaining time; None without a terminal."""
    with waiting(title) as show:
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
            show(f"[{'#' * (_BAR * done // max(planned, 1)):{_BAR}}] {done}/{planned}{shown}")

        yield None if show is None else draw


def reporting(bar: Callable[[int, int], None] | None) -> Callable[[tasks.Progress], None]:
    """Progress of tasks for a bar; why nothing moves is said once, in one line on standard error."""
    said: list[str | None] = [None]

    def report(seen: tasks.Progress) -> None:
        if bar is not None:
            bar(seen.done, seen.total)
        if seen.waiting is not None and seen.waiting != said[0]:
            note(f"reticent: {seen.waiting}; {seen.done} of {seen.total} tasks are done; waiting")
        said[0] = seen.waiting

    return report


@contextmanager
def waiting(title: str) -> Iterator[Callable[[str], None] | None]:
    """A callback that shows what is being worked on; None without a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = shutil.get_terminal_size().columns

    def show(name: str) -> None:
        sys.stderr.write(f"{_CLEAR}{printable(f'{title} {name}', columns - 1)}")
        sys.stderr.flush()

    show("")
    try:
        yield show
    finally:
        sys.stderr.write(_CLEAR)


def note(line: str) -> None:
    """A line that stays on standard error, in place of a bar."""
    sys.stderr.write(f"{_CLEAR if sys.stderr.isatty() else ''}{line}\n")

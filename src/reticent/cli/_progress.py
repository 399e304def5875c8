"""Progress bars on standard error, only where somebody watches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reticent import tasks


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[int, int], None] | None]:
    """A callback (done, planned) that draws a bar with the remaining time; None without a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, planned: bar.update(task, completed=done, total=planned)


def reporting(bar: Callable[[int, int], None] | None) -> Callable[[tasks.Progress], None]:
    """Progress of tasks for a bar; why nothing moves is said once, in one line on standard error."""
    said: list[str | None] = [None]

    def report(seen: tasks.Progress) -> None:
        if bar is not None:
            bar(seen.done, seen.total)
        if seen.waiting is not None and seen.waiting != said[0]:
            sys.stderr.write(f"reticent: {seen.waiting}; {seen.done} of {seen.total} tasks are done; waiting\n")
        said[0] = seen.waiting

    return report


@contextmanager
def waiting(title: str) -> Iterator[Callable[[str], None] | None]:
    """A callback that shows what is being worked on; None without a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status(title) as status:
        yield lambda name: status.update(f"{title} {name}")

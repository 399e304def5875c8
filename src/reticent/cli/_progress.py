"""Progress bars on standard error, only where somebody watches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[int, int], None] | None]:
    """A callback (done, planned) that draws a bar with the remaining time; None without a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, planned: bar.update(task, completed=done, total=planned)


@contextmanager
def waiting(title: str) -> Iterator[Callable[[str], None] | None]:
    """A callback that shows what is being worked on; None without a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    with Console(stderr=True).status(title) as status:
        yield lambda name: status.update(f"{title} {name}")

"""Progress on standard error, in one line that is written over, only where somebody watches."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from reticent.kernel.text import printable
from reticent.verbs.progress import counted

_CLEAR = "\r\x1b[K"
"""Back to where the line begins, and away with what stands there."""


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[int, int], None] | None]:
    """A callback (done, planned) that draws a bar with the remaining time; None without a terminal."""
    with waiting(title) as show:
        yield counted(show)


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

"""What a command may use while it reads a file from outside: seconds and memory."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from reticent.kernel.text import printable

SECONDS = 120.0
"""Longer than any certificate of ours takes."""
_MEMORY = 2 << 30
"""Bytes, beyond what the process holds already."""
_ours = False


def own_process() -> None:
    """The process is there for one command: it may be ended when the command takes too long."""
    global _ours
    _ours = True


@contextmanager
def limited(what: Path, seconds: float = SECONDS, option: str = " (--timeout)") -> Iterator[None]:
    """A block that takes longer ends the process with one line and exit code 2; more memory is refused.

    Args:
        what: is looked at, for the line.
        seconds: until the end.
        option: that sets them, as the line names it.

    Raises:
        ParameterError: ``seconds`` is not a finite number > 0.
        MemoryError: from within the block.
    """
    from reticent.kernel import checks  # loads numpy, which --help does not need

    checks.positive(timeout=seconds)
    line = f"reticent: {printable(what)}: not done after {seconds:g} seconds{option}; it may ask for far too much\n"
    watch = threading.Timer(seconds, _end, [line])
    watch.daemon = True
    with _less_memory():
        if _ours:
            watch.start()
        try:
            yield
        finally:
            watch.cancel()


def _end(line: str) -> None:
    """From another thread, whatever the first one does."""
    with suppress(OSError):
        os.write(sys.stderr.fileno(), line.encode())
    os._exit(2)


@contextmanager
def _less_memory() -> Iterator[None]:
    """Nothing where the system does not count the memory of a process."""
    try:
        import resource

        held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        before = resource.getrlimit(resource.RLIMIT_AS)
    except (ImportError, OSError, ValueError):
        yield
        return
    most = held + _MEMORY
    soft = most if before[0] == resource.RLIM_INFINITY else min(most, before[0])
    resource.setrlimit(resource.RLIMIT_AS, (soft, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)

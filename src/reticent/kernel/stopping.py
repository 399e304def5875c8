"""A computation that nobody waits for any more ends at its next checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_STOP: ContextVar[Callable[[], bool] | None] = ContextVar("reticent-stop", default=None)


class Stopped(BaseException):
    """The computation was not wanted any more; nothing of it is kept."""


def checkpoint() -> None:
    """Where a long computation may end: called between routes, contours, grids and searches.

    Raises:
        Stopped: the caller does not want this computation any more.
    """
    stop = _STOP.get()
    if stop is not None and stop():
        raise Stopped


@contextmanager
def stoppable(stop: Callable[[], bool]) -> Iterator[None]:
    """What this thread computes inside ends at its next ``checkpoint`` once ``stop`` is true.

    Args:
        stop: asked often, so cheap.

    Raises:
        Stopped: it did end.
    """
    token = _STOP.set(stop)
    try:
        yield
    finally:
        _STOP.reset(token)

"""Who may compute: one computation for each page at a time, the newest question wins, and a few at once in all."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from reticent.kernel.errors import ReticentError
from reticent.kernel.stopping import Stopped, checkpoint, stoppable

_PATIENCE = 120.0


class SupersededError(ReticentError):
    """The page has asked something else since: nobody waits for this answer any more."""


class BusyError(ReticentError):
    """More pages wait than this server answers; the text says so."""


@dataclass
class _Page:
    computing: threading.Lock = field(default_factory=threading.Lock)
    newest: float = -1.0


class Turns:
    """Lets one computation of a page run at a time, and only ever the newest.

    A computation that runs ends at its next ``stopping.checkpoint`` once its page has asked something else; nothing of
    it is kept. Checkpoints lie tenths of a second apart, mostly less.

    Args:
        at_once: computations of all pages together that may run.
        waiting: computations that may wait.
        pages: pages that are remembered; the one that was quiet longest is forgotten.
    """

    def __init__(self, at_once: int = 2, waiting: int = 32, pages: int = 256) -> None:
        self._mutex = threading.Lock()
        self._slots = threading.BoundedSemaphore(at_once)
        self._queued, self._most_queued, self._most_pages = 0, waiting + at_once, pages
        self._pages: OrderedDict[str, _Page] = OrderedDict()

    @contextmanager
    def turn(self, page: str, number: float) -> Iterator[None]:
        """Wait until it is this question's turn.

        Raises:
            SupersededError: a newer question of the same page came first.
            BusyError: too many wait.
        """
        entry = self._enter(page, number)
        try:
            with _held(entry.computing):
                self._check(entry, number)
                with _held(self._slots):
                    self._check(entry, number)
                    with _ending(entry, number):
                        yield
                        checkpoint()  # nothing that is no longer asked reaches the page
        finally:
            with self._mutex:
                self._queued -= 1

    def note(self, page: str, number: float) -> None:
        """A question that is answered at once: it takes no turn, but older ones of its page need not go on.

        Raises:
            SupersededError: a newer question of the same page came first.
        """
        with self._mutex:
            entry = self._entry(page, number)
        self._check(entry, number)

    def _entry(self, page: str, number: float) -> _Page:
        entry = self._pages.setdefault(page, _Page())
        self._pages.move_to_end(page)
        while len(self._pages) > self._most_pages:
            self._pages.popitem(last=False)
        entry.newest = max(entry.newest, number)
        return entry

    def _enter(self, page: str, number: float) -> _Page:
        with self._mutex:
            if self._queued >= self._most_queued:
                raise BusyError("many pages are waiting for an answer: try again in a moment")
            entry = self._entry(page, number)
            self._queued += 1
            return entry

    @staticmethod
    def _check(entry: _Page, number: float) -> None:
        if number < entry.newest:
            raise SupersededError("the page has asked something else since")


@contextmanager
def _ending(entry: _Page, number: float) -> Iterator[None]:
    """Ends what this thread computes once the page has asked something else.

    Raises:
        SupersededError: it has.
    """
    try:
        with stoppable(lambda: number < entry.newest):
            yield
    except Stopped:
        raise SupersededError("the page has asked something else since") from None


@contextmanager
def _held(lock: threading.Lock | threading.Semaphore) -> Iterator[None]:
    if not lock.acquire(timeout=_PATIENCE):
        raise BusyError("the computations before this one take too long: try again in a moment")
    try:
        yield
    finally:
        lock.release()

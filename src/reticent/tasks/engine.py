"""Tasks to results, on one code path wherever the work is done.

Workers share the run directory with the process that hands out the work; results travel through it, so that what
is done is done wherever a kill strikes.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass

import numpy as np

from reticent.errors import ReticentError, WorkerError
from reticent.lazy import installed
from reticent.tasks.sessions import Engine, Local, Session, connect
from reticent.tasks.store import Store, Task

Work = Callable[[Store, Task], Mapping[str, np.ndarray]]
"""Computes a task's result; a module-level function, the same arrays whenever it is called."""

LOST_SECONDS = 30.0
"""So long is waited for a worker to come back once none is left."""
_LIBRARIES = ("reticent", "numpy", "torch")
"""Results depend on their versions, so all workers must have the same."""
_ONE_AT_A_TIME = threading.Lock()
"""Tasks set the number of threads of their process, on which the bits depend: a worker with many does one at a time."""
_TICK_SECONDS = 1.0
_BATCH_SECONDS = 0.5
_LARGEST_BATCH = 256


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the work is.

    Attributes:
        done: tasks with a result, those found from an earlier run included.
        total: all tasks.
        elapsed: seconds since this run began.
        remaining: expected seconds to the end at the pace of this run; None before the first result of this run.
        waiting: why nothing moves, or None.
    """

    done: int
    total: int
    elapsed: float
    remaining: float | None
    waiting: str | None = None


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a worker says about a batch: how many tasks in how many seconds, and the error that ended it."""

    done: int
    seconds: float
    error: str | None = None


def execute(
    tasks: Sequence[Task],
    work: Work,
    store: Store,
    engine: Engine | None = None,
    progress: Callable[[Progress], None] | None = None,
    *,
    plan: Mapping[str, object] | None = None,
    prepare: Callable[[Sequence[Task], int], None] | None = None,
    timeout: float | None = None,
    again: str = "go on with --resume, in Python resume=True",
) -> None:
    """Bring about the result of every task; what is already in the store is not done again.

    The workers are reached before anything is written, so that an address where nobody answers leaves nothing behind.

    Args:
        tasks: what is wanted; doubles are done once.
        work: computes one result.
        store: where results go. Every worker must see it under the same path.
        engine: where to compute; by default in this process.
        progress: called at the start, after each task, and while nothing moves.
        plan: recorded in the store's manifest once it is held.
        prepare: called with what is to be done and the number of workers, once the store is held: writes what the
            tasks read.
        again: how to go on with what was done, for the message of an error; "" where the folder goes at once.
        timeout: give up when no task was finished for this many seconds; by default never while workers are there.

    Raises:
        ArtifactError: another process is handing out work in the same store, or a task failed.
        UnsupportedError: the engine's package is not installed, or its cluster cannot be reached.
        WorkerError: the workers died, do not answer within ``timeout``, or have other versions of the libraries.
    """
    wanted = list({task.key: task for task in tasks}.values())
    missing = [task for task in wanted if not store.has(task)]
    try:
        with connect((engine or Local()) if missing else Local()) as session, store.exclusive(plan):
            missing = [task for task in missing if not store.has(task)]
            if missing and prepare is not None:
                prepare(missing, session.workers)
            _HandingOut(missing, len(wanted), work, store, session, progress, timeout).run()
    except _GivenUp as reason:
        done = sum(store.has(task) for task in wanted)
        kept = f"{done} of {len(wanted)} tasks are kept in {store.root}: {again}"
        raise WorkerError(f"{reason}; {kept if again else 'nothing is kept: work=FOLDER keeps what is done'}") from None


class _GivenUp(Exception):  # noqa: N818 (it never leaves this module)
    """Why nobody will finish the work."""


class _HandingOut:
    """One call of ``execute`` at work."""

    def __init__(
        self,
        missing: Sequence[Task],
        total: int,
        work: Work,
        store: Store,
        session: Session,
        progress: Callable[[Progress], None] | None,
        timeout: float | None,
    ) -> None:
        self.queue, self.total, self.work, self.store = deque(missing), total, work, store
        self.session, self.progress, self.timeout = session, progress, timeout
        self.found, self.finished, self.size = total - len(missing), 0, 1
        self.start = self.moved = self.answered = time.monotonic()
        self.pending: set[Future[_Answer]] = set()

    def run(self) -> None:
        self.report()
        try:
            while self.queue or self.pending:
                self.submit()
                done, self.pending = wait(self.pending, timeout=_TICK_SECONDS, return_when=FIRST_COMPLETED)
                for future in done:
                    self.take(future)
                self.watch()
        except self.session.lost as error:
            reason = self.session.trouble() or "a worker died: it was killed, or ran out of memory"
            raise _GivenUp(f"{reason} ({type(error).__name__})") from None
        finally:
            for future in self.pending:
                future.cancel()

    def submit(self) -> None:
        """Keep every worker busy and one batch ahead; short tasks travel together."""
        ahead = 2 * self.session.workers if self.session.remote else 1
        while self.queue and len(self.pending) < ahead:
            share = max(1, len(self.queue) // (2 * self.session.workers))
            batch = [self.queue.popleft() for _ in range(min(self.size, share, len(self.queue)))]
            if self.session.remote:
                arguments = (self.work, str(self.store.root.resolve()), batch, _versions())
                self.pending.add(self.session.submit(_remote, *arguments))
            else:
                self.pending.add(self.session.submit(_work_on, self.work, self.store, batch))

    def take(self, future: Future[_Answer]) -> None:
        answer = future.result()
        self.finished += answer.done
        if answer.error is not None:
            raise _GivenUp(answer.error)
        self.moved = self.answered = time.monotonic()
        if self.session.remote:
            fits = int(_BATCH_SECONDS * answer.done / max(answer.seconds, 1e-6))
            self.size = max(1, min(fits, 2 * self.size, _LARGEST_BATCH))
        self.report()

    def watch(self) -> None:
        """Does anybody still work, and does anything come of it?"""
        now = time.monotonic()
        if not self.pending or now - max(self.moved, self.answered) < _TICK_SECONDS:
            return
        trouble = self.session.trouble()
        if trouble is None:
            self.answered = now
        elif now - self.answered > LOST_SECONDS:
            raise _GivenUp(trouble)
        if self.timeout is not None and now - self.moved > self.timeout:
            raise _GivenUp(f"no task was finished for {self.timeout:g} s")
        self.report(trouble)

    def report(self, waiting: str | None = None) -> None:
        if self.progress is None:
            return
        elapsed, left = time.monotonic() - self.start, self.total - self.found - self.finished
        remaining = elapsed / self.finished * left if self.finished else None
        self.progress(Progress(self.found + self.finished, self.total, elapsed, remaining, waiting))


def _work_on(work: Work, store: Store, batch: Sequence[Task]) -> _Answer:
    """The work itself: each result is in the store as soon as it is there."""
    start = time.monotonic()
    for task in batch:
        if not store.has(task):
            store.save(task, work(store, task))
    return _Answer(len(batch), time.monotonic() - start)


def _remote(work: Work, root: str, batch: Sequence[Task], versions: Mapping[str, str]) -> _Answer:
    """What a worker runs. Errors come back as one line: exceptions of other processes carry their own tracebacks."""
    mine = _versions()
    for name, wanted in versions.items():
        if mine.get(name) != wanted:
            return _Answer(
                0, 0.0, f"a worker has {name} {mine.get(name, '(none)')}, this process {wanted}: all need the same"
            )
    start, done = time.monotonic(), 0
    try:
        store = Store(root)
        for task in batch:
            with _ONE_AT_A_TIME:
                _work_on(work, store, [task])
            done += 1
    except ReticentError as error:
        return _Answer(done, time.monotonic() - start, " ".join(str(error).split()))
    except Exception as error:
        line = " ".join(f"{type(error).__name__}: {error}".split())[:400]
        return _Answer(done, time.monotonic() - start, f"a task failed with {line}")
    return _Answer(done, time.monotonic() - start)


def _versions() -> dict[str, str]:
    return {name: found for name in _LIBRARIES if (found := installed(name)) is not None}

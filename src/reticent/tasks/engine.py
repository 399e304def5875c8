"""Tasks to results, on one code path wherever the work is done.

Workers share the run directory with the process that hands out the work; results travel through it, so that what
is done is done wherever a kill strikes.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pickle import PicklingError
from queue import Empty, SimpleQueue

import numpy as np

from reticent.kernel.errors import ReticentError, WorkerError
from reticent.kernel.lazy import installed
from reticent.tasks.engines import Engine, Local, Pool, connect
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


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the work is.

    Attributes:
        done: tasks with a result, those found from an earlier run included.
        total: all tasks.
        waiting: why nothing moves, or None.
    """

    done: int
    total: int
    waiting: str | None = None


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
        engine: where to compute, any ``concurrent.futures.Executor`` among them, which is left running; by default in
            this process.
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
        with connect((engine or Local()) if missing else Local()) as pool, store.exclusive(plan):
            missing = [task for task in missing if not store.has(task)]
            if missing and prepare is not None:
                prepare(missing, pool.workers)
            done = len(wanted) - len(missing)
            for more, waiting in _moves(missing, work, store, pool, timeout):
                done += more
                if progress is not None:
                    progress(Progress(done, len(wanted), waiting))
    except WorkerError as reason:
        done = sum(store.has(task) for task in wanted)
        kept = f"{done} of {len(wanted)} tasks are kept in {store.root}: {again}"
        raise WorkerError(f"{reason}; {kept if again else 'nothing is kept: work=FOLDER keeps what is done'}") from None


_Move = tuple[int, str | None]
"""How many tasks have just ended, and why none does, if that is known."""


def _moves(tasks: Sequence[Task], work: Work, store: Store, pool: Pool, timeout: float | None) -> Iterator[_Move]:
    """Do the work; a move at the start, after each task, and each second in which none ends."""
    yield 0, None
    if pool.executor is None:
        for task in tasks:
            store.save(task, work(store, task))
            yield 1, None
        return
    answers: SimpleQueue[Future[str | None]] = SimpleQueue()
    futures: set[Future[str | None]] = set()
    try:
        for task in tasks:
            future = pool.executor.submit(_remote, work, str(store.root.resolve()), task, library_versions())
            futures.add(future)
            future.add_done_callback(answers.put)
        moved = alive = time.monotonic()
        while futures:
            try:
                future = answers.get(timeout=_TICK_SECONDS)
            except Empty:
                now, trouble = time.monotonic(), pool.trouble()
                alive = alive if trouble else now
                if now - max(alive, moved) > LOST_SECONDS:
                    raise WorkerError(str(trouble)) from None
                if timeout is not None and now - moved > timeout:
                    raise WorkerError(f"no task was finished for {timeout:g} s") from None
                yield 0, trouble
                continue
            futures.remove(future)
            if (error := future.result()) is not None:
                raise WorkerError(error)
            moved = time.monotonic()
            yield 1, None
    except (ReticentError, PicklingError, TypeError):  # the last two: the work cannot travel
        raise
    except Exception as error:
        reason = pool.trouble() or "a worker died: it was killed, or ran out of memory"
        raise WorkerError(f"{reason} ({type(error).__name__})") from None
    finally:
        if pool.borrowed:
            for future in futures:
                future.cancel()


def _remote(work: Work, root: str, task: Task, versions: Mapping[str, str]) -> str | None:
    """What a worker runs. Errors come back as one line: exceptions of other processes carry their own tracebacks."""
    mine = library_versions()
    for name, wanted in versions.items():
        if mine.get(name) != wanted:
            return f"a worker has {name} {mine.get(name, '(none)')}, this process {wanted}: all need the same"
    try:
        with _ONE_AT_A_TIME:
            if not (store := Store(root)).has(task):  # a cluster does again what a dead worker did
                store.save(task, work(store, task))
    except ReticentError as error:
        return " ".join(str(error).split())
    except Exception as error:
        line = " ".join(f"{type(error).__name__}: {error}".split())[:400]
        return f"a task failed with {line}"
    return None


@functools.cache
def library_versions() -> dict[str, str]:
    """Of the libraries on which results depend, here: a worker needs the same."""
    return {name: found for name in _LIBRARIES if (found := installed(name)) is not None}

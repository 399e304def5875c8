"""Where tasks run: this machine, a Dask cluster or a Ray cluster, by way of joblib and one code path.

Workers share the run directory with the process that hands out the work; results travel through it, so that what
is done is done wherever a kill strikes. There is no scheduler here.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reticent import _check
from reticent.errors import UnsupportedError
from reticent.tasks.store import Store, Task

Work = Callable[[Store, Task], Mapping[str, np.ndarray]]
"""Computes a task's result; a module-level function, the same arrays whenever it is called."""


@dataclass(frozen=True, slots=True)
class Local:
    """Processes on this machine.

    Attributes:
        workers: how many tasks run at once; 1 stays in this process.
    """

    workers: int = 1

    def __post_init__(self) -> None:
        _check.count(workers=self.workers)


@dataclass(frozen=True, slots=True)
class Dask:
    """A running Dask scheduler.

    Attributes:
        address: of the scheduler, ``tcp://host:port``.
        timeout: seconds to wait for its first answer.
    """

    address: str
    timeout: float = 10.0

    def __post_init__(self) -> None:
        _check.positive(timeout=self.timeout)


@dataclass(frozen=True, slots=True)
class Ray:
    """A Ray cluster.

    Attributes:
        address: of the head node, or None to start or join one as Ray decides.
    """

    address: str | None = None


Engine = Local | Dask | Ray


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the work is.

    Attributes:
        done: tasks with a result, those found from an earlier run included.
        total: all tasks.
        elapsed: seconds since this run began.
        remaining: expected seconds to the end at the pace of this run; None before the first result of this run.
    """

    done: int
    total: int
    elapsed: float
    remaining: float | None


def execute(
    tasks: Sequence[Task],
    work: Work,
    store: Store,
    engine: Engine | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> None:
    """Bring about the result of every task; what is already in the store is not done again.

    Args:
        tasks: what is wanted; doubles are done once.
        work: computes one result.
        store: where results go. Every worker must see it under the same path.
        engine: where to compute; by default in this process.
        progress: called at the start and after each task.

    Raises:
        ArtifactError: another process is handing out work in the same store.
        UnsupportedError: the engine's package is not installed, or its cluster cannot be reached.
    """
    engine = Local() if engine is None else engine
    with store.exclusive():
        wanted = list({task.key: task for task in tasks}.values())
        missing = [task for task in wanted if not store.has(task)]
        start, found = time.monotonic(), len(wanted) - len(missing)

        def report(finished: int) -> None:
            elapsed = time.monotonic() - start
            remaining = elapsed / finished * (len(missing) - finished) if finished else None
            if progress is not None:
                progress(Progress(found + finished, len(wanted), elapsed, remaining))

        report(0)
        if missing:
            _compute(missing, work, store, engine, report)


def _compute(tasks: Sequence[Task], work: Work, store: Store, engine: Engine, report: Callable[[int], None]) -> None:
    import joblib

    class Reporting(joblib.Parallel):
        """The one hook that every backend calls after a task, Ray's included."""

        def print_progress(self) -> None:
            report(min(self.n_completed_tasks, len(tasks)))

    with _backend(engine) as settings, joblib.parallel_config(**settings):
        parallel = Reporting(batch_size=1, pre_dispatch="2*n_jobs")
        parallel(joblib.delayed(_one)(work, str(store.root.resolve()), task) for task in tasks)


def _one(work: Work, root: str, task: Task) -> str:
    """What a worker runs: nothing comes back but the key; the result is in the store."""
    store = Store(root)
    if not store.has(task):
        store.save(task, work(store, task))
    return task.key


@contextlib.contextmanager
def _backend(engine: Engine) -> Iterator[dict[str, Any]]:
    match engine:
        case Local(workers=1):
            yield {"backend": "sequential"}
        case Local(workers=workers):
            with _loky(workers) as settings:
                yield settings
        case Dask():
            with _dask_client(engine) as settings:
                yield settings
        case Ray(address=address):
            with _ray_session(address) as settings:
                yield settings


@contextlib.contextmanager
def _loky(workers: int) -> Iterator[dict[str, Any]]:
    from joblib.externals.loky import get_reusable_executor

    try:
        yield {"backend": "loky", "n_jobs": workers, "inner_max_num_threads": 1}
    finally:
        get_reusable_executor().shutdown(wait=True)


@contextlib.contextmanager
def _dask_client(engine: Dask) -> Iterator[dict[str, Any]]:
    try:
        from distributed import Client
    except ImportError:
        raise UnsupportedError(
            "the dask engine needs the package distributed: pip install reticent[distributed]"
        ) from None
    try:
        client = Client(engine.address, timeout=engine.timeout, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UnsupportedError(f"no Dask scheduler answers at {engine.address}: {error}") from None
    with client, client.as_current():
        workers = len(client.scheduler_info(n_workers=-1)["workers"])
        if workers == 0:
            raise UnsupportedError(f"the Dask scheduler at {engine.address} has no workers")
        yield {"backend": "dask", "n_jobs": workers}


@contextlib.contextmanager
def _ray_session(address: str | None) -> Iterator[dict[str, Any]]:
    try:
        import ray
        from ray.util.joblib import register_ray
    except ImportError:
        raise UnsupportedError("the ray engine needs the package ray: pip install reticent[distributed]") from None
    started = not ray.is_initialized()
    if started:
        try:
            ray.init(address=address, log_to_driver=False)
        except (ConnectionError, OSError, RuntimeError) as error:
            raise UnsupportedError(f"no Ray cluster can be joined or started: {error}") from None
    try:
        register_ray()
        yield {"backend": "ray", "n_jobs": max(1, int(ray.cluster_resources().get("CPU", 1)))}
    finally:
        if started:
            ray.shutdown()

"""Those who do the work: this process, processes of this machine, a Dask cluster, a Ray cluster.

Each is a session that takes a call and gives back a ``concurrent.futures.Future``, and that can say whether anybody is
left to answer. There is no scheduler here.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Future
from dataclasses import dataclass
from typing import Any, Protocol

from reticent import _check
from reticent.errors import ParameterError, UnsupportedError, needing
from reticent.tasks.ray_session import ray_session

_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"
)
"""Each worker has one core: several that each take all of them are slower than one."""


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


class Session(Protocol):
    """Workers that can be reached.

    Attributes:
        workers: how many calls run at once.
        remote: whether calls run in other processes.
        lost: exceptions of a future that mean that a worker is gone.
    """

    workers: int
    remote: bool
    lost: tuple[type[BaseException], ...]

    def submit(self, call: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Run the call somewhere."""
        ...

    def trouble(self) -> str | None:
        """Why no answer will come, or None while somebody is there."""
        ...


@contextlib.contextmanager
def connect(engine: Engine) -> Iterator[Session]:
    """Reach the workers, and let go of them at the end, whatever happened.

    Raises:
        UnsupportedError: the engine's package is not installed, or its cluster cannot be reached.
        ParameterError: it is no engine.
    """
    match engine:
        case Local(workers=1):
            yield _ThisProcess()
        case Local(workers=workers):
            with local_processes(workers) as session:
                yield session
        case Dask():
            with _dask(engine) as session:
                yield session
        case Ray(address=address):
            with ray_session(address) as session:
                yield session
        case _:
            raise ParameterError("engine", engine, "Local, Dask or Ray of reticent.tasks, such as Local(2)")


class _ThisProcess:
    workers, remote = 1, False
    lost: tuple[type[BaseException], ...] = ()

    def submit(self, call: Callable[..., Any], *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(call(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future

    def trouble(self) -> str | None:
        return None


class _Processes:
    remote = True
    lost: tuple[type[BaseException], ...] = (BrokenExecutor, CancelledError)

    def __init__(self, executor: Any, workers: int) -> None:
        self._executor, self.workers = executor, workers

    def submit(self, call: Callable[..., Any], *arguments: Any) -> Future[Any]:
        return self._executor.submit(call, *arguments)

    def trouble(self) -> str | None:
        return None  # a process that dies breaks its future at once


@contextlib.contextmanager
def local_processes(workers: int) -> Iterator[Session]:
    """Fresh processes of this machine with one thread each; killed where the block ends with an error."""
    with needing("work that is done by several processes", "distributed"):
        from joblib.externals.loky import ProcessPoolExecutor

    executor = ProcessPoolExecutor(max_workers=workers, env=_ONE_THREAD)
    try:
        yield _Processes(executor, workers)
    except BaseException:
        _kill(executor)
        raise
    executor.shutdown(wait=True)


def _kill(executor: Any) -> None:
    """End a pool whose work is not wanted any more.

    Its thread may trip over work that was just taken away: then it prints a traceback, and its processes live on.
    """
    processes, shown = list((executor._processes or {}).values()), threading.excepthook
    threading.excepthook = lambda told: None if _manages(told.thread) else shown(told)
    try:
        executor.shutdown(wait=True, kill_workers=True)
    finally:
        threading.excepthook = shown
    for process in processes:
        if process.is_alive():
            process.kill()


def _manages(thread: threading.Thread | None) -> bool:
    return thread is not None and thread.name.startswith("ExecutorManagerThread")


class _DaskSession:
    remote = True

    def __init__(self, client: Any, address: str, workers: int) -> None:
        from distributed.client import FutureCancelledError
        from distributed.comm.core import CommClosedError
        from distributed.scheduler import KilledWorker

        self.lost: tuple[type[BaseException], ...] = (
            FutureCancelledError,
            CancelledError,
            CommClosedError,
            KilledWorker,
            TimeoutError,
        )
        self._client, self._address, self.workers = client, address, workers
        self._executor = client.get_executor(pure=False)

    def submit(self, call: Callable[..., Any], *arguments: Any) -> Future[Any]:
        return self._executor.submit(call, *arguments)

    def trouble(self) -> str | None:
        if self._client.status != "running":
            return f"the Dask scheduler at {self._address} is gone"
        if not self._client.scheduler_info(n_workers=-1)["workers"]:
            return f"the Dask scheduler at {self._address} has no worker left"
        return None


@contextlib.contextmanager
def _dask(engine: Dask) -> Iterator[Session]:
    try:
        from distributed import Client
    except ImportError:
        raise UnsupportedError(
            "the dask engine needs the package distributed: pip install reticent[distributed]"
        ) from None
    with _quiet():
        try:
            client = Client(engine.address, timeout=engine.timeout, set_as_default=False)
        except (OSError, ValueError) as error:
            raise UnsupportedError(f"no Dask scheduler answers at {engine.address}: {error}") from None
        try:
            workers = len(client.scheduler_info(n_workers=-1)["workers"])
            if workers == 0:
                raise UnsupportedError(f"the Dask scheduler at {engine.address} has no workers")
            yield _DaskSession(client, engine.address, workers)
        finally:
            with contextlib.suppress(OSError, TimeoutError):
                client.close(timeout=2)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """What Dask logs about a lost connection, in a hundred lines, is said by us in one.

    After an error the loggers stay silent: Dask goes on trying to connect, and reports it, until the process ends.
    """
    names = [name for name in logging.root.manager.loggerDict if name.split(".")[0] in ("distributed", "tornado")]
    before = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    yield
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)

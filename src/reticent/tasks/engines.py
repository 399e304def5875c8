"""Executors from a few words: this process, processes of this machine, a Dask cluster, a Ray cluster.

Besides the executor a pool says what an executor does not: how many calls run at once, and whether anybody is left to
answer. There is no scheduler here.
"""

from __future__ import annotations

import functools
import logging
import socket
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout, suppress
from dataclasses import dataclass
from typing import Any

from reticent.kernel import checks
from reticent.kernel.errors import ParameterError, UnsupportedError, needing
from reticent.kernel.text import one_of

ENGINES = ("local", "dask", "ray")

_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"
)
"""Each worker has one core: several that each take all of them are slower than one."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Workers that can be reached.

    Attributes:
        executor: takes the calls; None: this process does the work.
        workers: how many calls run at once.
        trouble: says why no answer will come, or None while somebody is there.
        borrowed: whether it outlives the work; then calls that nobody wants any more are cancelled.
    """

    executor: Executor | None = None
    workers: int = 1
    trouble: Callable[[], str | None] = lambda: None
    borrowed: bool = False


@dataclass(frozen=True, slots=True)
class Local:
    """Processes on this machine.

    Attributes:
        workers: how many tasks run at once; 1 stays in this process.
    """

    workers: int = 1

    def __post_init__(self) -> None:
        checks.count(workers=self.workers)

    @contextmanager
    def pool(self) -> Iterator[Pool]:
        """New processes, or this one."""
        with nullcontext() if self.workers == 1 else processes(self.workers) as executor:
            yield Pool(executor, self.workers)


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
        checks.positive(timeout=self.timeout)

    @contextmanager
    def pool(self) -> Iterator[Pool]:
        """Its workers.

        Raises:
            UnsupportedError: ``distributed`` is not installed, nobody answers, or there are no workers.
        """
        with needing("the dask engine", "distributed"):
            from distributed import Client
        scheduler = f"the Dask scheduler at {self.address}"
        with _quiet():
            try:
                client = Client(self.address, timeout=self.timeout, set_as_default=False)
            except (OSError, ValueError) as error:
                raise UnsupportedError(f"no Dask scheduler answers at {self.address}: {error}") from None

            def trouble() -> str | None:
                if client.status != "running":
                    return f"{scheduler} is gone"
                return None if client.nthreads() else f"{scheduler} has no worker left"

            try:
                if not client.nthreads():
                    raise UnsupportedError(f"{scheduler} has no workers")
                yield Pool(client.get_executor(pure=False), len(client.nthreads()), trouble)
            finally:
                with suppress(OSError, TimeoutError):
                    client.close(timeout=2)


@dataclass(frozen=True, slots=True)
class Ray:
    """A Ray cluster.

    Attributes:
        address: of the head node, or None to start or join one as Ray decides. A process joins one cluster at a
            time: if it has joined one, the work goes there.
    """

    address: str | None = None

    @contextmanager
    def pool(self) -> Iterator[Pool]:
        """Its workers.

        Raises:
            UnsupportedError: ``ray`` is not installed, or the cluster cannot be reached.
        """
        with needing("the ray engine", "distributed"):
            import ray
        borrowed = ray.is_initialized()
        try:
            if not borrowed:
                ray.init(address=self.address, log_to_driver=False, logging_level=logging.CRITICAL)
        except (OSError, RuntimeError, ValueError) as error:
            line = " ".join(str(error).split())
            raise UnsupportedError(f"no Ray cluster can be joined or started: {line}") from None
        head = (self.address or "").partition("ray://")[2] or str(ray.get_runtime_context().gcs_address)
        host, _, port = head.rpartition(":")

        def trouble() -> str | None:
            try:  # Ray's own calls hang for a minute where the head is gone, and then Ray ends the process
                socket.create_connection((host.strip("[]"), int(port)), 5.0).close()
            except OSError:
                return f"the Ray head at {head} is gone"
            some = any(node["Alive"] and node["Resources"].get("CPU") for node in ray.nodes())
            return None if some else "the Ray cluster has no worker left"

        with redirect_stdout(sys.stderr):  # where Ray would say what happens to its workers
            try:
                yield Pool(_RayExecutor(ray), max(1, int(ray.cluster_resources().get("CPU", 1))), trouble, borrowed)
            finally:
                if not borrowed:
                    ray.shutdown()


class _RayExecutor(Executor):
    """Ray has no executor; its futures are those of the standard library."""

    def __init__(self, ray: Any) -> None:
        self._known = functools.cache(ray.remote(num_cpus=1, max_retries=0))  # to export a function asks the head
        self._cancel = ray.cancel

    def submit(self, call: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """Run the call in the cluster, once; a future that is cancelled cancels the call."""
        reference = self._known(call).remote(*arguments, **named)
        future: Future[Any] = reference.future()
        future.add_done_callback(lambda done: self._cancel(reference) if done.cancelled() else None)
        return future


Engine = Local | Dask | Ray | Executor
"""Who computes. Any ``concurrent.futures.Executor`` will do whose workers see the folder of the work."""


def connect(engine: Engine) -> AbstractContextManager[Pool]:
    """Reach the workers, and let go of them at the end, whatever happened.

    Raises:
        UnsupportedError: the engine's package is not installed, or its cluster cannot be reached.
        ParameterError: it is no engine.
    """
    if isinstance(engine, Executor):
        return nullcontext(Pool(engine, getattr(engine, "_max_workers", 1), borrowed=True))
    if not isinstance(engine, Local | Dask | Ray):
        raise ParameterError("engine", engine, "Local, Dask or Ray of reticent.tasks, such as Local(2)")
    return engine.pool()


@contextmanager
def processes(workers: int) -> Iterator[Executor]:
    """Fresh processes of this machine with one thread each; killed where the block ends."""
    with needing("work that is done by several processes", "distributed"):
        from joblib.externals.loky import ProcessPoolExecutor

    executor = ProcessPoolExecutor(max_workers=workers, env=_ONE_THREAD)
    try:
        yield executor
    finally:
        with executor._work_ids.mutex:  # what waits there makes loky's thread end with a traceback (joblib 1.6)
            executor._work_ids.queue.clear()
        executor.shutdown(kill_workers=True)


@contextmanager
def _quiet() -> Iterator[None]:
    """What Dask logs about a lost connection, in a hundred lines, is said by us in one.

    After an error the loggers stay silent: Dask goes on trying to connect, and reports it, until the process ends.
    """
    names = [name for name in logging.root.manager.loggerDict if name.split(".")[0] in ("distributed", "tornado")]
    before = {logging.getLogger(name): logging.getLogger(name).level for name in names}
    for logger in before:
        logger.setLevel(logging.CRITICAL + 1)
    yield
    for logger, level in before.items():
        logger.setLevel(level)


def engine_of(name: str, address: str | None, workers: int) -> Engine:
    """The engine of this name.

    Raises:
        ParameterError: there is none, or its address is missing or of no use to it.
    """
    if name not in ENGINES:
        raise ParameterError("engine", name, one_of(name, ENGINES))
    if name == "local" and address is not None:
        raise ParameterError("address", address, "left out for --engine local", shown=False)
    if name == "dask" and address is None:
        raise ParameterError("address", address, "the scheduler's tcp://host:port for --engine dask")
    return Local(workers) if name == "local" else Ray(address) if name == "ray" else Dask(str(address))

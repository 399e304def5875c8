"""This side of ``ray_driver``: calls go to its process, answers come back, and its death is an answer too."""

from __future__ import annotations

import contextlib
import importlib.util
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, InvalidStateError
from typing import Any, BinaryIO, cast

from reticent.errors import UnsupportedError

_LAST_SECONDS = 15.0
"""So long may Ray take to say good-bye."""
_ENDED = "the process that speaks to Ray has ended"


class RayLost(Exception):  # noqa: N818 (a subclass has Ray's own name for what happened)
    """A call to which no answer will come."""


class RaySession:
    """A ``Session`` of a Ray cluster. See ``reticent.tasks.sessions.Session``."""

    remote = True
    lost: tuple[type[BaseException], ...] = (RayLost, CancelledError)

    def __init__(self, process: subprocess.Popen[bytes], address: str | None) -> None:
        """Wait until the cluster is reached.

        Raises:
            UnsupportedError: it is not.
        """
        self._asked, self._answers = cast(BinaryIO, process.stdin), cast(BinaryIO, process.stdout)
        self._pending: dict[int, Future[Any]] = {}
        self._count, self._ended = 0, False
        self._trouble: str | None = None
        self._lock = threading.Lock()
        self._send(address)
        what, content = self._receive()
        if what != "ready":
            raise UnsupportedError(f"no Ray cluster can be joined or started: {content}")
        self.workers: int = content
        threading.Thread(target=self._listen, daemon=True).start()

    def submit(self, call: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Run the call in the cluster."""
        future: Future[Any] = Future()
        with self._lock:
            if self._ended:
                raise RayLost
            self._count += 1
            self._pending[self._count] = future
        self._send((self._count, call, arguments))
        return future

    def trouble(self) -> str | None:
        """Why no answer will come, as the driver last said."""
        return self._trouble

    def _send(self, message: object) -> None:
        import cloudpickle

        with contextlib.suppress(OSError):  # the listener hears of the end as well
            self._asked.write(cloudpickle.dumps(message))
            self._asked.flush()

    def _receive(self) -> tuple[str, Any]:
        import cloudpickle

        try:
            what, content = cloudpickle.load(self._answers)
        except (EOFError, OSError, ValueError):
            return "gone", _ENDED
        return what, content

    def _listen(self) -> None:
        while not self._ended:
            what, content = self._receive()
            if what == "done":
                self._settle(content[0], content[1])
            elif what == "lost":
                self._settle(content[0], type(content[1], (RayLost,), {})())
            else:
                self._trouble = content
            if what == "gone":
                with self._lock:
                    self._ended = True
                for number in list(self._pending):
                    self._settle(number, RayLost())

    def _settle(self, number: int, answer: object) -> None:
        future = self._pending.pop(number)
        with contextlib.suppress(InvalidStateError):  # it was cancelled
            if isinstance(answer, RayLost):
                future.set_exception(answer)
            else:
                future.set_result(answer)


@contextlib.contextmanager
def ray_session(address: str | None) -> Iterator[RaySession]:
    """Reach a Ray cluster, or start one where ``address`` is None and none is there.

    Raises:
        UnsupportedError: Ray is not installed, or the cluster cannot be reached.
    """
    if importlib.util.find_spec("ray") is None:
        raise UnsupportedError("the ray engine needs the package ray: pip install reticent[distributed]")
    ray = sys.modules.get("ray")
    if address is None and ray is not None and ray.is_initialized():
        address = ray.get_runtime_context().gcs_address
    code = f"import sys; sys.path[:] = {sys.path!r}; from reticent.tasks.ray_driver import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for this process; that one ends with its input
    )
    try:
        yield RaySession(process, address)
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        cast(BinaryIO, process.stdin).close()
    try:
        process.wait(_LAST_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    cast(BinaryIO, process.stdout).close()

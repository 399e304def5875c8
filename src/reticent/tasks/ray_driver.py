"""The driver of Ray, in a process of its own.

Ray's calls hang for a minute when the head of the cluster dies, and then Ray ends the process that made them. So that
process is this one, and ``RaySession`` speaks to it: calls come on standard input, answers go to standard output, and
the end of the input is the end of the process. Messages go from one process of ours to another, as in a process pool;
nothing of a file or of a network is unpickled here.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import sys
import threading
import time
from concurrent.futures import Future
from functools import partial
from typing import Any, BinaryIO

import cloudpickle

_PROBE_SECONDS = 1.0
_PATIENCE = 5.0  # for one connection, and again for a second


def main() -> None:
    """Join or start the cluster, then run what is asked for until standard input ends."""
    asked, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # Ray prints on standard output
    address, say = cloudpickle.load(asked), _Speaker(answers)
    import ray

    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)
    except (ConnectionError, OSError, RuntimeError, ValueError) as error:
        say("refused", " ".join(str(error).split()))
        return
    client = str(address).startswith("ray://")
    head = str(address).removeprefix("ray://") if client else str(ray.get_runtime_context().gcs_address)
    say("ready", max(1, int(ray.cluster_resources().get("CPU", 1))))
    threading.Thread(target=_watch, args=(ray, head, say), daemon=True).start()
    _serve(ray, asked, say)
    ray.shutdown()


def _serve(ray: Any, asked: BinaryIO, say: _Speaker) -> None:
    known: dict[Any, Any] = {}
    while True:
        try:
            number, call, arguments = cloudpickle.load(asked)
        except EOFError:
            return
        if call not in known:  # to export a function again asks the head each time
            known[call] = ray.remote(num_cpus=1, max_retries=0)(call)
        future = known[call].remote(*arguments).future()
        future.add_done_callback(partial(_answer, number, say))


def _answer(number: int, say: _Speaker, done: Future[Any]) -> None:
    error = done.exception()
    if error is None:
        say("done", (number, done.result()))
    else:
        say("lost", (number, type(error).__name__))


def _watch(ray: Any, head: str, say: _Speaker) -> None:
    """Say once a second who is left, and end at once where the head is gone."""
    while True:
        time.sleep(_PROBE_SECONDS)
        if not (_answers(head) or _answers(head)):
            say("gone", f"the Ray head at {head} is gone")
            os._exit(1)
        nodes = [node for node in ray.nodes() if node["Alive"]]
        some = any(node["Resources"].get("CPU") for node in nodes)
        say("trouble", None if some else "the Ray cluster has no worker left")


def _answers(head: str) -> bool:
    host, _, port = head.rpartition(":")
    with contextlib.suppress(OSError), socket.create_connection((host.strip("[]"), int(port)), _PATIENCE):
        return True
    return False


class _Speaker:
    """Whole messages, whichever thread sends them."""

    def __init__(self, answers: BinaryIO) -> None:
        self._answers, self._one = answers, threading.Lock()

    def __call__(self, what: str, content: object) -> None:
        with self._one, contextlib.suppress(BrokenPipeError):
            cloudpickle.dump((what, content), self._answers)
            self._answers.flush()

"""A server of the dashboard for each test that wants one."""

from __future__ import annotations

import base64
import json
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("dash")

from reticent.dashboard.answering import answered
from reticent.dashboard.guard import cookie_of, protect
from reticent.dashboard.server import Server, build_app
from reticent.dashboard.state import State
from reticent.dashboard.turns import Turns

PORT = 8050
TOKEN = "s3cret"  # noqa: S105


@pytest.fixture(scope="session")
def served() -> Iterator[Server]:
    """A server on a free port of this machine."""
    server = Server("127.0.0.1", 0)
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    yield server
    server.stop()
    thread.join(timeout=10)
    assert not thread.is_alive(), "the server stops when it is told to"


def uploaded(content: bytes | str, name: str = "x.json") -> list[str]:
    """A chosen file as browsers send it."""
    raw = content.encode() if isinstance(content, str) else content
    return ["data:;base64," + base64.b64encode(raw).decode(), name]


def asked(stage: str, turns: Turns | None = None, turn: int = 1, **more: Any) -> dict[str, Any]:
    """What the page gets: settings by their names; files, and the path of one, as such."""
    beside = {name: more.pop(name) for name in ("files", "path") if name in more}
    sent = {"settings": dict(State.of(more).values), "session": "s", "turn": turn, "stage": stage, **beside}
    found: dict[str, Any] = json.loads(answered(turns or Turns(), sent, local=True))
    return found


@pytest.fixture(scope="session")
def client_of() -> Callable[..., Any]:
    """Makes a test client of a protected application."""

    def make(host: str = "127.0.0.1", local: bool = True, known: bool = True) -> Any:
        app = build_app(local=local)
        protect(app.server, csp_hashes=app.csp_hashes(), host=host, port=PORT, token=TOKEN)
        client = app.server.test_client()
        if known:
            for name in ("127.0.0.1", "localhost", "::1"):
                client.set_cookie(cookie_of(PORT), TOKEN, domain=name)
        return client

    return make


@pytest.fixture(scope="session")
def client(client_of: Callable[..., Any]) -> Any:
    return client_of()

"""Serving the page: to this machine alone unless asked otherwise, to browsers with the token, never in debug mode."""

from __future__ import annotations

import errno
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from typing import Any

from dash import Dash
from flask import Flask, Response, request
from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler

from reticent.dashboard.answering import answered
from reticent.dashboard.guard import protect
from reticent.dashboard.layout import connect, made_styles, page
from reticent.dashboard.turns import Turns
from reticent.kernel.errors import ParameterError, UnsupportedError

_FURTHER = 50
_SWITCH = 0.0005
"""Seconds after which a computation lets others of this process go on: who moves a slider must not wait for a proof."""
_INDEX = """<!DOCTYPE html>
<html lang="en">
<head>
{%metas%}
<title>{%title%}</title>
{%favicon%}
{%css%}
<link rel="stylesheet" href="swatches.css">
</head>
<body>
{%app_entry%}
<noscript>This page computes on the machine that serves it and draws with JavaScript: please allow it.</noscript>
<footer>{%config%}{%scripts%}{%renderer%}</footer>
</body>
</html>
"""


def build_app(*, local: bool) -> Dash:
    """The application, not yet serving and not yet protected. Assets come from this machine; nothing is fetched."""
    app = Dash(
        "reticent.dashboard.server",
        title="reticent: privacy risk",
        update_title="",
        serve_locally=True,
        index_string=_INDEX,
        enable_mcp=False,
        meta_tags=[{"name": "viewport", "content": "width=device-width, initial-scale=1"}],
        add_log_handler=False,
    )
    app.layout = page(local)
    connect(app)
    turns = Turns()

    def answer() -> Response:
        found = answered(turns, request.get_json(silent=True), local=local)
        return app.server.response_class(found, mimetype="application/json")

    def styles() -> Response:
        return app.server.response_class(made_styles(), mimetype="text/css")

    app.server.add_url_rule("/answer", "answer", answer, methods=["POST"])
    app.server.add_url_rule("/swatches.css", "swatches", styles)
    return app


def is_local(host: str) -> bool:
    """Whether only this machine can reach a server on ``host``."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def free_port(host: str, after: int) -> int | None:
    """The first port above ``after`` that nobody uses; None where there is none near."""
    near = range(after + 1, min(after + _FURTHER, 65535) + 1)
    return next((port for port in near if _is_free(host, port)), None)


class Server:
    """A server that has its port and may start.

    Attributes:
        address: to open in a browser; it carries the token.
        token: that every request must show; a new one for each server.
    """

    def __init__(self, host: str, port: int) -> None:
        """Take the port.

        Raises:
            ParameterError: somebody uses it, or the host is none of this machine.
        """
        local = is_local(host)
        self.token = secrets.token_urlsafe(24)
        app = build_app(local=local)
        self._server = _listening(host, port, app.server)
        protect(app.server, csp_hashes=app.csp_hashes(), host=host, port=self._server.server_port, token=self.token)
        app.server.before_request(self._arrived)  # who does not know the token has been answered by now
        shown = f"[{host}]" if ":" in host else host
        self.address = f"http://{shown}:{self._server.server_port}/?token={self.token}"

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_port)

    def serve(self) -> None:
        """Answer until ``stop`` or until interrupted; a second interrupt is not needed."""
        before = sys.getswitchinterval()
        with _stopping(self.stop):
            sys.setswitchinterval(_SWITCH)
            try:
                self._server.serve_forever()
            finally:
                sys.setswitchinterval(before)
                self._server.server_close()

    def stop(self) -> None:
        """End ``serve`` from another thread."""
        self._server.shutdown()

    def _arrived(self) -> None:
        request.get_data()
        self._server.arrived(request.environ["werkzeug.socket"])


class QuietHandler(WSGIRequestHandler):
    """Writes no line for each request: addresses hold settings, and strangers could fill a log.

    Attributes:
        timeout: seconds in which a connection has to say something.
    """

    timeout = 30.0

    def log(self, type: str, message: str, *args: Any) -> None:
        pass

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        pass


class BoundedServer(ThreadedWSGIServer):
    """A thread for each connection, which has one request, and for no more than ``most``.

    Those whose request is slow to arrive make room, the oldest first: whoever knows the token gets in however many
    others only hold the door. Once it has arrived, a request takes as long as it takes.

    Attributes:
        most: connections at once; a page has six at most.
        idle: seconds in which a request has to arrive, after which its connection ends.
    """

    daemon_threads = True
    most, idle = 128, 30.0

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._open: set[socket.socket] = set()
        self._arriving: dict[socket.socket, float] = {}
        self._lock = threading.RLock()

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            full = len(self._open) >= self.most
            if full and not self._arriving:
                self.shutdown_request(request)
                return
            if full:
                self._end(next(iter(self._arriving)))
            self._open.add(request)
            self._arriving[request] = time.monotonic()
        super().process_request(request, client_address)

    def arrived(self, connection: socket.socket) -> None:
        """The request of a connection was read."""
        with self._lock:
            self._arriving.pop(connection, None)

    def service_actions(self) -> None:
        """End what is late; called twice a second."""
        super().service_actions()
        with self._lock:
            late = [one for one, since in self._arriving.items() if time.monotonic() - since > self.idle]
            for connection in late:
                self._end(connection)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.discard(request)
            self._arriving.pop(request, None)
        super().shutdown_request(request)

    def _end(self, connection: socket.socket) -> None:
        del self._arriving[connection]
        self._open.discard(connection)
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)  # its thread reads the end, and closes it


def _listening(host: str, port: int, app: Flask) -> BoundedServer:
    if port and not _is_free(host, port):
        nearest = free_port(host, port)
        hint = f"; --port {nearest} is free" if nearest else ""
        raise ParameterError("port", port, f"a port that nobody uses{hint}")
    return BoundedServer(host, port, app, QuietHandler)


def _is_free(host: str, port: int) -> bool:
    """Whether we could listen there.

    Raises:
        ParameterError: this machine has no such address.
        UnsupportedError: the system refuses for another reason.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return False
        if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            raise ParameterError("host", host, "an address of this machine") from None
        raise UnsupportedError(f"cannot listen on {host}:{port}: {error.strerror}") from None
    return True


@contextmanager
def _stopping(stop: Callable[[], None]) -> Iterator[None]:
    """SIGTERM and SIGINT end the server without a traceback; only the main thread may listen to them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ask(signum: int, frame: Any) -> None:
        threading.Thread(target=stop, daemon=True).start()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

"""Who may talk to the server, and how it starts and stops."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from reticent.dashboard.guard import LARGEST_REQUEST, cookie_of
from reticent.dashboard.server import BoundedServer, QuietHandler, Server, free_port, is_local
from tests.cli.calling import refused

HERE = {"Host": "127.0.0.1:8050"}
OPEN = {"host": "0.0.0.0", "local": False, "known": False}  # noqa: S104


def test_the_page_names_no_other_host(client: Any) -> None:
    for path in ("/", "/_dash-layout", "/assets/page.js", "/assets/page.css", "/swatches.css"):
        answer = client.get(path, headers=HERE)
        assert answer.status_code == 200
        text = answer.get_data(as_text=True)
        answer.close()
        assert "https://" not in text
        assert "cdn" not in text


FOREIGN = ("evil.example:8050", "127.0.0.1.nip.io:8050", "127.0.0.1", "127.0.0.1:80", "192.168.0.7:8050")


@pytest.mark.parametrize("host", ["127.0.0.1:8050", "localhost:8050", "[::1]:8050", *FOREIGN, "localhost:x", "[::"])
def test_a_foreign_name_that_points_here_is_refused(client: Any, host: str) -> None:
    ours = host in ("127.0.0.1:8050", "localhost:8050", "[::1]:8050")
    assert client.get("/", headers={"Host": host}).status_code in ((200,) if ours else (400, 421))


def test_a_page_of_another_site_may_ask_nothing(client: Any) -> None:
    for origin in ("https://evil.example", "http://127.0.0.1:9999", "null"):
        for place in ("/_dash-update-component", "/answer"):
            assert client.post(place, json={}, headers={**HERE, "Origin": origin}).status_code == 403


def test_the_page_may_load_nothing_from_elsewhere_and_be_framed_by_nobody(client: Any) -> None:
    policy = client.get("/", headers=HERE).headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe-eval" not in policy
    assert "'unsafe-inline'" not in policy.split("script-src")[1]


def test_large_requests_are_refused(client: Any) -> None:
    for place in ("/_dash-update-component", "/answer"):
        answer = client.post(place, data=b"0" * (LARGEST_REQUEST + 1), headers=HERE, content_type="application/json")
        assert answer.status_code == 413
        assert len(answer.get_data()) < 100


class TestToken:
    """Every request wants it: other accounts of this machine can connect as well."""

    @pytest.mark.parametrize("host", ["127.0.0.1:8050", "192.168.0.7:8050"])
    def test_this_machine_needs_it_too(self, client_of: Callable[..., Any], host: str) -> None:
        stranger, here = client_of(known=False) if host == HERE["Host"] else client_of(**OPEN), {"Host": host}
        for path in ("/", "/?token=wrong", "/?token=", "/_dash-layout", "/assets/page.js", "/swatches.css", "/x"):
            answer = stranger.get(path, headers=here)
            assert (answer.status_code, answer.content_type.partition(";")[0]) == (401, "text/plain")
            assert len(answer.get_data()) < 100
        for place in ("/_dash-update-component", "/answer", "/?token=s3cret"):
            assert stranger.post(place, json={}, headers=here).status_code == 401
        wrong = {**here, "Cookie": "reticent_token_8050=s3cre; reticent_token=s3cret; reticent_token_8051=s3cret"}
        assert stranger.get("/", headers=wrong).status_code == 401

    def test_it_moves_from_the_address_into_a_cookie(self, client_of: Callable[..., Any]) -> None:
        guarded, host = client_of(**OPEN), {"Host": "192.168.0.7:8050"}
        first = guarded.get("/?token=s3cret&steps=3&attackers=a%2Cb", headers=host)
        assert (first.status_code, first.headers["Location"]) == (302, "/?steps=3&attackers=a%2Cb")
        cookie, *rest = first.headers["Set-Cookie"].split("; ")
        assert cookie == "reticent_token_8050=s3cret"
        assert {"HttpOnly", "SameSite=Strict"} <= set(rest)
        assert guarded.get("/_dash-layout", headers={**host, "Cookie": cookie}).status_code == 200
        assert guarded.get("/?token=s3cret", headers=host).headers["Location"] == "/"
        assert guarded.get("/?token=s3cret", headers={"Host": "evil.example:8050"}).status_code == 421

    def test_two_servers_have_two_tokens(self) -> None:
        servers = [Server("127.0.0.1", 0) for _ in range(2)]
        for server in servers:
            server._server.server_close()
        assert len({server.token for server in servers}) == 2
        assert all(len(server.token) > 30 and server.address.endswith(server.token) for server in servers)


def slow(served: Server, said: bytes = b"GET / HTTP/1.1\r\n") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", served.port), timeout=20)
    connection.sendall(said)
    return connection


def test_a_connection_that_says_nothing_ends(served: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0 < QuietHandler.timeout <= 60
    monkeypatch.setattr(QuietHandler, "timeout", 0.2)
    with slow(served) as idle:
        assert idle.recv(1) == b""


@pytest.mark.parametrize("body", [False, True])
def test_a_request_that_drips_in_ends(served: Server, monkeypatch: pytest.MonkeyPatch, body: bool) -> None:
    """A byte now and then keeps a connection from being idle; the whole request has to arrive in time."""
    monkeypatch.setattr(BoundedServer, "idle", 0.3)
    known = f"Cookie: {cookie_of(served.port)}={served.token}\r\nHost: 127.0.0.1:{served.port}\r\n"
    head = f"POST /explore HTTP/1.1\r\n{known}Content-Length: 1000\r\n\r\n".encode()
    with slow(served, head if body else b"GET /") as connection, pytest.raises(OSError, match=r"Broken pipe|reset"):
        drip(connection)


def drip(connection: socket.socket) -> None:
    for _ in range(200):
        connection.sendall(b"x")
        time.sleep(0.05)


def test_slow_connections_do_not_lock_the_owner_out(served: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """1,100 of them took all file descriptors of the process."""
    monkeypatch.setattr(BoundedServer, "most", 8)
    crowd = [slow(served) for _ in range(40)]
    try:
        owner = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
        owner.request("GET", "/swatches.css", headers={"Cookie": f"{cookie_of(served.port)}={served.token}"})
        answer = owner.getresponse()
        assert (answer.status, len(answer.read()) > 100) == (200, True)
        assert crowd[0].recv(1) == b"", "the oldest made room"
        assert sum("process_request" in thread.name for thread in threading.enumerate()) <= 12
    finally:
        for connection in crowd:
            connection.close()


def test_a_request_that_has_arrived_takes_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BoundedServer, "most", 2)

    def work(environ: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
        server.arrived(environ["werkzeug.socket"])
        at_work.release()
        goes_on.wait(20)
        start("200 OK", [])
        return [b"done"]

    server = BoundedServer("127.0.0.1", 0, work, QuietHandler)
    at_work, goes_on = threading.Semaphore(0), threading.Event()
    threading.Thread(target=lambda: server.serve_forever(0.05), daemon=True).start()
    place = ("127.0.0.1", server.server_port)
    try:
        both = [socket.create_connection(place, timeout=20) for _ in range(2)]
        for one in both:
            one.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert at_work.acquire(timeout=20)
        with socket.create_connection(place, timeout=20) as third:
            assert third.recv(1) == b"", "nobody makes room for it"
        monkeypatch.setattr(BoundedServer, "idle", 0.1)  # not before: a busy machine is slow to send both
        time.sleep(0.3)
        goes_on.set()
        for one in both:
            with one, one.makefile("rb") as answer:
                assert answer.read().endswith(b"done\r\n0\r\n\r\n")
    finally:
        server.shutdown()


def test_only_loopback_is_this_machine_alone() -> None:
    assert [is_local(h) for h in ("127.0.0.1", "127.8.8.8", "::1", "localhost")] == [True] * 4
    assert [is_local(h) for h in ("0.0.0.0", "::", "192.168.0.7", "example.org")] == [False] * 4  # noqa: S104


def test_a_taken_port_says_so_and_offers_another(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        line = refused(capsys, "dashboard", "--port", port)
        offered = int(line.partition("; --port ")[2].split()[0])
        assert offered == free_port("127.0.0.1", port) > port


@pytest.mark.parametrize(("option", "value"), [("--port", "80"), ("--host", "192.0.2.1"), ("--host", "no such host")])
def test_what_cannot_be_listened_on_is_one_line(option: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert option in refused(capsys, "dashboard", option, value)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.slow
def test_it_stops_without_a_traceback(number: int) -> None:
    port = free_port("127.0.0.1", 18050)
    command = [sys.executable, "-W", "ignore", "-m", "reticent", "dashboard", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ) as run:
        assert run.stdout is not None
        assert f"127.0.0.1:{port}" in run.stdout.readline()
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/")
            except urllib.error.HTTPError as refused:
                assert refused.code == 401  # noqa: PT017
                break
            except OSError:
                time.sleep(0.1)
        run.send_signal(number)
        out, err = run.communicate(timeout=30)
    assert run.returncode == 0
    assert out.strip() == "stopped"
    assert err == ""

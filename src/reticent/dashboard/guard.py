"""Who may talk to the server: the right host name, the token in every request, requests of sensible size."""

from __future__ import annotations

import hmac
import logging
import socket
from collections.abc import Sequence
from http import HTTPStatus
from ipaddress import ip_address
from urllib.parse import urlencode, urlsplit

from flask import Flask, Response, redirect, request
from werkzeug.exceptions import HTTPException

LARGEST_REQUEST = 12 << 20
"""Bytes of one request: a file of 8 MiB as browsers send it."""
_LOG = logging.getLogger("reticent.dashboard")
_REFUSED = "This address is not served here."
_NO_TOKEN = "Open the address with the token that the server printed."  # noqa: S105


def protect(server: Flask, *, csp_hashes: Sequence[str], host: str, port: int, token: str) -> None:
    """Check every request, and end every error in one line.

    Args:
        server: the application.
        csp_hashes: of the scripts in the page itself.
        host, port: as bound.
        token: what must be known: other accounts of this machine can connect as well.
    """
    server.config["MAX_CONTENT_LENGTH"] = LARGEST_REQUEST
    server.config["MAX_FORM_MEMORY_SIZE"] = LARGEST_REQUEST
    policy = (
        "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
        f"script-src 'self' {' '.join(csp_hashes)}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )

    def check() -> Response | None:
        if not _is_ours(request.host, host, port):
            return _line(_REFUSED, HTTPStatus.MISDIRECTED_REQUEST)
        origin = request.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != request.host:
            return _line(_REFUSED, HTTPStatus.FORBIDDEN)
        return _token_problem(token, cookie_of(port))

    def harden(response: Response) -> Response:
        response.headers["Content-Security-Policy"] = policy
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
        return response

    server.before_request_funcs.setdefault(None, []).insert(0, check)
    server.after_request(harden)
    server.register_error_handler(HTTPException, _http_problem)
    server.register_error_handler(Exception, _problem)


def _is_ours(given: str, host: str, port: int) -> bool:
    """Whether the Host header names this server: a foreign name that points here is refused (DNS rebinding).

    Addresses in digits are always safe: no name was looked up.
    """
    try:
        parts = urlsplit(f"//{given}")
        name, stated = parts.hostname or "", parts.port
    except ValueError:
        return False
    if (stated or 80) != port:
        return False
    if name in {host.lower(), "localhost"}:
        return True
    try:
        return ip_address(name).is_loopback or not ip_address(host).is_loopback
    except ValueError:
        return name == socket.gethostname().lower() and host not in ("127.0.0.1", "::1", "localhost")


def cookie_of(port: int) -> str:
    """The name of the cookie: cookies know no ports, and a machine may serve several pages."""
    return f"reticent_token_{port}"


def _token_problem(token: str, cookie: str) -> Response | None:
    """None where the token is known; the address that carries it sets a cookie and goes on without it."""
    if request.method == "GET" and request.path == "/" and "token" in request.args:
        if not _same(request.args["token"], token):
            return _line(_NO_TOKEN, HTTPStatus.UNAUTHORIZED)
        rest = urlencode([(name, value) for name, value in request.args.items(multi=True) if name != "token"])
        answer = redirect(f"/?{rest}" if rest else "/")
        answer.set_cookie(cookie, token, httponly=True, samesite="Strict")
        return answer  # type: ignore[return-value]
    if not _same(request.cookies.get(cookie, ""), token):
        return _line(_NO_TOKEN, HTTPStatus.UNAUTHORIZED)
    return None


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())


def _http_problem(error: HTTPException) -> Response:
    status = error.code or 400
    return _line(f"{HTTPStatus(status).phrase}.", status)


def _problem(error: Exception) -> Response:
    """A request that the page never makes breaks Dash's reader in many ways; all of them are bad requests."""
    _LOG.warning("bad request to %s: %s", request.path, type(error).__name__)
    return _line("This is not a request that the page makes.", HTTPStatus.BAD_REQUEST)


def _line(text: str, status: int) -> Response:
    return Response(text + "\n", status, mimetype="text/plain")

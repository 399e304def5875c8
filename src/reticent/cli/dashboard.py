"""``reticent dashboard``: the risk of a release in a browser, served to this machine by default."""

from __future__ import annotations

import click

from reticent.cli._app import command, option
from reticent.kernel.errors import ParameterError, needing


@command(
    "dashboard",
    option("port", int, "Port to listen on.", 8050),
    option("host", str, "Address to listen on. The start link carries a token that every request needs.", "127.0.0.1"),
)
def dashboard(port: int, host: str) -> None:
    """Serve the page until interrupted; all computations run on this machine."""
    if not 1024 <= port <= 65535:
        raise ParameterError("port", port, "a whole number from 1024 to 65535")
    with needing("the dashboard", "dashboard"):
        from reticent.dashboard.server import Server
    server = Server(host, port)
    click.echo(f"open {server.address} (interrupt to stop)")
    server.serve()
    click.echo("stopped")

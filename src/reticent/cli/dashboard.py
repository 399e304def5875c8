"""``reticent dashboard``: the risk page in a browser, served to this machine only."""

from __future__ import annotations

from typing import Annotated

import typer

from reticent.cli._app import app
from reticent.errors import ParameterError, UnsupportedError


@app.command("dashboard")
def dashboard(
    port: Annotated[int, typer.Option("--port", help="Port on 127.0.0.1.")] = 8050,
) -> None:
    """Serve the risk page on 127.0.0.1 until interrupted."""
    if not 1024 <= port <= 65535:
        raise ParameterError("port", port, "a whole number from 1024 to 65535")
    try:
        from reticent.dashboard.app import build_app
    except ImportError as error:
        raise UnsupportedError(f"the dashboard needs an extra: pip install 'reticent[dashboard]' ({error})") from None
    typer.echo(f"open http://127.0.0.1:{port} (interrupt to stop)")
    build_app().run(host="127.0.0.1", port=str(port), debug=False)

"""``reticent lint``: what is wrong with a training loop that was watched."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reticent.api.watching import indent_of, lint
from reticent.cli._app import app
from reticent.cli._ledger import check_run_folder
from reticent.cli._options import JsonOption
from reticent.cli._tables import say
from reticent.records.watch_faults import Severity


@app.command("lint")
def lint_command(
    ledger: Annotated[Path, typer.Argument(metavar="LEDGER", help="A ledger of rt.watch, a run, or an event in JSON.")],
    json: JsonOption = False,
) -> None:
    """Name every fault of a loop or a run with its severity, the reason and what mends it; exit code 1 on an error."""
    check_run_folder(ledger)
    found = lint(ledger)
    if json:
        typer.echo(found.to_json().rstrip())
    else:
        for line in found.lines():
            say(line, indent=indent_of(line))
    if found.worst is Severity.ERROR:
        raise typer.Exit(1)

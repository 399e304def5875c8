"""``reticent lint``: what is wrong with a training loop that was watched."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from reticent.cli._app import argument
from reticent.cli._asking import Do, asking
from reticent.cli._ledger import check_run_folder
from reticent.cli._tables import say
from reticent.facts import Severity
from reticent.io.files import strays
from reticent.text import printable
from reticent.verbs.request import Request
from reticent.verbs.watching import Lint, indent_of


def _do(request: Lint, given: Mapping[str, Any], json: bool) -> None:
    """Name the faults, and what a kill left half-written; exit code 1 on an error."""
    where = Path(request.ledger) if isinstance(request.ledger, (str, Path)) else None
    folders = [where, *where.rglob("*/")] if where is not None and where.is_dir() else []
    left = [stray for folder in folders for stray in strays(folder)]
    for path in left:
        line = f"{path}: half-written by a process that was killed; it may hold weights: delete it"
        click.echo(printable(line), err=True)
    if where is not None:
        if left and not (where / "ledger.json").exists():
            raise click.exceptions.Exit(1)
        check_run_folder(where)
    found = request.answer()
    if json:
        click.echo(found.to_json().rstrip())
    else:
        for line in found.lines():
            say(line, indent=indent_of(line))
    if left or found.worst is Severity.ERROR:
        raise click.exceptions.Exit(1)


lint = asking(
    "lint",
    lambda given: Lint.of(ledger=given["ledger"]),
    _do,
    argument("ledger", Path, "LEDGER|FOLDER", "A ledger of rt.watch, a run, an event in JSON; or a folder of runs."),
    help="""Name every fault of a loop or a run with its severity, the reason and the remedy; exit code 1 on an error.

    Of a folder, also whatever a kill left half-written in it.
    """,
)


def asked() -> dict[type[Request], Do]:
    """The requests that the verb takes, and what is done with them."""
    return {Lint: _do}

"""``reticent lint``: what is wrong with a training loop that was watched."""

from __future__ import annotations

from pathlib import Path

import click

from reticent.cli._app import JSON, argument, command
from reticent.cli._ledger import check_run_folder
from reticent.cli._tables import say
from reticent.facts import Severity
from reticent.io.files import strays
from reticent.text import printable
from reticent.verbs.watching import indent_of
from reticent.verbs.watching import lint as faults_of


@command(
    "lint",
    argument("ledger", Path, "LEDGER|FOLDER", "A ledger of rt.watch, a run, an event in JSON; or a folder of runs."),
    JSON,
)
def lint(ledger: Path, json: bool) -> None:
    """Name every fault of a loop or a run with its severity, the reason and the remedy; exit code 1 on an error.

    Of a folder, also whatever a kill left half-written in it.
    """
    left = [stray for folder in [ledger, *ledger.rglob("*/")] for stray in strays(folder)] if ledger.is_dir() else []
    for path in left:
        line = f"{path}: half-written by a process that was killed; it may hold weights: delete it"
        click.echo(printable(line), err=True)
    if left and not (ledger / "ledger.json").exists():
        raise click.exceptions.Exit(1)
    check_run_folder(ledger)
    found = faults_of(ledger)
    if json:
        click.echo(found.to_json().rstrip())
    else:
        for line in found.lines():
            say(line, indent=indent_of(line))
    if left or found.worst is Severity.ERROR:
        raise click.exceptions.Exit(1)

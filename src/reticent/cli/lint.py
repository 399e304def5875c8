"""``reticent lint``: what is wrong with a training loop that was watched."""

from __future__ import annotations

from pathlib import Path

import click

from reticent.api.watching import indent_of
from reticent.api.watching import lint as faults_of
from reticent.cli._app import JSON, argument, command
from reticent.cli._ledger import check_run_folder
from reticent.cli._tables import say
from reticent.records.watch_faults import Severity


@command(
    "lint",
    argument("ledger", Path, "LEDGER", "A ledger of rt.watch, a run, or an event in JSON."),
    JSON,
)
def lint(ledger: Path, json: bool) -> None:
    """Name every fault of a loop or a run with its severity, the reason and the remedy; exit code 1 on an error."""
    check_run_folder(ledger)
    found = faults_of(ledger)
    if json:
        click.echo(found.to_json().rstrip())
    else:
        for line in found.lines():
            say(line, indent=indent_of(line))
    if found.worst is Severity.ERROR:
        raise click.exceptions.Exit(1)

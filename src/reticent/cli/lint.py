"""``reticent lint``: what is wrong with a training loop that was watched."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from reticent.cli._app import argument
from reticent.cli._asking import asking, told
from reticent.io.files import strays
from reticent.kernel.errors import ArtifactError
from reticent.kernel.text import printable
from reticent.training.rundir import check_run_folder
from reticent.verbs.watching import Lint


def _do(request: Lint, given: Mapping[str, Any], json: bool) -> None:
    """Name the faults, and what a kill left half-written; exit code 1 on an error."""
    where = Path(request.ledger) if isinstance(request.ledger, (str, Path)) else None
    folders = [where, *where.rglob("*/")] if where is not None and where.is_dir() else []
    left = [stray for folder in folders for stray in strays(folder)]
    for path in left:
        line = f"{path}: half-written by a process that was killed; it may hold weights: delete it"
        click.echo(printable(line), err=True)
    if where is not None:
        if folders and not (where / "ledger.json").exists():
            if not left and (runs := sorted(where.rglob("ledger.json"))):
                raise ArtifactError(f"{where} is a folder of runs, and none is half-written: lint {runs[0].parent}")
            if left:
                raise click.exceptions.Exit(1)
        check_run_folder(where)
    told(request.answer(), given, json)
    if left:
        raise click.exceptions.Exit(1)


ASKED = {Lint: _do}
_WHAT = "A ledger of rt.watch, a run, an event in JSON; or a folder in which a run was killed."
lint = asking(
    "lint",
    Lint,
    _do,
    argument("ledger", Path, "LEDGER|FOLDER", _WHAT),
    help="""Name every fault of a loop or a run with its severity, the reason and the remedy; exit code 1 on an error.

    Of a folder, also whatever a kill left half-written in it.
    """,
)

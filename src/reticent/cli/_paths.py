"""Paths in place of the name of a command: ``reticent risk RUN...``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from reticent.cli._app import Listing, argument

RUNS = argument(
    "paths",
    Path,
    "RUN...",
    "The folder of a run, a ledger, a certificate, a DpEvent, or a mechanism as risk --json shows it; in JSON.",
    many=True,
)
LEDGER = argument(
    "file",
    Path,
    "FILE",
    "A ledger (of reticent train or rt.watch), a DpEvent, or a mechanism as risk --json shows it; in JSON.",
)
LEAF = "What a file says: a ledger, a schedule, an event."
SEVERAL = "Runs, ledgers, certificates, schedules or events."


class OfPaths(Listing):
    """A group whose last command is meant, too, where a path is typed in place of a name."""

    def __init__(self, group: Listing) -> None:
        super().__init__(str(group.name), group._lines, group._make, help=group.help, params=group.params)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, self._meant(ctx, cmd_name))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        name = self._meant(ctx, args[0])
        return super().resolve_command(ctx, args if name == args[0] else [name, *args])

    def _meant(self, ctx: click.Context, word: str) -> str:
        names = self.list_commands(ctx)
        path = not word.startswith("-") and ("/" in word or word.endswith(".json") or os.path.lexists(word))
        return names[-1] if path and word not in names else word

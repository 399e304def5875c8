"""Files that say what was released: in place of the name of a command, as ``reticent risk RUN...``, or after it."""

from __future__ import annotations

from pathlib import Path

from reticent.cli._app import argument

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

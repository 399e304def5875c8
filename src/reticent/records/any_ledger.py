"""Reading a ledger of either kind from a file: of our own trainer, or of a watched loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from reticent.errors import ArtifactError
from reticent.io import strict
from reticent.records.run_ledger import LEDGER_SCHEMA, RunLedger, first_problem
from reticent.records.watched_run import WATCH_SCHEMA, PublicWatchedRun, WatchedRun
from reticent.text import printable

_LARGEST = 64 << 20

AnyLedger = RunLedger | PublicWatchedRun


def read_ledger(path: Path) -> AnyLedger:
    """The ledger in a file.

    Args:
        path: of a JSON file.

    Raises:
        ArtifactError: the file is missing, too large, not strict JSON, or no ledger.
    """
    return ledger_of(strict.loads(strict.read_bytes(path, _LARGEST), str(path)), str(path))


def ledger_of(document: Any, where: str) -> AnyLedger:
    """The ledger that a JSON document is.

    Args:
        document: as parsed.
        where: what errors call it.

    Raises:
        ArtifactError: it is none.
    """
    schema = document.get("schema") if isinstance(document, dict) else None
    try:
        match schema:
            case "reticent.ledger/1":
                return RunLedger.model_validate(document)
            case "reticent.watch/1":
                return (WatchedRun if "diagnostics" in document else PublicWatchedRun).model_validate(document)
    except ValidationError as error:
        raise ArtifactError(f"{where}: {first_problem(error)}") from None
    shown = printable(repr(schema), 100)
    raise ArtifactError(f"{where}: no ledger: schema is {shown}, expected {LEDGER_SCHEMA} or {WATCH_SCHEMA}")

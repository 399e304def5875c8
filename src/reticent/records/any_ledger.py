"""Reading a ledger of either kind from a file: of our own trainer, or of a watched loop."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

from reticent.errors import ArtifactError
from reticent.io import strict
from reticent.io.models import validated
from reticent.records.rules import section
from reticent.records.run_ledger import LEDGER_SCHEMA, RunLedger
from reticent.records.watched_run import WATCH_SCHEMA, PublicWatchedRun, WatchedRun
from reticent.text import printable

_LARGEST = 64 << 20

AnyLedger = RunLedger | PublicWatchedRun
Kind = TypeVar("Kind")
Silent = Literal["start-weights", "planned-steps"]
"""Conditions that are the program's to state: weights that these records left at the start, or a plan of more steps,
would make the numbers larger, so to say nothing is never worth more."""


def read_ledger(path: Path) -> AnyLedger:
    """The ledger in a file.

    Raises:
        ArtifactError: the file is missing, too large, not strict JSON, or no ledger.
    """
    return ledger_of(strict.load(path, _LARGEST), str(path))


def ledger_of(document: Any, where: str) -> AnyLedger:
    """The ledger that a JSON document is.

    Raises:
        ArtifactError: it is none.
    """
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema == LEDGER_SCHEMA:
        return validated(RunLedger, document, where)
    if schema == WATCH_SCHEMA:
        kind: type[PublicWatchedRun] = WatchedRun if "diagnostics" in document else PublicWatchedRun
        return validated(kind, document, where)
    shown = printable(repr(schema), 100)
    raise ArtifactError(f"{where}: not a ledger: schema is {shown}, expected {LEDGER_SCHEMA} or {WATCH_SCHEMA}")


def held(what: object, *kinds: type[Kind]) -> Kind | None:
    """What ``what`` is, or holds as its ``ledger``, of one of these kinds; None where it is something else."""
    return next((one for one in (what, getattr(what, "ledger", None)) if isinstance(one, kinds)), None)


def unstated(ledger: Mapping[str, Any] | None) -> frozenset[Silent]:
    """What the program that wrote a ledger, as its JSON document, did not state: assumed then is silence.

    A run of ``reticent train`` always has a plan; where its model is a class of one's own, nobody stated its start.
    """
    if ledger is None:
        return frozenset()
    if ledger["schema"] != WATCH_SCHEMA:
        own = section(ledger["config"], "model").get("kind") == "custom"
        return frozenset(("start-weights",) if own else ())
    unplanned = any(loop.get("planned") is None for loop in (*ledger.get("earlier", ()), ledger))
    return frozenset(("start-weights", "planned-steps") if unplanned else ("start-weights",))

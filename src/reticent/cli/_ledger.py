"""What ``risk ledger`` and ``calibrate ledger`` share: a file that says what was released, and its warnings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from reticent.cli._app import argument
from reticent.errors import ArtifactError

LEDGER = argument(
    "file",
    Path,
    "FILE",
    "A ledger (of reticent train or rt.watch), a DpEvent, or a mechanism as risk --json shows it; in JSON.",
)

LEAF = "What a file says: a ledger, a schedule, an event."


def check_run_folder(path: Path) -> None:
    """Refuse the folder that ``certify CONFIG`` writes: the run is one deeper.

    Raises:
        ArtifactError: it is that folder; the text names the run.
    """
    if (path / "run" / "manifest.json").is_file() and not (path / "manifest.json").exists():
        raise ArtifactError(f"{path} is the folder of a certificate; its run is {path / 'run'}")


def say_warnings(warnings: Mapping[str, str]) -> None:
    """The warnings of the ledger, one after the other, as ``certify`` prints them."""
    from reticent.cli._tables import say

    for name, text in warnings.items():
        say(f"! {name}: {text}")

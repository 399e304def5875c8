"""What the callbacks of all trainers share: the watch that one of them began, and its ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reticent.kernel.errors import ParameterError
from reticent.records.ledger import RunLedger
from reticent.watching.session import Watch


class Watching:
    """Watches what a trainer really does, from the first step to the last."""

    _trains: str
    """How the program calls the trainer."""

    def __init__(self, **options: Any) -> None:
        """Args: ``options`` are keywords of ``rt.watch``."""
        self._options = options
        self._watch: Watch | None = None

    @property
    def _looked(self) -> Watch:
        if self._watch is None:
            raise ParameterError("ledger", None, f"read after {self._trains}")
        return self._watch

    @property
    def ledger(self) -> RunLedger:
        """What was seen.

        Raises:
            ParameterError: nothing was trained, or training has not ended.
        """
        return self._looked.ledger

    def save(self, path: Path | str, *, overwrite: bool = False) -> None:
        """Write the ledger, and its signature where there is a key; see ``Watch.save``."""
        self._looked.save(path, overwrite=overwrite)

    def _begin(self, model: Any, optimizer: Any, loader: Any, step: int, packs: bool = False) -> None:
        options = {"draws_ahead": True, "trainer_step": step, "packs": packs, **self._options}
        self._watch = Watch(model, optimizer, loader, **options)
        self._watch.__enter__()

"""Training that began at weights from elsewhere, and what those had seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reticent.facts.base import Fact, Severity

if TYPE_CHECKING:
    from reticent.records.ledger import RunLedger


def begins_at_a_base_model(run: RunLedger) -> bool:
    """Whether this loop began there; one that continues another began where that one ended."""
    return run.start is not None and run.start.weights == "loaded" and run.start.salt is None


BASE_MODEL = Fact("begins-at-a-base-model", Severity.WARNING, begins_at_a_base_model)

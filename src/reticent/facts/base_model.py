"""Training that may have begun at the weights of another model, and what that had seen.

Only weights that were seen being drawn at random rule that out: who says nothing of a base model is told the same as
who names one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from reticent.facts.base import Fact, Severity
from reticent.facts.start_weights import drawn_here
from reticent.kernel.proofs import Status

if TYPE_CHECKING:
    from reticent.records.ledger import RunLedger


def _vouches(run: RunLedger) -> Mapping[str, Status]:
    """Of one loop; one that continues another began where that one ended."""
    start = run.start
    drawn = drawn_here(run) if start is None else start.weights == "random" or start.salt is not None
    return {"base-model": Status.CHECKED} if drawn else {}


BASE_MODEL = Fact(
    "may-begin-at-a-base-model", Severity.WARNING, lambda run: not _vouches(run), ours=True, vouches=_vouches
)

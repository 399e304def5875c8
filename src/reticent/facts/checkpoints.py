"""Weights of earlier steps, which count as released: the program kept them, put them back, or changed the last ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from reticent.facts.base import Fact, Severity
from reticent.io.models import Sha256
from reticent.kernel.messages import Figure, Message

if TYPE_CHECKING:
    from reticent.records.ledger import RunLedger

MOST_CHECKPOINTS = 256

Digests = Annotated[tuple[Sha256, ...], Field(min_length=1, max_length=MOST_CHECKPOINTS)]
"""SHA-256 of weights as ``RunLedger.weights_sha256`` states it."""


def kept(run: RunLedger) -> set[str]:
    """Weights of earlier steps, of this loop and of those that it continues, by SHA-256."""
    return {digest for loop in run.loops for digest in loop.facts.get(CHECKPOINTS.key, ())}


def _shows(digests: tuple[str, ...]) -> Iterable[tuple[Message, Message]]:
    yield Message("fact.checkpoints"), Message("fact.kept", count=Figure(str(len(digests))))


CHECKPOINTS = Fact("checkpoints", Severity.NOTE, stated=Digests, shows=_shows)
PUT_BACK = Fact("earlier-weights-put-back", Severity.WARNING)
POST_PROCESSED = Fact("weights-changed-after-steps", Severity.WARNING)

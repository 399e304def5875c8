"""Batches that several steps used, one after the other.

K releases of one draw, each of a sum with the same noise, show a record as one release does whose noise is smaller by
the square root of K: whoever is not in the draw is in none of them (docs/theory/sampling.md). So the draws count, with
the noise of the batch that was used most.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from reticent.facts.base import Fact, Found, Reading, Severity
from reticent.io.models import Closed, Count
from reticent.messages import Figure, Message

if TYPE_CHECKING:
    from reticent.records.ledger import RunLedger


class ReusedBatches(Closed):
    """How batches were used again.

    Attributes:
        most: steps that used one batch, at most.
        again: steps that used the batch of the step before.
    """

    most: Count
    again: Count


def _as_draws(run: RunLedger, reading: Reading) -> Reading:
    """One step for each draw, where all steps are alike; else every step has the noise of a whole draw."""
    value: ReusedBatches = run.facts[REUSED_BATCHES.key]
    factor = 1.0 / math.sqrt(value.most)
    noisy = [part.model_copy(update={"noise_multiplier": factor * part.noise_multiplier}) for part in reading.segments]
    if len(run.segments) == 1:
        noisy[0] = noisy[0].model_copy(update={"steps": max(1, noisy[0].steps - value.again)})
    return replace(reading, segments=tuple(noisy))


def _problems(run: RunLedger) -> Found:
    """A batch that is used at most so often is drawn anew in between."""
    value: ReusedBatches | None = run.facts.get(REUSED_BATCHES.key)
    if value is not None and value.again * value.most > run.steps * (value.most - 1):
        yield "facts.reused-batches.again", "is more than the most uses of one batch allow"


def _shows(value: ReusedBatches) -> Iterable[tuple[Message, Message]]:
    yield Message("fact.reused-batches"), Message("fact.at-most", steps=Figure(str(value.most)))


REUSED_BATCHES = Fact(
    "reused-batches", Severity.WARNING, stated=ReusedBatches, effect=_as_draws, watched=(_problems,), shows=_shows
)

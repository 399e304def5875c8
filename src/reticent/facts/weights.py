"""What moves the weights beside the private steps, and what was there before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reticent.facts.base import Fact, Severity, section
from reticent.facts.steps import Source

if TYPE_CHECKING:
    from reticent.records.ledger import RunLedger


def _declared(run: RunLedger) -> bool:
    return Source.DECLARED in (run.sampler.source, run.clipping.source)


def schema_from_records(run: RunLedger) -> bool:
    """Whether bounds or categories of columns were read off the records."""
    return bool(section(section(run.asked, "data"), "table").get("derived"))


OTHER_OPTIMISER = Fact("other-optimiser")
WEIGHTS_CHANGED = Fact("weights-changed-outside")
BUFFERS_LEARNT = Fact("buffers-changed")
TRAINED_OUTSIDE = Fact("trained-outside-the-model")
NOT_FINITE = Fact("weights-not-finite")
NOT_FOLLOWED = Fact("not-followed")
OTHER_MODEL = Fact("other-model-trained", Severity.WARNING)
METRIC_SCHEDULE = Fact("learning-rate-follows-a-metric", Severity.WARNING)
DECLARED = Fact("declared-not-seen", Severity.WARNING, _declared)
ENDED_EARLY = Fact("ended-with-an-error", Severity.WARNING, lambda run: run.weights_sha256 is None)
SCHEMA_FROM_RECORDS = Fact("schema-from-records", Severity.WARNING, schema_from_records, ours=True)

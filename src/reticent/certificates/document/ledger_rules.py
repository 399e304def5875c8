"""Contradictions within a ledger, and between a ledger and the declaration of its certificate."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC

from reticent.certificates.document.schema import Declaration, Edition
from reticent.io.times import moment
from reticent.kernel.errors import ArtifactError
from reticent.records.ledger import RunLedger
from reticent.records.publication import published


def _same_weights(ledger: RunLedger, declared: Declaration) -> Iterator[tuple[str, str]]:
    """The model that ran is the one that is declared."""
    if ledger.weights_sha256 is not None and declared.weights_sha256 not in (None, ledger.weights_sha256):
        yield "weights_sha256", "is not that of the model that is declared"


def _in_time(ledger: RunLedger, declared: Declaration) -> Iterator[tuple[str, str]]:
    """A certificate is not older than its run."""
    ran, written = moment(ledger.created), moment(declared.created)
    if written.astimezone(UTC).date() < ran.astimezone(UTC).date():
        yield "created", f"is {ledger.created}, after the certificate was made ({declared.created})"


def _nothing_private(ledger: RunLedger, declared: Declaration) -> Iterator[tuple[str, str]]:
    """The public form of a public ledger is itself."""
    allowed = published(ledger, declared.publishes)
    for name in RunLedger.model_fields:
        if name != "digest" and getattr(allowed, name) != getattr(ledger, name):
            yield name, "holds something that has no place in a public certificate"


def contradictions(
    ledger: RunLedger, declared: Declaration | None = None, edition: Edition = Edition.COMPLETE
) -> Iterator[tuple[str, str]]:
    """Pairs of a path inside the ledger and what is wrong there."""
    yield from ledger.contradictions()
    if declared is not None:
        yield from _same_weights(ledger, declared)
        yield from _in_time(ledger, declared)
        yield from _nothing_private(ledger, declared) if edition is Edition.PUBLIC else ()


def refuse_contradictions(ledger: RunLedger, declared: Declaration | None = None) -> None:
    """A ledger that contradicts itself proves nothing.

    Raises:
        ArtifactError: it does; the text names the first fact.
    """
    for where, problem in contradictions(ledger, declared):
        raise ArtifactError(f"the ledger contradicts itself: {where} {problem}")

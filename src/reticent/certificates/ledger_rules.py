"""Contradictions within a ledger, and between a ledger and the declaration of its certificate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC

from reticent.certificates.schema import Declaration, Edition
from reticent.certificates.targets import exceeds_its_stop, misses_its_target
from reticent.errors import ArtifactError
from reticent.io.times import moment
from reticent.records.ledger import RunLedger
from reticent.records.publication import published
from reticent.records.rules import Found, Rule
from reticent.records.rules import contradictions as broken


@dataclass(frozen=True, slots=True)
class Stated:
    """A declaration with the ledger of its run."""

    declared: Declaration
    ledger: RunLedger
    edition: Edition


def _same_weights(stated: Stated) -> Found:
    seen, declared = stated.ledger.weights_sha256, stated.declared.weights_sha256
    if seen is not None and declared not in (None, seen):
        yield "weights_sha256", "is not that of the model that is declared"


def _in_time(stated: Stated) -> Found:
    ran, written = moment(stated.ledger.created), moment(stated.declared.created)
    if written.astimezone(UTC).date() < ran.astimezone(UTC).date():
        yield "created", f"is {stated.ledger.created}, after the certificate was made ({stated.declared.created})"


def _nothing_private(stated: Stated) -> Found:
    """The public form of a public ledger is itself."""
    if stated.edition is Edition.COMPLETE:
        return
    allowed = published(stated.ledger, stated.declared.publishes)
    for name in RunLedger.model_fields:
        if name != "digest" and getattr(allowed, name) != getattr(stated.ledger, name):
            yield name, "holds something that has no place in a public certificate"


def _target(stated: Stated) -> Found:
    yield from misses_its_target(stated.ledger)


def _stop(stated: Stated) -> Found:
    yield from exceeds_its_stop(stated.ledger)


STATED_RULES: tuple[Rule, ...] = (
    Rule(
        ("weights_sha256", "declared.weights_sha256"), "The model that ran is the one that is declared.", _same_weights
    ),
    Rule(("created", "declared.created"), "A certificate is not older than its run.", _in_time),
    Rule(("data", "config", "environment", "utility"), "A public certificate holds nothing private.", _nothing_private),
    Rule(("segments", "config.target"), "The noise is the least that meets the target.", _target),
    Rule(("planned", "segments"), "A loop that the watch stopped keeps to the risk at which it stopped.", _stop),
)
"""Every constraint between a ledger and the certificate around it."""


def contradictions(
    ledger: RunLedger, declared: Declaration | None = None, edition: Edition = Edition.COMPLETE
) -> Iterator[tuple[str, str]]:
    """Pairs of a path inside the ledger and what is wrong there."""
    yield from ledger.contradictions()
    if declared is not None:
        yield from broken(STATED_RULES, Stated(declared, ledger, edition))


def refuse_contradictions(ledger: RunLedger, declared: Declaration | None = None) -> None:
    """A ledger that contradicts itself proves nothing.

    Raises:
        ArtifactError: it does; the text names the first fact.
    """
    for where, problem in contradictions(ledger, declared):
        raise ArtifactError(f"the ledger contradicts itself: {where} {problem}")

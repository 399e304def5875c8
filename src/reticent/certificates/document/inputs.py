"""Reading back from a document what it says it follows from; everything is checked before anything is computed."""

from __future__ import annotations

from reticent.adversaries.codec import adversary_of
from reticent.certificates.document.derive import Inputs, question
from reticent.certificates.document.schema import Certificate, Edition
from reticent.kernel.errors import ArtifactError, ReticentError
from reticent.kernel.mechanisms import Mechanism
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.risk.questions import Questions
from reticent.mechanisms.codec import mechanism_of, within_reach


def inputs_of(certificate: Certificate) -> Inputs:
    """What the document says it follows from.

    Raises:
        ArtifactError: it names a mechanism, attacker, question or ledger that does not exist or is out of bounds.
    """
    ledger, mechanism = certificate.ledger, _released(certificate)
    asked = tuple(
        (adversary_of(record.adversary, record.parameters), _relation(record.neighbouring))
        for record in certificate.assessments
    )
    try:
        questions = Questions(**{name: tuple(asked) for name, asked in certificate.questions.model_dump().items()})
    except ReticentError as error:
        raise ArtifactError(f"questions: {error}") from None
    unanswered = {*map(question, Neighbouring)}
    skipped = {name: reason for name, reason in certificate.skipped.items() if name not in unanswered}
    return Inputs(
        certificate.declared, mechanism, asked, questions, skipped, certificate.edition, ledger, certificate.policy
    )


def _released(certificate: Certificate) -> Mechanism:
    """What the ledger says was released, or the document where it has none."""
    ledger = certificate.ledger
    if ledger is None:
        return mechanism_of(certificate.mechanism)
    if certificate.edition is Edition.COMPLETE and ledger.diagnostics is None:
        raise ArtifactError("ledger.diagnostics is missing")
    try:
        steps = max(ledger.steps, ledger.counted)
        mechanism_of({"kind": "dpsgd", "noise_multiplier": 1.0, "sample_rate": 1.0, "steps": steps})
        return within_reach(ledger.mechanism())
    except ArtifactError:
        raise
    except (ReticentError, ValueError, OverflowError) as error:
        raise ArtifactError(f"ledger: {error}") from None


def _relation(text: str) -> Neighbouring:
    try:
        return Neighbouring(text)
    except ValueError:
        raise ArtifactError(f"unknown neighbouring relation {text!r}") from None

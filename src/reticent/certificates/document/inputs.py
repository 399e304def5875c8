"""Reading back from a document what it says it follows from; everything is checked before anything is computed."""

from __future__ import annotations

from reticent.adversaries.codec import adversary_of, kind_of
from reticent.certificates.document.derive import NOT_ASKED, PRIVATE, Inputs, assessed, question
from reticent.certificates.document.schema import Certificate, Edition
from reticent.kernel.adversaries import Adversary
from reticent.kernel.adversaries.witness import Witness
from reticent.kernel.errors import ArtifactError, ParameterError, ReticentError, UnsupportedError
from reticent.kernel.mechanisms import Mechanism
from reticent.kernel.messages import Message, said
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.registry import parameters_of
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
    attackers = [name for name in certificate.skipped if name not in map(question, Neighbouring)]
    skipped = {
        name: certificate.skipped[name] for name in attackers if _may_be_skipped(certificate, mechanism, ledger, name)
    }
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


def _may_be_skipped(certificate: Certificate, mechanism: Mechanism, ledger: Witness | None, name: str) -> bool:
    """Whether the reason that the document gives for leaving ``name`` out is one that can be true."""
    reason = certificate.skipped[name]
    if reason == PRIVATE:
        measured = any(parameter.measured for parameter in parameters_of(kind_of(name)))
        return certificate.edition is Edition.PUBLIC and measured
    kind = kind_of(name)
    return reason in (NOT_ASKED, said(kind.unmeasured or NOT_ASKED)) or reason in _refusals(
        kind, certificate, mechanism, ledger
    )


def _refusals(
    kind: type[Adversary], certificate: Certificate, mechanism: Mechanism, ledger: Witness | None
) -> set[Message]:
    """Why such an attacker cannot be answered, under its own relation and each of the document."""
    numbers = [p.name for p in parameters_of(kind) if p.measured and p.typeable]
    try:
        examples = [kind(), *(kind(**{name: 1.0}) for name in numbers)]
    except ParameterError:  # nothing can be asked of it without a number, as of the final model
        examples = [kind(**{parameters_of(kind)[0].name: 1.0})]
    found = set()
    for relation in sorted({kind.relation.value, *(record.neighbouring for record in certificate.assessments)}):
        for example in examples:
            try:
                assessed(example, mechanism, _relation(relation), ledger)
            except (UnsupportedError, ParameterError) as error:
                found.add(error.reason)
    return found

"""Anybody can check a certificate: its hash, and every number from the mechanism that it names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reticent.certificate.numbers import AssessmentRecord, Number, Questions, assessment_record
from reticent.certificate.schema import Certificate, CertifiedAssessment, content_hash
from reticent.errors import ArtifactError, ReticentError
from reticent.mechanism import DPSGD, Gaussian, Laplace, Ledger, Mechanism, Neighbouring, Sampler
from reticent.mechanism.run_ledger import RunLedger
from reticent.threat import (
    Adversary,
    Attribute,
    Membership,
    MembershipGame,
    Method,
    Mixed,
    Relaxed,
    WorstCase,
)

_TOLERANCE = 1e-6
_NUMBERS = tuple(name for name, field in AssessmentRecord.model_fields.items() if "Number" in str(field.annotation))
_KINDS: dict[str, type] = {"gaussian": Gaussian, "laplace": Laplace, "dpsgd": DPSGD}
_ADVERSARIES: dict[str, type] = {
    kind.name: kind for kind in (WorstCase, Relaxed, Membership, MembershipGame, Mixed, Attribute)
}


@dataclass(frozen=True, slots=True)
class Verification:
    """Outcome of a check.

    Attributes:
        problems: what does not agree, one line each; empty when everything does.
        recomputed: number of assessments computed again.
        not_recomputed: adversaries whose numbers come from data and cannot be computed from the document.
    """

    problems: tuple[str, ...]
    recomputed: int
    not_recomputed: tuple[str, ...]


def verify(certificate: Certificate) -> Verification:
    """Recompute the hash and all numbers; agreement within 1e-6 relative or absolute.

    Raises:
        ArtifactError: the document names a mechanism or adversary that does not exist.
    """
    problems = []
    if content_hash(certificate) != certificate.content_sha256:
        problems.append("content_sha256 does not match the document: it was changed after it was sealed")
    mechanism = mechanism_of(certificate.mechanism)
    complete = certificate.ledger is not None and "diagnostics" in certificate.ledger
    if complete and RunLedger.model_validate(certificate.ledger).mechanism() != mechanism:
        problems.append("mechanism is not what the ledger says was run")
    skipped = []
    for record in certificate.assessments:
        if record.do_not_publish:
            skipped.append(record.adversary)
        else:
            problems += _differences(record, mechanism)
    return Verification(tuple(problems), len(certificate.assessments) - len(skipped), tuple(skipped))


def mechanism_of(record: dict[str, Any]) -> Mechanism:
    """The mechanism that a record describes.

    Raises:
        ArtifactError: it describes none.
    """
    fields = dict(record)
    kind = fields.pop("kind", None)
    try:
        if kind == "ledger":
            parts = tuple(mechanism_of(part) for part in fields["parts"])
            return Ledger(tuple(p for p in parts if not isinstance(p, Ledger)))
        if "sampler" in fields:
            fields["sampler"] = Sampler(fields["sampler"])
        mechanism: Mechanism = _KINDS[kind](**fields)
    except (ReticentError, KeyError, TypeError, ValueError) as error:
        raise ArtifactError(f"mechanism: {error}") from None
    return mechanism


def _differences(record: CertifiedAssessment, mechanism: Mechanism) -> list[str]:
    again = _recompute(record, mechanism)
    return [
        f"{record.adversary} ({record.neighbouring}): {name} is {stated}, recomputed {found}"
        for name in _NUMBERS
        for stated, found in _pairs(getattr(record, name), getattr(again, name))
        if not _agree(stated, found)
    ]


def _recompute(record: CertifiedAssessment, mechanism: Mechanism) -> AssessmentRecord:
    def floats(numbers: dict[str, Number]) -> tuple[float, ...]:
        return tuple(float(key) for key in numbers)

    questions = Questions(
        floats(record.tpr_at_fpr),
        floats(record.epsilon_at_delta),
        floats(record.delta_at_epsilon),
        floats(record.success_at_prior),
    )
    try:
        adversary: Adversary = _ADVERSARIES[record.adversary](**record.parameters)
        assessment = adversary.assess(mechanism, Neighbouring(record.neighbouring), Method(record.method))
    except (ReticentError, KeyError, TypeError, ValueError) as error:
        raise ArtifactError(f"{record.adversary}: {error}") from None
    return assessment_record(assessment, questions)


def _pairs(stated: Any, found: Any) -> list[tuple[float | None, float | None]]:
    if isinstance(stated, dict):
        return [(stated[key].value, found[key].value) for key in stated]
    return [(stated.value, found.value)]


def _agree(stated: float | None, found: float | None) -> bool:
    if stated is None or found is None:
        return stated is found
    return abs(stated - found) <= _TOLERANCE * max(1e-3, abs(stated), abs(found))

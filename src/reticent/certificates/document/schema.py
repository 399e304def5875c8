"""The certificate: one closed, versioned record that bundles what was run and what follows from it.

The published JSON Schema lies in ``docs/schema``. Strict JSON only: no NaN, no Infinity; null is
infinity. ``content_sha256`` covers the canonical JSON of everything but itself and the signature.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)

from reticent.adversaries.report import AssessmentRecord, ConditionText, Record, Said
from reticent.certificates.document.declared_text import LONGEST, declarable
from reticent.certificates.document.policy import Policy
from reticent.facts.base import Silent, Word
from reticent.io.models import Sha256, Terse, validated
from reticent.io.strict import LARGEST_INTEGER, canonical, load, portable
from reticent.io.times import Date, moment
from reticent.kernel.errors import ArtifactError
from reticent.kernel.messages import Figure, Message
from reticent.kernel.proofs import Status
from reticent.kernel.text import Brief

CERTIFICATE_SCHEMA: Literal["reticent.certificate/4"] = "reticent.certificate/4"
_MOST_ASSESSMENTS = 32
_MOST_QUESTIONS = 16
_MOST_POINTS = 256
_DEEPEST = 32
_MOST_SIGNATURES = 16
_MOST_REQUIREMENTS = 4096
_MOST_CITED = 64
Text = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST), AfterValidator(declarable)]
Points = Annotated[list[float], Field(max_length=_MOST_POINTS)]
Asked = Annotated[list[float], Field(max_length=_MOST_QUESTIONS)]
Consent = Literal["names", "accuracy"]
CONSENTS = get_args(Consent)
"""What an issuer can consent to publish of records that are not public."""


def _read(ledger: Any) -> Any:
    """The ledger of a document; where it is not spelled as it is written, other readers would see other facts."""
    from reticent.records.ledger import ledger_of

    found = ledger_of(ledger, "ledger")
    if isinstance(ledger, dict) and canonical(_written(found)) != canonical(ledger):
        raise ArtifactError("ledger: is not spelled as a ledger is written")
    return found


def _written(ledger: RunLedger) -> Any:
    return portable(ledger.model_dump(mode="json", by_alias=True))


if TYPE_CHECKING:
    from reticent.records.ledger import RunLedger

    Ran = RunLedger
else:  # a document without a ledger loads nothing of ledgers
    Ran = Annotated[
        Any,
        BeforeValidator(_read),
        PlainSerializer(_written),
        WithJsonSchema({"additionalProperties": True, "type": "object"}),
    ]
    """The ledger of a run, which has a schema of its own."""


class Edition(StrEnum):
    """Which of the two documents of a run this is."""

    COMPLETE = "complete"
    PUBLIC = "public"
    """Without what depends on private data."""


OF_A_RUN = "DP-SGD run on {}"
NOT_NAMED = "records that are not named"
OF_A_LOOP = "a training loop that was watched"
OF_SEVERAL = "{} releases from the same records"
OF_PARAMETERS = "parameters that are declared"
OF_THE_DASHBOARD = "{}: a plan, no run"
SETTINGS, CALIBRATED = "settings of the dashboard", "the answer of a calibration"
_OURS = {
    OF_A_RUN.format(NOT_NAMED): Message("subject.run.not-named"),
    OF_A_LOOP: Message("subject.loop"),
    OF_PARAMETERS: Message("subject.parameters"),
    **{OF_SEVERAL.format(n): Message("subject.several", n=Figure(str(n))) for n in range(_MOST_CITED + 1)},
    **{OF_THE_DASHBOARD.format(one): Message("subject.plan") for one in (SETTINGS, CALIBRATED)},
}
"""Subjects that are written where the issuer gives none, as a page says them."""


class CitedRelease(Record):
    """One of several releases that are certified together, where its ledger was read.

    Attributes:
        ledger: digest of its ledger in the public form: that of the public certificate of this release alone.
        training_data: the salted commitment of that ledger to its records, where it has one.
        warnings: of its ledger, by name.
        silent: conditions on which its program kept silent; see ``facts.base.Fact.silent``.
    """

    ledger: Sha256
    training_data: Sha256 | None = None
    warnings: Annotated[tuple[Word, ...], Field(max_length=_MOST_CITED)] = ()
    silent: tuple[Silent, ...] = ()


OWN_WORDS = ("subject", "issuer", "purpose", "recipients", "controls", "means")
"""What an issuer declares in words of their own."""


class Declaration(Record, Terse):
    """What the issuer declares: nothing here follows from the run, so only a signature protects it.

    Attributes:
        subject: what is certified, in a few words.
        created: date, or time with offset.
        issuer: who answers for it.
        purpose: what the model is for.
        recipients: who gets the model.
        controls: what keeps others from it, and from using it otherwise.
        means: those reasonably likely to be used to identify somebody (recital 26 of the GDPR).
        expires: from when on the certificate must not be relied on.
        weights_sha256: SHA-256 of the bytes of the file of weights (``weights.safetensors`` of a run).
        run_signed_by: id of the key that signed the run when it ended, checked by the certifier.
        publishes: what the issuer consents to show of records that are not public: ``names`` of files and columns,
            ``accuracy`` on test records.
        releases: of several that are certified together, the ledger of each in order; None where one has none.
    """

    subject: Text
    created: Date
    issuer: Text | None = None
    purpose: Text | None = None
    recipients: Text | None = None
    controls: Text | None = None
    means: Text | None = None
    expires: Date | None = None
    weights_sha256: Sha256 | None = None
    run_signed_by: Sha256 | None = None
    publishes: tuple[Consent, ...] = ()
    releases: Annotated[tuple[CitedRelease | None, ...], Field(max_length=_MOST_CITED)] = ()

    left_out = ("recipients", "controls", "means", "releases")

    @property
    def silent(self) -> frozenset[str]:
        """Conditions on which the program of some release kept silent."""
        return frozenset(key for one in self.releases if one is not None for key in one.silent)

    @model_validator(mode="after")
    def _in_order(self) -> Declaration:
        if self.publishes != tuple(name for name in CONSENTS if name in self.publishes):
            raise ValueError(f"publishes must be some of {', '.join(CONSENTS)}, each once and in this order")
        if self.expires is not None and moment(self.expires) <= moment(self.created):
            raise ValueError("expires must be later than created")
        return self


class QuestionRecord(Record):
    """Where the curves are read, in the order in which the numbers are shown."""

    fprs: Asked
    deltas: Asked
    epsilons: Asked
    priors: Annotated[list[float], Field(min_length=1, max_length=_MOST_QUESTIONS)]
    secret_bits: Asked
    guesses: Asked
    baselines: Asked


class CurvePoints(Record):
    """Points of one trade-off curve, in order of increasing false positive rate."""

    fpr: Points
    fnr: Points
    tpr: Points


class CertifiedAssessment(AssessmentRecord):
    """An assessment with its curve and a sentence for people."""

    sentence: Said | None
    curve: CurvePoints
    do_not_publish: bool


class TheoremRecord(Record):
    """What a theorem key means."""

    says: str
    conditions: str
    holds: bool
    source: str


class WarningRecord(Record):
    """A named reason to read the numbers with care."""

    name: str
    text: Said


class RequirementRecord(Record):
    """One requirement of the policy that was given, and what became of it."""

    name: Said
    passed: bool
    detail: Said


class Signature(Record):
    """An Ed25519 signature (RFC 8032) over the document without its signatures, in a DSSE envelope.

    Attributes:
        algorithm: always ``Ed25519``.
        keyid: SHA-256 of the public key, as 64 hexadecimal digits.
        public_key: of the signer, 32 bytes as 64 hexadecimal digits. It names a key, it proves nobody's name.
        value: 64 bytes as 128 hexadecimal digits.
    """

    algorithm: Literal["Ed25519"] = "Ed25519"
    keyid: Sha256
    public_key: Sha256
    value: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{128}$")]


class Certificate(Brief, Record):
    """Everything that one certified run states.

    Attributes:
        declared: what the issuer says; it cannot be derived.
        headline_: the answer from the worst case: a sentence for each question, and what they rest on.
        assessments: by relation, the worst case first.
        skipped: attackers that are left out, each with the reason; and as ``worst-case (replace)`` a question that not
            even the worst case answers.
        do_not_publish: paths inside this document that depend on private data; empty in the public edition.
        policy: what the issuer chose as acceptable, if anything.
        requirements: what became of each requirement of the policy that the document alone can answer.
        pages: by language, SHA-256 of the page of this document but for who signed it; see ``page.paged``.
        content_sha256: SHA-256 of the canonical JSON of everything but this field and the signatures.
        signatures: embedded, one for each key.
    """

    schema_: Literal["reticent.certificate/4"] = Field(default=CERTIFICATE_SCHEMA, alias="schema")
    edition: Edition
    declared: Declaration
    reticent_version: str
    headline_: Said = Field(alias="headline")
    mechanism: dict[str, Any]
    questions: QuestionRecord
    assessments: Annotated[list[CertifiedAssessment], Field(min_length=1, max_length=_MOST_ASSESSMENTS)]
    skipped: dict[str, Said]
    warnings: list[WarningRecord]
    theorems: dict[str, TheoremRecord]
    conditions: dict[str, ConditionText]
    ledger: Ran | None = Field(title="Ledger")
    do_not_publish: list[str]
    policy: Policy | None = None
    requirements: Annotated[tuple[RequirementRecord, ...], Field(max_length=_MOST_REQUIREMENTS)] = ()
    pages: Annotated[dict[str, Sha256], Field(max_length=_MOST_SIGNATURES)] = Field(default_factory=dict)
    content_sha256: str
    signatures: Annotated[tuple[Signature, ...], Field(max_length=_MOST_SIGNATURES)] = ()

    @property
    def headline(self) -> str:
        """The answer in English."""
        return str(self.headline_)

    @property
    def silent(self) -> frozenset[str]:
        """Conditions that nobody vouches for although a program that was recorded could: no policy accepts them."""
        found = (one for record in self.assessments for one in record.conditions)
        assumed = frozenset(one.key for one in found if one.status is Status.ASSUMED)
        return assumed & (self.declared.silent | (frozenset() if self.ledger is None else self.ledger.unstated))

    @property
    def warned(self) -> tuple[str, ...]:
        """Names of all warnings: of its ledger, and of those of several releases."""
        cited = (name for one in self.declared.releases if one is not None for name in one.warnings)
        return (*cited, *(one.name for one in self.warnings))

    @property
    def subject_of_ours(self) -> Message | None:
        """What is certified in our words, where the issuer does not say it; None where the subject is the issuer's."""
        data = None if self.ledger is None else self.ledger.data
        if data is not None and data.name is not None and self.declared.subject == OF_A_RUN.format(data.name):
            return Message("subject.run", name=data.name)
        return _OURS.get(self.declared.subject)

    @property
    def subject_given(self) -> bool:
        """Whether the subject is what the issuer wrote, and not what stands there where nobody gives one."""
        return self.subject_of_ours is None

    def _lines(self) -> list[str]:
        warned = [f"warning: {warning.name}" for warning in self.warnings]
        of = ", declared to be of" if self.subject_given else " of"
        return [self.headline, *warned, f'{self.edition} certificate{of} "{self.declared.subject}"']

    def to_json(self) -> str:
        """Strict JSON text."""
        return self.model_dump_json(by_alias=True, indent=1) + "\n"

    @classmethod
    def draft(cls, **fields: Any) -> Certificate:
        """A certificate in its normal form, without its content hash."""
        return cls.parse(cls(content_sha256="", **fields).model_dump(mode="json", by_alias=True))

    def sealed(self) -> Certificate:
        """The same with its content hash, and without a signature."""
        return self.model_copy(update={"content_sha256": content_hash(self), "signatures": ()})

    @classmethod
    def parse(cls, document: Any, where: str = "certificate") -> Certificate:
        """From JSON data in one normal form: nothing that is shown depends on the order of keys, nor on 1 or 1.0.

        Raises:
            ArtifactError: it is not a certificate of this format.
        """
        return validated(cls, _normal(document), where)

    @classmethod
    def load(cls, path: Path) -> Certificate:
        """Read a certificate.

        Raises:
            ArtifactError: the file is missing, too large, not strict JSON, or not a certificate.
        """
        return cls.parse(load(path), str(path))


def content_hash(certificate: Certificate) -> str:
    """SHA-256 of the canonical JSON of all fields but the hash itself and the signatures."""
    fields = certificate.model_dump(mode="json", by_alias=True, exclude={"content_sha256", "signatures"})
    return hashlib.sha256(canonical(fields)).hexdigest()


def _normal(value: Any, depth: int = 0) -> Any:
    if depth > _DEEPEST:
        raise ArtifactError(f"the document nests deeper than {_DEEPEST} levels")
    if isinstance(value, dict):
        return {_normal(key): _normal(value[key], depth + 1) for key in sorted(value)}
    if isinstance(value, str) and not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
        raise ArtifactError("a text in the document is not Unicode")
    if isinstance(value, list):
        return [_normal(item, depth + 1) for item in value]
    if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        raise ArtifactError("a whole number beyond 2^53 in the document, which not every reader of JSON can hold")
    if isinstance(value, float) and value.is_integer() and abs(value) <= LARGEST_INTEGER:
        return int(value)
    return value

"""The certificate: one closed, versioned record that bundles what was run and what follows from it.

The published JSON Schema lies in ``docs/schema``. Strict JSON only: no NaN, no Infinity; null stands for
infinity. ``content_sha256`` covers the canonical JSON of everything else in the document.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from reticent._strict import loads
from reticent.certificate.numbers import AssessmentRecord, Record
from reticent.errors import ArtifactError
from reticent.mechanism.run_ledger import first_problem

_LARGEST_FILE = 64 * 2**20


class CurvePoints(Record):
    """Points of one trade-off curve, in order of increasing false positive rate."""

    fpr: list[float]
    fnr: list[float]
    tpr: list[float]


class CertifiedAssessment(AssessmentRecord):
    """An assessment with its curve and a sentence for people."""

    sentence: str
    curve: CurvePoints
    do_not_publish: bool


class TheoremRecord(Record):
    """What a theorem key stands for."""

    says: str
    conditions: str
    holds: bool
    source: str


class WarningRecord(Record):
    """A named reason to read the numbers with care."""

    name: str
    text: str


class Certificate(Record):
    """Everything that one certified run states.

    Attributes:
        do_not_publish: paths inside this document that depend on private data; the public document
            and the public rendering leave them out.
        content_sha256: SHA-256 of the canonical JSON of all other fields.
    """

    schema_: Literal["reticent.certificate/1"] = Field(default="reticent.certificate/1", alias="schema")
    subject: str
    created: str
    reticent_version: str
    mechanism: dict[str, Any]
    assessments: list[CertifiedAssessment]
    skipped: dict[str, str]
    warnings: list[WarningRecord]
    theorems: dict[str, TheoremRecord]
    ledger: dict[str, Any] | None
    do_not_publish: list[str]
    content_sha256: str

    def to_json(self) -> str:
        """Strict JSON text."""
        return self.model_dump_json(by_alias=True, indent=1) + "\n"

    @classmethod
    def sealed(cls, **fields: Any) -> Certificate:
        """A certificate with its content hash."""
        draft = cls(content_sha256="", **fields)
        return draft.model_copy(update={"content_sha256": content_hash(draft)})

    @classmethod
    def load(cls, path: Path) -> Certificate:
        """Read a certificate.

        Raises:
            ArtifactError: the file is missing, too large, not strict JSON, or not a certificate.
        """
        if not path.is_file():
            raise ArtifactError(f"{path} is not a file")
        if path.stat().st_size > _LARGEST_FILE:
            raise ArtifactError(f"{path} is larger than a certificate can be ({_LARGEST_FILE} bytes)")
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise ArtifactError(f"{path} is not UTF-8 text") from None
        try:
            return cls.model_validate(loads(text, str(path)))
        except ValidationError as error:
            raise ArtifactError(f"{path}: {first_problem(error)}") from None


def content_hash(certificate: Certificate) -> str:
    """SHA-256 of the canonical JSON (sorted keys, no spaces) of all fields but the hash itself."""
    fields = certificate.model_dump(mode="json", by_alias=True, exclude={"content_sha256"})
    canonical = json.dumps(fields, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()

"""Opening the commitments of a public certificate: the salt and the digests, for a person who is shown the data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from reticent.certificates.schema import Certificate, Edition
from reticent.errors import ArtifactError
from reticent.io.commitments import opens
from reticent.io.files import sha256_file
from reticent.io.models import Sha256, validated
from reticent.io.strict import dumps, load
from reticent.risk.report import Record

_LARGEST = 1 << 16
_SAYS = {
    "training-data": "the records as the model saw them",
    "table-file": "the file of the table",
    "table-schema": "the schema of the table",
}


class Opening(Record):
    """What opens commitments. Private: with it, a guess of the records can be confirmed.

    Attributes:
        salt: under which the commitments were made.
        training_data: SHA-256 over features, labels and split, as ``Dataset.content_hash``.
        table_file, table_schema: SHA-256 of the table and of its schema, where the records came from one.
    """

    schema_: Literal["reticent.opening/1"] = Field(default="reticent.opening/1", alias="schema")
    salt: Sha256
    training_data: Sha256
    table_file: Sha256 | None = None
    table_schema: Sha256 | None = None

    def to_json(self) -> str:
        """Strict JSON text."""
        return dumps(self.model_dump(mode="json", by_alias=True))

    def digests(self) -> dict[str, str]:
        """The digests by what they are of."""
        known = self.model_dump(exclude={"schema_", "salt"}, exclude_none=True)
        return {name.replace("_", "-"): digest for name, digest in known.items()}


@dataclass(frozen=True, slots=True)
class Opened:
    """What an opening shows.

    Attributes:
        problems: what does not open.
        compared: what does, as sentences.
    """

    problems: tuple[str, ...]
    compared: tuple[str, ...]


def opening_of(certificate: Certificate) -> Opening | None:
    """The opening that belongs to a complete certificate; None where nothing is committed to."""
    ledger = certificate.ledger
    if certificate.edition is Edition.PUBLIC or ledger is None or "salt" not in ledger.get("data", {}):
        return None
    data, table = ledger["data"], _table(ledger)
    return Opening(
        salt=data["salt"],
        training_data=data["content_hash"],
        table_file=table.get("file_sha256"),
        table_schema=table.get("schema_sha256"),
    )


def check_opening(certificate: Certificate, path: Path, data: Path | None) -> Opened:
    """Open every commitment of a public certificate.

    Args:
        data: the file of the table, to compare with the digest that was opened.

    Raises:
        ArtifactError: there is nothing to open, or a file cannot be read.
    """
    opening = validated(Opening, load(path, _LARGEST), str(path))
    found = _commitments(certificate)
    problems, compared = [], []
    digests = opening.digests()
    for name, commitment in found.items():
        if name not in digests or not opens(commitment, opening.salt, name, bytes.fromhex(digests[name])):
            problems.append(f"{path} does not open the commitment to {_SAYS[name]}")
        else:
            compared.append(f"{path} opens the commitment to {_SAYS[name]}: SHA-256 {digests[name]}.")
    if data is not None:
        if opening.table_file is None or "table-file" not in found:
            raise ArtifactError(f"{path} does not open a file: compare the digest of the records in Python")
        if not data.is_file():
            raise ArtifactError(f"{data} is not a file")
        if sha256_file(data) == opening.table_file:
            compared.append(f"{data} is the table that was trained on.")
        else:
            problems.append(f"{data} is another table")
    return Opened(tuple(problems), tuple(compared))


def _commitments(certificate: Certificate) -> dict[str, str]:
    ledger = certificate.ledger or {}
    data = ledger.get("data")
    if certificate.edition is Edition.COMPLETE or not isinstance(data, dict) or "commitment" not in data:
        raise ArtifactError(
            "the certificate has no commitment to open: --opening is for the public certificate of a run"
        )
    table = _table(ledger)
    known = {
        "training-data": data["commitment"],
        "table-file": table.get("file_commitment"),
        "table-schema": table.get("schema_commitment"),
    }
    return {name: commitment for name, commitment in known.items() if isinstance(commitment, str)}


def _table(ledger: dict[str, Any]) -> dict[str, Any]:
    asked = ledger.get("config", {}).get("data")
    table = asked.get("table") if isinstance(asked, dict) else None
    return table if isinstance(table, dict) else {}

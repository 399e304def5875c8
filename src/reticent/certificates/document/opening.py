"""Opening the commitments of a public certificate: the salt and the digests, for a person who is shown the data."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from reticent.adversaries.report import Record
from reticent.certificates.document.schema import Certificate
from reticent.facts.base import section
from reticent.io.commitments import opens
from reticent.io.files import sha256_file
from reticent.io.models import Sha256, validated
from reticent.io.strict import dumps, load
from reticent.kernel.errors import ArtifactError
from reticent.records.ledger import RunLedger
from reticent.records.parts import DataRecord, PublicData

_LARGEST = 1 << 16
_SAYS = {
    "training_data": "the records as the model saw them",
    "table_file": "the file of the table",
    "table_schema": "the schema of the table",
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

    def opens(self, name: str, commitment: str) -> bool:
        """Whether a commitment is to the digest that has this name here."""
        digest: str | None = getattr(self, name)
        return digest is not None and opens(commitment, self.salt, name.replace("_", "-"), bytes.fromhex(digest))


def opening_of(certificate: Certificate) -> Opening | None:
    """The opening that belongs to a complete certificate; None where nothing is committed to."""
    ledger = certificate.ledger
    if ledger is None or not isinstance(ledger.data, DataRecord):
        return None
    return Opening(salt=ledger.data.salt, training_data=ledger.data.content_hash, **_of_the_table(ledger, "sha256"))


def check_opening(certificate: Certificate, path: Path, data: Path | None) -> tuple[list[str], list[str]]:
    """Open every commitment of a public certificate: what does not open, and what does, as sentences.

    Args:
        data: the file of the table, to compare with the digest that was opened.

    Raises:
        ArtifactError: there is nothing to open, or a file cannot be read.
    """
    opening = validated(Opening, load(path, _LARGEST), str(path))
    ledger = certificate.ledger
    if ledger is None or not isinstance(ledger.data, PublicData):
        raise ArtifactError(
            "the certificate has no commitment to open: --opening is for the public certificate of a run"
        )
    found = {"training_data": ledger.data.commitment, **_of_the_table(ledger, "commitment")}
    problems, compared = [], []
    for name, commitment in found.items():
        if opening.opens(name, commitment):
            digest = getattr(opening, name)
            compared.append(f"{path} opens the commitment to {_SAYS[name]}: SHA-256 {digest}.")
        else:
            problems.append(f"{path} does not open the commitment to {_SAYS[name]}")
    if data is not None:
        if opening.table_file is None or "table_file" not in found:
            raise ArtifactError(f"{path} does not open a file: compare the digest of the records in Python")
        if not data.is_file():
            raise ArtifactError(f"{data} is not a file")
        if sha256_file(data) == opening.table_file:
            compared.append(f"{data} is the table that was trained on.")
        else:
            problems.append(f"{data} is another table")
    return problems, compared


def _of_the_table(ledger: RunLedger, what: str) -> dict[str, str]:
    """What a ledger states of a table and of its schema."""
    table = section(section(ledger.asked, "data"), "table")
    found = {f"table_{part}": table.get(f"{part}_{what}") for part in ("file", "schema")}
    return {name: text for name, text in found.items() if isinstance(text, str)}

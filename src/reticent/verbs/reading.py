"""``read``: a document that a verb printed, by the name of its schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel

from reticent.certificates.document.schema import Certificate
from reticent.io import strict
from reticent.io.models import validated
from reticent.kernel.errors import ArtifactError
from reticent.kernel.lazy import kinds
from reticent.kernel.text import one_of, printable
from reticent.verbs.request import path_said


def documents() -> dict[str, type[BaseModel]]:
    """Every kind of document that ``--json`` prints and that can be read again, by the name of its schema."""
    return {kind.model_fields["schema_"].default: kind for kind in kinds("reticent.verbs")}


def read(what: Path | str) -> Any:
    """The document that ``--json`` or ``to_json`` gave, as the object that has its fields.

    Args:
        what: JSON text, which begins with a brace; or the path of a file that holds it.

    Raises:
        ArtifactError: it is none of these documents, or a key or a value is none that it can have.
    """
    text = isinstance(what, str) and what.lstrip().startswith("{")
    where = "the document" if text else str(what)
    document = strict.loads(str(what), where) if text else strict.load(path_said("what", what))
    schema, known = str(document.get("schema")) if isinstance(document, dict) else "", documents()
    if schema not in known:
        raise ArtifactError(f"{where}: its schema {printable(repr(schema), 60)} is not {one_of(schema, known)}")
    kind = known[schema]
    if kind is Certificate:
        return Certificate.parse(document, where)
    return validated(kind, _unspoken(document), where)


def _unspoken(data: Any) -> Any:
    """Without the English beside each message, which follows from its key and values."""
    if isinstance(data, list):
        return [_unspoken(one) for one in data]
    if not isinstance(data, dict):
        return data
    return {name: _unspoken(one) for name, one in data.items() if not (name == "en" and "key" in data)}

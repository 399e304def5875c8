"""What a forger does with a certificate: takes it apart, changes it, and seals it again."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from reticent.adversaries import Attribute
from reticent.certificates.build import certify
from reticent.certificates.document.schema import Certificate, Declaration, content_hash
from reticent.certificates.verify import verify
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.errors import ReticentError
from tests.certificates.conftest import make_ledger

DECLARED = Declaration(subject="a release", created="2026-11-22")
Document = dict[str, Any]


def document_of(certificate: Certificate) -> Document:
    return json.loads(certificate.to_json())


def resealed(document: Document) -> Certificate:
    draft = Certificate.parse(document)
    return draft.model_copy(update={"content_sha256": content_hash(draft)})


def refused(document: Document) -> bool:
    """Whether a document, sealed again by the forger, is refused in one way or the other."""
    try:
        return not verify(resealed(document)).accepted
    except ReticentError:
        return True


def set_at(path: str, value: Any) -> Callable[[Document], None]:
    *parts, last = path.split(".")

    def change(d: Any) -> None:
        for part in parts:
            d = d[int(part)] if isinstance(d, list) else d[part]
        d[int(last) if isinstance(d, list) else last] = value

    return change


def small_certificate() -> Certificate:
    """Few leaves, every kind of them."""
    return certify(
        make_ledger(sample_rate=1.0).mechanism(),
        DECLARED,
        adversaries=(WorstCase(), Attribute(0.5)),
        ledger=make_ledger(sample_rate=1.0),
    )

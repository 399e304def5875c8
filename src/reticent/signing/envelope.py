"""DSSE envelopes (Dead Simple Signing Envelope, version 1): exact bytes, their type, and signatures over both.

What is signed is ``PAE(type, bytes)``, from which type and bytes can be read back, so no two documents share a
signature, and no document passes for one of another type.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from reticent.io import strict
from reticent.io.models import Closed, Sha256, validated
from reticent.kernel.errors import ArtifactError
from reticent.signing.keys import key_id, key_text, verifies

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

CERTIFICATE = "application/vnd.reticent.certificate+json"
RUN = "application/vnd.reticent.run+json"
LEDGER = "application/vnd.reticent.ledger+json"
MOST_SIGNATURES = 16
LARGEST = strict.LARGEST_FILE * 3 // 2
"""Bytes of the file of an envelope: base 64 takes a third more than what it holds."""
_Base64 = Annotated[str, Field(pattern=r"^[A-Za-z0-9+/]*={0,2}$")]


class Signed(Closed):
    """One signature of an envelope.

    Attributes:
        keyid: SHA-256 of the 32 bytes of the public key, in hexadecimal.
        sig: 64 bytes, in base 64.
    """

    keyid: Sha256
    sig: Annotated[_Base64, Field(min_length=88, max_length=88)]


class _Json(Closed):
    payload: _Base64
    payloadType: Annotated[str, Field(max_length=100)]  # noqa: N815 (as DSSE spells it)
    signatures: Annotated[tuple[Signed, ...], Field(min_length=1, max_length=MOST_SIGNATURES)]


@dataclass(frozen=True, slots=True)
class Envelope:
    """Bytes with their type and signatures.

    Attributes:
        payload: exactly what is signed.
        kind: the type of the bytes, such as ``CERTIFICATE``.
        signatures: one or more.
    """

    payload: bytes
    kind: str
    signatures: tuple[Signed, ...]

    def to_json(self) -> str:
        """As DSSE spells it, strict JSON text."""
        coded = base64.b64encode(self.payload).decode()
        return strict.dumps(_Json(payload=coded, payloadType=self.kind, signatures=self.signatures).model_dump())

    def signers(self, keys: Iterable[str]) -> list[str]:
        """Which of ``keys`` (64 hexadecimal digits each) signed these bytes as this type, each once."""
        message, found = pae(self.kind, self.payload), []
        for key in dict.fromkeys(keys):
            own = [one for one in self.signatures if one.keyid == key_id(key)]
            if any(verifies(key, _decoded(one.sig), message) for one in own):
                found.append(key)
        return found


def pae(kind: str, payload: bytes) -> bytes:
    """The pre-authentication encoding of DSSE: lengths before each part, so that it can be read in one way only."""
    coded = kind.encode()
    return b"DSSEv1 %d %b %d %b" % (len(coded), coded, len(payload), payload)


def seal(payload: bytes, kind: str, keys: Sequence[Ed25519PrivateKey]) -> Envelope:
    """Sign bytes with each key."""
    message = pae(kind, payload)
    signed = [
        Signed(keyid=key_id(key_text(key.public_key())), sig=base64.b64encode(key.sign(message)).decode())
        for key in keys
    ]
    return Envelope(payload, kind, tuple(signed))


def parse(document: object, kind: str, where: str) -> Envelope:
    """The envelope that JSON data is.

    Args:
        kind: the type that its bytes must have.
        where: what errors call it.

    Raises:
        ArtifactError: it is none, or of another type.
    """
    found = validated(_Json, document, f"{where}: no DSSE envelope")
    if found.payloadType != kind:
        raise ArtifactError(f"{where}: the envelope holds another type of document, not {kind}")
    return Envelope(_decoded(found.payload), found.payloadType, found.signatures)


def load(path: Path, kind: str) -> Envelope:
    """The envelope in a file; ``kind`` as for ``parse``.

    Raises:
        ArtifactError: the file cannot be read, or holds none of this type.
    """
    return parse(strict.load(path, LARGEST), kind, str(path))


def _decoded(text: str) -> bytes:
    """Base 64 in its one spelling."""
    try:
        found = base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ArtifactError("the envelope is not base 64") from None
    if base64.b64encode(found).decode() != text:
        raise ArtifactError("the base 64 of the envelope is not canonical")
    return found

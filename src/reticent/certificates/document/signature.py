"""Signatures of certificates: Ed25519 (RFC 8032) in DSSE envelopes, over the canonical JSON (RFC 8785) of the document.

What is signed is the whole document, declarations and content hash included, without its signatures. A signature
shows that the holder of a key vouches for exactly this document; whose key it is must be known from elsewhere.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from reticent.certificates.document.schema import Certificate, Signature
from reticent.io.strict import canonical
from reticent.kernel.errors import ArtifactError
from reticent.signing import envelope
from reticent.signing.envelope import Envelope, Signed
from reticent.signing.keys import key_id, key_text, verifies


def payload(certificate: Certificate) -> bytes:
    """The exact bytes that are signed."""
    return canonical(certificate.model_dump(mode="json", by_alias=True, exclude={"signatures"}))


def signed(certificate: Certificate, *keys: Ed25519PrivateKey) -> Certificate:
    """The certificate with a signature of each key, instead of earlier ones of the same keys."""
    message = envelope.pae(envelope.CERTIFICATE, payload(certificate))
    made = {}
    for key in keys:
        public = key_text(key.public_key())
        made[public] = Signature(keyid=key_id(public), public_key=public, value=key.sign(message).hex())
    kept = [one for one in certificate.signatures if one.public_key not in made]
    return certificate.model_copy(update={"signatures": (*kept, *made.values())})


def envelope_of(certificate: Certificate) -> Envelope:
    """The signatures of a certificate in a detached envelope, which holds the signed bytes as well."""
    coded = [
        Signed(keyid=one.keyid, sig=base64.b64encode(bytes.fromhex(one.value)).decode())
        for one in certificate.signatures
    ]
    return Envelope(payload(certificate), envelope.CERTIFICATE, tuple(coded))


def load_envelope(path: Path) -> Envelope:
    """A detached envelope, as ``certify --sign`` writes it.

    Raises:
        ArtifactError: the file is missing or holds no envelope of a certificate.
    """
    return envelope.load(path, envelope.CERTIFICATE)


def false_signatures(certificate: Certificate) -> list[str]:
    """Why embedded signatures are not those of the keys that they name; empty where all are."""
    message = envelope.pae(envelope.CERTIFICATE, payload(certificate)) if certificate.signatures else b""
    found = []
    for one in certificate.signatures:
        if one.keyid != key_id(one.public_key) or not verifies(one.public_key, bytes.fromhex(one.value), message):
            who = f"the signature that names the key {one.keyid[:16]}..."
            found.append(f"{who} is not of that key for this document: one of both was changed")
    if len({one.public_key for one in certificate.signatures}) < len(certificate.signatures):
        found.append("one key signs twice")
    return found


def signers(certificate: Certificate, keys: Iterable[Ed25519PublicKey], detached: Envelope | None = None) -> list[str]:
    """Which of ``keys`` signed this document, each once, as 64 hexadecimal digits.

    Args:
        detached: where the signatures are; None takes the embedded ones.

    Raises:
        ArtifactError: the envelope holds the bytes of another document.
    """
    if detached is None:
        detached = envelope_of(certificate)
    elif detached.payload != payload(certificate):
        raise ArtifactError("the envelope holds another document")
    return detached.signers(key_text(key) for key in keys)


def check_threshold(keys: Sequence[object], threshold: int | None) -> int:
    """How many of the keys must have signed: all, unless fewer are enough.

    Raises:
        ArtifactError: more are asked for than keys were given, or none.
    """
    if threshold is None:
        return len(keys)
    if not 1 <= threshold <= len(keys):
        raise ArtifactError(f"--threshold must be from 1 to the {len(keys)} keys given, got {threshold}")
    return threshold

"""Ed25519 signatures (RFC 8032) over the canonical JSON of a certificate (RFC 8785), through ``cryptography``.

What is signed is the whole document, content hash included, without its ``signature`` field. A signature
shows that the holder of a key vouches for the document as it stands; whose key it is must be known from elsewhere.
"""

from __future__ import annotations

import os
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from pydantic import ValidationError

from reticent._strict import loads, write_atomic
from reticent.certificate.schema import Certificate, Signature, canonical, read_text
from reticent.errors import ArtifactError
from reticent.mechanism.run_ledger import first_problem

_LARGEST_KEY = 1 << 14


def write_key_pair(private: Path, public: Path) -> None:
    """A new key pair as PEM files: the private key unencrypted, readable by its owner only (0600).

    Raises:
        ArtifactError: one of the files exists or cannot be written; nothing is overwritten.
    """
    for path in (private, public):
        if path.is_symlink() or path.exists():
            raise ArtifactError(f"{path} already exists; a key is never overwritten")
    key = Ed25519PrivateKey.generate()
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    shown = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    try:
        private.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(private, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(secret)
        write_atomic(public, shown)
    except OSError as error:
        raise ArtifactError(f"cannot write {private} and {public}: {error.strerror}") from None


def load_private_key(path: Path) -> Ed25519PrivateKey:
    """The private key in a PEM file that nobody but its owner may read.

    Raises:
        ArtifactError: the file is missing, open to others, or holds no unencrypted Ed25519 key.
    """
    text = read_text(path, _LARGEST_KEY)
    if path.stat().st_mode & 0o077:
        raise ArtifactError(f"{path} can be read by others: chmod 600 it, and make a new key if anybody may have")
    try:
        key = serialization.load_pem_private_key(text.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ArtifactError(f"{path} holds no unencrypted private key in PEM form") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise ArtifactError(f"{path} holds no Ed25519 key")
    return key


def load_public_key(path: Path) -> Ed25519PublicKey:
    """The public key in a PEM file.

    Raises:
        ArtifactError: the file is missing or holds no Ed25519 public key.
    """
    try:
        key = serialization.load_pem_public_key(read_text(path, _LARGEST_KEY).encode())
    except (ValueError, UnsupportedAlgorithm):
        raise ArtifactError(f"{path} holds no public key in PEM form") from None
    if not isinstance(key, Ed25519PublicKey):
        raise ArtifactError(f"{path} holds no Ed25519 key")
    return key


def signed(certificate: Certificate, key: Ed25519PrivateKey) -> Certificate:
    """The certificate with its signature embedded, in place of any earlier one."""
    return certificate.model_copy(update={"signature": sign(certificate, key)})


def sign(certificate: Certificate, key: Ed25519PrivateKey) -> Signature:
    """A detached signature of the certificate."""
    return Signature(public_key=key_text(key.public_key()), value=key.sign(_message(certificate)).hex())


def key_text(key: Ed25519PublicKey) -> str:
    """The 32 bytes of a public key as 64 hexadecimal digits."""
    return key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw).hex()


def is_signed_by(certificate: Certificate, signature: Signature, key: Ed25519PublicKey) -> bool:
    """Whether ``signature`` is that of ``key`` for this document; the key named in the signature must be the same."""
    if signature.public_key != key_text(key):
        return False
    try:
        key.verify(bytes.fromhex(signature.value), _message(certificate))
    except InvalidSignature:
        return False
    return True


def load_signature(path: Path) -> Signature:
    """A detached signature, as ``certify --sign`` writes it.

    Raises:
        ArtifactError: the file is missing or holds no signature.
    """
    try:
        return Signature.model_validate(loads(read_text(path, _LARGEST_KEY), str(path)))
    except ValidationError as error:
        raise ArtifactError(f"{path}: {first_problem(error)}") from None


def _message(certificate: Certificate) -> bytes:
    return canonical(certificate.model_dump(mode="json", by_alias=True, exclude={"signature"}))

"""Ed25519 keys (RFC 8032) in PEM files, through ``cryptography``."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from reticent.io.files import open_plain, read_bytes, refuse_no_folder, write_atomic
from reticent.kernel.errors import ArtifactError, ParameterError

PASSPHRASE = "RETICENT_PASSPHRASE"  # noqa: S105 (the name of a variable)
"""The variable of the environment that holds the passphrase of a private key."""
_LARGEST = 1 << 14
_PUBLIC = b"-----BEGIN PUBLIC KEY-----"
_ENCRYPTED = b"-----BEGIN ENCRYPTED PRIVATE KEY-----"


def write_key_pair(private: Path, public: Path, passphrase: str | None = None) -> None:
    """A new key pair as PEM files; the private key is readable by its owner only (0600).

    Args:
        private: the file for the private key (PKCS 8).
        public: the file for the public key.
        passphrase: that encrypts the private key; None leaves it in the clear.

    Raises:
        ArtifactError: one of the files exists or cannot be written, or both are one; nothing is overwritten, and
            nothing is left.
    """
    if private.resolve() == public.resolve():
        raise ArtifactError(f"{private} cannot hold both keys: give the public key another file")
    for path in (private, public):
        refuse_no_folder(path)
        if path.is_symlink() or path.exists():
            raise ArtifactError(f"{path} already exists; a key is never overwritten")
    key = Ed25519PrivateKey.generate()
    how: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if passphrase is not None:
        how = serialization.BestAvailableEncryption(passphrase.encode())
    secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how)
    shown = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    try:
        descriptor = os.open(private, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(secret)
            write_atomic(public, shown)
        except OSError:
            private.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ArtifactError(f"cannot write {private} and {public}: {error.strerror}") from None


def is_encrypted(path: Path) -> bool:
    """Whether a private key needs a passphrase.

    Raises:
        ArtifactError: the file cannot be read.
    """
    return read_bytes(path, _LARGEST).lstrip().startswith(_ENCRYPTED)


def load_private_key(path: Path, passphrase: str | None = None) -> Ed25519PrivateKey:
    """The private key in a PEM file that nobody but its owner may read.

    Args:
        passphrase: of an encrypted key; None takes that of the environment (``RETICENT_PASSPHRASE``).

    Raises:
        ArtifactError: the file is missing, open to others, or holds no Ed25519 key that this passphrase opens.
    """
    text = read_bytes(path, _LARGEST)
    if text.lstrip().startswith(_PUBLIC):
        raise ArtifactError(f"{path} holds a public key: give the private one")
    with open_plain(path) as descriptor:
        if os.fstat(descriptor).st_mode & 0o077:
            raise ArtifactError(f"{path} can be read by others: chmod 600 it, and make a new key if someone may have")
    encrypted = text.lstrip().startswith(_ENCRYPTED)
    said = (os.environ.get(PASSPHRASE) if passphrase is None else passphrase) if encrypted else None
    if encrypted and not said:
        raise ArtifactError(f"{path} is encrypted: give its passphrase in {PASSPHRASE}")
    try:
        key = serialization.load_pem_private_key(text, password=None if said is None else said.encode())
    except (ValueError, TypeError, UnsupportedAlgorithm):
        wrong = "is not opened by this passphrase" if encrypted else "holds no private key in PEM form"
        raise ArtifactError(f"{path} {wrong}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise ArtifactError(f"{path} holds no Ed25519 key")
    return key


def private_key(sign: Any) -> Ed25519PrivateKey | None:
    """The key that a caller gave: itself, or in the file that a path names; None where none was given.

    Raises:
        ArtifactError: the file holds no private key that can be read.
        ParameterError: it is neither.
    """
    if isinstance(sign, (str, os.PathLike)):
        return load_private_key(Path(sign))
    if sign is not None and not isinstance(sign, Ed25519PrivateKey):
        raise ParameterError("sign", sign, "an Ed25519 private key, or the path of its file")
    return sign


def load_public_key(path: Path) -> Ed25519PublicKey:
    """The public key in a PEM file.

    Raises:
        ArtifactError: the file is missing or holds no Ed25519 public key.
    """
    try:
        key = serialization.load_pem_public_key(read_bytes(path, _LARGEST))
    except (ValueError, UnsupportedAlgorithm):
        raise ArtifactError(f"{path} holds no public key in PEM form") from None
    if not isinstance(key, Ed25519PublicKey):
        raise ArtifactError(f"{path} holds no Ed25519 key")
    return key


def key_text(key: Ed25519PublicKey) -> str:
    """The 32 bytes of a public key as 64 hexadecimal digits."""
    return key.public_bytes_raw().hex()


def key_id(key: Ed25519PublicKey | str) -> str:
    """SHA-256 of the 32 bytes of a public key: its name.

    Args:
        key: itself, or its 64 hexadecimal digits.
    """
    raw = bytes.fromhex(key) if isinstance(key, str) else key.public_bytes_raw()
    return hashlib.sha256(raw).hexdigest()


def verifies(public_key: str, signature: bytes, message: bytes) -> bool:
    """Whether ``signature`` is that of this key.

    Args:
        public_key: 64 hexadecimal digits.
        signature: 64 bytes.
    """
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key)).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True

"""Salted commitments: they bind their publisher to some bytes, and show nothing else about these.

A plain digest of private data lets anybody who guesses the data confirm the guess. Here the digest is keyed with a
salt of 32 random bytes that stays with the issuer. A person who is shown salt and data can check the commitment.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

_SALT_BYTES = 32


def new_salt() -> str:
    """32 random bytes of the operating system, in hexadecimal."""
    return secrets.token_hex(_SALT_BYTES)


def commit(salt: str, name: str, content: bytes) -> str:
    """HMAC-SHA256 of ``content`` under ``salt``, bound to what it is a commitment of; in hexadecimal.

    Args:
        salt: as from ``new_salt``.
        name: what is committed to, such as ``training-data``: commitments of different things never coincide.
        content: the bytes, or their SHA-256 where they are large.
    """
    message = len(name.encode()).to_bytes(4, "big") + name.encode() + content
    return hmac.new(bytes.fromhex(salt), message, hashlib.sha256).hexdigest()


def opens(commitment: str, salt: str, name: str, content: bytes) -> bool:
    """Whether ``commitment`` was made of ``content`` under ``salt``."""
    return hmac.compare_digest(commitment, commit(salt, name, content))

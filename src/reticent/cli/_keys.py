"""Keys and passphrases as the command line takes them."""

from __future__ import annotations

import os
import sys
from getpass import getpass
from pathlib import Path
from typing import TYPE_CHECKING

from reticent.kernel.errors import ArtifactError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def private_key(path: Path) -> Ed25519PrivateKey:
    """The private key in a file; the passphrase of an encrypted one is asked for where somebody can answer."""
    from reticent.signing.keys import PASSPHRASE, is_encrypted, load_private_key

    asked = path.is_file() and is_encrypted(path) and not os.environ.get(PASSPHRASE) and sys.stdin.isatty()
    return load_private_key(path, getpass(f"passphrase of {path}: ") if asked else None)


def new_passphrase() -> str | None:
    """The passphrase for a new key, typed twice; None where nobody can be asked, or the environment says it.

    Raises:
        ArtifactError: the two differ.
    """
    from reticent.signing.keys import PASSPHRASE

    if os.environ.get(PASSPHRASE) or not sys.stdin.isatty():
        return None
    said = getpass("new passphrase: ")
    if said != getpass("again: "):
        raise ArtifactError("the two passphrases differ")
    return said

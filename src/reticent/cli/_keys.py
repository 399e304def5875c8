"""Keys, passphrases and consent as the command line takes them, and who signed what is certified."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from getpass import getpass
from pathlib import Path
from typing import TYPE_CHECKING

from reticent.certificates.schema import CONSENTS
from reticent.errors import ArtifactError, ParameterError
from reticent.text import one_of

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


def consents_of(typed: Iterable[str]) -> tuple[str, ...]:
    """What may be published of records of one's own, in order.

    Raises:
        ParameterError: something else was typed.
    """
    known = set(typed)
    for name in known - set(CONSENTS):
        raise ParameterError("publish", name, one_of(name, CONSENTS))
    return tuple(name for name in CONSENTS if name in known)


def signer_of(what: Path, keys: Sequence[Ed25519PrivateKey], run_key: Path | None) -> str | None:
    """The id of the key that signed a run or a watched ledger when it ended; None without a signature.

    Every file of a run is compared first. Nothing is compared where nothing is to be signed.

    Args:
        what: the folder of a run, or the file of a ledger.
        keys: that sign the certificate: one of them must have signed.
        run_key: the public key that must have signed, instead.

    Raises:
        ArtifactError: a file is not as it was recorded, or the signature is of none of the keys.
    """
    from reticent.io.outputs import signature_of
    from reticent.signing.envelope import LEDGER, RUN
    from reticent.signing.keys import load_public_key
    from reticent.signing.provenance import SIGNATURE, signer

    if not keys and run_key is None:
        return None
    if what.is_dir():
        from reticent.training.rundir import MANIFEST, check_files

        check_files(what)
        signed, envelope, kind = what / MANIFEST, what / SIGNATURE, RUN
    else:
        signed, envelope, kind = what, signature_of(what), LEDGER
    trusted = [key.public_key() for key in keys] if run_key is None else [load_public_key(run_key)]
    return signer(signed, envelope, kind, trusted, required=run_key is not None)

"""Who vouched for what ran, at the moment when it ended: an envelope over its record, written next to it.

Of a run this is its manifest, which names every file with its SHA-256; of a watched loop its ledger. A folder or a file
that is edited later has another record than the one that was signed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from reticent.io.files import read_bytes
from reticent.kernel.errors import ArtifactError
from reticent.signing import envelope
from reticent.signing.keys import key_id, key_text

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

SIGNATURE = "provenance.dsse.json"
"""In the folder of a run: the envelope over its manifest."""


def sealed(record: bytes, kind: str, key: Ed25519PrivateKey) -> bytes:
    """The envelope over a record, as the bytes of its file.

    Args:
        record: the exact bytes of the manifest or of the ledger.
        kind: ``envelope.RUN`` or ``envelope.LEDGER``.
    """
    return envelope.seal(record, kind, [key]).to_json().encode()


def signer(
    record: Path, place: Path, kind: str, keys: Sequence[Ed25519PublicKey], *, required: bool = False
) -> str | None:
    """The id of the key that signed a record; None where nobody did.

    Args:
        place: where its signature would lie.
        kind: as for ``sealed``.
        keys: that are trusted.
        required: a record that nobody signed is refused.

    Raises:
        ArtifactError: the record was edited after it was signed, nobody signed it, or none of the keys signed it.
    """
    if not place.exists() and not place.is_symlink():
        if required:
            raise ArtifactError(f"{record}: nobody signed it when the run ended: {place.name} is missing")
        return None
    found = envelope.load(place, kind)
    if found.payload != read_bytes(record, envelope.LARGEST):
        raise ArtifactError(f"{record} was changed after it was signed: {place.name} has another")
    signed = found.signers(key_text(key) for key in keys)
    if not signed:
        raise ArtifactError(f"{place} is not signed by any of the keys given: give the key of the run with --run-key")
    return key_id(signed[0])

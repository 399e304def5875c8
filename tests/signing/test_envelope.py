"""Envelopes: nothing but the bytes that were signed passes, as nothing but the type that was signed."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from reticent.kernel.errors import ArtifactError
from reticent.signing import envelope
from reticent.signing.keys import key_text
from tests.certificates.edits import Edits, forged

KEY = Ed25519PrivateKey.from_private_bytes(b"k" * 32)
NAME = key_text(KEY.public_key())
SEALED = envelope.seal(b"hello world", envelope.RUN, [KEY])


def test_the_encoding_that_is_signed_is_that_of_dsse() -> None:
    # The example of the protocol: https://github.com/secure-systems-lab/dsse, protocol.md.
    assert envelope.pae("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )
    assert envelope.pae("a", b"b 1 c") != envelope.pae("a 5 b", b"c")


def flipped(text: str) -> str:
    raw = bytearray(base64.b64decode(text))
    raw[len(raw) // 2] ^= 1
    return base64.b64encode(bytes(raw)).decode()


EDITS: dict[str, Edits] = {
    "payload": {"payload": flipped},
    "another type": {"payloadType": envelope.CERTIFICATE},
    "no type of ours": {"payloadType": "application/json"},
    "no signature": {"signatures": []},
    "signature": {"signatures.0.sig": flipped},
    "key id": {"signatures.0.keyid": "ab" * 32},
    "second spelling": {"payload": lambda text: text + "===="},
    "other last bits": {"payload": lambda text: text.replace("GQ=", "GR=")},
    "no padding": {"payload": lambda text: text.rstrip("=")},
    "line break": {"payload": lambda text: text[:8] + "\n" + text[8:]},
    "one more entry": {"approved": True},
    "signatures without end": {"signatures": lambda listed: listed * 100},
}


@pytest.mark.parametrize("name", EDITS)
@pytest.mark.parametrize("kind", [envelope.RUN, envelope.CERTIFICATE])
def test_an_envelope_that_was_touched_is_refused(tmp_path: Path, name: str, kind: str) -> None:
    """Also by who expects the type that a forger wrote instead of the one that was signed."""
    (tmp_path / "e").write_text(SEALED.to_json())
    assert envelope.load(tmp_path / "e", envelope.RUN).signers([NAME, NAME]) == [NAME]
    document: dict[str, Any] = forged(json.loads(SEALED.to_json()), {"payloadType": kind} | EDITS[name])
    (tmp_path / "e").write_text(json.dumps(document))
    try:
        assert envelope.load(tmp_path / "e", kind).signers([NAME]) == []
    except ArtifactError as error:
        complaint = str(error)
        assert "\n" not in complaint

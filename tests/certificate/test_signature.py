"""Signatures: what is declared cannot be changed unnoticed, and keys stay private."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from reticent.certificate.build import certify
from reticent.certificate.schema import Certificate, Declaration, canonical, content_hash
from reticent.certificate.signature import (
    is_signed_by,
    key_text,
    load_private_key,
    load_public_key,
    load_signature,
    sign,
    signed,
    write_key_pair,
)
from reticent.certificate.store import write_certificate
from reticent.errors import ArtifactError
from reticent.mechanism import Gaussian
from reticent.threat import WorstCase


@pytest.fixture(scope="module")
def keys(tmp_path_factory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("keys")
    write_key_pair(folder / "issuer", folder / "issuer.pub")
    return folder / "issuer", folder / "issuer.pub"


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    declared = Declaration(
        subject="a run", created="2026-11-22", issuer="A clinic", purpose="triage", expires="2030-01-01"
    )
    return certify(Gaussian(2.0), declared, adversaries=(WorstCase(),))


def test_only_the_owner_can_read_a_private_key(keys: tuple[Path, Path]) -> None:
    private, public = keys
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert b"PRIVATE" not in public.read_bytes()
    before = private.read_bytes()
    with pytest.raises(ArtifactError, match="never overwritten"):
        write_key_pair(private, public)
    assert private.read_bytes() == before


def test_a_key_open_to_others_is_refused(keys: tuple[Path, Path], tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.write_bytes(keys[0].read_bytes())
    copy.chmod(0o644)
    with pytest.raises(ArtifactError, match="chmod 600"):
        load_private_key(copy)


@pytest.mark.parametrize("content", [b"", b"nothing", b"\xff\xfe", b"-----BEGIN PRIVATE KEY-----\nAAAA\n"])
def test_a_file_that_holds_no_key_is_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "key"
    path.write_bytes(content)
    path.chmod(0o600)
    for load in (load_private_key, load_public_key):
        with pytest.raises(ArtifactError) as caught:
            load(path)
        assert "\n" not in str(caught.value)


def test_the_right_key_accepts_and_every_other_refuses(
    certificate: Certificate, keys: tuple[Path, Path], tmp_path: Path
) -> None:
    key, public = load_private_key(keys[0]), load_public_key(keys[1])
    with_signature = Certificate.parse(json.loads(signed(certificate, key).to_json()))
    assert with_signature.signature is not None
    assert with_signature.signature.public_key == key_text(public)
    assert is_signed_by(with_signature, with_signature.signature, public)
    assert is_signed_by(certificate, sign(certificate, key), public), "detached: of the document without it"
    write_key_pair(tmp_path / "other", tmp_path / "other.pub")
    other = load_public_key(tmp_path / "other.pub")
    assert not is_signed_by(with_signature, with_signature.signature, other)
    impostor = with_signature.signature.model_copy(update={"public_key": key_text(other)})
    assert not is_signed_by(with_signature, impostor, other)


@pytest.mark.parametrize("leaf", ["subject", "created", "issuer", "purpose", "expires", "weights_sha256"])
def test_a_changed_declaration_breaks_the_signature(
    certificate: Certificate, keys: tuple[Path, Path], leaf: str
) -> None:
    honest = signed(certificate, load_private_key(keys[0]))
    new = {"created": "2026-11-23", "expires": "2031-01-01", "weights_sha256": "ef" * 32}.get(leaf, "other")
    changed = honest.model_copy(update={"declared": honest.declared.model_copy(update={leaf: new})})
    resealed = changed.model_copy(update={"content_sha256": content_hash(changed)})
    assert honest.signature is not None
    assert not is_signed_by(resealed, honest.signature, load_public_key(keys[1]))


def test_canonical_json_is_that_of_rfc_8785() -> None:
    # Section 3.2.3 of the RFC: its sample input and output.
    sample = {
        "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000f\nA'\u0042\u0022\u005c\\\"/",
        "literals": [None, True, False],
    }
    expected = (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )
    assert canonical(sample).decode() == expected
    assert canonical({"seed": 2**62 + 1}) == b'{"seed":"4611686018427387905"}'


def test_both_documents_are_signed_and_a_signature_is_never_lost(
    certificate: Certificate, keys: tuple[Path, Path], tmp_path: Path
) -> None:
    key, public = load_private_key(keys[0]), load_public_key(keys[1])
    files = write_certificate(certificate, tmp_path / "out", key=key)
    for path in (files.complete, files.public):
        document = Certificate.load(path)
        assert document.signature is not None
        assert is_signed_by(document, document.signature, public)
    shown = Certificate.load(files.public)
    assert is_signed_by(shown.model_copy(update={"signature": None}), load_signature(files.signature), public)
    before = files.complete.read_bytes()
    with pytest.raises(ArtifactError, match="--sign"):
        write_certificate(certificate, tmp_path / "out")
    assert files.complete.read_bytes() == before

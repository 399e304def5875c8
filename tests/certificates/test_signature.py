"""Keys, envelopes and signatures: who signed is who vouches, and nothing but the bytes that were signed passes."""

from __future__ import annotations

import base64
import copy
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

import reticent as rt
from reticent.certificates.build import certify
from reticent.certificates.document.schema import Certificate, Declaration, content_hash
from reticent.certificates.document.signature import (
    envelope_of,
    false_signatures,
    load_envelope,
    payload,
    signed,
    signers,
)
from reticent.certificates.page.page import render_html
from reticent.certificates.store import write_certificate
from reticent.certificates.verify import verify
from reticent.io.strict import canonical
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.errors import ArtifactError, ParameterError
from reticent.kernel.mechanisms import Gaussian
from reticent.signing import curve25519, envelope
from reticent.signing.keys import key_id, key_text, load_private_key, load_public_key, verifies, write_key_pair

P = 2**255 - 19


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


def of(certificate: Certificate, public: Path) -> list[str]:
    return signers(certificate, [load_public_key(public)])


def test_only_the_owner_can_read_a_private_key(keys: tuple[Path, Path]) -> None:
    private, public = keys
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert b"PRIVATE" not in public.read_bytes()
    before = private.read_bytes()
    with pytest.raises(ArtifactError, match="never overwritten"):
        write_key_pair(private, public)
    assert private.read_bytes() == before


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601])
def test_a_key_open_to_others_is_refused(keys: tuple[Path, Path], tmp_path: Path, mode: int) -> None:
    copied = tmp_path / "copy"
    copied.write_bytes(keys[0].read_bytes())
    copied.chmod(mode)
    with pytest.raises(ArtifactError, match="chmod 600"):
        load_private_key(copied)


@pytest.mark.parametrize("content", [b"", b"nothing", b"\xff\xfe", b"-----BEGIN PRIVATE KEY-----\nAAAA\n"])
def test_a_file_that_holds_no_key_is_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "key"
    path.write_bytes(content)
    path.chmod(0o600)
    for load in (load_private_key, load_public_key):
        with pytest.raises(ArtifactError) as caught:
            load(path)
        assert "\n" not in str(caught.value)


def test_an_encrypted_key_needs_its_passphrase(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_key_pair(tmp_path / "key", tmp_path / "key.pub", "correct horse")
    assert b"ENCRYPTED" in (tmp_path / "key").read_bytes()
    monkeypatch.delenv("RETICENT_PASSPHRASE", raising=False)
    with pytest.raises(ArtifactError, match="RETICENT_PASSPHRASE"):
        load_private_key(tmp_path / "key")
    with pytest.raises(ArtifactError, match="not opened"):
        load_private_key(tmp_path / "key", "battery staple")
    monkeypatch.setenv("RETICENT_PASSPHRASE", "correct horse")
    found = load_private_key(tmp_path / "key")
    assert key_text(found.public_key()) == key_text(load_public_key(tmp_path / "key.pub"))


def test_the_right_key_accepts_and_every_other_refuses(
    certificate: Certificate, keys: tuple[Path, Path], tmp_path: Path
) -> None:
    key, public = load_private_key(keys[0]), load_public_key(keys[1])
    honest = Certificate.parse(json.loads(signed(certificate, key).to_json()))
    (signature,) = honest.signatures
    assert signature.keyid == key_id(public)
    assert signers(honest, [public]) == [key_text(public)]
    assert not false_signatures(honest)
    write_key_pair(tmp_path / "other", tmp_path / "other.pub")
    assert of(honest, tmp_path / "other.pub") == []
    other = load_public_key(tmp_path / "other.pub")
    for update in ({"public_key": key_text(other)}, {"keyid": key_id(other)}):
        impostor = honest.model_copy(update={"signatures": (signature.model_copy(update=update),)})
        assert of(impostor, tmp_path / "other.pub") == []
        assert false_signatures(impostor)


@pytest.mark.parametrize("leaf", ["subject", "created", "issuer", "purpose", "expires", "weights_sha256"])
def test_a_changed_declaration_breaks_the_signature(
    certificate: Certificate, keys: tuple[Path, Path], leaf: str
) -> None:
    honest = signed(certificate, load_private_key(keys[0]))
    new = {"created": "2026-11-23", "expires": "2031-01-01", "weights_sha256": "ef" * 32}.get(leaf, "other")
    changed = honest.model_copy(update={"declared": honest.declared.model_copy(update={leaf: new})})
    resealed = changed.model_copy(update={"content_sha256": content_hash(changed)})
    assert not of(resealed, keys[1])
    unsealed = changed.model_copy(update={"content_sha256": honest.content_sha256})
    assert not of(unsealed, keys[1]), "the declaration itself is signed, not only its hash"


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


def test_a_number_and_its_digits_have_no_signature_in_common(certificate: Certificate) -> None:
    with pytest.raises(ArtifactError, match="canonical"):
        canonical({"seed": 2**53 + 1})
    document = json.loads(certificate.to_json())
    document["mechanism"]["releases"] = 2**53 + 1
    with pytest.raises(ArtifactError, match=r"2\^53"):
        Certificate.parse(document)


def test_the_encoding_that_is_signed_is_that_of_dsse() -> None:
    # The example of the protocol: https://github.com/secure-systems-lab/dsse, protocol.md.
    assert envelope.pae("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )
    assert envelope.pae("a", b"b 1 c") != envelope.pae("a 5 b", b"c")


def test_a_signature_of_another_type_of_document_says_nothing(certificate: Certificate) -> None:
    key = Ed25519PrivateKey.generate()
    run = envelope.seal(payload(certificate), envelope.RUN, [key])
    assert signers(certificate, [key.public_key()], run) == [key_text(key.public_key())], "it is of these bytes"
    with pytest.raises(ArtifactError, match="another type"):
        envelope.parse(json.loads(run.to_json()), envelope.CERTIFICATE, "x")
    relabelled = {**json.loads(run.to_json()), "payloadType": envelope.CERTIFICATE}
    again = envelope.parse(relabelled, envelope.CERTIFICATE, "x")
    assert signers(certificate, [key.public_key()], again) == []


def _flipped(text: str) -> str:
    raw = bytearray(base64.b64decode(text))
    raw[len(raw) // 2] ^= 1
    return base64.b64encode(bytes(raw)).decode()


ENVELOPES: dict[str, Callable[[dict[str, Any]], object]] = {
    "payload": lambda d: d.update(payload=_flipped(d["payload"])),
    "type": lambda d: d.update(payloadType="application/json"),
    "no signature": lambda d: d.update(signatures=[]),
    "signature": lambda d: d["signatures"][0].update(sig=_flipped(d["signatures"][0]["sig"])),
    "key id": lambda d: d["signatures"][0].update(keyid="ab" * 32),
    "second spelling": lambda d: d.update(payload=d["payload"] + "===="),
    "line break": lambda d: d.update(payload=d["payload"][:8] + "\n" + d["payload"][8:]),
    "one more key": lambda d: d.update(approved=True),
    "signatures without end": lambda d: d.update(signatures=d["signatures"] * 100),
}


@pytest.mark.parametrize("name", ENVELOPES)
def test_an_envelope_that_was_touched_is_refused(
    certificate: Certificate, keys: tuple[Path, Path], tmp_path: Path, name: str
) -> None:
    honest = json.loads(envelope_of(signed(certificate, load_private_key(keys[0]))).to_json())
    public = load_public_key(keys[1])
    (tmp_path / "e").write_text(json.dumps(honest))
    assert signers(certificate, [public], load_envelope(tmp_path / "e"))
    changed = copy.deepcopy(honest)
    ENVELOPES[name](changed)
    (tmp_path / "e").write_text(json.dumps(changed))
    assert not _signs(certificate, public, tmp_path / "e")


def _signs(certificate: Certificate, public: Ed25519PublicKey, path: Path) -> bool:
    try:
        return bool(signers(certificate, [public], load_envelope(path)))
    except ArtifactError as error:
        return "\n" in str(error)


def _encoded(y: int, sign: int = 0) -> bytes:
    return (y | sign << 255).to_bytes(32, "little")


_ORDER_8 = (
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"  # of the list of small orders in libsodium
)
BAD_POINTS = {
    "identity": _encoded(1),
    "order 2": _encoded(P - 1),
    "order 4": _encoded(0),
    "order 8": bytes.fromhex(_ORDER_8),
    "identity, not canonical": _encoded(P + 1),
    "zero, not canonical": _encoded(P),
    "sign of zero": _encoded(1, 1),
    "no point": _encoded(2),
}


@pytest.mark.parametrize("name", BAD_POINTS)
def test_keys_of_small_order_and_second_spellings_are_refused(
    certificate: Certificate, tmp_path: Path, name: str
) -> None:
    raw = BAD_POINTS[name]
    assert curve25519.why_not(raw) is not None
    forged = b"\x01" + 63 * b"\x00"  # R is the identity, s is 0: right for every message where the key has order 1
    assert not verifies(raw.hex(), forged, b"any message")
    key = Ed25519PublicKey.from_public_bytes(raw)
    pem = key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "key.pub").write_bytes(pem)
    with pytest.raises(ArtifactError, match=r"key\.pub"):
        load_public_key(tmp_path / "key.pub")


def test_honest_keys_are_points_of_the_large_order() -> None:
    # RFC 8032, section 7.1, and ten fresh ones.
    known = ["d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"]
    fresh = [key_text(Ed25519PrivateKey.generate().public_key()) for _ in range(10)]
    for text in known + fresh:
        assert curve25519.why_not(bytes.fromhex(text)) is None
    # The sum of the known one and the point of order 8.
    outside = bytes.fromhex("9158312a9a8d6e3b34c891d6d61444f8b8211c5117ebad15bdb0bd68b07e0245")
    assert "group" in str(curve25519.why_not(outside))


def test_several_keys_must_sign_or_as_many_as_are_enough(certificate: Certificate, tmp_path: Path) -> None:
    names = ("a", "b", "c")
    for name in names:
        write_key_pair(tmp_path / name, tmp_path / f"{name}.pub")
    public = [tmp_path / f"{name}.pub" for name in names]
    two = signed(certificate, *(load_private_key(tmp_path / name) for name in names[:2]))
    assert rt.verify(two, key=public[:2]).accepted
    assert not rt.verify(two, key=public).accepted
    assert rt.verify(two, key=public, threshold=2).accepted
    twice = tmp_path / "again.pub"
    twice.write_bytes(public[0].read_bytes())
    one = signed(certificate, load_private_key(tmp_path / "a"))
    assert not rt.verify(one, key=[public[0], twice, public[1]], threshold=2).accepted, "one key counts once"
    repeated = one.model_copy(update={"signatures": one.signatures * 2})
    assert not rt.verify(repeated, key=public[:2], threshold=2).accepted
    assert not verify(repeated).accepted
    for threshold in (0, 4):
        with pytest.raises((ArtifactError, ParameterError), match="threshold"):
            rt.verify(two, key=public, threshold=threshold)


def test_no_page_names_a_key_that_did_not_sign(certificate: Certificate, keys: tuple[Path, Path]) -> None:
    honest = signed(certificate, load_private_key(keys[0]))
    assert honest.signatures[0].keyid in render_html(honest).split("<template")[0]
    garbage = honest.signatures[0].model_copy(update={"value": "ab" * 64})
    forged = honest.model_copy(update={"signatures": (garbage,)})
    assert garbage.keyid not in render_html(forged).split("<template")[0]
    assert "not signed" in render_html(forged)
    assert not rt.verify(forged).accepted
    assert not rt.verify(forged, key=keys[1]).accepted


def test_both_documents_are_signed_and_a_signature_is_never_lost(
    certificate: Certificate, keys: tuple[Path, Path], tmp_path: Path
) -> None:
    key, public = load_private_key(keys[0]), load_public_key(keys[1])
    files = write_certificate(certificate, tmp_path / "out", key=key)
    for path in (files.complete, files.public):
        assert signers(Certificate.load(path), [public])
    shown = Certificate.load(files.public)
    unsigned = shown.model_copy(update={"signatures": ()})
    assert signers(unsigned, [public], load_envelope(files.signature))
    before = files.complete.read_bytes()
    with pytest.raises(ArtifactError, match="--sign"):
        write_certificate(certificate, tmp_path / "out")
    assert files.complete.read_bytes() == before


def test_what_is_private_is_for_its_owner(certificate: Certificate, tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        files = write_certificate(certificate, tmp_path / "out", include_private=True)
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (files.complete, files.page, files.public)}
    assert modes == {"certificate.json": 0o600, "certificate.html": 0o600, "certificate.public.json": 0o644}


def test_base_64_has_one_spelling() -> None:
    key = Ed25519PrivateKey.generate()
    honest = json.loads(envelope.seal(b"hello", envelope.RUN, [key]).to_json())
    assert honest["payload"] == "aGVsbG8="
    for other in ("aGVsbG9=", "aGVsbG8", "aGVsbG8=="):
        with pytest.raises(ArtifactError, match=r"base 64|padding|envelope"):
            envelope.parse({**honest, "payload": other}, envelope.RUN, "x")


def test_an_envelope_of_another_document_says_nothing(certificate: Certificate) -> None:
    key = Ed25519PrivateKey.generate()
    other = certify(Gaussian(3.0), certificate.declared, adversaries=(WorstCase(),))
    with pytest.raises(ArtifactError, match="another document"):
        signers(certificate, [key.public_key()], envelope_of(signed(other, key)))


def test_no_point_has_a_second_spelling() -> None:
    points = [y for y in range(19) if "one encoding" not in str(curve25519.why_not(_encoded(y)))]
    assert len(points) > 5
    for y in points:
        assert "one encoding" in str(curve25519.why_not(_encoded(P + y)))

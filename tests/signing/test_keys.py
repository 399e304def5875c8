"""Keys in files: for their owner only, never overwritten, and none that accepts what nobody signed."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from reticent.kernel.errors import ArtifactError
from reticent.signing import curve25519
from reticent.signing.keys import key_text, load_private_key, load_public_key, verifies, write_key_pair

P = 2**255 - 19


def test_only_the_owner_can_read_a_private_key(tmp_path: Path) -> None:
    private, public = tmp_path / "key", tmp_path / "key.pub"
    write_key_pair(private, public)
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert b"PRIVATE" not in public.read_bytes()
    before = private.read_bytes()
    with pytest.raises(ArtifactError, match="never overwritten"):
        write_key_pair(private, public)
    assert private.read_bytes() == before
    with pytest.raises(ArtifactError, match="holds a public key"):
        load_private_key(public)
    for mode in (0o640, 0o604, 0o620, 0o601):
        private.chmod(mode)
        with pytest.raises(ArtifactError, match="chmod 600"):
            load_private_key(private)


@pytest.mark.parametrize("content", [b"", b"nothing", b"\xff\xfe", b"-----BEGIN PRIVATE KEY-----\nAAAA\n"])
def test_a_file_that_holds_no_key_is_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "key").write_bytes(content)
    (tmp_path / "key").chmod(0o600)
    for load in (load_private_key, load_public_key):
        with pytest.raises(ArtifactError) as caught:
            load(tmp_path / "key")
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


def encoded(y: int, sign: int = 0) -> bytes:
    return (y | sign << 255).to_bytes(32, "little")


BAD_POINTS = {
    "identity": encoded(1),
    "order 2": encoded(P - 1),
    "order 4": encoded(0),
    # of the list of small orders in libsodium
    "order 8": bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"),
    "identity, not canonical": encoded(P + 1),
    "zero, not canonical": encoded(P),
    "sign of zero": encoded(1, 1),
    "no point": encoded(2),
}


@pytest.mark.parametrize("name", BAD_POINTS)
def test_keys_of_small_order_and_second_spellings_are_refused(tmp_path: Path, name: str) -> None:
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
    known = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
    fresh = [os.urandom(32) for _ in range(10)]
    for raw in (known, *(Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw() for seed in fresh)):
        assert curve25519.why_not(raw) is None
    # The sum of the known one and the point of order 8.
    outside = bytes.fromhex("9158312a9a8d6e3b34c891d6d61444f8b8211c5117ebad15bdb0bd68b07e0245")
    assert "group" in str(curve25519.why_not(outside))


def test_no_point_has_a_second_spelling() -> None:
    points = [y for y in range(19) if "one encoding" not in str(curve25519.why_not(encoded(y)))]
    assert len(points) > 5
    for y in points:
        assert "one encoding" in str(curve25519.why_not(encoded(P + y)))

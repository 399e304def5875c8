"""Keys in files: for their owner only, and never overwritten."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from reticent.kernel.errors import ArtifactError
from reticent.signing.keys import key_text, load_private_key, load_public_key, write_key_pair


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

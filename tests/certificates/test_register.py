"""The register: a file that only grows, whose lines follow from each other, with a budget for all releases together."""

from __future__ import annotations

import base64
import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import reticent as rt
from reticent.certificates.register import Opened, enter, open_register, read_register
from reticent.errors import ArtifactError, ParameterError

NOW = "2026-11-23T08:00:00Z"
KEY, OTHER = (Ed25519PrivateKey.from_private_bytes(bytes([n]) * 32) for n in (1, 2))
OPENED = Opened(data="clinic", budget="advantage=0.4", neighbouring="add-remove")


def certificate(noise: float):
    return rt.certify(
        rt.Gaussian(noise), subject=f"noise {noise}", created="2026-01-01", adversary="worst-case"
    ).certificate


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "register"
    open_register(path, OPENED, NOW, KEY)
    for noise in (2.0, 3.0):
        enter(path, certificate(noise), NOW, KEY)
    return path


def test_all_releases_together(path) -> None:
    register = read_register(path, [KEY.public_key()])
    both = rt.Ledger((rt.Gaussian(2.0), rt.Gaussian(3.0)))
    assert register.spent() == pytest.approx(rt.advantage(both), rel=1e-12, abs=0)
    assert register.left(register.spent()) == "advantage 0.2362 of 0.4: 0.1638 is left"
    assert register.holds(certificate(3.0))
    assert not register.holds(certificate(4.0))


def test_the_budget_stops_a_release_that_is_not_out_yet(path) -> None:
    size = path.stat().st_size
    with pytest.raises(ParameterError, match="within the budget"):
        enter(path, certificate(1.0), NOW, KEY)
    with pytest.raises(ArtifactError, match="entered already"):
        enter(path, certificate(2.0), NOW, KEY)
    assert path.stat().st_size == size
    over = enter(path, certificate(1.0), NOW, KEY, anyway=True)
    assert "too much" in over.left(over.spent())
    assert read_register(path, [KEY.public_key()]).head == over.head


def test_a_run_is_entered_once(path) -> None:
    """Another certificate of it has another content hash, and would be paid for again."""
    first, second = (
        one.model_copy(update={"ledger": {"digest": "ab" * 32}}) for one in (certificate(20.0), certificate(21.0))
    )
    enter(path, first, NOW, KEY)
    with pytest.raises(ArtifactError, match="line 4: a certificate of the same run is entered already"):
        enter(path, second, NOW, KEY)


def edited(line: bytes, before: bytes, after: bytes) -> bytes:
    sealed = json.loads(line)
    payload = base64.b64decode(sealed["payload"]).replace(before, after)
    return json.dumps({**sealed, "payload": base64.b64encode(payload).decode()}).encode() + b"\n"


def test_lines_that_were_tampered_with(path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    changed = edited(lines[1], b"noise 2.0", b"noise 9.0")
    last = edited(lines[2], b"noise 3.0", b"noise 9.0")  # nothing follows that would name its hash
    assert last != lines[2] != changed != lines[1]
    for wrong in (
        lines[:1] + lines[2:],
        [lines[0], lines[2], lines[1]],
        [lines[0], changed, lines[2]],
        [lines[0], lines[1], last],
        lines[1:],
        [*lines, lines[2]],
        [*lines, b"{}\n"],
        [],
    ):
        path.write_bytes(b"".join(wrong))
        with pytest.raises(ArtifactError):
            read_register(path, [KEY.public_key()])


def test_only_keys_that_are_trusted(path) -> None:
    with pytest.raises(ArtifactError, match="trusted"):
        read_register(path, [OTHER.public_key()])
    with pytest.raises(ArtifactError, match="trusted"):
        enter(path, certificate(5.0), NOW, OTHER)
    enter(path, certificate(5.0), NOW, OTHER, [KEY.public_key()])
    with pytest.raises(ArtifactError, match="trusted"):
        read_register(path, [KEY.public_key()])
    assert len(read_register(path, [KEY.public_key(), OTHER.public_key()]).entries) == 3


def test_opened_once(path, tmp_path) -> None:
    with pytest.raises(ArtifactError, match="opened once"):
        open_register(path, OPENED, NOW, KEY)
    with pytest.raises(ParameterError, match="target"):
        open_register(tmp_path / "new", OPENED.model_copy(update={"budget": "three"}), NOW, KEY)


def test_releases_certified_together(tmp_path) -> None:
    found = rt.certify([rt.Gaussian(2.0), rt.Gaussian(3.0)], created="2026-01-01", adversary="worst-case")
    assert found.certificate.declared.subject == "2 releases from the same records"
    assert found.certificate.mechanism["kind"] == "ledger"
    assert len(found.alone) == 2
    assert found.alone[0].startswith("alone, release 1: advantage at most 0.1975")
    assert found.verify().accepted
    with pytest.raises(ParameterError, match="two releases"):
        rt.certify([rt.Gaussian(2.0)])

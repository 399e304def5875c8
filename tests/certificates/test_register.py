"""The register: a file that only grows, whose lines follow from each other, with a budget for all releases together."""

from __future__ import annotations

import base64
import errno
import fcntl
import json
import os
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import reticent as rt
from reticent.certificates.build import certify_run, public
from reticent.certificates.document.schema import Certificate, Declaration
from reticent.certificates.register import Opened, enter, open_register, read_register
from reticent.facts.start_weights import start_at
from reticent.facts.steps import Source
from reticent.io import files
from reticent.kernel.errors import ArtifactError, ParameterError
from tests.certificates.conftest import make_ledger
from tests.certificates.ledgers import poisson
from tests.certificates.making import of, of_ledger

NOW = "2026-11-23T08:00:00Z"
KEY, OTHER = (Ed25519PrivateKey.from_private_bytes(bytes([n]) * 32) for n in (1, 2))
CONSENTS = {"a run": (), "the run": ("names",)}
OPENED = Opened(data="clinic", budget="advantage=0.4", neighbouring="add-remove")


TRUSTED = [KEY.public_key()]


@cache
def certificate(noise: float) -> Certificate:
    said = Declaration(subject=f"noise {noise}", created="2026-01-01")
    return of(rt.Gaussian(noise), declared=said)


@pytest.fixture(scope="module")
def two_releases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("registers") / "register"
    open_register(path, OPENED, NOW, KEY)
    for noise in (2.0, 3.0):
        enter(path, certificate(noise), NOW, KEY)
    return path


@pytest.fixture
def path(two_releases: Path, tmp_path: Path) -> Path:
    """A register with two releases, which the test may change."""
    return shutil.copy(two_releases, tmp_path / "register")


def refused(path: Path, complaint: str, noise: float, **more: Any) -> None:
    """A release that is not entered leaves the file as it was."""
    before = path.read_bytes()
    with pytest.raises((ArtifactError, ParameterError), match=complaint):
        enter(path, certificate(noise), NOW, more.pop("key", KEY), **more)
    assert path.read_bytes() == before


def test_all_releases_together(path: Path) -> None:
    register = read_register(path, TRUSTED)
    both = rt.Ledger((rt.Gaussian(2.0), rt.Gaussian(3.0)))
    assert register.spent() == pytest.approx(rt.advantage(both), rel=1e-12, abs=0)
    assert register.left(register.spent()) == "advantage 0.2362 of 0.4: 0.1638 is left"
    assert register.holds(certificate(3.0))
    assert not register.holds(certificate(4.0))


def test_what_nobody_stated_of_a_release_is_said(tmp_path: Path) -> None:
    """The sum is no kinder to silence than a gate: the page's stop sign, and each loop that states no plan or start."""
    start = start_at("ab" * 32, "random", Source.SEEN)[0].model_dump(mode="json")
    stated = {"records_per_user": 1, "facts": {"planned-steps": {"steps": 12, "stop_at": None}}, "start": start}
    for number, facts in enumerate(({}, {"records_per_user": 1}, stated)):
        open_register(tmp_path / str(number), OPENED, NOW, KEY)
        entered = enter(tmp_path / str(number), of_ledger(poisson(**facts)), NOW, KEY, anyway=True)
        said = " ".join(entered.reservations())
        assert ("Stop: can one person" in said) is (not facts)
        assert ("planned-steps and start-weights of release 1" in said) is (facts is not stated)
        assert read_register(tmp_path / str(number), TRUSTED).entries == entered.entries


def test_the_budget_stops_a_release_that_is_not_out_yet(path: Path) -> None:
    refused(path, "within the budget", 1.0)
    refused(path, "entered already", 2.0)
    over = enter(path, certificate(1.0), NOW, KEY, anyway=True)
    assert "too much" in over.left(over.spent())
    assert read_register(path, TRUSTED).head == over.head


@pytest.fixture(scope="module")
def run() -> list[Certificate]:
    """Certificates of one run: two of what its issuer consents to, and the public edition of each."""
    said = [Declaration(subject=name, created="2026-11-23", publishes=given) for name, given in CONSENTS.items()]
    both = [certify_run(make_ledger(), declared=one) for one in said]
    return [*both, *map(public, both)]


@pytest.mark.parametrize("first", [0, 3])
def test_a_run_is_entered_once(path: Path, run: list[Certificate], first: int) -> None:
    """Another certificate or edition of it has another content hash, and would be paid for again."""
    enter(path, run[first], NOW, KEY, anyway=True)
    register = read_register(path, TRUSTED)
    for number, one in enumerate(run):
        assert register.holds(one) == (number % 2 == first % 2)
        again = "this certificate" if number % 2 == first % 2 else "line 4: a certificate of the same run"
        with pytest.raises(ArtifactError, match=f"{again} is entered already"):
            enter(path, one, NOW, KEY, anyway=True)


def edited(line: bytes, before: bytes, after: bytes) -> bytes:
    sealed = json.loads(line)
    payload = base64.b64decode(sealed["payload"]).replace(before, after)
    return json.dumps({**sealed, "payload": base64.b64encode(payload).decode()}).encode() + b"\n"


def test_lines_that_were_tampered_with(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    opened, first, second = lines
    changed = edited(first, b"noise 2.0", b"noise 9.0")
    last = edited(second, b"noise 3.0", b"noise 9.0")  # nothing follows that would name its hash
    assert last != second != changed != first
    for wrong in (
        [opened, second],
        [opened, second, first],
        [opened, changed, second],
        [opened, first, last],
        [first, second],
        [*lines, second],
        [*lines, b"{}\n"],
        [opened, first[:40], second],
        [opened, first[:40] + b"\n", second],
        [opened[:40]],
        [],
    ):
        path.write_bytes(b"".join(wrong))
        with pytest.raises(ArtifactError):
            read_register(path, TRUSTED)


@pytest.mark.parametrize("kept", [1, 40, 400])
def test_a_torn_line_counts_for_nothing_and_gives_way(path: Path, kept: int) -> None:
    """As a kill or a full disk leaves it: it ended ``add``, ``show`` and ``gate`` until somebody mended it."""
    whole = path.read_bytes()
    before = whole[: whole[:-1].rfind(b"\n") + 1]
    path.write_bytes(whole[: len(before) + kept])
    register = read_register(path, TRUSTED)
    assert (register.torn, len(register.entries)) == (True, 1)
    assert not register.holds(certificate(3.0))
    again = enter(path, certificate(3.0), NOW, KEY)
    assert read_register(path, TRUSTED) == again
    assert path.read_bytes().startswith(before)
    path.write_bytes(path.read_bytes() + b"\0" * 100)  # as a power cut leaves it
    assert read_register(path, TRUSTED).torn


def test_a_last_line_without_its_end_is_a_line(path: Path) -> None:
    """An editor that takes the end away must not take away the release."""
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    register = read_register(path, TRUSTED)
    assert (register.torn, len(register.entries)) == (False, 2)
    enter(path, certificate(9.0), NOW, KEY)
    assert len(read_register(path, TRUSTED).entries) == 3


def test_a_full_disk_leaves_what_was_there(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``open`` left an empty file, which nothing could open again, and ``add`` half a line."""
    strike = iter([OSError(errno.ENOSPC, "No space left on device")] * 2)

    def full(descriptor: int) -> None:
        raise next(strike)

    monkeypatch.setattr(os, "fsync", full)
    refused(path, "No space left", 9.0)
    with pytest.raises(ArtifactError, match="No space left"):
        open_register(tmp_path / "new", OPENED, NOW, KEY)
    assert list(tmp_path.iterdir()) == [path]


def test_who_holds_the_register_for_long_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever may read the file can lock it; ``add`` hung without a word."""
    monkeypatch.setattr(files.time, "sleep", lambda _: None)
    with path.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        refused(path, "another process holds it", 9.0)
    enter(path, certificate(9.0), NOW, KEY)


def test_an_old_copy_does_not_reach_the_head(path: Path) -> None:
    old, register, cut = path.read_bytes(), read_register(path, TRUSTED), "lines were cut off, or it is an old copy"
    new = enter(path, certificate(9.0), NOW, KEY)
    assert [new.reaches(head) for head in (register.head, new.head, "0" * 64)] == [True, True, False]
    path.write_bytes(old)
    assert not read_register(path, TRUSTED).reaches(new.head)
    with pytest.raises(ArtifactError, match=cut):
        read_register(path, TRUSTED, new.head)
    refused(path, cut, 8.0, head=new.head)
    assert enter(path, certificate(8.0), NOW, KEY, head=register.head).reaches(register.head)


def test_only_keys_that_are_trusted(path: Path) -> None:
    with pytest.raises(ArtifactError, match="trusted"):
        read_register(path, [OTHER.public_key()])
    refused(path, "trusted", 5.0, key=OTHER)
    enter(path, certificate(5.0), NOW, OTHER, TRUSTED)
    with pytest.raises(ArtifactError, match="trusted"):
        read_register(path, TRUSTED)
    assert len(read_register(path, [*TRUSTED, OTHER.public_key()]).entries) == 3


def test_opened_once(path: Path, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="opened once"):
        open_register(path, OPENED, NOW, KEY)
    with pytest.raises(ParameterError, match="target"):
        open_register(tmp_path / "new", OPENED.model_copy(update={"budget": "three"}), NOW, KEY)


def test_releases_certified_together(tmp_path: Path) -> None:
    found = rt.certify([rt.Gaussian(2.0), rt.Gaussian(3.0)], created="2026-01-01", adversary="worst-case")
    assert found.certificate.declared.subject == "2 releases from the same records"
    assert found.certificate.mechanism["kind"] == "ledger"
    assert len(found.alone) == 2
    assert found.alone[0].startswith("alone, release 1: advantage at most 0.1975")
    assert found.verify().accepted
    with pytest.raises(ParameterError, match="two releases"):
        rt.certify([rt.Gaussian(2.0)])

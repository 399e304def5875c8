"""Files as mechanisms, certificates to take away, and audits that still run."""

from __future__ import annotations

import json
import os
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from reticent.certificates.build import certify
from reticent.certificates.document.schema import Declaration
from reticent.certificates.page import page as certificate_page
from reticent.certificates.verify import verify
from reticent.dashboard import opening_progress
from reticent.dashboard.requests import as_text, assess_of, release_of
from reticent.dashboard.state import State
from reticent.kernel.errors import ArtifactError, ParameterError
from reticent.kernel.mechanisms import DPSGD, Gaussian, Ledger, Mechanism
from reticent.mechanisms import Laplace, RandomisedResponse
from reticent.samplers import Shuffled
from reticent.tasks.store import Store, Task
from tests.certificates.conftest import make_ledger
from tests.dashboard.conftest import asked, uploaded

pytestmark = pytest.mark.usefixtures("quick_documents")

SCHEDULE = Ledger((DPSGD(3.0, 0.05, 20), Gaussian(8.0), DPSGD(4.0, 0.1, 5, sampler=Shuffled())))


def settings_of(content: bytes, name: str = "x.json") -> State:
    found = asked("ledger", files=[uploaded(content, name)])
    assert found["parts"] == {"ledger-said": ""}
    return State.of_address(found["address"])


@pytest.mark.parametrize("release", [SCHEDULE, RandomisedResponse(0.3), Laplace(2.0, 3), DPSGD(1.0, 0.1, 9)], ids=str)
def test_the_settings_hold_any_mechanism(release: Mechanism) -> None:
    assert release_of(as_text(release)) == release
    state = State.of({"mechanism": "ledger", "ledger": as_text(release)})
    assert assess_of(State.of_address(state.address())).mechanism == release
    pinned = State.of({"pinned": state.address()}).pinned()
    assert pinned is not None
    assert assess_of(pinned).mechanism == release


def test_every_file_that_says_what_was_released_can_be_explored() -> None:
    ledger = make_ledger()
    certificate = certify(Gaussian(2.0), Declaration(subject="a", created="2026-11-22"))
    record_of = json.dumps({"kind": "ledger", "parts": [{"kind": "gaussian", "noise_multiplier": 2.0}]})
    event = json.dumps({"class_name": "GaussianDpEvent", "noise_multiplier": 2.0})
    files: dict[bytes, Mechanism] = {
        ledger.to_json().encode(): ledger.mechanism(),
        certificate.to_json().encode(): Gaussian(2.0),
        certificate_page.render_html(certificate).encode(): Gaussian(2.0),
        record_of.encode(): Ledger((Gaussian(2.0),)),
        event.encode(): Gaussian(2.0),
    }
    for content, release in files.items():
        assert assess_of(settings_of(content)).mechanism == release


def test_a_ledger_that_contradicts_itself_is_refused() -> None:
    changed = make_ledger().model_copy(update={"divisor": 40.0})
    found = asked("ledger", files=[uploaded(changed.to_json())])
    assert found["address"] == ""
    assert "contradicts itself" in found["parts"]["ledger-said"]


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"kind": "x"}', b'{"schema": "y"}', b"\xff", b"[" * 9999])
def test_a_file_that_says_nothing_is_one_line(content: bytes) -> None:
    found = asked("ledger", files=[uploaded(content, "\u202ex.json")])
    complaint = found["parts"]["ledger-said"]
    assert found["address"] == ""
    assert 0 < len(complaint) < 700
    assert "\n" not in complaint
    assert "\u202e" not in complaint


def test_a_file_beyond_all_use_is_refused() -> None:
    with pytest.raises(ParameterError):
        assess_of(State.of({"mechanism": "ledger"}))
    many = '{"kind":"dpsgd","noise_multiplier":1,"sample_rate":0.1,"steps":100000000000}'
    with pytest.raises(ParameterError, match="steps"):
        assess_of(State.of({"mechanism": "ledger", "ledger": many}))


def test_a_certificate_is_taken_away_and_verifies() -> None:
    found = asked("certificate", mechanism="gaussian", noise_multiplier="2", attackers="relaxed,membership")
    assert found["parts"]["told"] == "reticent-certificate.html written"
    name, page = found["file"]
    assert name == "reticent-certificate.html"
    document = certificate_page.embedded(page, "x")
    assert certificate_page.first_difference(page, document) is None
    assert verify(document).accepted
    assert [a.adversary for a in document.assessments] == ["worst-case", "relaxed", "membership"]
    assert "no run" in document.declared.subject


@pytest.mark.parametrize("noise", ["", "1e-300", "x"])
def test_no_certificate_is_one_line(noise: str) -> None:
    found = asked("certificate", noise_multiplier=noise)
    assert found["file"] is None
    assert found["parts"]["told"].startswith("Noise multiplier must be")


def audit_folder(root: Path, done: int, total: object, gap: float) -> Path:
    store = Store(root)
    with store.exclusive({"models": total, "run": "<b>runs/mine</b>"}):
        for k in range(done):
            store.save(Task("shadow", {"index": k}), {})
    for k, entry in enumerate(sorted((root / "tasks").iterdir())):
        os.utime(entry, (1000.0 + gap * k, 1000.0 + gap * k))
    return root


def test_a_running_audit_shows_tasks_done_and_time_left(tmp_path: Path) -> None:
    folder = audit_folder(tmp_path / "work", 5, 16, 30.0)
    seen = opening_progress.read(folder, now=1130.0)
    assert seen is not None
    assert (seen.done, seen.total, seen.remaining, seen.stopped) == (5, 16, 330.0, False)
    assert "About 6 minutes left" in str(opening_progress.page(seen, "work"))
    late = opening_progress.read(folder, now=9000.0)
    assert late is not None
    assert late.stopped
    assert "stopped" in str(opening_progress.page(late, "work"))
    found = asked("open", path=str(folder))
    assert found["next"] == "open"
    assert "5 of 16" in str(found["parts"]["opened"])


def test_an_audit_that_is_done_or_just_begun_says_so(tmp_path: Path) -> None:
    done = opening_progress.read(audit_folder(tmp_path / "a", 3, 3, 1.0))
    begun = opening_progress.read(audit_folder(tmp_path / "b", 0, 3, 1.0))
    assert done is not None
    assert begun is not None
    assert "All tasks are done" in str(opening_progress.page(done, "a"))
    assert "known after two results" in str(opening_progress.page(begun, "b"))
    assert opening_progress.read(tmp_path) is None
    with pytest.raises(ArtifactError):
        opening_progress.read(audit_folder(tmp_path / "c", 1, "many", 1.0))


def test_the_page_asks_again_while_an_audit_runs(tmp_path: Path) -> None:
    found = asked("open", path=str(audit_folder(tmp_path / "work", 2, 4, 1.0)))
    assert (found["parts"]["message"], found["next"]) == ("", "open")
    assert "2 of 4" in str(found["parts"]["opened"])
    assert asked("open", path=str(tmp_path / "none"))["next"] is None


def test_what_is_uploaded_changes_the_file_and_the_mechanism_only() -> None:
    found = asked("ledger", files=[uploaded(as_text(SCHEDULE))])
    assert set(parse_qs(found["address"])) == {"mechanism", "ledger"}

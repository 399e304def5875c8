"""The gate: the document, its age, its signature and its model; reports in which nothing foreign acts."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from reticent.adversaries import Membership
from reticent.certificates import gate_report
from reticent.certificates.document.requirements import Check
from reticent.certificates.document.schema import Certificate, Declaration
from reticent.certificates.gate import check
from reticent.certificates.verify import verify
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.mechanisms import Gaussian
from reticent.kernel.messages import said
from tests.certificates.making import MOST, of, policy
from tests.cli.calling import run

NOW, WEIGHTS = datetime(2026, 11, 22, tzinfo=UTC), "cd" * 32
HOSTILE = "</failure><script>alert(1)</script>]]>|`*\x00\x1b[31m\u202etxt.exe\n## passed"
SUBJECT = "</failure><script>alert(1)</script>]]>|`* ## passed"
AGE = "at most 30 days old"


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    declared = Declaration(subject=SUBJECT, created="2026-11-01", expires="2027-11-01", weights_sha256=WEIGHTS)
    return of(Gaussian(2.0), WorstCase(), Membership(), declared=declared)


def asked(
    document: Certificate, now: datetime = NOW, limit: Any = MOST, compared: Any = None, **more: Any
) -> list[Check]:
    wanted = policy(limit, per="record", accept_conditions=["clipped"], **more)
    return check(document, verify(document), wanted, now=now, **compared or {})


def breached(*what: Any, **more: Any) -> list[str]:
    return [str(one.name) for one in asked(*what, **more) if not one.passed]


SIGNED, MODEL, LISTED = (
    "the certificate is signed",
    "the model is the one that it names",
    "the model is one that may go out",
)
ROWS: dict[str, tuple[dict[str, Any], dict[str, Any] | None, list[str]]] = {
    "nothing asked": ({}, None, []),
    "signed": ({"signature": True}, {"signed": True}, []),
    "signed by another key": ({"signature": True}, {"signed": False}, [SIGNED]),
    "no key given": ({"signature": True}, None, [SIGNED]),
    "signed by another key, and nobody asked": ({}, {"signed": False}, [SIGNED]),
    "its model": ({"weights": True}, {"weights": True}, []),
    "another model": ({"weights": True}, {"weights": False}, [MODEL]),
    "no model given": ({"weights": True}, None, [MODEL]),
    "another model, and nobody asked": ({}, {"weights": False}, [MODEL]),
    "a model on the list": ({"weights_sha256": ["ab" * 32, WEIGHTS]}, None, []),
    "a model that is not on the list": ({"weights_sha256": ["ab" * 32]}, None, [LISTED]),
}


@pytest.mark.parametrize("name", ROWS)
def test_what_stands_beside_the_document_must_have_been_compared(certificate: Certificate, name: str) -> None:
    more, compared, names = ROWS[name]
    assert breached(certificate, compared=compared, **more) == names


def test_a_certificate_that_names_no_model_is_not_on_a_list(certificate: Certificate) -> None:
    unnamed = {"declared": certificate.declared.model_copy(update={"weights_sha256": None})}
    assert LISTED in breached(certificate.model_copy(update=unnamed), weights_sha256=[WEIGHTS])


def test_a_certificate_that_does_not_verify_breaches_every_policy(certificate: Certificate) -> None:
    changed = certificate.model_copy(update={"headline_": said("Perfectly safe.")})
    assert breached(changed) == ["the certificate verifies"]


@pytest.mark.parametrize(
    ("now", "names", "words"),
    [
        ("2026-11-01T23", [], "today"),
        ("2026-11-02T01", [], "1 day ago"),
        ("2026-11-22T12", [], "21 days ago"),
        ("2026-12-02T00", [AGE], "31 days ago"),
        ("2026-10-31T23", [], "in the future"),
        ("2026-10-01T00", [AGE], "in the future"),
        ("2027-11-01T00", ["the certificate has not expired", AGE], "365 days ago"),
    ],
)
def test_the_age_is_told_in_whole_days(certificate: Certificate, now: str, names: list[str], words: str) -> None:
    then = datetime.fromisoformat(f"{now}:00").replace(tzinfo=UTC)
    assert breached(certificate, then, max_age_days=30) == names
    assert f"created 2026-11-01, {words}" in [one.detail for one in asked(certificate, then, max_age_days=30)]
    assert (names[:1] == breached(certificate, then)) is (len(names) != 1), "an expired one needs no policy about age"


def test_hostile_names_are_inert_in_markdown_and_junit(certificate: Certificate) -> None:
    checks = [*asked(certificate, limit={**MOST, "at_most": 0.1}), Check(HOSTILE, False, HOSTILE)]
    suite = ElementTree.fromstring(gate_report.junit(certificate, checks))  # noqa: S314
    assert suite.tag == "testsuite"
    assert int(suite.get("failures", "")) == len(suite.findall("testcase/failure")) == 2
    assert suite.findall(".//script") == []
    text = gate_report.markdown(certificate, checks)
    assert text.count("\n## ") == 0
    for forbidden in ("<script", "\x00", "\x1b", "\u202e"):
        assert forbidden not in text + gate_report.junit(certificate, checks)
    rows = [line for line in text.splitlines() if line.startswith("| **BREACH**")]
    assert len(rows) == 2
    assert all(line.replace("\\|", "").count("|") == 4 for line in rows)


@pytest.fixture
def gate(certificate: Certificate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Any:
    """The command in a folder of its own; ``required`` is one line more of its policy."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.json").write_text(certificate.to_json())

    def call(*more: object, required: str = "") -> tuple[int, str, str]:
        accepted = "per: record\naccept_conditions: [clipped]\nlimits: [{measure: advantage, at_most: 0.9}]"
        (tmp_path / "policy.yaml").write_text(f"schema: reticent.policy/1\n{accepted}\n{required}\n")
        return run(capsys, "gate", "c.json", "--policy", "policy.yaml", *more)

    return call


def test_it_says_what_verify_would_say(gate: Any) -> None:
    said = json.loads(gate("--json")[1])["reservations"]
    starts = ("No signature was checked", "Stop: can one person have several records?", "The mechanism is declared")
    assert [line.startswith(start) for line, start in zip(said, starts, strict=True)] == [True] * 3
    assert "! No signature was checked" in gate("--markdown", "a.md", "--junit", "a.xml")[1]
    assert all("No signature was checked" in Path(name).read_text() for name in ("a.md", "a.xml"))


def test_a_model_that_is_required_must_be_given(gate: Any) -> None:
    Path("w").write_bytes(b"another model")
    code, _, err = gate(required="weights: true")
    assert (code, "give --weights" in err) == (2, True)
    assert gate("--weights", "w", required="weights: true")[0] == 1
    assert gate("--weights", "none there", required="weights: true")[0] == 2


@pytest.mark.parametrize("option", ["--markdown", "--junit"])
def test_a_report_replaces_older_ones_of_its_kind_and_nothing_else(gate: Any, option: str) -> None:
    Path("notes").write_text('what the gate said:\n\n## Privacy gate: passed\n<testsuite name="privacy gate: x"')
    before = {path.name: path.read_bytes() for path in Path().iterdir()}
    assert {gate(option, victim)[0] for victim in ("c.json", "policy.yaml", "notes")} == {2}
    assert {name: Path(name).read_bytes() for name in before} == before
    other = {"--markdown": "--junit", "--junit": "--markdown"}[option]
    assert gate(option, "a", other, "b")[0] == 0
    Path("a").write_text(Path("a").read_text() + "old")
    assert gate(option, "a")[0] == 0
    assert not Path("a").read_text().endswith("old")
    assert [gate(other, "a")[0], gate(option, "c", other, "c")[0]] == [2, 2]
    Path("c.json").write_text("not looked at")
    assert gate(option, "none/x")[::2] == (2, "reticent: none/x: none is not a folder that can be written to\n")

"""``reticent gate``: a release goes out or stays, by exit codes and reports."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import reticent as rt
from reticent.signing.keys import write_key_pair
from tests.cli.calling import refused, run

pytestmark = pytest.mark.usefixtures("quick_documents")


def policy(path: Path, most: float, more: str = "signature: true", measure: str = "advantage") -> Path:
    limit = f"limits: [{{measure: {measure}, neighbouring: add-remove, at_most: {most}}}]"
    path.write_text(f"schema: reticent.policy/1\nper: record\naccept_conditions: [clipped]\n{limit}\n{more}\n")
    return path


@pytest.mark.parametrize(("limit", "code"), [(0.5, 0), (0.1, 1)])
def test_the_gate_opens_and_closes(signed: Path, tmp_path: Path, capsys, limit: float, code: int) -> None:
    asked = ("gate", signed / "certificate.html", "--policy", policy(tmp_path / "policy.yaml", limit))
    key = ("--key", signed / "key.pub")
    found, out, _ = run(capsys, *asked, *key, "--junit", tmp_path / "gate.xml", "--markdown", tmp_path / "gate.md")
    assert found == code
    assert out.startswith("Privacy gate: " + ("1 of" if code else "passed"))
    assert "**" not in out
    assert "|" not in out
    assert max(map(len, out.splitlines())) <= 100
    assert (tmp_path / "gate.md").read_text().startswith("## Privacy gate")
    assert run(capsys, *asked, *key, "--markdown", "-")[1] == (tmp_path / "gate.md").read_text()
    assert f'failures="{code}"' in (tmp_path / "gate.xml").read_text()
    found, out, _ = run(capsys, *asked, *key, "--json")
    document = json.loads(out)
    assert (found, document["passed"]) == (code, not code)
    assert [r["passed"] for r in document["requirements"] if "advantage" in r["name"]] == [not code]
    for more, said in (((*key, "--json", "--markdown", "-"), "--json prints nothing else"), ((), "--key")):
        assert said in refused(capsys, *asked, *more)


def test_an_option_of_one_value_is_given_once(signed: Path, tmp_path: Path, capsys) -> None:
    """Of two keys or two policies only the last would count, and the gate would say that it is signed."""
    write_key_pair(tmp_path / "other", tmp_path / "other.pub")
    strict, lax = policy(tmp_path / "policy.yaml", 0.999), policy(tmp_path / "lax.yaml", 1000.0, measure="mu")
    asked = ("gate", signed / "certificate.html", "--policy", strict)
    mine, other = ("--key", signed / "key.pub"), ("--key", tmp_path / "other.pub")
    for more in ((*other, *mine), (f"--key={other[1]}", *mine), (*mine, "--policy", lax)):
        assert "is given more than once" in refused(capsys, *asked, *more)
    assert run(capsys, "verify", signed / "certificate.html", *mine, *other, "--threshold", 1)[0] == 0


def test_a_page_with_one_changed_character_is_refused(signed: Path, tmp_path: Path, capsys) -> None:
    page = (signed / "certificate.html").read_text()
    (tmp_path / "page.html").write_text(page.replace("Asked whether", "Asked if", 1))
    options = ("--policy", policy(tmp_path / "policy.yaml", 0.5), "--key", signed / "key.pub")
    code, out, _ = run(capsys, "gate", tmp_path / "page.html", *options)
    assert (code, "the page shows its document" in out) == (1, True)


@pytest.mark.parametrize(
    "changes",
    [
        {"claim": "bond"},  # a word that no claim is
        {"claim": "\N{LATIN SMALL LETTER DOTLESS I}"},
        {"mechanism": {"kind": "gaussian", "noise_multiplier": {}}},
        {"schema": "reticent.certificate/2"},
        "{}",
        "not a certificate",
        "",
    ],
)
def test_whatever_is_wrong_with_a_document_is_a_breach_in_every_report(
    signed: Path, tmp_path: Path, capsys, changes: dict[str, object] | str
) -> None:
    """A build server that finds no JUnit file, or a traceback, does not know that a release was stopped."""
    text, file = changes, tmp_path / "c.json"
    if isinstance(changes, dict):
        document = json.loads((signed / "certificate.json").read_text())
        (document["assessments"][0] if "claim" in changes else document).update(changes)
        text = json.dumps(document)
    file.write_text(str(text))
    options = ("--junit", tmp_path / "j.xml", "--markdown", tmp_path / "m.md")
    code, out, err = run(capsys, "gate", file, "--policy", policy(tmp_path / "p.yaml", 0.5, ""), *options)
    assert (code, err) == (1, "")
    assert out.startswith("Privacy gate: 1 of ")
    assert 'failures="1"' in (tmp_path / "j.xml").read_text()
    assert "**BREACH**" in (tmp_path / "m.md").read_text()
    code, _, err = run(capsys, "verify", file)
    assert (code, err.count("\n")) in ((1, 0), (2, 1))


def test_of_many_there_is_a_line_for_each_and_the_worst_exit_code(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, noise in (("x", 20.0), ("y", 10.0), ("z", 21.0)):
        made = rt.certify(rt.Gaussian(noise), subject=f"model {name}", created="2026-01-01", adversary="worst-case")
        Path(f"{name}.json").write_text(made.to_json())
    Path("torn.json").write_text("{")
    more = ("--policy", policy(Path("policy.yaml"), 0.03, ""))
    code, out, _ = run(capsys, "gate", "x.json", "y.json", "z.json", *more)
    lines = out.splitlines()
    assert (code, lines[0], lines[-1]) == (1, "x.json: passed", "2 of 3 passed")
    assert lines[1].startswith("y.json: 1 of ")
    assert lines[2].startswith("BREACH  ")
    assert out.count("BREACH") == 1
    assert out.count("Stop: can one person have several records?") == 1
    assert run(capsys, "gate", "x.json", "z.json", *more)[0] == 0
    reports = ("--markdown", "gate.md", "--junit", "gate.xml")
    code, out, _ = run(capsys, "gate", "none.json", "x.json", "y.json", "torn.json", *more, *reports)
    assert code == 2
    assert "BREACH  the certificate can be read: none.json" in out
    assert "BREACH  the certificate verifies: torn.json" in out.replace("\n        ", " ")
    assert Path("gate.md").read_text().count("## Privacy gate:") == 4
    suites = ElementTree.fromstring(Path("gate.xml").read_text())  # noqa: S314
    assert [suite.get("file") for suite in suites] == ["none.json", "x.json", "y.json", "torn.json"]
    assert run(capsys, "gate", "x.json", "y.json", *more, *reports)[0] == 1, "its own reports are replaced"
    document = json.loads(run(capsys, "gate", "none.json", "x.json", "y.json", *more, "--json")[1])
    assert (document["schema"], document["passed"], document["unread"]) == ("reticent.gates/1", False, ["none.json"])
    alone = json.loads(run(capsys, "gate", "y.json", *more, "--json")[1])
    assert document["certificates"][2] == {"file": "y.json", **alone}
    assert [one["passed"] for one in document["certificates"]] == [False, True, False]
    for name in ("--weights", "--signature"):  # what belongs to one certificate
        err = refused(capsys, "gate", "x.json", "z.json", *more, "--key", "k.pub", name, "x.json")
        assert f"{name} must be left out" in err

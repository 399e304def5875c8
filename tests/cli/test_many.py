"""Many runs in one call: ``risk`` of several, ``compare`` of two, ``gate`` and ``register add`` of certificates."""

from __future__ import annotations

import json
import math
import xml.etree.ElementTree as ElementTree

import pytest

import reticent as rt
from tests.certificates.ledgers import poisson, shuffled
from tests.cli.calling import run

pytestmark = pytest.mark.usefixtures("quick_documents")


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Two run folders, a certificate and a torn file."""
    monkeypatch.chdir(tmp_path)
    for name, ledger in (("a", poisson()), ("b", shuffled())):
        (tmp_path / name).mkdir()
        (tmp_path / name / "ledger.json").write_text(ledger.to_json())
    (tmp_path / "c.json").write_text(rt.certify(poisson(), subject="a loop").to_json())
    (tmp_path / "torn.json").write_text("{")
    return tmp_path


def test_risk_of_several_runs_is_one_table_and_one_document(capsys, runs) -> None:
    code, out, err = run(capsys, "risk", "a", "b/ledger.json", "c.json", "--adversary", "relaxed")
    assert (code, err, out.splitlines()[0]) == (0, "", "3 releases, each by itself")
    table = out.partition("\n")[2].partition("\nrun ")[0].splitlines()
    assert [line.split()[:2] for line in table] == [
        *(["run", "attacker"], ["a", "relaxed"], ["a", "worst-case"], ["b/ledger.json", "relaxed"]),
        *(["b/ledger.json", "worst-case"], ["c.json", "relaxed"], ["c.json", "worst-case"]),
    ]
    assert "! shuffled-not-poisson" in out
    asked = ("--adversary", "relaxed", "--fpr", "0.1", "--epsilon", "2", "--prior", "0.2", "--secret-bits", "9")
    document = json.loads(run(capsys, "risk", "a", "b", "c.json", *asked, "--json")[1])
    assert (document["schema"], document["left_out"]) == ("reticent.risks/1", {})
    for name, found in zip(("a", "b", "c.json"), document["runs"], strict=True):
        alone = json.loads(run(capsys, "risk", "ledger", name, *asked, "--json")[1])
        assert found == alone | {"name": name}
    assert "delta@2" in run(capsys, "risk", "a", "b", *asked)[1]


def test_one_path_is_what_the_leaf_says_of_it(capsys, runs) -> None:
    assert run(capsys, "risk", "a") == run(capsys, "risk", "ledger", "a/ledger.json")
    (runs / "gaussian").mkdir()
    code, _, err = run(capsys, "risk", "gaussian")
    assert (code, "--noise-multiplier must be given" in err) == (2, True)
    assert "no option --fprs (did you mean --fpr?)" in run(capsys, "risk", "a", "--fprs", "3")[2]


def test_a_run_that_cannot_be_read_ends_with_2_after_all_others(capsys, runs) -> None:
    for more in ((), ("--json",)):
        code, out, err = run(capsys, "risk", "a", "torn.json", "none/x", "b", *more)
        assert (code, err) == (2, "reticent: 2 of 4 runs could not be answered: see left out\n")
        assert out.count("no strict JSON") == 1 or "torn.json" in out
    assert [one["name"] for one in json.loads(out)["runs"]] == ["a", "b"]
    assert list(json.loads(out)["left_out"]) == ["torn.json", "none/x"]
    code, out, err = run(capsys, "risk", "torn.json", "none/x")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "none of 2 releases can be answered; the first: torn.json" in err


def test_what_was_taken_of_each_run_is_asked_of_each(capsys, runs) -> None:
    tuned = ("--selection", "geometric", "--mean-runs", "10", "--json")
    found = json.loads(run(capsys, "risk", "a", "c.json", *tuned)[1])["runs"]
    assert [one["mechanism"]["runs"]["mean"] for one in found] == [10, 10]
    assert found[0]["assessments"] == json.loads(run(capsys, "risk", "a", *tuned)[1])["assessments"]


def test_compare_of_two_paths(capsys, runs) -> None:
    code, out, err = run(capsys, "compare", "a", "b", "--adversary", "worst-case")
    assert (code, err, out.splitlines()[0]) == (0, "", "A is a, B is b")
    assert "ledger.sampler.drawn: poisson | shuffled" in out
    document = json.loads(run(capsys, "compare", "files", "a", "c.json", "--adversary", "worst-case", "--json")[1])
    assert (document["schema"], document["differences"]) == ("reticent.differences/1", [])
    asked = ("--adversary", "worst-case", "--delta", "1e-7", "--neighbouring", "replace", "--json")
    (_, epsilon) = json.loads(run(capsys, "compare", "a", "b", *asked)[1])["summary"]
    assert (epsilon["number"], epsilon["neighbouring"]) == ("epsilon@1e-07", "replace")
    for wrong in (("a",), ("a", "torn.json"), ("a", "none.json"), ("a", "b", "c.json")):
        code, out, err = run(capsys, "compare", *wrong)
        assert (code, out, err.count("\n")) == (2, "", 1)


@pytest.fixture
def certificates(runs):
    """Three certificates, of which one has twice the risk, and policies."""
    for name, noise in (("x", 20.0), ("y", 10.0), ("z", 21.0)):
        certificate = rt.certify(rt.Gaussian(noise), subject=f"model {name}", created="2026-01-01")
        (runs / f"{name}.json").write_text(certificate.to_json())
    (runs / "policy.yaml").write_text(
        "schema: reticent.policy/1\nper: record\naccept_conditions: [clipped]\n"
        "limits:\n  - {measure: advantage, at_most: 0.05}\n"
    )
    return runs


def test_the_gate_of_many_has_a_line_for_each_and_the_worst_exit_code(capsys, certificates) -> None:
    code, out, _ = run(capsys, "gate", "x.json", "y.json", "z.json", "--policy", "policy.yaml")
    lines = out.splitlines()
    assert (code, lines[0], lines[-1]) == (1, "x.json: passed", "2 of 3 passed")
    assert lines[1].startswith("y.json: 1 of ")
    assert lines[2].startswith("BREACH  ")
    assert out.count("BREACH") == 1
    assert out.count("Stop: can one person have several records?") == 1
    assert run(capsys, "gate", "x.json", "z.json", "--policy", "policy.yaml")[0] == 0
    more = ("--policy", "policy.yaml", "--markdown", "gate.md", "--junit", "gate.xml")
    code, out, _ = run(capsys, "gate", "none.json", "x.json", "y.json", "torn.json", *more)
    assert code == 2
    assert "BREACH  the certificate can be read: none.json" in out
    assert "BREACH  the certificate verifies: torn.json" in out.replace("\n        ", " ")
    assert (certificates / "gate.md").read_text().count("## Privacy gate:") == 4
    suites = ElementTree.fromstring((certificates / "gate.xml").read_text())  # noqa: S314
    assert [suite.get("file") for suite in suites] == ["none.json", "x.json", "y.json", "torn.json"]
    assert run(capsys, "gate", "x.json", "y.json", *more)[0] == 1, "its own reports are replaced"
    document = json.loads(run(capsys, "gate", "none.json", "x.json", "y.json", "--policy", "policy.yaml", "--json")[1])
    assert (document["schema"], document["passed"], document["unread"]) == ("reticent.gates/1", False, ["none.json"])
    alone = json.loads(run(capsys, "gate", "y.json", "--policy", "policy.yaml", "--json")[1])
    assert document["certificates"][2] == {"file": "y.json", **alone}
    assert [one["passed"] for one in document["certificates"]] == [False, True, False]


def test_what_belongs_to_one_certificate_is_refused_of_several(capsys, certificates) -> None:
    for name in ("--weights", "--signature"):
        given = ("--policy", "policy.yaml", "--key", "k.pub", name, "x.json")
        code, out, err = run(capsys, "gate", "x.json", "z.json", *given)
        assert (code, out, err.count("\n"), f"{name} must be left out" in err) == (2, "", 1, True)


def test_a_register_takes_all_certificates_or_none(capsys, certificates) -> None:
    assert run(capsys, "keygen", "k")[0] == 0
    assert run(capsys, "register", "open", "r", "--name", "clinic", "--budget", "mu=0.1", "--sign", "k")[0] == 0
    before = (certificates / "r").read_bytes()
    for wrong, said in (
        (("x.json", "y.json"), "within the budget: mu"),
        (("x.json", "torn.json"), "torn.json"),
        (("x.json", "z.json", "x.json"), "x.json: is named twice"),
    ):
        code, out, err = run(capsys, "register", "add", "r", *wrong, "--sign", "k")
        assert (code, out, err.count("\n"), said in err) == (2, "", 1, True), err
        assert (certificates / "r").read_bytes() == before
    code, out, _ = run(capsys, "register", "add", "r", "x.json", "z.json", "--sign", "k", "--json")
    document = json.loads(out)
    assert (code, document["releases"]) == (0, ["model x", "model z"])
    assert document == json.loads(run(capsys, "register", "show", "r", "--key", "k.pub", "--json")[1])
    assert document["spent"] == pytest.approx(math.hypot(1 / 20, 1 / 21), rel=1e-9, abs=0)
    for name in ("first", "second"):
        (certificates / f"{name}.json").write_text(rt.certify(poisson(), subject=name).to_json())
    for wrong in (("y.json", "x.json"), ("first.json", "second.json")):
        code, _, err = run(capsys, "register", "add", "r", *wrong, "--sign", "k", "--anyway")
        assert (code, err.count("\n"), wrong[1] in err) == (2, 1, True), err
    gate = ("gate", "x.json", "z.json", "y.json", "--policy", "policy.yaml", "--register", "r")
    code, out, _ = run(capsys, *gate, "--register-key", "k.pub")
    assert (code, out.count("BREACH  the release is in the register")) == (1, 1)

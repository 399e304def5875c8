"""Many runs in one call: ``risk`` of several, ``compare`` of two, ``gate`` and ``register add`` of certificates."""

from __future__ import annotations

import json

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

"""``reticent risk``: the contract of one release and of several that scripts rely on."""

from __future__ import annotations

import json
import math

import pytest
from scipy.special import erf

import reticent as rt
from tests.certificates.ledgers import poisson, shuffled
from tests.cli.calling import document, refused, run

DPSGD = "dpsgd --noise-multiplier 1.1 --sample-rate 0.01 --steps 500"
GAUSSIAN = "gaussian --noise-multiplier 2"


def risk(capsys: pytest.CaptureFixture[str], words: str) -> dict:
    return document(capsys, "risk", *words.split())


def test_numbers_of_one_release_are_those_of_the_closed_form(capsys) -> None:
    """The shape is that of the published schema: tests/verbs/test_documents.py."""
    (worst,) = risk(capsys, f"{GAUSSIAN} --prior 0.1 --prior 0.5")["assessments"]
    assert set(worst["success_at_prior"]) == {"0.1", "0.5"}
    assert worst["advantage"]["value"] == pytest.approx(erf(0.25 / math.sqrt(2)), rel=1e-12, abs=0)
    assert worst["mu"]["value"] == pytest.approx(0.5, rel=1e-12, abs=0)
    infinite = risk(capsys, "gaussian --noise-multiplier 0")["assessments"][0]
    assert (infinite["advantage"]["value"], infinite["epsilon_at_delta"]["1e-05"]["value"]) == (1.0, None)


def test_the_worth_of_an_accusation_is_shown_where_a_prior_is_asked_for(capsys) -> None:
    asked = f"{GAUSSIAN} --fpr 0.01 --fpr 0"
    worst = risk(capsys, f"{asked} --prior 0.1")["assessments"][0]
    assert set(worst["ppv_at_prior_and_fpr"]["0.1"]) == {"0.01"}, "without false alarms there is no number"
    tpr = worst["tpr_at_fpr"]["0.01"]["value"]
    expected = 0.1 * tpr / (0.1 * tpr + 0.9 * 0.01)
    assert worst["ppv_at_prior_and_fpr"]["0.1"]["0.01"]["value"] == pytest.approx(expected, rel=1e-12, abs=0)
    for more, shown in ("", False), (" --prior 0.1", True):
        _, out, _ = run(capsys, "risk", *f"{asked}{more}".split())
        assert ("accused rightly" in out) is ("if people are independent of each other" in out) is shown


def test_a_secret_is_stated_where_it_is_asked_for_with_what_it_needs(capsys) -> None:
    found = risk(capsys, f"{GAUSSIAN} --adversary relaxed --secret-bits 10 --guesses 3 --guesses 5")
    relaxed, worst = found["assessments"]
    assert relaxed["secret_at_bits_and_guesses"] == {}
    assert set(worst["secret_at_bits_and_guesses"]["10.0"]) == {"3.0", "5.0"}
    needed = worst["also_needed"]["secret_at_bits_and_guesses"]
    declared = {("secret-entropy", "declared"), ("secret-nowhere-else", "declared")}
    assert {(one["key"], one["status"]) for one in needed} == declared
    assert {one["key"] for one in needed} <= set(found["conditions"])


def test_all_answers_what_can_be_answered_and_names_the_rest(capsys) -> None:
    found = risk(capsys, f"{DPSGD} --adversary all")
    names = {a["adversary"] for a in found["assessments"]}
    assert {"worst-case", "relaxed", "membership", "mixed"} <= names
    assert set(found["skipped"]) == {"attribute", "membership-game"}
    found = risk(capsys, f"{DPSGD} --adversary all --dimension 1000 --batch-size 64 --gradient-change 0.2")
    assert found["skipped"] == {}
    assert {a["adversary"] for a in found["assessments"]} == names | {"attribute", "membership-game"}


def test_reference_values_of_the_dp_sgd_worst_case(capsys) -> None:
    # c1 of the performance reference, add/remove.
    (worst,) = risk(capsys, "dpsgd --noise-multiplier 1 --sample-rate 1e-3 --steps 10000 --fpr 0.01")["assessments"]
    assert worst["advantage"]["value"] == pytest.approx(0.0521389909, rel=0, abs=1e-8)
    assert worst["advantage"]["lower"] <= 0.0521389910
    assert worst["advantage"]["upper"] >= 0.0521389908
    assert worst["epsilon_at_delta"]["1e-05"]["value"] == pytest.approx(0.475761, rel=1e-5, abs=0)
    assert 1 - worst["tpr_at_fpr"]["0.01"]["value"] == pytest.approx(0.9858255, rel=1e-6, abs=0)


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


def test_several_runs_are_one_table_and_one_document(capsys, runs) -> None:
    code, out, err = run(capsys, "risk", "a", "b/ledger.json", "c.json", "--adversary", "relaxed")
    assert (code, err, out.splitlines()[0]) == (0, "", "3 releases, each by itself")
    table = out.partition("\n")[2].partition("\nrun ")[0].splitlines()
    named = [[name, who] for name in ("a", "b/ledger.json", "c.json") for who in ("relaxed", "worst-case")]
    assert [line.split()[:2] for line in table] == [["run", "attacker"], *named]
    assert "! shuffled-not-poisson" in out
    asked = "--adversary relaxed --fpr 0.1 --epsilon 2 --prior 0.2 --secret-bits 9"
    found = risk(capsys, f"a b c.json {asked}")
    assert (found["schema"], found["left_out"]) == ("reticent.risks/1", {})
    for name, one in zip(("a", "b", "c.json"), found["runs"], strict=True):
        assert one == risk(capsys, f"ledger {name} {asked}") | {"name": name}
    assert "delta@2" in run(capsys, "risk", "a", "b", *asked.split())[1]
    tuned = "--selection geometric --mean-runs 10"
    found = risk(capsys, f"a c.json {tuned}")["runs"]
    assert [one["mechanism"]["runs"]["mean"] for one in found] == [10, 10]
    assert found[0]["assessments"] == risk(capsys, f"a {tuned}")["assessments"]


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
    assert "none of 2 releases can be answered; the first: torn.json" in refused(capsys, "risk", "torn.json", "none/x")


def test_compare_of_two_paths(capsys, runs) -> None:
    code, out, err = run(capsys, "compare", "a", "b", "--adversary", "worst-case")
    assert (code, err, out.splitlines()[0]) == (0, "", "A is a, B is b")
    assert "ledger.sampler.drawn: poisson | shuffled" in out
    found = document(capsys, "compare", "files", "a", "c.json", "--adversary", "worst-case")
    assert (found["schema"], found["differences"]) == ("reticent.differences/1", [])
    asked = ("--adversary", "worst-case", "--delta", "1e-7", "--neighbouring", "replace")
    (_, epsilon) = document(capsys, "compare", "a", "b", *asked)["summary"]
    assert (epsilon["number"], epsilon["neighbouring"]) == ("epsilon@1e-07", "replace")
    for wrong in (("a", "torn.json"), ("a", "none.json"), ("a", "b", "c.json")):
        refused(capsys, "compare", *wrong)

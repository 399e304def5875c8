"""A plan is sealed before an audit, kept by it, named by its report, and checked by who reads that."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from reticent.attacks.mechanics import audit_mechanics
from reticent.kernel.errors import ArtifactError, ParameterError
from reticent.verbs import Audit, AuditLoop, Verify, read
from tests.cli.calling import CLAIM, document, put_silent_loop, refused, run

LOOP = ("audit-loop", "my_quiet_loop:loop", "--claim", "claim.yaml", "--plan", "plan.json")
SCORES = (
    "audit",
    "scores.npz",
    "--design",
    "independent",
    "--against-mu",
    "0.5",
    "--sequential",
    "--plan",
    "plan.json",
)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    put_silent_loop(tmp_path, "my_quiet_loop")
    normal = np.random.default_rng(0).normal
    np.savez("scores.npz", member=normal(2, 1, 60), non_member=normal(0, 1, 60))
    monkeypatch.setattr("reticent.attacks.loop.audit_loop", lambda loop, claim, **_: audit_mechanics(loop, claim))
    return tmp_path


def planned(capsys, asked) -> dict:
    """The plan that the first call writes."""
    plan: dict = document(capsys, *asked)
    assert plan == json.loads(Path("plan.json").read_text())
    return plan


@pytest.mark.parametrize("asked", [LOOP, SCORES])
def test_the_report_holds_the_plan_that_was_sealed_and_verify_accepts_it(capsys, asked):
    plan, report = planned(capsys, asked), json.loads(run(capsys, *asked, "--json")[1])
    Path("report.json").write_text(json.dumps(report))
    assert report["plan"] == plan
    assert oct(Path("plan.json").stat().st_mode & 0o777) == "0o600"
    code, out, _ = run(capsys, "verify", "report.json", "--json")
    assert (code, json.loads(out)["plan"], json.loads(out)["problems"]) == (0, plan["digest"], [])
    assert plan["digest"] in run(capsys, "verify", "report.json")[1]
    assert f"sealed plan: {plan['digest']}" in run(capsys, *asked)[1].replace("\n", " ")
    assert read("plan.json").digest == plan["digest"]


def test_a_plan_of_a_loop_says_what_decides_and_its_digest_hides_the_seed(capsys):
    plan = planned(capsys, LOOP)
    assert plan["audit"]["claim"]["dataset_size"] == 100
    assert plan["audit"]["runs"][:2] == ["silence", "spread"]
    assert (plan["audit"]["tests"], plan["audit"]["significance"], plan["audit"]["seed"]) == (28, 0.001, 0)
    assert "workers" not in plan["audit"]
    Path("plan.json").unlink()
    assert planned(capsys, LOOP)["digest"] != plan["digest"]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ((*LOOP, "--significance", "0.01"), "significance"),
        ((*LOOP, "--seed", "1"), "seed"),
        ((*LOOP, "--whole"), "whole"),
        ((*SCORES, "--confidence", "0.9"), "confidence"),
        ((*SCORES, "--rule", "given:0.5"), "rule must be left out, as"),
    ],
)
def test_another_audit_than_the_planned_one_is_refused_before_it_runs(capsys, asked, words):
    run(capsys, *(LOOP if asked[0] == "audit-loop" else SCORES))
    err = refused(capsys, *asked)
    assert words in err
    assert "sealed plan" in err


def test_other_contents_of_a_claim_and_edited_plans_are_refused(capsys):
    run(capsys, *LOOP)
    Path("claim.yaml").write_text(CLAIM.replace("12", "13"))
    with pytest.raises(ParameterError, match="claim"):
        AuditLoop.of(function="my_quiet_loop:loop", claim="claim.yaml", plan="plan.json").answer()
    plan = json.loads(Path("plan.json").read_text())
    plan["audit"]["seed"] = 7
    Path("plan.json").write_text(json.dumps(plan))
    with pytest.raises(ArtifactError, match="edited"):
        AuditLoop.of(function="my_quiet_loop:loop", claim="claim.yaml", seed=7, plan="plan.json").answer()


EDITS = {
    LOOP: [
        (lambda r: r.update(significance=0.5), "significance"),
        (lambda r: r.update(refuted=False), "or fewer that refute"),
        (lambda r: r.update(planned_runs=3), "were planned"),
        (lambda r: r["plan"]["audit"].update(seed=5), "digest"),
    ],
    SCORES: [
        (lambda r: r.update(confidence=0.5), "confidence"),
        (lambda r: r["verdicts"].clear(), "no verdict on mu=0.5"),
        (lambda r: r.update(sequential=False), "sequential"),
    ],
}


@pytest.mark.parametrize("asked", EDITS)
def test_a_report_that_does_not_keep_its_plan_is_refused(capsys, asked):
    planned(capsys, asked)
    made = run(capsys, *asked, "--json")[1]
    for edit, words in EDITS[asked]:
        report = json.loads(made)
        edit(report)
        Path("report.json").write_text(json.dumps(report))
        code, out, _ = run(capsys, "verify", "report.json")
        assert (code, words in out) == (1, True), out


def test_a_report_without_a_plan_cannot_be_checked(capsys):
    report = Audit.of(source="scores.npz", against_mu=0.5).answer().to_json()
    Path("report.json").write_text(report)
    with pytest.raises(ArtifactError, match="no report of an audit with a sealed plan"):
        Verify.of(certificate="report.json").answer()
    with pytest.raises(ParameterError, match="weights"):
        Verify.of(certificate="report.json", weights="x").answer()

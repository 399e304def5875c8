"""Selection, the final model, a secret, an accusation, several releases, a filter: each through every door.

A line about a release, its certificate, whether it verifies, a gate that passes and one that does not, the dashboard,
and a calibration whose answer is assessed anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from reticent.adversaries import FinalModel
from reticent.dashboard.calibrating import search
from reticent.dashboard.readings import answer
from reticent.dashboard.requests import assess_of, calibrate_of
from reticent.dashboard.state import State
from reticent.kernel.proofs import CONDITIONS
from reticent.mechanisms.codec import mechanism_of as mechanism_in
from tests.cli.calling import run

SMALL = ("--noise-multiplier", "4", "--sample-rate", "0.1", "--steps", "5")
WHOLE = ("--noise-multiplier", "10", "--sample-rate", "1", "--steps", "50")
ADVANTAGE = {"measure": "advantage"}


@dataclass(frozen=True)
class Asked:
    """One question and the words for it at each door.

    Attributes:
        risk: words after ``reticent risk``.
        certify: words after ``reticent certify``.
        seen: whether the certificate has it.
        measure: of a policy.
        state: of the dashboard.
        calibrate: words after ``reticent calibrate``.
    """

    risk: tuple[str, ...]
    certify: tuple[str, ...]
    seen: Callable[[dict[str, Any]], bool]
    calibrate: tuple[str, ...]
    measure: dict[str, Any] = field(default_factory=lambda: ADVANTAGE)
    state: dict[str, str] = field(default_factory=dict)


def worst(document: dict[str, Any]) -> dict[str, Any]:
    return next(one for one in document["assessments"] if one["adversary"] == "worst-case")


ASKED = {
    "selection": Asked(
        ("dpsgd", *SMALL, "--selection", "geometric", "--mean-runs", "5"),
        ("dpsgd", *SMALL, "--selection", "geometric", "--mean-runs", "5"),
        lambda found: found["mechanism"]["kind"] == "selection",
        ("gaussian", "--selection", "fixed", "--mean-runs", "3", "--target", "advantage=0.2"),
        state={"mechanism": "gaussian", "selection": "fixed", "mean_runs": "3", "goal": "0.2"},
    ),
    "final model": Asked(
        ("dpsgd", *WHOLE, "--adversary", "final-model", "--contraction", "0.9"),
        ("dpsgd", *WHOLE, "--contraction", "0.9"),
        lambda found: any(one["adversary"] == "final-model" for one in found["assessments"]),
        (
            "dpsgd",
            *WHOLE[2:],
            "--adversary",
            "final-model",
            "--contraction",
            "0.9",
            "--target",
            "advantage=0.2",
        ),
        {"measure": "advantage", "adversary": "final-model", "parameters": {"contraction": "any"}},
        {"sample_rate": "1", "steps": "50", "attackers": "final-model", "contraction": "0.9", "goal": "0.2"},
    ),
    "secret": Asked(
        ("dpsgd", *SMALL, "--secret-bits", "13.29", "--guesses", "10"),
        ("dpsgd", *SMALL, "--secret-bits", "13.29", "--guesses", "10"),
        lambda found: "13.29" in worst(found)["secret_at_bits_and_guesses"],
        ("gaussian", "--target", "secret=0.01@13.29,10"),
        {"measure": "secret", "at": [13.29, 10]},
        {"mechanism": "gaussian", "target": "secret", "place": "13.29; 10", "goal": "0.01"},
    ),
    "accusation": Asked(
        ("dpsgd", *SMALL, "--prior", "0.1", "--fpr", "0.01"),
        ("dpsgd", *SMALL),
        lambda found: "0.01" in worst(found)["ppv_at_prior_and_fpr"]["0.1"],
        ("gaussian", "--target", "ppv=0.3@0.1,0.01"),
        {"measure": "ppv", "at": [0.1, 0.01]},
        {"mechanism": "gaussian", "target": "ppv", "place": "0.1; 0.01", "goal": "0.3"},
    ),
    "several releases": Asked(
        ("ledger", "both.json"),
        ("first.json", "second.json"),
        lambda found: len(found["mechanism"]["parts"]) == 2,
        ("ledger", "both.json", "--target", "advantage=0.2"),
        state={"mechanism": "ledger", "ledger": "BOTH"},
    ),
    "filter": Asked(
        ("filtered-gaussian", "--budget", "0.25"),
        ("filter.json",),
        lambda found: found["mechanism"]["kind"] == "filtered-gaussian",
        ("filtered-gaussian", "--target", "advantage=0.2"),
        state={"mechanism": "filtered-gaussian", "budget": "0.25"},
    ),
}
FILES: dict[str, Any] = {
    "first.json": {"kind": "gaussian", "noise_multiplier": 4.0},
    "second.json": {"kind": "gaussian", "noise_multiplier": 3.0},
    "filter.json": {"kind": "filtered-gaussian", "budget": 0.25},
}
FILES["both.json"] = {"kind": "ledger", "parts": [FILES["first.json"], FILES["second.json"]]}
each = pytest.mark.parametrize("name", ASKED)
pytestmark = pytest.mark.usefixtures("quick_documents")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, document in FILES.items():
        (tmp_path / name).write_text(json.dumps(document))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    ended, out, err = run(capsys, *words)
    assert ended == code, err
    return out


@each
def test_risk_answers(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(told(capsys, "risk", *ASKED[name].risk, "--json"))
    assert found["assessments"]


@each
def test_the_certificate_has_it_verifies_and_a_gate_judges_it(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ASKED[name]
    told(capsys, "certify", *asked.certify, "--out", "c")
    assert asked.seen(json.loads(Path("c/certificate.json").read_text()))
    for file in ("c/certificate.json", "c/certificate.html"):
        told(capsys, "verify", file)
    tight = {"secret": 0.001, "ppv": 0.1001}.get(asked.measure["measure"], 1e-4)  # just above a blind guess
    for most, code in ((0.99, 0), (tight, 1)):
        limit = {**asked.measure, "at_most": most}
        accept = {"accept_conditions": list(CONDITIONS)}
        Path("policy.yaml").write_text(
            json.dumps({"schema": "reticent.policy/1", "per": "record", "limits": [limit], **accept})
        )
        told(capsys, "gate", "c/certificate.json", "--policy", "policy.yaml", code=code)


@each
def test_the_dashboard_shows_it(name: str) -> None:
    settings = {key: FILES["both.json"] if value == "BOTH" else value for key, value in ASKED[name].state.items()}
    state = State.of({key: value if isinstance(value, str) else json.dumps(value) for key, value in settings.items()})
    found = answer(assess_of(state))
    assert set(found.skipped) <= {"relaxed"}
    if name not in ("several releases", "filter"):
        assert search(calibrate_of(state)).found


@each
def test_calibration_inverts_it(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(told(capsys, "calibrate", *ASKED[name].calibrate, "--json"))
    limit = float(found["target"].partition("=")[2].partition("@")[0])
    assert 0.99 * limit <= found["achieved"] <= limit
    release = mechanism_in(found["mechanism"])
    if name == "final model":
        from reticent.kernel.risk import advantage

        assert FinalModel(0.9).assess(release).measure(advantage).value <= limit

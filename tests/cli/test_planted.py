"""What was planted in the tables of the command line and not seen. Each test fails on the bug that it is for."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from reticent.auditing import Design
from tests.cli.calling import run


def test_who_cannot_be_answered_is_said_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "risk", "gaussian", "--noise-multiplier", 5, "--adversary", "all")
    assert code == 0
    assert "attribute left out: gradient_change must be given" in out


@pytest.fixture
def audited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Scores whose audit finds numbers between those that are printed."""
    bound = SimpleNamespace(title="mu", rule="ranks", value=0.123456, ceiling=0.234561, notes=())
    rate = SimpleNamespace(value=0.2, lower=0.123456, upper=0.234561, method="exact")
    scores = SimpleNamespace(member=[], non_member=[], meta={}, design=Design.INDEPENDENT)
    found = {"scores": scores, "confidence": 0.95, "verdicts": {}, "hints": (), "bounds": [bound]}
    report = SimpleNamespace(**found, auc=rate, auc_asymptotic=None, tpr={})
    monkeypatch.setattr("reticent.verbs.evidence.judge", lambda *_, **__: report)
    np.savez(tmp_path / "scores.npz", member=np.arange(40.0), non_member=np.arange(40.0))
    return tmp_path / "scores.npz"


def test_what_an_audit_proves_is_rounded_down_and_its_ceiling_up(
    capsys: pytest.CaptureFixture[str], audited: Path
) -> None:
    lines = run(capsys, "audit", audited)[1].splitlines()
    assert ["mu", "0.1234", "0.2346"] in [line.split() for line in lines]


def test_an_interval_is_rounded_outwards(capsys: pytest.CaptureFixture[str], audited: Path) -> None:
    assert "AUC       0.2 0.1234 0.2346" in run(capsys, "audit", audited)[1]

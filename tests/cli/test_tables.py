"""What people are shown: lines of a terminal's width, digits on the safe side, the verdict first.

Whole tables are in the corpus, at 80 and at 200 columns.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from reticent.auditing import Design
from tests.cli.calling import CLAIM, run

DPSGD = "dpsgd --noise-multiplier 2 --sample-rate 0.1 --steps 9"


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)


def lines(capsys: pytest.CaptureFixture[str], words: str, code: int = 0) -> list[str]:
    found, out, _ = run(capsys, *words.split())
    assert found == code
    return out.splitlines()


@pytest.mark.parametrize("width", [80, 40])
def test_no_line_is_wider_than_the_terminal_and_no_digit_is_lost(width: int, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    words = "risk gaussian --noise-multiplier 1.2345 --adversary membership-game --fpr 0.001 --fpr 0.01 --fpr 0.1"
    found = lines(capsys, f"{words} --delta 1e-5 --delta 1e-6 --delta 1e-12 --full")
    assert max(map(len, found)) <= width
    out = "\n".join(found)
    assert "…" not in out
    for heading in ("@0.001", "@0.01", "@0.1", "@1e-05", "@1e-06", "@1e-12", "security", "mu"):
        assert heading in out
    assert out.count("membership-game replace") + out.count("membership-game bound") >= 2


def test_an_infinite_epsilon_says_why(capsys) -> None:
    out = " ".join(" ".join(lines(capsys, "risk gaussian --noise-multiplier 0")).split())
    assert "worst-case: epsilon is inf at delta 1e-05: what gives the record away" in out


def test_who_cannot_be_answered_is_said_with_the_reason(capsys) -> None:
    found = "\n".join(lines(capsys, "risk gaussian --noise-multiplier 5 --adversary all"))
    assert "attribute left out: gradient_change must be given" in found


def test_the_first_table_needs_no_more_than_epsilon(capsys) -> None:
    """Columns in words, shares in percent; what makes a claim conditional is said, other conditions are counted."""
    asked = f"risk {DPSGD} --adversary relaxed"
    found, full = lines(capsys, asked), "\n".join(lines(capsys, f"{asked} --full"))
    row = next(line.split() for line in found if line.startswith("worst-case"))
    worst = json.loads("\n".join(lines(capsys, f"{asked} --json")))["assessments"][1]
    numbers = (worst["epsilon_at_delta"]["1e-05"], worst["success_at_prior"]["0.5"], *worst["tpr_at_fpr"].values())
    for cell, number in zip(row[2:], numbers, strict=True):
        stated = float(cell.rstrip("%")) / (100 if "%" in cell else 1)
        assert number["value"] <= stated * (1 + 1e-11)
        assert stated == pytest.approx(number["value"], rel=1e-3, abs=0)
    out = " ".join(" ".join(found).split())
    assert " mu" not in out
    assert "security" not in out
    assert "assumed (relaxed): A record moves every step along one direction" in out
    listed = len(re.findall(r"^(?:  )?(?:assumed|declared|checked)", full, re.MULTILINE))
    assert f"rest on {listed - 1} more conditions" in out


@pytest.fixture
def audited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores whose audit finds numbers between those that are printed."""
    bound = SimpleNamespace(title="mu", rule="ranks", value=0.123456, ceiling=0.234561, notes=())
    rate = SimpleNamespace(value=0.2, lower=0.123456, upper=0.234561, method="exact")
    scores = SimpleNamespace(member=[], non_member=[], meta={}, design=Design.INDEPENDENT)
    found = {"scores": scores, "confidence": 0.95, "verdicts": {}, "hints": (), "bounds": [bound]}
    report = SimpleNamespace(**found, auc=rate, auc_asymptotic=None, tpr={})
    monkeypatch.setattr("reticent.verbs.evidence.judge", lambda *_, **__: report)
    np.savez("scores.npz", member=np.arange(40.0), non_member=np.arange(40.0))


@pytest.mark.usefixtures("audited")
def test_what_an_audit_proves_is_rounded_down_its_ceiling_up_and_intervals_outwards(capsys) -> None:
    found = [line.split() for line in lines(capsys, "audit scores.npz")]
    assert ["mu", "0.1234", "0.2346"] in found
    assert ["AUC", "0.2", "0.1234", "0.2346"] in found


def test_an_audit_says_its_verdict_before_the_tables(capsys) -> None:
    normal = np.random.default_rng(0).normal
    np.savez("scores.npz", member=normal(1, 1, 300), non_member=normal(0, 1, 300))
    found = lines(capsys, "audit scores.npz --noise-multiplier 10 --sample-rate 0.01 --steps 9")
    assert max(map(len, found)) <= 80
    table = next(i for i, line in enumerate(found) if line.startswith("lower bound "))
    assert found[1].startswith("release that is claimed: DPSGD: noise multiplier 10")
    assert any("INCONSISTENT" in line for line in found[:table])
    assert [line.split()[0] for line in found[table + 1 : table + 4]] == ["epsilon", "mu", "advantage"]
    assert sum(line.startswith("TPR at FPR ") for line in found) == 3


def test_an_audit_of_a_loop_says_its_verdict_first_and_marks_what_failed(capsys, monkeypatch) -> None:
    good = SimpleNamespace(name="noise scale", p_value=0.63, finding="noise is 0.995 times the claimed size")
    bad = SimpleNamespace(name="pairs of records", p_value=1e-9, finding="records 29 and 175 share " + "batches " * 9)
    verdict = "REFUTED at significance 0.01."
    report = SimpleNamespace(checks=(good, bad), failed=(bad,), headlines=[verdict], accused=True)
    monkeypatch.setattr("reticent.attacks.loop.find_loop", lambda _: None)
    monkeypatch.setattr("reticent.attacks.loop.audit_loop", lambda *_, **__: report)
    Path("claim.yaml").write_text(CLAIM)
    found = lines(capsys, "audit-loop training:train --claim claim.yaml", code=1)
    assert max(map(len, found)) <= 80
    assert found.index(verdict) < found.index(" p-value")
    assert [line for line in found if "FAILED" in line] == [line for line in found if line.startswith("   1e-09 ")]

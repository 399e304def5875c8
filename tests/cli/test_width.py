"""Lines for people keep to the width of the terminal, and the verdict comes first."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from reticent.cli import main
from tests.cli.calling import run


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)


def lines(*words: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    with pytest.raises(SystemExit):
        main(list(words))
    return capsys.readouterr().out.splitlines()


def test_an_audit_says_its_verdict_before_the_tables_and_keeps_to_80_columns(capsys) -> None:
    rng = np.random.default_rng(0)
    np.savez("scores.npz", member=rng.normal(1, 1, 300), non_member=rng.normal(0, 1, 300))
    found = lines(
        "audit", "scores.npz", "--noise-multiplier", "10", "--sample-rate", "0.01", "--steps", "9", capsys=capsys
    )
    assert max(map(len, found)) <= 80
    table = next(i for i, line in enumerate(found) if line.startswith("lower bound "))
    assert found[1].startswith("release that is claimed: DPSGD: noise multiplier 10")
    assert any("INCONSISTENT" in line for line in found[:table])
    assert [line.split()[0] for line in found[table + 1 : table + 4]] == ["epsilon", "mu", "advantage"]
    assert sum(line.startswith("TPR at FPR ") for line in found) == 3


def test_a_plan_keeps_to_80_columns(capsys) -> None:
    assert max(map(len, lines("plan-audit", "--claimed-mu", "0.5", "--true-mu", "1", capsys=capsys))) <= 80


def test_an_audit_of_a_loop_says_its_verdict_first_and_marks_what_failed(capsys, monkeypatch) -> None:
    good = SimpleNamespace(name="noise scale", p_value=0.63, finding="noise is 0.995 times the claimed size")
    bad = SimpleNamespace(name="pairs of records", p_value=1e-9, finding="records 29 and 175 share " + "batches " * 9)
    verdict = "REFUTED at significance 0.01."
    report = SimpleNamespace(checks=(good, bad), failed=(bad,), headlines=[verdict], accused=True)
    monkeypatch.setattr("reticent.attacks.loop.find_loop", lambda _: None)
    monkeypatch.setattr("reticent.attacks.loop.audit_loop", lambda *_, **__: report)
    Path("claim.yaml").write_text("noise_multiplier: 1.0\nsample_rate: 0.1\nsteps: 12\ndataset_size: 100\n")
    found = lines("audit-loop", "training:train", "--claim", "claim.yaml", capsys=capsys)
    assert max(map(len, found)) <= 80
    assert found.index(verdict) < found.index(" p-value")
    assert [line for line in found if "FAILED" in line] == [line for line in found if line.startswith("   1e-09 ")]


def test_a_report_at_a_folder_is_one_line(capsys) -> None:
    np.savez("scores.npz", member=np.arange(40.0), non_member=np.arange(40.0))
    code, _, err = run(capsys, "audit", "scores.npz", "--html", ".")
    assert (code, err) == (2, "reticent: .: is a folder; give the name of a file\n")

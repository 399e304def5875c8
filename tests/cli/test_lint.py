"""``reticent lint FOLDER`` names what a kill left half-written."""

from __future__ import annotations

import fcntl
import json

from tests.certificates.ledgers import poisson
from tests.cli.calling import refused, run

STRAY = ".run.partial-0123456789abcdef"


def test_strays_are_named_wherever_they_lie(capsys, tmp_path) -> None:
    (tmp_path / "runs" / STRAY).mkdir(parents=True)
    live = tmp_path / ".ck.partial-0123456789abcdef"
    live.touch()
    with live.open() as stream:  # somebody is writing it
        fcntl.flock(stream, fcntl.LOCK_EX)
        code, out, err = run(capsys, "lint", tmp_path)
    assert (code, out, err.count("\n"), f"runs/{STRAY}: half-written" in err) == (1, "", 1, True)
    assert run(capsys, "lint", tmp_path)[2].count("\n") == 2
    assert (tmp_path / "runs" / STRAY).exists()


def test_a_run_is_looked_at_as_well(capsys, tmp_path) -> None:
    (tmp_path / "ledger.json").write_text(poisson().to_json())
    code, out, err = run(capsys, "lint", tmp_path, "--json")
    assert (code, err) == (0, "")
    (tmp_path / STRAY).mkdir()
    again = run(capsys, "lint", tmp_path, "--json")
    assert (again[0], json.loads(again[1]), again[2].count("\n")) == (1, json.loads(out), 1)


def test_a_folder_without_a_run_is_no_run(capsys, tmp_path) -> None:
    assert "ledger.json" in refused(capsys, "lint", tmp_path)

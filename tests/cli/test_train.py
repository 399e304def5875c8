"""``reticent train`` as a user types it."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from reticent.records.ledger import RunLedger
from reticent.training import load_run
from tests.cli.calling import CONFIG, refused, run

GRID = CONFIG + "sweep: {learning_rate: [0.1, 0.2]}\n"
SELECTION = GRID + "selection: {runs: geometric, mean_runs: 3}\n"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "run"


def train(capsys: pytest.CaptureFixture[str], out: Path, *more: str, config: str = CONFIG) -> str:
    """What is printed of a run; words are as if the terminal had no end."""
    path = out.with_name("small.yaml")
    path.write_text(config)
    code, said, err = run(capsys, "train", path, "--out", out, *more)
    assert (code, err) == (0, "")
    return said if "--json" in more else " ".join(said.split())


def test_writes_a_run_and_says_what_it_did(out: Path, capsys) -> None:
    said = train(capsys, out)
    assert "5 noisy updates on 200 records of digits" in said
    assert "! size-treated-as-public: " in said
    assert load_run(out).trace() is None
    before = {p.name: p.read_bytes() for p in out.iterdir()}
    assert "already exists" in refused(capsys, "train", out.with_name("small.yaml"), "--out", out)
    assert {p.name: p.read_bytes() for p in out.iterdir()} == before


def test_json_is_the_ledger_and_nothing_else(out: Path, capsys) -> None:
    said = train(capsys, out, "--json", "--trace-every", "2", "--trace-masks")
    assert json.loads(said)["schema"] == "reticent.ledger/2"
    assert RunLedger.from_json(said) == load_run(out).ledger
    trace = load_run(out).trace()
    assert trace is not None
    assert (len(trace), next(iter(trace)).masks.shape) == (3, (3, 200))


def test_a_trace_is_of_every_step_without_masks(out: Path, capsys) -> None:
    train(capsys, out, "--trace")
    trace = load_run(out).trace()
    assert trace is not None
    assert (len(trace), next(iter(trace)).masks) == (5, None)


@pytest.mark.parametrize(
    "where",
    [
        "safetensors.torch.save",
        "reticent.training.trace.save_tensors",
        "reticent.training.rundir.write_atomic",
        "pathlib.Path.write_text",
    ],
)
def test_a_full_disk_leaves_nothing(where: str, out: Path, capsys, monkeypatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    config = out.with_name("c.yaml")
    config.write_text(CONFIG)
    monkeypatch.setattr(where, full)
    err = refused(capsys, "train", config, "--out", out, "--trace")
    assert "run: cannot be written (No space left on device)" in err
    assert [p.name for p in out.parent.iterdir()] == ["c.yaml"]


def test_a_sweep_says_that_choosing_costs_all_runs(out: Path, capsys) -> None:
    said = train(capsys, out, config=GRID)
    assert "All 2 runs together: advantage at most" in said
    assert "for the chosen model the bound is that of all runs together" in said
    found = json.loads(train(capsys, out, "--resume", "--json", config=GRID))
    assert [cell["choice"] for cell in found["cells"]] == [{"learning_rate": 0.1}, {"learning_rate": 0.2}]
    assert found["together"]["runs"] == 2
    alone, together = found["cells"][0]["risks"]["epsilon"], found["together"]["risks"]["epsilon"]
    assert together["value"] > alone["value"]
    assert load_run(found["cells"][0]["run"]).ledger.utility.test_accuracy == found["cells"][0]["test_accuracy"]
    large = ("--sweep", "batch_size=1000", "--out", out.with_name("large"))
    assert "batch_size" in refused(capsys, "train", out.with_name("small.yaml"), *large)
    assert not large[-1].exists()


def test_a_selection_writes_the_best_and_says_what_it_reveals(out: Path, capsys) -> None:
    found = json.loads(train(capsys, out, "--json", config=SELECTION))
    assert (found["schema"], found["released"], found["settings"]) == ("reticent.selection/1", True, 2)
    assert found["mechanism"]["runs"] == {"kind": "geometric", "mean": 3}
    assert found["mechanism"] == load_run(out).ledger.selection.mechanism
    said = train(capsys, out.with_name("again"), config=SELECTION)
    assert "the best of several runs; right answers on 360 test records" in said
    assert "number of runs: geometric, 3 on average" in said
    assert "How many runs there were is secret" in said


def test_a_dry_run_of_a_selection_draws_nothing(out: Path, capsys) -> None:
    assert "dry run: nothing was drawn, trained or written" in train(capsys, out, "--dry-run", config=SELECTION)
    found = json.loads(train(capsys, out, "--dry-run", "--json", config=SELECTION))
    assert found["risk"]["schema"].startswith("reticent.risk/")
    assert not out.exists()


def test_a_selection_without_a_run_says_so(out: Path, capsys) -> None:
    rare = CONFIG + "selection: {runs: poisson, mean_runs: 0.000001}\n"
    said = train(capsys, out, config=rare)
    assert "no run was drawn, as this law allows: nothing is released" in said
    found = json.loads(train(capsys, out, "--json", config=rare))
    assert (found["released"], found["run"], out.exists()) == (False, None, False)

"""A run finds its data by their fingerprint, under the user's own folder, and opens nothing that a stranger names."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path

import pytest

from reticent.data.purchase import generate_baskets
from reticent.facts.steps import MOST_STEPS
from reticent.kernel.errors import ArtifactError, DataError, ParameterError, ReticentError
from reticent.records.ledger import RunLedger
from reticent.training import load_run, parse_config, train
from reticent.training.setup import make_settings
from tests.data.purchase_file import write_table

CONFIG = {
    "data": {"name": "purchase-100", "train_size": 40},
    "model": {"kind": "logistic"},
    "noise_multiplier": 1.0,
    "batch_size": 5,
    "steps": 2,
    "learning_rate": 0.1,
}


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A data folder with one copy of a small file in the format of Purchase-100."""
    monkeypatch.setenv("RETICENT_DATA", str(tmp_path / "data"))
    (tmp_path / "data" / "purchase100").mkdir(parents=True)
    write_table(generate_baskets(120, seed=1), tmp_path / "data" / "purchase100" / "dataset_purchase")
    return tmp_path / "data" / "purchase100"


def test_another_copy_of_the_file_is_found_by_its_fingerprint(folder, tmp_path):
    run = train(parse_config(CONFIG), tmp_path / "run")
    (folder / "dataset_purchase").rename(folder / "older copy")
    write_table(generate_baskets(120, seed=2), folder / "dataset_purchase")
    assert run.dataset().content_hash == run.ledger.data.content_hash
    (folder / "older copy").unlink()
    with pytest.raises(DataError, match="records or split differ from those of the run"):
        run.dataset()


def _forge(run: Path, change) -> None:
    ledger = json.loads((run / "ledger.json").read_text())
    change(ledger)
    content = json.dumps(ledger).encode()
    (run / "ledger.json").write_bytes(content)
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["files"]["ledger.json"] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (run / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize("path", ["pipe", "/dev/zero", "/etc/passwd"])
def test_a_run_cannot_make_us_open_a_path(folder, tmp_path, path):
    train(parse_config(CONFIG), tmp_path / "run")
    os.mkfifo(tmp_path / "pipe")
    _forge(tmp_path / "run", lambda ledger: ledger["config"]["data"].update(path=str(tmp_path / path)))
    with pytest.raises(ArtifactError, match=r"data\.path: must be left out"):
        load_run(tmp_path / "run").dataset()


def test_a_long_run_is_refused_before_it_is_trained():
    config = parse_config({k: v for k, v in CONFIG.items() if k != "steps"} | {"epochs": 1e300})
    with pytest.raises(ParameterError, match=f"epochs must be so few that the run has at most {MOST_STEPS} steps"):
        make_settings(config, 100)
    with pytest.raises(ArtifactError, match="less than or equal to 1000000"):
        parse_config(CONFIG | {"steps": MOST_STEPS + 1})


def test_a_long_ledger_takes_linear_time_and_a_longer_one_is_refused(folder, tmp_path):
    ledger = train(parse_config(CONFIG), tmp_path / "run").ledger
    steps = 300_000
    counts = replace_diagnostics(ledger, steps)
    started = time.process_time()
    text = counts.to_json()
    assert ledger.to_json().startswith('{\n "schema"')
    assert RunLedger.from_json(text) == counts
    counts.public()
    assert time.process_time() - started < 3.0
    with pytest.raises(ReticentError, match="at most 1000000 items"):
        RunLedger.from_json(text.replace("[5, 5", "[" + "5, " * MOST_STEPS + "5", 1))


def replace_diagnostics(ledger: RunLedger, steps: int) -> RunLedger:
    """The same ledger after ``steps`` steps."""
    diagnostics = ledger.diagnostics.model_copy(update={"batch_sizes": (5,) * steps, "clipped": (1,) * steps})
    segments = (ledger.segments[0].model_copy(update={"steps": steps}),)
    return ledger.model_copy(update={"diagnostics": diagnostics, "segments": segments})

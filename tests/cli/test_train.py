"""``reticent train`` as a user types it."""

from __future__ import annotations

import json

import pytest

from reticent.records.ledger import RunLedger
from reticent.training import load_run
from tests.cli.calling import run

CONFIG = """
data: {name: digits, train_size: 200}
model: {kind: logistic}
noise_multiplier: 2.0
batch_size: 20
steps: 5
learning_rate: 0.1
"""


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(CONFIG)
    return path


def test_writes_a_run_and_says_what_it_did(config, tmp_path, capsys):
    code, out, err = run(capsys, "train", config, "--out", tmp_path / "run")
    assert code == 0
    assert err == ""
    assert "5 noisy updates on 200 records of digits" in " ".join(out.split())
    assert "! size-treated-as-public: " in out
    assert load_run(tmp_path / "run").trace() is None


def test_json_is_the_ledger_and_nothing_else(config, tmp_path, capsys):
    code, out, _ = run(capsys, "train", config, "--out", tmp_path / "run", "--json")
    assert code == 0
    assert json.loads(out)["schema"] == "reticent.ledger/2"
    assert RunLedger.from_json(out) == load_run(tmp_path / "run").ledger


def test_trace_options(config, tmp_path, capsys):
    run(capsys, "train", config, "--out", tmp_path / "a", "--trace")
    run(capsys, "train", config, "--out", tmp_path / "b", "--trace-every", "2", "--trace-masks")
    assert len(load_run(tmp_path / "a").trace()) == 5
    trace = load_run(tmp_path / "b").trace()
    assert len(trace) == 3
    assert next(iter(trace)).masks.shape == (3, 200)
    assert next(iter(load_run(tmp_path / "a").trace())).masks is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CONFIG + "epochz: 3\n", "unknown key 'epochz'"),
        (CONFIG.replace("2.0", "-2.0"), "noise_multiplier: must be greater than or equal to 0, got -2.0"),
        (CONFIG.replace("digits", "digitz"), "bad.yaml: data.name: must be one of adult, breast-cancer"),
        (CONFIG.replace("logistic", "convnet"), "bad.yaml: model.kind must be logistic or mlp"),
        (CONFIG.replace("batch_size: 20", "batch_size: 2000"), "bad.yaml: batch_size must be at most the 200"),
        (CONFIG.replace("digits", "adult"), "RETICENT_DATA is not set"),
        ("a: [", "not valid YAML"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(tmp_path, capsys, monkeypatch, text, message):
    monkeypatch.delenv("RETICENT_DATA", raising=False)
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    code, out, err = run(capsys, "train", path, "--out", tmp_path / "run")
    assert code == 2
    assert out == ""
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_an_existing_run_is_kept(config, tmp_path, capsys):
    run(capsys, "train", config, "--out", tmp_path / "run")
    before = {p.name: p.read_bytes() for p in (tmp_path / "run").iterdir()}
    code, _, err = run(capsys, "train", config, "--out", tmp_path / "run")
    assert code == 2
    assert "already exists" in err
    assert {p.name: p.read_bytes() for p in (tmp_path / "run").iterdir()} == before


def test_wrong_options(config, tmp_path, capsys):
    code, _, err = run(capsys, "train", config, "--out", tmp_path / "run", "--trace-every", "0")
    assert code == 2
    assert "--trace-every must be a whole number >= 1, got 0" in err
    assert run(capsys, "train", tmp_path / "none.yaml", "--out", tmp_path / "run")[0] == 2
    assert run(capsys, "train", config)[0] == 2


def test_a_sweep_says_that_choosing_costs_all_runs(config, tmp_path, capsys):
    config.write_text(CONFIG + "sweep: {learning_rate: [0.1, 0.2]}\n")
    code, out, err = run(capsys, "train", config, "--out", tmp_path / "s")
    assert (code, err) == (0, "")
    words = " ".join(out.split())
    assert "All 2 runs together: advantage at most" in words
    assert "for the chosen model the bound is that of all runs together" in words
    code, out, _ = run(capsys, "train", config, "--out", tmp_path / "s", "--resume", "--json")
    found = json.loads(out)
    assert [cell["choice"] for cell in found["cells"]] == [{"learning_rate": 0.1}, {"learning_rate": 0.2}]
    assert found["together"]["runs"] == 2
    alone, together = found["cells"][0]["risks"]["epsilon"], found["together"]["risks"]["epsilon"]
    assert together["value"] > alone["value"]
    assert load_run(found["cells"][0]["run"]).ledger.utility.test_accuracy == found["cells"][0]["test_accuracy"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--engine", "dask"], "engines, --timeout and --resume are for a sweep"),
        (["--resume"], "engines, --timeout and --resume are for a sweep"),
        (["--sweep", "learning_rate"], "KEY=VALUE"),
        (["--sweep", "learning_rate=0.1", "--engine", "slurm"], "one of local, dask, ray"),
        (["--sweep", "learning_rate=0.1", "--checkpoint", "x"], "without --data and --checkpoint"),
        (["--sweep", "noise_multiplier=-1"], "noise_multiplier"),
        (["--sweep", "batch_size=1000"], "batch_size"),
    ],
)
def test_what_is_no_sweep_ends_in_one_line(options, words, config, tmp_path, capsys):
    code, out, err = run(capsys, "train", config, "--out", tmp_path / "s", *options)
    assert (code, out) == (2, "")
    assert len(err.strip().splitlines()) == 1
    assert words in err


SELECTION = CONFIG + "sweep: {learning_rate: [0.1, 0.2]}\nselection: {runs: geometric, mean_runs: 3}\n"


def test_a_selection_writes_the_best_and_says_what_it_reveals(config, tmp_path, capsys):
    config.write_text(SELECTION)
    code, out, err = run(capsys, "train", config, "--out", tmp_path / "run", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert (found["schema"], found["released"], found["settings"]) == ("reticent.selection/1", True, 2)
    assert found["mechanism"]["runs"] == {"kind": "geometric", "mean": 3}
    assert found["mechanism"] == load_run(tmp_path / "run").ledger.selection.mechanism
    code, out, _ = run(capsys, "train", config, "--out", tmp_path / "again")
    words = " ".join(out.split())
    assert code == 0
    assert "the best of several runs; right answers on 360 test records" in words
    assert "number of runs: geometric, 3 on average" in words
    assert "How many runs there were is secret" in words


def test_a_dry_run_of_a_selection_draws_nothing(config, tmp_path, capsys):
    config.write_text(SELECTION)
    code, out, err = run(capsys, "train", config, "--dry-run")
    assert (code, err) == (0, "")
    assert "dry run: nothing was drawn, trained or written" in " ".join(out.split())
    code, out, _ = run(capsys, "train", config, "--dry-run", "--json", "--out", tmp_path / "run")
    assert code == 0
    assert json.loads(out)["risk"]["schema"].startswith("reticent.risk/")
    assert not (tmp_path / "run").exists()


def test_a_selection_without_a_run_says_so(config, tmp_path, capsys):
    config.write_text(CONFIG + "selection: {runs: poisson, mean_runs: 0.000001}\n")
    code, out, err = run(capsys, "train", config, "--out", tmp_path / "run")
    assert (code, err) == (0, "")
    assert "no run was drawn, as this law allows: nothing is released" in " ".join(out.split())
    assert not (tmp_path / "run").exists()
    code, out, _ = run(capsys, "train", config, "--out", tmp_path / "run", "--json")
    assert (json.loads(out)["released"], json.loads(out)["run"]) == (False, None)


@pytest.mark.parametrize(
    ("section", "options", "words"),
    [
        ("selection: 3", [], "small.yaml: selection: must be a mapping"),
        ("selection: {runs: often, mean_runs: 3}", [], "selection must be one of"),
        ("selection: {runs: geometric}", [], "small.yaml: selection: mean_runs is missing"),
        ("selection: {runs: geometric, mean_runs: 3}", ["--workers", "2"], "it trains in this process"),
        ("selection: {runs: geometric, mean_runs: 3}", ["--trace"], "it trains in this process"),
        (
            "selection: {runs: geometric, mean_runs: 3}",
            ["--sweep", "seed=1,2", "--sweep", "data.train_size=9,8"],
            "same",
        ),
        ("selection: {runs: geometric, mean_runs: 3}\nrandomness: reproducible", [], "small.yaml: randomness must be"),
    ],
)
def test_what_cannot_be_selected_ends_in_one_line(section, options, words, config, tmp_path, capsys):
    config.write_text(CONFIG + section + "\n")
    code, out, err = run(capsys, "train", config, "--out", tmp_path / "run", *options)
    assert (code, out) == (2, "")
    assert len(err.strip().splitlines()) == 1
    assert words in err
    assert not (tmp_path / "run").exists()

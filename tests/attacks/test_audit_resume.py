"""``reticent audit --resume`` as a user runs it: killed at any moment, and on directories that others prepared."""

from __future__ import annotations

import json
import os
import pickle
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from reticent.attacks.base import AttackSettings, find_attack
from reticent.cli import main
from reticent.kernel.errors import ArtifactError
from reticent.training import parse_config, train

COMMAND = [sys.executable, "-c", "from reticent.cli import main; main()", "audit"]
DOCUMENT = {
    "data": {"name": "breast-cancer"},
    "model": {"kind": "mlp", "widths": [16]},
    "noise_multiplier": 0.8,
    "batch_size": 32,
    "steps": 150,
    "learning_rate": 0.5,
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("resume") / "run"
    train(parse_config(DOCUMENT), path)
    return path


def arguments(run: Path, work: Path, scores: Path, models: int) -> list[str]:
    options = ["--attack", "lira", "--models", str(models), "--work", str(work), "--resume"]
    options += ["--against-mu", "1", "--json"]
    return [*COMMAND, str(run), *options, "--save-scores", str(scores)]


def finish(run: Path, work: Path, scores: Path, models: int) -> bytes:
    done = subprocess.run(arguments(run, work, scores, models), capture_output=True, timeout=280)
    assert done.returncode == 0, done.stderr
    json.loads(done.stdout)
    loaded = np.load(scores, allow_pickle=False)
    return b"".join(loaded[name].tobytes() for name in ("member", "non_member"))


def kill_again_and_again(run: Path, work: Path, scores: Path, models: int, kills: int, longest: float) -> int:
    """Kill at random moments from the first sign of work on; how many kills hit a living process."""
    hits = 0
    for wait in np.random.default_rng(6).uniform(0.0, longest, kills):
        before = time.time()
        process = subprocess.Popen(
            arguments(run, work, scores, models), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        manifest = work / "manifest.json"
        while process.poll() is None and not (manifest.exists() and manifest.stat().st_mtime >= before):
            time.sleep(0.01)
        time.sleep(float(wait))
        process.kill()
        hits += process.wait() == -9
    return hits


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_killed_twenty_times_and_resumed_the_scores_are_the_same(run, tmp_path):
    models = 16 * 40
    reference = finish(run, tmp_path / "whole", tmp_path / "whole.npz", models)
    hits = kill_again_and_again(run, tmp_path / "killed", tmp_path / "killed.npz", models, 20, 3.0)
    assert hits >= 5
    assert any((tmp_path / "killed" / "tasks").iterdir())
    assert finish(run, tmp_path / "killed", tmp_path / "killed.npz", models) == reference


class Bomb:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (os.system, (f"touch {self.path}",))


def test_a_hostile_directory_executes_nothing_and_ends_in_one_line(run, tmp_path, capsys):
    trace, work = tmp_path / "executed", tmp_path / "work"
    nan = b'{"x":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}'
    contents = {
        "pickle": pickle.dumps(Bomb(trace)),
        "huge header": struct.pack("<Q", 2**60) + b"{}",
        "nan": struct.pack("<Q", len(nan)) + nan + struct.pack("<d", float("nan")),
        "truncated": b"\x08",
    }
    settings = AttackSettings(models=16, work=work, resume=True)

    def refused() -> str:
        with pytest.raises(ArtifactError) as stop:
            find_attack("lira").scores(run, settings)
        assert "\n" not in str(stop.value)
        return str(stop.value)

    find_attack("lira").scores(run, settings)
    (task,), (blob,) = (work / "tasks").iterdir(), (work / "blobs").iterdir()
    for path in (task / "task.json", task / "result.safetensors"):
        good = path.read_bytes()
        for bad in contents.values():
            path.write_bytes(bad)
            assert path.name in refused()
        path.unlink()
        path.symlink_to("/etc/passwd")
        assert "link" in refused()
        path.unlink()
        path.write_bytes(good)
    find_attack("lira").scores(run, settings)
    record = (task / "task.json").read_bytes()
    (task / "task.json").write_bytes(record.replace(b"shadow-block", b"../../../sh"))
    assert "does not describe" in refused()
    task.rename(tmp_path / "aside")
    for bad in contents.values():  # now the blob is needed
        blob.write_bytes(bad)
        assert blob.name in refused()
    (work / "manifest.json").write_text('{"schema": "reticent.run-manifest/1", "plan": {"x": NaN}}')
    with pytest.raises(SystemExit) as stop:
        main(["audit", str(run), "--attack", "lira", "--work", str(work), "--resume"])
    assert stop.value.code == 2
    (line,) = capsys.readouterr().err.strip().splitlines()[-1:]
    assert line.startswith("reticent: ")
    assert "manifest.json" in line
    assert not trace.exists()

"""Run directories: written whole, read with suspicion."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save

from reticent.kernel.errors import ArtifactError
from reticent.training import load_run, train

FILES = ("ledger.json", "weights.safetensors", "trace/trace.json", "trace/steps-00000.safetensors")


@pytest.fixture
def run_path(make_config, dataset, tmp_path) -> Path:
    train(make_config(trace={"every": 1, "masks": True}), tmp_path / "run", dataset=dataset)
    return tmp_path / "run"


def seal(path: Path, **contents: bytes | str) -> None:
    """Replace files and make the manifest agree, as an attacker would who can compute checksums."""
    manifest = json.loads((path / "manifest.json").read_text())
    for name, content in contents.items():
        name = name.replace("__", ".")
        content = content.encode() if isinstance(content, str) else content
        (path / name).write_bytes(content)
        manifest["files"][name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (path / "manifest.json").write_text(json.dumps(manifest))


def edit_manifest(path: Path, change) -> None:
    manifest = json.loads((path / "manifest.json").read_text())
    change(manifest)
    (path / "manifest.json").write_text(json.dumps(manifest))


def read_everything(path: Path) -> None:
    run = load_run(path)
    run.weights()
    for _ in run.trace() or ():
        pass


def test_complete_run_reads_back(run_path):
    read_everything(run_path)
    names = set(load_run(run_path).manifest.files)
    assert names == set(FILES)
    assert os.stat(run_path).st_mode & 0o777 == 0o700, "a ledger holds seeds, and what was seen of the records"


@pytest.mark.parametrize(
    "name", ["ledger.json", "weights.safetensors", "trace/trace.json", "trace/steps-00000.safetensors"]
)
@pytest.mark.parametrize("damage", ["missing", "truncated", "flipped", "empty", "link"])
def test_every_kind_of_damage_is_found(run_path, name, damage):
    file = run_path / name
    content = bytearray(file.read_bytes())
    if damage == "missing":
        file.unlink()
    elif damage == "truncated":
        file.write_bytes(content[:-1])
    elif damage == "empty":
        file.write_bytes(b"")
    elif damage == "flipped":
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
    else:
        shutil.move(file, run_path.parent / "elsewhere")
        file.symlink_to(run_path.parent / "elsewhere")
    with pytest.raises(ArtifactError, match=r"missing|corrupt|bytes|link"):
        read_everything(run_path)


def test_half_written_run_is_refused(run_path):
    (run_path / "manifest.json").unlink()
    with pytest.raises(ArtifactError, match="half written"):
        load_run(run_path)
    with pytest.raises(ArtifactError, match="not a run directory"):
        load_run(run_path / "nowhere")


@pytest.mark.parametrize(
    "name",
    ["../secret", "/etc/passwd", "trace/../../secret", "..", ".", "", "a//b", "a\\b", ".hidden", "a" * 200, "x\x00y"],
)
def test_file_names_cannot_leave_the_run(run_path, name):
    (run_path.parent / "secret").write_bytes(b"secret")
    record = {"bytes": 6, "sha256": hashlib.sha256(b"secret").hexdigest()}
    edit_manifest(run_path, lambda m: m["files"].update({name: record}))
    with pytest.raises(ArtifactError, match="not an allowed file name"):
        load_run(run_path)


@pytest.mark.parametrize("place", ["notes.txt", "trace/notes.txt"])
def test_a_link_that_no_manifest_lists_is_refused(run_path, place):
    (run_path / place).symlink_to("/etc/passwd")
    with pytest.raises(ArtifactError, match="is a link"):
        load_run(run_path)


def test_linked_folder_is_refused(run_path):
    shutil.move(run_path / "trace", run_path.parent / "trace")
    (run_path / "trace").symlink_to(run_path.parent / "trace")
    with pytest.raises(ArtifactError, match="is a link"):
        load_run(run_path)


def test_a_folder_in_place_of_a_file_is_refused(run_path):
    (run_path / "weights.safetensors").unlink()
    (run_path / "weights.safetensors").mkdir()
    with pytest.raises(ArtifactError, match="not a plain file"):
        load_run(run_path)


class Bomb:
    def __reduce__(self):
        return (os.mkdir, ("exploded",))


@pytest.mark.parametrize("name", ["ledger__json", "weights__safetensors"])
def test_pickles_are_not_opened(run_path, name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    seal(run_path, **{name: pickle.dumps(Bomb())})
    with pytest.raises(ArtifactError):
        read_everything(run_path)
    assert not (tmp_path / "exploded").exists()


def test_huge_header_is_refused(run_path):
    seal(run_path, weights__safetensors=(2**62).to_bytes(8, "little") + b"{}")
    with pytest.raises(ArtifactError, match="not a safetensors file"):
        read_everything(run_path)


def test_oversized_weights_are_refused(run_path):
    seal(run_path, weights__safetensors=b"\0" * (2 << 20))
    with pytest.raises(ArtifactError, match="more than the"):
        read_everything(run_path)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_numbers_that_are_not_finite_are_refused(run_path, bad):
    tensors = load_run(run_path).weights()
    next(iter(tensors.values())).view(-1)[0] = bad
    seal(run_path, weights__safetensors=save(tensors))
    with pytest.raises(ArtifactError, match="not finite"):
        read_everything(run_path)


def test_other_shapes_and_names_are_refused(run_path):
    tensors = load_run(run_path).weights()
    seal(run_path, weights__safetensors=save({"w": torch.zeros(34)}))
    with pytest.raises(ArtifactError, match="expected"):
        read_everything(run_path)
    first = next(iter(tensors))
    seal(run_path, weights__safetensors=save(tensors | {first: tensors[first].double()}))
    with pytest.raises(ArtifactError, match=r"float64|expected"):
        read_everything(run_path)


def test_hostile_json(run_path):
    seal(run_path, ledger__json="[" * 100_000)
    with pytest.raises(ArtifactError):
        load_run(run_path)
    (run_path / "manifest.json").write_text('{"schema": "reticent.run/1", "files": NaN}')
    with pytest.raises(ArtifactError, match="NaN is not allowed"):
        load_run(run_path)
    (run_path / "manifest.json").write_bytes(b"\xff\xfe{}")
    with pytest.raises(ArtifactError):
        load_run(run_path)


def test_shards_cannot_point_elsewhere(run_path):
    index = json.loads((run_path / "trace/trace.json").read_text())
    index["shards"][0]["file"] = "../run/ledger.json"
    seal(run_path, **{"trace/trace__json": json.dumps(index)})
    with pytest.raises(ArtifactError, match="file"):
        read_everything(run_path)


def test_a_model_that_no_machine_holds_is_refused_without_building_it(run_path):
    ledger = json.loads((run_path / "ledger.json").read_text())
    ledger["config"]["model"]["widths"] = [65_536] * 16
    seal(run_path, ledger__json=json.dumps(ledger))
    with pytest.raises(ArtifactError, match="do not fit the model"):
        load_run(run_path).model()


def test_extra_files_do_no_harm(run_path):
    (run_path / "certificate.json").write_text("{}")
    read_everything(run_path)
    with pytest.raises(ArtifactError, match="has no file"):
        load_run(run_path).file("certificate.json", 10)


SCRIPT = """
import sys
import time
from pathlib import Path
import numpy as np
from reticent.data import Dataset
from reticent.training import parse_config, train

class Slow:
    def start(self, context): print("started", flush=True)
    def before_step(self, step): time.sleep(0.01)
    def after_step(self, step, update): pass
    def finish(self): pass

features, labels = np.zeros((60, 5), np.float32), np.arange(60) % 2
dataset = Dataset("small", "test", features, labels, 2, np.arange(50), np.arange(50, 60))
config = parse_config({"data": {"name": "digits"}, "model": {"kind": "logistic"}, "noise_multiplier": 1.0,
    "batch_size": 5, "steps": 40, "learning_rate": 0.1, "trace": {}})
train(config, Path(sys.argv[1]), hooks=[Slow()], dataset=dataset)
"""


@pytest.mark.slow  # by default: test_checkpoint.py kills ten times
def test_killed_run_is_never_seen_half_written(tmp_path, monkeypatch):
    """kill -9 while training: no run directory, and what is left does not hinder the next run, which removes it."""
    out = tmp_path / "run"
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(out)], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"started\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not out.exists()
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".run.partial-")
    with pytest.raises(ArtifactError, match="half written"):
        load_run(left)
    monkeypatch.setattr(sys, "argv", ["-c", str(out)])
    exec(SCRIPT, {})  # noqa: S102
    read_everything(out)
    assert not left.exists()


def test_trace_replays_the_run(make_config, dataset, tmp_path, monkeypatch):
    """Weights move by learning rate times the recorded gradient; masks agree with the ledger."""
    monkeypatch.setattr("reticent.training.trace.SHARD_BYTES", 34 * 8 * 4)  # four steps per shard
    run = train(make_config(trace={"masks": True}), tmp_path / "run", dataset=dataset)
    trace = run.trace()
    shards = list(trace)
    assert len(trace) == 15
    assert [len(s.steps) for s in shards] == [4, 4, 4, 3]
    weights = torch.cat([s.weights for s in shards])
    gradients = torch.cat([s.gradients for s in shards])
    last = torch.cat([t.reshape(-1) for t in run.weights().values()])
    after = torch.cat([weights[1:], last[None]])
    assert after.numpy() == pytest.approx((weights - 0.1 * gradients).numpy(), rel=1e-6, abs=1e-7)
    masks = np.concatenate([s.masks for s in shards])
    assert masks.shape == (15, 60)
    assert tuple(masks.sum(axis=1)) == run.ledger.diagnostics.batch_sizes
    assert np.concatenate([s.steps for s in shards]).tolist() == list(range(15))


def test_trace_of_some_steps_without_masks(make_config, dataset, tmp_path):
    run = train(make_config(trace={"every": 4}), tmp_path / "run", dataset=dataset)
    (shard,) = run.trace()
    assert shard.steps.tolist() == [0, 4, 8, 12]
    assert shard.masks is None
    full = train(make_config(trace={}), tmp_path / "full", dataset=dataset)
    (whole,) = full.trace()
    assert torch.equal(whole.weights[::4], shard.weights)
    assert torch.equal(whole.gradients[::4], shard.gradients)
    assert train(make_config(), tmp_path / "bare", dataset=dataset).trace() is None

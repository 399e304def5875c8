"""Run directories: written whole, read with suspicion, and after any damage a clear error or a readable run."""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save

from reticent.kernel.errors import ArtifactError, ReticentError
from reticent.training import load_run, train
from tests.training.small import configured, edit_json, records, reseal

WEIGHTS, SHARD = "weights.safetensors", "trace/steps-00000.safetensors"
FILES = ("ledger.json", WEIGHTS, "trace/trace.json", SHARD)
TOKENS = (*(b"-1", b"0", b"1e308", b"1e400", b"NaN", b"null", b"true", b"[]", b"{}", b'""', b"9" * 23), b"\xff")


@pytest.fixture(scope="module")
def pristine(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    rows = np.random.default_rng(0).random((30, 3))
    train(configured(batch_size=5, steps=4, trace={"masks": True}), path, dataset=records(rows))
    return path


@pytest.fixture
def run_path(pristine, tmp_path) -> Path:
    return shutil.copytree(pristine, tmp_path / "run")


def read_everything(path: Path) -> None:
    run = load_run(path)
    run.ledger.mechanism()
    run.ledger.public()
    run.config  # noqa: B018
    run.weights()
    run.model()
    for _ in run.trace() or ():
        pass


def test_complete_run_reads_back(run_path):
    read_everything(run_path)
    assert set(load_run(run_path).manifest.files) == set(FILES)
    assert os.stat(run_path).st_mode & 0o777 == 0o700, "a ledger holds seeds, and what was seen of the records"
    (run_path / "certificate.json").write_text("{}")
    read_everything(run_path)  # more files do no harm
    with pytest.raises(ArtifactError, match="has no file"):
        load_run(run_path).file("certificate.json", 10)
    with pytest.raises(ArtifactError, match="not a run directory"):
        load_run(run_path / "nowhere")


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def link(file: Path) -> None:
    shutil.move(file, file.parents[1] / "elsewhere")
    file.symlink_to(file.parents[1] / "elsewhere")


DAMAGE = {
    "missing": Path.unlink,
    "truncated": lambda file: file.write_bytes(file.read_bytes()[:-1]),
    "flipped": flip,
    "empty": lambda file: file.write_bytes(b""),
    "link": link,
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", DAMAGE)
def test_every_kind_of_damage_is_found(run_path, name, damage):
    DAMAGE[damage](run_path / name)
    with pytest.raises(ArtifactError, match=r"missing|corrupt|bytes|link"):
        read_everything(run_path)


class Bomb:
    def __reduce__(self):
        return (os.mkdir, ("exploded",))


def weights(change):
    """The weights are others, and their checksum is right."""

    def edit(run: Path) -> None:
        (run / WEIGHTS).write_bytes(save(change(load_run(run).weights())))

    return edit


def spoiled(value: float):
    def change(tensors):
        next(iter(tensors.values())).view(-1)[0] = value
        return tensors

    return change


def listed(name: str):
    secret = {"bytes": 6, "sha256": hashlib.sha256(b"secret").hexdigest()}

    def edit(run: Path) -> None:
        (run.parent / "secret").write_bytes(b"secret")
        edit_json(run / "manifest.json", lambda manifest: manifest["files"].update({name: secret}))

    return edit


def moved_folder(run: Path) -> None:
    shutil.move(run / "trace", run.parent / "trace")
    (run / "trace").symlink_to(run.parent / "trace")


def folder_for_file(run: Path) -> None:
    (run / WEIGHTS).unlink()
    (run / WEIGHTS).mkdir()


def file(name: str, content: bytes):
    return lambda run: (run / name).write_bytes(content)


def ledger(change):
    return lambda run: edit_json(run / "ledger.json", change)


NAMES = ("../secret", "/etc/passwd", "trace/../../secret", "..", ".", "", "a//b", "a\\b", ".hidden", "a" * 200, "x\0y")
PLAIN = {
    "no manifest": (lambda run: (run / "manifest.json").unlink(), "half written"),
    "a manifest of NaN": (file("manifest.json", b'{"schema": "reticent.run/1", "files": NaN}'), "NaN is not allowed"),
    "a manifest of bytes": (file("manifest.json", b"\xff\xfe{}"), "manifest"),
    "a folder that is a link": (moved_folder, "is a link"),
    "a folder for a file": (folder_for_file, "not a plain file"),
    **{f"listed {name}": (listed(name), "not an allowed file name") for name in NAMES},
    **{
        f"a link {name}": (lambda run, name=name: (run / name).symlink_to("/etc/passwd"), "is a link")
        for name in ("notes.txt", "trace/notes.txt")
    },
}
SEALED = {
    "weights that are a pickle": (file(WEIGHTS, pickle.dumps(Bomb())), "safetensors"),
    "a ledger that is a pickle": (file("ledger.json", pickle.dumps(Bomb())), "ledger"),
    "a huge header": (file(WEIGHTS, (2**62).to_bytes(8, "little") + b"{}"), "not a safetensors file"),
    "many weights": (file(WEIGHTS, b"\0" * (2 << 20)), "more than the"),
    "weights of NaN": (weights(spoiled(float("nan"))), "not finite"),
    "infinite weights": (weights(spoiled(float("inf"))), "not finite"),
    "other weights": (weights(lambda _: {"w": torch.zeros(34)}), "expected"),
    "other precision": (weights(lambda found: {k: v.double() for k, v in found.items()}), "float64|expected"),
    "a deep ledger": (file("ledger.json", b"[" * 100_000), "ledger"),
    "a shard elsewhere": (
        lambda run: edit_json(run / "trace/trace.json", lambda i: i["shards"][0].update(file="../run/ledger.json")),
        "file",
    ),
    "a model that no machine holds": (
        ledger(lambda found: found["config"].update(model={"kind": "mlp", "widths": [65_536] * 16})),
        "do not fit the model",
    ),
    **{
        f"data at {path}": (
            ledger(lambda found, path=path: found["config"]["data"].update(path=path)),
            r"data\.path: must be left out",
        )
        for path in ("pipe", "/dev/zero", "/etc/passwd")
    },
}


@pytest.mark.parametrize("case", [*PLAIN, *SEALED])
def test_a_folder_that_a_stranger_made_is_one_error_and_nothing_runs(run_path, case, monkeypatch):
    monkeypatch.chdir(run_path.parent)
    os.mkfifo("pipe")
    edit, words = (PLAIN | SEALED)[case]
    edit(run_path)
    if case in SEALED:
        reseal(run_path)
    with pytest.raises(ArtifactError, match=words) as caught:
        read_everything(run_path)
    assert "\n" not in str(caught.value)
    assert not Path("exploded").exists()


def mutate(content: bytes, rng: np.random.Generator) -> bytes:
    """Flip, cut, insert, or replace one JSON-like token."""
    at = int(rng.integers(len(content)))
    kind = int(rng.integers(4))
    if kind == 0:
        return content[:at] + bytes([content[at] ^ (1 << int(rng.integers(8)))]) + content[at + 1 :]
    if kind == 1:
        return content[:at]
    if kind == 2:
        return content[:at] + rng.bytes(int(rng.integers(1, 20))) + content[at:]
    start = max(content.rfind(b":", 0, at), content.rfind(b",", 0, at), 0) + 1
    ends = [i for i in (content.find(b",", start), content.find(b"}", start), content.find(b"]", start)) if i >= 0]
    return content[:start] + TOKENS[int(rng.integers(len(TOKENS)))] + content[min(ends, default=len(content)) :]


@pytest.mark.parametrize("forged", [False, True], ids=["damaged", "forged"])
@pytest.mark.parametrize("name", ["manifest.json", *FILES])
def test_random_damage_is_a_clear_error_or_a_readable_run(run_path, name, forged):
    rng = np.random.default_rng([["manifest.json", *FILES].index(name), forged])
    whole, manifest = (run_path / name).read_bytes(), (run_path / "manifest.json").read_bytes()
    said, trials = [], 24  # tests/fuzz has more
    for _ in range(trials):
        (run_path / name).write_bytes(mutate(whole, rng))
        if forged and name != "manifest.json":
            reseal(run_path)
        try:
            read_everything(run_path)
        except ReticentError as error:
            said.append(str(error))
        (run_path / "manifest.json").write_bytes(manifest)
    # A checksum leaves no room; without one, changed digits and letters can make another valid run.
    assert len(said) == trials if not forged and name != "manifest.json" else len(said) >= trials / 3
    assert "\n" not in "".join(said)


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
    (whole,) = train(make_config(trace={}), tmp_path / "full", dataset=dataset).trace()
    assert torch.equal(whole.weights[::4], shard.weights)
    assert torch.equal(whole.gradients[::4], shard.gradients)
    assert train(make_config(), tmp_path / "bare", dataset=dataset).trace() is None

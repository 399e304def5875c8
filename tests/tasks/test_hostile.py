"""A run directory that somebody else prepared: nothing runs, nothing outside is read, one clear error."""

from __future__ import annotations

import json
import os
import pickle
import struct
from contextlib import suppress

import numpy as np
import pytest

from reticent.kernel.errors import ArtifactError
from reticent.tasks import Store, Task, execute, read_json, read_tensors
from reticent.tasks.files import tensors_bytes


class Bomb:
    """Leaves a trace if anybody unpickles it."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.system, (f"touch {self.path}",))


def good(path):
    path.write_bytes(tensors_bytes({"x": np.arange(8.0)}))
    return path.read_bytes()


def tensors_with(header: object, body: bytes) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def entry(dtype="F64", shape=(1,), offsets=(0, 8)):
    return {"x": {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}}


BAD_TENSORS = {
    "empty": b"",
    "short": b"\x01\x02",
    "huge header": struct.pack("<Q", 2**62) + b"{}",
    "header beyond the limit": tensors_with(b"{" + b" " * 2**21 + b"}", b""),
    "nested header": tensors_with(b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", b""),
    "nan": tensors_with(entry(), struct.pack("<d", float("nan"))),
    "infinity": tensors_with(entry(), struct.pack("<d", float("inf"))),
    "unknown type": tensors_with(entry("O"), b"\0" * 8),
    "negative shape": tensors_with(entry(shape=(-1,)), b"\0" * 8),
    "shape that overflows": tensors_with(entry(shape=(2**40, 2**40)), b"\0" * 8),
    "offsets outside": tensors_with(entry(offsets=(0, 8000), shape=(1000,)), b"\0" * 8),
    "entry is a number": tensors_with({"x": 3}, b""),
    "overlap": tensors_with({**entry(), "y": entry()["x"]}, b"\0" * 8),
    "gap at the end": tensors_with(entry(), b"\0" * 16),
}


def test_damage_never_does_anything_but_refuse_or_return_finite_numbers(tmp_path):
    path, rng = tmp_path / "x.safetensors", np.random.default_rng(0)
    data = good(path)
    for size in range(len(data)):
        path.write_bytes(data[:size])
        with pytest.raises(ArtifactError):
            read_tensors(path)
    for _ in range(300):
        damaged = bytearray(data)
        for place in rng.integers(0, len(data), 3):
            damaged[place] = rng.integers(0, 256)
        path.write_bytes(damaged)
        with suppress(ArtifactError):
            for array in read_tensors(path).values():
                assert array.dtype.kind != "f" or np.isfinite(array).all()


@pytest.mark.parametrize("reader", [read_tensors, read_json])
def test_pickles_links_devices_and_folders_are_refused_and_nothing_runs(tmp_path, reader):
    trace, path = tmp_path / "executed", tmp_path / "file"
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        path.write_bytes(pickle.dumps(Bomb(trace), protocol=protocol))
        with pytest.raises(ArtifactError):
            reader(path)
    path.write_bytes(b"{}" if reader is read_json else tensors_bytes({"x": np.arange(8.0)}))
    assert len(reader(path)) == (reader is read_tensors)
    (tmp_path / "link").symlink_to(path)
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", ".", "absent"):
        with pytest.raises(ArtifactError):
            reader(tmp_path / name)
    assert not trace.exists()


BAD_JSON = {
    "json, nan": b'{"x": NaN}',
    "json, twice": b'{"x": 1, "x": 2}',
    "json, list": b"[1]",
    "json, not utf-8": b'{"x": "\xff"}',
    "json, deep": b'{"x":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    "json, long number": b'{"x": ' + b"9" * 5000 + b"}",
}


@pytest.mark.parametrize("name", [*BAD_TENSORS, *BAD_JSON])
def test_bad_files(tmp_path, name):
    path = tmp_path / "x.bad"
    path.write_bytes((BAD_TENSORS | BAD_JSON)[name])
    with pytest.raises(ArtifactError, match=r"x\.bad"):
        (read_tensors if name in BAD_TENSORS else read_json)(path)


def test_names_cannot_leave_the_directory(tmp_path):
    (tmp_path / "secret.safetensors").write_bytes(good(tmp_path / "s.safetensors"))
    store = Store(tmp_path / "run")
    for digest in ("../../secret", "..", "/etc/passwd", ".hidden", "a/b", "", "x" * 300, "a\0b", 7, None):
        with pytest.raises(ArtifactError):
            store.get(digest)


def test_a_task_folder_must_be_what_it_says(tmp_path):
    store, task, other = Store(tmp_path), Task("t", {"i": 1}), Task("t", {"i": 2})
    for each in (task, other):
        store.save(each, {"x": np.array([float(each.inputs["i"])])})
    folder = tmp_path / "tasks" / task.key
    (tmp_path / "tasks" / other.key).rename(tmp_path / "aside")
    folder.rename(tmp_path / "tasks" / other.key)
    with pytest.raises(ArtifactError, match="does not describe"):
        store.load(other)
    (tmp_path / "tasks" / other.key).rename(folder)
    (folder / "result.safetensors").write_bytes(tensors_bytes({"x": np.array([666.0])}))
    with pytest.raises(ArtifactError, match="SHA-256"):
        store.load(task)
    (folder / "result.safetensors").unlink()
    (folder / "result.safetensors").symlink_to(tmp_path / "aside" / "result.safetensors")
    with pytest.raises(ArtifactError, match="link"):
        store.load(task)


def test_links_are_refused_before_anything_is_written_or_deleted(tmp_path):
    store, task = Store(tmp_path / "run"), Task("t", {})
    with store.exclusive():
        pass
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("keep")
    (tmp_path / "run" / "tasks" / task.key).symlink_to(tmp_path / "precious")
    with pytest.raises(ArtifactError, match="link"):
        execute([task], lambda store, task: {"x": np.zeros(1)}, store)
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "tasks").symlink_to(tmp_path / "precious")
    with pytest.raises(ArtifactError, match="link"):
        Store(tmp_path / "new")
    assert [path.read_text() for path in (tmp_path / "precious").iterdir()] == ["keep"]


@pytest.mark.parametrize(
    "content", [b"{}", b'{"schema": "other", "plan": {}}', b'{"schema": "reticent.run-manifest/1"}']
)
def test_bad_manifests(tmp_path, content):
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(ArtifactError, match=r"manifest\.json"):
        Store(tmp_path).read_manifest()

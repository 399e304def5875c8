"""The run directory: atomic, content-addressed, strict."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest

from reticent.io.strict import canonical
from reticent.kernel.errors import ArtifactError
from reticent.tasks import Progress, Store, Task, execute, read_json, write_json
from reticent.tasks.files import tensors_bytes

ARRAYS = {"x": np.arange(6.0).reshape(2, 3), "flag": np.array([True, False]), "n": np.array([1, 2], dtype=np.int64)}


def double(store: Store, task: Task) -> dict[str, np.ndarray]:
    return {"x": 2.0 * store.get(task.inputs["blob"])["x"] + task.inputs["i"]}


def test_arrays_come_back_as_they_were(tmp_path):
    store = Store(tmp_path)
    digest = store.put(ARRAYS)
    back = store.get(digest)
    assert sorted(back) == sorted(ARRAYS)
    for name, array in ARRAYS.items():
        assert back[name].dtype == array.dtype
        assert np.array_equal(back[name], array)
    assert digest == hashlib.sha256(tensors_bytes(dict(reversed(ARRAYS.items())))).hexdigest()
    assert store.put(ARRAYS) == digest


def test_tasks_run_once_and_the_order_of_keys_does_not_matter(tmp_path):
    store, calls = Store(tmp_path), []
    blob = store.put(ARRAYS)

    def counted(store, task):
        calls.append(task.inputs["i"])
        return double(store, task)

    tasks = [Task("double", {"blob": blob, "i": i}) for i in range(4)]
    execute([*tasks, Task("double", {"i": 0, "blob": blob})], counted, store)
    execute(tasks, counted, store)
    assert calls == [0, 1, 2, 3]
    assert np.array_equal(store.load(tasks[3])["x"], 2 * ARRAYS["x"] + 3)


def test_progress_counts_what_was_found_and_foretells_the_end(tmp_path):
    store, reports = Store(tmp_path), []
    blob = store.put(ARRAYS)
    tasks = [Task("double", {"blob": blob, "i": i}) for i in range(5)]
    execute(tasks[:2], double, store)
    execute(tasks, double, store, progress=reports.append)
    assert [report.done for report in reports] == [2, 3, 4, 5]
    assert reports[-1] == Progress(5, 5)


def test_a_failing_task_keeps_the_others(tmp_path):
    store = Store(tmp_path)

    def third_fails(store, task):
        if task.inputs["i"] == 2:
            raise ArtifactError("the third fails")
        return {"x": np.zeros(1)}

    tasks = [Task("t", {"i": i}) for i in range(4)]
    with pytest.raises(ArtifactError, match="third"):
        execute(tasks, third_fails, store)
    assert [store.has(t) for t in tasks] == [True, True, False, False]


def test_a_result_with_nan_is_not_kept(tmp_path):
    store, task = Store(tmp_path), Task("t", {})
    with pytest.raises(ArtifactError, match="not finite"):
        execute([task], lambda store, task: {"x": np.array([np.nan])}, store)
    assert not store.has(task)


def test_two_writers_of_one_task_agree(tmp_path):
    store, task = Store(tmp_path), Task("t", {"i": 1})
    store.save(task, {"x": np.zeros(2)})
    store.save(task, {"x": np.ones(2)})
    assert np.array_equal(store.load(task)["x"], np.zeros(2))
    assert [path.name for path in (tmp_path / "tasks").iterdir()] == [task.key]


def test_leftovers_of_a_kill_are_removed_and_nothing_else(tmp_path):
    store = Store(tmp_path)
    execute([], double, store)
    half = tmp_path / "tasks" / f".{Task('t', {}).key}.partial-0123456789abcdef"
    half.mkdir()
    (half / "result.safetensors").write_bytes(b"half")
    (tmp_path / "tasks" / ".mine").mkdir()
    (tmp_path / "tasks" / "my own").mkdir()
    (tmp_path / ".manifest.json.partial-0123456789abcdef").write_bytes(b"{")
    (tmp_path / ".mine").write_bytes(b"keep")
    store.put(ARRAYS)
    execute([], double, store)
    assert sorted(p.name for p in (tmp_path / "tasks").iterdir()) == [".mine", "my own"]
    assert not (tmp_path / ".manifest.json.partial-0123456789abcdef").exists()
    assert (tmp_path / ".mine").exists()
    assert len(list((tmp_path / "blobs").iterdir())) == 1


def test_canonical_json_is_strict_and_sorted(tmp_path):
    assert canonical({"b": 1, "a": [1.5, None]}) == b'{"a":[1.5,null],"b":1}'
    for bad in (float("nan"), {"x": float("inf")}, {1, 2}, object()):
        with pytest.raises(ArtifactError):
            canonical(bad)
    write_json(tmp_path / "a.json", {"x": 1})
    assert read_json(tmp_path / "a.json") == json.loads((tmp_path / "a.json").read_text()) == {"x": 1}

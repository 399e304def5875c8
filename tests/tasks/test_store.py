"""The run directory: atomic, content-addressed, strict; and what ``--work DIR`` may touch.

That is an absent or empty folder, or one that carries our manifest. Nothing else.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os

import numpy as np
import pytest

from reticent.io.strict import canonical
from reticent.kernel.errors import ArtifactError, UnsupportedError
from reticent.tasks import Dask, Progress, Store, Task, execute
from reticent.tasks.files import tensors_bytes
from tests.tasks.results import digest

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


def test_tasks_run_once_and_progress_counts_what_was_found(tmp_path):
    """The order of keys does not matter."""
    store, calls, reports = Store(tmp_path), [], []
    blob = store.put(ARRAYS)

    def counted(store, task):
        calls.append(task.inputs["i"])
        return double(store, task)

    tasks = [Task("double", {"blob": blob, "i": i}) for i in range(4)]
    execute([*tasks[:2], Task("double", {"i": 0, "blob": blob})], counted, store)
    execute(tasks, counted, store, progress=reports.append)
    assert calls == [0, 1, 2, 3]
    assert np.array_equal(store.load(tasks[3])["x"], 2 * ARRAYS["x"] + 3)
    assert reports == [Progress(2, 4), Progress(3, 4), Progress(4, 4)]


def test_a_failing_task_keeps_the_others_and_a_result_with_nan_is_none(tmp_path):
    store, tasks = Store(tmp_path), [Task("t", {"i": i}) for i in range(4)]
    with pytest.raises(ArtifactError, match="not finite"):
        execute(tasks, lambda store, task: {"x": np.array([np.nan if task.inputs["i"] == 2 else 0.0])}, store)
    assert [store.has(t) for t in tasks] == [True, True, False, False]


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


def test_canonical_json_is_strict_and_sorted():
    assert canonical({"b": 1, "a": [1.5, None]}) == b'{"a":[1.5,null],"b":1}'
    for bad in (float("nan"), {"x": float("inf")}, {1, 2}, object()):
        with pytest.raises(ArtifactError):
            canonical(bad)


TASK = Task("t", {"i": 1})


def zeros(store, task):
    return {"x": np.zeros(1)}


def everything(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


FOREIGN = {
    "a partial folder of the user's": {"partial/thesis.tex": b"years of work"},
    "one file": {"notes.txt": b"mine"},
    "a lock that holds something": {"lock": b"1234"},
    "another tool's manifest": {"manifest.json": b'{"schema": "somebody.else/3"}', "partial/x": b"x"},
    "a finished run": {"manifest.json": b'{"schema": "reticent.run/1", "files": {}}', "ledger.json": b"{}"},
}


@pytest.mark.parametrize("case", FOREIGN)
def test_a_folder_without_our_manifest_is_refused_and_left_as_it_was(tmp_path, case):
    for name, content in FOREIGN[case].items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    before = everything(tmp_path)
    with pytest.raises(ArtifactError) as stop:
        execute([TASK], zeros, Store(tmp_path))
    assert str(tmp_path) in str(stop.value)
    assert "\n" not in str(stop.value)
    assert everything(tmp_path) == before


def test_a_folder_inside_a_run_is_refused(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "manifest.json").write_text('{"schema": "reticent.run/1", "files": {}}')
    before = everything(tmp_path)
    with pytest.raises(ArtifactError, match="lies inside the run"):
        execute([TASK], zeros, Store(tmp_path / "run" / "deep" / "attack"))
    assert everything(tmp_path) == before


def test_a_folder_that_fills_up_between_looking_and_working_is_refused(tmp_path):
    store = Store(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ArtifactError, match="holds files"):
        execute([TASK], zeros, store)
    assert everything(tmp_path) == {"notes.txt": b"mine"}


@pytest.mark.parametrize("leftover", ["lock", ".manifest.json.partial-0123456789abcdef"])
def test_a_process_killed_before_its_manifest_leaves_a_folder_that_can_be_used(tmp_path, leftover):
    (tmp_path / leftover).touch()
    execute([TASK], zeros, Store(tmp_path))
    assert Store(tmp_path).has(TASK)


def test_an_existing_folder_of_ours_is_gone_on_with(tmp_path):
    execute([TASK], zeros, Store(tmp_path), plan={"models": 16})
    (tmp_path / "notes.txt").write_text("mine")
    execute([Task("t", {"i": 2})], zeros, Store(tmp_path))
    assert Store(tmp_path).read_manifest() == {"models": 16}
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_looking_at_a_folder_makes_nothing(tmp_path):
    assert not Store(tmp_path / "new").has(TASK)
    assert Store(tmp_path / "new").read_manifest() is None
    assert not (tmp_path / "new").exists()


def test_a_process_that_loses_the_lock_writes_nothing(tmp_path):
    execute([TASK], zeros, Store(tmp_path), plan={"models": 16})
    before = everything(tmp_path)
    holder = os.open(tmp_path / "lock", os.O_RDWR)
    fcntl.flock(holder, fcntl.LOCK_EX)
    try:
        for attempt in (
            lambda: execute([Task("t", {"i": 2})], zeros, Store(tmp_path), plan={"models": 99}),
            lambda: Store(tmp_path).exclusive({"models": 99}).__enter__(),
        ):
            with pytest.raises(ArtifactError, match="another process"):
                attempt()
    finally:
        os.close(holder)
    assert everything(tmp_path) == before
    assert json.loads(before["manifest.json"])["plan"] == {"models": 16}


def test_an_address_where_nobody_answers_leaves_nothing_behind(tmp_path):
    prepared = []
    with pytest.raises(UnsupportedError, match="no Dask scheduler answers"):
        execute(
            [TASK],
            zeros,
            Store(tmp_path / "new"),
            Dask("tcp://127.0.0.1:1", timeout=0.5),
            plan={"models": 16},
            prepare=lambda missing, workers: prepared.append(missing),
        )
    assert not (tmp_path / "new").exists()
    assert not prepared


def test_what_is_there_needs_no_workers(tmp_path):
    execute([TASK], zeros, Store(tmp_path))
    kept = digest(Store(tmp_path), [TASK])
    execute([TASK], zeros, Store(tmp_path), Dask("tcp://127.0.0.1:1", timeout=0.5))
    assert digest(Store(tmp_path), [TASK]) == kept


def test_a_full_disk_is_one_line_and_keeps_what_was_done(tmp_path, monkeypatch):
    execute([TASK], zeros, Store(tmp_path))

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ArtifactError, match="No space left on device") as stop:
        execute([TASK, Task("t", {"i": 2})], zeros, Store(tmp_path))
    assert "\n" not in str(stop.value)
    monkeypatch.undo()
    assert np.array_equal(Store(tmp_path).load(TASK)["x"], np.zeros(1))
    execute([TASK, Task("t", {"i": 2})], zeros, Store(tmp_path))

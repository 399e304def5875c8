"""What ``--work DIR`` may touch: an absent or empty folder, or one that carries our manifest. Nothing else."""

from __future__ import annotations

import fcntl
import json
import os

import numpy as np
import pytest

from reticent.kernel.errors import ArtifactError, UnsupportedError
from reticent.tasks import Dask, Store, Task, execute
from tests.tasks.results import digest

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

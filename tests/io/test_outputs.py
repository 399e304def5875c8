"""Output options write where nothing is, or over an older report of their own; files that belong together stay so."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from reticent.io import files, outputs
from reticent.io.files import new_folder, strays, write_atomic
from reticent.io.outputs import refuse_existing, refuse_foreign, write_output, write_together
from reticent.kernel.errors import ArtifactError

MARK = "## A report"


def test_an_older_report_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    write_output(path, b"## A report: one", MARK)
    write_output(path, b"## A report: two", MARK)
    assert path.read_bytes() == b"## A report: two"


@pytest.mark.parametrize("content", [b"", b"secret", b"x" * 5000 + MARK.encode()])
def test_a_foreign_file_stays(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(content)
    with pytest.raises(ArtifactError, match="nothing is overwritten"):
        write_output(path, b"## A report", MARK)
    assert path.read_bytes() == content


def test_links_folders_and_devices_stay(tmp_path: Path) -> None:
    (tmp_path / "report").write_bytes(b"## A report")
    (tmp_path / "link").symlink_to("report")
    (tmp_path / "gone").symlink_to("nothing there")
    for name, why in (("link", "is a link"), ("gone", "is a link"), (".", "is a folder")):
        with pytest.raises(ArtifactError, match=why):
            refuse_foreign(tmp_path / name, MARK)
    with pytest.raises(ArtifactError, match="not a plain file"):
        refuse_foreign(Path("/dev/null"), MARK)


def test_nothing_may_be_there(tmp_path: Path) -> None:
    refuse_existing(tmp_path / "new")
    (tmp_path / "gone").symlink_to("nothing there")
    (tmp_path / "file").touch()
    for name in ("gone", "file"):
        with pytest.raises(ArtifactError, match="already exists"):
            refuse_existing(tmp_path / name)
    with pytest.raises(ArtifactError, match="is a folder"):
        refuse_existing(tmp_path)


def test_a_folder_that_is_missing_is_named_and_not_made(tmp_path: Path) -> None:
    missing = tmp_path / "none" / "a.md"
    for write in (lambda: write_output(missing, b"## A report", MARK), lambda: write_atomic(missing, b"")):
        with pytest.raises(ArtifactError, match=r"none/a\.md: .*none is not a folder that can be written to"):
            write()
    assert not (tmp_path / "none").exists()


def meddle(monkeypatch: pytest.MonkeyPatch, then: Callable[[], None]) -> None:
    """Something happens after each file of several."""

    def write(path: Path, data: bytes, **more: bool) -> None:
        write_atomic(path, data, **more)
        then()

    monkeypatch.setattr(outputs, "write_atomic", write)


def found(folder: Path) -> set[bytes]:
    return {path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}


@pytest.mark.parametrize("there", [False, True])
def test_of_eight_writers_into_one_folder_all_files_are_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    """The page of one certificate lay beside the public edition of another, and each was accepted alone."""
    meddle(monkeypatch, lambda: time.sleep(0.002))
    folder = tmp_path / "certificate"
    if there:
        folder.mkdir()

    def write(number: int) -> None:
        write_together({folder / name: b"of %d" % number for name in ("a.json", "a.html", "a.public.json")})

    with ThreadPoolExecutor(8) as writers:
        list(writers.map(write, range(8)))
    assert len(found(folder)) == 1
    assert len(list(folder.iterdir())) == 3
    assert not strays(tmp_path)


@pytest.mark.parametrize("survived", [0, 1, 2])
@pytest.mark.parametrize("there", [False, True])
def test_a_kill_between_two_files_mixes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool, survived: int
) -> None:
    folder, left = tmp_path / "certificate", [survived]
    old = {folder / name: b"old" for name in ("a", "b", "c", "old only")}
    if there:
        write_together(old)

    def kill() -> None:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt

    meddle(monkeypatch, kill)
    with pytest.raises(KeyboardInterrupt):
        write_together({folder / name: b"new" for name in ("a", "b", "c")}, gone=old)
    assert folder.exists() == there
    assert not there or found(folder) == {b"new"}


def test_what_lies_there_may_be_kept_by_its_owner(tmp_path: Path) -> None:
    def check() -> None:
        raise ArtifactError("another one lies there")

    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(ArtifactError, match="another one"):
        write_together({tmp_path / "a": b"new", tmp_path / "b": b"new"}, check=check)
    assert found(tmp_path) == {b"old"}
    (tmp_path / "file").touch()
    with pytest.raises(ArtifactError, match="cannot write"):
        write_together({tmp_path / "file" / "deep" / "a": b"new"})


def test_a_folder_is_made_once(tmp_path: Path) -> None:
    with new_folder(tmp_path / "run") as made:
        (made / "weights").touch()
    with pytest.raises(OSError, match="not empty"), new_folder(tmp_path / "run") as made:
        (made / "others").touch()
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["weights"]
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_success_removes_what_a_kill_left_of_it_and_nothing_that_is_being_written(tmp_path: Path) -> None:
    """``.ck.partial-*`` with all weights, and ``.run.partial-*``, stayed for ever."""
    names = [f".{name}.partial-{digit * 16}" for name, digit in (("ck", "0"), ("ck", "1"), ("other", "2"))]
    dead, live, other = (tmp_path / name for name in names)
    own = tmp_path / ".ck.partial-mine"
    for path in (dead, live, other, own):
        path.touch()
    with live.open() as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        assert strays(tmp_path) == [dead, other]
        write_atomic(tmp_path / "ck", b"weights")
        assert sorted(tmp_path.iterdir()) == sorted([tmp_path / "ck", live, other, own])
    other.unlink()
    other.mkdir()
    (other / "weights").touch()
    with new_folder(tmp_path / "other"):
        assert len(list(tmp_path.glob(".other.partial-*"))) == 2
    assert not other.exists()


def test_a_stray_that_is_taken_before_it_is_locked_is_begun_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locks = []

    def lock(descriptor: int, how: int) -> None:
        if not locks:
            for path in tmp_path.iterdir():
                path.unlink()
        locks.append(how)

    monkeypatch.setattr(files.fcntl, "flock", lock)
    write_atomic(tmp_path / "ck", b"weights")
    assert (tmp_path / "ck").read_bytes() == b"weights"

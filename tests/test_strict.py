"""Files and words of strangers: linear time, bounded memory, one line."""

from __future__ import annotations

import errno
import json
import os
import time
from pathlib import Path

import pytest

from reticent.io import files, strict
from reticent.io.models import first_problem
from reticent.kernel.errors import ArtifactError
from reticent.kernel.text import printable
from tests.conftest import some


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 900 + "]" * 900, "nested more than 64 deep"),
        ('{"a":' * 900 + "1" + "}" * 900, "nested more than 64 deep"),
        ("[" * 200_000, "nested more than 64 deep"),
        ('{"a": 1, "a": 2}', "a key is repeated"),
        ('{"a": NaN}', "NaN is not allowed"),
        ('{"a": -Infinity}', "Infinity is not allowed"),
        ('{"a": 1e999}', "the number 1e999 is too large"),
        ('{"a": ' + "1" * 5000 + "}", "a whole number of 5000 digits"),
        (r'{"a": "\ud800"}', "half a character"),
        (r'{"\udfff": 1}', "half a character"),
        (r'["\ud800\ud800"]', "half a character"),
        (b'"\xff"', "not valid JSON"),
        ("", "not valid JSON"),
    ],
)
def test_what_is_no_strict_json(text, message):
    with pytest.raises(ArtifactError, match=message) as caught:
        strict.loads(text, "file")
    assert "\n" not in str(caught.value)


def test_what_is_strict_json():
    deep = "[" * 64 + "]" * 64
    assert strict.loads(deep, "file") == json.loads(deep)
    brackets = {"a": "[[[[{{{{" * 100, 'quote " and \\ and [': [1, -2.5, None, True], "é\U0001f600": "\\ud800"}
    assert strict.loads(json.dumps(brackets), "file") == brackets
    assert strict.loads(json.dumps(2**63 - 1), "file") == 2**63 - 1


@pytest.mark.parametrize(
    "text", ['\\"' * 300_000, '"' + '\\"' * 300_000, '"' * 300_001, '{"a":"' * 100_000, "\\" * 600_000]
)
def test_hostile_text_takes_linear_time(text):
    started = time.process_time()
    with pytest.raises(ArtifactError):
        strict.loads(text, "file")
    assert time.process_time() - started < 2.0


def test_numbers_of_keys_and_objects_are_limited():
    many = json.dumps({"questions": {str(k): 0 for k in range(1001)}})
    with pytest.raises(ArtifactError, match="an object has 1001 keys, at most 1000 are allowed"):
        strict.loads(many, "certificate", keys=1000)
    with pytest.raises(ArtifactError, match="more than 2000 objects"):
        strict.loads(json.dumps([{}] * 2001), "certificate", objects=2000)
    assert len(strict.loads(json.dumps([{}] * 2000), "certificate", objects=2000)) == 2000


@pytest.mark.parametrize("item", some(["0", "[]", '""', "1e1"], 1, 3))
def test_what_is_long_in_itself_is_refused_before_it_is_built(item):
    """Sixty megabytes of empty lists once took two gigabytes and thirteen seconds."""
    text = '{"a":[' + f"{item}," * 8_000_001 + "0]}"
    started = time.process_time()
    with pytest.raises(ArtifactError, match="more than 8000000 values"):
        strict.loads(text, "certificate")
    assert time.process_time() - started < 2.0
    nested = '{"a":[' + "[]," * 1_000_001 + "0]}"
    with pytest.raises(ArtifactError, match="more than 1000000 lists"):
        strict.loads(nested, "certificate")


def test_only_plain_files_within_the_limit_are_read(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("/dev/zero")
    for name in ("pipe", "link", "."):
        with pytest.raises(ArtifactError, match="not a plain file"):
            files.read_bytes(tmp_path / name, 10)
    with pytest.raises(ArtifactError, match="5 bytes, more than the 4"):
        files.read_bytes(tmp_path / "file", 4)
    with pytest.raises(ArtifactError, match="cannot be read"):
        files.read_bytes(tmp_path / "nothing", 4)
    assert files.read_bytes(tmp_path / "file", 5) == b"12345"


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO])
def test_a_disk_that_does_not_take_it_is_one_line(tmp_path, code):
    with pytest.raises(ArtifactError, match="out: cannot be written"), files.writing(tmp_path / "out"):
        raise OSError(code, os.strerror(code))
    with pytest.raises(FileNotFoundError), files.writing(tmp_path / "out"):
        raise FileNotFoundError(errno.ENOENT, "another matter")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, é, 中", "plain, é, 中"),
        ("\x1b]0;title\x07\x1b[2J", r"\x1b]0;title\x07\x1b[2J"),
        ("two\nlines\r", r"two\nlines\r"),
        ("\u202eright to left", r"\u202eright to left"),
        ("\x9b31m", r"\x9b31m"),
        ("\ud800", r"\ud800"),
        (7, "7"),
    ],
)
def test_printable(text, shown):
    assert printable(text) == shown
    printable(text).encode("utf-8")


def test_printable_is_short():
    assert printable("a" * 5000, 10) == "aaaaaaa..."


def test_a_validation_error_shows_no_novel():
    from pydantic import BaseModel, ValidationError

    class Box(BaseModel):
        number: float

    for value in ("x" * 10**6, 10**5000):
        with pytest.raises(ValidationError) as caught:
            Box.model_validate({"number": value})
        assert len(first_problem(caught.value)) < 400


def test_an_error_shows_no_control_character_of_a_strangers_file() -> None:
    from reticent.kernel.errors import ArtifactError

    assert str(ArtifactError("sensitivity.json: unexpected key '\x1b[2J\u202e'\nmore")) == (
        "sensitivity.json: unexpected key '\\x1b[2J\\u202e'\\nmore"
    )


@pytest.mark.parametrize("where", ["", ".", "folder"])
def test_a_folder_in_place_of_a_file_is_one_line(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(ArtifactError, match="give the name of a file"):
        files.write_atomic(Path(where), b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


class TestWriting:
    """Readers see all of a file or none; nobody else sees what is private."""

    def test_who_reads_the_old_file_reads_on(self, tmp_path: Path) -> None:
        path = tmp_path / "file"
        path.write_bytes(b"old" * 1000)
        with path.open("rb") as reader:
            reader.read(3)
            files.write_atomic(path, b"new")
            assert reader.read() == b"old" * 999
        assert path.read_bytes() == b"new"
        assert os.listdir(tmp_path) == ["file"]

    def test_a_full_disk_leaves_what_was_there(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(descriptor: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        (tmp_path / "old").write_bytes(b"old")
        for name in ("old", "new"):
            with pytest.raises(ArtifactError, match="No space left"), files.writing(tmp_path / name):
                files.write_atomic(tmp_path / name, b"new")
        assert (tmp_path / "old").read_bytes() == b"old"
        assert os.listdir(tmp_path) == ["old"]

    def test_private_files_are_private_from_the_first_byte(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        modes = []
        own = os.fsync
        monkeypatch.setattr(os, "fsync", lambda fd: (modes.append(os.fstat(fd).st_mode & 0o777), own(fd)))
        files.write_atomic(tmp_path / "mine", b"x", private=True)
        files.write_atomic(tmp_path / "ours", b"x")
        assert modes[0] == 0o600
        assert (tmp_path / "mine").stat().st_mode & 0o777 == 0o600
        assert (tmp_path / "ours").stat().st_mode & 0o777 == 0o666 & ~_umask()

    def test_nobody_can_put_a_link_in_the_way(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("secrets.token_hex", lambda count: "guessed")
        (tmp_path / "victim").write_bytes(b"mine")
        (tmp_path / ".file.partial-guessed").symlink_to(tmp_path / "victim")
        with pytest.raises(OSError, match="exists"):
            files.write_atomic(tmp_path / "file", b"x")
        assert (tmp_path / "victim").read_bytes() == b"mine"

    def test_links_are_not_followed_where_that_is_said(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(b"x")
        (tmp_path / "link").symlink_to("file")
        assert files.read_bytes(tmp_path / "link", 9) == b"x"
        with pytest.raises(ArtifactError, match="cannot be read"):
            files.read_bytes(tmp_path / "link", 9, follow=False)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

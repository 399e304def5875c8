"""Output options write where nothing is, or over an older report of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from reticent.errors import ArtifactError
from reticent.io.files import write_atomic
from reticent.io.outputs import refuse_existing, refuse_foreign, write_output

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

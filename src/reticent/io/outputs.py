"""Where a command writes what somebody asked for by name: never over a file that is something else."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

from reticent.io.files import held, new_folder, read_start, refuse_folder, refuse_no_folder, write_atomic, writing
from reticent.kernel.errors import ArtifactError

_START = 4096


def write_output(path: Path, data: bytes, mark: str) -> None:
    """Write a report, in one rename.

    Args:
        path: as somebody typed it.
        data: the report; its first 4 KiB hold ``mark``.
        mark: how a report of this kind begins. A file that begins so may be replaced: it is an older one.

    Raises:
        ArtifactError: something else lies there, or it cannot be written.
    """
    refuse_foreign(path, mark)
    with writing(path):
        write_atomic(path, data)


def signature_of(ledger: Path) -> Path:
    """Where the envelope over a ledger lies: next to it."""
    return ledger.with_name(ledger.name + ".dsse.json")


def write_together(
    contents: Mapping[Path, bytes],
    *,
    private: Collection[Path] = (),
    gone: Iterable[Path] = (),
    check: Callable[[], None] = lambda: None,
) -> None:
    """Write files of one folder that belong together: whatever strikes, those that are there are of one writing.

    A folder that is missing is made whole beside its place and renamed once. One that is there is locked; what differs
    is removed before the first file is written.

    Args:
        contents: by path, the one first that says what the others belong to.
        private: of these, who but the owner may not read.
        gone: files of an earlier writing that do not belong to this one.
        check: raises where what lies there must stay; called with the lock.

    Raises:
        ArtifactError: it cannot be written, or another process writes there for long.
    """
    try:
        _write_together(contents, private, gone, check)
    except OSError as error:
        raise ArtifactError(f"cannot write {next(iter(contents)).parent}: {error.strerror}") from None


def _write_together(
    contents: Mapping[Path, bytes], private: Collection[Path], gone: Iterable[Path], check: Callable[[], None]
) -> None:
    first = next(iter(contents))
    folder = first.parent
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            with new_folder(folder) as made:
                for path, data in contents.items():
                    write_atomic(made / path.name, data, private=path in private)
        except OSError:
            if not folder.is_dir():
                raise
        else:  # no other process was faster
            return
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with held(descriptor, folder, needed=False):
            check()
            for path in {*contents, *gone} - {first}:
                if path.exists() and path.read_bytes() != contents.get(path):
                    path.unlink()
            for path, data in contents.items():
                write_atomic(path, data, private=path in private)
    finally:
        os.close(descriptor)


def refuse_existing(path: Path) -> None:
    """Nothing may lie at ``path``.

    Raises:
        ArtifactError: something does.
    """
    refuse_folder(path)
    if path.is_symlink() or path.exists():
        raise ArtifactError(f"{path} already exists: nothing is overwritten, choose another name")


def refuse_overwriting(path: Path) -> None:
    """A folder is to be written at ``path``, and nothing may lie there.

    Raises:
        ArtifactError: something lies at ``path``.
    """
    if path.is_symlink() or path.exists():
        raise ArtifactError(f"{path} already exists; choose another --out, nothing is overwritten")


def refuse_foreign(path: Path, mark: str) -> None:
    """Whatever lies at ``path`` must be an older report of the same kind: to be asked before long work.

    Raises:
        ArtifactError: it is a folder, a link, or a file that does not begin as ours, or its folder does not exist.
    """
    refuse_no_folder(path)
    if path.is_symlink():
        raise ArtifactError(f"{path}: is a link; give the name of a file")
    if not path.exists():
        return
    before, found, _ = read_start(path, _START).partition(mark.encode())
    if not found or before.strip()[:1] not in (b"", b"<"):  # what a page of ours says first is markup
        raise ArtifactError(
            f"{path}: exists and is not such a report of reticent: nothing is overwritten, choose another"
        )

"""Files: read within limits and never a pipe or a device; written in one rename, so that readers see all or nothing."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from reticent.kernel.errors import ArtifactError, UnsupportedError

try:
    import fcntl
except ImportError:
    raise UnsupportedError("files are locked as Linux and macOS lock them; on Windows, use its Linux (WSL)") from None

_TURNS, _TURN = 200, 0.05
_STRAY = re.compile(r"\.(.+)\.partial-[0-9a-f]{16}", re.DOTALL)
_UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.EACCES, errno.EPERM}


def read_bytes(path: Path, limit: int, *, follow: bool = True) -> bytes:
    """The bytes of a plain file of at most ``limit`` bytes; pipes, devices and folders are not opened.

    Args:
        limit: bytes.
        follow: False refuses a symbolic link at the end of ``path``.

    Raises:
        ArtifactError: the file is missing, not a plain file, not readable, or too large.
    """
    with open_plain(path, follow=follow) as stream:
        size = os.fstat(stream).st_size
        if size > limit:
            raise ArtifactError(f"{path}: {size} bytes, more than the {limit} that are allowed")
        with os.fdopen(os.dup(stream), "rb") as file:
            content = file.read(limit + 1)
    if len(content) > limit:
        raise ArtifactError(f"{path}: more than the {limit} bytes that are allowed")
    return content


def read_text(path: Path, limit: int) -> str:
    """The text of a plain file of at most ``limit`` bytes.

    Raises:
        ArtifactError: it cannot be read, is too large, or is not UTF-8.
    """
    try:
        return read_bytes(path, limit).decode("utf-8")
    except UnicodeDecodeError:
        raise ArtifactError(f"{path} is not UTF-8 text") from None


@contextmanager
def open_plain(path: Path, *, follow: bool = True) -> Iterator[int]:
    """A file descriptor of a plain file; opening a pipe waits for nobody.

    Raises:
        ArtifactError: it is something else than a plain file, or cannot be opened, or the block cannot read it.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW))
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
                raise ArtifactError(f"{path}: {'a folder, ' if folder else ''}not a plain file")
            yield descriptor
        finally:
            os.close(descriptor)
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read ({error.strerror})") from None


def sha256_file(path: Path) -> str:
    """SHA-256 of a file's bytes as 64 hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_start(path: Path, count: int) -> bytes:
    """The first ``count`` bytes of a plain file, or all where it has fewer.

    Raises:
        ArtifactError: the file is missing, not a plain file, or not readable.
    """
    with open_plain(path) as stream:
        return os.read(stream, count)


def write_atomic(path: Path, data: bytes, *, private: bool = False, new: bool = False) -> None:
    """Write ``data`` to a new file next to ``path`` and rename it: readers see all of it or none.

    Args:
        path: of the file; one that is there is replaced. What a kill left of an earlier try is removed.
        private: only the owner may read it, from the first byte on.
        new: nothing is replaced.

    Raises:
        ArtifactError: ``path`` is a folder, or empty, or its folder is missing or not writable.
        FileExistsError: ``new``, and something lies there.
    """
    refuse_no_folder(path)

    def made(partial: Path) -> int:
        return os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600 if private else 0o666)

    with _beside(path, made) as (partial, descriptor):
        with os.fdopen(os.dup(descriptor), "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(descriptor)
        if new:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        os.replace(partial, path)
    sync_folder(path.parent)
    remove_strays(path.parent, path.name)


@contextmanager
def new_folder(path: Path, *, private: bool = False) -> Iterator[Path]:
    """A folder to write into, which becomes ``path`` in one rename once the block ends without error.

    After an error nothing is left; after a kill a hidden ``.NAME.partial-*``, which the next success removes.

    Args:
        path: an empty folder that is there is replaced.
        private: only the owner may look into it.

    Raises:
        OSError: something lies there, or it cannot be written.
    """

    def made(partial: Path) -> int:
        partial.mkdir(0o700 if private else 0o777)
        return os.open(partial, os.O_RDONLY | os.O_CLOEXEC)

    with _beside(path, made) as (partial, _):
        yield partial
        os.rename(partial, path)
    sync_folder(path.parent)
    remove_strays(path.parent, path.name)


@contextmanager
def _beside(path: Path, made: Callable[[Path], int]) -> Iterator[tuple[Path, int]]:
    """What ``made`` opens next to ``path``; locked meanwhile, and removed after the block if it is still there."""
    while True:
        partial = path.with_name(f".{path.name}.partial-{secrets.token_hex(8)}")
        descriptor = made(partial)
        with suppress(OSError):  # not every file system has locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if partial.exists():
            break
        os.close(descriptor)  # somebody took it for a stray before it was locked
    try:
        yield partial, descriptor
    finally:
        _remove(partial)
        os.close(descriptor)


def take(descriptor: int) -> None:
    """Lock a file until its descriptor is closed, at the latest when the process ends.

    Raises:
        BlockingIOError: another process holds it.
        OSError: the file system has no locks.
    """
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def held(descriptor: int, what: Path, *, needed: bool = True) -> Iterator[None]:
    """A block in which nobody else holds ``what``; another process is waited for ten seconds.

    Args:
        descriptor: of ``what``; the lock ends when it is closed, at the latest.
        needed: False goes on without a lock where the file system has none, as that of many clusters for folders.

    Raises:
        ArtifactError: it is still held then.
        OSError: the file system has no locks.
    """
    for turn in range(_TURNS + 1):
        try:
            take(descriptor)
            break
        except BlockingIOError:
            if turn == _TURNS:
                raise ArtifactError(f"{what}: another process holds it; try again when that has ended") from None
            time.sleep(_TURN)
        except OSError:
            if needed:
                raise
            break
    yield


def strays(folder: Path, name: str | None = None) -> list[Path]:
    """Files and folders that a kill left half-written; not those that somebody is writing now.

    Args:
        folder: where they lie.
        name: of what they would have become; None finds all.
    """
    with suppress(OSError):
        found = [(path, _STRAY.fullmatch(path.name)) for path in sorted(folder.iterdir())]
        return [path for path, match in found if match and name in (None, match[1]) and _ended(path)]
    return []


def remove_strays(folder: Path, name: str | None = None) -> None:
    """Remove what ``strays`` finds."""
    for path in strays(folder, name):
        _ended(path, _remove)


def _ended(path: Path, then: Callable[[Path], None] = lambda _: None) -> bool:
    """Whether nobody holds ``path``, and ``then`` to be done with it while nobody can."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        take(descriptor)
        then(path)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def sync_folder(path: Path) -> None:
    """Flush a folder's entries to the disk, so that a rename survives a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def refuse_folder(path: Path) -> None:
    """A file is to be written there.

    Raises:
        ArtifactError: ``path`` is a folder, or empty.
    """
    if path.is_dir():
        raise ArtifactError(f"{path}: is a folder; give the name of a file")


def refuse_no_folder(path: Path) -> None:
    """A file is to be written there now, and no folder is made for it.

    Raises:
        ArtifactError: ``path`` is a folder, or empty, or its folder is missing or not writable.
    """
    refuse_folder(path)
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise ArtifactError(f"{path}: {path.parent} is not a folder that can be written to")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """A full, read-only or broken disk in the block ends in one line that names ``path``.

    Raises:
        ArtifactError: the system refused to write.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            raise
        raise ArtifactError(f"{path}: cannot be written ({error.strerror}); nothing is left of it") from None

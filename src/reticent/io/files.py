"""Files: read within limits and never a pipe or a device; written in one rename, so that readers see all or nothing."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reticent.errors import ArtifactError

_CHUNK = 1 << 20
_UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.EACCES, errno.EPERM}


def read_bytes(path: Path, limit: int, *, follow: bool = True) -> bytes:
    """The bytes of a plain file of at most ``limit`` bytes; pipes, devices and folders are not opened.

    Args:
        limit: bytes.
        follow: False refuses a symbolic link at the end of ``path``.

    Raises:
        ArtifactError: the file is missing, not a plain file, not readable, or too large.
    """
    try:
        with open_plain(path, follow=follow) as stream:
            size = os.fstat(stream).st_size
            if size > limit:
                raise ArtifactError(f"{path}: {size} bytes, more than the {limit} that are allowed")
            with os.fdopen(os.dup(stream), "rb") as file:
                content = file.read(limit + 1)
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read ({error.strerror})") from None
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
        ArtifactError: it is something else than a plain file.
        OSError: it cannot be opened.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW))
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
            raise ArtifactError(f"{path}: {'a folder, ' if folder else ''}not a plain file")
        yield descriptor
    finally:
        os.close(descriptor)


def sha256_file(path: Path) -> str:
    """SHA-256 of a file's bytes as 64 hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def read_start(path: Path, count: int) -> bytes:
    """The first ``count`` bytes of a plain file, or all where it has fewer.

    Raises:
        ArtifactError: the file is missing, not a plain file, or not readable.
    """
    try:
        with open_plain(path) as stream:
            return os.read(stream, count)
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read ({error.strerror})") from None


def write_atomic(path: Path, data: bytes, *, private: bool = False) -> None:
    """Write ``data`` to a new file next to ``path`` and rename it: readers see all of it or none.

    Args:
        path: of the file; one that is there is replaced.
        private: only the owner may read it, from the first byte on.

    Raises:
        ArtifactError: ``path`` is a folder, or empty, or its folder is missing or not writable.
    """
    refuse_no_folder(path)
    with _partial(path, data, private=private) as partial:
        os.replace(partial, path)
    sync_folder(path.parent)


@contextmanager
def _partial(path: Path, data: bytes, *, private: bool) -> Iterator[Path]:
    """A new file in the folder of ``path`` with ``data`` on the disk; it is removed after the block."""
    partial = path.with_name(f".{path.name}.partial-{secrets.token_hex(8)}")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600 if private else 0o666)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        yield partial
    finally:
        partial.unlink(missing_ok=True)


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

"""Where data files lie, and whether they are what they should be."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reticent.io import files
from reticent.kernel.errors import ArtifactError, DataError

LARGEST = 512 << 20
"""Bytes that are read of a data file."""


def data_root() -> Path:
    """The folder that ``RETICENT_DATA`` names.

    Raises:
        DataError: the variable is unset or names no folder.
    """
    value = os.environ.get("RETICENT_DATA")
    if not value:
        raise DataError("RETICENT_DATA is not set: point it at the folder that holds the data sets")
    root = Path(value).expanduser()
    if not root.is_dir():
        raise DataError(f"RETICENT_DATA={value!r} is not a folder")
    return root


def read_checked(path: Path, sha256: str) -> bytes:
    """The bytes of ``path`` after comparing their SHA-256.

    Raises:
        DataError: the file is missing, unreadable or its checksum differs.
    """
    content = read_bytes(path)
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise DataError(f"{path}: SHA-256 is {found[:12]}..., expected {sha256[:12]}...: the file is corrupt")
    return content


def read_bytes(path: Path) -> bytes:
    """The bytes of ``path``, a plain file of at most 512 MiB.

    Raises:
        DataError: the file is missing, unreadable, too large, or not a plain file.
    """
    with _of_data():
        return files.read_bytes(path, LARGEST)


def check_file(path: Path) -> None:
    """See that ``path`` is a plain file that can be opened.

    Raises:
        DataError: it is none.
    """
    with _of_data(), files.open_plain(path):
        pass


@contextmanager
def _of_data() -> Iterator[None]:
    try:
        yield
    except ArtifactError as error:
        raise DataError(f"data file {error}") from None

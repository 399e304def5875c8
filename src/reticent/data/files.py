"""Where data files lie, and whether they are what they should be."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from reticent.errors import ArtifactError, DataError
from reticent.io import files

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
    try:
        return files.read_bytes(path, LARGEST)
    except ArtifactError as error:
        raise DataError(f"data file {error}") from None


def check_file(path: Path) -> None:
    """See that ``path`` is a plain file that can be opened.

    Raises:
        DataError: it is none.
    """
    try:
        with files.open_plain(path):
            return
    except OSError as error:
        raise DataError(f"data file {path}: cannot be read ({error.strerror})") from None
    except ArtifactError as error:
        raise DataError(f"data file {error}") from None

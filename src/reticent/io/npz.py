"""Arrays of numbers and texts from .npy and .npz files: no pickle, and every size is checked before memory is taken."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Collection
from typing import BinaryIO

import numpy as np

from reticent.kernel.errors import ArtifactError
from reticent.kernel.text import listed

_LONGEST_DIRECTORY = 1 << 16


def read_arrays(
    stream: BinaryIO, where: str, needed: Collection[str], most: int, also: Collection[str] | None = ()
) -> dict[str, np.ndarray]:
    """The arrays of a .npz file by name.

    Args:
        stream: of the file; it can seek.
        where: names the file in the message of an error.
        needed: names that must be there.
        most: bytes of all arrays together.
        also: further names that may be there; None for any, which are not opened.

    Raises:
        ArtifactError: the file is damaged or too large once unpacked, or holds other arrays.
    """
    try:
        _check_directory(stream)
        with zipfile.ZipFile(stream) as archive:
            entries = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            if len(entries) != len(archive.infolist()) or not set(needed) <= set(entries):
                raise ArtifactError(
                    f"{where}: must hold the arrays {listed(sorted(needed))}, holds {sorted(entries)[:8]}"
                )
            if also is None:
                entries = {name: entries[name] for name in needed}
            elif extra := set(entries) - {*needed, *also}:
                raise ArtifactError(f"{where}: holds unknown entries {sorted(extra)[:8]}")
            size = sum(info.file_size for info in entries.values())
            if size > most:
                raise ArtifactError(f"{where}: {size} bytes once unpacked, more than the {most} that are allowed")
            return {name: read_npy(_entry(archive, info), f"{where}:{name}") for name, info in entries.items()}
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError) as error:
        raise ArtifactError(f"{where}: not a readable .npz file ({type(error).__name__})") from error


def read_npy(data: bytes, where: str) -> np.ndarray:
    """Parse the bytes of a .npy file without pickle, header first.

    Raises:
        ArtifactError: no .npy header, objects instead of numbers, or a size that does not match.
    """
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        reader = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
        shape, _, dtype = reader(stream)
    except (ValueError, KeyError, EOFError) as error:
        raise ArtifactError(f"{where}: not a plain .npy array ({type(error).__name__})") from error
    if dtype.hasobject or dtype.kind not in "fiubU":
        raise ArtifactError(f"{where}: holds {dtype}, numbers are allowed and objects are refused")
    size = dtype.itemsize
    for length in shape:
        size *= int(length)
    if size != len(data) - stream.tell() or any(length < 0 for length in shape):
        raise ArtifactError(f"{where}: its header promises {size} bytes, it holds {len(data) - stream.tell()}")
    return np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)


def _check_directory(stream: BinaryIO) -> None:
    """Refuse a list of entries that is long in itself, before it is read."""
    size = stream.seek(0, io.SEEK_END)
    stream.seek(max(0, size - 42))
    tail = stream.read()
    stream.seek(0)
    plain = tail[-22:-18] == b"PK\x05\x06" and tail[-2:] == bytes(2) and tail[:4] != b"PK\x06\x07"
    if not plain or int.from_bytes(tail[-10:-6], "little") > _LONGEST_DIRECTORY:
        raise zipfile.BadZipFile("its list of entries is not at the end, or too long")


def _entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """The bytes of one entry, never more than its directory promises."""
    with archive.open(info) as stream:
        return stream.read(info.file_size + 1)

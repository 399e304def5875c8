"""Readers for files that somebody else may have written.

Nothing read here is ever executed: the formats are strict JSON, safetensors and Parquet, there is no
pickle, and a file decides neither which code runs nor which other file is opened. Sizes are checked before
memory is taken. Everything that is wrong ends in one :class:`ArtifactError` that names the file.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from reticent.errors import ArtifactError

JSON_LIMIT = 64 * 2**20
"""Largest JSON file in bytes."""
HEADER_LIMIT = 2**20
"""Largest safetensors header in bytes; a real one has a few hundred."""
DATA_LIMIT = 8 * 2**30
"""Largest safetensors file, and largest table in memory, in bytes."""

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_DTYPES: dict[str, np.dtype] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}


def plain_name(name: object) -> str:
    """A file name without any path in it.

    Raises:
        ArtifactError: the name is no string, has a separator, starts with a dot or is too long.
    """
    if not isinstance(name, str) or _PLAIN_NAME.fullmatch(name) is None:
        raise ArtifactError(f"{name!r} is not a plain file name")
    return name


def inside(root: Path, *names: str) -> Path:
    """``root/names[0]/names[1]/...`` where every name is plain and no component is a link.

    Raises:
        ArtifactError: a name leaves the folder or a component is a symbolic link.
    """
    path = root
    for name in names:
        path = path / plain_name(name)
        if path.is_symlink():
            _refuse(path, "is a symbolic link")
    return path


def read_bytes(path: Path, limit: int) -> bytes:
    """The bytes of a regular file of at most ``limit`` bytes; links and devices are refused.

    Raises:
        ArtifactError: there is no such file, or it is something else, or too long.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        _refuse(path, f"cannot be opened: {error.strerror}")
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        _refuse(path, "is not a regular file")
    with os.fdopen(descriptor, "rb") as file:
        if status.st_size > limit:
            _refuse(path, f"has {status.st_size} bytes, more than {limit}")
        return file.read(limit + 1)


def read_json(path: Path) -> dict[str, Any]:
    """A strict JSON object: no NaN, no Infinity, no number that overflows, no key twice.

    Raises:
        ArtifactError: it is missing, too long, or anything else than that.
    """
    data = read_bytes(path, JSON_LIMIT)
    try:
        value = json.loads(
            data.decode("utf-8"),
            parse_constant=_no_constant,
            parse_float=_finite_float,
            object_pairs_hook=_unique_keys,
        )
    except (ValueError, RecursionError) as error:
        _refuse(path, f"is not strict JSON: {error}")
    if not isinstance(value, dict):
        _refuse(path, "is not a JSON object")
    return value


def read_tensors(path: Path, allow_nonfinite: bool = False) -> dict[str, np.ndarray]:
    """The arrays of a safetensors file; copies, writable, native byte order.

    Args:
        path: the file.
        allow_nonfinite: accept NaN and infinities (no file of reticent holds any).

    Raises:
        ArtifactError: the header is too long or malformed, an array lies outside the data, arrays overlap or
            leave gaps, a number is not finite, or the file is truncated.
    """
    data = read_bytes(path, DATA_LIMIT)
    header_size = int.from_bytes(data[:8], "little") if len(data) >= 8 else -1
    if not 2 <= header_size <= min(HEADER_LIMIT, len(data) - 8):
        _refuse(path, f"is truncated or no safetensors file (header of {header_size} bytes)")
    entries = _header(path, data[8 : 8 + header_size])
    body = memoryview(data)[8 + header_size :]
    arrays, expected = {}, 0
    for name, entry in sorted(entries.items(), key=lambda item: _start(path, item[1])):
        arrays[name], expected = _tensor(path, name, entry, body, expected)
    if expected != len(body):
        _refuse(path, f"has {len(body)} bytes of data, its header describes {expected}")
    if not allow_nonfinite:
        _require_finite(path, arrays)
    return arrays


def read_table(path: Path, columns: Mapping[str, str]) -> dict[str, np.ndarray]:
    """The named columns of a Parquet file.

    Args:
        path: the file.
        columns: name and numpy dtype of every column, all of which must be there and no other.

    Raises:
        ArtifactError: the file is no Parquet, truncated, too large, has other columns or types, or holds nulls or
            numbers that are not finite.
    """
    import pyarrow as pa
    from pyarrow import parquet

    data = read_bytes(path, DATA_LIMIT)
    if len(data) < 12 or data[:4] != b"PAR1" or data[-4:] != b"PAR1":
        _refuse(path, "is truncated or no Parquet file")
    try:
        file = parquet.ParquetFile(pa.BufferReader(data), thrift_string_size_limit=2**20)
        _check_table_shape(path, file.metadata, file.schema_arrow, columns)
        table = file.read()
    except (pa.ArrowException, OSError, ValueError) as error:
        _refuse(path, f"is not readable as Parquet: {str(error).splitlines()[0]}")
    arrays = {}
    for name, dtype in columns.items():
        column = table.column(name)
        if column.null_count:
            _refuse(path, f"has empty cells in column {name}")
        values = column.to_numpy()
        if values.dtype != np.dtype(dtype):
            _refuse(path, f"has {values.dtype} in column {name}, not {dtype}")
        arrays[name] = np.array(values)
    _require_finite(path, arrays)
    return arrays


def _refuse(path: Path, why: str) -> NoReturn:
    raise ArtifactError(f"{path}: {why}")


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number")


def _finite_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is too large")
    return value


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise ValueError("a key occurs twice")
    return mapping


def _header(path: Path, data: bytes) -> dict[str, Any]:
    try:
        header = json.loads(data.decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=_unique_keys)
    except (ValueError, RecursionError) as error:
        _refuse(path, f"has a malformed header: {error}")
    if not isinstance(header, dict):
        _refuse(path, "has a malformed header")
    header.pop("__metadata__", None)
    return header


def _start(path: Path, entry: Any) -> int:
    offsets = entry.get("data_offsets") if isinstance(entry, dict) else None
    if not (isinstance(offsets, list) and len(offsets) == 2 and all(type(x) is int for x in offsets)):
        _refuse(path, "has a malformed header")
    return offsets[0]


def _tensor(path: Path, name: str, entry: dict[str, Any], body: memoryview, expected: int) -> tuple[np.ndarray, int]:
    begin, end = entry["data_offsets"]
    dtype, shape = _DTYPES.get(str(entry.get("dtype"))), entry.get("shape")
    if dtype is None:
        _refuse(path, f"has an array {name!r} of type {entry.get('dtype')!r}")
    if not isinstance(shape, list) or not all(type(x) is int and x >= 0 for x in shape) or len(shape) > 16:
        _refuse(path, f"has an array {name!r} of shape {shape!r}")
    if begin != expected or end > len(body) or end - begin != math.prod(shape) * dtype.itemsize:
        _refuse(path, f"is truncated or corrupt at array {name!r}")
    return np.frombuffer(body[begin:end], dtype=dtype).reshape(shape).copy(), end


def _require_finite(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            _refuse(path, f"has a number that is not finite in {name!r}")


def _check_table_shape(path: Path, metadata: Any, schema: Any, columns: Mapping[str, str]) -> None:
    if sorted(schema.names) != sorted(columns):
        _refuse(path, f"has columns {schema.names}, not {list(columns)}")
    claimed = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
    needed = metadata.num_rows * 8 * len(columns)
    if max(claimed, needed) > DATA_LIMIT or metadata.num_rows < 0:
        _refuse(path, f"claims {metadata.num_rows} rows, more than {DATA_LIMIT} bytes")

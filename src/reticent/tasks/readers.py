"""Readers for files that somebody else may have written.

Nothing read here is ever executed: the formats are strict JSON, safetensors and Parquet, there is no
pickle, and a file decides neither which code runs nor which other file is opened. Sizes are checked before
memory is taken. Everything that is wrong ends in one :class:`ArtifactError` that names the file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from reticent.errors import ArtifactError
from reticent.io import strict
from reticent.io.files import read_bytes

JSON_LIMIT = 64 * 2**20
"""Largest JSON file in bytes."""
HEADER_LIMIT = 2**20
"""Largest safetensors header in bytes; a real one has a few hundred."""
DATA_LIMIT = 8 * 2**30
"""Largest safetensors file, and largest table in memory, in bytes."""

_MOST = 1_000_000  # keys and objects
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")


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


def read_json(path: Path) -> dict[str, Any]:
    """A strict JSON object: no NaN, no Infinity, no number that overflows, no key twice.

    Raises:
        ArtifactError: it is missing, too long, a link, or anything else than that.
    """
    value = strict.loads(read_bytes(path, JSON_LIMIT, follow=False), str(path), keys=_MOST, objects=_MOST)
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
    from safetensors import SafetensorError
    from safetensors.numpy import load

    data = read_bytes(path, DATA_LIMIT, follow=False)
    if int.from_bytes(data[:8], "little") > HEADER_LIMIT:
        _refuse(path, f"has a header of more than {HEADER_LIMIT} bytes")
    try:
        arrays: dict[str, np.ndarray] = load(data)
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        _refuse(path, f"is truncated or no safetensors file ({' '.join(str(error).split())[:200]})")
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

    data = read_bytes(path, DATA_LIMIT, follow=False)
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

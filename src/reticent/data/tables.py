"""Columns of a csv, parquet or npz file of a stranger: its size is asked before it is unpacked."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from reticent._text import printable
from reticent.errors import ArtifactError, DataError
from reticent.io.npz import read_arrays

MOST_COLUMNS = 2000
_MOST_CELLS = 20_000_000
_LONGEST_CELL = 10_000


def read_columns(content: bytes, path: Path) -> dict[str, np.ndarray]:
    """Columns by name, as arrays of numbers or of text.

    Args:
        content: of the file.
        path: its name; the ending says which format.

    Raises:
        DataError: it is no table, has too many cells, or a column holds what is neither number nor text.
    """
    kinds = {".csv": _csv, ".parquet": _parquet, ".npz": _npz}
    if path.suffix.lower() not in kinds:
        raise DataError(f"{path}: a table must be a .csv, .parquet or .npz file")
    try:
        table = kinds[path.suffix.lower()](content)
    except DataError:
        raise
    except Exception as error:
        raise DataError(f"{path}: not a table ({printable(' '.join(str(error).split()), 200)})") from None
    if not table or len(next(iter(table.values()))) < 2:
        raise DataError(f"{path}: a table needs at least two records")
    return table


def _csv(content: bytes) -> dict[str, np.ndarray]:
    from pyarrow import csv

    return _columns(csv.read_csv(io.BytesIO(content)))


def _parquet(content: bytes) -> dict[str, np.ndarray]:
    import pyarrow as pa
    from pyarrow import parquet

    with parquet.ParquetFile(io.BytesIO(content)) as source:
        _check_size(source.metadata.num_rows, source.metadata.num_columns)
        schema = source.schema_arrow
    texts = [field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)]
    return _columns(parquet.read_table(io.BytesIO(content), read_dictionary=texts))


def _npz(content: bytes) -> dict[str, np.ndarray]:
    try:
        found = read_arrays(io.BytesIO(content), "an npz file", ("features", "labels"), 8 * _MOST_CELLS)
    except ArtifactError as error:
        raise DataError(str(error)) from None
    features, labels = found["features"], found["labels"]
    if features.ndim != 2 or labels.shape != features.shape[:1]:
        raise DataError("an npz file needs features of shape (records, columns) and one label for each record")
    _check_size(*features.shape)
    table = {f"x{i}": features[:, i].astype(float) for i in range(features.shape[1])}
    return {**table, "label": np.array([str(x) for x in labels.tolist()])}


def _check_size(rows: int, columns: int) -> None:
    """Before memory is taken.

    Raises:
        DataError: there are too many of them.
    """
    if columns > MOST_COLUMNS or rows * columns > _MOST_CELLS:
        raise DataError(
            f"a table of {rows} records and {columns} columns: at most {_MOST_CELLS} cells and {MOST_COLUMNS} columns "
            "are read"
        )


def _columns(table: Any) -> dict[str, np.ndarray]:
    _check_size(table.num_rows, table.num_columns)
    found = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        name = name.strip()
        if name in found:
            raise DataError(f"two columns are called {printable(name)!r}")
        if column.null_count:
            raise DataError(f"column {printable(name)!r} has {column.null_count} empty cells: fill or drop them")
        found[name] = _cells(column, name)
    return found


def _cells(column: Any, name: str) -> np.ndarray:
    """Numbers, or texts; each different text is held once."""
    import pyarrow as pa

    if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
        return np.asarray(column.to_numpy(), dtype=float)
    known = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    parts = []
    for chunk in known.chunks:
        texts = [str(cell).strip() for cell in chunk.dictionary.to_pylist()]
        longest = max(map(len, texts), default=0)
        if longest > _LONGEST_CELL:
            raise DataError(f"column {printable(name)!r} holds a text of {longest} characters, at most {_LONGEST_CELL}")
        parts.append(np.array(texts, dtype=object)[chunk.indices.to_numpy(zero_copy_only=False)])
    return np.concatenate(parts) if parts else np.zeros(0, dtype=object)

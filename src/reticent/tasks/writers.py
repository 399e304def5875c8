"""Writers of what tasks leave behind: a reader sees the old file, or the new one, never a part."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from reticent.errors import ArtifactError
from reticent.io import strict
from reticent.io.files import write_atomic


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON object atomically (indented, keys sorted)."""
    write_atomic(path, strict.dumps(dict(value), ordered=True).encode(), private=True)


def write_tensors(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays as safetensors atomically; the bytes depend on names, types and values only."""
    write_atomic(path, tensors_bytes(arrays), private=True)


def tensors_bytes(arrays: Mapping[str, np.ndarray]) -> bytes:
    """The safetensors file of ``arrays``, in the order of their names.

    Raises:
        ArtifactError: a number is not finite: a result with NaN is a failure, and is not kept.
    """
    from safetensors.numpy import save

    ready = {}
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ArtifactError(f"{name!r} holds a number that is not finite")
        ready[name] = array
    return save(ready)


def write_table(path: Path, columns: Mapping[str, np.ndarray]) -> None:
    """Write equally long one-dimensional columns as Parquet atomically."""
    import pyarrow as pa
    from pyarrow import parquet

    sink = pa.BufferOutputStream()
    parquet.write_table(pa.table({name: np.asarray(column) for name, column in columns.items()}), sink)
    write_atomic(path, sink.getvalue().to_pybytes(), private=True)

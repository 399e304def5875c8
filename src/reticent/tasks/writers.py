"""Atomic writers: a reader sees the old file, or the new one, never a part.

Each writes to a temporary file in the same folder, flushes it to the disk and renames it.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from reticent.errors import ArtifactError


def canonical_json(value: Any) -> bytes:
    """Strict JSON with sorted keys and no spaces: equal values have equal bytes.

    Raises:
        ArtifactError: ``value`` holds NaN, an infinity, or something that JSON has no form for.
    """
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    except (TypeError, ValueError) as error:
        raise ArtifactError(f"cannot be written as strict JSON: {error}") from None
    return text.encode()


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON object atomically (indented, keys sorted)."""
    canonical_json(value)
    write_bytes(path, (json.dumps(value, sort_keys=True, indent=1, allow_nan=False) + "\n").encode())


def write_tensors(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays as safetensors atomically; the bytes depend on names, types and values only."""
    write_bytes(path, tensors_bytes(arrays))


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
    write_bytes(path, sink.getvalue().to_pybytes())


def write_bytes(path: Path, data: bytes) -> None:
    """Write ``data`` atomically and flush it to the disk."""
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Flush a folder's entries to the disk, so that a rename survives a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

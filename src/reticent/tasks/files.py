"""Files of a run directory: strict JSON and safetensors, which somebody else may have written.

Nothing read here is ever executed, and a file decides neither which code runs nor which other file is opened. What is
wrong ends in one ``ArtifactError`` that names the file. A reader sees an old file or a new one, never a part.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from reticent.io import strict
from reticent.io.files import read_bytes, write_atomic
from reticent.kernel.errors import ArtifactError

JSON_LIMIT = 64 * 2**20
"""Largest JSON file in bytes."""
HEADER_LIMIT = 2**20
"""Largest safetensors header in bytes; a real one has a few hundred."""
DATA_LIMIT = 8 * 2**30
"""Largest safetensors file in bytes."""

_MOST = 1_000_000  # keys and objects
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")


def inside(root: Path, *names: str) -> Path:
    """``root/names[0]/names[1]/...`` where every name is plain and no component is a link.

    Raises:
        ArtifactError: a name has a separator, starts with a dot or is too long, or a component is a symbolic link.
    """
    path = root
    for name in names:
        if not isinstance(name, str) or _PLAIN_NAME.fullmatch(name) is None:
            raise ArtifactError(f"{name!r} is not a plain file name")
        path = path / name
        if path.is_symlink():
            raise ArtifactError(f"{path}: is a symbolic link")
    return path


def read_json(path: Path) -> dict[str, Any]:
    """A strict JSON object: no NaN, no Infinity, no number that overflows, no key twice.

    Raises:
        ArtifactError: it is missing, too long, or anything else than that.
    """
    value = strict.loads(read_bytes(path, JSON_LIMIT, follow=False), str(path), keys=_MOST, objects=_MOST)
    if not isinstance(value, dict):
        raise ArtifactError(f"{path}: is not a JSON object")
    return value


def read_tensors(path: Path, digest: str | None = None) -> dict[str, np.ndarray]:
    """The arrays of a safetensors file; copies, writable.

    Args:
        digest: SHA-256 of the file's bytes, checked before anything is made of them; None: not known.

    Raises:
        ArtifactError: the file has another digest, is truncated or malformed, or a number is not finite.
    """
    data = read_bytes(path, DATA_LIMIT, follow=False)
    if digest is not None and (found := hashlib.sha256(data).hexdigest()) != digest:
        raise ArtifactError(f"{path}: its SHA-256 is {found[:12]}..., not the recorded one; delete it and resume")
    return parse_tensors(data, str(path))


def parse_tensors(
    data: bytes, where: str, expected: Mapping[str, tuple[tuple[int, ...], str]] | None = None
) -> dict[str, np.ndarray]:
    """The arrays in the bytes of a safetensors file; copies, writable.

    Args:
        where: names the file in the message of an error.
        expected: shapes and types by name, if they are known.

    Raises:
        ArtifactError: it is truncated or malformed, holds other arrays, or a number is not finite.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    if not 2 <= int.from_bytes(data[:8], "little") <= min(HEADER_LIMIT, len(data) - 8):
        raise ArtifactError(f"{where}: is truncated, or not a safetensors file")
    try:
        arrays = {name: np.array(array) for name, array in load(data).items()}
    except (SafetensorError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise ArtifactError(f"{where}: is not a safetensors file: {' '.join(str(error).split())[:200]}") from None
    found = {name: (array.shape, array.dtype.name) for name, array in arrays.items()}
    if expected is not None and found != dict(expected):
        name = next(name for name in sorted({*found, *expected}) if found.get(name) != expected.get(name))
        raise ArtifactError(f"{where}: {name} is {found.get(name)}, expected {expected.get(name)}")
    _require_finite(arrays, f"{where}: ")
    return arrays


def _require_finite(arrays: Mapping[str, np.ndarray], where: str = "") -> None:
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ArtifactError(f"{where}{name!r} holds a number that is not finite")


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON object atomically (indented, keys sorted)."""
    write_atomic(path, strict.dumps(dict(value), ordered=True).encode(), private=True)


def tensors_bytes(arrays: Mapping[str, np.ndarray]) -> bytes:
    """The safetensors file of ``arrays``, in the order of their names; it depends on names, types and values only.

    Raises:
        ArtifactError: a number is not finite: a result with NaN is a failure, and is not kept.
    """
    from safetensors.numpy import save

    _require_finite(arrays)
    return save({name: np.ascontiguousarray(arrays[name]) for name in sorted(arrays)})

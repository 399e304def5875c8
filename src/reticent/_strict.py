"""Strict JSON and checksums: one way to write and to read back what a run says about itself."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, NoReturn

from reticent.errors import ArtifactError

_CHUNK = 1 << 20


def dumps(value: Any) -> str:
    """JSON text without NaN or Infinity, keys in the given order, one trailing newline.

    Raises:
        ArtifactError: a number is not finite.
    """
    try:
        return json.dumps(value, allow_nan=False, indent=1) + "\n"
    except ValueError as error:
        raise ArtifactError(f"cannot write as JSON: {error}") from None


def loads(text: str | bytes, where: str) -> Any:
    """Parse JSON; NaN, Infinity and repeated keys are refused.

    Args:
        text: the document; bytes must be UTF-8.
        where: names the document in the message of an error.

    Raises:
        ArtifactError: the document is not strict JSON.
    """
    try:
        content = text.decode("utf-8") if isinstance(text, bytes) else text
        return json.loads(content, parse_constant=_no_constant, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"{where}: not valid JSON ({error})") from None


def sha256_file(path: Path) -> str:
    """SHA-256 of a file's bytes as 64 hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def write_atomic(path: Path, data: bytes) -> None:
    """Write ``data`` beside ``path`` and rename it into place: readers see all of it or none."""
    partial = path.with_name(f".{path.name}.partial-{os.getpid()}")
    try:
        with partial.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not allowed")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key is repeated")
    return result

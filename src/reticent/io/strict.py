"""Files of strangers: read within limits, as strict JSON; and one way to write and to check what a run holds."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from reticent.errors import ArtifactError

_CHUNK = 1 << 20
_DEEPEST = 64
_LONGEST_INTEGER = 19
_MOST_KEYS = 5_000
_MOST_OBJECTS = 5_000
_MOST_LISTS = 1_000_000
_MOST_VALUES = 8_000_000
"""A run of a million steps states two numbers for each: more than this is nobody's document."""
# Possessive, and a text that never ends runs to the end: one pass, whatever stands there.
_TOKENS = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.EACCES, errno.EPERM}


def dumps(value: Any, *, indent: bool = True) -> str:
    """JSON text without NaN or Infinity, keys in the given order, one trailing newline.

    Without ``indent`` it stands on one line, and millions of numbers are written in seconds.

    Raises:
        ArtifactError: a number is not finite.
    """
    try:
        return json.dumps(value, allow_nan=False, indent=1 if indent else None) + "\n"
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"cannot write as JSON: {error}") from None


def loads(text: str | bytes, where: str, *, keys: int = _MOST_KEYS, objects: int = _MOST_OBJECTS) -> Any:
    """Parse JSON from a stranger; takes time and memory in proportion to its length.

    NaN, Infinity, repeated keys, numbers that overflow, whole numbers of more than 19 digits, half characters
    (lone surrogates) and documents nested more than 64 deep are refused.

    Args:
        text: the document; bytes must be UTF-8.
        where: names the document in the message of an error.
        keys: the most keys that one object may have.
        objects: the most objects that the document may hold.

    Raises:
        ArtifactError: the document is not strict JSON, or larger than allowed.
    """
    reader = _Objects(keys, objects)
    try:
        content = text.decode("utf-8") if isinstance(text, bytes) else text
        _check_depth(content, objects)
        value = json.loads(
            content,
            parse_constant=_no_constant,
            parse_float=_finite,
            parse_int=_whole,
            object_pairs_hook=reader.unique,
        )
        if _SURROGATE.search(content):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise ArtifactError(f"{where}: not valid JSON (a text holds half a character)") from None
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"{where}: not valid JSON ({error})") from None
    return value


def read_bytes(path: Path, limit: int, *, follow: bool = True) -> bytes:
    """The bytes of a plain file of at most ``limit`` bytes; pipes, devices and folders are not opened.

    Args:
        path: of the file.
        limit: bytes.
        follow: False refuses a symbolic link at the end of ``path``.

    Raises:
        ArtifactError: the file is missing, not a plain file, not readable, or too large.
    """
    try:
        with open_plain(path, follow=follow) as stream:
            size = os.fstat(stream).st_size
            if size > limit:
                raise ArtifactError(f"{path}: {size} bytes, more than the {limit} that it may have")
            with os.fdopen(os.dup(stream), "rb") as file:
                content = file.read(limit + 1)
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read ({error.strerror})") from None
    if len(content) > limit:
        raise ArtifactError(f"{path}: more than the {limit} bytes that it may have")
    return content


@contextmanager
def open_plain(path: Path, *, follow: bool = True) -> Iterator[int]:
    """A file descriptor of a plain file; opening a pipe waits for nobody.

    Raises:
        ArtifactError: it is something else than a plain file.
        OSError: it cannot be opened.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW))
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ArtifactError(f"{path}: not a plain file")
        yield descriptor
    finally:
        os.close(descriptor)


def sha256_file(path: Path) -> str:
    """SHA-256 of a file's bytes as 64 hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def read_start(path: Path, count: int) -> bytes:
    """The first ``count`` bytes of a plain file, or all where it has fewer.

    Raises:
        ArtifactError: the file is missing, not a plain file, or not readable.
    """
    try:
        with open_plain(path) as stream:
            return os.read(stream, count)
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read ({error.strerror})") from None


def write_atomic(path: Path, data: bytes, *, private: bool = False) -> None:
    """Write ``data`` beside ``path`` and rename it into place: readers see all of it or none.

    Args:
        path: of the file; one that is there is replaced.
        data: its bytes.
        private: only the owner may read it, from the first byte on.

    Raises:
        ArtifactError: ``path`` is a folder, or empty.
    """
    refuse_folder(path)
    with _partial(path, data, private=private) as partial:
        os.replace(partial, path)


@contextmanager
def _partial(path: Path, data: bytes, *, private: bool) -> Iterator[Path]:
    """A new file beside ``path`` with ``data`` on the disk; it is gone after the block."""
    partial = path.with_name(f".{path.name}.partial-{secrets.token_hex(8)}")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600 if private else 0o666)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        yield partial
    finally:
        partial.unlink(missing_ok=True)


def refuse_folder(path: Path) -> None:
    """A file is to be written there.

    Raises:
        ArtifactError: ``path`` is a folder, or empty.
    """
    if path.is_dir():
        raise ArtifactError(f"{path}: is a folder; give the name of a file")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """A full, read-only or broken disk in the block ends in one line that names ``path``.

    Raises:
        ArtifactError: the system refused to write.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            raise
        raise ArtifactError(f"{path}: cannot be written ({error.strerror}); nothing is left of it") from None


class _Objects:
    """Turns pairs into dictionaries, and counts."""

    def __init__(self, keys: int, objects: int) -> None:
        self._keys, self._left, self._most = keys, objects, objects

    def unique(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        self._left -= 1
        if self._left < 0:
            raise ValueError(f"more than {self._most} objects")
        if len(pairs) > self._keys:
            raise ValueError(f"an object has {len(pairs)} keys, at most {self._keys} are allowed")
        result = dict(pairs)
        if len(result) != len(pairs):
            raise ValueError("a key is repeated")
        return result


def _check_depth(content: str, objects: int) -> None:
    """Refuse what is nested too deep, or long in itself, before anything is built from it."""
    if content.count(",") > _MOST_VALUES:
        raise ValueError(f"more than {_MOST_VALUES} values")
    depth, lists, left = 0, 0, objects
    for token in _TOKENS.finditer(content):
        first = content[token.start()]
        if first in "[{":
            depth += 1
            if depth > _DEEPEST:
                raise ValueError(f"nested more than {_DEEPEST} deep")
            left, lists = left - (first == "{"), lists + (first == "[")
            if left < 0:
                raise ValueError(f"more than {objects} objects")
            if lists > _MOST_LISTS:
                raise ValueError(f"more than {_MOST_LISTS} lists")
        elif first in "]}":
            depth -= 1


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not allowed")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"the number {digits[:20]} is too large")
    return number


def _whole(digits: str) -> int:
    if len(digits) > _LONGEST_INTEGER + 1:
        raise ValueError(f"a whole number of {len(digits)} digits")
    return int(digits)

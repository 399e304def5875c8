"""Strict JSON, read within limits and written; and its canonical form, of which digests and signatures are made."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any, NoReturn

from reticent.io.files import read_bytes
from reticent.kernel.errors import ArtifactError

_DEEPEST = 64
_LONGEST_INTEGER = 19
_MOST_KEYS = 5_000
_MOST_OBJECTS = 5_000
_MOST_LISTS = 1_000_000
_MOST_VALUES = 8_000_000
"""A run of a million steps states two numbers for each: more than this is nobody's document."""
LARGEST_FILE = 64 << 20
"""Bytes of a document."""
LARGEST_INTEGER = 2**53 - 1
"""Beyond it not every reader of JSON keeps a whole number; documents that are signed hold it as text."""
# Possessive, and a text that never ends runs to the end: one pass over any text.
_TOKENS = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def dumps(value: Any, *, indent: bool = True, ordered: bool = False) -> str:
    """JSON text without NaN or Infinity, keys in the given order or ``ordered``, one trailing newline.

    Without ``indent`` it is one line, and millions of numbers are written in seconds.

    Raises:
        ArtifactError: a number is not finite.
    """
    try:
        return json.dumps(value, allow_nan=False, indent=1 if indent else None, sort_keys=ordered) + "\n"
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"cannot write as JSON: {error}") from None


def canonical(document: Any) -> bytes:
    """Canonical JSON by RFC 8785: documents that differ have different bytes.

    Raises:
        ArtifactError: something in it has no canonical form, such as a whole number beyond 2^53.
    """
    import rfc8785

    try:
        return rfc8785.dumps(document)
    except (rfc8785.CanonicalizationError, RecursionError) as error:
        raise ArtifactError(f"the document has no canonical form: {error}") from None


def portable(value: Any) -> Any:
    """JSON data as every reader understands it: whole numbers without a point, those beyond 2^53 as text."""
    if isinstance(value, dict):
        return {key: portable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [portable(item) for item in value]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) <= LARGEST_INTEGER else value
    return value if abs(value) <= LARGEST_INTEGER else str(value)


def load(path: Path, limit: int = LARGEST_FILE) -> Any:
    """The document in a plain file of at most ``limit`` bytes.

    Raises:
        ArtifactError: the file cannot be read, is larger, or holds no strict JSON.
    """
    return loads(read_bytes(path, limit), str(path))


def loads(text: str | bytes, where: str, *, keys: int = _MOST_KEYS, objects: int = _MOST_OBJECTS) -> Any:
    """Parse JSON from outside; time and memory grow with its length only.

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
    try:
        content = text.decode("utf-8") if isinstance(text, bytes) else text
        _check_depth(content, objects)
        value = json.loads(
            content,
            parse_constant=_no_constant,
            parse_float=_finite,
            parse_int=_whole,
            object_pairs_hook=lambda pairs: _unique(pairs, keys),
        )
        if _SURROGATE.search(content):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise ArtifactError(f"{where}: not valid JSON (a text holds half a character)") from None
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"{where}: not valid JSON ({error})") from None
    return value


def _unique(pairs: list[tuple[str, Any]], keys: int) -> dict[str, Any]:
    if len(pairs) > keys:
        raise ValueError(f"an object has {len(pairs)} keys, at most {keys} are allowed")
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

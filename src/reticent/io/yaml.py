"""YAML from outside, the one way to read it: plain values, each in one meaning, within limits.

A document is a tree of mappings, lists, texts, numbers, ``true``, ``false`` and ``null``. Whatever makes a short text
long (anchors, aliases, merge keys), names a type (tags), or has two meanings (``1:00``, ``010``, ``1_000``) is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from yaml import events

from reticent.io.files import read_text
from reticent.kernel.errors import ArtifactError
from reticent.kernel.text import printable

_WORDS: dict[str, bool | None] = dict.fromkeys(("", "~", "null", "Null", "NULL"))
_WORDS |= {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,18})")
_REAL = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_INFINITE = {".inf": math.inf, "+.inf": math.inf, "-.inf": -math.inf, ".nan": math.nan}
_LONGEST_NUMBER = 400
# Hours or a number in base 60; octal or decimal; a number or a text.
_TWO_MEANINGS = re.compile(
    r"[-+]?(?:[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?|0[0-9_]+|0b[01_]+|0o[0-7_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*_[0-9_.]*)"
)


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that a document may be.

    Attributes:
        size: bytes.
        nodes: values, keys, lists and mappings together.
        depth: lists and mappings inside each other.
    """

    size: int = 1 << 16
    nodes: int = 10_000
    depth: int = 16


USUAL = Limits()


def load_file(path: Path, limits: Limits = USUAL) -> Any:
    """The document in a plain file, as plain Python values.

    Raises:
        ArtifactError: the file cannot be read, is not a plain file, is not UTF-8, or holds no YAML within ``limits``.
    """
    return loads(read_text(path, limits.size), str(path), limits)


def loads(text: str, where: str, limits: Limits = USUAL) -> Any:
    """The document as plain Python values; every key of a mapping is a text, as it is written.

    Args:
        text: one document.
        where: names it in the message of an error.
        limits: the most that it may be.

    Raises:
        ArtifactError: it is not YAML, is larger than allowed, or uses what is refused here.
    """
    try:
        if len(text.encode()) > limits.size:
            raise _RefusedError(f"more than {limits.size} bytes")
        return _Reader(yaml.parse(text, Loader=yaml.SafeLoader), limits).document()
    except _RefusedError as error:
        raise ArtifactError(f"{where}: not valid YAML here ({printable(error, 300)})") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # The scanner raises what Python's own conversions raise.
        raise ArtifactError(f"{where}: not valid YAML ({printable(' '.join(str(error).split()), 300)})") from None


class _RefusedError(Exception):
    """Why a document is refused."""


class _Reader:
    """Builds values from the events of a parser, and counts."""

    def __init__(self, stream: Iterator[events.Event], limits: Limits) -> None:
        self._stream, self._limits, self._left = stream, limits, limits.nodes

    def document(self) -> Any:
        """The one document of the stream; None where there is none."""
        next(self._stream)
        if isinstance(next(self._stream), events.StreamEndEvent):
            return None
        value = self._value(next(self._stream), 0)
        next(self._stream)
        if not isinstance(next(self._stream), events.StreamEndEvent):
            raise _RefusedError("more than one document")
        return value

    def _value(self, event: events.Event, depth: int) -> Any:
        self._check(event, depth)
        if isinstance(event, events.ScalarEvent):
            _whole_text(event)
            return _plain(event) if event.implicit[0] else event.value
        if isinstance(event, events.SequenceStartEvent):
            return [self._value(inner, depth + 1) for inner in self._until(events.SequenceEndEvent)]
        found: dict[str, Any] = {}
        for key in self._until(events.MappingEndEvent):
            name = self._key(key, depth + 1)
            if name in found:
                raise _RefusedError(f"the key {name!r} is repeated{_place(key)}")
            found[name] = self._value(next(self._stream), depth + 1)
        return found

    def _key(self, event: events.Event, depth: int) -> str:
        self._check(event, depth)
        if not isinstance(event, events.ScalarEvent):
            raise _RefusedError(f"a list or mapping as a key{_place(event)}")
        if event.value == "<<" and event.implicit[0]:
            raise _RefusedError(f"a merge key <<{_place(event)}")
        return _whole_text(event)

    def _until(self, end: type[events.Event]) -> Iterator[events.Event]:
        while not isinstance(event := next(self._stream), end):
            yield event

    def _check(self, event: events.Event, depth: int) -> None:
        self._left -= 1
        if self._left < 0:
            raise _RefusedError(f"more than {self._limits.nodes} values")
        if isinstance(event, events.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise _RefusedError(f"an anchor or alias{_place(event)}")
        if getattr(event, "tag", None) is not None:
            raise _RefusedError(f"a tag such as !!{str(event.tag).rpartition(':')[2]}{_place(event)}")  # type: ignore[attr-defined]
        if depth > self._limits.depth:
            raise _RefusedError(f"nested more than {self._limits.depth} deep")


def _whole_text(event: events.ScalarEvent) -> str:
    text = str(event.value)
    if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
        raise _RefusedError(f"a text holds half a character{_place(event)}")
    return text


def _plain(event: events.ScalarEvent) -> Any:
    """A scalar without quotes: a word, a number, or a text."""
    text = event.value
    if text in _WORDS:
        return _WORDS[text]
    if _WHOLE.fullmatch(text):
        return int(text)
    if _TWO_MEANINGS.fullmatch(text) and not _REAL.fullmatch(text):
        raise _RefusedError(
            f"{text[:40]!r} has several meanings{_place(event)}: write a plain number, or put it in quotes"
        )
    if text.lower() in _INFINITE:
        return _INFINITE[text.lower()]
    if not _REAL.fullmatch(text) or len(text) > _LONGEST_NUMBER:
        return text
    number = float(text)
    if math.isinf(number):
        raise _RefusedError(f"the number {text[:20]} is too large{_place(event)}")
    return number


def _place(event: events.Event) -> str:
    mark = event.start_mark
    return "" if mark is None else f" in line {mark.line + 1}"

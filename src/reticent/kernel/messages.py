"""What is said: a key with typed values. ``reticent.languages`` has the words of each language for it.

Whoever says something names a key and its values. Nobody reads a sentence back.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Union

TEXT = "text"
"""Key of a sentence that has no key: of another package, or of an exception. It is English."""
RECORD, PERSON, PERSONS, CLIENT = "record", "person", "persons", "client"
"""Whom a message can be about: one record, a person who has one, a person who has several, a client with all."""
_LONGEST_KEY = 100


@dataclass(frozen=True, slots=True)
class Figure:
    """A number as it is shown: in digits that are rounded already, to the side that its claim needs."""

    digits: str
    unit: str = ""

    def __str__(self) -> str:
        return self.digits + self.unit


Value = Union[str, Figure, "Message", tuple["Message", ...]]
"""A name, which is the same in every language; a number; another message; sentences one after the other."""


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Message:
    """A key with values.

    Attributes:
        key: of the catalogues.
        values: by name, in the order of names; ``whom`` says whom it is about, where that is not one record.

    Example:
        >>> str(Message("share.at-most", share=Figure("55.8", "%")))
        'at most 55.8%'
    """

    key: str
    values: tuple[tuple[str, Value], ...]

    def __init__(self, key: str, /, **values: Value) -> None:
        object.__setattr__(self, "key", key)
        object.__setattr__(self, "values", tuple(sorted(values.items())))

    def about(self, whom: str) -> Message:
        """The same about others; what is about one record is said so without a word."""
        return self if whom == RECORD else self.given(whom=whom)

    def given(self, **values: Value) -> Message:
        """The same with more values."""
        return Message(self.key, **{**dict(self.values), **values})

    def under(self, case: str) -> Message:
        """What is said in a special case, where the catalogues have a sentence for it."""
        found = Message(f"{self.key}.{case}", **dict(self.values))
        return found if found.known else self

    @property
    def known(self) -> bool:
        """Whether the catalogues have the key."""
        return self.key in _english().words

    def __str__(self) -> str:
        return "".join(map(str, _english().pieces(self)))

    def __contains__(self, words: str) -> bool:
        return words in str(self)

    def __repr__(self) -> str:
        return f"Message({self.key!r}, {dict(self.values)})"


def said(text: Message | str) -> Message:
    """A message as it is, a plain string as the message that has no key."""
    return text if isinstance(text, Message) else Message(TEXT, text=text)


def _english() -> Any:
    """Catalogues are read when somebody reads a message."""
    return import_module("reticent.languages").language("en")


def to_json(value: Value, *, english: bool = False) -> Any:
    """A value as JSON data; with the English of each message on request."""
    match value:
        case Message():
            values = {name: to_json(one) for name, one in value.values}
            return {
                "key": value.key,
                **({"values": values} if values else {}),
                **({"en": str(value)} if english else {}),
            }
        case Figure():
            return {"number": value.digits, **({"unit": value.unit} if value.unit else {})}
        case tuple():
            return [to_json(one) for one in value]
    return value


def is_message(data: Any) -> bool:
    """Whether JSON data have the form of a message."""
    return isinstance(data, dict) and isinstance(data.get("key"), str) and data.keys() <= {"key", "values"}


def from_json(data: Any) -> Message:
    """A message from JSON data.

    Raises:
        ValueError: it is none.
    """
    found = _read(data)
    if not isinstance(found, Message):
        raise ValueError("must be a message: a key with values")
    return found


def _read(data: Any) -> Value:
    match data:
        case str() | Message():
            return data
        case {"number": str(digits), **rest} if rest in ({}, {"unit": "%"}):
            return Figure(digits, "%" if rest else "")
        case {"key": str(key), **rest} if rest.keys() <= {"values"} and len(key) <= _LONGEST_KEY:
            values = rest.get("values", {})
            if isinstance(values, dict) and all(isinstance(name, str) for name in values):
                return Message(key, **{name: _read(one) for name, one in values.items()})
        case list():
            return tuple(map(from_json, data))
    raise ValueError("must be a message: a key with values")

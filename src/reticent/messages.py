"""What is said: a key with typed values, and the words of each language for it (``translations/*.po``).

Every catalogue is a gettext file that says what stands for each key; English is one of them. A message names its key
and its values. Nobody reads a sentence back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from gettext import c2py
from importlib.resources import files
from typing import Any, Union

PLACE = re.compile(r"\{([^{}]+)\}")
"""What stands in braces: a value of the message, or a word with forms for whom the message is about."""
TEXT = "text"
"""Key of a sentence that has no key: of another package, or of an exception. It is English."""
COUNTED = "n"
"""The value that the plural forms of a message follow."""
RECORD, PERSON, PERSONS, CLIENT = "record", "person", "persons", "client"
"""Whom a message can be about: one record, a person who has one, a person who has several, a client with all."""
_LINE = re.compile(r'(?:(msgctxt|msgid|msgid_plural|msgstr(?:\[\d\])?) )?("(?:[^"\\]|\\.)*")')
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
        return self.key in language("en").words

    @property
    def places(self) -> tuple[str, ...]:
        """What stands in braces where the English catalogue has the key."""
        forms = language("en").words.get(self.key, ())
        return tuple(dict.fromkeys(name for form in forms for name in PLACE.findall(form)))

    def __str__(self) -> str:
        return "".join(map(str, language("en").pieces(self)))

    def __repr__(self) -> str:
        return f"Message({self.key!r}, {dict(self.values)})"


def said(text: Message | str) -> Message:
    """A message as it is, a plain string as the message that has no key."""
    return text if isinstance(text, Message) else Message(TEXT, text=text)


class English(str):
    """English words in a text of another language."""


@dataclass(frozen=True, eq=False)
class Language:
    """The words of one language.

    Attributes:
        code: such as ``de``.
        words: what stands for a key; several forms where it counts something.
        forms: by whom and word: what stands for a word about one record.
        plural_of: index of the form for a number.
        missed: called with each key and English text that has no words here.
    """

    code: str
    words: Mapping[str, tuple[str, ...]]
    forms: Mapping[tuple[str, str], str]
    plural_of: Callable[[int], int]
    missed: Callable[[str], None] = field(default=lambda key: None)

    def pieces(self, value: Any, whom: str = RECORD) -> Iterator[Any]:
        """A value in this language, piece by piece: strings, and whatever else was given as a value."""
        if isinstance(value, Message):
            yield from self._said(value, whom)
        elif isinstance(value, Figure):
            digits = value.digits.replace(".", self.words["number.decimal"][0])
            shown = self.words["number.%"][0].replace("{digits}", digits) if value.unit else digits
            yield shown
        elif isinstance(value, tuple):
            for place, one in enumerate(value):
                yield from (*([" "] if place else []), *self.pieces(one, whom))
        else:
            yield value

    def _said(self, message: Message, whom: str) -> Iterator[Any]:
        given = dict(message.values)
        whom = str(given.get("whom", whom))
        forms = self.words.get(message.key)
        if forms is None:
            self.missed(message.key if message.key != TEXT else str(given.get(TEXT)))
            text = given.get(TEXT, "") if message.key == TEXT else message.key
            yield str(text) if self.code == "en" else English(text)
            return
        for place, part in enumerate(PLACE.split(self._form(forms, given))):
            if place % 2 and part in given:
                yield from self.pieces(given[part], whom)
            else:
                yield self.forms.get((whom, part), part) if place % 2 else part

    def _form(self, forms: tuple[str, ...], given: Mapping[str, Any]) -> str:
        count = str(given.get(COUNTED, 1))
        return (
            forms[0]
            if len(forms) == 1
            else forms[self.plural_of(int(count) if count.isdecimal() and len(count) < 9 else 2)]
        )


@cache
def languages() -> tuple[str, ...]:
    """Every language that has words; English first."""
    found = sorted(file.name[:-3] for file in _folder().iterdir() if file.name.endswith(".po"))
    return ("en", *(code for code in found if code != "en"))


@cache
def language(code: str) -> Language:
    """The language with this code, of ``languages``."""
    return parse((_folder() / f"{code}.po").read_text(encoding="utf-8"), code)


def parse(text: str, code: str) -> Language:
    """A language from the text of a ``.po`` file; entries that are empty or marked fuzzy are missing.

    Raises:
        ValueError: a line is none of a ``.po`` file, or the plural forms are no formula.
    """
    head, *entries = _entries(text, code)
    stated = re.search(r"plural=([^;\\]+)", head.get("msgstr", ""))
    words: dict[str, tuple[str, ...]] = {}
    forms: dict[tuple[str, str], str] = {}
    for entry in entries:
        told = tuple(entry[key] for key in sorted(entry) if key.startswith("msgstr"))
        if all(told) and "fuzzy" not in entry and "msgctxt" in entry:
            forms[entry["msgctxt"], entry["msgid"]] = told[0]
        elif all(told) and "fuzzy" not in entry:
            words[entry["msgid"]] = told
    return Language(code, words, forms, c2py(stated[1].strip() if stated else "n != 1"))


def _folder() -> Any:
    return files("reticent") / "translations"


def _entries(text: str, where: str) -> Iterator[dict[str, str]]:
    entry: dict[str, str] = {}
    key = ""
    for number, line in enumerate([*text.split("\n"), ""], 1):
        if not line:
            if "msgid" in entry:
                yield entry
            entry, key = {}, ""
        elif line.startswith("#"):
            entry |= {"fuzzy": "yes"} if line.startswith("#,") and "fuzzy" in line else {}
        else:
            found = _LINE.fullmatch(line)
            if found is None or not (found[1] or key):
                raise ValueError(f"{where}: line {number} is no line of a catalogue")
            key = found[1] or key
            entry[key] = entry.get(key, "") + json.loads(found[2])


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


def spoken(data: Any) -> Any:
    """JSON data of a document with the English of each message in it."""
    if isinstance(data, dict) and isinstance(data.get("key"), str) and data.keys() <= {"key", "values"}:
        return to_json(from_json(data), english=True)
    if isinstance(data, dict):
        return {name: spoken(one) for name, one in data.items()}
    return [spoken(one) for one in data] if isinstance(data, list) else data

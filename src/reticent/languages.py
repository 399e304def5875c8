"""The words of each language for what is said by key: gettext files (``translations/*.po``), read as they are.

Every catalogue has the same keys. English is one of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from gettext import c2py
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from reticent.kernel.messages import RECORD, TEXT, Figure, Message

PLACE = re.compile(r"\{([^{}]+)\}")
"""What stands in braces: a value of the message, or a word with forms for whom the message is about."""
COUNTED = "n"
"""The value that the plural forms of a message follow."""
_POWER, _RAISED = re.compile(r"([\d.,]+)e([+-]?\d+)"), str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_LINE = re.compile(r'(?:(msgctxt|msgid|msgid_plural|msgstr(?:\[\d\])?) )?("(?:[^"\\]|\\.)*")')


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
            digits = self._power(value.digits.replace(".", self.words["number.decimal"][0]))
            shown = self.words["number.%"][0].replace("{digits}", digits) if value.unit else digits
            yield shown
        elif isinstance(value, tuple):
            for place, one in enumerate(value):
                yield from (*([" "] if place else []), *self.pieces(one, whom))
        else:
            yield value

    def _power(self, digits: str) -> str:
        """A number with an exponent; where the language writes 10 before it, the exponent is raised."""
        found = _POWER.fullmatch(digits)
        if found is None:
            return digits
        shape, power = self.words["number.power"][0], found[2]
        power = str(int(power)).translate(_RAISED) if "10{power}" in shape else power
        return shape.replace("{digits}", found[1]).replace("{power}", power)

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


def _folder() -> Traversable:
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

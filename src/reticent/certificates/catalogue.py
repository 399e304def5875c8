"""One catalogue for each language: gettext files (``translations/de.po``), read as they are.

Each file has the same messages, every sentence of the page in English, and what it is in the language. Samplers bring
their own sentences (``reticent.text.Said``).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from gettext import c2py
from importlib.resources import files
from importlib.resources.abc import Traversable

from reticent.errors import ArtifactError
from reticent.samplers import SAMPLERS
from reticent.text import Said, one_of

PLACEHOLDER = re.compile(r"\{(\w+)\}")
COUNTED = "n"
"""The placeholder that the plural forms of a message follow."""


@dataclass(frozen=True, slots=True)
class Message:
    """One entry of a catalogue.

    Attributes:
        english: the sentence, with placeholders such as ``{share}``.
        translations: of it; several where the language has several plural forms.
        context: sets two meanings of one English word apart.
        plural: the English plural, if the sentence counts something.
    """

    english: str
    translations: tuple[str, ...]
    context: str = ""
    plural: str = ""


@dataclass(frozen=True)
class Catalogue:
    """All messages of one language.

    Attributes:
        language: its code, such as ``de``.
        messages: in the order of the file.
        plural_of: the index of the plural form for a number.
    """

    language: str
    messages: tuple[Message, ...]
    plural_of: Callable[[int], int] = field(compare=False)


def languages() -> tuple[str, ...]:
    """Every language that has a page: English, and whatever has a catalogue."""
    found = sorted(file.name[:-3] for file in _folder().iterdir() if file.name.endswith(".po"))
    return ("en", *found)


def known_language(code: str) -> str:
    """``code`` if there is a page in this language.

    Raises:
        ArtifactError: there is none.
    """
    if code not in languages():
        raise ArtifactError(f"language must be {one_of(code, languages())}, got {code[:20]!r}")
    return code


@cache
def catalogue(language: str) -> Catalogue:
    """The catalogue of a language that is not English.

    Raises:
        ArtifactError: there is none, or it cannot be read.
    """
    name = f"{known_language(language)}.po"
    found = parse((_folder() / name).read_text(encoding="utf-8"), language, name)
    brought = {one.english: one for one in (*_of_samplers(language), *found.messages) if not one.context}
    return replace(found, messages=(*(one for one in found.messages if one.context), *brought.values()))


def parse(text: str, language: str, where: str) -> Catalogue:
    """A catalogue from the text of a ``.po`` file; entries that are marked fuzzy count as missing.

    Raises:
        ArtifactError: a line is none of a ``.po`` file, or the plural forms are no formula.
    """
    head, *entries = _entries(text, where)
    stated = re.search(r"plural=([^;\\]+)", head.get("msgstr", head.get("msgstr[0]", "")))
    try:
        plural = c2py(stated[1].strip()) if stated else c2py("n != 1")
    except ValueError:
        raise ArtifactError(f"{where}: Plural-Forms is no formula") from None
    return Catalogue(language, tuple(_message(entry) for entry in entries), plural)


def _of_samplers(language: str) -> Iterator[Message]:
    """What each sampler says of itself. Its name is the same in every language."""
    for name, kind in SAMPLERS.items():
        yield Message(name, (name,))
        for text in (kind.sentence, kind.note, kind.exposed, kind.condition.says):
            if isinstance(text, Said) and language in text.others:
                yield Message(text, (text.others[language],))


def _folder() -> Traversable:
    return files("reticent.certificates") / "translations"


def _entries(text: str, where: str) -> Iterator[dict[str, str]]:
    entry: dict[str, str] = {}
    key, fuzzy = "", False
    for number, line in enumerate([*text.split("\n"), ""], 1):
        if not line.strip():
            if "msgid" in entry:
                yield {**entry, "fuzzy": "yes"} if fuzzy else entry
            entry, key, fuzzy = {}, "", False
        elif line.startswith("#"):
            fuzzy = fuzzy or (line.startswith("#,") and "fuzzy" in line)
        else:
            found = re.fullmatch(
                r'(?:(msgctxt|msgid|msgid_plural|msgstr(?:\[\d\])?) )?("(?:[^"\\]|\\.)*")', line.strip()
            )
            if found is None or not (found[1] or key):
                raise ArtifactError(f"{where}: line {number} is no line of a catalogue")
            key = found[1] or key
            entry[key] = entry.get(key, "") + ast.literal_eval(found[2])


def _message(entry: dict[str, str]) -> Message:
    forms = [entry[key] for key in sorted(entry) if key.startswith("msgstr")]
    told = tuple(forms) if all(forms) and "fuzzy" not in entry else ()
    return Message(entry["msgid"], told, entry.get("msgctxt", ""), entry.get("msgid_plural", ""))

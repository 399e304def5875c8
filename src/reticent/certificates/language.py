"""The page in another language: each English sentence is looked up in the catalogue, whoever composed it.

The document and its signature stay as they are: a page is a translation of what its document says in English.
Sentences with numbers are recognised by their message, ``at most {share}``, and their numbers are written as
the language writes them. What no message matches stays in English and is marked so; a test finds it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

from markupsafe import Markup, escape

from reticent.certificates.catalogue import COUNTED, PLACEHOLDER, Catalogue, Message, catalogue
from reticent.text import printable

_NUMBER = re.compile(r"(?<![\w.])(\d+)\.(\d+(?:e[+-]?\d+)?)(?![\w.]*\.\d)")
_NUMBERS = re.compile(r"[\d.e+\-%,\[\]() ]*\d[\d.e+\-%,\[\]() ]*")
_NAMES = re.compile(r"[\w.\-]+( \([^()]*\))?((,|;) [\w.\-]+( \([^()]*\))?)*")
"""Names of attackers, conditions and relations: they are the same in every language."""
_LETTERS = re.compile(r"[^\W\d_]{2}")
_CLIENT = re.compile(r"\b([Cc])lient(s?)\b")
_CLIENT_FORMS = ("client", "record")
"""Context and message under which a catalogue lists the forms of its word for a record, each with that of a client."""
DAY = ("date", "{year}-{month}-{day}")
"""Context and message under which a catalogue says how its language writes a date."""


class English:
    """The page as its sentences were written."""

    code = "en"

    def text(self, message: str, context: str = "", **values: Any) -> str:
        """A message of the page itself, with values in its placeholders."""
        del context
        return filled(message, {name: _safe(value) for name, value in values.items()})

    def said(self, sentence: str, context: str = "") -> str:
        """A sentence that was composed elsewhere."""
        del context
        return sentence

    def tried(self, value: str) -> str:
        """A value that may be a sentence, a number or a name: what is no sentence of the catalogue stays as it is."""
        return value

    def date(self, moment: str) -> str:
        """The day of a date or time as the language writes it."""
        return moment[:10]


@dataclass(frozen=True, eq=False)
class Translation(English):
    """The page in the language of a catalogue.

    Attributes:
        words: the catalogue.
        decimal: what stands before the decimals.
        share: a percentage, as a format.
        missed: called with each sentence that no message matches.
    """

    words: Catalogue
    decimal: str = ","
    share: str = "{}\N{NO-BREAK SPACE}%"
    missed: Callable[[str], None] = field(default=lambda sentence: None)

    @property
    def code(self) -> str:  # type: ignore[override]
        """Code of the language."""
        return self.words.language

    def text(self, message: str, context: str = "", **values: Any) -> str:
        given = {
            name: value if isinstance(value, Markup) else self._value(_safe(value)) for name, value in values.items()
        }
        known = self._exact.get((context, message)) or self._exact.get(("", message))
        if known is None or not known.translations:
            self.missed(message)
            return filled(message, given)
        return filled(self._form(known, values), given)

    def said(self, sentence: str, context: str = "") -> str:
        found = self._found(sentence, context)
        if found is not None:
            return found
        if _LETTERS.search(sentence):
            self.missed(sentence)
        return Markup('<span lang="en">{}</span>').format(printable(sentence))

    def tried(self, value: str) -> str:
        return self._found(value) or value

    def date(self, moment: str) -> str:
        year, month, day = moment[:10].split("-")
        return filled(self._exact[DAY].translations[0], {"year": year, "month": month, "day": day})

    def _found(self, sentence: str, context: str = "") -> str | None:
        known = self._exact.get((context, sentence)) or self._exact.get(("", sentence))
        if known is not None and known.translations:
            return self._form(known, {COUNTED: 1})
        if _NUMBERS.fullmatch(sentence):
            return self._numbers(sentence)
        return self._of_client(sentence) or self._matched(sentence)

    def _matched(self, sentence: str) -> str | None:
        for pattern, longest, message in self._patterns:
            if longest not in sentence:
                continue
            match = pattern.fullmatch(sentence)
            if match is not None:
                values = match.groupdict()
                return filled(self._form(message, values), {name: self._value(x) for name, x in values.items()})
        return None

    def _of_client(self, sentence: str) -> str | None:
        """A sentence about clients: translated as one about records, with the word for a record exchanged."""
        plain = _CLIENT.sub(lambda m: f"{'R' if m[1] == 'C' else 'r'}ecord{m[2]}", sentence)
        if plain == sentence:
            return None
        found = self._found(plain)
        if found is None:
            return None
        for old, new in self._client_forms:
            found = found.replace(old, new).replace(old[0].upper() + old[1:], new[0].upper() + new[1:])
        return found

    def _value(self, captured: str) -> str:
        found = self._found(captured)
        if found is None and " " in captured and not _NAMES.fullmatch(captured):
            self.missed(captured)
        return captured if found is None else found

    def _form(self, message: Message, values: dict[str, Any]) -> str:
        if not message.plural:
            return message.translations[0]
        count = str(values.get(COUNTED, 1))
        return message.translations[self.words.plural_of(int(count) if count.isdecimal() else 2)]

    def _numbers(self, text: str) -> str:
        several = text.replace(", ", "; ")
        shown = _NUMBER.sub(lambda m: f"{m[1]}{self.decimal}{m[2]}", several)
        return re.sub(r"([\d,]+)%", lambda m: self.share.format(m[1]), shown)

    @cached_property
    def _exact(self) -> dict[tuple[str, str], Message]:
        return {(one.context, form): one for one in self.words.messages for form in (one.english, one.plural) if form}

    @cached_property
    def _patterns(self) -> list[tuple[re.Pattern[str], str, Message]]:
        found = []
        for one in self.words.messages:
            for form in (one.english, one.plural):
                if one.translations and one.context != DAY[0] and PLACEHOLDER.search(form):
                    found.append((_pattern(form), max(PLACEHOLDER.split(form)[::2], key=len), one))
        return sorted(found, key=lambda entry: -len(PLACEHOLDER.sub("", entry[2].english)))

    @cached_property
    def _client_forms(self) -> list[tuple[str, str]]:
        known = self._exact.get(_CLIENT_FORMS)
        pairs = known.translations[0].split("|") if known is not None and known.translations else []
        return [(old, new) for old, _, new in (pair.partition("=") for pair in pairs)]


ENGLISH = English()


@cache
def language_of(code: str) -> English:
    """The language with this code.

    Raises:
        ArtifactError: there is no page in it.
    """
    return ENGLISH if code == ENGLISH.code else Translation(catalogue(code))


def filled(message: str, values: dict[str, Any]) -> str:
    """A message with values in its placeholders; markup stays markup, all else beside it is escaped."""
    parts = [values.get(part, "") if place % 2 else part for place, part in enumerate(PLACEHOLDER.split(message))]
    if any(isinstance(part, Markup) for part in parts):
        return Markup("").join(escape(part) for part in parts)
    return "".join(str(part) for part in parts)


def _safe(value: Any) -> Any:
    return value if isinstance(value, Markup) else printable(value)


def _pattern(form: str) -> re.Pattern[str]:
    parts = PLACEHOLDER.split(form)
    names: set[str] = set()
    made = ""
    for place, part in enumerate(parts):
        if place % 2 == 0:
            made += re.escape(part)
        else:
            made += f"(?P={part})" if part in names else f"(?P<{part}>.+?)"
            names.add(part)
    return re.compile(made, re.DOTALL)

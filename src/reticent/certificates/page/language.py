"""How a page speaks: messages in a language as markup, in which nothing foreign acts."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup, escape

from reticent.kernel.errors import ArtifactError
from reticent.kernel.messages import Figure, Message
from reticent.kernel.text import one_of, printable
from reticent.languages import English, Language, language, languages

ENGLISH = "en"
"""Code of the language in which pages are written where nobody asks for another."""


def language_of(code: str) -> Language:
    """The language with this code.

    Raises:
        ArtifactError: there is no page in it.
    """
    if code not in languages():
        raise ArtifactError(f"language must be {one_of(code, languages())}, got {code[:20]!r}")
    return language(code)


class Speaker:
    """Says messages in one language.

    Args:
        words: of the language.
    """

    def __init__(self, words: Language) -> None:
        self._words = words

    def text(self, key: str, **values: Any) -> Markup:
        """The message with a key; its values may be markup, and whole numbers."""
        given = {name: Figure(str(one)) if isinstance(one, int) else one for name, one in values.items()}
        return self.say(Message(key, **given))

    def say(self, what: Any) -> Markup:
        """A message, a number, a name."""
        return Markup("".join(map(_safe, self._words.pieces(what))))  # noqa: S704

    def date(self, moment: str) -> Markup:
        """The day of a date or time as the language writes it."""
        return self.text("date", **dict(zip(("year", "month", "day"), moment[:10].split("-"), strict=True)))


def _safe(piece: Any) -> Markup:
    if isinstance(piece, Markup):
        return piece
    shown = escape(printable(piece))
    return Markup('<span lang="en">{}</span>').format(shown) if isinstance(piece, English) else shown

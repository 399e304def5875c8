"""Text that an issuer declares, and text of others where it is shown."""

from __future__ import annotations

import unicodedata

from reticent.kernel.text import HIDDEN, printable

LONGEST = 300
"""Characters of a foreign text that are shown."""


def inert(text: object, longest: int = LONGEST) -> str:
    """``printable``, short."""
    return printable(text, longest)


def declarable(text: str) -> str:
    """``text`` if it is one line of characters that can be seen. What it says is its issuer's word.

    Raises:
        ValueError: it is not; the message says what.
    """
    for character in text:
        if unicodedata.category(character) in HIDDEN:
            raise ValueError(f"must be one line of visible characters, not U+{ord(character):04X}")
    if text != text.strip() or not text:
        raise ValueError("must not be empty, nor begin or end with a blank")
    return text

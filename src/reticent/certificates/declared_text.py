"""Text that an issuer declares: refused where it could pass for something else."""

from __future__ import annotations

import unicodedata

from reticent.text import HIDDEN, printable

LONGEST = 300
"""Characters of a foreign text that are shown."""

_MARKS = {"Mn", "Mc", "Me"}
_BLANK = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters and signs without ink."""
_TOGETHER = ({"HIRAGANA", "KATAKANA", "CJK", "KATAKANA-HIRAGANA"}, {"HANGUL", "CJK"}, {"BOPOMOFO", "CJK"})
"""Scripts that one text may mix."""


def inert(text: str, longest: int = LONGEST) -> str:
    """``printable``, short."""
    return printable(text, longest)


def declarable(text: str) -> str:
    """``text`` if nothing in it is other than it looks: one line of letters of one script, no marks, no blanks.

    Raises:
        ValueError: something is; the message says what.
    """
    if unicodedata.normalize("NFC", text) != text:
        raise ValueError("must be composed (NFC): a letter and its accent are one character")
    for character in text:
        kind = unicodedata.category(character)
        if kind in HIDDEN or character in _BLANK or (kind == "Zs" and character != " "):
            raise ValueError(f"must be one line of visible characters, not U+{ord(character):04X}")
        if kind in _MARKS:
            raise ValueError(f"must hold no combining mark, such as U+{ord(character):04X}")
        if kind[0] in "LN" and unicodedata.normalize("NFKC", character) != character:
            raise ValueError(f"must hold no letter in disguise, such as U+{ord(character):04X}")
    scripts = {unicodedata.name(c, "UNKNOWN").split()[0] for c in text if unicodedata.category(c)[0] == "L"}
    if len(scripts) > 1 and not any(scripts <= mixed for mixed in _TOGETHER):
        raise ValueError(f"must hold letters of one script, not of {' and '.join(sorted(scripts)).lower()}")
    if text != text.strip() or not text:
        raise ValueError("must not be empty, nor begin or end with a blank")
    return text

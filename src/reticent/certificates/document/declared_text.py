"""Text that an issuer declares: refused where it could pass for something else."""

from __future__ import annotations

import re
import unicodedata

from reticent.kernel.text import HIDDEN, printable

LONGEST = 300
"""Characters of a foreign text that are shown."""

_MARKS = {"Mn", "Mc", "Me"}
_LETTERS = {"Lu", "Ll", "Lt", "Lo"}
_BLANK = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters and signs without ink."""
_QUOTES = ("QUOTATION MARK", "DOUBLE PRIME", "DOUBLE ACUTE", "DOUBLE APOSTROPHE", "GERSHAYIM", "DITTO", "DIAERESIS")
"""In the names of signs that look as if they closed the quotation that a declared text stands in."""
_LIKE_LATIN = frozenset(
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u0405\u0406\u0408\u0474"
    "\u04ae\u04ba\u04c0\u050c\u051a\u051c\u0430\u0441\u0435\u0433\u043e\u0440\u0443\u0445\u0455\u0456"
    "\u0458\u0475\u04af\u04bb\u04cf\u0501\u051b\u051d"  # Cyrillic
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03b1\u03b3"
    "\u03b9\u03bd\u03bf\u03c1\u03c5\u03f2\u03f3"  # Greek
    "\u0555\u054d\u053c\u0585\u0578\u057d\u0570\u0581\u0566"  # Armenian
)
"""Letters that stand for Latin ones in a word that has no others."""
_TWO_SINGLE = re.compile("['`\u00b4\u2018-\u201b\u2032\u2039\u203a\uff07]{2}")
_TOGETHER = ({"HIRAGANA", "KATAKANA", "CJK", "KATAKANA-HIRAGANA"}, {"HANGUL", "CJK"}, {"BOPOMOFO", "CJK"})
"""Scripts that one text may mix."""


def inert(text: object, longest: int = LONGEST) -> str:
    """``printable``, short."""
    return printable(text, longest)


def declarable(text: str) -> str:
    """``text`` if nothing in it is other than it looks: one line of letters of one script, no marks, no blanks.

    It stands in quotation marks, which it may not close: it holds none but single ones, and no two of these together.

    Raises:
        ValueError: something is; the message says what.
    """
    if unicodedata.normalize("NFC", text) != text:
        raise ValueError("must be composed (NFC): a letter and its accent are one character")
    for character in text:
        kind = unicodedata.category(character)
        if kind in HIDDEN or character in _BLANK or (kind == "Zs" and character != " "):
            raise ValueError(f"must be one line of visible characters, not U+{ord(character):04X}")
        name = unicodedata.name(character, "")
        if kind not in _LETTERS and "SINGLE" not in name and any(quote in name for quote in _QUOTES):
            raise ValueError(f"must hold no quotation mark, such as U+{ord(character):04X}: it stands in one")
        if kind in _MARKS:
            raise ValueError(f"must hold no combining mark, such as U+{ord(character):04X}")
        if kind[0] in "LN" and unicodedata.normalize("NFKC", character) != character:
            raise ValueError(f"must hold no letter in disguise, such as U+{ord(character):04X}")
    scripts = {unicodedata.name(c, "UNKNOWN").split()[0] for c in text if unicodedata.category(c)[0] == "L"}
    if len(scripts) > 1 and not any(scripts <= mixed for mixed in _TOGETHER):
        raise ValueError(f"must hold letters of one script, not of {' and '.join(sorted(scripts)).lower()}")
    letters = [c for c in text if unicodedata.category(c)[0] == "L"]
    if letters and _LIKE_LATIN.issuperset(letters):
        raise ValueError("must not be spelled with letters that only look like Latin ones")
    if _TWO_SINGLE.search(text):
        raise ValueError("must hold no two single quotation marks together: they look like a double one")
    if text != text.strip() or not text:
        raise ValueError("must not be empty, nor begin or end with a blank")
    return text

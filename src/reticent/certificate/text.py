"""Text that somebody else wrote, made inert: nothing in it can hide, reorder or flood what is shown."""

from __future__ import annotations

import unicodedata

LONGEST = 300
"""Characters of a foreign text that are shown."""

_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def inert(text: str, longest: int = LONGEST) -> str:
    """``text`` on one line: control, format and direction characters become ``<U+202E>``, the rest is cut.

    The result may still hold ``<`` and ``&``: whoever writes HTML or XML escapes it as well.
    """
    cut = text if len(text) <= longest else text[:longest] + f"... ({len(text)} characters)"
    return "".join(f"<U+{ord(c):04X}>" if unicodedata.category(c) in _HIDDEN else c for c in cut)

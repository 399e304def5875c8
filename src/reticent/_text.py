"""Words of strangers on a terminal."""

from __future__ import annotations

import unicodedata

_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_LONGEST = 2000


def printable(text: object, longest: int = _LONGEST) -> str:
    r"""Text that may come from a file, for a terminal: one line, nothing that acts on the terminal.

    Control characters (ESC among them), marks that change the direction of writing and lone surrogates become
    escapes such as ``\x1b``. Text beyond ``longest`` characters is cut, with a sign that it was.
    """
    found = str(text)
    cut = found if len(found) <= longest else found[: longest - 3] + "..."
    return "".join(_escaped(c) if unicodedata.category(c) in _HIDDEN else c for c in cut)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")

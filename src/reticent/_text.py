"""Words of strangers on a terminal and in a notebook."""

from __future__ import annotations

import html
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


class Brief:
    """Shown in a few lines instead of every field; in a notebook too, escaped."""

    def _lines(self) -> list[str]:
        """The lines; what a stranger may have written in them is made harmless by ``Brief``."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return "\n".join(printable(line) for line in self._lines())

    def __str__(self) -> str:
        return repr(self)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")

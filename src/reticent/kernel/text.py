"""Text for people: foreign text made safe, digits on the safe side, lines and tables that fit a terminal."""

from __future__ import annotations

import dataclasses
import html
import math
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from difflib import get_close_matches
from enum import Enum
from typing import Any, TypeVar

Column = tuple[str, list[str]]
"""A heading, with its line breaks, and one cell for each row."""

Note = TypeVar("Note")
WIDTH = 80
"""Characters in a line of what Python objects print."""

HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
"""Categories of characters that act on a terminal or cannot be seen."""
_LONGEST = 2000


def printable(text: object, longest: int = _LONGEST) -> str:
    r"""Text that may come from a file, for a terminal: one line, nothing that acts on the terminal.

    Control characters (ESC among them), marks that change the direction of writing and lone surrogates become
    escapes such as ``\x1b``. Text beyond ``longest`` characters is cut, with a sign that it was.
    """
    found = str(text)
    cut = found if len(found) <= longest else found[: longest - 3] + "..."
    return cut if cut.isprintable() else "".join(_escaped(c) if unicodedata.category(c) in HIDDEN else c for c in cut)


def digits(x: float, count: int = 4, *, up: bool | None = None) -> str:
    """``x`` with at most ``count`` significant digits: to the nearest, or to the side that a claim needs.

    What floating point itself rounds, 1e-12 of ``x``, is not rounded again: 0.1 stays 0.1.

    Args:
        x: any number; one that is not finite is written as it is.
        count: significant digits, fewer than 12.
        up: True is never less than ``x``, for an upper bound; False never more, for a lower one.
    """
    if up is None or not math.isfinite(x):
        return f"{x:.{count}g}"
    way = Context(prec=count, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    return f"{float(way.create_decimal(f'{x:.12g}')):.{count}g}"


def one_of(typed: object, names: Iterable[str]) -> str:
    """Which names are allowed, and which of them was probably meant."""
    known = list(names)
    return f"one of {', '.join(known)}{did_you_mean(typed, known)}"


def did_you_mean(typed: object, names: Iterable[str]) -> str:
    """The nearest name as a question in brackets; nothing where none is near."""
    meant = nearest(typed, names)
    return "" if meant is None else f" (did you mean {meant}?)"


def nearest(typed: object, names: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The name that is spelt almost as ``typed``, whatever joins its words; None where nothing is near."""
    plain, word = {_joined(name): name for name in names}, _joined(typed)
    begun = [name for name in plain if len(word) > 2 and name.startswith(word)]
    found = begun or get_close_matches(word, plain, 1, cutoff)
    return plain[found[0]] if found else None


def listed(names: Sequence[str], word: str = "and") -> str:
    """Names as people write them: ``a``, ``a and b``, ``a, b and c``; nothing for none."""
    return f" {word} ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _joined(name: object) -> str:
    return str(name)[:100].strip().lower().replace("_", "-").replace(" ", "-")


def wrapped(line: str, width: int = WIDTH, indent: int = 0) -> list[str]:
    """A sentence in lines of at most ``width``, cut between words; lines after the first are indented."""
    more = " " * indent
    found = textwrap.wrap(line, width, subsequent_indent=more, break_long_words=False, break_on_hyphens=False)
    return found or [line]


def table(
    names: Sequence[Column], numbers: Sequence[Column], width: int = WIDTH, gap: int = 1, left: int | None = None
) -> list[str]:
    """Rows in lines of at most ``width``: columns of numbers that do not fit follow below, and nothing is cut.

    Args:
        names: columns that name a row; every block of numbers has them.
        numbers: the other columns.
        width: characters of a line.
        gap: blanks between two columns.
        left: this many columns are aligned to the left; by default those of names.
    """
    lines: list[str] = []
    for block in _blocks(names, numbers, width, gap):
        columns = [*names, *block]
        height = max(heading.count("\n") for heading, _ in columns)
        texts = [["\n" * (height - heading.count("\n")) + heading, *cells] for heading, cells in columns]
        cells = [[*heading.split("\n"), *rest] for heading, *rest in texts]
        wide, flush = [_breadth(column) for column in columns], len(names) if left is None else left
        for row in zip(*cells, strict=True):
            aligned = [t.ljust(w) if i < flush else t.rjust(w) for i, (t, w) in enumerate(zip(row, wide, strict=True))]
            lines.append((" " * gap).join(aligned).rstrip())
    return lines


def _blocks(names: Sequence[Column], numbers: Sequence[Column], width: int, gap: int) -> Iterator[list[Column]]:
    room = width + gap - sum(_breadth(column) + gap for column in names)
    block: list[Column] = []
    for column in numbers:
        if block and sum(_breadth(known) + gap for known in [*block, column]) > room:
            yield block
            block = []
        block.append(column)
    yield block


def _breadth(column: Column) -> int:
    return max(len(text) for text in (*column[0].split("\n"), *column[1]))


def by_whom(notes: Iterable[tuple[str, Iterable[Note]]]) -> list[str]:
    """Each note once, after the names that it is about unless it is about all.

    Args:
        notes: (name, notes) pairs; a name may occur again.
    """
    return [f"{', '.join(names)}: {note}" if names else str(note) for note, names in owners(notes).items()]


def owners(owned: Iterable[tuple[str, Iterable[Note]]]) -> dict[Note, list[str]]:
    """The names that each note is about, in their order; none where it is about all.

    Args:
        owned: (name, notes) pairs; a name may occur again.
    """
    about: dict[Note, dict[str, None]] = {}
    everybody = set()
    for name, own in owned:
        everybody.add(name)
        for note in own:
            about.setdefault(note, {})[name] = None
    return {note: [] if len(names) == len(everybody) else list(names) for note, names in about.items()}


def html_table(title: str, rows: Iterable[Sequence[object]], head: Sequence[str] = ()) -> str:
    """A table without colours or styles of its own, escaped: it looks right on a light and on a dark page.

    Args:
        rows: cells; under a ``head`` the first of a row names it.
        head: names of the columns, if they have any.
    """
    top = "".join(f'<th scope="col">{escaped(name)}</th>' for name in head)
    body = "".join(f"<tr>{''.join(_cells(row, bool(head)))}</tr>" for row in rows)
    shown = f"<thead><tr>{top}</tr></thead>" if head else ""
    return f"<table><caption>{escaped(title)}</caption>{shown}<tbody>{body}</tbody></table>"


def _cells(row: Sequence[object], named: bool) -> Iterator[str]:
    for index, cell in enumerate(row):
        yield f'<th scope="row">{escaped(cell)}</th>' if named and index == 0 else f"<td>{escaped(cell)}</td>"


def escaped(text: object) -> str:
    """Text for HTML that nothing in it can leave."""
    return html.escape(printable(text))


_LATEX = str.maketrans(
    {c: f"\\{c}" for c in "&%$#_{}"}
    | {c: f"{{{c}}}" for c in "[*"}  # read as an option where they begin a row
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
)


def in_latex(text: object) -> str:
    """Text that LaTeX sets as it is."""
    return printable(text).translate(_LATEX)


class Short:
    """A dataclass with ``repr=False``, shown by the fields that differ from their defaults, in lines that fit."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "\n".join(wrapped(as_call(self), indent=2))


class Brief:
    """Shown in a few lines instead of every field; in a notebook too, escaped."""

    def _lines(self) -> list[str]:
        """The lines; ``Brief`` makes foreign text in them safe to show."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return "\n".join(part for line in self._lines() for part in wrapped(printable(line), indent=2))

    def __str__(self) -> str:
        return repr(self)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"


def as_call(thing: Any) -> str:
    """A dataclass as the call that makes it, without what is the default."""
    given = ", ".join(f"{name}={as_python(value)}" for name, value in stated(thing).items())
    return f"{type(thing).__name__}({given})"


def stated(thing: Any) -> dict[str, Any]:
    """The fields of a dataclass that are not at their default."""
    values = {field: getattr(thing, field.name) for field in dataclasses.fields(thing)}
    required = dataclasses.MISSING
    return {field.name: x for field, x in values.items() if field.default is required or x != field.default}


def as_python(value: object) -> str:
    """As in Python, on one line."""
    return f"{type(value).__name__}.{value.name}" if isinstance(value, Enum) else repr(value).replace("\n  ", " ")


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")

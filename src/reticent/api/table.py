"""Results as tables: a few lines of text, HTML for notebooks, data frames and JSON."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Any, ClassVar

from reticent.errors import UnsupportedError
from reticent.text import Column, blocks, breadth, digits, printable, wrapped

Cell = str | float | int | None


class Table:
    """What a verb of the front door answers: titled rows under columns, with notes below.

    A subclass says what stands in the rows. Cells keep their full precision in ``to_frame``; text and HTML show four
    significant digits, bounds on their safe side. Text has lines of at most 80 characters: columns that do not fit
    follow below.
    """

    _leading: ClassVar[int] = 1
    """So many columns name a row, and stand in every block of columns."""

    def title(self) -> str:
        """One line above the rows."""
        raise NotImplementedError

    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        raise NotImplementedError

    def rows(self) -> Sequence[tuple[Cell, ...]]:
        """The cells, row by row; None where there is nothing to say."""
        raise NotImplementedError

    def ways(self, row: tuple[Cell, ...]) -> Sequence[bool | None]:
        """Per cell of a row, which way digits are rounded: up, down, or (None) to the nearest."""
        return [None] * len(row)

    def notes(self) -> Sequence[str]:
        """Sentences below the rows."""
        return ()

    def __repr__(self) -> str:
        lines = wrapped(printable(self.title()))
        cells = list(zip(*(self._shown(row) for row in self.rows()), strict=True))
        if cells:
            columns = [(name, list(column)) for name, column in zip(self.columns(), cells, strict=True)]
            names, numbers = columns[: self._leading], columns[self._leading :]
            lines += [line for block in blocks(names, numbers, gap=2) for line in _aligned([*names, *block])]
        return "\n".join([*lines, *(part for note in self.notes() for part in wrapped(printable(note), indent=2))])

    def _shown(self, row: tuple[Cell, ...], longest: int = 60) -> list[str]:
        return [shown(cell, up, longest) for cell, up in zip(row, self.ways(row), strict=True)]

    def _repr_html_(self) -> str:
        """A table without colours or styles of its own: it looks right on a light and on a dark page."""
        head = "".join(f'<th scope="col">{_safe(name)}</th>' for name in self.columns())
        body = "".join(_html_row(self._shown(row, 2000)) for row in self.rows())
        notes = "".join(f"<p>{_safe(note)}</p>" for note in self.notes())
        if not body:
            return f"<p>{_safe(self.title())}</p>{notes}"
        caption = f"<caption>{_safe(self.title())}</caption>"
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"

    def to_frame(self) -> Any:
        """The rows as a ``pandas.DataFrame``.

        Raises:
            UnsupportedError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise UnsupportedError("to_frame needs pandas: pip install pandas") from None
        return pd.DataFrame(list(self.rows()), columns=list(self.columns()))


def shown(cell: Cell, up: bool | None = None, longest: int = 60) -> str:
    """A cell for people: four significant digits (``up``: see ``digits``), ``inf`` where there is no finite number.

    Text beyond ``longest`` characters is cut.
    """
    if cell is None:
        return ""
    if isinstance(cell, float):
        return digits(cell, up=up) if math.isfinite(cell) else str(cell)
    return printable(cell, longest)


def _aligned(columns: Sequence[Column]) -> list[str]:
    first, *rest = ([name, *cells] for name, cells in columns)
    left = [text.ljust(breadth(columns[0])) for text in first]
    right = [[text.rjust(breadth(column)) for text in texts] for column, texts in zip(columns[1:], rest, strict=True)]
    return ["  ".join(line).rstrip() for line in zip(left, *right, strict=True)]


def _html_row(row: Sequence[str]) -> str:
    first, *rest = map(_safe, row)
    return f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>'


def _safe(text: str) -> str:
    return html.escape(printable(text))

"""Results as documents and tables: a few lines of text, HTML for notebooks, data frames and JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from reticent.kernel.errors import UnsupportedError
from reticent.kernel.proofs import Claim
from reticent.kernel.text import digits, escaped, html_table, printable, table, wrapped

Cell = str | float | int | None


def in_json(document: BaseModel | Mapping[str, Any]) -> str:
    """A document as strict JSON text; null is an infinite number."""
    if isinstance(document, BaseModel):
        from reticent.adversaries.report import SPOKEN

        return document.model_dump_json(by_alias=True, indent=2, context=SPOKEN)
    return json.dumps(document, allow_nan=False, indent=2)


class Answer:
    """What a verb answers: a document, and lines for people.

    Attributes:
        document: everything, as ``--json`` prints it.
    """

    document: Any

    @property
    def exit_code(self) -> int:
        """What a build server is told: 0, or 1 where something does not agree."""
        return 0

    def to_json(self) -> str:
        """The document as strict JSON text; null is an infinite number."""
        return in_json(self.document)

    def lines(self) -> Sequence[str]:
        """What people read, each line for itself."""
        raise NotImplementedError

    def indent(self, line: str) -> int:
        """How far the lines after the first are indented into which one is cut."""
        return 0

    def __repr__(self) -> str:
        each = ((printable(line), self.indent(line)) for line in self.lines())
        return "\n".join(part for line, indent in each for part in wrapped(line, indent=indent))


class Table(Answer):
    """An answer as titled rows under columns, with notes below.

    A subclass gives the rows. Cells keep their full precision in ``to_pandas``; text, HTML and LaTeX show four
    significant digits, bounds on their safe side. Text has lines of at most 80 characters: columns that do not fit
    follow below.
    """

    _leading = 1
    """So many columns name a row; every block of columns has them."""
    _claim: int | None = None
    """The column of the claim, where rows have one: the numbers after a proven one are bounds, and rounded up."""

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
        if self._claim is None or not Claim(str(row[self._claim])).proven:
            return [None] * len(row)
        return [None if place <= self._claim else True for place in range(len(row))]

    def notes(self) -> Sequence[str]:
        """Sentences below the rows."""
        return ()

    def theorems(self) -> list[str]:
        """Keys of ``reticent.kernel.proofs.references`` that the numbers follow from."""
        return []

    def __repr__(self) -> str:
        lines = wrapped(printable(self.title()))
        cells = list(zip(*(self._shown(row) for row in self.rows()), strict=True))
        columns = [(name, list(column)) for name, column in zip(self.columns(), cells, strict=bool(cells))]
        if columns:
            lines += table(columns[: self._leading], columns[self._leading :], gap=2, left=1)
        return "\n".join([*lines, *(part for note in self.notes() for part in wrapped(printable(note), indent=2))])

    def _shown(self, row: tuple[Cell, ...], longest: int = 60) -> list[str]:
        return [shown(cell, up, longest) for cell, up in zip(row, self.ways(row), strict=True)]

    def _repr_html_(self) -> str:
        rows = [self._shown(row, 2000) for row in self.rows()]
        shown = html_table(self.title(), rows, self.columns()) if rows else f"<p>{escaped(self.title())}</p>"
        return shown + "".join(f"<p>{escaped(note)}</p>" for note in self.notes())

    def to_latex(self) -> str:
        """The rows as a ``tabular`` of the LaTeX package booktabs, rounded as in text; title and notes are comments."""
        return self._tabular()

    def _tabular(self, ends: Iterable[Sequence[Any]] = ()) -> str:
        from reticent.verbs.latex import tabular

        shown = [self._shown(row, 2000) for row in self.rows()]
        return tabular([self.title(), *self.notes()], self.columns(), shown, ends)

    def to_bibtex(self) -> str:
        """Entries for this program and for the papers whose theorems the numbers follow from; comments name these."""
        from reticent.verbs.bibtex import bibtex

        return bibtex(self.theorems())

    def to_pandas(self) -> Any:
        """The rows as a ``pandas.DataFrame``.

        Raises:
            UnsupportedError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise UnsupportedError("to_pandas needs pandas: pip install pandas") from None
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

"""One column of a table of one's own: what it may hold, what is wrong with it, and its features.

Each record is encoded by the schema alone. Nothing is computed over the column: no mean, no most frequent category,
no count. So one record changes one row of the features.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any

import numpy as np
from pydantic import Field, ValidationError, model_validator

from reticent.data.dataset import ColumnGroup, binary_group, numeric_group, one_hot_group, to_unit
from reticent.data.own_files import MOST_COLUMNS, Cells
from reticent.io.models import Closed, Finite
from reticent.kernel.errors import DataError, ParameterError
from reticent.kernel.text import printable

MOST_CATEGORIES = 200
"""That are read off the records; more are declared."""
MISSING = "(missing)"
"""The category of empty cells, with ``missing: indicator``."""
_FEWEST_IDS = 10  # different values in fewer records are no sign of anything
_MOST_NUMBERS = 256  # different whole numbers that are read off as a quantity, such as grey levels
_MOST_MARKS = 20  # different numbers that are read off as classes, such as marks
_DATE = re.compile(  # 17-10-1999, 17. Okt. 1999, 1999-10-17T08:00, 19991017
    r"\d{1,4}([-./]|\.? )(\d{1,2}|[^\W\d_]{3,9})\.?\1\d{2,4}([ T].*)?|(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])",
    re.DOTALL,
)
_NO_CATEGORIES = {
    _DATE: "dates: write what matters as a number, such as a year",
    re.compile(r"-?\d+,\d+"): "numbers with a comma: separate columns by semicolons, or write a point",
}
_OF_CODES = re.compile(
    r"(^|[\W_])(u?u?id|guid|ssn|zip|plz|icd|codes?)([\W_]|$)|(^|[\W_])nr$|[\W_](no|number)$|code$|^(cp|insee|matricule)$"
    r"|(patient|person|user|customer|client|subject|member|kunden|case|record|account)(s?[\W_]?(id|nr|no|number)|$)"
    r"|nummer|num[eé]ro|post(al|leitzahl)|kennung"
)
"""In names of columns, in lower case with words apart: what says whose a record is, or a place."""
_GRID = 33
_LARGEST = 1e100
"""Of a number in a table: differences of two are finite, and their quotients."""
_NARROWEST = 1e-6
_CLASSES = (
    "a label has classes: group its values (a number to predict, a regression, has no model here: add a column of "
    "ranges that are fixed beforehand, and predict that)"
)
DROP = "drop"
"""What a schema says of a column that is left out."""
_EMPTY_REMEDY = "fill them, leave such records out, or say missing: indicator or constant in the schema"

Text = Annotated[str, Field(max_length=200)]


class Missing(StrEnum):
    """What becomes of an empty cell. All three are fixed without looking at other records."""

    REFUSE = "refuse"
    """The table is refused."""
    CONSTANT = "constant"
    """``fill`` is its value."""
    INDICATOR = "indicator"
    """A feature of its own says so, whether or not any record needs it."""


class Column(Closed):
    """What one column may hold.

    Attributes:
        low, high: bounds of numbers; numbers outside are clipped.
        values: categories, as text, instead of bounds.
        missing: what becomes of an empty cell.
        fill: the value of an empty cell, with ``constant``.
        derived: read off the records, not declared.
    """

    low: Finite | None = None
    high: Finite | None = None
    values: Annotated[tuple[Text, ...], Field(min_length=1, max_length=MOST_COLUMNS)] | None = None
    missing: Missing = Missing.REFUSE
    fill: Finite | Text | None = None
    derived: bool = False

    @model_validator(mode="after")
    def _bounds_or_values(self) -> Column:
        bounded = self.low is not None and self.high is not None
        if bounded == (self.values is not None) or (self.low is None) != (self.high is None):
            raise ValueError("give low and high, or values")
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise ValueError("low must be below high")
        if any(x is not None and abs(x) > _LARGEST for x in (self.low, self.high)):
            raise ValueError(f"bounds must lie within {_LARGEST:g}")
        if self.values is not None and len(set(self.values)) < len(self.values):
            raise ValueError("values must differ")
        return self

    @model_validator(mode="after")
    def _fill_fits(self) -> Column:
        if (self.missing is Missing.CONSTANT) != (self.fill is not None):
            raise ValueError("fill is for missing: constant")
        if self.missing is Missing.INDICATOR and MISSING in (self.values or ()):
            raise ValueError(f"{MISSING} is the category that missing: indicator adds")
        if self.missing is not Missing.REFUSE and "" in (self.values or ()):
            raise ValueError("empty text is a category already: leave missing out")
        if self.fill is None:
            return self
        if self.values is not None and self.fill not in self.values:
            raise ValueError("fill must be one of the values")
        if self.low is None or self.high is None:
            return self
        if not isinstance(self.fill, float) or not self.low <= self.fill <= self.high:
            raise ValueError("fill must be a number from low to high")
        return self

    @property
    def categories(self) -> tuple[str, ...]:
        """The categories that features show, that of empty cells among them."""
        return (*(self.values or ()), *((MISSING,) if self.missing is Missing.INDICATOR else ()))

    @property
    def width(self) -> int:
        """How many features the column becomes, whatever the records hold."""
        return len(self.categories) if self.values is not None else 1 + (self.missing is Missing.INDICATOR)

    def says(self) -> str:
        """What it may hold, in short."""
        if self.values is None:
            return f"{self.low:g} to {self.high:g}"
        return (f"{len(self.values)}, such as " if len(self.values) > 6 else "") + ", ".join(self.values[:6])


def declared_column(name: str, said: Any, cells: Cells, *, label: bool) -> Column:
    """A column as it is declared; bounds or categories that are not declared are read off the records.

    Raises:
        ParameterError: the declaration is malformed.
        DataError: what is not declared cannot be read off.
    """
    given: Mapping[str, Any] = said if isinstance(said, dict) else {"values": said}
    if isinstance(given.get("values"), list):  # marks are numbers to whoever writes them down
        given = {**given, "values": [str(value) if type(value) is int else value for value in given["values"]]}
    if "missing" in given:
        _check_missing(name, given["missing"], label=label)
    found = {**given, "derived": False}
    if given.keys() and given.keys() <= {"missing", "fill"}:
        found = derived_column(name, cells, label=label).model_dump() | dict(given)
    try:
        column = Column.model_validate(found)
    except ValidationError as error:
        raise ParameterError("schema", name, f"a declaration that makes sense ({problem_of(error)})") from None
    if label and column.values is None:
        raise ParameterError("schema", name, f"a column with values: {_CLASSES}")
    return column


def _check_missing(name: str, said: object, *, label: bool) -> None:
    if label and said != Missing.REFUSE:
        raise ParameterError("schema", name, "without missing: nothing can be learnt from a record without its label")
    if not isinstance(said, str) or said not in set(Missing):
        why = "what is computed from a column, such as a mean, shows something about every record in it"
        raise ParameterError("schema", name, f"a column whose missing is {', '.join(Missing)} ({why})")


def derived_column(name: str, cells: Cells, *, label: bool) -> Column:
    """Bounds or categories as the records have them, marked so.

    Raises:
        DataError: nobody can say what the column means, or it may say whose a record is.
    """
    if cells.of_numbers and len(cells.strays):
        raise DataError(_strayed(cells) + ", or declare its categories")
    if cells.of_numbers:
        _check_finite(cells)
    numbers = cells.numbers[~cells.blank] if cells.of_numbers else np.array([])
    whole = not np.any(numbers != np.floor(numbers))
    counted = cells.tally() if whole or label else Counter[str]()
    if whole and not counted:
        raise DataError("is empty: drop it")
    if label:
        _check_classes(counted, numbers, whole=whole)
    elif whole:
        _check_meaning(name, cells, counted, numbers)
    if cells.of_numbers and not label:
        low, high = float(numbers.min()), float(numbers.max())
        if max(-low, high) > _LARGEST:
            raise DataError(f"holds a number beyond {_LARGEST:g}")
        width = max(1.0, abs(low) * _NARROWEST)  # of a column that says one thing only
        return Column(low=low, high=high if high > low else low + width, derived=True)
    values = sorted(counted)
    if len(max(values, key=len)) > 200:
        raise DataError("holds a text of more than 200 characters: drop it")
    return Column(values=tuple(values), derived=True)


def _check_meaning(name: str, cells: Cells, counted: Counter[str], numbers: np.ndarray) -> None:
    """Refuse, unless somebody declares it, what may name a person, a record or a day: models learn such by heart.

    Args:
        numbers: whole ones; none where the column holds texts.
    """
    count, different = counted.total(), len(counted)
    for form, what in _NO_CATEGORIES.items():
        if 2 * sum(often for text, often in counted.items() if form.fullmatch(text)) > count:
            raise DataError(f"holds {what}, or {_drop(name)}")
    named = _OF_CODES.search(re.sub(r"(?<=[a-zà-ÿ])(?=[A-Z])", "_", name).lower()) is not None
    asked = different >= _FEWEST_IDS and (named or cells.changes + 1 == different < count)
    if len(numbers):
        coded = named or any(text[0] == "0" and text[1:].isdecimal() for text in counted)
        asked |= coded or different > _MOST_NUMBERS or 10 * different > 9 * count >= 9 * _FEWEST_IDS
    else:
        asked |= different > MOST_CATEGORIES or (2 * different > count and different >= _FEWEST_IDS)
    if asked:
        kind = "whole numbers" if len(numbers) else "texts"
        raise DataError(
            f"has {different} different {kind} in {count} records, as an id, a name or a code has: several rows per "
            f"person? If it says whose they are, say person: {printable(name, 60)}; else declare its "
            f"{'bounds or categories' if len(numbers) else 'categories'}, or {_drop(name)}"
        )


def _drop(name: str) -> str:
    return f"leave it out ({printable(name, 60)}: {DROP})"


def _check_classes(counted: Counter[str], numbers: np.ndarray, *, whole: bool) -> None:
    """Refuse a label that is no class. Few numbers are classes, and so are many that count from 0 or 1."""
    different = len(counted)
    if different == 1:
        raise DataError("has the same value in each record: there is nothing to predict")
    if len(numbers):
        found = np.unique(numbers)
        counts = found[0] in (0.0, 1.0) and np.array_equal(found, found[0] + np.arange(len(found)))
        if not counts and (len(found) > _MOST_MARKS or not whole):
            raise DataError(f"has {len(found)} different numbers: {_CLASSES}, or declare its values")
    if different > MOST_CATEGORIES or (different >= _FEWEST_IDS and 2 * different > counted.total()):
        raise DataError(f"has {different} different values in {counted.total()} records: {_CLASSES}")


def check_cells(column: Column, cells: Cells, *, label: bool) -> None:
    """See whether every cell fits.

    Raises:
        DataError: one does not; it is named.
    """
    if column.values is not None:
        codes(column, cells, label=label)
        return
    if len(cells.strays):
        raise DataError(_strayed(cells) + ", or declare values instead of bounds")
    _check_finite(cells)
    if column.missing is Missing.REFUSE and cells.blank.any():
        raise DataError(_emptied(cells, cells.blank, label=False))


def encoded(name: str, column: Column, cells: Cells, at: int) -> tuple[np.ndarray, list[ColumnGroup]]:
    """The features of a column, each row from its own cell, and what they mean.

    Args:
        at: index of its first feature.

    Raises:
        DataError: a cell does not fit.
    """
    if column.values is not None:
        shown = column.categories
        return np.eye(len(shown), dtype=np.float32)[codes(column, cells, label=False)], [one_hot_group(name, at, shown)]
    check_cells(column, cells, label=False)
    blank = cells.blank
    low, high = float(column.low or 0.0), float(column.high or 0.0)
    stands = 0.5 * (low + high) if column.fill is None else float(column.fill)
    block = to_unit(np.where(blank, stands, cells.numbers), low, high)[:, None]
    grid = np.linspace(low, high, _GRID)
    groups = [numeric_group(name, at, grid.tolist(), to_unit(grid, low, high))]
    if column.missing is Missing.INDICATOR:
        block = np.concatenate([block, blank[:, None].astype(np.float32)], axis=1)
        groups.append(binary_group(f"{name} {MISSING}", at + 1))
    return block, groups


def codes(column: Column, cells: Cells, *, label: bool) -> np.ndarray:
    """Each cell as the number of its category.

    Raises:
        DataError: a cell is empty where that is refused, or is no category.
    """
    known = {value: code for code, value in enumerate(column.categories)}
    found: Sequence[str] = cells.texts
    if "" not in known:
        blank = np.array([text == "" for text in found])
        if blank.any() and column.missing is Missing.REFUSE:
            raise DataError(_emptied(cells, blank, label=label))
        stands = str(column.fill) if column.missing is Missing.CONSTANT else MISSING
        found = [text or stands for text in found]
    strange = next((index for index, text in enumerate(found) if text not in known), None)
    if strange is not None:
        shown = printable(repr(found[strange]), 100)
        raise DataError(f"holds {shown}, which its schema does not list ({cells.place(strange)})")
    return np.array([known[text] for text in found], dtype=np.int64)


def outside(column: Column, cells: Cells) -> str:
    """How many numbers lie outside of the bounds, and where; empty where none does."""
    if column.low is None or column.high is None:
        return ""
    found = np.flatnonzero((cells.numbers < column.low) | (cells.numbers > column.high))
    return f"{len(found)}, first in {cells.place(int(found[0]))}" if len(found) else ""


def problem_of(error: ValidationError) -> str:
    """The first complaint, in one line."""
    return printable(error.errors(include_url=False)[0]["msg"].removeprefix("Value error, "), 200)


def _strayed(cells: Cells) -> str:
    first, count = int(cells.strays[0]), len(cells.strays)
    more = f", and {count - 1} more" if count > 1 else ""
    held = "holds numbers, but" if cells.of_numbers else "is declared with bounds, but holds"
    empty = f" (and empty cells: {int(cells.blank.sum())})" if cells.blank.any() else ""
    return f"{held} {cells.shown(first)} in {cells.place(first)}{more}{empty}: correct the cell"


def _emptied(cells: Cells, blank: np.ndarray, *, label: bool) -> str:
    count, first = int(blank.sum()), cells.place(int(np.argmax(blank)))
    remedy = "leave such records out" if label else _EMPTY_REMEDY
    return f"has {count} empty cell{'s' if count > 1 else ''} (first: {first}): {remedy}"


def _check_finite(cells: Cells) -> None:
    wild = np.flatnonzero(np.isinf(cells.numbers))
    if len(wild):
        raise DataError(f"holds a number that is not finite ({cells.place(int(wild[0]))})")

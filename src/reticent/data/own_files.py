"""Tables as they lie in files: csv, parquet and npz, column by column, before anybody says what a column means."""

from __future__ import annotations

import codecs
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import ne
from pathlib import Path
from typing import Any

import numpy as np

from reticent.io.npz import read_arrays
from reticent.kernel.errors import ArtifactError, DataError, needing
from reticent.kernel.text import printable

MOST_COLUMNS = 2000
_MOST_CELLS = 20_000_000
_LONGEST_CELL = 10_000
_SEPARATORS = (",", ";", "\t", "|")
_WESTERN = "reticent-western"

NOTHING = frozenset({"", "na", "n/a", "nan", "-nan", "null", "none", "#n/a", "#na"})
"""What means an empty cell among numbers. Among texts only an empty one does: NA may be a name."""


@dataclass(frozen=True)
class Cells:
    """One column.

    Attributes:
        texts: the cells without spaces around them, empty where there is nothing; a number that the file itself holds
            exactly, without a needless point.
        counted: how the file counts its records, for messages: ``line`` or ``record``.
        comma: whether a comma, too, may stand before the decimals of a number.
        rounded: the type of numbers with a point that the file itself holds; None where whole ones are exact.
    """

    texts: tuple[str, ...]
    counted: str
    comma: bool = False
    rounded: np.dtype | None = None

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def numbers(self) -> np.ndarray:
        """Each cell as a number; NaN where it is empty or none."""
        return np.array([_number(t.replace(",", ".") if self.comma else t) for t in self.texts], dtype=float)

    @cached_property
    def blank(self) -> np.ndarray:
        """Cells that hold no number because they hold nothing."""
        return np.array([text.lower() in NOTHING for text in self.texts], dtype=bool)

    @cached_property
    def strays(self) -> np.ndarray:
        """Indices of the cells that hold something which is not a number."""
        return np.flatnonzero(np.isnan(self.numbers) & ~self.blank)

    @property
    def of_numbers(self) -> bool:
        """Whether more than half of the cells that hold anything hold numbers."""
        found = int(np.count_nonzero(~np.isnan(self.numbers)))
        return found > len(self.strays)

    def tally(self) -> Counter[str]:
        """How often each category occurs that is not an empty cell."""
        empty = NOTHING if self.of_numbers else {""}
        return Counter({text: often for text, often in Counter(self.texts).items() if text.lower() not in empty})

    @property
    def changes(self) -> int:
        """How often a cell differs from the one before."""
        return sum(map(ne, self.texts, self.texts[1:]))

    def place(self, index: int) -> str:
        """The place of a record, counted as a reader of the file would."""
        return f"line {index + 2}" if self.counted == "line" else f"record {index + 1}"

    def shown(self, index: int) -> str:
        """A cell for a message."""
        return printable(repr(self.texts[index]), 60)


def read_table(content: bytes, path: Path) -> dict[str, Cells]:
    """Columns by name.

    Args:
        path: of the file; its ending says what it is.

    Raises:
        DataError: it is not a table, two columns share a name, or there are fewer than two records.
    """
    kinds = dict.fromkeys((".csv", ".tsv", ".tab", ".txt"), _csv) | {".parquet": _parquet, ".npz": _npz}
    if path.suffix.lower() not in kinds:
        raise DataError(f"{path}: a table must be a .csv, .tsv, .txt, .parquet or .npz file")
    if path.suffix.lower() != ".npz":
        with needing("reading such a table", "train"):
            import pyarrow  # noqa: F401
    try:
        table = kinds[path.suffix.lower()](content)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    except Exception as error:
        raise DataError(f"{path}: not a table ({printable(' '.join(str(error).split()), 200)})") from None
    if not table or len(next(iter(table.values()))) < 2:
        raise DataError(f"{path}: a table needs at least two records")
    return table


def _csv(content: bytes) -> dict[str, Cells]:
    """Separators from the first line. How a cell is read depends on no other cell, but that a table may be refused."""
    import pyarrow as pa
    from pyarrow import csv

    wide = content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    text = content.decode("utf-16") if wide else content.decode("utf-8-sig", _WESTERN)
    if "\0" in text:
        raise DataError("holds zero bytes, which no text has: save it as UTF-8")
    head, content = re.split(r"[\r\n]", text, maxsplit=1)[0].encode() + b"\n", text.encode()
    parsed = {sign: csv.ParseOptions(delimiter=sign) for sign in _SEPARATORS}
    heads = {sign: csv.open_csv(io.BytesIO(head), parse_options=how).schema.names for sign, how in parsed.items()}
    sign = max(heads, key=lambda sign: len(heads[sign]))
    _check_size(0, len(heads[sign]))
    _check_quotes(text, sign)
    as_text = csv.ConvertOptions(column_types=dict.fromkeys(heads[sign], pa.string()), strings_can_be_null=False)
    read = csv.read_csv(io.BytesIO(content), parse_options=parsed[sign], convert_options=as_text)
    found = {name: replace(cells, comma=sign != ",") for name, cells in _columns(read, "line").items()}
    _check_header(found)
    _check_signs(found)
    return found


def _western(error: UnicodeError) -> tuple[str, int]:
    """What is no UTF-8, byte by byte, as Excel writes it in western Europe."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("cp1252", "replace"), error.end


codecs.register_error(_WESTERN, _western)


def _check_quotes(text: str, sign: str) -> None:
    """Refuse a quote that its line does not close: it would make one record of several."""
    whole = re.compile(rf'(?:(?:"(?:[^"]|"")*+"|(?!"))[^{re.escape(sign)}]*+(?:{re.escape(sign)}|\Z))+\Z')
    for number, line in enumerate(re.split(r"\r\n?|\n", text), start=1):
        if '"' in line and not whole.match(line):
            raise DataError(
                f"line {number} opens a quote that it does not close: a record is one line. Write a blank for a line "
                'break in a cell; a cell that begins with a quote stands in quotes, with two for each of its own (""")'
            )


def _check_signs(table: dict[str, Cells]) -> None:
    """Refuse a column in which 1.234 may be a thousand and more, as others of its numbers have a comma."""
    for name, cells in table.items():
        known = [text for text, x in zip(cells.texts, cells.numbers, strict=True) if not math.isnan(x)]
        if cells.of_numbers and any("," in text for text in known) and any("." in text for text in known):
            raise DataError(
                f"column {printable(name, 60)!r} has numbers with a comma and numbers with a point: say one"
            )


def _check_header(table: dict[str, Cells]) -> None:
    """Refuse a first line that looks like a record: its person would become names of columns."""
    numeric = [name for name, cells in table.items() if cells.of_numbers]
    like = [name for name in numeric if name.lower() in NOTHING or not math.isnan(_number(name.replace(",", ".")))]
    again = [name for name, cells in table.items() if name in cells.texts]
    if (len(like) == len(numeric) and any(like)) if numeric else 2 * len(again) > len(table):
        raise DataError(
            f"has no header: its first line holds {printable(repr((like or again)[0]), 60)}, as a record does; write a "
            "line of names above it"
        )


def _parquet(content: bytes) -> dict[str, Cells]:
    import pyarrow as pa
    from pyarrow import parquet

    with parquet.ParquetFile(io.BytesIO(content)) as source:
        _check_size(source.metadata.num_rows, source.metadata.num_columns)
        schema = source.schema_arrow
    texts = [field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)]
    return _columns(parquet.read_table(io.BytesIO(content), read_dictionary=texts), "record")


def _npz(content: bytes) -> dict[str, Cells]:
    try:
        found = read_arrays(io.BytesIO(content), "an npz file", ("features", "labels"), 8 * _MOST_CELLS)
    except ArtifactError as error:
        raise DataError(str(error)) from None
    features, labels = found["features"], found["labels"]
    if features.ndim != 2 or labels.shape != features.shape[:1]:
        raise DataError("an npz file needs features of shape (records, columns) and one label for each record")
    _check_size(*features.shape)
    rounded = None if features.dtype.kind in "iu" else np.dtype(float)
    texts = tuple(str(x) for x in labels.tolist())
    _check_texts(texts, "label")
    columns = (features if rounded is None else features.astype(rounded)).T
    table = {f"x{i}": Cells(_plain(column.tolist()), "record", rounded=rounded) for i, column in enumerate(columns)}
    return {**table, "label": Cells(texts, "record")}


def _check_size(rows: int, columns: int) -> None:
    """Before memory is taken."""
    if columns > MOST_COLUMNS or rows * columns > _MOST_CELLS:
        raise DataError(
            f"a table of {rows} records and {columns} columns: at most {_MOST_CELLS} cells and {MOST_COLUMNS} columns "
            "are read"
        )


def _columns(table: Any, counted: str) -> dict[str, Cells]:
    import pyarrow as pa

    _check_size(table.num_rows, table.num_columns)
    found: dict[str, Cells] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        name = name.strip()
        if name in found:
            raise DataError(f"two columns are called {printable(name)!r} (is the first line a header?)")
        if pa.types.is_floating(column.type):
            rounded = np.dtype(column.type.to_pandas_dtype())
            found[name] = Cells(_plain(column.to_pylist()), counted, rounded=rounded)
        elif pa.types.is_integer(column.type):
            found[name] = Cells(_plain(column.to_pylist()), counted)
        else:
            found[name] = Cells(_texts(column, name), counted)
    return found


def _texts(column: Any, name: str) -> tuple[str, ...]:
    """The cells as text, empty where there is none; each different text is held once."""
    import pyarrow as pa

    known = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    cells: list[str] = []
    for chunk in known.chunks:
        texts = ["" if cell is None else str(cell).strip() for cell in chunk.dictionary.to_pylist()]
        _check_texts(texts, name)
        codes = chunk.indices.fill_null(len(texts)).to_pylist()
        cells += map([*texts, ""].__getitem__, codes)
    return tuple(cells)


def _check_texts(texts: Sequence[str], name: str) -> None:
    longest = max(map(len, texts), default=0)
    if longest > _LONGEST_CELL:
        raise DataError(f"column {printable(name)!r} holds a text of {longest} characters, at most {_LONGEST_CELL}")
    if any("\0" in text for text in texts):
        raise DataError(f"column {printable(name)!r} holds zero bytes, which no text has")


def _number(text: str) -> float:
    """The number that a cell holds; NaN where it holds none."""
    try:
        return math.nan if "_" in text else float(text)  # Python itself reads 1_000 as a number
    except ValueError:
        return math.nan


def _plain(numbers: Iterable[float | None]) -> tuple[str, ...]:
    """Numbers as texts that give them back, empty where there is none."""
    return tuple("" if x is None or x != x else str(int(x)) if x % 1 == 0 else repr(float(x)) for x in numbers)

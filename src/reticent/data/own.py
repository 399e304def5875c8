"""A table of one's own as a data set: csv, parquet or npz, encoded record by record by a schema.

The schema says for each column its bounds or its categories. What is declared there was fixed without looking at the
records. What is not declared is read off the records, and then it may show something about one of them: such columns
are named, and a run on them carries a warning.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from reticent import _strict
from reticent._text import did_you_mean, printable
from reticent.data.dataset import ColumnGroup, Dataset, numeric_group, one_hot_group
from reticent.data.files import read_bytes
from reticent.data.tables import MOST_COLUMNS, read_columns
from reticent.errors import ArtifactError, DataError, ParameterError
from reticent.io import yaml

SCHEMA_FILE = "schema.json"
_MOST_CATEGORIES = 200
_GRID = 33
_LARGEST = 1e100
"""Of a number in a table: differences of two are finite, and their quotients."""
_NARROWEST = 1e-6
_LARGEST_SCHEMA = yaml.Limits(size=1 << 20, nodes=100_000)
_TEST_FRACTION = 0.2
Text = Annotated[str, Field(max_length=200)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Column(_Strict):
    """What one column may hold.

    Attributes:
        low, high: bounds of numbers; numbers outside are clipped.
        values: categories, as text, in place of bounds.
        derived: read off the records, not declared.
    """

    low: Annotated[float, Field(allow_inf_nan=False)] | None = None
    high: Annotated[float, Field(allow_inf_nan=False)] | None = None
    values: Annotated[tuple[Text, ...], Field(min_length=1, max_length=_MOST_CATEGORIES)] | None = None
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


class Schema(_Strict):
    """How a table becomes features and labels.

    Attributes:
        label: the column to predict; its categories are the classes, in this order.
        columns: every other column that is used, in the order of the features, and the label.
    """

    label: Text
    columns: Annotated[dict[Text, Column], Field(min_length=2, max_length=MOST_COLUMNS)]

    @model_validator(mode="after")
    def _label_is_a_category(self) -> Schema:
        if self.label not in self.columns or self.columns[self.label].values is None:
            raise ValueError("the label must be a column with values")
        return self

    @property
    def derived(self) -> tuple[str, ...]:
        """Columns whose bounds or categories were read off the records."""
        return tuple(name for name, column in self.columns.items() if column.derived)

    def to_json(self) -> str:
        """Strict JSON text; its SHA-256 names the schema."""
        return _strict.dumps(self.model_dump(mode="json"))

    @classmethod
    def from_json(cls, text: bytes | str, where: str) -> Schema:
        """Read a schema back.

        Raises:
            ArtifactError: the text is no schema.
        """
        try:
            return cls.model_validate(_strict.loads(text, where, keys=MOST_COLUMNS, objects=2 * MOST_COLUMNS))
        except ValidationError as error:
            raise ArtifactError(f"{where}: {_problem(error)}") from None


@dataclass(frozen=True)
class OwnTable:
    """A table of one's own, ready to train on.

    Attributes:
        dataset: the records, encoded and split.
        schema: how they were encoded.
        file: name of the file, without its folder.
        file_sha256: of its bytes.
    """

    dataset: Dataset
    schema: Schema
    file: str
    file_sha256: str

    @property
    def schema_sha256(self) -> str:
        """SHA-256 of the schema as JSON text."""
        return hashlib.sha256(self.schema.to_json().encode()).hexdigest()


def declared_columns(path: Path) -> dict[str, Any]:
    """Bounds and categories by column, from a YAML file.

    Raises:
        ArtifactError: the file is missing, no YAML, or no mapping.
    """
    document = yaml.load_file(path, _LARGEST_SCHEMA)
    if not isinstance(document, dict):
        raise ArtifactError(f"{path}: must be a mapping of columns to bounds or categories")
    return document


def load_table(path: Path | str, label: str, declared: Mapping[str, Any] | None = None) -> OwnTable:
    """Read a table and encode it; 80 % of the records are for training, by a fixed seed.

    Args:
        path: a csv file with a header, a parquet file, or an npz file with ``features`` and ``labels``.
        label: the column to predict (``label`` for npz).
        declared: bounds (``{"low": .., "high": ..}``) or categories (``{"values": [..]}``) by column.

    Raises:
        DataError: the file is missing or no table, or a cell does not fit the schema.
        ParameterError: a column is declared that is not there, or a declaration is malformed.
    """
    path = Path(path)
    content = read_bytes(path)
    table = read_columns(content, path)
    if label not in table:
        columns = list(table)[:20]
        raise ParameterError("label", label, f"one of the columns {', '.join(columns)}{did_you_mean(label, columns)}")
    schema = derive_schema(table, label, declared or {})
    return encode(table, schema, path.name, hashlib.sha256(content).hexdigest())


def find_table(file: str, sha256: str, schema: Schema, folders: list[Path]) -> OwnTable:
    """The table of a run, by the name and the fingerprint of its file.

    Raises:
        DataError: no folder has it, or only one that was changed since.
    """
    changed = None
    for folder in dict.fromkeys(folders):
        path = folder / file
        if not path.is_file():
            continue
        content = read_bytes(path)
        if hashlib.sha256(content).hexdigest() == sha256:
            return encode(read_columns(content, path), schema, file, sha256)
        changed = path
    if changed is not None:
        line = f"{changed} has changed since the run: its SHA-256 is not {sha256[:12]}..."
        raise DataError(f"{line}; bring the old file back")
    looked = ", ".join(map(str, dict.fromkeys(folders)))
    raise DataError(f"{printable(file)} of the run is not in {looked}: put it there, or call run.dataset(mine)")


def derive_schema(table: Mapping[str, np.ndarray], label: str, declared: Mapping[str, Any]) -> Schema:
    """Declared columns as they are, all others read off the records and marked so.

    Raises:
        ParameterError, DataError: as ``load_table``.
    """
    for name in declared:
        if name not in table:
            raise ParameterError("schema", name, "a column of the table")
    columns = {}
    for name, cells in table.items():
        if name in declared:
            columns[name] = _declared(name, declared[name])
        else:
            columns[name] = _derived(name, cells, category=name == label)
    try:
        return Schema(label=label, columns=columns)
    except ValidationError as error:
        raise ParameterError("schema", label, f"right ({_problem(error)})") from None


def encode(table: Mapping[str, np.ndarray], schema: Schema, file: str, sha256: str) -> OwnTable:
    """Features and labels by the schema, each record on its own.

    Raises:
        DataError: a column is missing, or a cell does not fit.
    """
    blocks, groups, at = [], [], 0
    for name, column in schema.columns.items():
        if name not in table:
            raise DataError(f"{file}: has no column {printable(name)!r}")
        if name != schema.label:
            block, group = _encoded(name, column, table[name], at)
            blocks.append(block)
            groups.append(group)
            at += block.shape[1]
    classes = schema.columns[schema.label].values or ()
    labels = _codes(schema.label, table[schema.label], classes)
    derived = schema.derived
    notes = (f"Read off the records, not declared: {', '.join(derived)[:500]}.",) if derived else ()
    whole = Dataset(
        name=Path(file).stem[:100],
        source=f"a table of the user, {file}",
        features=np.ascontiguousarray(np.concatenate(blocks, axis=1)),
        labels=labels,
        classes=len(classes),
        train=np.arange(len(labels)),
        test=np.arange(0),
        groups=tuple(groups),
        notes=notes,
    )
    return OwnTable(whole.split(1.0 - _TEST_FRACTION, seed=0), schema, file, sha256)


def _declared(name: str, said: Any) -> Column:
    try:
        column = Column.model_validate(said if isinstance(said, dict) else {"values": said})
    except ValidationError as error:
        raise ParameterError("schema", name, f"a column with low and high, or values ({_problem(error)})") from None
    return column.model_copy(update={"derived": False})


def _derived(name: str, cells: np.ndarray, *, category: bool) -> Column:
    if cells.dtype.kind == "f" and not category:
        if not np.isfinite(cells).all():
            raise DataError(f"column {printable(name)!r} holds a number that is not finite")
        low, high = float(cells.min()), float(cells.max())
        if max(-low, high) > _LARGEST:
            raise DataError(f"column {printable(name)!r} holds a number beyond {_LARGEST:g}")
        width = max(1.0, abs(low) * _NARROWEST)  # of a column that says one thing only
        return Column(low=low, high=high if high > low else low + width, derived=True)
    values = sorted(set(_texts(cells)))
    if len(values) > _MOST_CATEGORIES:
        raise DataError(
            f"column {printable(name)!r} has {len(values)} different texts, more than {_MOST_CATEGORIES}: drop it, or "
            "declare its categories"
        )
    try:
        return Column(values=tuple(values), derived=True)
    except ValidationError as error:
        raise DataError(f"column {printable(name)!r}: {_problem(error)}") from None


def _encoded(name: str, column: Column, cells: np.ndarray, at: int) -> tuple[np.ndarray, ColumnGroup]:
    if column.values is not None:
        codes = _codes(name, cells, column.values)
        return np.eye(len(column.values), dtype=np.float32)[codes], one_hot_group(name, at, column.values)
    low, high = float(column.low or 0.0), float(column.high or 0.0)
    if cells.dtype.kind != "f" or not np.isfinite(cells).all():
        raise DataError(f"column {printable(name)!r} holds something that is no finite number")
    grid = np.linspace(low, high, _GRID)
    return _unit(cells, low, high)[:, None], numeric_group(name, at, grid.tolist(), _unit(grid, low, high))


def _unit(raw: np.ndarray, low: float, high: float) -> np.ndarray:
    return (2.0 * (np.clip(raw, low, high) - low) / (high - low) - 1.0).astype(np.float32)


def _codes(name: str, cells: np.ndarray, values: tuple[str, ...]) -> np.ndarray:
    known = {value: code for code, value in enumerate(values)}
    try:
        return np.array([known[text] for text in _texts(cells)], dtype=np.int64)
    except KeyError as error:
        found = printable(repr(error.args[0]), 100)
        raise DataError(f"column {printable(name)!r} holds {found}, which its schema does not list") from None


def _texts(cells: np.ndarray) -> list[str]:
    """Cells as categories; whole numbers without a point."""
    if cells.dtype.kind != "f":
        return [str(cell) for cell in cells]
    return [str(int(x)) if math.isfinite(x) and x == int(x) else repr(float(x)) for x in cells.tolist()]


def _problem(error: ValidationError) -> str:
    return printable(error.errors(include_url=False)[0]["msg"].removeprefix("Value error, "), 200)

"""A table of one's own as a data set: csv, parquet or npz, encoded record by record by a schema.

The schema says for each column its bounds or its categories. What is declared there was fixed without looking at the
records. What is not declared is read off the records, and then it may show something about one of them: such columns
are named, and a run on them carries a warning.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
from pydantic import Field, ValidationError, model_validator

from reticent.data.dataset import Dataset
from reticent.data.files import read_bytes
from reticent.data.own_columns import (
    Column,
    Text,
    check_cells,
    codes,
    declared_column,
    derived_column,
    encoded,
    problem_of,
)
from reticent.data.own_files import MOST_COLUMNS, Cells, read_table
from reticent.errors import ArtifactError, DataError, ParameterError
from reticent.io import strict, yaml
from reticent.io.models import Closed
from reticent.text import did_you_mean, printable

SCHEMA_FILE = "schema.json"
_LARGEST_SCHEMA = yaml.Limits(size=1 << 20, nodes=100_000)
_TRAIN_FRACTION = 0.8

Answer = TypeVar("Answer")


class Schema(Closed):
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
        return strict.dumps(self.model_dump(mode="json"))

    @classmethod
    def from_json(cls, text: bytes | str, where: str) -> Schema:
        """Read a schema back.

        Raises:
            ArtifactError: the text is no schema.
        """
        try:
            return cls.model_validate(strict.loads(text, where, keys=MOST_COLUMNS, objects=2 * MOST_COLUMNS))
        except ValidationError as error:
            raise ArtifactError(f"{where}: {problem_of(error)}") from None


class ColumnsError(DataError):
    """Columns that nobody can use as they are.

    Attributes:
        troubles: one sentence for each column, that of the label first.
    """

    def __init__(self, where: str, troubles: tuple[str, ...]) -> None:
        self.troubles = troubles
        many = f"{len(troubles)} columns need an answer: " if len(troubles) > 1 else ""
        super().__init__(f"{where}: {many}{'; '.join(troubles)}")


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


def load_table(path: Path | str, label: str, declared: Mapping[str, Any] | None = None) -> OwnTable:
    """Read a table and encode it; 80 % of the records are for training, by a fixed seed.

    Args:
        path: a csv file with a header, a parquet file, or an npz file with ``features`` and ``labels``.
        label: the column to predict (``label`` for npz).
        declared: bounds (``{"low": .., "high": ..}``) or categories (``{"values": [..]}``) by column, and what becomes
            of empty cells (``"missing"``).

    Raises:
        DataError: the file is missing or no table, or a cell does not fit the schema.
        ParameterError: a column is declared that is not there, or a declaration is malformed.
    """
    path = Path(path)
    content = read_bytes(path)
    table = read_table(content, path)
    if label not in table:
        columns = list(table)[:20]
        if len(table) == 1 and path.suffix.lower() == ".csv":
            raise DataError(f"{path.name}: has one column, {columns[0][:80]!r}: columns are separated by commas")
        raise ParameterError("label", label, f"one of the columns {', '.join(columns)}{did_you_mean(label, columns)}")
    schema = derive_schema(table, label, declared or {}, path.name)
    return encode(table, schema, path.name, hashlib.sha256(content).hexdigest())


def declared_columns(path: Path) -> dict[str, Any]:
    """Bounds and categories by column, from a YAML file.

    Raises:
        ArtifactError: the file is missing, no YAML, or no mapping.
    """
    document = yaml.load_file(path, _LARGEST_SCHEMA)
    if not isinstance(document, dict) or not all(isinstance(name, str) for name in document):
        raise ArtifactError(f"{path}: must be a mapping of columns to bounds or categories")
    return document


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
            return encode(read_table(content, path), schema, file, sha256)
        changed = path
    if changed is not None:
        line = f"{changed} has changed since the run: its SHA-256 is not {sha256[:12]}..."
        raise DataError(f"{line}; bring the old file back")
    looked = ", ".join(map(str, dict.fromkeys(folders)))
    raise DataError(f"{printable(file)} of the run is not in {looked}: put it there, or call run.dataset(mine)")


def derive_schema(table: Mapping[str, Cells], label: str, declared: Mapping[str, Any], file: str) -> Schema:
    """Declared columns as they are, all others read off the records and marked so; every cell fits them.

    Raises:
        ParameterError, DataError: as ``load_table``; every column that nobody can use is named, the label first.
    """
    strange = [name for name in declared if name not in table]
    if strange:
        meant = did_you_mean(strange[0], table)
        raise ParameterError("schema", ", ".join(map(str, strange)), f"columns of the table{meant}")

    def column(name: str) -> Column:
        cells, is_label = table[name], name == label
        if name in declared:
            found = declared_column(name, declared[name], cells, label=is_label)
        else:
            found = derived_column(cells, label=is_label)
        check_cells(found, cells, label=is_label)
        return found

    columns = _each_column(table, label, column, file)
    try:
        return Schema(label=label, columns=columns)
    except ValidationError as error:
        raise ParameterError("schema", label, f"right ({problem_of(error)})") from None


def encode(table: Mapping[str, Cells], schema: Schema, file: str, sha256: str) -> OwnTable:
    """Features and labels by the schema, each record on its own.

    Raises:
        DataError: columns are missing, or cells do not fit; all such columns are named, the label first.
    """
    absent = [name for name in schema.columns if name not in table]
    if absent:
        raise DataError(f"{file}: has no column {', '.join(repr(printable(name)) for name in absent)}")

    def block(name: str) -> tuple[np.ndarray, list[Any]]:
        column, cells = schema.columns[name], table[name]
        if name == schema.label:
            return codes(column, cells, label=True), []
        return encoded(name, column, cells, first[name])

    first = _first_features(schema)
    found = _each_column(schema.columns, schema.label, block, file)
    labels, derived = found.pop(schema.label)[0], schema.derived
    notes = (f"Read off the records, not declared: {', '.join(derived)[:500]}.",) if derived else ()
    whole = Dataset.pooled(
        _TRAIN_FRACTION,
        name=Path(file).stem[:100],
        source=f"a table of the user, {file}",
        features=np.ascontiguousarray(np.concatenate([block for block, _ in found.values()], axis=1)),
        labels=labels,
        classes=len(schema.columns[schema.label].values or ()),
        groups=tuple(group for _, groups in found.values() for group in groups),
        notes=notes,
    )
    return OwnTable(whole, schema, file, sha256)


def _first_features(schema: Schema) -> dict[str, int]:
    """Where the features of each column begin."""
    first, at = {}, 0
    for name, column in schema.columns.items():
        if name != schema.label:
            first[name], at = at, at + column.width
    return first


def _each_column(names: Mapping[str, Any], label: str, answer: Callable[[str], Answer], file: str) -> dict[str, Answer]:
    """``answer`` for each column, in their order; the troubles of all of them in one message, the label's first.

    Raises:
        ParameterError: the declaration of a single column is wrong, and nothing else.
        DataError: whatever else.
    """
    found: dict[str, Answer] = {}
    troubles: dict[str, DataError | ParameterError] = {}
    for name in names:
        try:
            found[name] = answer(name)
        except (DataError, ParameterError) as error:
            troubles[name] = error
    if not troubles:
        return found
    errors = list(troubles.values())
    if len(errors) == 1 and isinstance(errors[0], ParameterError):
        raise errors[0]
    told = []
    for name in sorted(troubles, key=lambda name: name != label):
        role = " (the label)" if name == label else ""
        told.append(f"column {printable(name, 60)!r}{role} {_told(troubles[name])}")
    raise ColumnsError(file, tuple(told))


def _told(error: DataError | ParameterError) -> str:
    return f"is declared wrongly: it must be {error.allowed}" if isinstance(error, ParameterError) else str(error)

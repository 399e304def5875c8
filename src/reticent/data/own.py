"""A table of one's own as a data set: csv, parquet or npz, encoded record by record by a schema.

The schema says for each column its bounds or its categories. What is declared there was fixed without looking at the
records. What is not declared is read off the records, and then it may show something about one of them: such columns
are named, and a run on them carries a warning.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
from pydantic import Field, ValidationError, model_validator

from reticent.data.dataset import Dataset, hashed
from reticent.data.files import read_bytes
from reticent.data.own_columns import (
    DROP,
    Column,
    Text,
    check_cells,
    codes,
    declared_column,
    derived_column,
    encoded,
    outside,
    problem_of,
)
from reticent.data.own_files import MOST_COLUMNS, Cells, read_table
from reticent.io import strict, yaml
from reticent.io.models import Closed, Count, validated
from reticent.kernel.errors import ArtifactError, DataError, ParameterError
from reticent.kernel.text import did_you_mean, printable

SCHEMA_FILE = "schema.json"
_LARGEST_SCHEMA = yaml.Limits(size=1 << 20, nodes=100_000)
_TRAIN_FRACTION = 0.8
_SKELETON = """\
# A schema with blanks. Fill them from what is known without these records. Whether a column seems to hold numbers was
# seen in the records, so look at each. A blank that stays is refused; a line that goes away is read off the records.
# Empty cells: add missing: constant and fill: VALUE, or missing: indicator.
# Has a person several rows? Which column says whose a row is, and how many rows of each person count?
# person: COLUMN
# records_per_user: NUMBER
"""
_NUMBERS = "{low: , high: }  # numbers from what to what? Are they really codes: {values: []}? Not needed: drop"
_CATEGORIES = "{values: []}  # which categories? Not needed: drop"
_ASKED = f"{DROP}  # a person, a record, a code, a day? Does it say whose a row is: person, above? Needed: declare it"

Answer = TypeVar("Answer")


class Schema(Closed):
    """How a table becomes features and labels.

    Attributes:
        label: the column to predict; its categories are the classes, in this order.
        columns: every other column that is used, in the order of the features, and the label.
        person: the column that says whose a record is, which is no feature; all records of a person are together.
        records_per_user: so many records of each person are kept, with ``person``.
    """

    label: Text
    columns: Annotated[dict[Text, Column], Field(min_length=2, max_length=MOST_COLUMNS)]
    person: Text | None = None
    records_per_user: Count | None = None

    @model_validator(mode="after")
    def _label_is_a_category(self) -> Schema:
        if self.label not in self.columns or self.columns[self.label].values is None:
            raise ValueError("the label must be a column with values")
        if self.person in self.columns or (self.person is None) != (self.records_per_user is None):
            raise ValueError("records_per_user goes with person, which is neither the label nor a feature")
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
        return validated(cls, strict.loads(text, where, keys=MOST_COLUMNS, objects=2 * MOST_COLUMNS), where)


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
        changed: what was not taken as it stands, one sentence each; about the records, so not for others.
    """

    dataset: Dataset
    schema: Schema
    file: str
    file_sha256: str
    changed: tuple[str, ...] = ()

    @property
    def schema_sha256(self) -> str:
        """SHA-256 of the schema as JSON text."""
        return hashlib.sha256(self.schema.to_json().encode()).hexdigest()


def load_table(path: Path | str, label: str, declared: Mapping[str, Any] | None = None) -> OwnTable:
    """Read a table and encode it; each record, or person, is for training with chance 80 %, by a hash of itself.

    Args:
        path: a csv file with a header, a parquet file, or an npz file with ``features`` and ``labels``.
        label: the column to predict (``label`` for npz).
        declared: bounds (``{"low": .., "high": ..}``), categories (``{"values": [..]}``) or ``"drop"`` by column, and
            what becomes of empty cells (``"missing"``); under ``person`` the column that says whose a record is, and
            under ``records_per_user`` how many of each person are kept.

    Raises:
        DataError: the file is missing or no table, or a cell does not fit the schema.
        ParameterError: a column is declared that is not there, or a declaration is malformed.
    """
    path = Path(path)
    content = read_bytes(path)
    table = read_table(content, path)
    if label not in table:
        columns = list(table)[:20]
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
    said = dict(declared)
    person = said.pop("person", None)
    if isinstance(person, str) and person != DROP:
        kept = _kept(table, person, said.pop("records_per_user", None), file)
    else:  # what is said of a column of that name
        said, person, kept = dict(declared), None, None
    strange = [name for name in said if name not in table]
    if strange:
        meant = did_you_mean(strange[0], table)
        raise ParameterError("schema", ", ".join(map(str, strange)), f"columns of the table{meant}")
    used = {name: cells for name, cells in table.items() if said.get(name) != DROP and name != person}
    if person is not None and said.get(person, DROP) != DROP:
        raise ParameterError("schema", person, "no feature: it says whose a record is")
    if label not in used:
        raise ParameterError("schema", label, "a column that is used: it is the label")

    def column(name: str) -> Column:
        cells, is_label = table[name], name == label
        if name in said:
            found = declared_column(name, said[name], cells, label=is_label)
        else:
            found = derived_column(name, cells, label=is_label)
        check_cells(found, cells, label=is_label)
        return found

    columns = _each_column(used, label, column, file)
    try:
        return Schema(label=label, columns=columns, person=person, records_per_user=kept)
    except ValidationError as error:
        raise ParameterError("schema", label, f"right ({problem_of(error)})") from None


def encode(table: Mapping[str, Cells], schema: Schema, file: str, sha256: str) -> OwnTable:
    """Features and labels by the schema, each record on its own.

    Raises:
        DataError: columns are missing, or cells do not fit; all such columns are named, the label first.
    """
    absent = [name for name in (*schema.columns, schema.person) if name is not None and name not in table]
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
    keys = _keys(table, schema.person)
    rows = _first_of_each(keys, schema.records_per_user)
    beyond = {name: outside(column, table[name]) for name, column in schema.columns.items()}
    moved = [f"{printable(name, 60)} ({said})" for name, said in beyond.items() if said]
    changed = [f"outside of the bounds, and taken as the nearest: {', '.join(moved)}"] if moved else []
    if len(rows) < len(keys):
        changed.append(f"{len(keys) - len(rows)} records left out: beyond {schema.records_per_user} of one person")
    notes = (f"Read off the records, not declared: {', '.join(derived)[:500]}.",) if derived else ()
    whole = Dataset.pooled(
        _TRAIN_FRACTION,
        name=Path(file).stem[:100],
        source=f"a table of the user, {file}",
        features=np.ascontiguousarray(np.concatenate([block[rows] for block, _ in found.values()], axis=1)),
        labels=labels[rows],
        keys=keys[rows],
        classes=len(schema.columns[schema.label].values or ()),
        groups=tuple(group for _, groups in found.values() for group in groups),
        notes=notes,
    )
    return OwnTable(whole, schema, file, sha256, tuple(changed))


def _kept(table: Mapping[str, Cells], person: str, most: object, file: str) -> int:
    """How many records of each person are kept.

    Raises:
        ParameterError: there is no such column, or this is no number of records.
        DataError: nobody said it, and somebody has several; or a record is nobody's.
    """
    if person not in table:
        raise ParameterError("schema", person, f"a column that says whose a record is{did_you_mean(person, table)}")
    if most is not None and (type(most) is not int or most < 1):
        raise ParameterError("schema", most, "a whole number of at least 1 under records_per_user")
    cells = table[person]
    found = Counter(cells.texts)
    if "" in found:
        raise DataError(f"{file}: column {printable(person, 60)!r} says of {found['']} records not whose they are")
    if cells.rounded is not None:
        whole = 2 ** (np.finfo(cells.rounded).nmant + 1)
        if np.max(np.abs(cells.numbers)) >= whole:
            raise DataError(
                f"{file}: column {printable(person, 60)!r} holds {cells.rounded} numbers of {whole} or more, "
                "of which one may stand for several persons: write it as whole numbers or as text"
            )
    largest = max(found.values())
    if most is None and largest > 1:
        raise DataError(
            f"{file}: {len(found)} persons by {printable(person, 60)!r} in {len(cells)} records, up to "
            f"{largest} of one: say under records_per_user how many of each count, best a number that is known without "
            "these records; what is beyond is left out"
        )
    return 1 if most is None else int(most)


def _keys(table: Mapping[str, Cells], person: str | None) -> np.ndarray:
    """Hashes of each record's person, or of itself, and of itself; equal records are told apart by counting them."""
    seen, found = Counter[int](), list[int]()
    for said in zip(*(cells.texts for cells in table.values()), strict=True):  # no text holds a zero byte
        record = hashed("\0".join(("", *said)).encode())
        seen[record] += 1
        found.append(hashed(f"{record} {seen[record]}".encode()))
    whole = found if person is None else [hashed(text.encode()) for text in table[person].texts]
    return np.array([whole, found], dtype=np.uint64).T


def _first_of_each(keys: np.ndarray, most: int | None) -> np.ndarray:
    """Indices of the records that are kept, in order: of each person those with the smallest hashes."""
    if most is None:
        return np.arange(len(keys))
    order = np.lexsort((keys[:, 1], keys[:, 0]))
    persons = keys[order, 0]
    place = np.arange(len(keys)) - np.searchsorted(persons, persons)
    return np.sort(order[place < most])


def skeleton(path: Path) -> str:
    """A schema with blanks, to be filled by whoever knows what the columns mean.

    The kind of each column was seen in the records, and only that: no cell, bound, category or count is copied.

    Raises:
        DataError: the file is missing or no table.
    """
    lines = [_SKELETON]
    for name, cells in read_table(read_bytes(path), path).items():
        try:
            line = _NUMBERS if derived_column(name, cells, label=False).values is None else _CATEGORIES
        except DataError:
            line = _ASKED
        lines.append(f"{json.dumps(name, ensure_ascii=False)}: {line}")
    return "\n".join(lines) + "\n"


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

"""UCI Adult census income: 108 columns by public constants, one record at a time.

The encoding is fixed in this file: categories from the published code book, numbers clipped to public
ranges and moved by rounded constants from published summaries of the 1994 census extract. Nothing is
computed from the loaded records, so replacing one record changes one row and nothing else; an encoding
by means and deviations of the loaded records would leak through every row, outside any accounting.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

import numpy as np

from reticent.data.dataset import ColumnGroup, Dataset, numeric_group, one_hot_group
from reticent.data.files import data_root, read_checked
from reticent.kernel.errors import DataError

TRAIN_SHA256 = "df25a4e32ed6f1bd4b3910d21a7bd661a09061eced7cb45555a519d9667cc87b"
TEST_SHA256 = "5c8e678e04c82a07182bbcb6667c9a06faaba123a55b409af7c5d21fb45784b3"
SOURCE = "Adult census income, UCI Machine Learning Repository, CC BY 4.0"


@dataclass(frozen=True, slots=True)
class Numeric:
    """A number clipped to a public range and moved to the scale of the model.

    Attributes:
        low, high: public range; values outside are clipped.
        centre, width: the model sees ``(x - centre) / width``, of ``log1p(x)`` if ``logarithmic``.
        step: distance of neighbouring candidate values of the attribute.
    """

    low: float
    high: float
    centre: float
    width: float
    step: float = 1.0
    logarithmic: bool = False

    def encode(self, raw: np.ndarray) -> np.ndarray:
        """Model scale, float32, of the shape of ``raw``."""
        x = np.clip(np.asarray(raw, dtype=float), self.low, self.high)
        return (((np.log1p(x) if self.logarithmic else x) - self.centre) / self.width).astype(np.float32)

    def grid(self) -> np.ndarray:
        """Candidate raw values from ``low`` to ``high``, both included."""
        return np.unique(np.append(np.arange(self.low, self.high, self.step), self.high))


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


WORKCLASS = _words("? Federal-gov Local-gov Never-worked Private Self-emp-inc Self-emp-not-inc State-gov Without-pay")
EDUCATION = _words(
    "10th 11th 12th 1st-4th 5th-6th 7th-8th 9th Assoc-acdm Assoc-voc Bachelors Doctorate HS-grad Masters "
    "Preschool Prof-school Some-college"
)
MARITAL = _words("Divorced Married-AF-spouse Married-civ-spouse Married-spouse-absent Never-married Separated Widowed")
OCCUPATION = _words(
    "? Adm-clerical Armed-Forces Craft-repair Exec-managerial Farming-fishing Handlers-cleaners "
    "Machine-op-inspct Other-service Priv-house-serv Prof-specialty Protective-serv Sales Tech-support "
    "Transport-moving"
)
RELATIONSHIP = _words("Husband Not-in-family Other-relative Own-child Unmarried Wife")
RACE = _words("Amer-Indian-Eskimo Asian-Pac-Islander Black Other White")
SEX = _words("Female Male")
COUNTRY = _words(
    "? Cambodia Canada China Columbia Cuba Dominican-Republic Ecuador El-Salvador England France Germany "
    "Greece Guatemala Haiti Holand-Netherlands Honduras Hong Hungary India Iran Ireland Italy Jamaica Japan "
    "Laos Mexico Nicaragua Outlying-US(Guam-USVI-etc) Peru Philippines Poland Portugal Puerto-Rico Scotland "
    "South Taiwan Thailand Trinadad&Tobago United-States Vietnam Yugoslavia"
)

# One entry per field of the file, in its order.
FIELDS: tuple[tuple[str, Numeric | tuple[str, ...]], ...] = (
    ("age", Numeric(17, 90, 40, 15)),
    ("workclass", WORKCLASS),
    ("fnlwgt", Numeric(0, 1_500_000, 190_000, 100_000, step=10_000)),
    ("education", EDUCATION),
    ("education-num", Numeric(1, 16, 10, 3)),
    ("marital-status", MARITAL),
    ("occupation", OCCUPATION),
    ("relationship", RELATIONSHIP),
    ("race", RACE),
    ("sex", SEX),
    ("capital-gain", Numeric(0, 99_999, 0, 5, step=1_000, logarithmic=True)),
    ("capital-loss", Numeric(0, 5_000, 0, 5, step=100, logarithmic=True)),
    ("hours-per-week", Numeric(1, 99, 40, 12)),
    ("native-country", COUNTRY),
)
LABELS = {"<=50K": 0, ">50K": 1}


def load_adult() -> Dataset:
    """Adult with its published split: 32,561 training and 16,281 test records, 108 columns.

    "?" is a category of its own, as in the file. Columns keep the order of the file's fields.

    Raises:
        DataError: ``RETICENT_DATA`` is unset, or a file is missing or corrupt.
    """
    folder = data_root() / "adult"
    train = _rows(read_checked(folder / "adult.data", TRAIN_SHA256), "adult.data")
    test = _rows(read_checked(folder / "adult.test", TEST_SHA256), "adult.test")
    features, labels = encode(train + test)
    return Dataset(
        name="adult",
        source=SOURCE,
        features=features,
        labels=labels,
        classes=2,
        train=np.arange(len(train)),
        test=np.arange(len(train), len(train) + len(test)),
        groups=column_groups(),
        notes=("Encoded by public constants, record by record; nothing is computed from the records.",),
    )


def encode(rows: list[list[str]]) -> tuple[np.ndarray, np.ndarray]:
    """(features float32 (records, 108), labels int64) of rows with 15 fields of text each."""
    blocks = [_encode_field(name, kind, [row[i] for row in rows]) for i, (name, kind) in enumerate(FIELDS)]
    labels = _codes("income", [row[14].rstrip(".") for row in rows], LABELS)
    return np.concatenate(blocks, axis=1), labels.astype(np.int64)


def column_groups() -> tuple[ColumnGroup, ...]:
    """The 14 attributes with their columns and candidate values; age has the 74 values 17 to 90."""
    groups, column = [], 0
    for name, kind in FIELDS:
        if isinstance(kind, Numeric):
            grid = kind.grid()
            groups.append(numeric_group(name, column, grid.tolist(), kind.encode(grid)))
        else:
            groups.append(one_hot_group(name, column, kind))
        column += len(groups[-1].columns)
    return tuple(groups)


def _rows(content: bytes, name: str) -> list[list[str]]:
    lines = [line for line in content.decode("ascii").splitlines() if line.strip() and not line.startswith("|")]
    rows = [[field.strip() for field in row] for row in csv.reader(io.StringIO("\n".join(lines)))]
    if any(len(row) != 15 for row in rows):
        raise DataError(f"{name}: a line does not have 15 fields")
    return rows


def _encode_field(name: str, kind: Numeric | tuple[str, ...], column: list[str]) -> np.ndarray:
    if isinstance(kind, Numeric):
        try:
            return kind.encode(np.array(column, dtype=float))[:, None]
        except ValueError:
            raise DataError(f"adult: {name} holds something that is not a number") from None
    codes = _codes(name, column, {value: i for i, value in enumerate(kind)})
    return np.eye(len(kind), dtype=np.float32)[codes]


def _codes(name: str, column: list[str], known: dict[str, int]) -> np.ndarray:
    try:
        return np.array([known[value] for value in column])
    except KeyError as error:
        raise DataError(f"adult: {name} holds {error.args[0]!r}, which the code book does not list") from None

"""Columns of one's own: every trouble is named at once, and one record changes one row, empty cells or not."""

from __future__ import annotations

import numpy as np
import pytest
from pyarrow import parquet, table

from reticent.data.own import ColumnsError, Schema, load_table
from reticent.data.own_columns import Column

HEAD = "age,job,income\n"
ROWS = "20,cook,low\n30,clerk,high\n40,cook,low\n50,cook,high\n60,clerk,low\n"
TABLE = HEAD + ROWS
AGE, JOB = {"low": 10, "high": 90}, {"values": ["clerk", "cook"]}
CONSTANT, INDICATOR = {"missing": "constant"}, {"missing": "indicator"}


def rows(column: str, cell, count: int = 240) -> str:
    """A table in which one column holds ``cell`` of the place of each record, or its cells."""
    cells = [cell(i) for i in range(count)] if callable(cell) else cell
    return f"x,{column},income\n" + "".join(
        f"{i % 7},{text},{'low' if i % 3 else 'high'}\n" for i, text in enumerate(cells)
    )


def labels(label, count: int = 240) -> str:
    return "x,income\n" + "".join(f"{i % 7},{label(i)}\n" for i in range(count))


STRAYS = ("old", "1,5", "20 years", "1_000", "?")
EMPTY = "column 'age' has 1 empty cell (first: line 7): fill them, leave such records out, or say missing"
DAYS = (
    lambda i: f"{1 + i % 3:02}-{1 + i % 2:02}-1999",
    lambda i: f"{1 + i % 3:02}.{1 + i % 2:02}.2003",
    lambda i: f"2020-{1 + i % 2:02}-{1 + i % 3:02}T08:00:00",
    lambda i: f"{1 + i % 2}/{1 + i % 3}/99",
    lambda i: f"{1 + i % 3}-Feb-99",
    lambda i: f"{1 + i % 3}. Okt. 199{i % 2}",
    lambda i: f"20{1 + i % 2:02}10{1 + i % 3:02}",
)
CODES = {
    "patientid": lambda i: i * 7 % 90,  # a number that repeats
    "Patient-ID": lambda i: f"P{i * 7 % 50}",
    "kundennummer": lambda i: 5 + i * 7 % 12,
    "nr": lambda i: i // 3,  # rows of one person beside each other
    "Unnamed: 0": lambda i: i,
    "many": lambda i: i * i % 40_009 + 7,
    "PLZ": lambda i: [80331, 10115, 20095][i % 3],
    "area": lambda i: ["01067", "99084"][i % 2],  # leading zeros
    "code postal": lambda i: 75001 + i % 4,
    "clinicCode": lambda i: 100 + i % 4,
}
REFUSED = [
    # All columns at once, the label first.
    (
        f"{HEAD}20,cook,low\nold,,high\n40,cook,\n50,cook,high\n",
        {"job": JOB},
        "people.csv: 3 columns need an answer: column 'income' (the label) has 1 empty cell (first: line 4): leave "
        "such records out ... 'old' in line 3 ... column 'job' has 1 empty cell (first: line 3)",
    ),
    (
        TABLE,
        {"age": {"low": 5}, "job": {"values": ["cook"]}, "income": {"missing": "mean"}},
        "3 columns ... 'income' (the label) ... 'age' is declared wrongly ... 'job' holds 'clerk' ... does not list",
    ),
    # Cells that do not fit.
    *((f'{TABLE}"{cell}",cook,low\n', {}, f"holds numbers, but {cell!r} in line 7: correct the") for cell in STRAYS),
    (f"{TABLE}a,cook,low\nb,cook,low\n", {"age": AGE}, "'a' in line 7, and 1 more: correct the cell, or declare"),
    (TABLE, {"job": {"low": 0, "high": 1}}, "'job' is declared with bounds, but holds 'cook' in line 2, and 4 more"),
    *((f"{TABLE}{cell},cook,low\n", {"age": AGE}, EMPTY) for cell in ("", " ", "NA", "nan", "NULL")),
    (f"{TABLE}20,,low\n", {}, "column 'job' has 1 empty cell (first: line 7)"),
    *((f"{TABLE}{cell},cook,low\n", {"age": AGE}, "not finite (line 7)") for cell in ("inf", "-Infinity", "1e999")),
    (rows("far", ["1.7e308", "-1.7e308"] * 9), {}, "beyond 1e+100"),
    (rows("far", ["1e101"] * 9), {}, "beyond 1e+100"),
    (rows("codes", ["10", "20", "20", "2A", "10"]), {}, "holds numbers, but '2A'"),
    # What may name a person, a record, a place or a day.
    *((rows("day", day, 50), {}, "column 'day' holds dates: write what matters") for day in DAYS),
    (rows("name", lambda i: f"P-{i:04}", 40), {}, "'name' has 40 different texts in 40 records, as an id ... drop"),
    (rows("name", lambda i: f"P-{i // 2 * 3}{'b' * (i % 7 == 0)}", 40), {}, "different texts in 40 records, as an id"),
    (rows("name", lambda i: 140 - i, 40), {}, "'name' has 40 different whole numbers in 40 records, as an id"),
    (rows("town", lambda i: f"T{i % 500}", 3000), {}, "declare its categories"),
    *((rows(name, cell), {}, f"several rows per person? ... person: {name}; else") for name, cell in CODES.items()),
    # Labels that are no classes.
    (labels(lambda i: i + 0.5, 40), {}, "'income' (the label) has 40 different numbers: a label has classes"),
    (labels(lambda i: "low", 40), {}, "(the label) has the same value in each record: there is nothing to predict"),
    (labels(lambda i: i / 7, 300), {}, "a label has classes: group its values"),
    (labels(lambda i: 20 + i % 60), {}, "a number to predict, a regression, has no model here: add a column of ranges"),
    (labels(lambda i: [9.4, 9.5, 10.1][i % 3]), {}, "a number to predict, a regression, has no model here"),
    # Declarations that make no sense.
    (TABLE, {"age": {**AGE, "missing": "mean"}}, "missing is refuse, ... such as a mean, shows something"),
    (TABLE, {"age": {"missing": "median"}}, "missing is refuse, constant, indicator"),
    (TABLE, {"age": {**AGE, "missing": None}}, "missing is refuse"),
    (TABLE, {"age": {**AGE, **CONSTANT}}, "declaration that makes sense (fill is for missing: constant"),
    (TABLE, {"age": {**AGE, **INDICATOR, "fill": 3}}, "fill is for missing: constant"),
    (TABLE, {"age": {**AGE, "fill": 20}}, "fill is for missing: constant"),
    (TABLE, {"age": {**AGE, **CONSTANT, "fill": 91}}, "from low to high"),
    (TABLE, {"age": {**AGE, **CONSTANT, "fill": "old"}}, "a number from low to high"),
    (TABLE, {"age": {"low": 5}}, "schema must be a declaration that makes sense (give low and high"),
    (TABLE, {"age": {"low": 5, "high": 5}}, "low must be below high"),
    (TABLE, {"job": []}, "schema must be a declaration that makes sense"),
    (TABLE, {"job": {**JOB, **CONSTANT, "fill": "pilot"}}, "one of the values"),
    (TABLE, {"job": {"values": ["", "cook"], **INDICATOR}}, "a category already"),
    (TABLE, {"job": {"values": ["(missing)", "cook"], **INDICATOR}}, "the category that missing: indicator adds"),
    (TABLE, {"income": {"values": ["low", "high"], **INDICATOR}}, "without its label"),
    (TABLE, {"income": {"low": 0, "high": 1}}, "schema must be a column with values: a label has classes"),
    (TABLE, {"agee": AGE, "jobb": JOB}, "columns of the table ... agee, jobb"),
    # Persons that make no sense.
    *(
        (rows("patientid", lambda i: i * 7 % 90), declared, wanted)
        for declared, wanted in (
            ({"person": "patient"}, "a column that says whose a record is ... patientid"),
            ({"person": "patientid"}, "90 persons by 'patientid' in 240 records, up to 3 of one"),
            ({"person": "patientid", "records_per_user": 0}, "at least 1 under records_per_user"),
            ({"person": "patientid", "records_per_user": True}, "at least 1 under records_per_user"),
            ({"person": "patientid", "records_per_user": 2, "patientid": {"low": 0, "high": 90}}, "no feature"),
            ({"person": "income", "records_per_user": 200}, "a column that is used: it is the label"),
            ({"income": "drop", "patientid": "drop"}, "a column that is used: it is the label"),
            ({"records_per_user": 2, "patientid": "drop"}, "columns of the table"),
        )
    ),
    (
        rows("who", lambda i: i * 7 % 90 if i != 4 else ""),
        {"person": "who", "records_per_user": 3},
        "says of 1 records not whose they are",
    ),
]


@pytest.mark.parametrize(("text", "declared", "wanted"), REFUSED)
def test_what_nobody_can_use_is_named_in_one_line(refused, text, declared, wanted):
    refused(wanted, text, declared)


READ_OFF = {
    "citric acid": lambda i: i % 60,
    "covid": lambda i: i % 2,
    "alter": lambda i: 18 + i * 7 % 63,
    "number of children": lambda i: i % 5,
    "grey": lambda i: i * 37 % 256,
    "lohn": lambda i: f"{1000 + i * 1.5:.2f}",
    "clinic_id": lambda i: "ABC"[i % 3],
    "town": lambda i: f"town {i % 15}",
}


@pytest.mark.parametrize("name", READ_OFF)
def test_measurements_are_read_off(read, name):
    assert read(rows(name, READ_OFF[name], 600)).schema.columns[name].derived


@pytest.mark.parametrize("cell", ["1e30", "-1e30", "1e99", "0", "1e-320", "123456789012345678"])
def test_a_column_that_says_one_thing_only_has_finite_features(read, cell):
    assert np.isfinite(read(rows("same", [cell] * 20)).dataset.features).all()


@pytest.mark.parametrize("label", [lambda i: 3 + i % 6, lambda i: i % 100, lambda i: 1 + i % 26])
def test_marks_and_codes_that_count_are_classes(read, label):
    text, marks = labels(label, 2400), sorted({label(i) for i in range(2400)})
    assert read(text).dataset.classes == len(marks)
    assert read(text, {"income": {"values": marks}}).schema.columns["income"].values == tuple(map(str, marks))


def test_what_is_asked_about_can_be_declared_or_dropped(read):
    codes = rows("zip", ["10", "20", "20", "2A", "10"])
    assert read(codes, {"zip": ["10", "20", "2A"]}).dataset.group("zip").values == ("10", "20", "2A")
    smokes = rows("smokes", ["true", "false", "true"])
    assert read(smokes, {"smokes": ["true", "false"]}).dataset.group("smokes").values == ("true", "false")
    assert read(rows("name", range(40)), {"name": {"low": 0, "high": 40}}).schema.columns["name"].low == 0
    towns = rows("town", lambda i: f"T{i % 500}", 3000)
    assert read(towns, {"town": [f"T{i}" for i in range(500)]}).dataset.features.shape == (3000, 501)
    assert list(read(rows("name", range(40)), {"name": "drop"}).schema.columns) == ["x", "income"]
    for label in (lambda i: f"{i}.5", lambda i: "low"):
        values = sorted({label(i) for i in range(40)} | {"none"})
        assert read(labels(label, 40), {"income": {"values": values}}).schema.columns["income"].values


def test_na_may_be_a_name_and_an_empty_text_a_category(read):
    assert read(f"{TABLE}20,NA,low\n").schema.columns["job"].values == ("NA", "clerk", "cook")
    empty = read(f"{TABLE}20,,low\n", {"job": ["", "clerk", "cook"]})
    assert empty.dataset.features[5, 1:].tolist() == [1.0, 0.0, 0.0]


def test_a_constant_stands_for_an_empty_cell(read):
    declared = {"age": {**AGE, **CONSTANT, "fill": 50}, "job": {**JOB, **CONSTANT, "fill": "cook"}}
    features = read(f"{TABLE},,low\n", declared).dataset.features
    assert features.shape == (6, 3)
    assert features[5].tolist() == [0.0, 0.0, 1.0]


def test_an_indicator_says_that_a_cell_is_empty(read):
    own = read(f"{TABLE},,low\n", {"age": {**AGE, **INDICATOR}, "job": {**JOB, **INDICATOR}})
    assert own.dataset.features[5].tolist() == [0.0, 1.0, 0.0, 0.0, 1.0]
    assert own.dataset.features[0].tolist() == [-0.75, 0.0, 0.0, 1.0, 0.0]
    assert own.dataset.group("job").values == ("clerk", "cook", "(missing)")
    assert own.dataset.group("age (missing)").columns == (1,)
    assert Schema.from_json(own.schema.to_json(), "x") == own.schema


@pytest.mark.parametrize("missing", [INDICATOR, {**CONSTANT, "fill": 33}])
def test_a_record_that_is_missing_something_changes_its_own_row_only(read, missing):
    declared = {"age": {**AGE, **missing}, "job": JOB, "income": ["high", "low"]}
    whole = read(TABLE, declared).dataset.features
    for row, line in enumerate(ROWS.splitlines()):
        emptied = ROWS.splitlines()
        emptied[row] = "," + line.split(",", 1)[1]
        found = read(HEAD + "\n".join(emptied) + "\n", declared).dataset.features
        assert found.shape == whole.shape  # a feature that is there only if needed would show that it is needed
        assert np.array_equal(np.delete(found, row, axis=0), np.delete(whole, row, axis=0))
        assert not np.array_equal(found[row], whole[row])


def test_a_number_beyond_its_bounds_is_the_nearest_and_is_said(read):
    own = read(rows("grade", lambda i: -1 if i % 40 == 9 else i % 5), {"grade": {"low": 0, "high": 4}})
    assert own.changed == ("outside of the bounds, and taken as the nearest: grade (6, first in line 11)",)
    assert own.dataset.features[9, 1] == -1.0
    assert read(TABLE).changed == ()


def test_bounds_may_be_read_off_where_only_missing_is_declared(read):
    own = read(f"{TABLE},cook,low\n", {"age": INDICATOR})
    assert own.schema.columns["age"].derived
    assert own.schema.derived == ("age", "job", "income")
    assert own.dataset.features.shape == (6, 4)


def test_parquet_counts_records(tmp_path):
    columns = {"age": [20.0, None, 40.0], "job": ["cook", "", None], "income": ["low", "high", "low"]}
    parquet.write_table(table(columns), tmp_path / "people.parquet")
    with pytest.raises(ColumnsError) as caught:
        load_table(tmp_path / "people.parquet", "income")
    assert "1 empty cell (first: record 2)" in caught.value.troubles[0]
    assert "2 empty cells (first: record 2)" in caught.value.troubles[1]


def test_many_categories_are_counted_before_some_are_named():
    assert Column(values=tuple("abcdefgh")).says() == "8, such as a, b, c, d, e, f"
    assert Column(values=("a", "b")).says() == "a, b"

"""A table of one's own: every trouble is named at once, and one record changes one row, empty cells or not."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from reticent.data.own import ColumnsError, Schema, load_table
from reticent.data.own_columns import Column
from reticent.kernel.errors import DataError, ParameterError

HEAD = "age,job,income\n"
ROWS = "20,cook,low\n30,clerk,high\n40,cook,low\n50,cook,high\n60,clerk,low\n"
AGE, JOB = {"low": 10, "high": 90}, {"values": ["clerk", "cook"]}


@pytest.fixture
def table(tmp_path):
    def read(text: str, declared: dict | None = None, label: str = "income"):
        (tmp_path / "people.csv").write_text(text)
        return load_table(tmp_path / "people.csv", label, declared)

    return read


def refused(table, text: str, declared: dict | None = None) -> str:
    with pytest.raises((DataError, ParameterError)) as caught:
        table(text, declared)
    return str(caught.value)


def test_all_columns_troubles_come_at_once_the_label_first(table):
    with pytest.raises(ColumnsError) as caught:
        table(HEAD + "20,cook,low\nold,,high\n40,cook,\n50,cook,high\n", {"job": {"values": ["clerk", "cook"]}})
    label, age, job = caught.value.troubles
    assert label.startswith("column 'income' (the label) has 1 empty cell (first: line 4): leave such records out")
    assert "'old' in line 3" in age
    assert "column 'job' has 1 empty cell (first: line 3)" in job
    assert str(caught.value).startswith("people.csv: 3 columns need an answer: column 'income'")
    assert "\n" not in str(caught.value)


def test_wrong_declarations_come_at_once_too(table):
    found = refused(table, HEAD + ROWS, {"age": {"low": 5}, "job": {"values": ["cook"]}, "income": {"missing": "mean"}})
    assert re.search(r"3 columns.*'income' \(the label\).*'age' is declared wrongly.*'job' holds 'clerk'", found)


@pytest.mark.parametrize("cell", ["old", "1,5", "20 years", "1_000", "?"])
def test_one_stray_cell_in_a_column_of_numbers_is_named_and_no_category(table, cell):
    found = refused(table, HEAD + ROWS + f'"{cell}",cook,low\n')
    assert f"column 'age' holds numbers, but {cell!r} in line 7: correct the cell, or declare its categories" in found


def test_a_column_that_is_declared_with_bounds_names_its_stray_cell(table):
    found = refused(table, HEAD + ROWS + "a,cook,low\nb,cook,low\n", {"age": AGE})
    assert "holds numbers, but 'a' in line 7, and 1 more: correct the cell, or declare values" in found
    found = refused(table, HEAD + ROWS, {"job": {"low": 0, "high": 1}})
    assert "'job' is declared with bounds, but holds 'cook' in line 2, and 4 more" in found


def test_codes_that_look_like_numbers_can_be_declared_as_categories(table):
    text = "zip,income\n" + "\n".join(["10,low", "20,high", "20,low", "2A,high", "10,low"])
    assert "holds numbers, but '2A'" in refused(table, text)
    own = table(text, {"zip": ["10", "20", "2A"]})
    assert own.dataset.group("zip").values == ("10", "20", "2A")


def test_texts_that_say_true_stay_as_they_are(table):
    own = table("smokes,income\ntrue,low\nfalse,high\ntrue,low\n", {"smokes": ["true", "false"]})
    assert own.dataset.group("smokes").values == ("true", "false")


@pytest.mark.parametrize("cell", ["", " ", "NA", "nan", "NULL"])
def test_an_empty_number_is_asked_about(table, cell):
    found = refused(table, HEAD + ROWS + f"{cell},cook,low\n", {"age": AGE})
    assert "column 'age' has 1 empty cell (first: line 7): fill them, leave such records out, or say missing" in found


def test_an_empty_text_is_asked_about_and_na_may_be_a_name(table):
    assert "column 'job' has 1 empty cell (first: line 7)" in refused(table, HEAD + ROWS + "20,,low\n")
    assert table(HEAD + ROWS + "20,NA,low\n").schema.columns["job"].values == ("NA", "clerk", "cook")
    as_category = table(HEAD + ROWS + "20,,low\n", {"job": ["", "clerk", "cook"]})
    assert as_category.dataset.features[5, 1:].tolist() == [1.0, 0.0, 0.0]


def test_a_constant_stands_for_an_empty_cell(table):
    constant = {"missing": "constant"}
    declared = {"age": {**AGE, **constant, "fill": 50}, "job": {**JOB, **constant, "fill": "cook"}}
    features = table(HEAD + ROWS + ",,low\n", declared).dataset.features
    assert features.shape == (6, 3)
    assert features[5].tolist() == [0.0, 0.0, 1.0]


def test_an_indicator_says_that_a_cell_is_empty(table):
    declared = {"age": {**AGE, "missing": "indicator"}, "job": {**JOB, "missing": "indicator"}}
    own = table(HEAD + ROWS + ",,low\n", declared)
    assert own.dataset.features[5].tolist() == [0.0, 1.0, 0.0, 0.0, 1.0]
    assert own.dataset.features[0].tolist() == [-0.75, 0.0, 0.0, 1.0, 0.0]
    assert own.dataset.group("job").values == ("clerk", "cook", "(missing)")
    assert own.dataset.group("age (missing)").columns == (1,)
    assert Schema.from_json(own.schema.to_json(), "x") == own.schema


@pytest.mark.parametrize("missing", [{"missing": "indicator"}, {"missing": "constant", "fill": 33}])
def test_a_record_that_is_missing_something_changes_its_own_row_only(table, missing):
    declared = {"age": {**AGE, **missing}, "job": JOB, "income": ["high", "low"]}
    whole = table(HEAD + ROWS, declared).dataset.features
    for row, line in enumerate(ROWS.splitlines()):
        emptied = ROWS.splitlines()
        emptied[row] = "," + line.split(",", 1)[1]
        found = table(HEAD + "\n".join(emptied) + "\n", declared).dataset.features
        assert found.shape == whole.shape  # a feature that is there only if needed would show that it is needed
        assert np.array_equal(np.delete(found, row, axis=0), np.delete(whole, row, axis=0))
        assert not np.array_equal(found[row], whole[row])


def test_bounds_may_be_read_off_where_only_missing_is_declared(table):
    own = table(HEAD + ROWS + ",cook,low\n", {"age": {"missing": "indicator"}})
    assert own.schema.columns["age"].derived
    assert "age" in own.schema.derived
    assert own.dataset.features.shape == (6, 4)


@pytest.mark.parametrize(
    ("declared", "wanted"),
    [
        ({"age": {**AGE, "missing": "mean"}}, "missing is refuse, .*such as a mean, shows something"),
        ({"age": {"missing": "median"}}, "missing is refuse, constant, indicator"),
        ({"age": {**AGE, "missing": None}}, "missing is refuse"),
        ({"age": {**AGE, "missing": "constant"}}, "declaration that makes sense .fill is for missing: constant"),
        ({"age": {**AGE, "missing": "indicator", "fill": 3}}, "fill is for missing: constant"),
        ({"age": {**AGE, "fill": 20}}, "fill is for missing: constant"),
        ({"age": {**AGE, "missing": "constant", "fill": 91}}, "from low to high"),
        ({"age": {**AGE, "missing": "constant", "fill": "old"}}, "a number from low to high"),
        ({"job": {**JOB, "missing": "constant", "fill": "pilot"}}, "one of the values"),
        ({"job": {"values": ["", "cook"], "missing": "indicator"}}, "a category already"),
        ({"job": {"values": ["(missing)", "cook"], "missing": "indicator"}}, "the category that missing: indicator"),
        ({"income": {"values": ["low", "high"], "missing": "indicator"}}, "without its label"),
        ({"income": {"low": 0, "high": 1}}, "a label has classes"),
        ({"agee": AGE, "jobb": JOB}, "columns of the table.*agee, jobb"),
    ],
)
def test_declarations_that_make_no_sense(table, declared, wanted):
    assert re.search(wanted, refused(table, HEAD + ROWS, declared))


@pytest.mark.parametrize(
    ("labels", "wanted"),
    [
        ([f"{row}.5" for row in range(40)], "'income' (the label) has 40 different numbers: a label has"),
        (["low"] * 40, "'income' (the label) has the same value in each record: there is nothing to predict"),
    ],
)
def test_a_label_without_classes_is_refused_and_can_be_declared(table, labels, wanted):
    text = "age,income\n" + "".join(f"{row % 13},{label}\n" for row, label in enumerate(labels))
    assert wanted in refused(table, text)
    assert table(text, {"income": {"values": sorted({*labels, "none"})}}).schema.columns["income"].values


def test_a_label_with_too_many_values_says_that_a_label_has_classes(table):
    rows = "\n".join(f"{i},{i / 7}" for i in range(300))
    assert "a label has classes: group its values" in refused(table, "x,income\n" + rows + "\n")


@pytest.mark.parametrize("cell", ["inf", "-Infinity", "1e999"])
def test_numbers_that_are_not_finite_are_named(table, cell):
    assert "not finite (line 7)" in refused(table, HEAD + ROWS + f"{cell},cook,low\n", {"age": AGE})


def test_parquet_counts_records(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    columns = {"age": [20.0, None, 40.0], "job": ["cook", "", None], "income": ["low", "high", "low"]}
    parquet.write_table(pa.table(columns), tmp_path / "people.parquet")
    with pytest.raises(ColumnsError) as caught:
        load_table(tmp_path / "people.parquet", "income")
    assert "1 empty cell (first: record 2)" in caught.value.troubles[0]
    assert "2 empty cells (first: record 2)" in caught.value.troubles[1]


WRONG = [
    ["--data", "nobody.csv", "--label", "y", "--out", "run"],
    ["nothing.yaml", "--out", "run"],
    ["--data", "wrong.csv", "--label", "z", "--out", "run"],
    ["--data", "right.csv", "--label", "y", "--schema", "nothing.yaml", "--out", "run"],
    ["--data", "right.csv", "--label", "y", "--schema", "wrong.csv", "--out", "run"],
    ["--data", "right.csv", "--label", "x", "--out", "right.csv"],
]


def test_what_is_wrong_with_files_is_said_before_torch_is_loaded(tmp_path):
    """One process after the other command: torch is in none, and each says one line."""
    (tmp_path / "wrong.csv").write_text("x,y\n1,low\nold,\n3,high\n")
    (tmp_path / "right.csv").write_text("x,y\n1,low\n2,high\n")
    code = (
        "import json, sys\n"
        "from reticent.cli import main\n"
        "for words in json.loads(sys.argv[1]):\n"
        "    try:\n        main(['train', *words])\n"
        "    except SystemExit as stop:\n        assert stop.code == 2, stop.code\n"
        "    assert 'torch' not in sys.modules, words\n"
        "    print('end', file=sys.stderr)\n"
    )
    command = [sys.executable, "-c", code, json.dumps(WRONG)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [said.count("\n") for said in done.stderr.split("end\n")] == [1] * len(WRONG) + [0]
    assert not Path(tmp_path / "run").exists()


def people(names) -> str:
    return "name,job,income\n" + "".join(
        f"{name},{'cook' if row % 3 else 'clerk'},{'low' if row % 2 else 'high'}\n" for row, name in enumerate(names)
    )


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        ([f"P-{row:04}" for row in range(40)], r"'name' has 40 different texts in 40 records, as an id.*name: drop"),
        ([f"P-{row // 2 * 3}{'b' * (row % 7 == 0)}" for row in range(40)], "different texts in 40 records, as an id"),
        (list(range(101, 141))[::-1], "'name' has 40 different whole numbers in 40 records, as an id"),
    ],
)
def test_a_column_that_names_each_record_is_asked_about(table, names, wanted):
    assert re.search(wanted, refused(table, people(names)))


def test_a_column_that_only_looks_like_an_id_can_be_declared(table):
    found = table(people(range(40)), {"name": {"low": 0, "high": 40}})
    assert found.schema.columns["name"].low == 0
    texts = [f"P-{row:04}" for row in range(40)]
    assert len(table(people(texts), {"name": {"values": texts}}).schema.columns["name"].values) == 40
    assert table(people([f"town {row % 15}" for row in range(40)])).schema.columns["name"].derived
    assert table(people([row * 3 % 90 for row in range(40)])).schema.columns["name"].derived


def test_many_categories_are_counted_before_some_are_named():
    assert Column(values=tuple("abcdefgh")).says() == "8, such as a, b, c, d, e, f"
    assert Column(values=("a", "b")).says() == "a, b"

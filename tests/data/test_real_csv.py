"""Csv as it comes from offices and clinics: its signs, its bytes, and columns that say whose a record is."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.cli import main
from reticent.data.own import declared_columns, load_table, skeleton
from reticent.kernel.errors import DataError, ParameterError

DRAW = np.random.default_rng(5)
PEOPLE = [(18 + a, ["Köln", "Münster"][b], ["ja", "nein"][c]) for a, b, c in DRAW.integers((63, 2, 2), size=(60, 3))]
PLAIN = "größe,ort,ja\n" + "".join(f"{a},{b},{c}\n" for a, b, c in PEOPLE)


@pytest.fixture
def read(tmp_path):
    def loaded(content: str | bytes, declared=None, label="ja", name="people.csv"):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return load_table(tmp_path / name, label, declared)

    return loaded


def refused(read, *given, **more) -> str:
    with pytest.raises((DataError, ParameterError)) as caught:
        read(*given, **more)
    return str(caught.value)


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (PLAIN.encode("latin-1"), "people.csv"),
        (PLAIN.encode("utf-8-sig"), "people.csv"),
        (PLAIN.encode("utf-16"), "people.csv"),
        (b"\xfe\xff" + PLAIN.encode("utf-16-be"), "people.csv"),
        (PLAIN.replace(",", ";").replace("\n", "\r\n").encode(), "people.csv"),
        (PLAIN.replace(",", "\t").encode(), "people.tsv"),
        (PLAIN.replace(",", "|").encode("cp1252"), "people.txt"),
    ],
)
def test_the_same_table_is_read_whatever_its_bytes_and_signs(read, content, name):
    usual, found = read(PLAIN), read(content, name=name)
    assert found.schema == usual.schema
    assert found.schema.columns["ort"].values == ("Köln", "Münster")
    assert found.dataset.content_hash == usual.dataset.content_hash


def test_a_cell_of_other_bytes_changes_no_other_cell(read):
    """One name in Windows's bytes among UTF-8: what others say is read as before."""
    lines = PLAIN.encode().splitlines(keepends=True)
    mixed = b"".join([*lines[:30], *(line.decode().encode("cp1252") for line in lines[30:])])
    assert read(mixed).dataset.content_hash == read(PLAIN).dataset.content_hash


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("cell", ['"said yes', '"said ""yes""', '"', '"""', '"two\nlines"', '"two\r\nlines"', '"a\rb"'])
def test_a_record_is_one_line_whatever_its_quotes(read, cell, end):
    """A quote that its line does not close swallowed the records of the lines below, up to another's quote."""
    rows = [f"{18 + i % 9},note,{'ja' if i % 3 else 'nein'}" for i in range(60)]
    for place, sign in ((20, ","), (59, ";")):
        odd = [*rows[:place], f"20,{cell},ja", *rows[place:-1], '21,5",nein']
        text = end.join(["age,notes,ja", *odd, ""]).replace(",", sign)
        told = refused(read, text, {"notes": "drop"})
        assert f"line {place + 2} opens a quote that it does not close: a record is one line." in told
        assert "\n" not in told


@pytest.mark.parametrize("cell", ['"said ""yes"""', '5"', '"a, b"', 'a "b" c', '""', '"x"y"z', '"a;b"', 'x"', ' "x'])
def test_quotes_within_a_line_are_read_as_before(read, cell):
    rows = [f"{18 + i % 9},note,{'ja' if i % 3 else 'nein'}" for i in range(60)]
    dealt = [
        read("\n".join(["age,notes,ja", *rows, f"20,{it},ja", ""]), {"notes": "drop"}).dataset for it in ("x", cell)
    ]
    assert [len(one.labels) for one in dealt] == [61, 61]
    sides = [[i for i in one.train.tolist() if i != 60] for one in dealt]
    assert sides[0] == sides[1]


def test_text_of_zero_bytes_is_no_table(read):
    assert "zero bytes" in refused(read, PLAIN.encode("utf-16-le"))


def test_decimal_commas_are_numbers_where_commas_separate_nothing(read):
    head, rows = (
        "alter;lohn;ja\n",
        [f"{20 + i % 50};{1000 + i * 7.25:.2f};{'ja' if i % 3 else 'nein'}" for i in range(90)],
    )
    bounds = {"lohn": {"low": 0, "high": 2000}}
    found = read(head + "\n".join(row.replace(".", ",") for row in rows), bounds)
    assert np.array_equal(found.dataset.features, read(head + "\n".join(rows), bounds).dataset.features)
    assert "'1.000,50' in line 92" in refused(read, head + "\n".join([*rows, "20;1.000,50;ja"]), bounds)
    both = refused(read, head + "\n".join([*rows, "20;1,5;ja"]))
    assert "column 'lohn' has numbers with a comma and numbers with a point: say one" in both
    quoted = "lohn,ja\n" + "".join(f'"{i % 5},5",{"ja" if i % 3 else "nein"}\n' for i in range(60))
    assert "column 'lohn' holds numbers with a comma: separate columns by semicolons" in refused(read, quoted)
    assert "'1,5' in line 62" in refused(read, PLAIN + '"1,5",Köln,ja\n')


@pytest.mark.parametrize(
    "rows",
    [
        ["63,clerk,ja", "20,cook,nein", "44,cook,ja"] * 5,
        ["clerk,north,ja", "cook,south,nein", "clerk,south,ja", "cook,north,ja"] * 3,
        ["3.5;1.2;0", "4.1;1.9;1", "2.5;1.1;0"],
        [",12,ja", "3,20,nein", "4,13,ja"],
    ],
)
def test_a_first_person_is_no_header(read, rows):
    assert "has no header: its first line holds" in refused(read, "\n".join(rows) + "\n", label=rows[0][-2:])


@pytest.mark.parametrize("head", ["alter,ort,ja", ",ort,ja", "2019,x2020,ja", "alter,Köln,ja"])
def test_a_header_is_one_though_a_value_is_called_like_it(read, head):
    body = PLAIN.split("\n", 1)[1]
    if head.startswith("2019"):
        body = "".join(f"{a},{a % 7},{c}\n" for a, _, c in PEOPLE)
    assert len(read(f"{head}\n{body}").schema.columns) == 3


def test_five_hundred_categories_can_be_declared(read):
    rows = [f"{i % 500},{'ja' if i % 3 else 'nein'}" for i in range(3000)]
    text = "town,ja\n" + "".join(f"T{row}\n" for row in rows)
    assert "declare its categories" in refused(read, text)
    declared = {"town": [f"T{i}" for i in range(500)]}
    assert read(text, declared).dataset.features.shape == (3000, 500)


@pytest.mark.parametrize(
    "day",
    [
        "{0:02}-{1:02}-1999",
        "{0:02}.{1:02}.2003",
        "2020-{1:02}-{0:02}T08:00:00",
        "{1}/{0}/99",
        "{0}. Okt. 199{1}",
        "20{1:02}10{0:02}",
        "{0}-Feb-99",
    ],
)
def test_days_are_asked_about(read, day):
    rows = [f"{day.format(1 + i % 3, 1 + i % 2)},{'ja' if i % 3 else 'nein'},{i % 5}" for i in range(50)]
    text = "visit,ja,x\n" + "\n".join(rows)
    assert (
        "column 'visit' holds dates: write what matters as a number, such as a year, or leave it out (visit: drop)"
        in (refused(read, text))
    )
    assert list(read(text, {"visit": "drop"}).schema.columns) == ["ja", "x"]


def visits(name: str, who, count: int = 240) -> str:
    return f"x,{name},ja\n" + "".join(f"{i % 7},{who(i)},{'ja' if i % 3 else 'nein'}\n" for i in range(count))


PERSON_LIKE = {
    "patientid": lambda i: i * 7 % 90,  # a number that repeats
    "Patient-ID": lambda i: f"P{i * 7 % 50}",
    "kundennummer": lambda i: 5 + i * 7 % 12,
    "nr": lambda i: i // 3,  # rows of one person beside each other
    "who": lambda i: f"P{i // 5}",
    "u": lambda i: f"{i:08x}-aa",
    "Unnamed: 0": lambda i: i,
    "many": lambda i: i * i % 40_009 + 7,
}
CODES = {
    "PLZ": lambda i: [80331, 10115, 20095][i % 3],
    "zip_code": lambda i: [80331, 10115, 20095][i % 3],
    "area": lambda i: ["01067", "99084"][i % 2],  # leading zeros
    "code postal": lambda i: 75001 + i % 4,
    "clinicCode": lambda i: 100 + i % 4,
}


@pytest.mark.parametrize("name", [*PERSON_LIKE, *CODES])
def test_what_may_name_a_person_or_a_place_is_no_feature_unasked(read, name):
    text = visits(name, (PERSON_LIKE | CODES)[name])
    found = refused(read, text)
    assert f"several rows per person? If it says whose they are, say person: {name}; else declare its" in found
    assert name not in read(text, {name: "drop"}).schema.columns


@pytest.mark.parametrize(
    ("name", "who"),
    [
        ("citric acid", lambda i: i % 60),
        ("covid", lambda i: i % 2),
        ("alter", lambda i: 18 + i * 7 % 63),
        ("number of children", lambda i: i % 5),
        ("grey", lambda i: i * 37 % 256),
        ("lohn", lambda i: f"{1000 + i * 1.5:.2f}"),
        ("clinic_id", lambda i: "ABC"[i % 3]),
    ],
)
def test_measurements_are_read_off_as_before(read, name, who):
    assert read(visits(name, who, 600)).schema.columns[name].derived


def test_persons_are_counted_and_are_no_feature(read):
    text = visits("patientid", lambda i: i * 7 % 90)
    assert "90 persons by 'patientid' in 240 records, up to 3 of one" in refused(read, text, {"person": "patientid"})
    own = read(text, {"person": "patientid", "records_per_user": 2})
    assert (own.schema.person, own.schema.records_per_user, list(own.schema.columns)) == ("patientid", 2, ["x", "ja"])
    assert own.dataset.features.shape == (180, 1)
    one_each = read(visits("u", lambda i: f"u{i}"), {"person": "u"})
    assert one_each.schema.records_per_user == 1
    assert (
        read("x,person,ja\n1,a,ja\n2,b,nein\n3,a,ja\n4,b,ja\n5,a,nein\n", {"person": ["a", "b"]}).schema.person is None
    )


@pytest.mark.parametrize(
    ("declared", "wanted"),
    [
        ({"person": "patient"}, "a column that says whose a record is.*patientid"),
        ({"person": "patientid", "records_per_user": 0}, "at least 1 under records_per_user"),
        ({"person": "patientid", "records_per_user": True}, "at least 1 under records_per_user"),
        ({"person": "patientid", "records_per_user": 2, "patientid": {"low": 0, "high": 90}}, "no feature"),
        ({"person": "ja", "records_per_user": 200}, "a column that is used: it is the label"),
        ({"ja": "drop", "patientid": "drop"}, "a column that is used: it is the label"),
        ({"records_per_user": 2, "patientid": "drop"}, "columns of the table"),
    ],
)
def test_persons_that_make_no_sense(read, declared, wanted):
    with pytest.raises(ParameterError, match=wanted):
        read(visits("patientid", lambda i: i * 7 % 90), declared)


def test_a_record_of_nobody_is_refused(read):
    text = visits("patientid", lambda i: i * 7 % 90 if i != 4 else "")
    assert "says of 1 records not whose they are" in refused(read, text, {"person": "patientid", "records_per_user": 3})


def test_numbers_outside_of_declared_bounds_are_said(read):
    own = read(visits("grade", lambda i: -1 if i % 40 == 9 else i % 5), {"grade": {"low": 0, "high": 4}})
    assert own.changed == ("outside of the bounds, and taken as the nearest: grade (6, first in line 11)",)
    assert read(PLAIN).changed == ()


@pytest.mark.parametrize(
    "label", [lambda i: f"{i * 0.37:.2f}", lambda i: 20 + i % 60, lambda i: [9.4, 9.5, 10.1][i % 3]]
)
def test_a_number_to_predict_says_what_to_do(read, label):
    text = "x,ja\n" + "".join(f"{i % 7},{label(i)}\n" for i in range(240))
    assert "a number to predict, a regression, has no model here: add a column of ranges" in refused(read, text)


@pytest.mark.parametrize("label", [lambda i: 3 + i % 6, lambda i: i % 100, lambda i: 1 + i % 26])
def test_marks_and_codes_that_count_are_classes(read, label):
    text = "x,ja\n" + "".join(f"{i % 7},{label(i)}\n" for i in range(2400))
    assert read(text).dataset.classes == len({label(i) for i in range(2400)})
    marks = sorted({label(i) for i in range(2400)})
    assert read(text, {"ja": {"values": marks}}).schema.columns["ja"].values == tuple(map(str, marks))


def test_a_schema_with_blanks_shows_nothing_of_the_records_and_is_filled(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [
        (f"Anna{i}", 71 + i % 9, ["Köln", "Münster"][i % 2], f"0{i % 3}.12.1999", ["ja", "nein"][i % 3 == 0])
        for i in range(60)
    ]
    (tmp_path / "people.csv").write_text(
        "patient;größe;ort;on;ja\n" + "".join(";".join(map(str, r)) + "\n" for r in rows)
    )
    with pytest.raises(SystemExit) as stopped:
        main(["train", "--write-schema", "people.csv"])
    assert not stopped.value.code
    assert "people.schema.yaml" in capsys.readouterr().out
    text = (tmp_path / "people.schema.yaml").read_text()
    assert text == skeleton(tmp_path / "people.csv")
    assert not any(str(cell) in text for row in rows for cell in row if cell not in ("ja", "nein"))
    said = declared_columns(tmp_path / "people.schema.yaml")
    assert said["patient"] == said["on"] == "drop"
    with pytest.raises(DataError, match="3 columns need an answer"):
        load_table(tmp_path / "people.csv", "ja", said)
    filled = {**said, "größe": {"low": 40, "high": 220}, "ort": ["Köln", "Münster"], "ja": ["ja", "nein"]}
    assert load_table(tmp_path / "people.csv", "ja", filled).schema.derived == ()
    for words in (["--write-schema", "people.csv"], ["--write-schema", "people.csv", "--data", "people.csv"]):
        with pytest.raises(SystemExit) as stopped:
            main(["train", *words])
        assert stopped.value.code == 2
    assert text == (tmp_path / "people.schema.yaml").read_text()

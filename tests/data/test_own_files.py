"""Tables as offices and clinics write them, and as strangers do: signs, bytes, headers, files that unpack to much."""

from __future__ import annotations

import io
import resource
import time
import zipfile

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from reticent.cli import main
from reticent.data.own import declared_columns, load_table, skeleton
from reticent.data.own_files import read_table
from reticent.kernel.errors import DataError

DRAW = np.random.default_rng(5)
PEOPLE = [(18 + a, ["Köln", "Münster"][b], ["ja", "nein"][c]) for a, b, c in DRAW.integers((63, 2, 2), size=(60, 3))]
PLAIN = "größe,ort,ja\n" + "".join(f"{a},{b},{c}\n" for a, b, c in PEOPLE)
NOTES = [f"{18 + i % 9},note,{'ja' if i % 3 else 'nein'}" for i in range(60)]


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
        # One name in Windows's bytes among UTF-8: what others say is read as before.
        (PLAIN[:300].encode() + PLAIN[300:].encode("cp1252"), "people.csv"),
    ],
)
def test_the_same_table_is_read_whatever_its_bytes_and_signs(read, content, name):
    usual, found = read(PLAIN, label="ja"), read(content, label="ja", name=name)
    assert found.schema == usual.schema
    assert found.schema.columns["ort"].values == ("Köln", "Münster")
    assert found.dataset.content_hash == usual.dataset.content_hash


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("cell", ['"said yes', '"said ""yes""', '"', '"""', '"two\nlines"', '"two\r\nlines"', '"a\rb"'])
def test_a_record_is_one_line_whatever_its_quotes(refused, cell, end):
    """A quote that its line does not close swallowed the records of the lines below, up to another's quote."""
    for place, sign in ((20, ","), (59, ";")):
        odd = [*NOTES[:place], f"20,{cell},ja", *NOTES[place:-1], '21,5",nein']
        text = end.join(["age,notes,ja", *odd, ""]).replace(",", sign)
        wanted = f"line {place + 2} opens a quote that it does not close: a record is one line."
        refused(wanted, text, {"notes": "drop"}, label="ja")


@pytest.mark.parametrize("cell", ['"said ""yes"""', '5"', '"a, b"', 'a "b" c', '""', '"x"y"z', '"a;b"', 'x"', ' "x'])
def test_quotes_within_a_line_are_read_as_before(read, cell):
    sides = []
    for it in ("x", cell):
        text = "\n".join(["age,notes,ja", *NOTES, f"20,{it},ja", ""])
        dealt = read(text, {"notes": "drop"}, label="ja").dataset
        assert len(dealt.labels) == 61
        sides.append([i for i in dealt.train.tolist() if i != 60])
    assert sides[0] == sides[1]


def test_decimal_commas_are_numbers_where_commas_separate_nothing(read, refused):
    head, bounds = "alter;lohn;ja\n", {"lohn": {"low": 0, "high": 2000}}
    rows = [f"{20 + i % 50};{1000 + i * 7.25:.2f};{'ja' if i % 3 else 'nein'}" for i in range(90)]
    found = read(head + "\n".join(row.replace(".", ",") for row in rows), bounds, label="ja")
    assert np.array_equal(found.dataset.features, read(head + "\n".join(rows), bounds, label="ja").dataset.features)
    quoted = "lohn,ja\n" + "".join(f'"{i % 5},5",{"ja" if i % 3 else "nein"}\n' for i in range(60))
    for text, declared, wanted in (
        (head + "\n".join([*rows, "20;1.000,50;ja"]), bounds, "'1.000,50' in line 92"),
        (
            head + "\n".join([*rows, "20;1,5;ja"]),
            {},
            "'lohn' has numbers with a comma and numbers with a point: say one",
        ),
        (quoted, {}, "column 'lohn' holds numbers with a comma: separate columns by semicolons"),
        (PLAIN + '"1,5",Köln,ja\n', {}, "'1,5' in line 62"),
    ):
        refused(wanted, text, declared, label="ja")


@pytest.mark.parametrize("head", ["alter,ort,ja", ",ort,ja", "2019,x2020,ja", "alter,Köln,ja"])
def test_a_header_is_one_though_a_value_is_called_like_it(read, head):
    body = PLAIN.split("\n", 1)[1]
    if head.startswith("2019"):
        body = "".join(f"{a},{a % 7},{c}\n" for a, _, c in PEOPLE)
    assert len(read(f"{head}\n{body}", label="ja").schema.columns) == 3


NO_TABLE = [
    *(
        ("\n".join(rows) + "\n", "has no header: its first line holds")
        for rows in (
            ["63,clerk,ja", "20,cook,nein", "44,cook,ja"] * 5,
            ["clerk,north,ja", "cook,south,nein", "clerk,south,ja", "cook,north,ja"] * 3,
            ["3.5;1.2;ja", "4.1;1.9;b", "2.5;1.1;ja"],
            [",12,ja", "3,20,nein", "4,13,ja"],
        )
    ),
    (PLAIN.encode("utf-16-le"), "zero bytes"),
    ("", "not a table"),
    ("age,age,ja\n1,2,low\n2,2,high\n", "two columns are called 'age'"),
    ("age,ja\n1,low\n", "at least two records"),
    ("ja\nlow\nhigh\n", "schema"),
    ("age,pay\n1,low\n2,high\n", "label must be one of the columns age, pay"),
    ("a,ja\n" + "x" * 20_000 + ",u\nb,v\n", "a text of 20000 characters"),
    (",".join(f"c{i}" for i in range(3000)) + "\n" + "1," * 2999 + "1\n", "3000 columns"),
]


@pytest.mark.parametrize(("content", "wanted"), NO_TABLE)
def test_a_file_that_is_no_table_ends_in_one_line(refused, content, wanted):
    refused(wanted, content, label="ja")


def npy(shape: tuple[int, ...], kind: str = "<f8") -> bytes:
    """A header, and as many zeros as it promises."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": kind, "fortran_order": False, "shape": shape})
    return stream.getvalue() + bytes(int(np.prod(shape)) * np.dtype(kind).itemsize)


def archive(**entries: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as into:
        for name, content in entries.items():
            into.writestr(f"{name}.npy", content)
    return stream.getvalue()


def of_parquet(rows: int, groups: int, **columns: pa.Array) -> bytes:
    """The same rows again and again."""
    table, stream = pa.table(columns).slice(0, rows), io.BytesIO()
    with parquet.ParquetWriter(stream, table.schema, compression="zstd") as into:
        for _ in range(groups):
            into.write_table(table)
    return stream.getvalue()


def many_rows() -> bytes:
    """A few kilobytes, 40 million cells."""
    zeros = pa.array(np.zeros(1_000_000, dtype=np.int8))
    return of_parquet(1_000_000, 20, a=zeros, y=zeros)


def one_long_text() -> bytes:
    """One text of a megabyte, five thousand times: five gigabytes as numpy holds texts."""
    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(5000, dtype=np.int32)), pa.array(["x" * 10**6]))
    return of_parquet(5000, 1, t=texts, y=pa.array(np.arange(5000) % 2))


BOMBS = {
    "bomb.parquet": (many_rows, "20000000 records and 2 columns: at most"),
    "text.parquet": (one_long_text, "a text of 1000000 characters"),
    "bomb.npz": (lambda: archive(features=npy((300_000, 80)), labels=npy((300_000,), "|i1")), "bytes once unpacked"),
    "wide.npz": (lambda: archive(features=npy((2, 3000)), labels=npy((2,))), "3000 columns"),
    "more.npz": (lambda: archive(features=npy((2, 2)), labels=npy((2,)), other=npy((1,))), "unknown entries"),
    "liar.npz": (lambda: archive(features=npy((2, 2))[:-8], labels=npy((2,))), "its header promises"),
    "objects.npz": (lambda: archive(features=npy((2, 2), "|O"), labels=npy((2,))), "objects are refused"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_what_unpacks_to_much_is_refused_at_once(refused, name):
    make, wanted = BOMBS[name]
    content = make()
    assert len(content) < 1 << 20
    begun, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused(wanted, content, name=name)
    assert time.process_time() - begun < 2.0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000


def test_texts_and_numbers_are_read_as_they_are(tmp_path):
    path = tmp_path / "t.parquet"
    texts, truths = [" x", "y", "x"], [True, False, True]
    parquet.write_table(pa.table({"a": [1, 2, 3], "t": texts, "b": truths, "f": [0.5, 1.5, -1.0]}), path)
    found = read_table(path.read_bytes(), path)
    assert found["a"].numbers.tolist() == [1.0, 2.0, 3.0]
    assert list(found["t"].texts) == ["x", "y", "x"]
    assert list(found["b"].texts) == ["True", "False", "True"]
    assert found["f"].numbers.tolist() == [0.5, 1.5, -1.0]


def test_csv_parquet_and_npz_give_the_same_records(read, tmp_path):
    from pyarrow import csv

    whole = read(PLAIN, label="ja").dataset
    parquet.write_table(csv.read_csv(tmp_path / "people.csv"), tmp_path / "people.parquet")
    assert np.array_equal(load_table(tmp_path / "people.parquet", "ja").dataset.features, whole.features)
    np.savez(tmp_path / "people.npz", features=whole.features, labels=whole.labels)
    bounds = {f"x{i}": {"low": -1, "high": 1} for i in range(3)}
    same = load_table(tmp_path / "people.npz", "label", bounds).dataset
    assert np.allclose(same.features, whole.features, atol=1e-6)
    assert np.array_equal(same.labels, whole.labels)


def test_classes_that_are_no_words(tmp_path):
    table = pa.table({"a": [i % 9 for i in range(20)], "y": [[1e250, 1e300][i % 2] for i in range(20)]})
    parquet.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(DataError, match="column 'y'"):
        load_table(tmp_path / "t.parquet", "y")


def test_a_schema_with_blanks_shows_nothing_of_the_records_and_is_filled(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [
        (f"Anna{i}", 71 + i % 9, ["Köln", "Münster"][i % 2], f"0{i % 3}.12.1999", ["ja", "nein"][i % 3 == 0])
        for i in range(60)
    ]
    text = "patient;größe;ort;on;ja\n" + "".join(";".join(map(str, row)) + "\n" for row in rows)
    (tmp_path / "people.csv").write_text(text)

    def train(*words: str) -> object:
        with pytest.raises(SystemExit) as stopped:
            main(["train", *words])
        return stopped.value.code

    assert not train("--write-schema", "people.csv")
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
    assert train("--write-schema", "people.csv") == 2
    assert train("--write-schema", "people.csv", "--data", "people.csv") == 2
    assert text == (tmp_path / "people.schema.yaml").read_text()

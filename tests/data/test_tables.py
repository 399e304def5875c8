"""Tables of strangers: small files that unpack to much, and columns at the ends of floating point."""

from __future__ import annotations

import io
import resource
import time
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reticent.data.own import load_table
from reticent.data.own_files import read_table
from reticent.kernel.errors import DataError


def npy(shape: tuple[int, ...], kind: str = "<f8") -> bytes:
    """A header, and as many zeros as it promises."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": kind, "fortran_order": False, "shape": shape})
    return stream.getvalue() + bytes(int(np.prod(shape)) * np.dtype(kind).itemsize)


def archive(**entries: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as into:
        for name, content in entries.items():
            into.writestr(f"{name}.npy", content)
    return stream.getvalue()


def parquet(rows: int, groups: int, **columns: pa.Array) -> bytes:
    """The same rows again and again."""
    table, stream = pa.table(columns).slice(0, rows), io.BytesIO()
    with pq.ParquetWriter(stream, table.schema, compression="zstd") as into:
        for _ in range(groups):
            into.write_table(table)
    return stream.getvalue()


def many_rows() -> bytes:
    """A few kilobytes, 40 million cells."""
    zeros = pa.array(np.zeros(1_000_000, dtype=np.int8))
    return parquet(1_000_000, 20, a=zeros, y=zeros)


def one_long_text() -> bytes:
    """One text of a megabyte, five thousand times: five gigabytes as numpy holds texts."""
    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(5000, dtype=np.int32)), pa.array(["x" * 10**6]))
    return parquet(5000, 1, t=texts, y=pa.array(np.arange(5000) % 2))


BOMBS = {
    "bomb.parquet": (many_rows, "20000000 records and 2 columns: at most"),
    "text.parquet": (one_long_text, "a text of 1000000 characters"),
    "bomb.npz": (lambda: archive(features=npy((300_000, 80)), labels=npy((300_000,), "|i1")), "bytes once unpacked"),
    "wide.npz": (lambda: archive(features=npy((2, 3000)), labels=npy((2,))), "3000 columns"),
    "more.npz": (lambda: archive(features=npy((2, 2)), labels=npy((2,)), other=npy((1,))), "unknown entries"),
    "liar.npz": (lambda: archive(features=npy((2, 2))[:-8], labels=npy((2,))), "its header promises"),
    "objects.npz": (lambda: archive(features=npy((2, 2), "|O"), labels=npy((2,))), "objects are refused"),
    "wide.csv": (
        lambda: (",".join(f"c{i}" for i in range(3000)) + "\n" + "1," * 2999 + "1\n").encode(),
        "3000 columns",
    ),
    "long.csv": (lambda: b"a,y\n" + b"x" * 20_000 + b",u\nb,v\n", "a text of 20000 characters"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_what_unpacks_to_much_is_refused_at_once(name: str) -> None:
    make, words = BOMBS[name]
    content = make()
    assert len(content) < 1 << 20
    begun, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DataError, match=words) as caught:
        read_table(content, Path(name))
    assert "\n" not in str(caught.value)
    assert time.process_time() - begun < 2.0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000


def csv(tmp_path: Path, *cells: str) -> Path:
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "".join(f"{cells[i % len(cells)]},{'u' if i % 2 else 'v'}\n" for i in range(20)))
    return path


@pytest.mark.parametrize("cell", ["1e30", "-1e30", "1e99", "0", "1e-320", "123456789012345678"])
def test_a_column_that_says_one_thing_only(tmp_path: Path, cell: str) -> None:
    table = load_table(csv(tmp_path, cell), "y")
    assert np.isfinite(table.dataset.features).all()


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (("1.7e308", "-1.7e308"), "beyond 1e\\+100"),
        (("1e101",), "beyond 1e\\+100"),
        (("inf",), "not finite"),
    ],
)
def test_a_column_that_is_out_of_reach(tmp_path: Path, cells: tuple[str, ...], words: str) -> None:
    with pytest.raises(DataError, match=words):
        load_table(csv(tmp_path, *cells), "y")


def test_classes_that_are_no_words(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(
        pa.table({"a": [i % 9 for i in range(20)], "y": [1e300 if i % 2 else 1e250 for i in range(20)]}), path
    )
    with pytest.raises(DataError, match="column 'y'"):
        load_table(path, "y")


def test_texts_and_numbers_are_read_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(
        pa.table({"a": [1, 2, 3], "t": [" x", "y", "x"], "b": [True, False, True], "f": [0.5, 1.5, -1.0]}), path
    )
    found = read_table(path.read_bytes(), path)
    assert found["a"].numbers.tolist() == [1.0, 2.0, 3.0]
    assert list(found["t"].texts) == ["x", "y", "x"]
    assert list(found["b"].texts) == ["True", "False", "True"]
    assert found["f"].numbers.tolist() == [0.5, 1.5, -1.0]

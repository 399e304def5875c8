"""Loaders, splits, hashes and what happens when a file is not what it should be."""

from __future__ import annotations

import gzip
import os

import numpy as np
import pytest

from reticent import data
from reticent.data import Dataset
from reticent.data.binary_table import parse_binary_table
from reticent.data.purchase import generate_baskets, load_purchase100
from reticent.kernel.errors import DataError, ParameterError
from tests.data.purchase_file import write_table

needs_files = pytest.mark.skipif(not os.environ.get("RETICENT_DATA"), reason="RETICENT_DATA is not set")


def tiny(**changes) -> Dataset:
    rng = np.random.default_rng(0)
    fields = {
        "name": "tiny",
        "source": "test",
        "features": rng.random((10, 3)).astype(np.float32),
        "labels": rng.integers(2, size=10),
        "classes": 2,
        "train": np.arange(7),
        "test": np.arange(7, 10),
    } | changes
    return Dataset(**fields)


@pytest.mark.parametrize(
    ("name", "shape", "classes", "train"), [("breast-cancer", (569, 30), 2, 455), ("digits", (1797, 64), 10, 1437)]
)
def test_bundled_data_sets(name, shape, classes, train, monkeypatch):
    monkeypatch.delenv("RETICENT_DATA", raising=False)
    dataset = data.load(name)
    assert dataset.features.shape == shape
    assert dataset.classes == classes == len(np.unique(dataset.labels))
    assert len(dataset.train) == train
    assert np.abs(dataset.features).max() <= 1.0
    assert not dataset.features.flags.writeable
    assert dataset.content_hash == data.load(name).content_hash


def test_breast_cancer_ranges_hold_the_published_data():
    """Fixed ranges only clip a handful of values by rounding; a wrong column order would clip hundreds."""
    dataset = data.load("breast-cancer")
    assert np.mean(np.abs(dataset.features) == 1.0) < 0.02
    assert np.all(np.ptp(dataset.features, axis=0) > 1.2)


def test_content_hash_sees_every_part():
    base = tiny()
    parts = {"features": base.features + np.float32(1e-6), "labels": 1 - base.labels}
    parts |= {"train": np.arange(6), "test": np.arange(7, 9)}
    assert len({base.content_hash, *(tiny(**{name: part}).content_hash for name, part in parts.items())}) == 5
    assert tiny(name="other").content_hash == base.content_hash


def test_published_test_records_stay_out_of_every_new_split():
    split = tiny().split(0.5, seed=3)
    assert len(split.train) == 3
    assert split.split_seed == 3
    for drawn in (split, split.split(0.5, seed=4)):
        assert sorted([*drawn.train, *drawn.test]) == list(range(7))


@pytest.mark.parametrize(
    "changes",
    [
        {"train": np.arange(8)},
        {"train": np.arange(0)},
        {"train": np.array([0, 11])},
        {"labels": np.full(10, 2)},
        {"features": np.full((10, 3), np.nan, dtype=np.float32)},
        {"features": np.zeros((10, 3))},
    ],
)
def test_inconsistent_data_is_refused(changes):
    with pytest.raises(ParameterError):
        tiny(**changes)


def test_unknown_names_list_what_there_is():
    with pytest.raises(ParameterError, match="one of adult, breast-cancer"):
        data.load("adlut")
    with pytest.raises(ParameterError, match="one of mean radius, mean texture"):
        data.load("breast-cancer").group("radius")


@pytest.mark.parametrize(
    ("folder", "wanted"),
    [("", "RETICENT_DATA is not set"), ("nowhere", "is not a folder"), (".", "data file .* cannot be read")],
)
def test_unset_and_wrong_data_folder(monkeypatch, tmp_path, folder, wanted):
    monkeypatch.setenv("RETICENT_DATA", folder and str(tmp_path / folder))
    for name in ("adult", "location-30", "cifar-10", "purchase-100"):
        with pytest.raises(DataError, match=wanted):
            data.load(name)


@needs_files
@pytest.mark.parametrize(
    ("name", "shape", "classes", "train", "range_"),
    [
        ("location-30", (5_010, 446), 30, 4_008, (0.0, 1.0)),
        pytest.param("cifar-10", (60_000, 3, 32, 32), 10, 50_000, (-1.0, 1.0), marks=pytest.mark.slow),
    ],
)
def test_data_sets_in_files(name, shape, classes, train, range_):
    dataset = data.load(name)
    assert dataset.features.shape == shape
    assert sorted(np.unique(dataset.labels)) == list(range(classes))
    assert len(dataset.train) == train
    assert (dataset.features.min(), dataset.features.max()) == range_
    if name == "cifar-10":
        assert np.bincount(dataset.labels[dataset.test]).tolist() == [1_000] * 10
        assert any("JPEG" in note for note in dataset.notes)


def test_purchase_format_round_trip(tmp_path):
    """The format on a generated stand-in, which is never called Purchase."""
    generated = generate_baskets(records=200, seed=5)
    assert "purchase" not in generated.name.lower()
    write_table(generated, tmp_path / "dataset")
    loaded = load_purchase100(tmp_path / "dataset")
    assert np.array_equal(loaded.features, generated.features)
    assert np.array_equal(loaded.labels, generated.labels)
    assert len(loaded.train) == 180


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "no records"),
        (b"1,0,1\n2,0\n", "must hold a label and 2"),
        (b"1,0,1,1\n", "must hold a label and 2"),
        (b"4,0,1\n", "labels must lie in 1 to 3"),
        (b"1,0,2\n", "features must be 0 or 1"),
        (b"1,0,x\n", "must hold a label and 2"),
        (gzip.compress(b"1,0,1\n", mtime=0), "must hold a label and 2"),
    ],
)
def test_corrupt_tables_are_refused(content, reason):
    with pytest.raises(DataError, match=reason):
        parse_binary_table(content, columns=2, classes=3, where="file")


def test_quoted_labels():
    features, labels = parse_binary_table(b'"3",0,1\n"1",1,1\n', columns=2, classes=3, where="file")
    assert (features.tolist(), labels.tolist()) == ([[0, 1], [1, 1]], [2, 0])


@pytest.mark.parametrize("kind", ["pipe", "device", "large"])
def test_a_data_file_is_a_plain_file_of_a_size_that_can_be_read(tmp_path, monkeypatch, kind):
    file, wanted = tmp_path / "dataset", "not a plain file"
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "device":
        file.symlink_to("/dev/zero")
    else:
        monkeypatch.setattr("reticent.data.files.LARGEST", 100)
        file.write_bytes(b"1" * 101)
        wanted = "more than the 100 that are allowed"
    with pytest.raises(DataError, match=wanted):
        load_purchase100(file)

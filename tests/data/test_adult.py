"""Adult: 108 columns, encoded record by record."""

from __future__ import annotations

import os

import numpy as np
import pytest

from reticent import data
from reticent.data import ColumnKind, adult
from reticent.kernel.errors import DataError

ROW = (
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, "
    "2174, 0, 40, United-States, <=50K"
)
needs_files = pytest.mark.skipif(not os.environ.get("RETICENT_DATA"), reason="RETICENT_DATA is not set")


def fields(line: str) -> list[str]:
    return [field.strip() for field in line.split(",")]


def test_encodes_one_record_by_hand():
    features, labels = adult.encode([fields(ROW)])
    assert features.shape == (1, 108)
    assert labels.tolist() == [0]
    # Offsets by hand: age 1, workclass 9, fnlwgt 1, education 16, number 1, marital 7, occupation 15,
    # relationship 6, race 5, sex 2, gain 1, loss 1, hours 1, country 42.
    expected = np.zeros(108)
    expected[[0, 10, 27, 63]] = (39 - 40) / 15, (77516 - 190000) / 100000, (13 - 10) / 3, np.log1p(2174) / 5
    # State-gov (eighth in alphabetical order), Bachelors, Never-married, Adm-clerical, Not-in-family, White, Male, US.
    expected[[1 + 7, 11 + 9, 28 + 4, 35 + 1, 50 + 1, 56 + 4, 61 + 1, 66 + 39]] = 1
    assert features[0] == pytest.approx(expected, rel=1e-6, abs=1e-7)


def test_no_record_influences_the_encoding_of_another():
    odd = ROW.replace("39,", "90,").replace("77516", "1490400").replace("2174", "99999")
    alone, _ = adult.encode([fields(ROW)])
    beside, _ = adult.encode([fields(odd), fields(ROW), fields(odd)])
    assert np.array_equal(alone[0], beside[1])


def test_column_groups_cover_every_column_once():
    groups = adult.column_groups()
    assert [c for g in groups for c in g.columns] == list(range(108))
    assert [len(g.columns) for g in groups] == [1, 9, 1, 16, 1, 7, 15, 6, 5, 2, 1, 1, 1, 42]


def test_age_has_74_values_not_the_printed_73():
    """CHERUBIN2024:B19: the paper says 73 unique values and uses 17 to 90, which are 74."""
    age = adult.column_groups()[0]
    assert age.values == tuple(float(a) for a in range(17, 91))
    assert len(age.values) == 74
    assert age.encoded[:, 0] == pytest.approx((np.arange(17, 91) - 40) / 15, rel=1e-6, abs=1e-7)


def test_candidate_values_are_what_the_encoder_gives():
    for index, group in enumerate(adult.column_groups()):
        for value, encoded in list(zip(group.values, group.encoded, strict=True))[:5]:
            row = fields(ROW)
            row[index] = value if group.kind is ColumnKind.ONE_HOT else repr(value)
            assert np.array_equal(adult.encode([row])[0][0, list(group.columns)], encoded)


def test_unknown_category_names_field_and_value():
    with pytest.raises(DataError, match=r"sex holds 'M', which the code book does not list"):
        adult.encode([fields(ROW.replace("Male", "M"))])


@needs_files
def test_published_split_and_marginals():
    dataset = data.load("adult")
    assert dataset.features.shape == (48_842, 108)
    assert (len(dataset.train), len(dataset.test)) == (32_561, 16_281)
    labels = dataset.labels[dataset.train]
    assert int(labels.sum()) == 7_841
    sex = dataset.features[dataset.train][:, list(dataset.group("sex").columns)]
    assert sex.sum(axis=0).tolist() == [10_771, 21_790]
    for group in dataset.groups:
        if group.kind is ColumnKind.ONE_HOT:
            assert np.all(dataset.features[:, list(group.columns)].sum(axis=1) == 1)
    assert len(dataset.split(0.8, seed=1).train) == 26_048  # the size behind the paper's noise: CHERUBIN2024:B15


def test_corrupt_file_is_named(tmp_path, monkeypatch):
    (tmp_path / "adult").mkdir()
    (tmp_path / "adult" / "adult.data").write_bytes(b"39, State-gov\n")
    monkeypatch.setenv("RETICENT_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"adult\.data: SHA-256 is .* expected df25a4e32ed6\.\.\.: the file is corrupt"):
        data.load("adult")

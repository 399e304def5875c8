"""Score files and other tools' folders: round trips, strict validation, and nothing hostile gets through."""

from __future__ import annotations

import io
import json
import pickle
import struct
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reticent.auditing import (
    Design,
    Scores,
    import_lira,
    import_privacy_meter,
    load_scores,
    save_scores,
)
from reticent.io.npz import read_npy
from reticent.kernel.errors import ArtifactError, ParameterError

SCORES = Scores(np.array([0.1, 2.0, 1 / 3]), np.array([-1e-300, 5.0]), {"attack": "loss", "seed": 3}, Design.ONE_RUN)


class Bomb:
    """Unpickling it creates a file: the proof that something was executed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def npy(array: np.ndarray, allow_pickle: bool = False) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=allow_pickle)
    return stream.getvalue()


def npz(path: Path, **entries: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            archive.writestr(f"{name}.npy", content)
    return path


ONES = npy(np.array([1.0, 2.0]))


@pytest.mark.parametrize("ending", [".npz", ".parquet", ".csv"])
def test_round_trip(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"scores{ending}"
    save_scores(path, SCORES)
    back = load_scores(path)
    np.testing.assert_array_equal(back.member, SCORES.member)
    np.testing.assert_array_equal(back.non_member, SCORES.non_member)
    if ending == ".csv":
        assert (dict(back.meta), back.design) == ({}, Design.POPULATION)
    else:
        assert (dict(back.meta), back.design) == ({"attack": "loss", "seed": 3}, Design.ONE_RUN)
    assert load_scores(path, Design.INDEPENDENT).design is Design.INDEPENDENT
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "scores.npz"
    save_scores(path, SCORES)
    before = path.read_bytes()

    def no_space(*arguments: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", no_space)
    with pytest.raises(OSError, match="disk full"):
        save_scores(path, SCORES)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["scores.npz"]


def test_plain_npz_of_other_programs_is_read(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "s.npz", member=np.array([1, 2]), non_member=np.array([0.5], dtype=np.float32))
    assert load_scores(tmp_path / "s.npz").member.tolist() == [1.0, 2.0]


def huge_header() -> bytes:
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000000,), }"
    header += b" " * (118 - len(header)) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header


def long_header() -> bytes:
    return b"\x93NUMPY\x02\x00" + struct.pack("<I", 1 << 24) + b"(" * (1 << 24)


def bomb(path: Path) -> np.ndarray:
    return np.array([Bomb(path.parent / "boom")])


def meta(text: str) -> Callable[[Path], object]:
    return lambda p: npz(p, member=ONES, non_member=ONES, meta=npy(np.array(text)))


def member(array: np.ndarray | bytes) -> Callable[[Path], object]:
    return lambda p: npz(p, member=array if isinstance(array, bytes) else npy(array), non_member=ONES)


def duplicate(path: Path) -> None:
    npz(path, member=ONES, non_member=ONES)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("member.npy", ONES)


def longer_than_promised(path: Path) -> None:
    content = bytearray(npz(path, member=ONES, non_member=ONES).read_bytes())
    at = content.rindex(b"PK\x01\x02")
    content[at + 24 : at + 28] = struct.pack("<I", 10)
    path.write_bytes(bytes(content))


def damaged_compression(path: Path) -> None:
    np.savez_compressed(path, member=np.random.default_rng(0).normal(size=500), non_member=np.array([1.0]))
    content = bytearray(path.read_bytes())
    content[200:260] = bytes(60)
    path.write_bytes(bytes(content))


def damaged_parquet(path: Path) -> None:
    save_scores(path, SCORES)
    path.write_bytes(path.read_bytes()[:-6])


NPZ: dict[str, Callable[[Path], object]] = {
    "pickle": lambda p: npz(p, member=npy(bomb(p), True), non_member=ONES),
    "raw pickle": lambda p: npz(p, member=pickle.dumps(Bomb(p.parent / "boom")), non_member=ONES),
    "huge shape": member(huge_header()),
    "huge header": lambda p: npz(p, member=long_header(), non_member=ONES),
    "truncated": member(ONES[:-3]),
    "trailing bytes": member(ONES + b"x"),
    "nan": member(np.array([np.nan])),
    "infinite": member(np.array([np.inf])),
    "empty": member(np.array([])),
    "two dimensions": member(np.eye(2)),
    "missing": lambda p: npz(p, member=ONES),
    "extra": lambda p: npz(p, member=ONES, non_member=ONES, other=ONES),
    "meta pickle": lambda p: npz(p, member=ONES, non_member=ONES, meta=npy(bomb(p), True)),
    "meta nan": meta('{"a": NaN}'),
    "meta nested": meta('{"a": {}}'),
    "meta deep": meta("[" * 9000),
    "meta list": meta("[]"),
    "meta long": meta(" " * (1 << 17)),
    "meta no text": lambda p: npz(p, member=ONES, non_member=ONES, meta=ONES),
    "meta design": meta('{"design": "magic"}'),
    "no zip": lambda p: p.write_bytes(b"PK\x03\x04 nonsense"),
    "plain pickle": lambda p: p.write_bytes(pickle.dumps(Bomb(p.parent / "boom"))),
    "duplicate": duplicate,
    "longer than promised": longer_than_promised,
    "damaged compression": damaged_compression,
}
CSV = {
    "columns": b"score,label\n1,1\n",
    "empty": b"",
    "word": b"score,member\nmuch,1\n1,0\n",
    "nan": b"score,member\nnan,1\n1,0\n",
    "infinite": b"score,member\n1e999,1\n1,0\n",
    "truth": b"score,member\n1,yes\n2,0\n",
    "missing": b"score,member\n1\n2,0\n",
    "extra": b"score,member\n1,1,9\n2,0\n",
    "one side": b"score,member\n1,1\n2,1\n",
    "quotes": b'score,member\n"1,1\n2,0\n',
    "no text": b"score,member\n\xff\xfe,1\n",
}
PARQUET = {
    "columns": {"score": [1.0], "label": [True]},
    "text": {"score": ["a"], "member": [True]},
    "integers as truth": {"score": [1.0, 2.0], "member": [1, 0]},
    "missing": {"score": [1.0, None], "member": [True, False]},
    "missing truth": {"score": [1.0, 2.0], "member": [True, None]},
    "nan": {"score": [float("nan"), 2.0], "member": [True, False]},
    "one side": {"score": [1.0, 2.0], "member": [True, True]},
}
REFUSED: dict[str, Callable[[Path], object]] = {
    **{f"{name}.npz": write for name, write in NPZ.items()},
    **{f"{name}.csv": partial(Path.write_bytes, data=content) for name, content in CSV.items()},
    **{f"{name}.parquet": partial(pq.write_table, pa.table(rows)) for name, rows in PARQUET.items()},
    "damaged.parquet": damaged_parquet,
    "no content.parquet": partial(Path.write_bytes, data=b""),
    "noise.parquet": partial(Path.write_bytes, data=b"PAR1" + b"\xff" * 60 + b"PAR1"),
    "other.pkl": partial(Path.write_bytes, data=ONES),
    "other.npy": partial(Path.write_bytes, data=ONES),
    "absent.npz": lambda p: None,
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_score_file_executes_nothing_and_ends_in_one_line(tmp_path: Path, case: str) -> None:
    path = tmp_path / case
    REFUSED[case](path)
    with pytest.raises(ArtifactError) as refusal:
        load_scores(path)
    assert "\n" not in str(refusal.value)
    assert str(path) in str(refusal.value)
    assert not (tmp_path / "boom").exists()


def test_a_long_list_of_entries_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = npz(tmp_path / "s.npz", **{f"entry {k}": b"" for k in range(2000)})
    with pytest.raises(ArtifactError, match=r"not a readable \.npz file"):
        load_scores(path)


def test_files_that_are_too_large_and_other_endings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ArtifactError, match=r"\.npz, \.parquet or \.csv"):
        save_scores(tmp_path / "scores.pkl", SCORES)
    save_scores(tmp_path / "s.csv", SCORES)
    monkeypatch.setattr("reticent.auditing.files.MOST_SCORES", 2)
    with pytest.raises(ArtifactError, match="holds 3 scores, at most 2"):
        load_scores(tmp_path / "s.csv")


def test_the_bomb_is_live(tmp_path: Path) -> None:
    """The tests above would mean nothing if unpickling did no harm."""
    pickle.loads(pickle.dumps(Bomb(tmp_path / "boom"))).close()  # noqa: S301
    assert (tmp_path / "boom").exists()


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
def test_a_byte_order_mark_is_none_of_the_first_column(tmp_path: Path, start: bytes) -> None:
    """Excel writes one: "the columns must be score and member, are ['\\ufeffscore', 'member']"."""
    path = tmp_path / "scores.csv"
    path.write_bytes(start + b"score,member\n2.5,1\n1,0\n")
    assert load_scores(path).member.tolist() == [2.5]


PROBABILITIES = {
    ".csv": lambda p: p.write_text("p0,p1,p2,member\n.1,.2,.7,1\n.3,.3,.4,0\n"),
    "cells.csv": lambda p: p.write_text('score,member\n"[0.1, 0.9]",1\n"[0.5, 0.5]",0\n'),
    ".npz": lambda p: np.savez(p, member=np.eye(3), non_member=np.eye(3)),
    ".parquet": lambda p: pq.write_table(pa.table({"score": [[0.1, 0.9]], "member": [True]}), p),
    "columns.parquet": lambda p: pq.write_table(pa.table({"p0": [0.1], "p1": [0.9], "member": [True]}), p),
}


@pytest.mark.parametrize("case", PROBABILITIES)
def test_class_probabilities_are_no_scores_and_the_line_says_what_is(tmp_path: Path, case: str) -> None:
    path = tmp_path / f"scores{case}"
    PROBABILITIES[case](path)
    with pytest.raises(ArtifactError, match=r"one number for each record.*class probabilities are several"):
        load_scores(path)


def test_scores_that_are_not_finite_are_refused_with_their_place(tmp_path: Path) -> None:
    """None is left out: which ones are missing may depend on who is a member."""
    (tmp_path / "s.csv").write_text("score,member\n1,1\ninf,1\nnan,0\n")
    with pytest.raises(ArtifactError, match="line 3: score 'inf' is not finite, and no row may be left out"):
        load_scores(tmp_path / "s.csv")
    with pytest.raises(ParameterError, match="2 of 3 that are not, first nan at index 1"):
        Scores(np.array([1.0, np.nan, np.inf]), np.array([0.0]))


def test_read_npy_reads_what_numpy_writes() -> None:
    for array in (np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6).reshape(2, 3)), np.array([True, False])):
        np.testing.assert_array_equal(read_npy(npy(array), "x"), array)


def lira_folder(root: Path, name: str = "experiment_{}_of_{}", models: int = 4) -> np.ndarray:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(models, 10, 2))
    for i in range(models):
        folder = root / name.format(i, models) / "scores"
        folder.mkdir(parents=True)
        np.save(folder.parent / "keep.npy", rng.random(10) < 0.5)
        np.save(folder / "0000000020.npy", np.zeros((10, 2)))
        np.save(folder / "0000000100.npy", values[i])
        (folder.parent / "hparams.json").write_text("{}")
    return values


@pytest.mark.parametrize("name", ["experiment_{}_of_{}", "experiment-{}_of_{}"])
def test_lira_folders_take_the_newest_epoch_in_order_of_the_models(tmp_path: Path, name: str) -> None:
    values = lira_folder(tmp_path, name, 12)
    shadows = import_lira(tmp_path)
    np.testing.assert_array_equal(shadows.values, values)
    assert shadows.keep.shape == (12, 10)
    assert shadows.keep.dtype == bool


def test_hostile_lira_folders(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="experiment_i_of_n"):
        import_lira(tmp_path)
    with pytest.raises(ArtifactError, match="not a folder"):
        import_lira(tmp_path / "nowhere")
    lira_folder(tmp_path)
    keep = tmp_path / "experiment_1_of_4" / "keep.npy"
    scores = tmp_path / "experiment_2_of_4" / "scores" / "0000000100.npy"
    good = keep.read_bytes()
    for path, content, words in (
        (keep, npy(np.array([Bomb(tmp_path / "boom")] * 10), True), "objects are refused"),
        (keep, npy(np.ones(9, dtype=bool)), "same shape"),
        (keep, npy(np.full(10, 2, dtype=np.uint8)), "must be boolean"),
        (keep, npy(np.zeros(10)), "must be boolean"),
        (keep, good[:-2], "promises"),
        (scores, npy(np.full((10, 2), np.nan)), "finite"),
    ):
        keep.write_bytes(good)
        path.write_bytes(content)
        with pytest.raises(ArtifactError, match=words):
            import_lira(tmp_path)
    for path, words in ((keep, "no such file"), (scores.parent, "not a folder")):
        path.rename(tmp_path / "aside")
        with pytest.raises(ArtifactError, match=words):
            import_lira(tmp_path)
        (tmp_path / "aside").rename(path)
    assert not (tmp_path / "boom").exists()


def test_links_out_of_the_folder_are_refused(tmp_path: Path) -> None:
    lira_folder(tmp_path / "inside")
    outside = tmp_path / "secret.npy"
    np.save(outside, np.ones(10, dtype=bool))
    link = tmp_path / "inside" / "experiment_0_of_4" / "keep.npy"
    link.unlink()
    link.symlink_to(outside)
    with pytest.raises(ArtifactError, match="leads out of"):
        import_lira(tmp_path / "inside")


LOG = {"fpr": np.zeros(3), "scores": np.array([3.0, 1.0, 2.0]), "memberships": np.array([True, False, True])}


def test_privacy_meter_logs(tmp_path: Path) -> None:
    file = tmp_path / "report" / "exp" / "attack_result_0.npz"
    file.parent.mkdir(parents=True)
    np.savez(file, **LOG)
    for source in (tmp_path, file):
        scores = import_privacy_meter(source)
        assert (scores.member.tolist(), scores.non_member.tolist()) == ([3.0, 2.0], [1.0])
        assert scores.design is Design.POPULATION
    with pytest.raises(ArtifactError, match="attack_result_7"):
        import_privacy_meter(tmp_path, 7)


@pytest.mark.parametrize(
    "write",
    [
        lambda p: np.savez(p, **LOG | {"memberships": np.array([True, False])}),
        lambda p: np.savez(p, **LOG | {"memberships": np.array([0, 1, 2])}),
        lambda p: np.savez(p, **LOG | {"memberships": np.array([True, True, True])}),
        lambda p: np.savez(p, **LOG | {"scores": np.array([np.nan, 1.0, 2.0])}),
        lambda p: np.savez(p, **LOG | {"scores": np.array(["a", "b", "c"])}),
        lambda p: npz(p, scores=npy(bomb(p), True), memberships=npy(np.ones(1))),
        lambda p: npz(p, scores=ONES),
        lambda p: p.write_bytes(b"not a zip"),
    ],
)
def test_privacy_meter_logs_that_make_no_sense(tmp_path: Path, write) -> None:
    write(tmp_path / "attack_result_0.npz")
    with pytest.raises(ArtifactError):
        import_privacy_meter(tmp_path)
    assert not (tmp_path / "boom").exists()


def test_meta_is_strict_json_in_the_file(tmp_path: Path) -> None:
    save_scores(tmp_path / "s.npz", SCORES)
    with np.load(tmp_path / "s.npz", allow_pickle=False) as content:
        assert json.loads(str(content["meta"])) == {"attack": "loss", "design": "one-run", "seed": 3}

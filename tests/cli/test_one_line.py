"""Whatever is typed or given, the command line ends in one line, and nothing of a stranger acts on the terminal."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from reticent.auditing import Scores
from reticent.auditing.files import load_scores, save_scores
from reticent.kernel.errors import ArtifactError, ParameterError
from tests.cli.calling import run

CONFIG = """
data: {name: digits, train_size: 200}
model: {kind: logistic}
noise_multiplier: 2.0
batch_size: 20
learning_rate: 0.1
"""


def refused(capsys, *arguments) -> str:
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert err.count("\n") == 1
    assert "\x1b" not in err
    assert len(err) < 2100
    return err


def test_python_dash_m():
    done = subprocess.run([sys.executable, "-m", "reticent", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0.1.0"


@pytest.mark.parametrize("words", [["--help"], ["risk", "gaussian", "--noise-multiplier", "1"]])
def test_a_reader_that_ends_early_is_no_breach(words):
    """``reticent ... | head`` ended with 1, the exit code of a breach; now as shells say it, 128 and SIGPIPE."""
    reads, writes = os.pipe()
    os.close(reads)
    done = subprocess.run(
        [sys.executable, "-m", "reticent", *words], stdout=writes, stderr=subprocess.PIPE, check=False
    )
    os.close(writes)
    assert (done.returncode, done.stderr) == (141, b"")


YAML = {
    "a date that is none": ("seed: 2024-13-45", "seed: .*got '2024-13-45'"),
    "a date": ("seed: 2024-10-10", "seed: "),
    "an int that is none": ("seed: !!int abc", "a tag such as !!int in line"),
    "a bool that is none": ("seed: !!bool abc", "a tag such as !!bool"),
    "a float that is none": ("seed: !!float abc", "not valid YAML"),
    "a time that is none": ("seed: !!timestamp abc", "not valid YAML"),
    "5,000 digits": ("seed: " + "1" * 5000, "seed: "),
    "5,000 digits by force": ("seed: !!int " + "1" * 5000, "not valid YAML"),
    "no binary digits": ("seed: 0b_", "'0b_' has several meanings"),
    "a clock": ("seed: 190:20:30", "'190:20:30' has several meanings in line"),
    "a repeated key": ("seed: 1\nseed: 2", "the key 'seed' is repeated"),
    "a repeated key inside": ("trace: {every: 1, every: 2}", "the key 'every' is repeated"),
    "too many steps": ("steps: 5000000", "less than or equal to 1000000"),
    "a key that moves the cursor": (r'"\e[2J\e]0;x\a": 1', r"unknown key '.*x1b"),
    "half a character": (r'seed: "\ud800"', "half a character"),
    "a list as a key": ("? [a, b]\n: 1", "not valid YAML"),
    "a merge": ("<<: 3", "a merge key <<"),
    "itself": ("seed: &a [*a]", "an anchor or alias"),
    "a path": ("data: {name: purchase-100, path: /dev/zero}", "the key .data. is repeated"),
    "deep": ("seed: " + "[" * 400, "not valid YAML"),
    "noise 1e309": ("max_grad_norm: 1e309", "the number 1e309 is too large"),
}


@pytest.mark.parametrize("case", YAML)
def test_yaml(case, tmp_path, capsys):
    text, message = YAML[case]
    path = tmp_path / "c.yaml"
    path.write_text(CONFIG + text + ("\nsteps: 2\n" if "steps" not in text else "\n"))
    assert re.search(message, refused(capsys, "train", path, "--out", tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_a_repeated_key_does_not_win_silently(tmp_path, capsys):
    path = tmp_path / "c.yaml"
    path.write_text(CONFIG + "steps: 2\nsteps: 5\n")
    assert "the key 'steps' is repeated" in refused(capsys, "train", path, "--out", tmp_path / "run")


@pytest.mark.parametrize("kind", ["pipe", "/dev/zero", "folder"])
def test_a_configuration_that_is_no_file(kind, tmp_path, capsys):
    path = tmp_path / "c.yaml"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path = Path(kind)
    assert "not a plain file" in refused(capsys, "train", path, "--out", tmp_path / "run")


@pytest.mark.parametrize("noise", ["1e-308", "5e-324", "1e-200", "1e200", "1e308"])
@pytest.mark.parametrize("kind", ["gaussian", "laplace", "dpsgd"])
def test_noise_at_the_ends_of_floating_point(kind, noise, capsys):
    more = ("--sample-rate", "0.01", "--steps", "10") if kind == "dpsgd" else ()
    err = refused(capsys, "risk", kind, "--noise-multiplier", noise, *more)
    assert "--noise-multiplier must be 0, or from 1e-30 to 1e+30" in err


def test_a_rate_at_the_end_of_floating_point(capsys):
    err = refused(capsys, "risk", "dpsgd", "--noise-multiplier", "1", "--sample-rate", "1e-300", "--steps", "10")
    assert "--sample-rate must be a number from 1e-30 to 1" in err


def test_an_overflow_deep_inside_is_one_line(capsys, monkeypatch):
    monkeypatch.setattr("reticent.verbs.risks.assess_named", lambda *a: 10.0**400)
    assert "too extreme to compute with" in refused(capsys, "risk", "gaussian", "--noise-multiplier", "1")


@pytest.mark.parametrize(
    ("name", "kind", "shown"),
    [
        ("member", "gaussian", "member"),
        ("num_parameters", "gaussian", "num_parameters"),
        ("num_parameters", "dpsgd", "--num-parameters"),
        ("data", "gaussian", "--data"),  # an option of the group above
    ],
)
def test_errors_name_only_options_that_exist(name, kind, shown, capsys, monkeypatch):
    def wrong(*_):
        raise ParameterError(name, "x", "y")

    monkeypatch.setattr("reticent.verbs.risks.assess_named", wrong)
    run_of_it = ["--sample-rate", "0.1", "--steps", "9"] if kind == "dpsgd" else []
    err = refused(capsys, "risk", kind, "--noise-multiplier", "1", *run_of_it)
    assert err == f"reticent: {shown} must be y, got 'x'\n"


def test_scores_that_do_not_do_name_no_option(tmp_path, capsys):
    np.savez(tmp_path / "s.npz", member=np.eye(3), non_member=np.ones(3))
    assert "--member" not in refused(capsys, "audit", tmp_path / "s.npz")
    np.savez(tmp_path / "s.npz", member=np.array([np.nan]), non_member=np.ones(3))
    assert "--member" not in refused(capsys, "audit", tmp_path / "s.npz")


def test_escapes_in_a_score_file_do_not_reach_the_terminal(tmp_path, capsys):
    scores = Scores(np.arange(40.0), np.arange(40.0) - 1.0, {"attack": "\x1b]0;owned\x07\x1b[2J\u202e"})
    for name in ("s.npz", "s.parquet"):
        save_scores(tmp_path / name, scores)
        code, out, err = run(capsys, "audit", tmp_path / name)
        assert code == 0
        assert "\x1b" not in out + err
        assert "\u202e" not in out
        assert r"\x1b]0;owned" in out
        json.loads(run(capsys, "audit", tmp_path / name, "--json")[1])


def test_a_file_name_that_moves_the_cursor(tmp_path, capsys):
    assert r"\x1b[2J" in refused(capsys, "audit", tmp_path / "\x1b[2J.npz")


def test_another_data_folder(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("RETICENT_DATA", "/nowhere")
    path = tmp_path / "c.yaml"
    path.write_text(CONFIG.replace("digits, train_size: 200", "adult") + "steps: 1\n")
    err = refused(capsys, "--data", tmp_path, "train", path, "--out", tmp_path / "run")
    assert str(tmp_path / "adult") in err
    assert "--data must be a folder" in refused(capsys, "--data", tmp_path / "none", "train", path, "--out", tmp_path)


def _zip_bomb(path: Path) -> None:
    header = np.lib.format.header_data_from_array_1_0(np.zeros(0))
    header["shape"] = (12_500_000,)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("member.npy", "w") as stream:
        np.lib.format.write_array_header_1_0(stream, header)
        for _ in range(100):
            stream.write(bytes(1_000_000))
    with zipfile.ZipFile(path, "a") as archive, archive.open("non_member.npy", "w") as stream:
        np.lib.format.write_array(stream, np.arange(3.0))


def _long_directory(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for k in range(2000):
            archive.writestr(f"{k}.npy", b"")


def _many_rows(path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = 1_000_000
    table = pa.table({"score": np.zeros(rows), "member": np.zeros(rows, dtype=bool)})
    with pq.ParquetWriter(path, table.schema) as writer:
        for _ in range(11):
            writer.write_table(table)


@pytest.mark.parametrize(
    ("name", "build", "message"),
    [
        ("s.npz", _zip_bomb, "bytes once unpacked"),
        ("s.npz", _long_directory, "not a readable .npz file"),
        ("s.parquet", _many_rows, "holds 11000000 scores, at most 10000000"),
    ],
)
def test_score_files_that_unpack_to_gigabytes(name, build, message, tmp_path):
    build(tmp_path / name)
    with pytest.raises(ArtifactError, match=message):
        load_scores(tmp_path / name)


def test_csv_with_too_many_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("reticent.auditing.files.MOST_SCORES", 3)
    (tmp_path / "s.csv").write_text("score,member\n" + "1,1\n2,0\n" * 3)
    with pytest.raises(ArtifactError, match="holds 4 scores, at most 3"):
        load_scores(tmp_path / "s.csv")


def _full(*arguments: object, **named: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    "where",
    [
        "safetensors.torch.save",
        "reticent.training.trace.save_tensors",
        "reticent.training.rundir.write_atomic",
        "pathlib.Path.write_text",
    ],
)
def test_a_full_disk_in_training(where, tmp_path, capsys, monkeypatch):
    path = tmp_path / "c.yaml"
    path.write_text(CONFIG + "steps: 2\n")
    monkeypatch.setattr(where, _full)
    err = refused(capsys, "train", path, "--out", tmp_path / "run", "--trace")
    assert "run: cannot be written (No space left on device)" in err
    assert [p.name for p in tmp_path.iterdir()] == ["c.yaml"]


@pytest.mark.parametrize("name", ["s.npz", "s.csv", "s.parquet"])
def test_a_full_disk_for_scores_keeps_the_old_file(name, tmp_path, monkeypatch):
    (tmp_path / name).write_bytes(b"old")
    monkeypatch.setattr("reticent.auditing.files.os.fsync", _full)
    with pytest.raises(ArtifactError, match="cannot be written"):
        save_scores(tmp_path / name, Scores(np.arange(3.0), np.arange(3.0) + 1.0))
    assert [p.name for p in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes() == b"old"


def test_a_full_disk_anywhere_else_is_one_line(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("reticent.verbs.risks.assess_named", _full)
    assert "No space left on device" in refused(capsys, "risk", "gaussian", "--noise-multiplier", "1")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="mounting needs root")
def test_a_disk_that_is_really_full(tmp_path, capsys):
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(small)], capture_output=True).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        path = tmp_path / "c.yaml"
        path.write_text(CONFIG + "steps: 20\n")
        assert "cannot be written" in refused(capsys, "train", path, "--out", small / "run", "--trace")
        assert list(small.iterdir()) == []
        with pytest.raises(ArtifactError, match="cannot be written"):
            save_scores(small / "s.npz", Scores(np.arange(30_000.0), np.arange(30_000.0)))
        assert list(small.iterdir()) == []
    finally:
        subprocess.run(["umount", str(small)], check=True)

"""Whatever is typed wrong ends in one line that says what was meant, with exit code 2, and nothing is written.

What the corpus has (tests/corpus/refused.txt) is not said again, nor values that no option takes (test_options.py).
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from reticent.kernel.errors import ParameterError
from tests.cli.calling import CLAIM, CONFIG, refused, run

RUN = "--noise-multiplier 2 --sample-rate 0.1 --steps 3"
RATE = "--sample-rate 0.01 --steps 1000"
REGISTER = "register open r --sign k --budget"
AUDIT = "audit scores.npz"
FILES = {
    "mechanism.json": json.dumps({"kind": "gaussian", "noise_multiplier": 1.5}),
    "small.yaml": CONFIG,
    "colour.yaml": CONFIG + "colour: blue\n",
    "twice.yaml": CONFIG + "seed: 1\nseed: 2\n",
    "name.yaml": CONFIG.replace("digits", "digitz"),
    "large.yaml": CONFIG.replace("batch_size: 20", "batch_size: 2000"),
    "adult.yaml": CONFIG.replace("digits", "adult"),
    "number.yaml": CONFIG + "selection: 3\n",
    "chosen.yaml": CONFIG + "selection: {runs: geometric, mean_runs: 3}\n",
    "seeded.yaml": CONFIG + "selection: {runs: geometric, mean_runs: 3}\nrandomness: reproducible\n",
    "claim.yaml": CLAIM,
    "loops.py": "def loop(*_): ...\n",
    "scores.txt": "1,2",
    "empty/here": "",
}
REFUSED = {
    # what was meant
    "risk dpsgd --noise-multipler 1": "did you mean --noise-multiplier?",
    f"risk dpsgd {RUN} --epsilon-at 1": "no option --epsilon-at (did you mean --epsilon?)",
    "calibrate dpsgd --epsilon-at 1": "no option --epsilon-at\n",
    f"risk dpsgd {RUN} --sampler epsilon=": "shuffled, cyclic, got 'epsilon='",
    "risk empty": "ledger.json: cannot be read",
    # what goes together, and what does not
    "risk gaussian --noise-multiplier 1 --adversary membership --method clt": "use method exact",
    f"risk dpsgd {RUN} --adversary attribute": "--gradient-change must be given",
    f"risk dpsgd {RUN} --sampler shuffled --uses-per-epoch 2": "uses-per-epoch",
    "risk gaussian --noise-multiplier 2 --mean-runs 10": "--mean-runs must be left out",
    "risk gaussian --noise-multiplier 2 --selection geometric --mean-runs 9 --shape 0": "--shape must be left out",
    "risk gaussian --noise-multiplier 1e-308": "--noise-multiplier must be 0, or from 1e-30 to 1e+30",
    "risk laplace --noise-multiplier 1e308": "--noise-multiplier must be 0, or from 1e-30 to 1e+30",
    "risk dpsgd --noise-multiplier 1 --sample-rate 1e-300 --steps 9": "--sample-rate must be a number from 1e-30 to 1",
    f"calibrate dpsgd --target tpr=0.1 {RATE}": "write tpr=0.1@0.01",
    "calibrate dpsgd --target mu=1 --epochs 3": "--epochs must be given together with the batch size",
    "calibrate dpsgd --target mu=1 --steps 10": "--sample-rate must be given",
    "calibrate dpsgd --target mu=1 --unknown batch-size --steps 9": "--noise-multiplier must be given",
    f"calibrate dpsgd --target mu=1 --adversary all {RATE}": "--adversary must be one attacker",
    f"calibrate dpsgd --target mu=1 --noise-multiplier 1 {RATE}": "--noise-multiplier must be left out",
    f"calibrate dpsgd --target mu=1 --batch-size 6 --dataset-size 50 {RATE}": "batch over dataset size, 0.12",
    f"calibrate dpsgd --target recovered=0.1@0.01 --adversary relaxed {RATE}": "relaxed bounds nobody who guesses",
    "calibrate gaussian --target mu=1 --unknown sample-rate": "one of noise-multiplier, releases",
    "calibrate ledger mechanism.json --target eps=3": "did you mean epsilon=3@1e-5?",
    "calibrate samplers --target mu=1 --dataset-size 9 --epochs 1 --batch-size 9..5": "a range such as 64..1024",
    "compare mechanism.json": "B must be given",
    "compare run empty --target mu=1": "empty",
    # training
    "train twice.yaml --out run": "the key 'seed' is repeated",
    "train name.yaml --out run": "name.yaml: data.name: must be one of adult, breast-cancer",
    "train large.yaml --out run": "large.yaml: batch_size must be at most the 200",
    "train adult.yaml --out run": "RETICENT_DATA is not set",
    "--data none train adult.yaml --out run": "--data must be a folder",
    "--data empty train adult.yaml --out run": "empty/adult",
    "train /dev/zero --out run": "not a plain file",
    "train small.yaml": "--out must be given",
    "train small.yaml --out run --trace-every 0": "--trace-every must be a whole number >= 1, got 0",
    "train small.yaml --out run --engine dask": "engines, --timeout and --resume are for a sweep",
    "train small.yaml --out run --sweep seed=1 --engine slurm": "one of local, dask, ray",
    "train small.yaml --out run --sweep seed=1 --checkpoint x": "without --data and --checkpoint",
    "train small.yaml --out run --sweep noise_multiplier=-1": "noise_multiplier",
    "train small.yaml --out run --sweep seed=1 --dry-run": "--dry-run must be left out of a sweep",
    "train number.yaml --out run": "number.yaml: selection: must be a mapping",
    "train seeded.yaml --out run": "seeded.yaml: randomness must be",
    "train chosen.yaml --out run --workers 2": "it trains in this process",
    "train chosen.yaml --out run --trace": "it trains in this process",
    "train chosen.yaml --out run --sweep seed=1,2 --sweep data.train_size=9,8": "same",
    # certificates
    "certify colour.yaml --out new": "colour",
    "certify empty --out new": "manifest.json",
    "certify mechanism.json mechanism.json --steps 3": "several releases",
    "certify mechanism.json --steps 3": "It goes with the word dpsgd only",
    f"{REGISTER} mu=1 --name ''": "--name must be a text of 1 to 500 characters",
    f"{REGISTER} mu=1 --name {'x' * 501}": "--name must be a text of 1 to 500 characters",
    f"{REGISTER} '' --name clinic": "--budget must be a text of 1 to 500 characters",
    "keygen key --public ./key": "cannot hold both keys",
    "keygen none/key": "none is not a folder that can be written to\n",
    "keygen key --public none/key.pub": "none is not a folder that can be written to\n",
    # audits
    f"{AUDIT} --claim mechanism.json --steps 3": "--steps must be left out: the file of --claim says it",
    f"{AUDIT} --claim none.json": "none.json: cannot be read",
    f"{AUDIT} --against worst-case": "--noise-multiplier must be given, or --claim",
    f"{AUDIT} --noise-multiplier 1 --against nosy": "--against must be one of",
    f"{AUDIT} --design one-run --guesses 500,500": "--guesses",
    f"{AUDIT} --guesses 5,5": "--guesses must be left out",
    f"{AUDIT} --attack glir": "--attack must be left out",
    f"{AUDIT} --target 2": "--target must be left out",
    f"{AUDIT} --save-scores x.pkl": "x.pkl",
    f"{AUDIT} --against-mu 1 --save-scores none/x.csv": "/x.csv: none is not a folder that can be written to\n",
    f"{AUDIT} --against-mu 1 --html none/page.html": "/page.html: none is not a folder that can be written to\n",
    f"{AUDIT} --html .": ".: is a folder; give the name of a file\n",
    **{f"{AUDIT} --rule {text}": "--rule" for text in ("ranks", "ranks:0", "given:1,2", "given:x", "split:", "''")},
    **{f"{AUDIT} --guesses {text}": "two whole" for text in ("1", "1,-2", "a,b", "1,2,3")},
    "audit scores.txt": "scores.txt",
    "audit empty": "empty",
    "audit \x1b[2J.npz": r"\x1b[2J",
    "audit eye.npz": "member",
    "audit nan.npz": "member",
    "audit-loop loops:absent --claim claim.yaml": "loops:absent",
    "audit-loop loops:loop --claim claim.yaml --timeout inf": "--timeout must be a finite number",
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RETICENT_DATA", raising=False)
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    normal = np.random.default_rng(0).normal
    np.savez("scores.npz", member=normal(1, 1, 40), non_member=normal(0, 1, 40))
    np.savez("eye.npz", member=np.eye(3), non_member=np.ones(3))
    np.savez("nan.npz", member=np.array([np.nan]), non_member=np.ones(3))
    return tmp_path


@pytest.mark.parametrize("typed", REFUSED)
def test_what_is_typed_wrong_is_one_line_and_nothing_is_written(typed: str, here: Path, capsys) -> None:
    known = set(here.rglob("*"))
    err = refused(capsys, *shlex.split(typed))
    assert REFUSED[typed] in err
    assert "--member" not in err
    assert {path for path in here.rglob("*") if "__pycache__" not in path.parts} == known


NO_RELEASE = {
    "{": "not valid JSON",
    "{}": "no ledger (it has no schema)",
    "[]": "no ledger",
    '{"kind": "dpsg"}': "mechanism: kind must be one of gaussian, laplace",
    '{"kind": "gaussian"}': "mechanism: noise_multiplier must be given",
    '{"kind": "gaussian", "noise_multiplier": 1, "sigma": 2}': "sigma",
    '{"kind": "gaussian", "noise_multiplier": -1}': "noise_multiplier",
    '{"kind": "ledger", "parts": []}': "parts",
    '{"kind": "ledger", "parts": [{"kind": "ledger", "parts": []}]}': "parts",
    '{"schema": "reticent.nothing/1"}': "schema",
    '{"class_name": "Sorcery"}': "Sorcery",
}


@pytest.mark.parametrize("text", NO_RELEASE)
def test_a_file_that_is_no_release_is_named(text: str, tmp_path: Path, capsys) -> None:
    file = tmp_path / "release.json"
    file.write_text(text)
    for verb in (("risk", "ledger", file), ("calibrate", "ledger", file, "--target", "advantage=0.1")):
        err = refused(capsys, *verb)
        assert str(file) in err
        assert NO_RELEASE[text] in err


def test_an_overflow_and_a_full_disk_deep_inside_are_one_line(capsys, monkeypatch) -> None:
    gaussian = ("risk", "gaussian", "--noise-multiplier", "1")
    for error, said in ((OverflowError(), "too extreme to compute with"), (OSError(28, "No space left"), "No space")):

        def fail(*_: object, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr("reticent.verbs.risks.assess_named", fail)
        assert said in refused(capsys, *gaussian)


@pytest.mark.parametrize(
    ("name", "kind", "shown"),
    [
        ("member", "gaussian", "member"),
        ("num_parameters", "gaussian", "num_parameters"),
        ("num_parameters", "dpsgd", "--num-parameters"),
        ("data", "gaussian", "--data"),  # an option of the group above
    ],
)
def test_errors_name_only_options_that_exist(name: str, kind: str, shown: str, capsys, monkeypatch) -> None:
    def wrong(*_: object) -> None:
        raise ParameterError(name, "x", "y")

    monkeypatch.setattr("reticent.verbs.risks.assess_named", wrong)
    more = ["--sample-rate", "0.1", "--steps", "9"] if kind == "dpsgd" else []
    err = refused(capsys, "risk", kind, "--noise-multiplier", "1", *more)
    assert err == f"reticent: {shown} must be y, got 'x'\n"


@pytest.mark.parametrize(("who", "noted"), [((), True), (("--adversary", "relaxed"), False)])
def test_a_dimension_that_nobody_looks_at_is_noted(who: tuple[str, ...], noted: bool, capsys) -> None:
    code, out, err = run(capsys, "risk", "gaussian", "--noise-multiplier", "2", "--dimension", "30", *who)
    assert code == 0
    assert ("note: --dimension 30 changes no number here" in err) == noted
    assert "note:" not in out

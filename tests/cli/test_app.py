"""``main``: what a start may cost, in a process of its own; bare calls, help, and who reads no further."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pytest

from reticent.cli import app
from reticent.kernel.mechanisms import MECHANISMS
from reticent.training.rundir import LEDGER, WEIGHTS, new_run
from tests.certificates.conftest import make_ledger
from tests.cli.calling import run

VERBS = app.list_commands(click.Context(app))
HEAVY = {"numpy", "scipy", "pydantic", "matplotlib", "jinja2", "cryptography", "yaml", "torch", "dash"}
MAY = {
    "--help": set(),
    "risk --help": {"numpy", "scipy", "pydantic"},  # mechanisms know pairs
    "risk dpsgd --noise-multiplier 2 --sample-rate .1 --steps 9": {"numpy", "scipy", "pydantic"},
}
"""Calls, each of which may load what the one before it may."""
NEVER = ("stats", "integrate", "optimize", "interpolate", "signal", "fft", "linalg", "sparse")  # of scipy


def _run(code: str, *words: str) -> str:
    return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True).stdout


def _after(*calls: str) -> dict[str, set[str]]:
    """Names of all modules after each call, in a process of its own."""
    code = (
        "import sys\n"
        "from reticent.cli import main\n"
        "for words in sys.argv[1:]:\n"
        "    try:\n        main(words.split())\n"
        "    except SystemExit as ended:\n        assert not ended.code\n"
        "    print('LOADED', *sys.modules)\n"
    )
    lines = [line for line in _run(code, *calls).splitlines() if line.startswith("LOADED")]
    return {call: set(line.split()[1:]) for call, line in zip(calls, lines, strict=True)}


@pytest.fixture(scope="module")
def loaded() -> dict[str, set[str]]:
    """``import reticent`` is in test_front_door.py."""
    return _after(*MAY)


@pytest.mark.parametrize("call", MAY)
def test_a_call_loads_no_more_than_it_needs(loaded: dict[str, set[str]], call: str) -> None:
    assert "reticent" in loaded[call]
    assert loaded[call] & HEAVY <= MAY[call]
    assert not loaded[call] & {f"scipy.{part}" for part in NEVER}


def test_a_run_is_certified_and_verified_and_scores_are_audited_by_the_wheel_alone(tmp_path: Path) -> None:
    """Torch is needed where something trains or weights are read, matplotlib where somebody asks for a picture."""
    with new_run(tmp_path / "run", None) as folder:
        (folder / LEDGER).write_text(make_ledger().to_json())
        (folder / WEIGHTS).write_bytes(b"nobody reads these")
    np.savez(tmp_path / "scores.npz", member=np.arange(40.0), non_member=np.arange(40.0))
    calls = (f"certify {tmp_path}/run --out {tmp_path}/shown", f"verify {tmp_path}/shown/certificate.json")
    scored = f"audit {tmp_path}/scores.npz --noise-multiplier 1"
    extras = {"torch", "opacus", "sklearn", "safetensors", "pyarrow", "PIL", "joblib", "matplotlib", "rich", "dash"}
    found = _after(*calls, scored)
    assert not found.pop(scored) & {"torch", "opacus"}
    for call, names in found.items():
        assert "reticent.certificates.page.page" in names, call
        assert names & {*extras, *(f"scipy.{part}" for part in NEVER)} <= {"scipy.fft"}, call


def test_risk_loads_what_its_libraries_load_and_nothing_else(loaded: dict[str, set[str]]) -> None:
    alone = "import sys, numpy, scipy.special, click, annotated_types; from pydantic import BaseModel"
    libraries, ours = (
        {name.partition(".")[0] for name in names}
        for names in (_run(f"{alone}; print(*sys.modules)").split(), loaded[list(MAY)[-1]])
    )
    assert ours - libraries - set(sys.stdlib_module_names) == {"reticent"}


@pytest.mark.parametrize(
    ("call", "frozen"),
    [("import sys; sys.argv = ['reticent', *words]; main()", True), ("main(words)", False)],
)
def test_a_call_freezes_what_it_loaded_where_the_process_is_its_own(call: str, frozen: bool) -> None:
    """Where somebody calls ``main`` with arguments the process is theirs, and stays so."""
    seen = "print('GC', gc.get_freeze_count() > 50_000, gc.isenabled())"
    words = "words = 'risk gaussian --noise-multiplier 2'.split()"
    out = _run(f"import atexit, gc; atexit.register(lambda: {seen}); from reticent.cli import main; {words}; {call}")
    assert out.partition("GC ")[2].split() == [str(frozen), "True"]


@pytest.mark.parametrize(
    ("words", "commands"),
    [((), len(VERBS)), (("risk",), len(MECHANISMS) + 1), (("compare",), 6)],  # and files; those with a noise, and a run
)
def test_bare_calls_list_one_command_per_line(words: tuple[str, ...], commands: int, capsys) -> None:
    _, out, _ = run(capsys, *words)
    lines = out.partition("Commands:\n")[2].splitlines()
    assert len(lines) == commands
    assert all(line.startswith("  ") and line[2] != " " and len(line) <= 80 for line in lines)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_that_is_listed_exists(verb: str, capsys) -> None:
    code, out, _ = run(capsys, verb, "--help")
    assert code == 0
    assert "Usage" in out
    assert "--json" in out or "Commands:" in out or verb in ("dashboard", "reproduce")


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["1e-29", "1e-12", "1e29"])
@pytest.mark.parametrize("kind", ["gaussian", "laplace", "dpsgd"])
def test_extreme_noise_ends_in_an_answer_or_in_one_line(kind: str, noise: str, capsys) -> None:
    more = ["--sample-rate", "0.01", "--steps", "10"] if kind == "dpsgd" else []
    code, out, err = run(capsys, "risk", kind, "--noise-multiplier", noise, "--adversary", "all", *more)
    assert "worst-case" in out if code == 0 else (code, err.count("\n")) == (2, 1)


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

"""``main``: what a start may cost, in a process of its own; bare calls, help, and who reads no further."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

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
RISK = "risk dpsgd --noise-multiplier 2 --sample-rate .1 --steps 9"
MAY = {"--help": set(), "risk --help": {"numpy", "scipy", "pydantic"}, RISK: {"numpy", "scipy", "pydantic"}}
"""Calls, and what each may load; mechanisms know pairs."""
CERTIFY, VERIFY = "certify run --out shown", "verify shown/certificate.json"
SCORED = "audit scores.npz --noise-multiplier 1"
OWN = "risk gaussian --noise-multiplier 2"
NEVER = ("stats", "integrate", "optimize", "interpolate", "signal", "fft", "linalg", "sparse")  # of scipy
CALLED = """
import atexit, gc, sys
from reticent.cli import main

*calls, own = sys.argv[1:]

def told(call):
    print("AFTER", call, gc.get_freeze_count() > 50_000, gc.isenabled(), *sys.modules, sep="|")

for words in calls:
    try:
        main(words.split())
    except SystemExit as ended:
        assert not ended.code
    told(words)
atexit.register(told, own)
sys.argv = ["reticent", *own.split()]
main()
"""
"""The first calls are made by somebody in whose process they are; the last has it for itself."""


class After(NamedTuple):
    """What a process is like after a call."""

    frozen: bool
    enabled: bool
    modules: set[str]


def _run(code: str, *words: str, cwd: Path | None = None) -> str:
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=cwd).stdout


@pytest.fixture(scope="module")
def after(tmp_path_factory: pytest.TempPathFactory) -> dict[str, After]:
    """One process after each of several calls, which load more and more; ``import reticent`` is in test_front_door."""
    here = tmp_path_factory.mktemp("here")
    with new_run(here / "run", None) as folder:
        (folder / LEDGER).write_text(make_ledger().to_json())
        (folder / WEIGHTS).write_bytes(b"nobody reads these")
    np.savez(here / "scores.npz", member=np.arange(40.0), non_member=np.arange(40.0))
    told = _run(CALLED, *MAY, CERTIFY, VERIFY, SCORED, OWN, cwd=here).splitlines()
    rows = [line.split("|")[1:] for line in told if line.startswith("AFTER|")]
    return {call: After(frozen == "True", enabled == "True", set(names)) for call, frozen, enabled, *names in rows}


@pytest.mark.parametrize("call", MAY)
def test_a_call_loads_no_more_than_it_needs(after: dict[str, After], call: str) -> None:
    loaded = after[call].modules
    assert "reticent" in loaded
    assert loaded & HEAVY <= MAY[call]
    assert not loaded & {f"scipy.{part}" for part in NEVER}


def test_a_run_is_certified_and_verified_and_scores_are_audited_by_the_wheel_alone(after: dict[str, After]) -> None:
    """Torch is needed where something trains or weights are read, matplotlib where somebody asks for a picture."""
    extras = {"torch", "opacus", "sklearn", "safetensors", "pyarrow", "PIL", "joblib", "matplotlib", "rich", "dash"}
    for call in (CERTIFY, VERIFY):
        names = after[call].modules
        assert "reticent.certificates.page.page" in names, call
        assert names & {*extras, *(f"scipy.{part}" for part in NEVER)} <= {"scipy.fft"}, call
    assert not after[SCORED].modules & {"torch", "opacus"}


def test_risk_loads_what_its_libraries_load_and_nothing_else(after: dict[str, After]) -> None:
    alone = "import sys, numpy, scipy.special, click, annotated_types; from pydantic import BaseModel"
    libraries, ours = (
        {name.partition(".")[0] for name in names}
        for names in (_run(f"{alone}; print(*sys.modules)").split(), after[RISK].modules)
    )
    assert ours - libraries - set(sys.stdlib_module_names) == {"reticent"}


def test_a_call_freezes_what_it_loaded_where_the_process_is_its_own(after: dict[str, After]) -> None:
    """Where somebody calls ``main`` with arguments the process is theirs, and stays so."""
    assert {call: (found.frozen, found.enabled) for call, found in after.items()} == {
        **dict.fromkeys((*MAY, CERTIFY, VERIFY, SCORED), (False, True)),
        OWN: (True, True),
    }


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

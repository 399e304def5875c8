"""Copied Python and copied commands run, and give the numbers of the page."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from reticent.dashboard.calibrating import search
from reticent.dashboard.readings import answer, points
from reticent.dashboard.requests import as_text, assess_of, calibrate_of
from reticent.dashboard.state import State
from reticent.dashboard.taking import curves_csv
from reticent.kernel.mechanisms import DPSGD, Gaussian, Ledger
from reticent.samplers import Shuffled
from reticent.verbs.taken import as_command, as_program
from tests.cli.calling import run
from tests.dashboard.conftest import asked

SCHEDULE = Ledger((DPSGD(3.0, 0.05, 20), Gaussian(8.0), DPSGD(4.0, 0.1, 5, sampler=Shuffled())))
SETTINGS = {
    "Gaussian": {"mechanism": "gaussian", "noise_multiplier": "2", "releases": "3", "attackers": "relaxed,mixed"},
    "Laplace": {
        "mechanism": "laplace",
        "noise_multiplier": "1.5",
        "attackers": "membership",
        "neighbouring": "replace",
    },
    "correlated": {"mechanism": "matrix", "noise_multiplier": "2", "steps": "8", "strategy": "1,0.5", "attackers": ""},
    "answer": {"mechanism": "randomised-response", "flip_probability": "0.2", "releases": "3", "attackers": ""},
    "rates": {"noise_multiplier": "2", "sample_rate": "0.05", "steps": "20", "attackers": "membership"},
    "records": {
        "by": "data",
        "noise_multiplier": "3",
        "dataset_size": "1000",
        "batch_size": "50",
        "epochs": "0.05",
        "dimension": "100",
        "attackers": "membership-game,attribute",
        "gradient_change": "0.3",
    },
    "tuned": {"noise_multiplier": "4", "sample_rate": "0.1", "steps": "5", "selection": "geometric", "mean_runs": "5"},
    "two draws, and a Poisson number of runs": {
        "noise_multiplier": "4",
        "sample_rate": "0.1",
        "steps": "5",
        "draws_per_step": "2",
        "selection": "poisson",
        "mean_runs": "3",
    },
    "shuffled": {"sampler": "shuffled", "noise_multiplier": "4", "sample_rate": "0.1", "steps": "20"},
    "file": {"mechanism": "ledger", "ledger": as_text(SCHEDULE), "attackers": "mixed", "dimension": "77"},
    "asked": {
        "mechanism": "gaussian",
        "noise_multiplier": "2",
        "method": "exact",
        "fpr": "0,02; 5%",
        "delta": "1e-6",
        "epsilon": "0.5; 2",
        "prior": "1/3",
        "secret_bits": "13.3",
        "guesses": "10",
    },
}
CALIBRATIONS = {
    "noise": {"attackers": "membership", "sample_rate": "0.05", "steps": "20"},
    "steps": {"attackers": "", "unknown": "steps", "noise_multiplier": "3", "target": "epsilon", "goal": "1"},
    "rate": {"attackers": "", "unknown": "sample-rate", "noise_multiplier": "2", "steps": "50"},
    "batch": {
        "by": "data",
        "attackers": "",
        "unknown": "batch-size",
        "dataset_size": "100",
        "batch_size": "10",
        "epochs": "0.5",
    },
    "runs": {
        "mechanism": "gaussian",
        "attackers": "",
        "unknown": "mean-runs",
        "noise_multiplier": "4",
        "selection": "poisson",
        "goal": "0.15",
    },
    "tuned": {"mechanism": "laplace", "attackers": "", "selection": "fixed", "mean_runs": "3"},
    "releases": {"mechanism": "gaussian", "attackers": "mixed", "unknown": "steps", "noise_multiplier": "9"},
}
LATE = {"batch", "noise"}


def found_by(program: str) -> list[Any]:
    """What each call of a copied program answers; it prints as much."""
    names: dict[str, Any] = {}
    found, shown = [], io.StringIO()
    with contextlib.redirect_stdout(shown):
        for part in program.split("\nfound = ")[1:]:
            exec(compile("import reticent as rt\nfound = " + part, "copied", "exec"), names)  # noqa: S102
            found.append(names["found"])
    assert shown.getvalue() == "".join(f"{one}\n" for one in found)
    return found


def told(command: str, capsys: pytest.CaptureFixture[str]) -> Any:
    """What copied lines for a shell print as JSON."""
    *written, line = command.splitlines()
    for before in written:
        _, _, content, _, name = shlex.split(before)
        Path(name).write_text(content)
    code, out, err = run(capsys, *shlex.split(line)[1:], "--json")
    assert code == 0, err
    return json.loads(out)


def by_attacker(document: Any) -> Any:
    """The page has the worst case of a relation right after the first who needs it, the others at the end."""
    return {(one["adversary"], one["neighbouring"]): one for one in document["assessments"]}


@pytest.mark.parametrize("name", SETTINGS)
def test_what_is_copied_gives_the_numbers_of_the_page(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    parts = asked("proof", **SETTINGS[name])["parts"]
    page = by_attacker(json.loads(answer(assess_of(State.of(SETTINGS[name]))).to_json()))
    (ran,) = found_by(parts["python"])
    assert by_attacker(json.loads(ran.to_json())) == page
    assert by_attacker(told(parts["command"], capsys)) == page


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n in LATE else ()) for n in CALIBRATIONS])
def test_copied_calibrations_give_the_numbers_of_the_page(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = search(calibrate_of(State.of(CALIBRATIONS[name]))).found
    assert found
    ran = found_by(as_program(*found))
    assert [one.rows() for one in ran] == [one.rows() for one in found.values()]
    for request, one in found.items():
        assert told(as_command(request), capsys)["value"] == pytest.approx(one.value, rel=1e-9, abs=0)


def test_a_command_that_options_say_needs_no_file() -> None:
    command = as_command(assess_of(State.of(SETTINGS["asked"])))
    assert command.startswith(
        "reticent risk gaussian --noise-multiplier 2.0 --adversary worst-case --adversary relaxed"
    )
    assert "--fpr 0.02 --fpr 0.05 --delta 1e-06 --epsilon 0.5 --epsilon 2.0 --prior 0.3333" in command


@pytest.mark.parametrize("view", ["curves", "roc", "profile", "guesses"])
def test_the_table_of_points_is_what_is_drawn(view: str) -> None:
    found = answer(assess_of(State.of(SETTINGS["rates"])))
    rows = list(csv.reader(io.StringIO(curves_csv(found, view))))
    assert len(rows[0]) == 7
    read = points(found[0], view)
    mine = [row for row in rows[1:] if row[0] == "worst-case"]
    assert [float(row[4]) for row in mine] == read.claimed.tolist()
    assert all(float(row[5]) <= float(row[6]) for row in mine)
    assert len(rows) == 1 + len(read.x) * len(found)

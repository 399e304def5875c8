"""Copied Python and copied commands run, and give the numbers of the page."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import shlex
from typing import Any

import pytest

from reticent.dashboard.readings import Answer, answer, points, record
from reticent.dashboard.searching import search, worst_there
from reticent.dashboard.state import State, adversaries_of, mechanism_of, relation_of, target_of, unknown_of
from reticent.dashboard.takeaway import (
    calibration_command,
    calibration_python,
    curves_csv,
    risk_command,
    risk_python,
)
from tests.cli.calling import run

SETTINGS = {
    "Gaussian": {"mechanism": "gaussian", "noise_multiplier": "2", "releases": "3", "attackers": "relaxed,mixed"},
    "Laplace": {"mechanism": "laplace", "noise_multiplier": "1.5", "attackers": "membership", "relation": "replace"},
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
    "shuffled": {"sampler": "shuffled", "noise_multiplier": "4", "sample_rate": "0.1", "steps": "20"},
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


def answered(state: State) -> Answer:
    return answer(adversaries_of(state), mechanism_of(state), relation_of(state))


def printed(run: str) -> list[list[str]]:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(compile(run, "copied", "exec"), {})  # noqa: S102
    return [line.split() for line in shown.getvalue().splitlines()]


def told(command: str, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    code, out, _ = run(capsys, *shlex.split(command)[1:], "--json")
    assert code == 0
    found: dict[str, object] = json.loads(out)
    return found


@pytest.mark.parametrize("name", SETTINGS)
def test_copied_python_gives_the_numbers_of_the_page(name: str) -> None:
    state = State.of(SETTINGS[name])
    found = answered(state)
    wanted = {
        (a.adversary.name, a.neighbouring.value): (record(a).advantage.value, record(a).bayes_security.value)
        for a in found.assessments
    }
    rows = printed(risk_python(state, found))
    assert {(row[0], row[1]): (float(row[3]), float(row[4])) for row in rows} == wanted


@pytest.mark.parametrize("name", SETTINGS)
def test_copied_commands_give_the_numbers_of_the_page(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    state = State.of(SETTINGS[name])
    found = answered(state)
    document = without_english(told(risk_command(state, found), capsys))
    shown = {(r["adversary"], r["neighbouring"]): r for r in document["assessments"]}  # type: ignore[index,attr-defined]
    assert set(shown) == {(a.adversary.name, a.neighbouring.value) for a in found.assessments}
    for a in found.assessments:
        same = json.loads(record(a).model_dump_json())
        assert shown[a.adversary.name, a.neighbouring.value] == same


def without_english(document: Any) -> Any:
    """As documents keep messages: ``--json`` adds what they say in English."""
    if isinstance(document, dict):
        return {k: without_english(v) for k, v in document.items() if not (k == "en" and "key" in document)}
    return [without_english(one) for one in document] if isinstance(document, list) else document


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if n in {"batch", "noise"} else ()) for n in CALIBRATIONS]
)
def test_copied_calibrations_give_the_numbers_of_the_page(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    state = State.of(CALIBRATIONS[name])
    found = search(
        mechanism_of(state), unknown_of(state), target_of(state), adversaries_of(state), relation_of(state)
    ).found
    assert found
    rows = printed(calibration_python(state, found))
    assert [(row[0], float(row[1]), float(row[3])) for row in rows] == [
        (c.adversary.name, c.value, worst_there(c)) for c in found
    ]
    for command, c in zip(calibration_command(state, found).splitlines(), found, strict=True):
        assert told(command, capsys)["value"] == pytest.approx(c.value, rel=1e-9, abs=0)


@pytest.mark.parametrize("view", ["curves", "roc", "profile", "guesses"])
def test_the_table_of_points_is_what_is_drawn(view: str) -> None:
    found = answered(State.of(SETTINGS["rates"]))
    rows = list(csv.reader(io.StringIO(curves_csv(found, view))))
    assert len(rows[0]) == 7
    read = points(found.assessments[0], view)
    mine = [row for row in rows[1:] if row[0] == "worst-case"]
    assert [float(row[4]) for row in mine] == read.claimed.tolist()
    assert all(float(row[5]) <= float(row[6]) for row in mine)
    assert len(rows) == 1 + len(read.x) * len(found.assessments)

"""What is taken away: copied Python and commands with the numbers of the page, points, certificates, a page to send."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from reticent.adversaries import Relaxed
from reticent.certificates.page.page import embedded, first_difference
from reticent.certificates.verify import verify
from reticent.dashboard.calibrating import search
from reticent.dashboard.readings import answer, assessed, points
from reticent.dashboard.requests import as_text, assess_of, calibrate_of
from reticent.dashboard.state import State
from reticent.dashboard.taking import curves_csv
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.risk import advantage
from reticent.verbs.taken import as_command, as_program
from tests.cli.calling import run
from tests.dashboard.conftest import asked
from tests.dashboard.test_requests import SCHEDULE

pytestmark = pytest.mark.usefixtures("quick_documents")
SHORT = {"noise_multiplier": "4", "sample_rate": "0.1", "steps": "5"}
SETTINGS = {
    "Gaussian": "mechanism=gaussian&noise_multiplier=2&releases=3&attackers=relaxed,mixed",
    "Laplace": "mechanism=laplace&noise_multiplier=1.5&attackers=membership&neighbouring=replace",
    "correlated": "mechanism=matrix&noise_multiplier=2&steps=8&strategy=1,0.5&attackers=",
    "records": "by=data&noise_multiplier=3&dataset_size=1000&batch_size=50&epochs=0.05&dimension=100&sampler=shuffled"
    "&attackers=membership-game,attribute&gradient_change=0.3",
    "two draws, and a Poisson number of runs": "noise_multiplier=4&sample_rate=0.1&steps=5&draws_per_step=2"
    "&selection=poisson&mean_runs=3",
    "file": f"mechanism=ledger&attackers=mixed&dimension=77&ledger={as_text(SCHEDULE)}",
    "asked": "mechanism=gaussian&noise_multiplier=2&method=exact&fpr=0,02; 5%25&delta=1e-6&epsilon=0.5; 2&prior=1/3"
    "&secret_bits=13.3&guesses=10",
}
CALIBRATIONS = {
    "noise": "sample_rate=0.05&steps=20&attackers=membership",
    "steps": "unknown=steps&noise_multiplier=3&target=epsilon&goal=1&attackers=",
    "batch": "by=data&unknown=batch-size&dataset_size=100&batch_size=10&epochs=0.5&attackers=",
    "runs": "mechanism=gaussian&unknown=mean-runs&noise_multiplier=4&selection=poisson&goal=0.15&attackers=",
    "releases": "mechanism=gaussian&attackers=mixed&unknown=steps&noise_multiplier=9",
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
    state = State.of_address(SETTINGS[name])
    parts = asked("proof", **state.values)["parts"]
    page = by_attacker(json.loads(answer(assess_of(state)).to_json()))
    (ran,) = found_by(parts["python"])
    assert by_attacker(json.loads(ran.to_json())) == page
    assert by_attacker(told(parts["command"], capsys)) == page


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n in LATE else ()) for n in CALIBRATIONS])
def test_copied_calibrations_give_the_numbers_of_the_page(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = search(calibrate_of(State.of_address(CALIBRATIONS[name]))).found
    assert found
    ran = found_by(as_program(*found))
    assert [one.rows() for one in ran] == [one.rows() for one in found.values()]
    for request, one in found.items():
        assert told(as_command(request), capsys)["value"] == pytest.approx(one.value, rel=1e-9, abs=0)


def test_a_command_that_options_say_needs_no_file() -> None:
    command = as_command(assess_of(State.of_address(SETTINGS["asked"])))
    assert command.startswith(
        "reticent risk gaussian --noise-multiplier 2.0 --adversary worst-case --adversary relaxed"
    )
    assert "--fpr 0.02 --fpr 0.05 --delta 1e-06 --epsilon 0.5 --epsilon 2.0 --prior 0.3333" in command


@pytest.mark.parametrize("view", ["curves", "roc", "profile", "guesses"])
def test_the_table_of_points_is_what_is_drawn(view: str) -> None:
    found = answer(assess_of(State.of({**SHORT, "attackers": "membership"})))
    rows = list(csv.reader(io.StringIO(curves_csv(found, view))))
    assert len(rows[0]) == 7
    read = points(found[0], view)
    mine = [row for row in rows[1:] if row[0] == "worst-case"]
    assert [float(row[4]) for row in mine] == read.claimed.tolist()
    assert all(float(row[5]) <= float(row[6]) for row in mine)
    assert len(rows) == 1 + len(read.x) * len(found)


def test_a_certificate_is_taken_away_and_verifies() -> None:
    found = asked("certificate", mechanism="gaussian", noise_multiplier="2", attackers="relaxed,membership")
    name, page = found["file"]
    assert name == "reticent-certificate.html"
    assert found["parts"]["told"] == f"{name} written"
    document = embedded(page, "x")
    assert first_difference(page, document) is None
    assert verify(document).accepted
    assert [a.adversary for a in document.assessments] == ["worst-case", "relaxed", "membership"]
    assert "no run" in document.declared.subject
    none = asked("certificate", noise_multiplier="x")
    assert none["file"] is None
    assert none["parts"]["told"].startswith("Noise multiplier must be")


def test_a_page_to_send_is_whole_and_asks_for_nothing() -> None:
    given = asked("sheet", attackers="relaxed", policy="")
    name, text = given["file"]
    assert name == "reticent-plan.html"
    assert given["parts"]["told"] == f"{name} written"
    assert not re.search(r"<(script|link|img|iframe)|url\(|@import|https?://", text)
    assert set(re.findall(r'(?:src|href)="(.{5})', text)) == {"#why-"}
    value = assessed(Relaxed(), DPSGD(1.1, 0.01, 1000), Relaxed().relation).measure(advantage).value
    assert f"{value:.3f}"[:4] in text
    assert "nobody saw a run" in text
    assert "RETICENT:common-sign" in text

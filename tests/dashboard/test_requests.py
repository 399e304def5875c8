"""The settings, as what is asked of the library: mechanisms, files, attackers, targets, and the field that is wrong."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, parse_qsl

import pytest

from reticent.adversaries import Mixed, Relaxed
from reticent.calibration import Advantage, EpsilonAtDelta
from reticent.certificates.build import certify
from reticent.certificates.document.schema import Declaration
from reticent.certificates.page.page import render_html
from reticent.dashboard.catalogue import ATTACKERS, CHOICES, ONE_RUN, PARAMETERS, RELEASED
from reticent.dashboard.layout import made_styles, page
from reticent.dashboard.requests import as_text, assess_of, calibrate_of, release_of
from reticent.dashboard.state import State
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.errors import ArtifactError, ParameterError
from reticent.kernel.mechanisms import DPSGD, Gaussian, Ledger, Mechanism
from reticent.kernel.pairs import Neighbouring
from reticent.mechanisms import Laplace, MatrixMechanism, RandomisedResponse, Selection
from reticent.mechanisms.gradients import Gradients
from reticent.pairs import NegativeBinomial
from reticent.pairs.runs import RUNS
from reticent.samplers import FixedSize, Shuffled
from reticent.verbs.taken import as_command
from tests.certificates.conftest import make_ledger
from tests.dashboard.conftest import asked, uploaded

PART = '{"kind":"gaussian","noise_multiplier":2.0}'
MANY = '{"kind":"dpsgd","noise_multiplier":1,"sample_rate":0.1,"steps":100000000000}'
SCHEDULE = Ledger((DPSGD(3.0, 0.05, 20), Gaussian(8.0), DPSGD(4.0, 0.1, 5, sampler=Shuffled())))


@pytest.mark.parametrize(
    ("settings", "release"),
    [
        ({}, DPSGD(1.1, 0.01, 1000)),
        ({"mechanism": "gaussian", "releases": "3", "dimension": "7"}, Gaussian(1.1, 3, 7)),
        ({"mechanism": "laplace", "noise_multiplier": "2"}, Laplace(2.0)),
        (
            {"mechanism": "matrix", "strategy": "square-root", "bands": "4", "steps": "64"},
            MatrixMechanism(1.1, 64, strategy="square-root", bands=4),
        ),
        (
            {"by": "data", "sampler": "fixed-size", "dataset_size": "1000", "batch_size": "50"},
            DPSGD(1.1, 0.05, 200, batch_size=50, dataset_size=1000, sampler=FixedSize()),
        ),
    ],
    ids=lambda one: "" if isinstance(one, dict) else one.name,
)
def test_every_mechanism_of_the_page_is_one_of_the_library(settings: dict[str, str], release: Mechanism) -> None:
    assert assess_of(State.of(settings)).mechanism == release


def test_every_law_of_the_number_of_runs_goes_with_every_mechanism() -> None:
    for mechanism in RELEASED:
        for law in RUNS:
            one = {"mechanism": mechanism, "ledger": PART if mechanism == "ledger" else ""}
            found = assess_of(State.of({**one, "selection": law, "mean_runs": "7", "shape": "0.5"})).mechanism
            assert isinstance(found, Selection)
            assert found.base == assess_of(State.of({**one, "selection": ONE_RUN})).mechanism
            assert (found.runs.name, found.runs.mean) == (law, 7.0)
    shaped = assess_of(State.of({"selection": "negative-binomial", "shape": "0.5"})).mechanism
    assert shaped.runs == NegativeBinomial(10, 0.5)


@pytest.mark.parametrize("release", [SCHEDULE, RandomisedResponse(0.3), Laplace(2.0, 3), DPSGD(1.0, 0.1, 9)], ids=str)
def test_the_settings_hold_any_mechanism(release: Mechanism) -> None:
    assert release_of(as_text(release)) == release
    state = State.of({"mechanism": "ledger", "ledger": as_text(release)})
    assert assess_of(State.of_address(state.address())).mechanism == release
    pinned = State.of({"pinned": state.address()}).pinned()
    assert pinned is not None
    assert assess_of(pinned).mechanism == release


def test_every_file_that_says_what_was_released_can_be_explored() -> None:
    ledger, certificate = make_ledger(), certify(Gaussian(2.0), Declaration(subject="a", created="2026-11-22"))
    files: dict[str, Mechanism] = {
        ledger.to_json(): ledger.mechanism(),
        certificate.to_json(): Gaussian(2.0),
        render_html(certificate): Gaussian(2.0),
        json.dumps({"kind": "ledger", "parts": [json.loads(PART)]}): Ledger((Gaussian(2.0),)),
        json.dumps({"class_name": "GaussianDpEvent", "noise_multiplier": 2.0}): Gaussian(2.0),
    }
    for content, release in files.items():
        found = asked("ledger", files=[uploaded(content)])
        assert found["parts"] == {"ledger-said": ""}
        assert set(parse_qs(found["address"])) == {"mechanism", "ledger"}
        assert assess_of(State.of_address(found["address"])).mechanism == release


def test_the_worst_case_is_always_asked() -> None:
    for text in ("", "relaxed", "relaxed,mixed", "nobody"):
        assert isinstance(assess_of(State.of({"attackers": text})).adversary.each[0], WorstCase)
    chosen = assess_of(State.of({"attackers": "mixed", "relaxed_probability": "0.25"})).adversary.each
    assert chosen == (WorstCase(), Mixed(0.25))


def test_every_attacker_and_parameter_can_be_set() -> None:
    everybody = assess_of(State.of({"attackers": ",".join(ATTACKERS)})).adversary.each
    assert [who.name for who in everybody] == list(ATTACKERS)
    assert {p.name for a in ATTACKERS.values() for p in a.fields} <= {*PARAMETERS, *CHOICES}
    assert {name for each in RELEASED.values() for name in each.parameters} <= set(PARAMETERS)


@pytest.mark.parametrize("mechanism", ["dpsgd", "ledger"])
def test_an_attacker_is_asked_all_that_the_command_line_asks(mechanism: str) -> None:
    said = {"gradients": "hard-label-head", "known_share": "0.1", "dimension": "30", "attackers": "relaxed,mixed"}
    state = State.of({**said, "mechanism": mechanism, "ledger": as_text(DPSGD(1.0, 0.01, 9))})
    one: dict[str, Any] = {"dimension": 30, "gradients": Gradients.HARD_LABEL_HEAD, "known_share": 0.1}
    asked = assess_of(State.of_address(state.address()))
    assert asked.adversary.each == (WorstCase(), Relaxed(**one), Mixed(**one))
    assert "--gradients hard-label-head" in as_command(asked)
    assert assess_of(State.of({**said, "gradients": "own", "known_share": ""})).adversary.each[1] == Relaxed(30)
    shown = repr(page(local=True))
    for name in ("for-gradients", "for-known_share", "for-smoothness"):
        assert f"id='{name}'" in shown
        assert f"#{name}{{display:block}}" in made_styles()


def test_a_share_without_a_kind_is_named() -> None:
    with pytest.raises(ParameterError, match="known_share"):
        assess_of(State.of({"known_share": "0.1"}))


def test_targets_unknowns_and_relations_become_types() -> None:
    for settings, target in {
        "goal=0.2": Advantage(0.2),
        "target=epsilon&goal=2&place=1e-6": EpsilonAtDelta(2.0, 1e-6),
        "target=epsilon&goal=2&place=": EpsilonAtDelta(2.0, 1e-5),
    }.items():
        assert calibrate_of(State.of_address(settings))[0].target == target
    assert calibrate_of(State.of({"unknown": "steps"}))[0].searched[1].name == "steps"
    assert assess_of(State.of({})).neighbouring is None
    assert assess_of(State.of({"neighbouring": "replace"})).neighbouring is Neighbouring.REPLACE


@pytest.mark.parametrize("text", ["", "abc", "nan", "inf", "-1", "1e-300", "1e400", "1;2", "０x1", "1e31"])
@pytest.mark.parametrize("name", ["noise_multiplier", "sample_rate", "steps"])
def test_a_bad_field_is_named(name: str, text: str) -> None:
    with pytest.raises(ParameterError) as wrong:
        assess_of(State.of({name: text}))
    assert wrong.value.name == name
    assert len(str(wrong.value)) < 200


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"selection": "geometric", "mean_runs": "many"}, ParameterError, "mean_runs"),
        ({"mechanism": "ledger"}, ParameterError, "choose a ledger"),
        ({"mechanism": "ledger", "ledger": MANY}, ParameterError, "steps"),
        ({"mechanism": "matrix", "strategy": "tree", "steps": "10000000"}, ArtifactError, "more than"),
    ],
)
def test_what_is_beyond_all_use_is_refused(settings: dict[str, str], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        assess_of(State.of(settings))


@pytest.mark.parametrize(
    ("panel", "said", "field", "line"),
    [
        ("explore", "noise_multiplier=1e-300", "noise_multiplier", "Noise multiplier must be"),
        ("calibrate", "noise_multiplier=nan", "noise_multiplier", "Noise multiplier must be"),
        ("compare", "noise_multiplier=", "noise_multiplier", "Noise multiplier must be"),
        ("explore", "records_per_user=1,5", "records_per_user", "Records per person must be"),
        ("explore", "fpr=2", "fpr", ""),
        ("explore", "epsilon=-1", "epsilon", ""),
        ("explore", "guesses=3", "guesses", ""),
        ("explore", "prior=0.5;x", "prior", ""),
        ("calibrate", "goal=abc", "goal", "The target must be"),
        ("calibrate", "target=success&goal=0.2&place=0.5", "goal", "The target must be a number above 0.5"),
        ("calibrate", "target=epsilon&goal=-1", "goal", "The target must be"),
        ("calibrate", "target=epsilon&goal=1&place=7", "place", ""),
        ("calibrate", "target=ppv&goal=0.4&place=0.1", "place", ""),
        ("calibrate", "mechanism=laplace&unknown=sample-rate", "unknown", ""),
    ],
)
def test_what_is_wrong_is_said_in_one_line_and_marked_where_it_is(panel: str, said: str, field: str, line: str) -> None:
    found = asked(panel, panel=panel, **dict(parse_qsl(said, keep_blank_values=True)))
    message = found["parts"]["message"]
    assert found["field"] == field
    assert message.startswith(line)
    assert message
    assert "\n" not in message
    assert not any(value for name, value in found["parts"].items() if name.endswith(("cards", "table", "python")))

"""The state survives the address, and becomes the types of the library."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.adversaries import Mixed
from reticent.calibration import Advantage, EpsilonAtDelta
from reticent.dashboard.catalogue import ATTACKERS, ONE_RUN, PARAMETERS, RELEASED, TARGETS, UNKNOWNS
from reticent.dashboard.layout import CONTROLS, made_styles, page
from reticent.dashboard.requests import assess_of, calibrate_of
from reticent.dashboard.state import DEFAULTS, SETTINGS, State
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.errors import ParameterError
from reticent.kernel.mechanisms import DPSGD, Gaussian
from reticent.kernel.pairs import Neighbouring
from reticent.mechanisms import Laplace, Selection
from reticent.pairs import NegativeBinomial
from reticent.pairs.runs import RUNS
from reticent.samplers import FixedSize
from tests.dashboard.conftest import asked

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=40).map(str.strip)
STATES = st.fixed_dictionaries(
    {},
    optional={
        "panel": st.sampled_from(["explore", "calibrate", "compare", "open"]),
        "mechanism": st.sampled_from(list(RELEASED)),
        "noise_multiplier": TEXTS,
        "sample_rate": st.floats(1e-9, 1.0).map(repr),
        "attackers": st.lists(st.sampled_from(list(ATTACKERS))).map(",".join),
        "target": st.sampled_from(list(TARGETS)),
        "unknown": st.sampled_from(list(UNKNOWNS)),
        "goal": TEXTS,
        "pinned": TEXTS,
    },
)


@settings(derandomize=True, max_examples=12, deadline=None)
@given(STATES)
def test_the_address_holds_the_whole_state(values: dict[str, str]) -> None:
    state = State.of(values)
    assert State.of_address("?" + state.address()).values == state.values
    assert set(state.values) == set(DEFAULTS)


def test_the_default_needs_no_address_and_every_change_is_in_it() -> None:
    assert State.of({}).address() == ""
    for name in DEFAULTS:
        changed = State({**DEFAULTS, name: "17"})
        assert f"{name}=17" in changed.address()


def test_a_choice_that_does_not_exist_is_the_default() -> None:
    assert State.of({"mechanism": "rot13", "view": "", "unheard": "x"}).values == DEFAULTS


def test_every_mechanism_of_the_page_is_one_of_the_library() -> None:
    assert assess_of(State.of({})).mechanism == DPSGD(1.1, 0.01, 1000)
    assert assess_of(State.of({"mechanism": "gaussian", "releases": "3", "dimension": "7"})).mechanism == Gaussian(
        1.1, 3, 7
    )
    assert assess_of(State.of({"mechanism": "laplace", "noise_multiplier": "2"})).mechanism == Laplace(2.0)
    run = assess_of(
        State.of({"by": "data", "sampler": "fixed-size", "dataset_size": "1000", "batch_size": "50"})
    ).mechanism
    assert run == DPSGD(1.1, 0.05, 200, batch_size=50, dataset_size=1000, sampler=FixedSize())


def test_every_law_of_the_number_of_runs_goes_with_every_mechanism() -> None:
    for mechanism in RELEASED:
        for law in RUNS:
            fields = {"mechanism": mechanism, "selection": law, "mean_runs": "7", "shape": "0.5"}
            one = {"ledger": '{"kind":"gaussian","noise_multiplier":2.0}'} if mechanism == "ledger" else {}
            found = assess_of(State.of({**fields, **one})).mechanism
            assert isinstance(found, Selection)
            assert found.base == assess_of(State.of({**fields, **one, "selection": ONE_RUN})).mechanism
            assert (found.runs.name, found.runs.mean) == (law, 7.0)
    assert assess_of(State.of({"selection": "negative-binomial", "shape": "0.5"})).mechanism.runs == NegativeBinomial(
        10, 0.5
    )
    with pytest.raises(ParameterError, match="mean_runs"):
        assess_of(State.of({"selection": "geometric", "mean_runs": "many"}))


def test_the_fields_of_a_law_are_seen_where_it_is_chosen() -> None:
    rules = made_styles()
    for law in RUNS:
        assert f"body[data-selection={law}] .f-mean_runs{{display:grid}}" in rules
    assert "[data-selection=negative-binomial] .f-shape{display:grid}" in rules
    assert "[data-selection=geometric] .f-shape" not in rules
    assert all(SETTINGS[name].compared for name in ("selection", "mean_runs", "shape"))
    assert "selection" in CONTROLS


def test_the_server_says_where_sliders_lie() -> None:
    """The page's script read numbers by itself, too."""
    numbers = asked("explore", noise_multiplier="1,5", sample_rate="10%", steps="x")["numbers"]
    assert (numbers["noise_multiplier"], numbers["sample_rate"]) == (1.5, 0.1)
    assert "steps" not in numbers


def test_the_worst_case_is_always_asked() -> None:
    for text in ("", "relaxed", "relaxed,mixed", "nobody"):
        assert isinstance(assess_of(State.of({"attackers": text})).adversary.each[0], WorstCase)
    chosen = assess_of(State.of({"attackers": "mixed", "relaxed_probability": "0.25"})).adversary.each
    assert chosen == (WorstCase(), Mixed(0.25))


def test_every_attacker_and_parameter_can_be_set() -> None:
    everybody = assess_of(State.of({"attackers": ",".join(ATTACKERS)})).adversary.each
    assert [who.name for who in everybody] == list(ATTACKERS)
    assert {a.parameter for a in ATTACKERS.values() if a.parameter} <= set(PARAMETERS)
    assert {name for each in RELEASED.values() for name in each.parameters} <= set(PARAMETERS)


def test_targets_unknowns_and_relations_become_types() -> None:
    assert calibrate_of(State.of({"goal": "0.2"}))[0].target == Advantage(0.2)
    epsilon = State.of({"target": "epsilon", "goal": "2", "place": "1e-6"})
    assert calibrate_of(epsilon)[0].target == EpsilonAtDelta(2.0, 1e-6)
    assert calibrate_of(State({**epsilon.values, "place": ""}))[0].target == EpsilonAtDelta(2.0, 1e-5)
    assert calibrate_of(State.of({"unknown": "steps"}))[0].searched[1].name == "steps"
    assert assess_of(State.of({})).neighbouring is None
    assert assess_of(State.of({"neighbouring": "replace"})).neighbouring is Neighbouring.REPLACE


@pytest.mark.parametrize("text", ["", "abc", "nan", "inf", "-1", "1e-300", "1e400", "1;2", "０x1", "1" * 39])
@pytest.mark.parametrize("name", ["noise_multiplier", "sample_rate", "steps"])
def test_a_bad_field_is_named(name: str, text: str) -> None:
    if (name, text) in {("noise_multiplier", "1" * 39)}:
        text = "1e31"
    with pytest.raises(ParameterError) as wrong:
        assess_of(State.of({name: text}))
    assert wrong.value.name == name
    assert len(str(wrong.value)) < 200


@pytest.mark.parametrize("given", [None, [], "text", {"noise_multiplier": {}}, {"steps": "9" * 41}, {"goal": True}])
def test_what_no_browser_sends_is_refused(given: object) -> None:
    with pytest.raises(ParameterError):
        State.of(given)


def test_what_few_people_set_is_folded_and_mechanisms_are_called_in_words() -> None:
    labels = {name: each.label for name, each in RELEASED.items()}
    assert labels["matrix"] == "Correlated noise"
    assert labels["guarantee"] == "A stated epsilon"
    assert labels["filtered-gaussian"] == "Gaussian, within a budget"
    folded = {name for name, p in PARAMETERS.items() if p.folded}
    typed = {"fpr", "delta", "epsilon", "prior", "secret_bits", "guesses", "baseline"}
    assert folded == {"draws_per_step", "dimension", *typed}
    (more,) = (piece for piece in everything(page(local=True)) if getattr(piece, "id", None) == "more")
    inside = {getattr(piece, "id", None) for piece in everything(more)}
    assert {"field-draws_per_step", "field-dimension", "selection", "neighbouring", "method"} <= inside
    assert {f"field-{name}" for name in typed} <= inside
    assert "field-noise_multiplier" not in inside


def everything(piece: object) -> Iterator[object]:
    """A piece of the page, and all that is in it."""
    yield piece
    inner = getattr(piece, "children", None)
    for one in inner if isinstance(inner, list) else [inner] if inner is not None else []:
        yield from everything(one)


def test_what_is_asked_besides_is_on_the_cards_and_in_the_table() -> None:
    settings = {"mechanism": "gaussian", "noise_multiplier": "2", "attackers": "relaxed"}
    more = {"fpr": "0.05", "secret_bits": "13.3", "guesses": "10"}
    plain, found = (str(asked("proof", **settings, **said)["parts"]["cards"]) for said in ({}, more))
    for title in ("tpr at fpr 0.05: ", "secret at secret bits 13.3, guesses 10: ", "ppv at prior 0.1, fpr 0.05: "):
        assert title in found
        assert title not in plain
    assert "tpr at fpr 0.001: " not in found
    table = str(asked("proof", **settings, **more, view="table")["parts"]["table"])
    assert "secret at secret bits 13.3, guesses 10" in table
    assert "tpr at fpr 0.001" not in table


@pytest.mark.parametrize(
    ("panel", "said", "field"),
    [
        ("explore", {"fpr": "2"}, "fpr"),
        ("explore", {"epsilon": "-1"}, "epsilon"),
        ("explore", {"guesses": "3"}, "guesses"),
        ("explore", {"prior": "0.5; x"}, "prior"),
        ("calibrate", {"target": "epsilon", "goal": "-1"}, "goal"),
        ("calibrate", {"target": "epsilon", "goal": "1", "place": "7"}, "place"),
        ("calibrate", {"target": "ppv", "goal": "0.4", "place": "0.1"}, "place"),
        ("calibrate", {"mechanism": "laplace", "unknown": "sample-rate"}, "unknown"),
    ],
)
def test_what_is_wrong_is_marked_where_it_is_said(panel: str, said: dict[str, str], field: str) -> None:
    found = asked(panel, panel=panel, **said)
    assert found["field"] == field
    assert found["parts"]["message"]

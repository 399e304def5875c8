"""The state survives the address, and becomes the types of the library."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.adversaries import Mixed, WorstCase
from reticent.calibration import Advantage, EpsilonAtDelta
from reticent.dashboard.catalogue import ATTACKERS, ONE_RUN, PARAMETERS, RELEASED, TARGETS, UNKNOWNS
from reticent.dashboard.layout import CONTROLS, made_styles, page
from reticent.dashboard.state import (
    DEFAULTS,
    SETTINGS,
    State,
    adversaries_of,
    mechanism_of,
    relation_of,
    target_of,
    unknown_of,
)
from reticent.errors import ParameterError
from reticent.mechanisms import DPSGD, Gaussian, Laplace, Neighbouring, Selection
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
    assert mechanism_of(State.of({})) == DPSGD(1.1, 0.01, 1000)
    assert mechanism_of(State.of({"mechanism": "gaussian", "releases": "3", "dimension": "7"})) == Gaussian(1.1, 3, 7)
    assert mechanism_of(State.of({"mechanism": "laplace", "noise_multiplier": "2"})) == Laplace(2.0)
    run = mechanism_of(State.of({"by": "data", "sampler": "fixed-size", "dataset_size": "1000", "batch_size": "50"}))
    assert run == DPSGD(1.1, 0.05, 200, batch_size=50, dataset_size=1000, sampler=FixedSize())


def test_every_law_of_the_number_of_runs_goes_with_every_mechanism() -> None:
    for mechanism in RELEASED:
        for law in RUNS:
            fields = {"mechanism": mechanism, "selection": law, "mean_runs": "7", "shape": "0.5"}
            one = {"ledger": '{"kind":"gaussian","noise_multiplier":2.0}'} if mechanism == "ledger" else {}
            found = mechanism_of(State.of({**fields, **one}))
            assert isinstance(found, Selection)
            assert found.base == mechanism_of(State.of({**fields, **one, "selection": ONE_RUN}))
            assert (found.runs.name, found.runs.mean) == (law, 7.0)
    assert mechanism_of(State.of({"selection": "negative-binomial", "shape": "0.5"})).runs == NegativeBinomial(10, 0.5)
    with pytest.raises(ParameterError, match="mean_runs"):
        mechanism_of(State.of({"selection": "geometric", "mean_runs": "many"}))


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
        assert isinstance(adversaries_of(State.of({"attackers": text}))[0], WorstCase)
    chosen = adversaries_of(State.of({"attackers": "mixed", "relaxed_probability": "0.25"}))
    assert chosen == (WorstCase(), Mixed(0.25))


def test_every_attacker_and_parameter_can_be_set() -> None:
    everybody = adversaries_of(State.of({"attackers": ",".join(ATTACKERS)}))
    assert [who.name for who in everybody] == list(ATTACKERS)
    assert {a.parameter for a in ATTACKERS.values() if a.parameter} <= set(PARAMETERS)
    assert {name for each in RELEASED.values() for name in each.parameters} <= set(PARAMETERS)


def test_targets_unknowns_and_relations_become_types() -> None:
    assert target_of(State.of({"goal": "0.2"})) == Advantage(0.2)
    epsilon = State.of({"target": "epsilon", "goal": "2", "place": "1e-6"})
    assert target_of(epsilon) == EpsilonAtDelta(2.0, 1e-6)
    assert target_of(State({**epsilon.values, "place": ""})) == EpsilonAtDelta(2.0, 1e-5)
    assert unknown_of(State.of({"unknown": "steps"})).name == "steps"
    assert relation_of(State.of({})) is None
    assert relation_of(State.of({"relation": "replace"})) is Neighbouring.REPLACE


@pytest.mark.parametrize("text", ["", "abc", "nan", "inf", "-1", "1e-300", "1e400", "1;2", "０x1", "1" * 39])
@pytest.mark.parametrize("name", ["noise_multiplier", "sample_rate", "steps"])
def test_a_bad_field_is_named(name: str, text: str) -> None:
    if (name, text) in {("noise_multiplier", "1" * 39)}:
        text = "1e31"
    with pytest.raises(ParameterError) as wrong:
        mechanism_of(State.of({name: text}))
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
    assert folded == {"draws_per_step", "dimension"}
    (more,) = (piece for piece in everything(page(local=True)) if getattr(piece, "id", None) == "more")
    inside = {getattr(piece, "id", None) for piece in everything(more)}
    assert {"field-draws_per_step", "field-dimension", "selection", "relation"} <= inside
    assert "field-noise_multiplier" not in inside


def everything(piece: object) -> Iterator[object]:
    """A piece of the page, and all that is in it."""
    yield piece
    inner = getattr(piece, "children", None)
    for one in inner if isinstance(inner, list) else [inner] if inner is not None else []:
        yield from everything(one)

"""The state survives the address; what it can hold is on the page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reticent.dashboard.catalogue import PARAMETERS, RELEASED
from reticent.dashboard.layout import CONTROLS, made_styles, page
from reticent.dashboard.state import DEFAULTS, SETTINGS, State
from reticent.kernel.errors import ParameterError
from reticent.pairs.runs import RUNS
from tests.dashboard.conftest import asked


def test_the_address_holds_every_setting_and_no_default() -> None:
    assert State.of({}).address() == ""
    for name, setting in SETTINGS.items():
        for text in ("17", "\x00\u202e é", "a&b=c#d;?%20+", "1,5", "'\"<💥"):
            value = [*setting.choices, text][-2] if setting.choices else text
            state = State.of({name: value})
            assert (state[name], set(state.values)) == (value, set(DEFAULTS))
            assert f"{name}=" in state.address()
            assert State.of_address("?" + state.address()).values == state.values


def test_a_choice_that_does_not_exist_is_the_default() -> None:
    assert State.of({"mechanism": "rot13", "view": "", "unheard": "x"}).values == DEFAULTS


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
    numbers = asked("explore", noise_multiplier="1,5", sample_rate="10%", releases="5/2", steps="x")["numbers"]
    assert (numbers["noise_multiplier"], numbers["sample_rate"], numbers["releases"]) == (1.5, 0.1, 2.5)
    assert "steps" not in numbers


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

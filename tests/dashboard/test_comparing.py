"""Two settings and two certificates side by side, and the map of the advantage."""

from __future__ import annotations

import json
from typing import Any

import pytest

from experiments.worst_advantage import advantage
from reticent.certificates.build import certify
from reticent.certificates.document.schema import Certificate, Declaration
from reticent.certificates.page.page import render_html
from reticent.dashboard.comparing import limit_of, map_figure, two_certificates
from reticent.dashboard.figures import Figure
from reticent.dashboard.sheet import as_html
from reticent.dashboard.state import State
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.mechanisms import DPSGD, Gaussian
from reticent.kernel.pairs import Neighbouring
from tests.dashboard.conftest import asked, uploaded


def mapped(a: DPSGD, b: DPSGD, limit: float | None = None) -> Figure:
    figure = map_figure({"A": a, "B": b}, Neighbouring.ADD_REMOVE, "light", limit)
    assert figure is not None
    return figure


@pytest.mark.parametrize("noise", [1.1, 0.3])
def test_the_map_is_true_or_empty(noise: float) -> None:
    run = DPSGD(noise, 0.01, 1000)
    figure = mapped(run, run, 0.2)
    surface = figure["data"][0]
    assert min(surface["y"]) < noise < max(surface["y"])
    assert sum(value is None for row in surface["z"] for value in row) == 0 or noise == 0.3
    for k, j in ((-8, 14), (-3, 20)):
        wanted = advantage(surface["y"][k], surface["x"][j], 1000, Neighbouring.ADD_REMOVE)
        assert surface["z"][k][j] == pytest.approx(wanted, rel=1e-6, abs=0)
    target = next(line for line in figure["data"] if "<b>target 0.2</b>" in (line.get("text") or []))
    x, y = target["x"][len(target["x"]) // 2], target["y"][len(target["y"]) // 2]
    assert advantage(y, x, 1000, Neighbouring.ADD_REMOVE) == pytest.approx(0.2, rel=0.02, abs=0)


@pytest.mark.parametrize(
    ("rate", "rates", "noises"),
    [(0.01, "0.005 0.01 0.02", "0.5 1 2 5"), (2e-7, "1e-07 1e-06 1e-05 0.0001 0.001 0.01", "1 2 5")],
)
def test_marks_of_a_logarithmic_axis_are_written_in_full(rate: float, rates: str, noises: str) -> None:
    """At 1, 2 and 5 in each decade, at 1 alone over many."""
    layout = mapped(DPSGD(1.1, rate, 1000), DPSGD(1.1, 0.01, 1000))["layout"]
    for axis, expected in (("xaxis", rates), ("yaxis", noises)):
        assert layout[axis]["ticktext"] == expected.split()
        assert [float(text) for text in layout[axis]["ticktext"]] == layout[axis]["tickvals"]


def test_two_settings_at_one_place_of_the_map_share_a_mark() -> None:
    """Else the one would hide the name of the other."""
    marks = [one["name"] for one in mapped(DPSGD(1.1, 0.01, 9), DPSGD(1.1, 0.01, 1000))["data"] if one.get("name")]
    assert marks == ["A, B"]
    marks = [one["name"] for one in mapped(DPSGD(1.2, 0.01, 9), DPSGD(1.1, 0.01, 1000))["data"] if one.get("name")]
    assert marks == ["A", "B"]


@pytest.mark.parametrize(
    ("settings", "limit"),
    [
        ({}, 0.1),
        ({"target": "bayes-security", "goal": "0.8"}, 0.2),
        ({"target": "success", "goal": "0.6", "place": "0.5"}, 0.2),
        ({"target": "success", "goal": "0.95", "place": "0.1"}, None),
        ({"target": "epsilon", "goal": "1", "place": "1e-5"}, None),
        ({"goal": "x"}, None),
    ],
)
def test_the_line_on_the_map_is_the_target(settings: dict[str, str], limit: float | None) -> None:
    assert limit_of(State.of(settings)) == (None if limit is None else pytest.approx(limit, rel=1e-12, abs=0))


def test_a_comparison_begins_with_a_prompt() -> None:
    alone = asked("compare", panel="compare")["parts"]
    assert alone["compare-table"] == []
    assert alone["compared"].startswith("Keep these settings as A")
    both = asked("compare", panel="compare", pinned="noise_multiplier=2")["parts"]
    assert both["compared"].startswith("B reveals more than A")
    assert both["compare-table"]
    alike = asked("compare", panel="compare", noise_multiplier="0.9", pinned="noise_multiplier=0.9")["parts"]
    assert (alike["compared"], alike["message"]) == ("A and B are alike for the worst case.", "")


def made(noise: float, subject: str = "a") -> Certificate:
    return certify(Gaussian(noise), Declaration(subject=subject, created="2026-11-23"), adversaries=(WorstCase(),))


def compared(*files: Any) -> Any:
    return asked("certificates", files=list(files))["parts"]["certificates-compared"]


def test_two_certificates_are_summed_up_before_every_line_and_texts_stay_texts() -> None:
    files = [(made(2.0, "<script>x</script>").to_json(), "<b>"), (made(1.0).to_json(), "two")]
    page = two_certificates(*files)
    assert [type(piece).__name__ for piece in page] == ["P", "Table", "Details"]
    text = as_html(page)
    assert '<td class="n">0.1975</td><td class="n">0.383</td><td class="n">0.1855</td><td class="">B</td>' in text
    row = '<th scope="row">noise multiplier</th><td class="">2</td><td class="">1</td>'
    assert row in text.partition("<details>")[2]
    assert "<script>" not in text
    assert "<b>" not in text


def test_alike_ones_say_so_and_a_page_is_one_too() -> None:
    text = made(2.0).to_json()
    assert "say the same" in json.dumps(compared(uploaded(text, "one.json"), uploaded(text, "one.json")))
    page = uploaded(render_html(made(1.0)), "two")
    assert "noise multiplier" in json.dumps(compared(uploaded(text, "one"), page))


@pytest.mark.parametrize("given", [None, [], [uploaded("{}")], [uploaded("{}")] * 2, ["x", "y"], [["x", "a"]] * 2])
def test_anything_else_is_one_line(given: Any) -> None:
    assert isinstance(asked("certificates", files=given)["parts"]["certificates-compared"], str)

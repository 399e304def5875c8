"""The budget in epochs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reticent.dashboard.calibrating import budget_figure, budget_of
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.errors import UnsupportedError
from reticent.kernel.mechanisms import DPSGD, Gaussian, Mechanism
from reticent.kernel.risk import advantage
from reticent.samplers import Shuffled
from reticent.verbs import Calibrate
from tests.dashboard.conftest import asked

RUN = DPSGD(1.1, 0.01, 1000)


def allowed(release: Mechanism, target: str) -> Calibrate:
    """What any attacker would allow."""
    return Calibrate.of(release=release, target=target)


def test_the_steps_that_are_left_keep_the_target_and_one_more_does_not() -> None:
    budget = budget_of(allowed(RUN, "advantage=0.1"))
    found = [WorstCase().assess(DPSGD(1.1, 0.01, budget.most + more)).measure(advantage).value for more in (0, 1)]
    assert found[0] <= 0.1 < found[1]
    assert budget.sentence("it") == "5 epochs (494 steps) too many: at most 5 epochs (506 steps) keep it."
    less = replace(budget, planned=100)
    assert less.sentence("it") == "4 more epochs (406 steps) keep it for any attacker."


@pytest.mark.parametrize(("goal", "said"), [("advantage=0.1", "about"), ("epsilon=2@1e-5", "at most")])
def test_the_curve_meets_the_target_where_the_budget_ends(goal: str, said: str) -> None:
    request = allowed(RUN, goal)
    budget, target = budget_of(request), request.target
    figure = budget_figure(request, budget, "light")
    line, ends = figure["data"][0], budget.most / budget.per_epoch
    assert said in line["hovertemplate"]
    names = [one["name"].split(":")[0] for one in figure["data"]]
    assert names == [f"worst case ({'estimate' if said == 'about' else 'bound'})", "target", "planned", "allowed"]
    assert all((y <= target.value * 1.01) == (x <= ends * 1.01) for x, y in zip(line["x"], line["y"], strict=True))


def test_a_bound_on_security_is_a_lower_one_and_is_rounded_down() -> None:
    request = allowed(replace(RUN, sampler=Shuffled(), noise_multiplier=8.0), "bayes-security=0.9")
    line = budget_figure(request, budget_of(request), "light")["data"][0]
    assert "at least" in line["hovertemplate"]
    down = [float(text) - risk for text, risk in zip(line["text"], line["y"], strict=True)]
    assert max(down) <= 0.0
    assert min(down) < 0.0


def test_the_page_has_a_budget_where_there_are_epochs() -> None:
    with pytest.raises(UnsupportedError, match="epochs are known of DP-SGD only"):
        budget_of(allowed(Gaussian(1.0), "advantage=0.1"))
    assert asked("plan", panel="calibrate", mechanism="gaussian")["parts"] == {"planned": ""}
    found = asked("plan", panel="calibrate")
    assert "epochs" in found["parts"]["planned"]
    assert found["figures"]["plan-figure"]["data"]

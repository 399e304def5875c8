"""The worst case at screen accuracy: near the proven curve, marked as an estimate, and followed by it."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.composition import compose
from reticent.dashboard.callbacks import Callbacks
from reticent.dashboard.readings import FPRS
from reticent.dashboard.screen import ACCURACY, screen_assessment
from reticent.dashboard.state import DEFAULTS
from reticent.mechanism import DPSGD, Gaussian, Mechanism, Neighbouring, Sampler
from reticent.threat import Claim

RELATIONS = (Neighbouring.ADD_REMOVE, Neighbouring.REPLACE)


def furthest(release: DPSGD, relation: Neighbouring) -> float:
    """By how much the drawn error rates leave what is proven; -1 where nothing is drawn."""
    drawn, proven = screen_assessment(release, relation), compose(release, relation)
    if drawn is None:
        return -1.0
    beta = drawn.curve.beta(FPRS)
    out = np.maximum(proven.pessimistic.beta(FPRS) - beta, beta - proven.optimistic.beta(FPRS))
    return float(max(np.max(out), 0.0))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    "release",
    [
        DPSGD(1.1, 0.01, 1000),
        DPSGD(0.6, 0.2, 30),
        DPSGD(3.0, 0.3, 40),
        DPSGD(3.0, 0.5, 5),
        DPSGD(1.0, 0.05, 2000),
        DPSGD(20.0, 1e-4, 9),
    ],
    ids=str,
)
def test_what_is_drawn_first_is_near_what_is_proven(release: DPSGD, relation: Neighbouring) -> None:
    assert 0.0 <= furthest(release, relation) < ACCURACY


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_what_is_drawn_first_is_near_what_is_proven_anywhere() -> None:
    rng, drawn = np.random.default_rng(5), 0
    for k in range(200):
        noise, rate, steps = np.exp(rng.uniform(np.log([0.3, 1e-5, 1.0]), np.log([30.0, 0.9, 1e5])))
        release = DPSGD(float(noise), float(rate), int(steps))
        off = furthest(release, RELATIONS[k % 2])
        assert off < ACCURACY, release
        drawn += off >= 0.0
    assert drawn > 140


@pytest.mark.parametrize(
    "release",
    [
        Gaussian(1.0),
        DPSGD(1.0, 1.0, 5),
        DPSGD(0.01, 0.1, 5),
        DPSGD(1.0, 0.1, 5, sampler=Sampler.SHUFFLED),
        DPSGD(0.36, 3e-4, 1),
    ],
    ids=str,
)
def test_what_has_no_shortcut_waits_for_the_proof(release: Mechanism) -> None:
    assert screen_assessment(release, Neighbouring.ADD_REMOVE) is None


def test_it_is_an_estimate_until_the_proven_curve_replaces_it(callbacks: Callbacks) -> None:
    settings = {**DEFAULTS, "noise_multiplier": "2.718", "steps": "77", "attackers": "membership,mixed"}
    asked = {"settings": settings, "session": "s", "turn": 1}
    first = callbacks.explore(asked, "light")
    assert first[-1] == asked
    assert first[0].count("about") == 1
    assert first[1].startswith("Screen accuracy")
    names = [line["name"] for line in first[3]["data"]]
    assert "worst-case (estimate)" in names
    assert not any("bound" in name for name in names)
    second = callbacks.explore_rest(first[-1], "light")
    assert "at most" in second[0]
    assert second[1].startswith("Certificate accuracy: proven")
    assert {line["name"] for line in second[3]["data"]} >= {"worst-case (bound)", "mixed (bound)"}
    known = callbacks.explore({**asked, "turn": 2}, "light")
    assert known[1].startswith("Certificate accuracy"), "what is proven already is shown at once"


def test_an_older_question_is_not_drawn(callbacks: Callbacks) -> None:
    asked = {"settings": {**DEFAULTS, "noise_multiplier": "2.719"}, "session": "s", "turn": 5}
    assert isinstance(callbacks.explore(asked, "light")[0], str)
    late = callbacks.explore({**asked, "turn": 4}, "light")
    assert not any(isinstance(part, str) for part in late)
    assert not any(isinstance(part, str) for part in callbacks.explore_rest({**asked, "turn": 4}, "light"))


@pytest.mark.parametrize("view", ["profile", "table"])
def test_tails_and_tables_wait_for_the_proof(callbacks: Callbacks, view: str) -> None:
    settings = {**DEFAULTS, "noise_multiplier": "2.72", "steps": "78", "attackers": "", "view": view}
    first = callbacks.explore({"settings": settings, "session": "s", "turn": 1}, "light")
    assert first[1].startswith("Certificate accuracy")
    assert Claim.BOUND.value in first[3]["data"][-1]["name"]

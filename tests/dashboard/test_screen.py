"""The worst case at screen accuracy: near the proven curve, marked as an estimate, and followed by it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from reticent.adversaries import Mixed, Relaxed
from reticent.adversaries.screen import ACCURACY, ROUGH, screen_assessment
from reticent.dashboard.readings import FPRS, answer, assessed, is_known
from reticent.dashboard.turns import Turns
from reticent.kernel.adversaries import Adversary, WorstCase
from reticent.kernel.mechanisms import DPSGD, Gaussian, Mechanism
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Claim
from reticent.kernel.stopping import Stopped, stoppable
from reticent.samplers import Shuffled
from reticent.verbs import Assess
from tests.dashboard.conftest import asked

RELATIONS = (Neighbouring.ADD_REMOVE, Neighbouring.REPLACE)


def furthest(release: DPSGD, relation: Neighbouring, who: Adversary = WorstCase()) -> float:  # noqa: B008
    """By how much the drawn error rates leave what is proven; -1 where nothing is drawn."""
    drawn, proven = screen_assessment(who, release, relation), who.assess(release, relation).truth
    if drawn is None or proven is None:
        return -1.0
    beta = drawn.curve.beta(FPRS)
    out = np.maximum(proven.pessimistic.beta(FPRS) - beta, beta - proven.optimistic.beta(FPRS))
    return float(max(np.max(out), 0.0))


def drawn_by(answer: dict[str, Any]) -> list[str]:
    return [line["name"] for line in answer["figures"]["figure"]["data"] if line.get("meta")]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    "release",
    [
        DPSGD(1.1, 0.01, 1000),
        DPSGD(3.0, 0.3, 40),
        DPSGD(20.0, 1e-4, 9),
        *(
            pytest.param(r, marks=pytest.mark.slow)
            for r in (DPSGD(0.6, 0.2, 30), DPSGD(3.0, 0.5, 5), DPSGD(1.0, 0.05, 2000))
        ),
    ],
    ids=str,
)
def test_what_is_drawn_first_is_near_what_is_proven(release: DPSGD, relation: Neighbouring) -> None:
    assert 0.0 <= furthest(release, relation) < ACCURACY


@pytest.mark.parametrize("who", [Relaxed(), Mixed(0.3)], ids=lambda who: who.name)
@pytest.mark.parametrize("release", [DPSGD(1.1, 0.01, 1000), DPSGD(5.0, 0.2, 1000)], ids=str)
def test_an_unknown_sign_is_drawn_near_what_is_proven(release: DPSGD, who: Adversary) -> None:
    assert 0.0 <= furthest(release, Neighbouring.ADD_REMOVE, who) < ROUGH


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("who", "count", "least", "room"), [(WorstCase(), 200, (1e-5, 1.0), ACCURACY), (Relaxed(), 60, (1e-4, 10.0), ROUGH)]
)
def test_what_is_drawn_first_is_near_what_is_proven_anywhere(
    who: Adversary, count: int, least: tuple[float, float], room: float
) -> None:
    rng, drawn = np.random.default_rng(5), 0
    for k in range(count):
        noise, rate, steps = np.exp(rng.uniform(np.log([0.3, *least]), np.log([30.0, 0.9, 1e5])))
        release = DPSGD(float(noise), float(rate), int(steps))
        off = furthest(release, who.relation if who.hidden else RELATIONS[k % 2], who)
        assert off < room, release
        drawn += off >= 0.0
    assert drawn > 0.66 * count


@pytest.mark.parametrize(
    "release",
    [
        Gaussian(1.0),
        DPSGD(1.0, 1.0, 5),
        DPSGD(0.01, 0.1, 5),
        DPSGD(1.0, 0.1, 5, sampler=Shuffled()),
        DPSGD(0.36, 3e-4, 1),
    ],
    ids=str,
)
def test_what_has_no_shortcut_waits_for_the_proof(release: Mechanism) -> None:
    assert screen_assessment(WorstCase(), release, Neighbouring.ADD_REMOVE) is None


def test_it_is_an_estimate_until_the_proven_curve_replaces_it() -> None:
    turns = Turns()
    changes = {"noise_multiplier": "2.718", "steps": "77", "attackers": "membership,mixed"}
    first = asked("explore", turns, **changes)
    assert first["next"] == "proof"
    assert first["waiting"] == []
    assert first["parts"]["headline"].count("about") == 1
    assert first["parts"]["accuracy"].startswith("Screen accuracy")
    assert "of the unknown direction 0.001" in first["parts"]["accuracy"]
    assert set(drawn_by(first)) == {"worst-case (estimate)", "membership (estimate)", "mixed (estimate)"}
    assert "python" not in first["parts"], "what is copied gives proven numbers"
    proof = asked("proof", turns, **changes)
    assert proof["next"] is None
    assert "Asked whether" in proof["parts"]["headline"]
    assert proof["parts"]["accuracy"].startswith("Certificate accuracy: proven")
    assert set(drawn_by(proof)) == {"worst-case (bound)", "membership (bound)", "mixed (conditional)"}
    assert "'mixed'" in proof["parts"]["python"]
    known = asked("explore", turns, 2, **changes)
    assert known["parts"]["accuracy"].startswith("Certificate accuracy"), "what is proven already is shown at once"
    assert known["next"] is None


def test_a_proof_that_was_given_up_is_not_known() -> None:
    """The worst case is composed when it is read: the first picture must not wait for that."""
    release, who = DPSGD(2.7181, 0.01, 77), WorstCase()
    late = iter([False])
    with pytest.raises(Stopped), stoppable(lambda: next(late, True)):  # goes on at the first checkpoint alone
        assessed(who, release, who.relation)
    assert not is_known(who, release, who.relation)
    changes = {"noise_multiplier": "2.7181", "steps": "77", "attackers": ""}
    assert asked("explore", **changes)["next"] == "proof"
    answer(Assess.of(release=release))
    assert is_known(who, release, who.relation)
    assert asked("explore", **changes)["next"] is None


def test_an_older_question_is_not_answered() -> None:
    turns = Turns()
    assert "headline" in asked("explore", turns, 5, noise_multiplier="2.719")["parts"]
    for stage in ("explore", "proof"):
        assert asked(stage, turns, 4, noise_multiplier="2.719") == {}


@pytest.mark.parametrize("view", ["profile", "table"])
def test_tails_and_tables_wait_for_the_proof(view: str) -> None:
    first = asked("explore", noise_multiplier="2.72", steps="78", attackers="", view=view)
    assert first["parts"]["accuracy"].startswith("Certificate accuracy")
    assert Claim.BOUND.value in first["figures"]["figure"]["data"][-1]["name"]

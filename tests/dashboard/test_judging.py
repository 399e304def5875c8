"""A policy laid over the numbers of the page."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import parse_qsl

import pytest

from reticent.certificates.build import certify
from reticent.certificates.document.policy import Policy
from reticent.certificates.document.schema import Declaration
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.mechanisms import Gaussian
from tests.dashboard.conftest import asked, uploaded

POLICY = """
schema: reticent.policy/1
per: record
limits:
  - {measure: advantage, at_most: 0.2, neighbouring: add-remove}
  - {measure: epsilon, at: 1e-6, at_most: 1, neighbouring: add-remove}
accept_conditions: [public-divisor, clipped, planned-steps, poisson-draws, start-weights]
"""
PLAN = {"mechanism": "gaussian", "noise_multiplier": "2"}


def with_limit(limit: str) -> str:
    return POLICY.replace("limits:", f"limits:\n  - {{{limit}}}")


def kept(policy: str) -> dict[str, str]:
    """The settings that a chosen policy becomes."""
    return dict(parse_qsl(asked("policy", files=[uploaded(policy, "policy.yaml")])["address"]))


def parts(text: str = POLICY, **more: str) -> dict[str, Any]:
    found: dict[str, Any] = asked("proof", **kept(text), **PLAN, **more)["parts"]
    return found


def judged(text: str = POLICY, **more: str) -> str:
    found = parts(text, **more)
    return json.dumps([found[name] for name in ("verdict", "policy", "cards")], ensure_ascii=False)


def test_each_verdict_is_at_the_number_that_it_judges() -> None:
    found = parts(with_limit("measure: advantage, adversary: relaxed, at_most: 0.01"), view="table")
    assert "The policy: 2 of 4 requirements are not met." in json.dumps(found["verdict"])
    worst, relaxed = (json.dumps(card) for card in found["cards"])
    assert "worst-case: advantage at most 0.2 (add-remove): is 0.197413" in worst
    assert "worst-case: epsilon at delta 1e-06 at most 1 (add-remove): is 2.25409" in worst
    assert "at most 0.01 (" not in worst
    assert "relaxed: advantage at most 0.01 (add-remove): is " in relaxed
    rows = found["table"]["props"]["children"][1]["props"]["children"]
    cells = [json.dumps(row["props"]["children"][1]) for row in rows]
    assert "allowed: at most 0.2" in cells[0]
    assert "allowed: at most 0.01" in cells[1]


def test_a_number_that_is_met_is_told_from_what_it_rests_on() -> None:
    found = judged(POLICY.replace("clipped, ", ""))
    assert "advantage at most 0.2 (add-remove): is 0.197413, and rests on clipped (declared)" in found


def test_who_is_not_shown_is_said_to_be_missing() -> None:
    found = parts(with_limit("measure: advantage, adversary: mixed, at_most: 0.9"), attackers="")
    assert "mixed: advantage at most 0.9 (add-remove): " in json.dumps(found["policy"])


@pytest.mark.parametrize("limit", ["0.197412", "0.197413"])
def test_digits_never_contradict_a_verdict(limit: str) -> None:
    found = judged(POLICY.replace("0.2,", f"{limit},"))
    allowed, stated = re.findall(r"advantage at most ([\d.]+) \(add-remove\): is ([\d.]+)", found)[0]
    assert (float(stated) <= float(allowed)) == (limit == "0.197413")


def test_it_says_what_certify_says_and_what_is_not_met_does_not_look_good() -> None:
    policy = Policy.model_validate(json.loads(kept(POLICY)["policy"]))
    declared = Declaration(subject="plan", created="2026-11-23")
    made = certify(Gaussian(2.0), declared, adversaries=(WorstCase(),), policy=policy)
    assert {one.passed for one in made.requirements} == {True, False}
    found = judged(attackers="")
    assert "The policy: 1 of 3 requirements is not met." in found
    for passed, word, look in ((True, "met: ", "good"), (False, "not met: ", "bad")):
        count = sum(one.passed is passed for one in made.requirements)
        assert found.count(f'"{word}"') == count
        assert len(re.findall(rf'"{word}"[^{{}}]*\}}[^{{}}]*\}}[^{{}}]*"className": "{look}"', found)) == count


def test_an_estimate_is_not_judged() -> None:
    first = asked("explore", **kept(POLICY), noise_multiplier="1.2345")
    assert first["parts"]["verdict"] == "The policy waits for the proof."
    assert "allowed" not in json.dumps(first["parts"])


@pytest.mark.parametrize("text", ["", "limits: []", "{", POLICY + "\nfoo: 1"])
def test_what_is_no_policy_is_one_line(text: str) -> None:
    said = asked("policy", files=[uploaded(text, "policy.yaml")])["parts"]["policy-said"]
    assert said.startswith("policy.yaml")
    assert "\n" not in said
    assert "the policy" in asked("explore", policy='{"limits": 1}')["parts"]["message"]

"""What is for every day: a policy over the numbers, the budget in epochs, two certificates, a page to send."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qsl

import pytest

from reticent.adversaries import Relaxed
from reticent.certificates.build import certify
from reticent.certificates.document.policy import Limit, Policy
from reticent.certificates.document.schema import Certificate, Declaration
from reticent.certificates.page.page import render_html
from reticent.dashboard.calibrating import budget_figure, budget_of
from reticent.dashboard.comparing import two_certificates
from reticent.dashboard.explaining import explanation, place_of_name
from reticent.dashboard.judging import judge
from reticent.dashboard.readings import assessed
from reticent.dashboard.requests import assess_of
from reticent.dashboard.sheet import as_html
from reticent.dashboard.state import State
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.errors import ArtifactError, UnsupportedError
from reticent.kernel.mechanisms import DPSGD, Gaussian, Mechanism
from reticent.kernel.proofs.references import THEOREMS
from reticent.kernel.risk import advantage
from reticent.mechanisms import MatrixMechanism
from reticent.samplers import Shuffled
from reticent.verbs import Assess, Calibrate
from reticent.verbs.side_by_side import Differences, certified
from tests.dashboard.conftest import asked, uploaded

RUN = DPSGD(1.1, 0.01, 1000)
POLICY = """
schema: reticent.policy/1
per: record
limits:
  - {measure: advantage, at_most: 0.2, neighbouring: add-remove}
  - {measure: epsilon, at: 1e-6, at_most: 1, neighbouring: add-remove}
accept_conditions: [public-divisor, clipped, planned-steps, poisson-draws, start-weights]
"""


def kept(policy: str) -> dict[str, str]:
    """The settings that a chosen policy becomes."""
    return dict(parse_qsl(asked("policy", files=[uploaded(policy, "policy.yaml")])["address"]))


class TestAPolicyOverTheNumbers:
    def parts(self, text: str = POLICY, **more: str) -> dict[str, Any]:
        found: dict[str, Any] = asked("proof", **kept(text), **more)["parts"]
        return found

    def judged(self, text: str = POLICY, **more: str) -> str:
        found = self.parts(text, **more)
        return json.dumps([found[name] for name in ("verdict", "policy", "cards")], ensure_ascii=False)

    def test_each_limit_says_what_became_of_it(self) -> None:
        found = self.judged(mechanism="gaussian", noise_multiplier="2")
        assert "The policy: 1 of 3 requirements is not met." in found
        assert "worst-case: epsilon at delta 1e-06 at most 1 (add-remove): is 2.25409" in found
        assert "worst-case: advantage at most 0.2 (add-remove): is 0.197413" in found

    def test_each_verdict_is_at_the_number_that_it_judges(self) -> None:
        more = POLICY.replace("limits:", "limits:\n  - {measure: advantage, adversary: relaxed, at_most: 0.01}")
        cards = self.parts(more, mechanism="gaussian", noise_multiplier="2")["cards"]
        worst, relaxed = (json.dumps(card) for card in cards)
        assert "epsilon at delta 1e-06" in worst
        assert "at most 0.01 (" not in worst
        assert "relaxed: advantage at most 0.01 (add-remove): is " in relaxed
        shown = self.parts(more, mechanism="gaussian", noise_multiplier="2", view="table")["table"]
        cells = [json.dumps(row["props"]["children"][1]) for row in shown["props"]["children"][1]["props"]["children"]]
        assert "allowed: at most 0.2" in cells[0]
        assert "allowed: at most 0.01" in cells[1]

    def test_a_number_that_is_met_and_one_that_is_not_are_told_from_what_they_rest_on(self) -> None:
        text = POLICY.replace("clipped, ", "")
        found = self.judged(text, mechanism="gaussian", noise_multiplier="2")
        assert "advantage at most 0.2 (add-remove): is 0.197413, and rests on clipped (declared)" in found

    def test_who_is_not_shown_is_said_to_be_missing(self) -> None:
        text = POLICY.replace("limits:", "limits:\n  - {measure: advantage, adversary: mixed, at_most: 0.9}")
        said = json.dumps(self.parts(text, attackers="")["policy"])
        assert "mixed: advantage at most 0.9 (add-remove): " in said

    @pytest.mark.parametrize("limit", ["0.197412", "0.197413"])
    def test_digits_never_contradict_a_verdict(self, limit: str) -> None:
        found = self.judged(POLICY.replace("0.2,", f"{limit},"), mechanism="gaussian", noise_multiplier="2")
        allowed, stated = re.findall(r"advantage at most ([\d.]+) \(add-remove\): is ([\d.]+)", found)[0]
        assert (float(stated) <= float(allowed)) == (limit == "0.197413")

    def test_it_says_what_certify_says(self) -> None:
        policy = Policy.model_validate(json.loads(kept(POLICY)["policy"]))
        declared = Declaration(subject="plan", created="2026-11-23")
        made = certify(Gaussian(2.0), declared, adversaries=(WorstCase(),), policy=policy)
        assert made.requirements
        shown = self.judged(mechanism="gaussian", noise_multiplier="2", attackers="")
        for passed, word in ((True, "met: "), (False, "not met: ")):
            assert shown.count(f'"{word}"') == sum(one.passed is passed for one in made.requirements)

    def test_an_estimate_is_not_judged(self) -> None:
        first = asked("explore", **kept(POLICY), noise_multiplier="1.2345")
        assert first["parts"]["verdict"] == "The policy waits for the proof."
        assert "allowed" not in json.dumps(first["parts"])

    @pytest.mark.parametrize("text", ["", "limits: []", "{", POLICY + "\nfoo: 1"])
    def test_what_is_no_policy_is_one_line(self, text: str) -> None:
        said = asked("policy", files=[uploaded(text, "policy.yaml")])["parts"]["policy-said"]
        assert said.startswith("policy.yaml")
        assert "\n" not in said

    def test_an_address_with_a_bad_policy_is_one_line(self) -> None:
        answer = asked("explore", policy='{"limits": 1}')
        assert "the policy" in answer["parts"]["message"]


def test_what_was_asked_before_is_answered_alike() -> None:
    settings = {"mechanism": "gaussian", "noise_multiplier": "3.21", "attackers": "attribute"}
    proof, again = (asked(stage, **settings) for stage in ("proof", "explore"))
    assert again["next"] is None
    assert again["parts"]["headline"] == proof["parts"]["headline"]
    assert proof["parts"]["headline"].count("right at most") == 2, "both questions, as the attacker asks the second"
    assert again["parts"]["cards"] == proof["parts"]["cards"]


def allowed(release: Mechanism, target: str) -> Calibrate:
    """What any attacker would allow."""
    return Calibrate.of(release=release, target=target)


class TestTheBudget:
    def test_the_steps_that_are_left_keep_the_target_and_one_more_does_not(self) -> None:
        budget = budget_of(allowed(RUN, "advantage=0.1"))
        found = [WorstCase().assess(DPSGD(1.1, 0.01, budget.most + more)).measure(advantage).value for more in (0, 1)]
        assert found[0] <= 0.1 < found[1]
        assert budget.sentence("it") == "5 epochs (494 steps) too many: at most 5 epochs (506 steps) keep it."
        less = budget_of(allowed(DPSGD(1.1, 0.01, 100), "advantage=0.1"))
        assert less.sentence("it") == "4 more epochs (406 steps) keep it for any attacker."

    @pytest.mark.parametrize(("goal", "said"), [("advantage=0.1", "about"), ("epsilon=2@1e-5", "at most")])
    def test_the_curve_meets_the_target_where_the_budget_ends(self, goal: str, said: str) -> None:
        request = allowed(RUN, goal)
        budget, target = budget_of(request), request.target
        figure = budget_figure(request, budget, "light")
        line, ends = figure["data"][0], budget.most / budget.per_epoch
        assert said in line["hovertemplate"]
        names = [one["name"].split(":")[0] for one in figure["data"]]
        assert names == [f"worst case ({'estimate' if said == 'about' else 'bound'})", "target", "planned", "allowed"]
        assert all((y <= target.value * 1.01) == (x <= ends * 1.01) for x, y in zip(line["x"], line["y"], strict=True))

    def test_a_bound_on_security_is_a_lower_one_and_is_rounded_down(self) -> None:
        request = allowed(replace(RUN, sampler=Shuffled(), noise_multiplier=8.0), "bayes-security=0.9")
        line = budget_figure(request, budget_of(request), "light")["data"][0]
        assert "at least" in line["hovertemplate"]
        assert all(float(text) <= risk for text, risk in zip(line["text"], line["y"], strict=True))
        assert any(float(text) < risk for text, risk in zip(line["text"], line["y"], strict=True))

    def test_what_has_no_epochs_is_said(self) -> None:
        with pytest.raises(UnsupportedError, match="epochs are known of DP-SGD only"):
            budget_of(allowed(Gaussian(1.0), "advantage=0.1"))

    def test_the_page_has_a_budget_where_there_are_epochs(self) -> None:
        assert asked("plan", panel="calibrate", mechanism="gaussian")["parts"] == {"planned": ""}
        found = asked("plan", panel="calibrate")
        assert "epochs" in found["parts"]["planned"]
        assert found["figures"]["plan-figure"]["data"]


class TestTwoCertificates:
    def made(self, noise: float, subject: str = "a") -> Any:
        declared = Declaration(subject=subject, created="2026-11-23")
        return certify(Gaussian(noise), declared, adversaries=(WorstCase(),))

    def compared(self, *files: Any) -> str:
        return json.dumps(asked("certificates", files=list(files))["parts"]["certificates-compared"])

    @staticmethod
    def changes(a: Certificate, b: Certificate) -> Any:
        return Differences(("A", "B"), certified(a), certified(b)).rows()

    def test_every_change_is_a_row(self) -> None:
        rows = {row[0]: row[1:] for row in self.changes(self.made(2.0), self.made(1.0, "b"))}
        assert rows["Subject"] == ("a", "b")
        assert rows["noise multiplier"] == ("2", "1")
        assert any(name.endswith("sentence") for name in rows)
        assert any("advantage" in name and one == "0.1975" for name, (one, _) in rows.items())
        assert "Issuer" not in rows

    def test_alike_ones_say_so(self) -> None:
        text = self.made(2.0).to_json()
        assert "say the same" in self.compared(uploaded(text, "one.json"), uploaded(text, "one.json"))
        page = self.compared(uploaded(text, "one"), uploaded(render_html(self.made(1.0)), "two"))
        assert "noise multiplier" in page

    @pytest.mark.parametrize("given", [None, [], [uploaded("{}")], [uploaded("{}")] * 2, ["x", "y"], [["x", "a"]] * 2])
    def test_anything_else_is_one_line(self, given: Any) -> None:
        assert isinstance(asked("certificates", files=given)["parts"]["certificates-compared"], str)

    def test_names_and_texts_stay_texts(self) -> None:
        a, b = self.made(2.0, "<script>x</script>"), self.made(2.0, "b")
        found = two_certificates((a.to_json(), "<b>"), (b.to_json(), "b"))
        assert "<script>" not in as_html(found)


class _Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]


def test_a_page_to_send_is_whole_and_asks_for_nothing() -> None:
    given = asked("sheet", attackers="relaxed", policy="")
    assert given["parts"]["told"] == "reticent-plan.html written"
    name, text = given["file"]
    assert name.endswith(".html")
    seen = _Seen()
    seen.feed(text)
    assert not seen.tags & {"script", "link", "img", "iframe"}
    assert all(address.startswith("#why-") for address in seen.addresses)
    assert not re.search(r"url\(|@import|https?://", text)
    value = assessed(Relaxed(), RUN, Relaxed().relation).measure(advantage).value
    assert f"{value:.3f}"[:4] in text
    assert "nobody saw a run" in text
    assert "RETICENT:common-sign" in text


def test_a_number_is_explained_from_the_list_of_theorems() -> None:
    found = assessed(WorstCase(), RUN, WorstCase().relation)
    text = as_html(explanation([found]))
    for key in found.theorems:
        assert key in text
    for needed in found.conditions:
        assert str(needed.says)[:30] in text
    assert re.search(r"reticent/kernel/risk/measures\.py:\d+ advantage", text)


def test_every_theorem_leads_to_a_line_of_code() -> None:
    named = [one for one in THEOREMS.values() if one.code]
    assert len(named) > 50
    for one in named:
        assert re.search(r"^reticent/\S+\.py(:\d+ \S+)?$", place_of_name(one.code)), one.key


def test_the_matrix_mechanism_is_set_as_any_other() -> None:
    made = assess_of(
        State.of({"mechanism": "matrix", "strategy": "square-root", "bands": "4", "steps": "64"})
    ).mechanism
    assert made == MatrixMechanism(1.1, 64, strategy="square-root", bands=4)
    with pytest.raises(ArtifactError, match="more than"):
        assess_of(State.of({"mechanism": "matrix", "strategy": "tree", "steps": "10000000"}))


def test_what_is_not_met_does_not_look_good() -> None:
    limits = tuple(Limit(measure="advantage", at_most=most) for most in (0.1, 0.9))
    policy = Policy(schema="reticent.policy/1", per="record", limits=limits, accept_conditions=("clipped",))
    (rows,) = judge(policy, Assess.of(release=Gaussian(2.0)).answer()).rows.values()
    looks = [(row.children[1].children, row.className) for row in rows.children]
    assert looks == [("not met: ", "bad"), ("met: ", "good")]


def test_nothing_is_explained_twice_or_with_marks_of_code() -> None:
    found = [assessed(who, RUN, who.relation) for who in (WorstCase(), Relaxed())]
    text = as_html(explanation(found))
    assert "*" not in text.replace("**kw", "")
    assert "`" not in text
    shared = set(found[0].theorems) & set(found[1].theorems)
    assert shared
    for key in shared:
        assert text.count(THEOREMS[key].says[:40].replace("'", "&#x27;")) <= 1
        assert f"<strong>{key}</strong>" in text
    assert "As above: " in text


def test_a_comparison_begins_with_a_prompt() -> None:
    alone = asked("compare", panel="compare")
    assert alone["parts"]["compare-table"] == []
    assert alone["parts"]["compared"].startswith("Keep these settings as A")
    both = asked("compare", panel="compare", pinned="noise_multiplier=2")
    assert both["parts"]["compared"].startswith("B reveals more than A")
    assert both["parts"]["compare-table"]


def test_two_certificates_are_summed_up_before_every_line() -> None:
    made = [TestTwoCertificates().made(noise) for noise in (2.0, 1.0)]
    page = two_certificates((made[0].to_json(), "one"), (made[1].to_json(), "two"))
    assert [type(piece).__name__ for piece in page] == ["P", "Table", "Details"]
    text = as_html(page)
    assert '<td class="n">0.1975</td><td class="n">0.383</td><td class="n">0.1855</td><td class="">B</td>' in text
    assert (
        '<th scope="row">noise multiplier</th><td class="">2</td><td class="">1</td>' in text.partition("<details>")[2]
    )

"""The policy in words: whether it is met, by how much, what it accepts without a check, and what it does not ask."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import reticent as rt
from reticent.adversaries import Relaxed
from reticent.certificates.build import public
from reticent.certificates.document.policy import Policy
from reticent.certificates.document.schema import Certificate
from reticent.certificates.document.signature import signed
from reticent.certificates.page.verdicts import accepted, unchecked, unjudged, verdicts
from reticent.certificates.verify import verify
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.mechanisms import Gaussian
from tests.certificates.conftest import make_ledger
from tests.certificates.edits import document_of, forged, resealed
from tests.certificates.making import BOTH, DECLARED, RUN, key_in, of, page_of, policy
from tests.cli.calling import run

ACCEPTED = ["public-divisor", "poisson-draws", "clipped", "planned-steps", "start-weights"]
ALL = [*ACCEPTED, "records-per-person"]
RIGHT = {"measure": "success", "at": 0.5, "at_most": 0.65, "neighbouring": "add-remove"}
EPSILON = {"measure": "epsilon", "at": 1e-5, "at_most": 0.01, "neighbouring": "add-remove"}
OTHER_QUESTION = "which of two versions of a given person's record was used"


def asking(*limits: dict[str, Any], conditions: list[str] = ACCEPTED, **more: Any) -> Policy:
    return policy(*limits, accept_conditions=conditions, **more)


@pytest.fixture(scope="module")
def judged() -> Certificate:
    return of(RUN, *BOTH, policy=asking(RIGHT, EPSILON))


def test_a_number_that_is_low_enough_but_rests_on_what_nobody_checked_says_both(judged: Certificate) -> None:
    worst, stated, right, epsilon = (tuple(map(str, says)) for _, says in verdicts(judged))
    assert worst == ("The worst case was computed (question: used or not)",)
    assert stated == ("It is stated how many records a person has",)
    assert right[0] == "Right guess at most 65% (used or not)"
    assert re.fullmatch(r"Reached: [\d.]+%, low enough", right[1])
    assert right[2:] == ("But unchecked: see below",)
    assert epsilon[0] == "Epsilon at most 0.01 at delta 0.00001 (used or not)"
    assert epsilon[1].endswith(", too high")
    assert len(epsilon) == 2  # too high, checked or not
    assert (
        [met for met, _ in verdicts(judged)]
        == [one.passed for one in judged.requirements]
        == [True, True, False, False]
    )
    assert [(str(line), str(who)) for line, who in unchecked(judged)] == [
        ("No person contributed more records than is stated.", "only the issuer or the settings say so")
    ]


def test_the_page_and_its_sentences_to_copy_say_the_verdict(judged: Certificate, tmp_path: Path) -> None:
    ((question, share, _),) = unjudged(judged)
    page = page_of(public(judged))
    for text, times in (
        ("The issuer’s policy says: no", 2),
        ("<strong>MET:</strong>", 2),
        ("<strong>NOT MET:</strong>", 2),
        ("<strong>Must be checked:</strong> No person contributed more records than is stated.", 1),
        ("Of the points below, the policy asks for no other.", 1),
        ("<strong>Not judged by this policy: which of two versions", 1),
        (f"Points that it accepts without a check: {len(accepted(judged))}. Not judged by this policy: {question}", 1),
        (f"(at most {share}).", 2),
        ("Date of the certificate: 2026-11-22; no date of expiry was set. ", 1),
        ("not checked here", 0),
    ):
        assert page.count(text) == times, text
    until = judged.model_copy(update={"declared": DECLARED.model_copy(update={"expires": "2027-01-01"})})
    whole = signed(until, key_in(tmp_path))
    page = page_of(whole)
    assert "2026-11-22; do not rely on it from 2027-01-01 on. <!--signed-->It claims to be signed" in page
    assert f"check that with the key <code>{whole.signatures[0].keyid[:16]}…</code> before you rely on it." in page
    assert "(the signature is not checked here)" in page.partition("</header>")[0]
    assert "Nobody signed it" not in page


def test_a_verdict_that_was_turned_or_a_limit_that_was_moved_is_found(judged: Certificate) -> None:
    document = document_of(judged)
    turned = verify(resealed(forged(document, {"requirements.2.passed": True})))
    assert "requirements.2.passed" in [one.leaf for one in turned.differences]
    moved = verify(resealed(forged(document, {"policy.limits.1.at_most": 0.9})))
    assert not moved.accepted
    assert "policy.limits.1.at_most" in moved.declared


def test_a_number_that_is_low_enough_but_claimed_too_weakly_says_both() -> None:
    limit = {**RIGHT, "adversary": "relaxed", "at_most": 0.99, "parameters": {"dimension": 5}}
    weak = of(RUN, WorstCase(), Relaxed(5), policy=asking(limit))
    estimate = {"claim": "estimate", "conditions": []}
    records = [one.model_copy(update=estimate if one.adversary == "relaxed" else {}) for one in weak.assessments]
    *_, (_, said) = verdicts(weak.model_copy(update={"assessments": records}))
    assert str(said[1]).endswith("low enough")
    assert str(said[2]) == "The number alone is not enough: the claim is estimate, the policy wants bound"


def test_what_no_limit_judges_is_named_with_its_number(judged: Certificate) -> None:
    (value,) = [
        one.advantage.value
        for one in judged.assessments
        if (one.adversary, one.neighbouring) == ("worst-case", "replace")
    ]
    ((question, share, _),) = unjudged(judged)
    assert str(question) == OTHER_QUESTION
    assert value is not None
    assert float(share.digits) / 100 == pytest.approx(0.5 + value / 2, abs=1e-3)
    assert unjudged(of(RUN, *BOTH, policy=asking(RIGHT, {**RIGHT, "neighbouring": "replace"}))) == []
    plan = of(Gaussian(2.0))
    assert (verdicts(plan), unchecked(plan), unjudged(plan)) == ([], [], [])


def test_a_policy_that_judges_a_weaker_attacker_only_says_so() -> None:
    """The box said *yes*, and nothing of the worst case under the same question."""
    weaker = {"adversary": "relaxed", "at_most": 0.99, "claim": "conditional", "parameters": {"dimension": "any"}}
    asked = asking({**RIGHT, **weaker}, conditions=[*ALL, "fixed-length", "one-direction"])
    made = of(RUN, WorstCase(), Relaxed(5), policy=asked)
    page = page_of(made)
    assert "The issuer’s policy says: yes" in page
    ((question, share, is_weaker),) = unjudged(made)
    assert is_weaker
    said = f"Judged by this policy for a weaker attacker only: {question} (worst case: at most {share})."
    assert page.count(said) == 2  # in the box, and in the sentences to copy
    assert f"<details><summary>Accepted without a check: {len(accepted(made))} points</summary>" in page
    (weak,) = [one for one in made.assessments if one.adversary == "relaxed"]
    assert [line for line, _ in accepted(made)] == [one.known.says for one in weak.conditions if one.known.open]


def test_limits_of_every_kind_say_what_was_reached() -> None:
    asked = asking(
        {"measure": "bayes_security", "at_least": 0.1},
        {"measure": "bayes_security", "at_least": 0.999},
        {"measure": "advantage", "at_most": 0.001},
        {"measure": "tpr", "at": 0.01, "at_most": 0.5},
        {"measure": "tpr", "at": 0.02, "at_most": 0.5},
        {**RIGHT, "adversary": "attribute", "neighbouring": "replace"},
        conditions=ALL,
        ledger=True,
        relations=["add-remove"],
    )
    said = ["; ".join(map(str, says)) for _, says in verdicts(of(RUN, policy=asked))]
    assert "No training was recorded" in said
    for words in (
        "bayes_security at least 0.1 .*high enough",
        "bayes_security at least 0.999 .*too low",
        "advantage at most 0.001 .*too high",
        "50%.*1% false alarms.*low enough|1% false alarms.*50%.*low enough",
        "does not state it at fpr 0.02",
        "no such assessment of attribute",
    ):
        assert any(re.search(words, one) for one in said), words


def test_a_ledger_is_a_training_that_was_recorded() -> None:
    run = make_ledger()
    page = page_of(public(of(run.mechanism(), ledger=run, policy=asking(RIGHT, ledger=True))))
    assert "<strong>MET:</strong> The training was recorded." in page
    assert "the issuer’s own program; no outsider watched" in page
    assert page.count("This page prints it: 400") == 1


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ({}, None),
        ({"signature": True}, "with the issuer’s key: the signature."),
        ({"weights": True}, "with the file of the model: its fingerprint."),
        ({"weights_sha256": ["0" * 64]}, "with the file of the model: its fingerprint."),
        ({"max_age_days": 30}, "the date above is at most 30 days ago."),
    ],
)
def test_a_page_says_yes_only_if_what_it_cannot_judge_holds_too(wanted: dict[str, Any], sentence: str | None) -> None:
    page = page_of(of(RUN, *BOTH, policy=asking(RIGHT, conditions=ALL, **wanted)))
    assert ("says: yes, if what remains to be checked holds" in page) is (sentence is not None)
    assert ("says: yes</h2>" in page) is (sentence is None)
    assert page.count("Remains to be checked") == (sentence is not None)
    assert (sentence or "") in page


def test_the_command_writes_the_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = tmp_path / "policy.yaml"
    rules.write_text(
        "schema: reticent.policy/1\nper: record\nlimits: [{measure: advantage, at_most: 0.5}]\n"
        f"accept_conditions: [{', '.join(ACCEPTED)}]\n"
    )
    given = ["certify", "dpsgd", "--noise-multiplier", 9, "--sample-rate", 1, "--steps", 1, "--policy", rules]
    code, out, _ = run(capsys, *given, "--out", tmp_path / "out")
    assert code == 0
    assert "passed  worst-case: advantage at most 0.5" in out
    document = json.loads(run(capsys, *given, "--out", tmp_path / "made", "--json")[1])
    assert document["policy"]["limits"][0]["at_most"] == 0.5
    assert len(document["requirements"]) > 1
    made = rt.certify(rt.Gaussian(9.0), policy=rules).certificate
    assert made.policy is not None
    assert len(made.requirements) > 1
    rules.write_text("limits: 3\n")
    assert run(capsys, *given, "--out", tmp_path / "two")[0] == 2

"""What the sentences of a certificate say about conditions, draws and both questions."""

from __future__ import annotations

import re

import pytest

from reticent.adversaries import Membership, MembershipGame, Relaxed
from reticent.certificates.build import certify
from reticent.certificates.document.schema import Certificate, Declaration
from reticent.certificates.page.language import language_of
from reticent.certificates.page.page import render_html
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.mechanisms import DPSGD, Gaussian
from reticent.kernel.proofs import CONDITIONS
from reticent.mechanisms import Gradients
from tests.certificates.conftest import make_ledger

DECLARED = Declaration(subject="s", created="2026-01-01")
DRAWS = "This holds as long as nobody learns which records each step drew."
RUN = DPSGD(2.0, 0.25, 10, batch_size=5, num_parameters=8)


@pytest.fixture(scope="module")
def sampled() -> Certificate:
    who = (WorstCase(), Relaxed(5), Relaxed(5, gradients=Gradients.LINEAR_HEAD), MembershipGame())
    return certify(RUN, DECLARED, adversaries=who)


def test_the_headline_answers_both_questions_and_says_what_must_stay_hidden(sampled) -> None:
    assert re.match(
        r"Asked whether a given record was used, an attacker is right at most [\d.]+% of the time, "
        r"if both answers are equally likely beforehand\. Without the ",
        sampled.headline,
    )
    second = "Asked which of two possible records was used, an attacker is right at most "
    assert sampled.headline.count(second) == 1
    assert sampled.headline.count("Without the model: 50%.") == 2
    assert sampled.headline.endswith(DRAWS)
    assert "any attacker" not in sampled.headline


def test_nobody_has_to_hide_draws_that_are_not_there() -> None:
    assert DRAWS not in certify(Gaussian(4.0), DECLARED, adversaries=(WorstCase(),)).headline


@pytest.mark.parametrize("budget", [None, 0.5])
def test_the_headline_says_that_private_gradients_may_have_ended_the_training(budget: float | None) -> None:
    """Of two data sets that differ by the record that spends the budget, the number of steps shows which it was."""
    run = make_ledger(steps=2, sample_rate=1.0)
    asked = {"group": "age", "scope": "whole-data", "budget": budget}
    run = run.model_copy(update={"config": {**run.config, "sensitive": asked}}).sealed()
    found = certify(run.mechanism(), Declaration(subject="a run", created="2026-11-22"), ledger=run)
    assert ("only if no record decided when training ended" in found.headline) is (budget is not None)
    assert ("wenn kein Datensatz bestimmt hat" in render_html(found, language_of("de"))) is (budget is not None)


def test_a_sentence_says_what_the_attacker_does_not_know(sampled) -> None:
    (worst, *_) = (a for a in sampled.assessments if a.adversary == "worst-case")
    assert ", but not which records each step drew or the noise, can raise" in str(worst.sentence)


def test_a_conditional_number_is_followed_by_what_nobody_checked(sampled) -> None:
    fixed, head = (a for a in sampled.assessments if a.adversary == "relaxed")
    if fixed.claim == "bound":
        fixed, head = head, fixed
    assert fixed.claim == "conditional"
    assert str(fixed.sentence).endswith(f"Nobody checked what this needs: {CONDITIONS['fixed-length'].says}")
    assert head.claim == "bound"
    assert "Nobody checked" not in str(head.sentence)
    assert "in a space of 5 dimensions" in str(head.sentence)


def test_the_page_groups_conditions_by_who_vouches_and_marks_claims(sampled) -> None:
    page = render_html(sampled)
    assert page.index("Taken on trust: nobody checked this") < page.index("Declared: the issuer or the settings say so")
    for key in ("hidden-draws", "fixed-length", "linear-head", "poisson-draws"):
        assert str(CONDITIONS[key].says).split("'")[0] in page
    assert "proven if a condition holds" in page
    assert "proven limit on average" in page
    assert "relaxed head d=5" in page


def test_every_condition_of_a_number_is_explained_in_the_document(sampled) -> None:
    used = {one.key for record in sampled.assessments for one in record.conditions}
    assert used == set(sampled.conditions)
    for key, text in sampled.conditions.items():
        assert text.says == CONDITIONS[key].says


def test_membership_needs_what_the_worst_case_needs() -> None:
    worst, membership = certify(RUN, DECLARED, adversaries=(WorstCase(), Membership())).assessments
    assert worst.conditions == membership.conditions

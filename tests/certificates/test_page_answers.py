"""What an officer looks for first: who vouches, whether it is acceptable, whether anybody saw a run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reticent.adversaries import Membership, MembershipGame, Mixed, Relaxed
from reticent.certificates.build import certify, public
from reticent.certificates.document.policy import Policy
from reticent.certificates.document.schema import Certificate, Declaration
from reticent.certificates.page.answers import groups, place
from reticent.certificates.page.page import render_html
from reticent.certificates.verify import verify
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.mechanisms import DPSGD, Gaussian
from reticent.kernel.messages import said
from reticent.mechanisms import Laplace
from tests.cli.calling import run

DECLARED = Declaration(subject="s", created="2026-01-01")
DECLARED_OF_A_PLAN = ["public-divisor", "poisson-draws", "clipped", "planned-steps", "start-weights"]
POLICY = Policy.model_validate(
    {
        "schema": "reticent.policy/1",
        "per": "record",
        "accept_conditions": DECLARED_OF_A_PLAN,
        "limits": [{"measure": "advantage", "at_most": 0.3}, {"measure": "tpr", "at": 0.01, "at_most": 0.011}],
    }
)


@pytest.fixture(scope="module")
def judged() -> Certificate:
    who = (WorstCase(), Relaxed(5), Mixed(0.5, 5), Membership())
    return certify(DPSGD(2.0, 0.25, 10, batch_size=5), DECLARED, adversaries=who, policy=POLICY)


def test_each_limit_is_judged_and_the_public_page_says_so(judged: Certificate) -> None:
    assert [one.passed for one in judged.requirements] == [True, True, False]
    page = render_html(public(judged))
    assert "The issuer’s policy says: no" in page
    assert page.count("<strong>MET:</strong>") == 2
    assert page.count("<strong>NOT MET:</strong>") == 1


def test_a_verdict_that_was_turned_or_a_limit_that_was_moved_is_found(judged: Certificate) -> None:
    document = judged.model_dump(mode="json", by_alias=True)
    document["requirements"][2]["passed"] = True
    turned = verify(Certificate.parse(document))
    assert "requirements.2.passed" in [one.leaf for one in turned.differences]
    document["policy"]["limits"][1]["at_most"] = 0.9
    moved = verify(Certificate.parse(document))
    assert not moved.accepted
    assert "policy.limits.1.at_most" in moved.declared


def test_without_a_policy_nobody_is_said_to_have_decided() -> None:
    page = render_html(certify(Gaussian(2.0), DECLARED, adversaries=(WorstCase(),)))
    assert "No policy is part of this certificate" in page
    assert "policy says" not in page


def test_a_plan_carries_a_band_and_nobody_vouches(judged: Certificate) -> None:
    page = render_html(judged)
    assert "Plan: nobody saw a run." in page
    assert "Nobody: the document is not signed" in page


def test_a_question_that_nobody_can_answer_is_on_the_page_with_the_reason() -> None:
    sampled = certify(Laplace(3.0, sample_rate=0.5), DECLARED)
    assert {one.neighbouring for one in sampled.assessments} == {"add-remove"}
    reason = "no dominating pair is proven for sampled Laplace releases under replace"
    assert str(sampled.skipped["worst-case (replace)"]) == reason
    page = " ".join(render_html(sampled).split())
    asked = "Which of two possible records was used, say with and without a diagnosis?"
    assert f"<strong>Not answered: {asked}</strong> {reason}." in page
    assert verify(sampled).accepted
    assert verify(public(sampled)).accepted
    without = {name: why for name, why in sampled.skipped.items() if name != "worst-case (replace)"}
    for skipped in (without, sampled.skipped | {"worst-case (replace)": said("nobody asked")}):
        forged = verify(sampled.model_copy(update={"skipped": skipped}))
        assert any(one.leaf.startswith("skipped.worst-case (replace)") for one in forged.differences)
    answered = certify(Laplace(3.0), DECLARED)
    assert "worst-case (replace)" not in answered.skipped
    assert "Not answered:" not in render_html(answered)


def test_what_is_missing_is_said_so() -> None:
    """The page says in people's words what the command line says of an option."""
    plan = certify(DPSGD(2.0, 0.25, 8), DECLARED, adversaries=(WorstCase(), MembershipGame()))
    assert str(plan.skipped["membership-game"]).startswith("batch_size must be known for the membership game: ")
    assert "not stated: the (expected) records per batch." in render_html(plan)


def test_two_certificates_of_one_model_show_it_and_what_then_holds() -> None:
    """The fingerprint is under the title; one release is not counted twice, and one training has one description."""
    named = Declaration(subject="s", created="2026-01-01", weights_sha256="ab" * 32)
    page = render_html(certify(Gaussian(2.0), named, adversaries=(WorstCase(),)))
    assert f"<dt>Model</dt><dd>fingerprint <code>{'ab' * 8}…</code></dd>" in page.partition("</header>")[0]
    assert "is of the same model: risks do not add up" in page
    assert "go by the higher one until you know why. The lower one holds too, if what it rests on holds." in page
    nameless = render_html(certify(Gaussian(2.0), DECLARED, adversaries=(WorstCase(),)))
    assert "<dt>Model</dt><dd>not named</dd>" in nameless
    assert "with this fingerprint" not in nameless
    assert "Other certificates of the same model may exist" in nameless


def test_a_person_with_unknown_rows_is_a_stop_sign_before_the_table(judged: Certificate) -> None:
    page = render_html(judged)
    assert page.index("Stop: can one person have several records?") < page.index("<table")
    known = certify(DPSGD(4.0, 0.25, 10, records_per_user=1), DECLARED, adversaries=(WorstCase(),))
    assert "Stop:" not in render_html(known)


def test_who_repeats_another_has_no_row_and_keeps_an_entry(judged: Certificate) -> None:
    (group,) = groups(judged)
    assert [row.record.adversary for row in group.rows] == ["worst-case", "relaxed"]
    assert [str(row.like) for row in group.apart] == [
        "Lies between relaxed and worst-case",
        "Has the same numbers as worst-case",
    ]
    page = render_html(judged)
    for row in group.apart:
        assert f"<dt>{row.record.label}</dt>" in page


def test_dots_lie_between_half_and_certainty_and_estimates_differ_in_shape(judged: Certificate) -> None:
    assert place(0.5) < place(0.618) < place(1.0)
    page = render_html(judged)
    ends = [float(x) for x in re.findall(r'class="full" cx="([\d.]+)"', page)]
    assert ends == [groups(judged)[0].rows[0].dot]
    assert page.count('class="open" d="M') == 1  # the relaxed attacker: a condition that nobody checked


def test_the_command_writes_the_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from reticent.cli import main

    accepted = f"accept_conditions: [{', '.join(DECLARED_OF_A_PLAN)}]\n"
    limits = "schema: reticent.policy/1\nper: record\nlimits: [{measure: advantage, at_most: 0.5}]\n"
    (tmp_path / "policy.yaml").write_text(limits + accepted)
    given = ["dpsgd", "--noise-multiplier", "4", "--sample-rate", "0.1", "--steps", "5"]
    code, out, _ = run(capsys, "certify", *given, "--policy", tmp_path / "policy.yaml", "--out", tmp_path / "out")
    assert code == 0
    assert "passed  worst-case: advantage at most 0.5" in out
    (tmp_path / "policy.yaml").write_text("limits: 3\n")
    with pytest.raises(SystemExit, match="2"):
        main(["certify", *given, "--policy", str(tmp_path / "policy.yaml"), "--out", str(tmp_path / "two")])


def test_a_proof_that_ends_at_certainty_is_no_limit() -> None:
    nothing, hidden = (certify(Gaussian(noise), DECLARED, adversaries=(WorstCase(),)) for noise in (0.05, 2.0))
    (row,), (limited,) = (groups(one)[0].rows for one in (nothing, hidden))
    assert [str(one) for one in (*row.guesses, row.sure)] == ["no limit"] * 5
    assert (str(limited.guesses[0]), str(limited.sure)) == ("at most 59.9%", "proven limit")
    assert "at most 100%</td>" not in render_html(nothing)

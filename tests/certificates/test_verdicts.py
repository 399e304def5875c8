"""The policy in words, the foot of each sheet, and what else an officer reads without mathematics."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

import reticent
from reticent import facts
from reticent.adversaries import Membership, MembershipGame, Mixed, Relaxed
from reticent.certificates.build import certify, certify_run, public
from reticent.certificates.check import check
from reticent.certificates.document.derive import PRIVATE
from reticent.certificates.document.numbers import tables
from reticent.certificates.document.policy import Policy
from reticent.certificates.document.schema import Certificate, Declaration
from reticent.certificates.document.sentences import even_guess, percent
from reticent.certificates.document.signature import signed
from reticent.certificates.page import words
from reticent.certificates.page.page import render_html
from reticent.certificates.page.verdicts import accepted, unchecked, unjudged, verdicts
from reticent.certificates.page.words import glossary
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.mechanisms import DPSGD, MECHANISMS, Gaussian, Ledger
from reticent.kernel.mechanisms.units import Unit
from reticent.kernel.messages import Figure, Message
from reticent.kernel.pairs import Neighbouring
from reticent.mechanisms import FilteredGaussian, Guarantee, MatrixMechanism, RandomisedResponse, Selection
from reticent.pairs import Geometric
from reticent.signing.keys import load_private_key, write_key_pair
from tests.certificates.conftest import make_ledger
from tests.certificates.ledgers import poisson, secure_loop

DECLARED = Declaration(subject="s", created="2026-01-01")
ACCEPTED = ["public-divisor", "poisson-draws", "clipped", "planned-steps", "start-weights"]
BOTH = (WorstCase(), MembershipGame())
RUN = DPSGD(2.0, 0.25, 10, batch_size=5, num_parameters=8, records_per_user=1)


def of(*limits: dict[str, object], accepted: list[str] | None = None, **more: object) -> Policy:
    document = {
        "schema": "reticent.policy/1",
        "accept_conditions": ACCEPTED if accepted is None else accepted,
    }
    return Policy.model_validate({**document, "limits": list(limits), **more})


RIGHT = {"measure": "success", "at": 0.5, "at_most": 0.65, "neighbouring": "add-remove"}
EPSILON = {"measure": "epsilon", "at": 1e-5, "at_most": 0.01, "neighbouring": "add-remove"}


@pytest.fixture(scope="module")
def judged() -> Certificate:
    return certify(RUN, DECLARED, adversaries=BOTH, policy=of(RIGHT, EPSILON))


def test_a_number_that_is_low_enough_but_rests_on_what_nobody_checked_says_both(judged: Certificate) -> None:
    worst, stated, right, epsilon = (tuple(map(str, says)) for _, says in verdicts(judged))
    assert worst == ("The worst case was computed (question: used or not)",)
    assert stated == ("It is stated how many records a person has",)
    assert right[0] == "Right guess at most 65% (used or not)"
    assert re.fullmatch(r"Reached: [\d.]+%, low enough", right[1])
    assert epsilon[0] == "Epsilon at most 0.01 at delta 0.00001 (used or not)"
    assert epsilon[1].endswith(", too high")
    assert right[-1] == "But unchecked: see below"
    assert len(epsilon) == 2  # too high, checked or not
    assert [met for met, _ in verdicts(judged)] == [True, True, False, False]
    assert [(str(line), str(who)) for line, who in unchecked(judged)] == [
        ("No person contributed more records than is stated.", "only the issuer or the settings say so")
    ]


def test_a_number_that_is_low_enough_but_claimed_too_weakly_says_both() -> None:
    limit = {**RIGHT, "adversary": "relaxed", "at_most": 0.99, "parameters": {"dimension": 5}}
    weak = certify(RUN, DECLARED, adversaries=(WorstCase(), Relaxed(5)), policy=of(limit))
    records = [
        one.model_copy(update={"claim": "estimate", "conditions": []}) if one.adversary == "relaxed" else one
        for one in weak.assessments
    ]
    (said,) = [
        [*map(str, says)] for _, says in verdicts(weak.model_copy(update={"assessments": records})) if len(says) == 3
    ]
    assert said[1].endswith("low enough")
    assert said[2] == "The number alone is not enough: the claim is estimate, the policy wants bound"


def test_what_no_limit_judges_is_named_with_its_number(judged: Certificate) -> None:
    worst = {one.neighbouring: one for one in judged.assessments if one.adversary == "worst-case"}
    ((question, share, _),) = unjudged(judged)
    assert str(question) == "which of two versions of a given person's record was used"
    value = worst["replace"].advantage.value
    assert value is not None
    assert float(share.digits) / 100 == pytest.approx(0.5 + value / 2, abs=1e-3)
    every = of(RIGHT, {**RIGHT, "neighbouring": "replace"}, accepted=[*ACCEPTED, "records-per-person"])
    assert unjudged(certify(RUN, DECLARED, adversaries=BOTH, policy=every)) == []


def test_a_policy_that_judges_a_weaker_attacker_only_says_so() -> None:
    """The box said *yes*, and nothing of the worst case under the same question."""
    limit = {
        **RIGHT,
        "adversary": "relaxed",
        "at_most": 0.99,
        "claim": "conditional",
        "parameters": {"dimension": "any"},
    }
    conditions = [*ACCEPTED, "records-per-person", "fixed-length", "one-direction"]
    made = certify(RUN, DECLARED, adversaries=(WorstCase(), Relaxed(5)), policy=of(limit, accepted=conditions))
    page = " ".join(render_html(made).split())
    assert "The issuer’s policy says: yes" in page
    ((question, share, weaker),) = unjudged(made)
    assert weaker
    said = f"Judged by this policy for a weaker attacker only: {question} (worst case: at most {share})."
    assert html.unescape(page).count(said) == 2  # in the box, and in the sentences to copy
    assert "<strong>Accepted without a check:</strong>" in page
    (weak,) = [one for one in made.assessments if one.adversary == "relaxed"]
    assert [line for line, _ in accepted(made)] == [one.known.says for one in weak.conditions if one.known.open]


def test_a_usual_question_that_nobody_asked_is_named() -> None:
    """The page had nothing about two versions of a record, and did not say so."""
    alone = render_html(certify(RUN, DECLARED, adversaries=(WorstCase(),)))
    assert "<strong>Not asked: Which of two versions" in alone
    assert "Not asked:" not in render_html(certify(RUN, DECLARED, adversaries=BOTH))


def test_limits_of_every_kind_say_what_was_reached() -> None:
    limits = [
        {"measure": "bayes_security", "at_least": 0.1},
        {"measure": "advantage", "at_most": 0.001},
        {"measure": "tpr", "at": 0.02, "at_most": 0.5},
        {**RIGHT, "adversary": "attribute", "neighbouring": "replace"},
    ]
    policy = of(*limits, accepted=[*ACCEPTED, "records-per-person"], ledger=True, relations=["add-remove"])
    certificate = certify(RUN, DECLARED, adversaries=(WorstCase(),), policy=policy)
    said = ["; ".join(map(str, says)) for _, says in verdicts(certificate)]
    assert "No training was recorded" in said
    assert any("bayes_security at least 0.1" in one and "high enough" in one for one in said)
    assert any("advantage at most 0.001" in one and "too high" in one for one in said)
    assert any("does not state it at fpr 0.02" in one for one in said)
    assert any("no such assessment of attribute" in one for one in said)


def test_a_ledger_is_a_training_that_was_recorded() -> None:
    policy = of(RIGHT, ledger=True)
    seen, made = make_ledger(), Declaration(subject="s", created="2026-11-22")
    certificate = certify(seen.mechanism(), made, adversaries=(WorstCase(),), ledger=seen, policy=policy)
    page = render_html(public(certificate))
    assert "<strong>MET:</strong> The training was recorded." in page
    assert "the issuer’s own program; no outsider watched" in page
    assert page.count("This page prints it: 400.") == 1
    assert '<p class="note" id="size-treated-as-public">' in page


def test_a_page_without_a_policy_has_no_verdicts() -> None:
    plan = certify(Gaussian(2.0), DECLARED, adversaries=(WorstCase(),))
    assert (verdicts(plan), unchecked(plan), unjudged(plan)) == ([], [], [])


@pytest.mark.parametrize("subject", ["'; } </style><script>x</script>", "a} </style>\\"])
def test_the_foot_of_a_sheet_is_inert_whatever_the_subject(subject: str) -> None:
    declared = Declaration(subject=subject, created="2026-01-01", weights_sha256="ab" * 32)
    page = render_html(certify(Gaussian(2.0), declared, adversaries=(WorstCase(),)))
    style = page.partition("<style>")[2].partition("</style>")[0]
    (foot,) = re.findall(r'@bottom-left \{ content: "([^"]*)"; \}', style)
    assert re.fullmatch(r"([0-9A-Za-z]|\\[0-9a-f]{6})+", foot)
    shown = re.sub(r"\\([0-9a-f]{6})", lambda one: chr(int(one[1], 16)), foot)
    assert shown == f"{subject} · fingerprint of the model {'ab' * 8}…"
    assert page.count("<script") == 0


def test_an_attacker_of_whom_nothing_is_proven_says_whose_limit_it_has(judged: Certificate) -> None:
    page = " ".join(render_html(judged).split())
    assert (
        "If it is not, another one stands in its place: this is replacement. No limit of its own is proven; that of "
        "worst-case, who knows more, holds: at most" in page
    )
    assert "Knows both versions of this person&#39;s record and all others, but not which records" in page


def test_tables_have_the_blind_guess_and_no_row_for_who_repeats_another() -> None:
    who = (WorstCase(), Relaxed(5), Mixed(0.5, 5), Membership())
    found = {str(table.title): table for table in tables(certify(RUN, DECLARED, adversaries=who))}
    assert found["Right guess, by prior"].blind == (Figure("0.9"), Figure("0.5"))
    assert found["TPR, by FPR"].blind == (Figure("0.001"), Figure("0.01"), Figure("0.1"))
    assert found["TPR, by FPR"].columns == (Figure("0.1", "%"), Figure("1", "%"), Figure("10", "%"))
    assert found["PPV, at prior 1 in 10, by FPR"].blind == (Figure("0.1"),) * 3
    assert found["ε, by δ"].columns == (Figure("0.000001"), Figure("0.00001"))
    assert [name for name, _ in found["TPR, by FPR"].rows] == ["worst-case", "relaxed d=5", "mixed d=5"]


def test_columns_mean_what_the_question_asks(judged: Certificate) -> None:
    """Which of two versions of a record was used: then nobody is accused of being in the data."""
    page = render_html(judged)
    body = page.partition("<tbody>")[2].partition("</table>")[0]
    used, versions = body.split("(replace)")
    assert "if 1 in 10 is in the data" in used
    assert "share of insiders found" in used
    assert "Here, read “has the diagnosis” for “is in the data”." in used.rpartition("<tr")[2]
    assert "if 1 in 10 has the diagnosis" in versions
    assert "share of those with it who are found" in versions
    assert "in the data" not in versions
    assert "Coin flip" not in page
    assert "Right guess<small>both answers equally likely; without the model 50%" in page


def test_a_page_about_two_versions_alone_needs_no_other_reading() -> None:
    page = render_html(certify(RUN, DECLARED, adversaries=(WorstCase(),), neighbouring=Neighbouring.REPLACE))
    assert "Here, read" not in page
    assert "if 1 in 10 has the diagnosis" in page.partition("<thead>")[2].partition("</thead>")[0]


def explained(certificate: Certificate) -> list[str]:
    return [str(word) for word, _ in glossary(certificate)]


def test_words_are_explained_where_they_occur() -> None:
    plain = explained(certify(Gaussian(2.0), DECLARED, adversaries=(WorstCase(),)))
    assert not {"estimate", "dpsgd", "poisson", "add-remove, replace"} & set(plain)
    trained = explained(certify(RUN, DECLARED, adversaries=BOTH))
    assert {"clip norm, noise multiplier", "dpsgd", "poisson", "add-remove, replace"} <= set(trained)
    kinds = {"guarantee", "matrix", "randomised-response", "filtered-gaussian", "selection"}
    assert not kinds & (set(plain) | set(trained))
    for release in (Guarantee(1.0), MatrixMechanism(3.0, 4), RandomisedResponse(0.3), FilteredGaussian(0.1)):
        of_this_kind = explained(certify(release, DECLARED, adversaries=(WorstCase(),)))
        assert kinds & set(of_this_kind) == {release.name}
    best = Selection(Gaussian(3.0), Geometric(5))
    for release in (best, Ledger((Gaussian(2.0), best))):
        assert "selection" in explained(certify(release, DECLARED, adversaries=(WorstCase(),)))
    clients = explained(certify(DPSGD(2.0, 0.25, 8, unit=Unit.CLIENT), DECLARED, adversaries=(WorstCase(),)))
    assert [word for word in clients if word in ("client", "record")] == ["client"]


def test_every_kind_of_release_is_explained() -> None:
    assert all(kind.sentence == Message(f"mechanism.{name}") for name, kind in MECHANISMS.items())


def test_noise_that_was_checked_says_what_the_program_looked_at() -> None:
    made = Declaration(subject="s", created="2026-11-22")
    run = render_html(public(certify_run(make_ledger(), None, made)))
    assert "The noise came from the secure generator of the operating system, and no seed of it was kept." in run
    secure = render_html(reticent.certify(secure_loop(), subject="s").certificate)
    assert "When the loop ended, its optimizer took noise from a secure generator." in secure
    for page in (run, secure):
        line = page.partition("Nobody can predict or repeat the noise")[2]
        assert line.startswith("; its seed would reveal it. Looked at: the source only.")
    unseen = render_html(reticent.certify(poisson(), subject="s").certificate)
    assert "Nobody can predict or repeat the noise" in unseen
    assert "Looked at" not in unseen


def test_what_a_warning_denies_is_not_said_to_be_taken_on_trust() -> None:
    made = Declaration(subject="s", created="2026-11-22")
    kept = make_ledger()
    data = {"name": "own", "split_seed": 0, "table": {"derived": ["age"]}}
    read = kept.model_copy(update={"config": {**kept.config, "data": data}}).sealed()
    trusted = "scaled does not depend on these records."
    denied = f"{trusted} It does here: bounds or categories of some columns were read off them."
    for ledger, known in ((kept, False), (read, True)):
        document = public(certify_run(ledger, None, made))
        assert any(denied in line for line in check(document).reservations()) is known, "what gate and verify print"
        page = render_html(document)
        assert trusted in page
        assert (denied in page) is known
        quoted = page.partition("Sentences for an impact assessment")[2].partition("</p>")[0]
        assert (str(facts.SCHEMA_FROM_RECORDS.of_ours().text) in quoted) is known
        assert str(facts.SIZE_PUBLIC.reason) not in quoted


def test_sentences_for_an_assessment_are_there_only_where_something_is_proven() -> None:
    page = render_html(certify(RUN, DECLARED, adversaries=BOTH))
    assert "Sentences for an impact assessment" in page
    nothing = certify(Gaussian(0.01), DECLARED, adversaries=(WorstCase(),), neighbouring=Neighbouring.ADD_REMOVE)
    assert "Sentences for an impact assessment" not in render_html(nothing)


def sentences_in(page: str) -> str:
    return " ".join(
        re.sub("<[^>]*>", "", page.partition("Sentences for an impact assessment")[2].partition("</p>")[0]).split()
    )


def test_sentences_for_an_assessment_say_all_that_the_page_says(judged: Certificate) -> None:
    who = (*BOTH, Relaxed(5))
    plan = certify(RUN, DECLARED, adversaries=who)
    said = sentences_in(render_html(plan))
    assert said.startswith("“Plan only: no training has been seen. Asked whether")
    assert "Asked which of two versions" in said
    assert "as long as nobody learns which records each step drew." in said
    assert "each person contributed one record." in said
    assert said.endswith("Nobody signed it.”")
    listed = {status.value: len(lines) for status, lines in words.conditions(plan).items()}
    assert listed == {"assumed": 7, "declared": 5}
    assert (
        "7 points on trust, 5 only declared by the issuer or the settings, 0 checked by the issuer’s own program."
        in said
    )
    said = sentences_in(render_html(judged))
    ((question, share, _),) = unjudged(judged)
    assert len(accepted(judged)) > 1
    told = f"Points that it accepts without a check: {len(accepted(judged))}."
    unsaid = f"Not judged by this policy: {question} (at most {share})."
    assert f"The issuer’s policy says: no. {told} {unsaid}" in html.unescape(said)
    assert "Date of the certificate: 2026-01-01; no date of expiry was set. Nobody signed it." in said


def test_sentences_for_an_assessment_name_the_signature_and_the_expiry(judged: Certificate, tmp_path: Path) -> None:
    write_key_pair(tmp_path / "key", tmp_path / "key.pub")
    until = DECLARED.model_copy(update={"expires": "2027-01-01"})
    whole = signed(judged.model_copy(update={"declared": until}), load_private_key(tmp_path / "key"))
    page = render_html(whole)
    said, key = sentences_in(page), whole.signatures[0].keyid[:16]
    assert "Date of the certificate: 2026-01-01; do not rely on it from 2027-01-01 on. It claims to be signed" in said
    assert said.endswith(f"check that with the key {key}… before you rely on it.”")
    assert "Nobody signed it" not in said
    assert "(the signature is not checked here)" in page.partition("</header>")[0]
    assert "not checked here" not in render_html(judged)


def test_a_point_that_must_be_checked_is_told_from_those_that_the_policy_accepts(judged: Certificate) -> None:
    page = " ".join(render_html(judged).split())
    point = "No person contributed more records than is stated."
    assert f"<strong>Must be checked:</strong> {point}" in page
    assert page.count("Of the points below, the policy asks for no other.") == 1
    assert "<strong>Not judged by this policy: which of two versions" in page


def test_the_headline_says_whose_word_one_record_each_is() -> None:
    page = render_html(certify(RUN, DECLARED, adversaries=BOTH))
    top = page.partition("<table")[0]
    assert "The issuer declares: each person contributed one record. Nobody checked that." in top
    unknown = render_html(certify(Gaussian(2.0), DECLARED, adversaries=(WorstCase(),)))
    assert "Nobody checked that." not in unknown


def test_a_plan_that_prints_how_many_records_there_are_says_so() -> None:
    plan = DPSGD(2.0, 0.25, 10, batch_size=5, dataset_size=20)
    assert "This page prints it: 20." in render_html(certify(plan, DECLARED, adversaries=(WorstCase(),)))
    assert "This page prints it" not in render_html(certify(RUN, DECLARED, adversaries=(WorstCase(),)))


def test_a_field_of_two_values_has_the_limit_of_replacement() -> None:
    given = certify(RUN, DECLARED, adversaries=BOTH)
    private = given.model_copy(update={"skipped": {"attribute": PRIVATE}})
    worst = {one.neighbouring: one for one in given.assessments if one.adversary == "worst-case"}
    share = percent(even_guess(worst["replace"]), up=True)
    assert f"two equally likely values the limit is {share};" in render_html(private)
    alone = certify(RUN, DECLARED, adversaries=(WorstCase(),), neighbouring=Neighbouring.ADD_REMOVE)
    page = render_html(alone.model_copy(update={"skipped": {"attribute": PRIVATE}}))
    assert "This page says nothing about that risk." in page


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ({"signature": True}, "with the issuer’s key: the signature."),
        ({"weights": True}, "with the file of the model: its fingerprint."),
        ({"weights_sha256": ["0" * 64]}, "with the file of the model: its fingerprint."),
        ({"max_age_days": 30}, "the date above is at most 30 days ago."),
    ],
)
def test_a_page_says_yes_only_if_what_it_cannot_judge_holds_too(wanted: dict[str, object], sentence: str) -> None:
    every = of(RIGHT, accepted=[*ACCEPTED, "records-per-person"], **wanted)
    page = render_html(certify(RUN, DECLARED, adversaries=BOTH, policy=every))
    assert "says: yes, if what remains to be checked holds" in page
    assert page.count("Remains to be checked") == 1
    assert sentence in page


def test_a_page_that_judges_the_whole_policy_says_yes() -> None:
    page = render_html(
        certify(RUN, DECLARED, adversaries=BOTH, policy=of(RIGHT, accepted=[*ACCEPTED, "records-per-person"]))
    )
    assert "says: yes</h2>" in page
    assert "Remains to be checked" not in page

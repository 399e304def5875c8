"""What a certificate says in words and tables: never more than is proven, about a person only where it covers one."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal

import pytest

from reticent.adversaries import Membership, MembershipGame, Mixed, Relaxed
from reticent.adversaries.report import Number
from reticent.certificates.build import CERTIFICATE_QUESTIONS
from reticent.certificates.document.numbers import further, repeats, tables
from reticent.certificates.document.schema import Certificate
from reticent.certificates.document.sentences import above_blind, even_guess, headline, limited, percent, persons
from reticent.certificates.page import words
from reticent.certificates.verify import verify
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.mechanisms import DPSGD, Gaussian
from reticent.kernel.messages import Figure, Message
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import CONDITIONS
from reticent.mechanisms import Gradients
from tests.certificates.conftest import make_ledger
from tests.certificates.making import of, page_of, small_certificate, with_first

DRAWS = "This holds as long as nobody learns which records each step drew."
NOTHING = "Nothing is proven that keeps an attacker from being all but certain"
RUN = DPSGD(2.0, 0.25, 10, batch_size=5, num_parameters=8)


@pytest.fixture(scope="module")
def sampled() -> Certificate:
    return of(RUN, WorstCase(), Relaxed(5), Relaxed(5, gradients=Gradients.LINEAR_HEAD), MembershipGame())


def test_the_headline_answers_both_questions_and_says_what_must_stay_hidden(sampled: Certificate) -> None:
    assert re.match(
        r"Asked whether a given record was used, an attacker is right at most [\d.]+% of the time, "
        r"if both answers are equally likely beforehand\. Without the ",
        sampled.headline,
    )
    second = "Asked which of two possible records was used, an attacker is right at most "
    assert sampled.headline.count(second) == 1
    assert sampled.headline.count("Without the model: 50%.") == 2
    assert sampled.headline.endswith(DRAWS)
    assert DRAWS not in of(Gaussian(4.0)).headline


@pytest.mark.parametrize("budget", [None, 0.5])
def test_the_headline_says_that_private_gradients_may_have_ended_the_training(budget: float | None) -> None:
    """Of two data sets that differ by the record that spends the budget, the number of steps shows which it was."""
    run = make_ledger(steps=2, sample_rate=1.0)
    asked = {"group": "age", "scope": "whole-data", "budget": budget}
    run = run.model_copy(update={"config": {**run.config, "sensitive": asked}}).sealed()
    found = of(run.mechanism(), ledger=run)
    assert ("only if no record decided when training ended" in found.headline) is (budget is not None)
    assert ("wenn kein Datensatz beeinflusst hat" in page_of(found, "de")) is (budget is not None)


@pytest.mark.parametrize(
    ("value", "lower", "said"),
    [
        (0.140402, 0.1404, "right at most 57.1% of the time"),  # 57.0201%
        (0.5, 0.1, "right at most 75% of the time"),  # the enclosure of a chosen method can be wide
        (None, 0.0, NOTHING),
        (1.0, 0.5, NOTHING),
        (1.0, 0.99, NOTHING),
    ],
)
def test_a_headline_claims_no_more_than_is_proven(value: float | None, lower: float, said: str) -> None:
    first, *_ = with_first(small_certificate(), advantage=Number(value=value, lower=lower, upper=value)).assessments
    assert said in str(headline([first]))
    assert even_guess(first) == pytest.approx(0.5 + 0.5 * (1.0 if value is None else value), rel=1e-12, abs=0)
    some = small_certificate().assessments[0]
    assert limited([first]) is (said != NOTHING)
    assert limited([some, first])
    assert limited([first, some])


def test_a_sentence_says_what_nobody_knows_or_checked_and_conditions_are_explained(sampled: Certificate) -> None:
    assert ", but not which records each step drew or the noise, can raise" in str(sampled.assessments[0].sentence)
    relaxed = {one.claim: str(one.sentence) for one in sampled.assessments if one.adversary == "relaxed"}
    assert relaxed["conditional"].endswith(f"Nobody checked what this needs: {CONDITIONS['fixed-length'].says}")
    assert "in a space of 5 dimensions" in relaxed["bound"]
    assert "Nobody checked" not in relaxed["bound"]
    used = {one.key for record in sampled.assessments for one in record.conditions}
    assert {key: text.says for key, text in sampled.conditions.items()} == {key: CONDITIONS[key].says for key in used}
    worst, membership = of(RUN, WorstCase(), Membership()).assessments
    assert worst.conditions == membership.conditions


def test_the_sentence_is_never_stronger_than_the_number(certificate: Certificate) -> None:
    for one in certificate.assessments:
        stated = re.search(r"to (?:at most|about) ([\d.]+)%", str(one.sentence))
        assert stated is not None
        assert float(stated[1]) / 100 >= one.success_at_prior["0.5"].value - 1e-9


@pytest.mark.parametrize(
    ("records", "asked", "told"),
    [
        (
            None,
            "ther (a given|this) record was used",
            ("Nothing is stated about how many", "Was this record used at all?"),
        ),
        (1, "person's record was used", ("contributed one record.", "contributed more than 1 record")),
        (3, "person's records were used", ("at most 3 records.", "contributed more than 3 records")),
    ],
)
def test_what_covers_a_person_says_so(records: int | None, asked: str, told: tuple[str, ...]) -> None:
    found = of(DPSGD(2.0, 0.2, 2, records_per_user=records), neighbouring=Neighbouring.ADD_REMOVE)
    for said in (found.headline, *(str(one.sentence) for one in found.assessments)):
        assert re.search(asked, said)
        assert ("person" in said) is (records is not None)
    assert [one for one in told if one not in page_of(found)] == []


def test_whom_several_parts_cover_together() -> None:
    assert persons({"kind": "ledger", "parts": [{"records_per_user": 2}, {"records_per_user": 2}]}) == 2
    assert persons({"kind": "ledger", "parts": [{"records_per_user": 1}, {"kind": "gaussian"}]}) is None
    assert str(Message("knows.all").about("persons")) == "this person's records and all others"
    assert str(Message("infers.in-data").about("persons")) == "whether this person's records are in the training data"


def test_a_question_stays_where_the_attacker_who_asked_it_cannot_be_answered() -> None:
    found = of(DPSGD(2.0, 0.2, 2), WorstCase(), MembershipGame())
    assert "membership-game" in found.skipped
    assert [one.neighbouring for one in found.assessments] == ["add-remove", "replace"]
    assert "hich of two possible records was used" in found.headline
    assert "which of two possible records was used" in str(found.assessments[1].sentence)
    assert verify(found).accepted


@pytest.mark.parametrize(
    ("x", "up", "shown"),
    [
        (0.5, True, "50%"),
        (0.52301, True, "52.4%"),
        (0.523, True, "52.3%"),
        (0.99999, True, "100%"),
        (0.52349, False, "52.3%"),
    ],
)
def test_percentages_of_bounds_are_rounded_up(x: float, up: bool, shown: str) -> None:
    assert str(percent(x, up=up)) == shown


@pytest.mark.parametrize(
    ("blind", "share", "shown"),
    [
        (0.9, 0.9, "90%"),
        (0.9, 0.90000001, "90.000001%"),
        (0.9, 0.900000011, "90.000002%"),
        (0.9, 0.90000413, "90.0005%"),
        (0.9, 0.9042, "90.5%"),
        (1.0 - 0.07, 0.93000001, "93.000001%"),
        (0.01, 0.010000001, "1.0000001%"),
        (0.999, 1.0, "100%"),
    ],
)
def test_a_small_gain_over_the_blind_guess_is_shown_small_and_never_too_small(
    blind: float, share: float, shown: str
) -> None:
    assert str(above_blind(blind, share)) == shown
    assert Decimal(shown.rstrip("%")) / 100 >= Decimal(repr(share))


def test_tables_round_a_security_down_and_show_a_wide_enclosure() -> None:
    wide = Number(value=0.123456, lower=0.1, upper=0.123456)
    security = Number(value=0.876549, lower=0.876549, upper=0.876549)
    whole, *_ = tables(with_first(small_certificate(), advantage=wide, bayes_security=security))
    assert [str(cell) for cell in whole.rows[0][1][:2]] == ["0.1235 [0.1, 0.1235]", "0.8765"]
    record = small_certificate().assessments[0]
    assert repeats(record, record)
    assert not repeats(record, record.model_copy(update={"claim": "conditional"}))


def test_tables_have_the_blind_guess_and_no_row_for_who_repeats_another() -> None:
    who = (WorstCase(), Relaxed(5), Mixed(0.5, 5), Membership())
    found = {str(table.title): table for table in tables(of(replace(RUN, records_per_user=1), *who))}
    assert found["Right guess, by prior"].blind == (Figure("0.9"), Figure("0.5"))
    assert found["TPR, by FPR"].blind == (Figure("0.001"), Figure("0.01"), Figure("0.1"))
    assert found["TPR, by FPR"].columns == (Figure("0.1", "%"), Figure("1", "%"), Figure("10", "%"))
    assert found["PPV, at prior 1 in 10, by FPR"].blind == (Figure("0.1"),) * 3
    assert found["ε, by δ"].columns == (Figure("0.000001"), Figure("0.00001"))
    assert [str(name) for (name,), _ in found["TPR, by FPR"].rows] == ["worst-case", "relaxed d=5", "mixed d=5"]


def test_a_secret_of_which_nothing_is_proven_may_be_known_and_its_points_are_counted() -> None:
    asked = replace(CERTIFICATE_QUESTIONS, secret_bits=(13.29,), guesses=(10,))
    plan = of(DPSGD(3.0, 1.0, 8), Relaxed(8), WorstCase(), questions=asked)
    unknown = Number(value=None, lower=None, upper=None)
    stated = plan.assessments[0].secret_at_bits_and_guesses
    none = {bits: dict.fromkeys(at, unknown) for bits, at in stated.items()}
    found = further(with_first(plan, secret_at_bits_and_guesses=none))["secret"]
    assert str(found.rows[0][1][-1]) == "at most 100%"
    listed = dict(line for lines in words.every_condition(plan).values() for line in lines)
    assert [str(name) for name in listed[CONDITIONS["fixed-length"].says]] == ["relaxed d=8"]
    assert listed[CONDITIONS["clipped"].says] == ()
    secret = sum(map(len, words.needed(plan, "secret").values()))
    assert secret > 0
    assert sum(words.counts(plan).values()) == len(listed) + secret

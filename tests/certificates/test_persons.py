"""Sentences speak about a person where the stated records cover that person, and about a record elsewhere."""

from __future__ import annotations

import json
import re

import pytest

from reticent.adversaries import MembershipGame
from reticent.certificates.build import certify
from reticent.certificates.document.schema import Certificate, Declaration, content_hash
from reticent.certificates.document.sentences import persons
from reticent.certificates.page.page import render_html
from reticent.certificates.verify import verify
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.mechanisms import DPSGD
from reticent.kernel.messages import Message
from reticent.kernel.pairs import Neighbouring

DECLARED = Declaration(subject="an example", created="2026-01-01")


def of(records: int | None) -> Certificate:
    run = DPSGD(2.0, 0.2, 2, records_per_user=records)
    return certify(run, DECLARED, adversaries=[WorstCase()], neighbouring=Neighbouring.ADD_REMOVE)


def said(certificate: Certificate) -> str:
    return certificate.headline + " ".join(str(record.sentence) for record in certificate.assessments)


def test_nothing_stated_is_about_a_record() -> None:
    certificate = of(None)
    assert "person" not in said(certificate)
    assert "hether a given record was used" in certificate.headline
    page = render_html(certificate)
    assert "Nothing is stated about how many records a person contributed" in page
    assert "Was this record used at all?" in page


@pytest.mark.parametrize(("records", "words"), [(1, "person's record was used"), (3, "person's records were used")])
def test_what_covers_a_person_says_so(records: int, words: str) -> None:
    certificate = of(records)
    assert words in certificate.headline
    assert all(words in str(record.sentence) for record in certificate.assessments)
    page = render_html(certificate)
    assert "one record." in page if records == 1 else "at most 3 records." in page
    assert re.search(rf"contributed more than {records} record", page)


@pytest.mark.parametrize("records", [None, 4])
def test_a_question_stays_where_the_attacker_who_asked_it_cannot_be_answered(records: int | None) -> None:
    found = certify(DPSGD(2.0, 0.2, 2, records_per_user=records), DECLARED, adversaries=[WorstCase(), MembershipGame()])
    assert "membership-game" in found.skipped
    assert [one.neighbouring for one in found.assessments] == ["add-remove", "replace"]
    assert "hich of two" in found.headline
    assert verify(found).accepted


def test_a_document_that_claims_more_records_is_rejected() -> None:
    certificate = of(2)
    assert verify(certificate).accepted
    forged = json.loads(certificate.to_json())
    forged["mechanism"]["records_per_user"] = 5
    draft = Certificate.parse(forged)
    assert not verify(draft.model_copy(update={"content_sha256": content_hash(draft)})).accepted


def test_words_of_every_attacker() -> None:
    assert str(Message("knows.all").about("persons")) == "this person's records and all others"
    assert str(Message("infers.in-data").about("persons")) == "whether this person's records are in the training data"
    assert persons({"kind": "ledger", "parts": [{"records_per_user": 2}, {"records_per_user": 2}]}) == 2
    assert persons({"kind": "ledger", "parts": [{"records_per_user": 1}, {"kind": "gaussian"}]}) is None

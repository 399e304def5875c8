"""More that was planted and not seen, between facts, claims and verdicts. Each test fails on the bug that it is for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from reticent.adversaries import Relaxed, WorstCase
from reticent.adversaries.relaxed.dimension import DirectionLaw
from reticent.certificates.build import certify, certify_watched, public
from reticent.certificates.check import check
from reticent.certificates.ledger_rules import contradictions
from reticent.certificates.schema import Certificate, Declaration
from reticent.certificates.sentences import even_guess, headline, limited
from reticent.certificates.signature import signed, write_key_pair
from reticent.mechanisms import DPSGD
from reticent.risk.report import Number
from reticent.signing.keys import load_private_key
from tests.certificates.conftest import make_ledger
from tests.certificates.forging import document_of, refused, set_at, small_certificate
from tests.certificates.ledgers import poisson, shuffled


def test_a_model_is_not_the_one_of_a_certificate_that_names_none(tmp_path: Path) -> None:
    (tmp_path / "weights").write_bytes(b"1")
    found = check(small_certificate(), weights=tmp_path / "weights")
    assert found.problems == ("the certificate names no model",)
    assert not found.accepted


def test_no_public_document_holds_what_rests_on_private_data(certificate: Certificate) -> None:
    """A forger moves the assessment of the complete document into the public one."""
    shown = document_of(public(certificate))
    assert not refused(shown)
    (private,) = [one for one in document_of(certificate)["assessments"] if one["do_not_publish"]]
    place = [one["neighbouring"] for one in shown["assessments"]].index(private["neighbouring"])
    for at in range(place, len(shown["assessments"]) + 1):
        for still in (True, False):
            forged = document_of(public(certificate))
            forged["assessments"].insert(at, {**private, "do_not_publish": still})
            del forged["skipped"][private["adversary"]]
            assert refused(forged)


def test_a_public_document_that_is_made_public_again_is_not_signed(certificate: Certificate, tmp_path: Path) -> None:
    write_key_pair(tmp_path / "key", tmp_path / "key.pub")
    shown = signed(public(certificate), load_private_key(tmp_path / "key"))
    assert shown.signatures
    assert public(shown).signatures == ()


def test_yes_and_one_are_two_values() -> None:
    document = document_of(certify_watched(shuffled(records_per_user=None)))
    assert not refused(document)
    assert document["ledger"]["sampler"]["drop_last"] is False
    set_at("ledger.sampler.drop_last", 0)(document)
    assert refused(document)


@pytest.mark.parametrize("ledger", [make_ledger(), poisson()], ids=["run", "watch"])
@pytest.mark.parametrize(("ran", "fits"), [("2026-11-22T23:30:00-05:00", False), ("2026-11-23T01:00:00+14:00", True)])
def test_days_are_compared_where_it_is_the_same_time(ledger, ran: str, fits: bool) -> None:
    """Half past eleven at night in New York is the next day."""
    run = ledger.model_copy(update={"created": ran}).sealed()
    found = [leaf for leaf, _ in contradictions(run, Declaration(subject="s", created="2026-11-22"))]
    assert ("created" not in found) == fits


def test_a_guess_is_that_of_the_claim_and_not_of_what_is_reached() -> None:
    """The enclosure of a chosen method can be wide: the headline has its claimed end."""
    record = small_certificate().assessments[0]
    wide = record.model_copy(update={"advantage": Number(value=0.5, lower=0.1, upper=0.5)})
    assert even_guess(wide) == pytest.approx(0.75, rel=1e-12, abs=0)
    assert "right at most 75% of the time" in headline([wide])


def test_measurements_that_nobody_derived_are_named() -> None:
    declared = Declaration(subject="a plan", created="2026-11-22")
    law = DirectionLaw(np.eye(8), public=True)
    found = check(certify(DPSGD(3.0, 0.2, 8), declared, adversaries=[Relaxed(directions=law), WorstCase()]))
    told = [one for one in found.reservations() if "measurements of public records" in one]
    assert [one.endswith("nobody derived: relaxed (add-remove).") for one in told] == [True]


@pytest.mark.parametrize(
    ("value", "lower", "said"),
    [
        (0.140402, 0.1404, "right at most 57.1% of the time"),  # 57.0201%
        (None, 0.0, "Nothing is proven that keeps an attacker from being all but certain"),
        (1.0, 0.5, "Nothing is proven that keeps an attacker from being all but certain"),
        (1.0, 0.99, "An attacker can become all but certain"),
    ],
)
def test_a_headline_claims_no_more_than_is_proven(value: float | None, lower: float, said: str) -> None:
    record = small_certificate().assessments[0]
    known = record.model_copy(update={"advantage": Number(value=value, lower=lower, upper=value)})
    assert said in headline([known])


def test_one_answer_with_a_limit_is_enough_to_say_what_it_rests_on() -> None:
    record = small_certificate().assessments[0]
    none = record.model_copy(update={"advantage": Number(value=1.0, lower=0.0, upper=1.0)})
    assert limited([record, none])
    assert limited([none, record])
    assert not limited([none])

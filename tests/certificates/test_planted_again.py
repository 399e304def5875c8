"""More that was planted and not seen, between facts, claims and verdicts. Each test fails on the bug that it is for."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import reticent as rt
from reticent.adversaries import FinalModel, Relaxed
from reticent.adversaries.relaxed.dimension import DirectionLaw
from reticent.adversaries.report import Number
from reticent.auditing import Ranks, Scores
from reticent.auditing.claims import TangentTable
from reticent.auditing.normal_scores import normal_scores_power
from reticent.auditing.planning import rank_power
from reticent.auditing.scores import Design
from reticent.auditing.thresholds import ALL_RANKS
from reticent.auditing.verdict import Finding
from reticent.certificates.build import CERTIFICATE_QUESTIONS, certify, certify_run, public
from reticent.certificates.check import check
from reticent.certificates.document.derive import derive
from reticent.certificates.document.inputs import inputs_of
from reticent.certificates.document.ledger_rules import contradictions
from reticent.certificates.document.numbers import repeats, secrets, tables
from reticent.certificates.document.policy import Policy
from reticent.certificates.document.requirements import judged
from reticent.certificates.document.schema import Certificate, CitedRelease, Declaration
from reticent.certificates.document.sentences import even_guess, headline, limited
from reticent.certificates.document.signature import signed
from reticent.certificates.page import audit_page, words
from reticent.certificates.page.audit_power import POWER, detectable
from reticent.certificates.page.facts import facts, unsupported
from reticent.certificates.verify import verify
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.curves import GaussianTradeOff
from reticent.kernel.mechanisms import DPSGD, Gaussian, Ledger
from reticent.kernel.proofs import CONDITIONS
from reticent.records.ledger import RunLedger
from reticent.signing.keys import load_private_key, write_key_pair
from tests.certificates.conftest import make_ledger
from tests.certificates.forging import document_of, refused, resealed, set_at, small_certificate
from tests.certificates.ledgers import poisson, shuffled
from tests.cli.calling import run


def test_a_model_is_not_the_one_of_a_certificate_that_names_none(tmp_path: Path) -> None:
    (tmp_path / "weights").write_bytes(b"1")
    found = check(small_certificate(), weights=tmp_path / "weights")
    assert found.problems == ("the certificate names no model",)
    assert not found.accepted


def test_no_public_document_holds_what_rests_on_private_data(certificate: Certificate) -> None:
    """A forger puts the assessment of the complete document into the public one, and derives the rest."""
    forged = document_of(public(certificate))
    (private,) = [one for one in document_of(certificate)["assessments"] if one["do_not_publish"]]
    forged["assessments"].append(private)
    del forged["skipped"][private["adversary"]]
    derived = derive(inputs_of(resealed(forged)))
    assert private["adversary"] not in {one.adversary for one in derived.assessments}
    assert not verify(resealed(forged)).accepted


def test_a_public_document_that_is_made_public_again_is_not_signed(certificate: Certificate, tmp_path: Path) -> None:
    write_key_pair(tmp_path / "key", tmp_path / "key.pub")
    shown = signed(public(certificate), load_private_key(tmp_path / "key"))
    assert shown.signatures
    assert public(shown).signatures == ()


def test_yes_and_one_are_two_values() -> None:
    document = document_of(certify_run(shuffled(records_per_user=None)))
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
    assert "right at most 75% of the time" in str(headline([wide]))


def test_measurements_that_nobody_derived_are_named() -> None:
    declared = Declaration(subject="a plan", created="2026-11-22")
    law = DirectionLaw(0.8 * np.eye(8) + 0.2, public=True)
    found = check(certify(DPSGD(3.0, 0.2, 8), declared, adversaries=[Relaxed(directions=law), WorstCase()]))
    told = [one for one in found.reservations() if "measurements of public records" in one]
    assert [one.endswith("nobody derived: relaxed (add-remove).") for one in told] == [True]


@pytest.mark.parametrize(
    ("value", "lower", "said"),
    [
        (0.140402, 0.1404, "right at most 57.1% of the time"),  # 57.0201%
        (None, 0.0, "Nothing is proven that keeps an attacker from being all but certain"),
        (1.0, 0.5, "Nothing is proven that keeps an attacker from being all but certain"),
        (1.0, 0.99, "Nothing is proven that keeps an attacker from being all but certain"),
    ],
)
def test_a_headline_claims_no_more_than_is_proven(value: float | None, lower: float, said: str) -> None:
    record = small_certificate().assessments[0]
    known = record.model_copy(update={"advantage": Number(value=value, lower=lower, upper=value)})
    assert said in str(headline([known]))


def test_one_answer_with_a_limit_is_enough_to_say_what_it_rests_on() -> None:
    record = small_certificate().assessments[0]
    none = record.model_copy(update={"advantage": Number(value=1.0, lower=0.0, upper=1.0)})
    assert limited([record, none])
    assert limited([none, record])
    assert not limited([none])


def with_first(certificate: Certificate, **changes: object) -> Certificate:
    first, *others = certificate.assessments
    return certificate.model_copy(update={"assessments": [first.model_copy(update=changes), *others]})


def test_tables_round_a_security_down_and_show_a_wide_enclosure() -> None:
    made = with_first(
        small_certificate(),
        advantage=Number(value=0.123456, lower=0.1, upper=0.123456),
        bayes_security=Number(value=0.876549, lower=0.876549, upper=0.876549),
    )
    (whole,) = [one for one in tables(made) if one.title.key == "table.whole"]
    assert [str(cell) for cell in whole.rows[0][1][:2]] == ["0.1235 [0.1, 0.1235]", "0.8765"]


def test_attackers_with_one_curve_and_two_claims_have_two_rows() -> None:
    record = small_certificate().assessments[0]
    assert repeats(record, record)
    assert not repeats(record, record.model_copy(update={"claim": "conditional"}))


@pytest.fixture(scope="module")
def plan() -> Certificate:
    asked = replace(CERTIFICATE_QUESTIONS, secret_bits=(13.29,), guesses=(10,))
    declared = Declaration(subject="a plan", created="2026-11-22")
    return certify(DPSGD(3.0, 1.0, 8), declared, adversaries=[Relaxed(8), WorstCase()], questions=asked)


def test_a_secret_of_which_nothing_is_proven_may_be_known(plan: Certificate) -> None:
    first = plan.assessments[0]
    unknown = Number(value=None, lower=None, upper=None)
    none = {bits: dict.fromkeys(at, unknown) for bits, at in first.secret_at_bits_and_guesses.items()}
    found = secrets(with_first(plan, secret_at_bits_and_guesses=none))
    assert found is not None
    assert str(found.rows[0][1][-1]) == "at most 100%"


def test_a_point_names_who_needs_it_and_all_points_are_counted(plan: Certificate) -> None:
    listed = dict(line for lines in words.conditions(plan).values() for line in lines)
    assert listed[CONDITIONS["fixed-length"].says] == "relaxed d=8"
    assert listed[CONDITIONS["clipped"].says] == ""
    secret = sum(map(len, words.of_secrets(plan).values()))
    assert secret > 0
    assert sum(words.counts(plan).values()) == len(listed) + secret


def test_a_release_that_is_named_has_its_warnings_beside_it() -> None:
    cited = [CitedRelease(ledger="ab" * 32, warnings=("reproducible-noise",)), None]
    declared = Declaration(subject="two", created="2026-11-22", releases=cited)
    two = certify(Ledger((Gaussian(2.0), Gaussian(3.0))), declared, adversaries=[WorstCase()])
    shown = {str(label): str(value) for _, (label, value) in facts(two)}
    assert shown["release 1"].endswith(f"digest {'ab' * 32}; warnings: reproducible-noise")
    assert unsupported(two).startswith("Several releases, and not all are of recorded runs")
    runs = declared.model_copy(update={"releases": (cited[0], CitedRelease(ledger="cd" * 32))})
    assert unsupported(two.model_copy(update={"declared": runs})).startswith("Several recorded runs")


def test_what_a_ledger_establishes_of_its_updates_comes_before_what_is_declared(monkeypatch) -> None:
    asked: dict[str, object] = {}
    monkeypatch.setattr(RunLedger, "contraction", property(lambda ledger: 0.9))
    monkeypatch.setattr("reticent.certificates.build.certify", lambda *_, **given: asked.update(given))
    certify_run(make_ledger(), contraction=0.5)
    assert [one.factor for one in asked["adversaries"] if isinstance(one, FinalModel)] == [0.9]


def required(certificate: Certificate, **wanted: object) -> dict[str, bool]:
    limit = {"measure": "advantage", "at_most": 0.999}
    document = {
        "schema": "reticent.policy/1",
        "per": "record",
        "accept_conditions": list(CONDITIONS),
        "limits": [limit],
        **wanted,
    }
    policy = Policy.model_validate(document)
    return {str(one.name): one.passed for one in judged(certificate, policy)}


def test_a_warning_that_a_policy_forbids_is_a_breach() -> None:
    names = ["size-treated-as-public", "reproducible-noise"]
    found = required(small_certificate(), forbid_warnings=names)
    assert [found[f"no warning {name}"] for name in names] == [False, True]


def test_a_number_that_is_not_finite_meets_no_limit() -> None:
    name = "worst-case: advantage at most 0.999 (add-remove)"
    assert required(small_certificate())[name]
    none = with_first(small_certificate(), advantage=Number(value=None, lower=0.5, upper=None))
    assert not required(none)[name]


def test_the_policy_that_is_given_is_in_the_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "policy.yaml").write_text(
        "schema: reticent.policy/1\nper: record\nlimits: [{measure: advantage, at_most: 0.5}]\n"
    )
    parameters = ("--noise-multiplier", 9, "--sample-rate", 1, "--steps", 1, "--out", tmp_path / "made")
    code, out, _ = run(capsys, "certify", "dpsgd", *parameters, "--policy", tmp_path / "policy.yaml", "--json")
    document = json.loads(out)
    assert (code, document["policy"]["limits"][0]["at_most"]) == (0, 0.5)
    assert len(document["requirements"]) > 1


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ("r", "The claim is refuted: the attack does better than it would allow."),
        ("rc", "1 of 2 claims is refuted: the attack does better than it would allow."),
        ("crr", "2 of 3 claims are refuted: the attack does better than they would allow."),
        ("cn", "The attack works, and no better than claimed."),
        ("nn", "This audit does not test the claim."),
    ],
)
def test_an_audit_says_first_that_one_of_its_claims_is_refuted(found: str, said: str) -> None:
    meant = {"r": Finding.INCONSISTENT, "c": Finding.CONSISTENT, "n": Finding.NO_POWER}
    verdicts = {str(place): SimpleNamespace(finding=meant[one]) for place, one in enumerate(found)}
    assert audit_page.headline(SimpleNamespace(verdicts=verdicts)).startswith(said)


@pytest.mark.parametrize("private", [True, False])
def test_the_page_of_an_audit_rounds_to_the_safe_side_and_shows_records_on_request(private: bool, monkeypatch) -> None:
    asked: dict[str, Any] = {}
    monkeypatch.setattr(audit_page, "template", lambda _: SimpleNamespace(render=lambda **given: asked.update(given)))
    monkeypatch.setattr(audit_page, "histogram_figure", lambda _: None)
    monkeypatch.setattr(audit_page, "svg", lambda _: "")
    monkeypatch.setattr(audit_page, "detectable", lambda *_: None)
    interval = SimpleNamespace(value=0.2, lower=0.123456, upper=0.234561, method="exact")
    bound = SimpleNamespace(title="mu", rule="ranks", value=0.123456, ceiling=0.234561, notes=["of a bound"])
    verdict = SimpleNamespace(finding=Finding.CONSISTENT, notes=["of a verdict"])
    scores = SimpleNamespace(meta={}, design=Design.INDEPENDENT)
    report = SimpleNamespace(
        scores=scores, confidence=0.95, bounds=[bound], auc=interval, tpr={}, verdicts={"claim": verdict}
    )
    audit_page.render_audit(report, "", private=private)
    assert asked["bounds"] == [("mu", "0.1234", "0.2346", "ranks")]
    assert asked["rates"] == [("AUC", "0.2", "0.1234 to 0.2346", "exact")]
    assert asked["notes"] == ["of a bound", "of a verdict"]
    assert (asked["histogram"] is None) != private


def test_what_refuses_a_certificate_is_in_the_notes_of_its_table(tmp_path: Path) -> None:
    (tmp_path / "weights").write_bytes(b"1")
    found = rt.verify(small_certificate(), weights=tmp_path / "weights")
    assert found.notes()[0] == "the certificate names no model"
    assert found.title().startswith("REFUSED")


@pytest.mark.parametrize("rule", [None, Ranks((0.01, 0.1))])
def test_the_power_of_an_audit_is_that_of_its_own_sizes(rule: object) -> None:
    """Few members among many others are another audit than many among few."""
    few, many = np.linspace(0.0, 1.0, 60), np.linspace(0.0, 2.0, 600)
    found = [detectable(Scores(*both), 0.95, rule) for both in ((few, many), (many, few))]
    guessing, level = TangentTable(GaussianTradeOff(0.0)), ALL_RANKS * 0.05
    for one, (members, others) in zip(found, ((60, 600), (600, 60)), strict=True):
        truth = TangentTable(GaussianTradeOff(one.mu))
        if rule is None:
            power = normal_scores_power(guessing, truth, others, members, level)
        else:
            power = max(rank_power(guessing, truth, members, others, fpr, 0.025) for fpr in rule.levels)
        assert POWER <= one.power < 1.01 * POWER
        assert one.power == pytest.approx(power, rel=1e-9, abs=0)

"""Who says nothing passes no gate that the truth would not pass: reading "Silence", fact by fact."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest

import reticent as rt
from reticent.certificates.build import certify
from reticent.certificates.check import check
from reticent.certificates.document.policy import Policy
from reticent.certificates.document.requirements import judged
from reticent.certificates.document.schema import Certificate, Declaration
from reticent.certificates.page.words import people
from reticent.facts import Severity
from reticent.facts.start_weights import start_at
from reticent.facts.steps import Source
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.mechanisms import DPSGD, Gaussian
from reticent.kernel.mechanisms.units import Unit
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Status
from reticent.kernel.samplers import Poisson
from tests.certificates.conftest import make_ledger
from tests.certificates.ledgers import poisson

pytestmark = pytest.mark.usefixtures("quick")
SAID = Declaration(subject="a run", created="2026-11-27")
ADD_REMOVE = Neighbouring.ADD_REMOVE
LOOSE = [{"measure": "success", "at": 0.5, "at_most": 0.999, "neighbouring": "add-remove"}]
STOP = "Stop: can one person have several records?"
VOUCHED = ["records-per-person", "planned-steps", "start-weights", "clipped", "poisson-draws", "public-divisor"]


def passes(document: Certificate, **asked: Any) -> bool:
    limit = {"measure": "success", "at": 0.5, "at_most": 0.7, "neighbouring": "add-remove"}
    policy = {"schema": "reticent.policy/1", "limits": [limit], "accept_conditions": VOUCHED, **asked}
    return all(one.passed for one in judged(document, Policy.model_validate(policy)))


def of_persons(records: int | None) -> Certificate:
    run = make_ledger(steps=12, sample_rate=0.25)
    stated = {"config": {**run.config, "records_per_user": records}, "records_per_user": records}
    run = run.model_copy(update=stated).sealed()
    return worst(run)


def worst(run: Any) -> Certificate:
    return certify(run.mechanism(), SAID, adversaries=(WorstCase(),), neighbouring=ADD_REMOVE, ledger=run)


@pytest.fixture(scope="module")
def runs() -> dict[int | None, Certificate]:
    return {records: of_persons(records) for records in (None, 1, 5)}


def test_a_person_of_whom_nothing_is_said_is_not_believed_to_have_one_record(
    runs: dict[int | None, Certificate],
) -> None:
    """One row of five: right at most 59%. All five of a person: more than the policy allows."""
    found = {records: passes(document) for records, document in runs.items()}
    assert found == {None: False, 1: True, 5: False}
    assert {records: passes(one, per="person") for records, one in runs.items()} == found


def test_a_policy_about_records_says_so_itself_and_does_not_punish_a_statement(
    runs: dict[int | None, Certificate],
) -> None:
    for accepted in (VOUCHED[1:], VOUCHED):
        found = {records: passes(one, per="record", accept_conditions=accepted) for records, one in runs.items()}
        assert found == {None: True, 1: True, 5: False}
    assert not passes(runs[1], accept_conditions=VOUCHED[1:]), "what the issuer says of persons is to be accepted"


def test_a_client_is_stated_and_is_no_person() -> None:
    plan = certify(DPSGD(4.0, 0.1, 10, unit=Unit.CLIENT), SAID, adversaries=(WorstCase(),))
    assert passes(plan, per=None)
    assert not passes(plan, per="person")
    nothing = certify(Gaussian(4.0), SAID, adversaries=(WorstCase(),))
    assert [passes(nothing, per=per) for per in (None, "person", "record")] == [False, False, True]


def test_every_door_shows_the_stop_sign(runs: dict[int | None, Certificate]) -> None:
    for records, document in runs.items():
        silent = records is None
        assert any(line.startswith(STOP) for line in check(document).reservations()) is silent
    for ledger, silent in (
        (make_ledger(), True),
        (poisson(), True),
        (DPSGD(1.0, 0.1, 10), True),
        (DPSGD(1.0, 0.1, 10, unit=Unit.CLIENT), False),
        (poisson(records_per_user=1), False),
        (DPSGD(1.0, 0.1, 10, records_per_user=1), False),
    ):
        found = [row for row in rt.lint(ledger).rows() if STOP in str(row[2])]
        assert [row[:2] for row in found] == [("records-per-person", Severity.WARNING)] * silent
        assert (STOP in json.dumps(rt.lint(ledger).to_json())) is silent


@pytest.mark.parametrize(("kind", "heard"), [("logistic", True), ("custom", False)])
def test_a_class_of_ones_own_that_states_no_start_passes_no_gate(kind: str, heard: bool) -> None:
    """Its weights may have been fitted on these records before: alone and beside others."""
    run = make_ledger(steps=12, sample_rate=0.25)
    config = {**run.config, "model": {"kind": kind, "name": "mymod:Pre"}, "records_per_user": 1}
    run = run.model_copy(update={"config": config, "records_per_user": 1}).sealed()
    assert passes(worst(run)) is heard
    together = rt.certify([run, DPSGD(50.0, 0.001, 1, records_per_user=1)]).certificate
    assert passes(together, accept_conditions=[*VOUCHED, "fixed-plan", "drawn-anew"]) is heard


@pytest.fixture(scope="module")
def copied() -> Certificate:
    return worst(listed_twice())


def listed_twice(**facts: Any) -> Any:
    sampler = poisson().sampler.model_copy(update={"copies": 2}).model_dump(mode="json")
    return poisson(sampler=sampler, **facts)


def test_copies_that_a_watch_saw_state_nothing_of_persons(copied: Certificate) -> None:
    """A record that is listed twice counts twice, and is no word of the issuer about persons, at no door."""
    twice = certify(DPSGD(1.1, 1.0 / 6.0, 12, sampler=Poisson(2)), SAID, adversaries=(WorstCase(),))
    assert copied.assessments[0].advantage.value == pytest.approx(twice.assessments[0].advantage.value, rel=1e-9, abs=0)
    assert not passes(copied, limits=LOOSE), "nobody stated it"
    assert not passes(copied, limits=LOOSE, per="person")
    assert any(line.startswith(STOP) for line in check(copied).reservations())
    assert "given record" in copied.headline
    assert str(people(copied)).startswith("Nothing is stated")
    assert [row for row in rt.lint(listed_twice()).rows() if STOP in str(row[2])]


def test_nor_do_several_loops_with_copies(copied: Certificate) -> None:
    both = rt.certify([listed_twice(), listed_twice(divisor=11.0)]).certificate
    assert str(people(both)).startswith("Nothing is stated")
    assert not passes(both, limits=LOOSE, per="person")
    stated = worst(listed_twice(records_per_user=3))
    assert str(people(stated)) == "The issuer declares: each person contributed at most 3 records."
    assert check(stated).accepted


@pytest.mark.parametrize(("plan", "start"), list(product((None, 12, 60), (None, "declared", "seen"))))
def test_a_loop_that_states_no_plan_or_start_passes_no_gate(plan: int | None, start: str | None) -> None:
    """Twelve steps of sixty count as twelve where nobody stated the sixty: what was said counts sixty."""
    facts: dict[str, Any] = {"records_per_user": 1}
    facts |= {} if plan is None else {"facts": {"planned-steps": {"steps": plan, "stop_at": None}}}
    if start is not None:
        record, _ = start_at("ab" * 32, "random" if start == "seen" else "unknown", Source(start))
        facts["start"] = record.model_dump(mode="json")
    run = poisson(**facts)
    heard = plan == 12 and start is not None
    assert passes(worst(run)) is heard
    other: Any = DPSGD(50.0, 0.001, 1, records_per_user=1)
    if plan != 60:  # a joint certificate is no kinder than its parts
        together = rt.certify([run, other]).certificate
        assert passes(together, accept_conditions=[*VOUCHED, "fixed-plan", "drawn-anew"]) is heard
        assert check(together).accepted
        found = {one.key: one.status for one in together.assessments[0].conditions}
        assert found["planned-steps"] is (Status.ASSUMED if plan is None else Status.DECLARED)

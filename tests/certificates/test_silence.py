"""Who says nothing passes no gate that the truth would not pass: reading "Silence", fact by fact."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest

import reticent as rt
from reticent.certificates.check import check
from reticent.certificates.document.requirements import judged
from reticent.certificates.document.schema import Certificate
from reticent.certificates.page.words import people
from reticent.facts import Severity
from reticent.facts.start_weights import start_at
from reticent.facts.steps import Source
from reticent.kernel.mechanisms import DPSGD, Gaussian
from reticent.kernel.mechanisms.units import Unit
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Status
from reticent.kernel.samplers import Poisson
from tests.certificates.conftest import make_ledger
from tests.certificates.ledgers import poisson
from tests.certificates.making import of, policy

STOP = "Stop: can one person have several records?"
VOUCHED = ["records-per-person", "planned-steps", "start-weights", "clipped", "poisson-draws", "public-divisor"]
TOGETHER = [*VOUCHED, "fixed-plan", "drawn-anew"]
OTHER = DPSGD(50.0, 1.0, 1, records_per_user=1)


def passes(document: Certificate, most: float = 0.7, **asked: Any) -> bool:
    limit = {"measure": "success", "at": 0.5, "at_most": most, "neighbouring": "add-remove"}
    return all(one.passed for one in judged(document, policy(limit, **{"accept_conditions": VOUCHED, **asked})))


def worst(run: Any) -> Certificate:
    return of(run.mechanism(), neighbouring=Neighbouring.ADD_REMOVE, ledger=run)


def of_persons(records: int | None, **config: Any) -> Any:
    run = make_ledger()
    stated = {"config": {**run.config, "records_per_user": records, **config}, "records_per_user": records}
    return run.model_copy(update=stated).sealed()


@pytest.fixture(scope="module")
def runs() -> dict[int | None, Certificate]:
    return {records: worst(of_persons(records)) for records in (None, 1, 5)}


@pytest.mark.parametrize(
    ("asked", "passing"),
    [
        ({}, [1]),  # one row of five: right at most 59%; all five of a person: more than the policy allows
        ({"per": "person"}, [1]),
        ({"per": "record"}, [None, 1]),
        ({"per": "record", "accept_conditions": VOUCHED[1:]}, [None, 1]),
        ({"accept_conditions": VOUCHED[1:]}, []),  # what the issuer says of persons is to be accepted
    ],
)
def test_a_person_of_whom_nothing_is_said_is_not_believed_to_have_one_record(
    runs: dict[int | None, Certificate], asked: dict[str, Any], passing: list[int | None]
) -> None:
    assert [records for records, document in runs.items() if passes(document, **asked)] == passing


def test_a_client_is_stated_and_is_no_person() -> None:
    for plan, passing in ((DPSGD(4.0, 1.0, 1, unit=Unit.CLIENT), [None, "record"]), (Gaussian(4.0), ["record"])):
        assert [per for per in (None, "person", "record") if passes(of(plan), per=per)] == passing


def test_every_door_shows_the_stop_sign(runs: dict[int | None, Certificate]) -> None:
    for records, document in runs.items():
        assert any(line.startswith(STOP) for line in check(document).reservations()) is (records is None)
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
    run = of_persons(1, model={"kind": kind, "name": "mymod:Pre"})
    assert passes(worst(run)) is heard
    assert passes(rt.certify([run, OTHER]).certificate, accept_conditions=TOGETHER) is heard


def listed_twice(**facts: Any) -> Any:
    sampler = poisson().sampler.model_copy(update={"copies": 2}).model_dump(mode="json")
    return poisson(sampler=sampler, **facts)


def test_copies_that_a_watch_saw_state_nothing_of_persons() -> None:
    """A record that is listed twice counts twice, and is no word of the issuer about persons, at no door."""
    copied = worst(listed_twice())
    twice = of(DPSGD(1.1, 1.0 / 6.0, 12, sampler=Poisson(2)), neighbouring=Neighbouring.ADD_REMOVE)
    assert copied.assessments[0].advantage.value == pytest.approx(twice.assessments[0].advantage.value, rel=1e-9, abs=0)
    assert any(line.startswith(STOP) for line in check(copied).reservations())
    assert "given record" in copied.headline
    assert [row for row in rt.lint(listed_twice()).rows() if STOP in str(row[2])]
    both = rt.certify([listed_twice(), listed_twice(divisor=11.0)]).certificate
    for document in (copied, both):
        assert str(people(document)).startswith("Nothing is stated")
        assert not passes(document, most=0.999)
        assert not passes(document, most=0.999, per="person")
    stated = worst(listed_twice(records_per_user=3))
    assert str(people(stated)) == "Declared: each person contributed at most 3 records."
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
    if plan != 60 and start != "seen":  # a joint certificate is no kinder than its parts
        together = rt.certify([run, OTHER]).certificate
        assert passes(together, accept_conditions=TOGETHER) is heard
        assert check(together).accepted
        found = {one.key: one.status for one in together.assessments[0].conditions}
        assert found["planned-steps"] is (Status.ASSUMED if plan is None else Status.DECLARED)

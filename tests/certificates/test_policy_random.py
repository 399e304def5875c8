"""Random policies against random documents: the gate opens exactly where a naive reading of both allows it."""

from __future__ import annotations

import random
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from reticent.adversaries import Mixed
from reticent.certificates.build import certify
from reticent.certificates.document.policy import Policy, load_policy
from reticent.certificates.document.schema import Certificate, CertifiedAssessment, Declaration
from reticent.certificates.gate import check
from reticent.certificates.verify import Verification
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.errors import ArtifactError
from reticent.kernel.mechanisms import Gaussian

NOW = datetime(2026, 11, 22, tzinfo=UTC)
RELATIONS = ("add-remove", "replace", "zero-out")
CLAIMS = ("bound", "conditional", "estimate", "empirical")
KEYS = {"clipped": True, "fixed-length": True, "start-weights": True, "hidden-draws": False}
"""Conditions, and whether they are open unless checked."""
STATUSES = ("checked", "declared", "assumed")
AGREES = Verification(equal=1, differences=(), declared={}, private=(), assessments=1, tolerance=0.0)


@pytest.fixture(scope="module")
def made() -> Certificate:
    declared = Declaration(subject="a release", created="2026-11-01")
    return certify(Gaussian(2.0), declared, adversaries=(WorstCase(), Mixed()))


def random_document(made: Certificate, rng: random.Random) -> Certificate:
    records = [random_record(made, rng) for _ in range(rng.randint(1, 5))]
    stated: dict[str, Any] = rng.choice([{}, {"records_per_user": 1}, {"records_per_user": 5}, {"unit": "client"}])
    return made.model_copy(update={"assessments": records, "mechanism": made.mechanism | stated})


def random_record(made: Certificate, rng: random.Random) -> CertifiedAssessment:
    record = rng.choice(made.assessments)
    keys = rng.sample(sorted(KEYS), rng.randint(0, 2))
    changed: dict[str, Any] = {
        "neighbouring": rng.choice(RELATIONS[:2]),
        "claim": rng.choice(CLAIMS[:3]),
        "conditions": [{"key": key, "status": rng.choice(STATUSES)} for key in keys],
        "advantage": {"lower": 0.0, "value": rng.choice([0.1, 0.2, 0.3, None]), "upper": 1.0},
    }
    if record.parameters:
        changed["parameters"] = record.parameters | {"relaxed_probability": rng.choice([0.5, 0.5, 1.0])}
    return CertifiedAssessment(**(record.model_dump() | changed))


def random_policy(rng: random.Random) -> dict[str, Any]:
    return {
        "schema": "reticent.policy/1",
        "per": rng.choice([None, "person", "record", "record"]),
        "relations": rng.sample(RELATIONS, rng.choice([0, 0, 1, 2])),
        "accept_conditions": rng.sample(sorted(KEYS), rng.randint(0, 4)),
        "limits": [random_limit(rng) for _ in range(rng.randint(1, 3))],
    }


def random_limit(rng: random.Random) -> dict[str, Any]:
    limit: dict[str, Any] = {"measure": "advantage", "at_most": rng.choice([0.15, 0.25, 0.999])}
    if rng.random() < 0.4:
        limit["adversary"] = "mixed"
        if rng.random() < 0.4:
            limit["parameters"] = {"relaxed_probability": 1.0}
    if rng.random() < 0.4:
        limit["neighbouring"] = rng.choice(RELATIONS[:2])
    if rng.random() < 0.3:
        limit["claim"] = rng.choice([*CLAIMS, "any"])
    return limit


def naive(document: Certificate, policy: dict[str, Any]) -> bool:
    """Whether the policy lets the document pass, read word for word."""
    limits, rows = policy["limits"], document.assessments
    demanded = set(policy["relations"]) or {one["neighbouring"] for one in limits if "neighbouring" in one}
    demanded = demanded or {"add-remove"}  # the own relation of both attackers
    of_a_person, of_a_client = "records_per_user" in document.mechanism, "unit" in document.mechanism
    if not {None: of_a_person or of_a_client, "person": of_a_person, "record": True}[policy["per"]]:
        return False
    for relation in demanded:
        if not any(row.adversary == "worst-case" and row.neighbouring == relation for row in rows):
            return False
    return all(fulfilled(document, policy, limit, demanded) for limit in limits)


def fulfilled(document: Certificate, policy: dict[str, Any], limit: dict[str, Any], demanded: set[str]) -> bool:
    who = limit.get("adversary", "worst-case")
    share = limit.get("parameters", {"relaxed_probability": 0.5})["relaxed_probability"] if who == "mixed" else None
    rows = [r for r in document.assessments if r.adversary == who and r.parameters.get("relaxed_probability") == share]
    wanted = {limit["neighbouring"]} if "neighbouring" in limit else demanded | {row.neighbouring for row in rows}
    for relation in wanted:
        here = [row for row in rows if row.neighbouring == relation]
        if not here or not all(good(row, policy, limit) for row in here):
            return False
    return True


def good(row: CertifiedAssessment, policy: dict[str, Any], limit: dict[str, Any]) -> bool:
    claim = limit.get("claim", "bound")
    proven = set(CLAIMS[:2])
    strong = {"any": set(CLAIMS), "bound": proven, "conditional": proven, "estimate": {*proven, claim}}.get(
        claim, {claim}
    )
    open_ones = {one.key for one in row.conditions if KEYS[one.key] and one.status != "checked"}
    value = row.advantage.value
    return (
        row.claim in strong
        and open_ones <= set(policy["accept_conditions"])
        and value is not None
        and value <= limit["at_most"]
    )


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_the_gate_opens_exactly_where_it_may(made: Certificate, seed: int) -> None:
    rng, opened = random.Random(seed), 0  # noqa: S311
    for _ in range(10_000 if seed else 1_000):
        document, policy = random_document(made, rng), random_policy(rng)
        found = check(document, AGREES, Policy.model_validate(policy), now=NOW)
        allowed = naive(document, policy)
        opened += allowed
        assert all(one.passed for one in found) == allowed, (policy, document.assessments)
    assert opened > 10


POLICY = """schema: reticent.policy/1
per: record
signature: true
max_age_days: 90
relations: [add-remove]
forbid_warnings: [reproducible-noise]
accept_conditions: [clipped]
limits:
  - {measure: success, at: 0.5, at_most: 0.65, neighbouring: add-remove}
  - {measure: epsilon, at: 1.0e-5, at_most: 3, adversary: mixed, parameters: {relaxed_probability: 0.9}}
"""
PIECES = [
    "&a ",
    "*a",
    "<<: ",
    "!!int ",
    ": ",
    "- ",
    "\n",
    "  ",
    "{",
    "}",
    "[",
    "]",
    "'",
    '"',
    "\t",
    "0",
    "1:00",
    "\x00",
    "é",
]


def test_a_policy_with_random_edits_is_read_or_refused_in_one_line(tmp_path: Path) -> None:
    rng, path, read = random.Random(3), tmp_path / "p.yaml", 0  # noqa: S311
    for _ in range(200):
        text = POLICY
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(text))
            text = text[:at] + rng.choice(PIECES) + text[at + rng.randint(0, 3) :]
        path.write_text(text)
        with suppress(ArtifactError):
            load_policy(path)
            read += 1
    assert 0 < read < 75

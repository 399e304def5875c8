"""The gate fails closed: what a policy does not allow is a breach, and what it cannot mean is an error.

Random policies against random documents: a naive reading of both says the same.
"""

from __future__ import annotations

import random
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from reticent.adversaries import Attribute, Membership, Mixed, Relaxed
from reticent.certificates.document.policy import MEASURED, Policy, load_policy
from reticent.certificates.document.requirements import Check, judged
from reticent.certificates.document.schema import Certificate, CertifiedAssessment
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.errors import ArtifactError
from reticent.kernel.mechanisms import Gaussian
from reticent.kernel.proofs import CONDITIONS
from reticent.kernel.risk.questions import Questions
from tests.certificates.making import MOST, of, policy, small_certificate
from tests.cli.calling import run

RELATIONS = ("add-remove", "replace", "zero-out")
CLAIMS = ("bound", "conditional", "estimate", "empirical")


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    """Under two relations; attackers with parameters of their own."""
    who = (WorstCase(), Mixed(1.0, dimension=1), Relaxed(dimension=2), Membership(), Attribute(0.5))
    return of(Gaussian(2.0, dimension=3), *who)


def breaches(document: Certificate, *limits: dict[str, Any], **more: Any) -> list[Check]:
    wanted = policy(*limits, **{"per": "record", "accept_conditions": ["clipped", "bounded-change"], **more})
    return [one for one in judged(document, wanted) if not one.passed]


MEASURES = [
    ({"measure": "advantage"}, lambda a: a.advantage),
    ({"measure": "bayes_security"}, lambda a: a.bayes_security),
    ({"measure": "mu"}, lambda a: a.mu),
    ({"measure": "success", "at": 0.5}, lambda a: a.success_at_prior["0.5"]),
    ({"measure": "tpr", "at": 0.01}, lambda a: a.tpr_at_fpr["0.01"]),
    ({"measure": "ppv", "at": [0.1, 0.001]}, lambda a: a.ppv_at_prior_and_fpr["0.1"]["0.001"]),
    ({"measure": "epsilon", "at": 1e-5}, lambda a: a.epsilon_at_delta["1e-05"]),
    ({"measure": "delta", "at": 1}, lambda a: a.delta_at_epsilon["1.0"]),
]


@pytest.mark.parametrize(("limit", "read"), MEASURES, ids=[str(limit["measure"]) for limit, _ in MEASURES])
def test_a_limit_holds_at_the_number_and_breaks_beyond_it(certificate: Certificate, limit: Any, read: Any) -> None:
    value, here = read(certificate.assessments[0]).value, {**limit, "neighbouring": "add-remove"}
    side, beyond = ("at_least", 1.001) if limit["measure"] == "bayes_security" else ("at_most", 1 - 1e-9)
    assert breaches(certificate, {**here, side: value}) == []
    (one,) = breaches(certificate, {**here, side: value * beyond})
    assert str(one.name).startswith(f"worst-case: {limit['measure']}")


FIELD = {**MOST, "adversary": "attribute", "neighbouring": "replace"}
MIX, LINE = {**MOST, "adversary": "mixed"}, {**MOST, "adversary": "relaxed"}
ROWS: dict[str, tuple[dict[str, Any], dict[str, Any], str | None]] = {
    "the worst case": (MOST, {}, None),
    "a relation that must be there": (MOST, {"relations": ["zero-out"]}, r"under zero-out|\(zero-out\)|rests on"),
    "another place": ({"measure": "tpr", "at": 0.02, "at_most": 0.9}, {}, "does not state it"),
    "no ledger": (MOST, {"ledger": True}, "ledger"),
    "a warning": (MOST, {"forbid_warnings": ["reproducible-noise"]}, None),
    "other parameters": (MIX, {}, "no such assessment of mixed, only with other parameters"),
    "these parameters": (MIX | {"parameters": {"relaxed_probability": 1.0, "dimension": 1}}, {}, None),
    "one of these parameters": (MIX | {"parameters": {"relaxed_probability": 0.9}}, {}, "other parameters"),
    "what is not named has its default": (LINE, {}, "other parameters"),
    "any dimension": (LINE | {"parameters": {"dimension": "any"}}, {}, None),
    "a law that nobody measured": (LINE | {"parameters": {"dimension": 2, "directions": MEASURED}}, {}, "other"),
    "a number is no measurement": (FIELD | {"parameters": {"gradient_change": MEASURED}}, {}, "other"),
    "a number": (FIELD | {"parameters": {"gradient_change": 0.5}}, {}, None),
    "what nobody checked": (MOST, {"accept_conditions": []}, r"is 0\.\d+, and rests on clipped \(declared\)"),
    "too weak a claim": (MOST | {"claim": "empirical"}, {}, "the claim is bound, the policy wants empirical"),
}
"""A limit, more of the policy, and what the breaches say; None where there is none."""


@pytest.mark.parametrize("name", ROWS)
def test_a_policy_allows_what_it_says_and_nothing_else(certificate: Certificate, name: str) -> None:
    limit, more, said = ROWS[name]
    found = breaches(certificate, limit, **more)
    assert (found == []) is (said is None)
    assert all(re.search(said or "", f"{one.name}: {one.detail}") for one in found)


def test_a_limit_without_relation_holds_for_every_relation_in_any_order(certificate: Certificate) -> None:
    worst = {one.neighbouring: one.advantage.value for one in certificate.assessments if one.adversary == "worst-case"}
    assert worst["add-remove"] < worst["replace"]
    for records in (certificate.assessments, certificate.assessments[::-1]):
        document = certificate.model_copy(update={"assessments": records})
        limit = {"measure": "advantage", "at_most": worst["add-remove"]}
        (one,) = breaches(document, limit, relations=["add-remove"])
        assert str(one.name).endswith("(replace)")
        assert breaches(document, limit | {"at_most": worst["replace"]}) == []


def test_a_warning_that_a_policy_forbids_is_a_breach() -> None:
    names = ["size-treated-as-public", "reproducible-noise"]
    (one,) = breaches(small_certificate(), MOST, forbid_warnings=names, accept_conditions=[*CONDITIONS])
    assert str(one.name) == "no warning size-treated-as-public"


def test_a_secret_needs_its_conditions_accepted() -> None:
    stated = of(Gaussian(2.0), questions=Questions(priors=(0.5,), secret_bits=(20.0,), guesses=(4,)))
    limit, own = {"measure": "secret", "at": [20, 4], "at_most": 0.01}, ["secret-entropy", "secret-nowhere-else"]
    assert breaches(stated, limit, accept_conditions=["clipped", *own]) == []
    assert breaches(stated, limit, accept_conditions=["clipped", own[0]])
    assert breaches(stated, {**limit, "at": [19, 4]}, accept_conditions=["clipped", *own])
    assert breaches(stated, MOST) == []


MIXTURE = "{measure: advantage, at_most: 0.5, adversary: mixed, parameters: {%s}}"
MISTAKES = {
    "a warning that does not exist": ("forbid_warnings: [size-treated-as-publik]", "mean size-treated-as-public"),
    "a condition that does not exist": ("accept_conditions: [clippd]", "clipped"),
    "a key that is nearly one": ("max_age_day: 3", "did you mean max_age_days"),
    "an age as a text": ("max_age_days: '30'", "max_age_days"),
    "an age of nothing": ("max_age_days: 0", "max_age_days"),
    "a number for yes": ("ledger: 1", "ledger"),
    "a key twice": ("ledger: true\nledger: false", "the key 'ledger' is repeated"),
    "no relation": ("relations: [add-removes]", "relations"),
    "no digest": ("weights_sha256: [abc]", "weights_sha256"),
    "no digests": ("weights_sha256: []", "weights_sha256"),
}
LIMITS = {
    "no limit": ("", "limits"),
    "no number": ("{measure: advantage}", "at_most"),
    "not a number": ("{measure: advantage, at_most: .nan}", "at_most"),
    "no place": ("{measure: tpr, at_most: 0.1}", "needs 'at'"),
    "a place too many": ("{measure: mu, at: 1, at_most: 0.1}", "takes no 'at'"),
    "the other end": ("{measure: bayes_security, at_most: 0.1}", "at_least"),
    "success in percent": ("{measure: success, at: 0.5, at_most: 55}", "a number from 0 to 1, got 55"),
    "a guess below a blind one": ("{measure: success, at: 0.5, at_most: 0.4}", "must be at least 0.5"),
    "a TPR below the FPR": ("{measure: tpr, at: 0.01, at_most: 0.001}", "must be at least 0.01"),
    "a negative epsilon": ("{measure: epsilon, at: 1e-5, at_most: -1}", "a number from 0"),
    "an advantage above 1": ("{measure: advantage, at_most: 1.1}", "a number from 0 to 1"),
    "an advantage of all": ("{measure: advantage, at_most: 1}", "at_most of advantage must be below 1"),
    "no security": ("{measure: bayes_security, at_least: 0}", "at_least of bayes_security must be above 0"),
    "infinite": ("{measure: mu, at_most: .inf}", "at_most"),
    "a text": ("{measure: advantage, at_most: '0.1'}", "at_most"),
    "a prior of 1": ("{measure: success, at: 1, at_most: 0.5}", "prior"),
    "an FPR of 0": ("{measure: ppv, at: [0.1, 0], at_most: 0.5}", "false positive rate above 0"),
    "both ends": ("{measure: advantage, at_most: 0.5, at_least: 0.1}", "takes at_most only"),
    "nobody": ("{measure: advantage, at_most: 0.5, adversary: worstcase}", "did you mean worst-case"),
    "a measure that is nearly one": ("{measure: advantages, at_most: 0.5}", "(did you mean advantage?)"),
    "a relation that is nearly one": ("{measure: mu, at_most: 1, neighbouring: add_remov}", "mean add-remove?"),
    "no parameter": ("{measure: advantage, at_most: 0.5, parameters: {dimension: 3}}", "parameter of worst-case"),
    "a parameter that is nearly one": (MIXTURE % "relaxed_probabilit: 1.0", "relaxed_probability"),
    "what nobody measures": (MIXTURE % "relaxed_probability: measured", "must be a number"),
    "a parameter that is true": (MIXTURE % "relaxed_probability: true", "relaxed_probability"),
}


def written(folder: Path, limit: str, more: str = "") -> Path:
    path = folder / "policy.yaml"
    path.write_text(f"schema: reticent.policy/1\nper: record\nlimits: [{limit}]\n{more}\n")
    return path


@pytest.mark.parametrize("case", [*MISTAKES, *LIMITS])
def test_a_mistake_in_a_policy_is_one_line_and_exit_code_2(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    limit, more = (LIMITS[case][0], "") if case in LIMITS else ("{measure: mu, at_most: 1}", MISTAKES[case][0])
    code, out, err = run(capsys, "gate", "no such certificate", "--policy", written(tmp_path, limit, more))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert {**MISTAKES, **LIMITS}[case][1] in err


PIECES = ["&a ", "*a", "<<: ", "!!int ", ": ", "- ", "\n", "  ", *"{}[]'\"\t0\x00é", "1:00"]
WHOLE = "{measure: success, at: 0.5, at_most: 0.65, neighbouring: add-remove}, " + MIXTURE % "relaxed_probability: 0.9"
MORE = "signature: true\nmax_age_days: 90\nforbid_warnings: [reproducible-noise]"


def test_a_policy_with_random_edits_is_read_or_refused_in_one_line(tmp_path: Path) -> None:
    rng, read = random.Random(4), 0  # noqa: S311
    path = written(tmp_path, WHOLE, MORE)
    whole = path.read_text()
    for _ in range(100):
        text = whole
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(text))
            text = text[:at] + rng.choice(PIECES) + text[at + rng.randint(0, 3) :]
        path.write_text(text)
        with suppress(ArtifactError):
            load_policy(path)
            read += 1
    assert 0 < read < 40


NEW = "something-new"
KEYS = {"clipped": True, "fixed-length": True, "start-weights": True, "hidden-draws": False}
"""Conditions, and whether they are open unless checked; what nobody knows is always open."""
STATUSES = ("checked", "declared", "assumed")


def random_document(made: Certificate, rng: random.Random) -> Certificate:
    records = [random_record(made, rng) for _ in range(rng.randint(1, 5))]
    stated: dict[str, Any] = rng.choice([{}, {"records_per_user": 1}, {"records_per_user": 5}, {"unit": "client"}])
    return made.model_copy(update={"assessments": records, "mechanism": made.mechanism | stated})


def random_record(made: Certificate, rng: random.Random) -> CertifiedAssessment:
    record = rng.choice(made.assessments)
    keys = rng.sample([*KEYS, NEW], rng.choice([0, 0, 1, 2]))
    changed: dict[str, Any] = {
        "neighbouring": rng.choice(RELATIONS[:2]),
        "claim": rng.choice(CLAIMS),
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
    keys = {one.key: one.status != "checked" and KEYS.get(one.key) for one in row.conditions}
    open_ones = {key for key, unchecked in keys.items() if unchecked or key == NEW}
    value = row.advantage.value
    return (
        row.claim in strong
        and open_ones <= set(policy["accept_conditions"])
        and value is not None
        and value <= limit["at_most"]
    )


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_the_gate_opens_exactly_where_it_may(seed: int) -> None:
    made, rng, opened = of(Gaussian(2.0), WorstCase(), Mixed()), random.Random(seed), 0  # noqa: S311
    for _ in range(10_000 if seed else 1_000):
        document, wanted = random_document(made, rng), random_policy(rng)
        allowed = naive(document, wanted)
        opened += allowed
        found = judged(document, Policy.model_validate(wanted))
        assert all(one.passed for one in found) == allowed, (wanted, document.assessments)
    assert opened > 10

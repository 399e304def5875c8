"""The gate: limits, claims, signature and age; a breach is never a pass."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reticent.adversaries import Membership
from reticent.certificates import gate_report
from reticent.certificates.build import certify
from reticent.certificates.document.policy import Policy, load_policy
from reticent.certificates.document.requirements import Check
from reticent.certificates.document.schema import Certificate, Declaration
from reticent.certificates.gate import check
from reticent.certificates.verify import Verification, verify
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.errors import ArtifactError
from reticent.kernel.mechanisms import Gaussian
from reticent.kernel.messages import said
from reticent.kernel.risk.questions import Questions

NOW = datetime(2026, 11, 22, tzinfo=UTC)
HOSTILE = "</failure><script>alert(1)</script>]]>|`*\x00\x1b[31m\u202etxt.exe\n## passed"


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    declared = Declaration(
        subject="</failure><script>alert(1)</script>]]>|`* ## passed", created="2026-11-01", expires="2027-11-01"
    )
    return certify(Gaussian(2.0), declared, adversaries=(WorstCase(), Membership()))


@pytest.fixture(scope="module")
def outcome(certificate: Certificate) -> Verification:
    return verify(certificate)


def policy(*limits: dict[str, object], **more: object) -> Policy:
    fields = {
        "schema": "reticent.policy/1",
        "per": "record",
        "limits": list(limits),
        "accept_conditions": ["clipped"],
        **more,
    }
    return Policy.model_validate(fields)


def failed(
    certificate: Certificate, outcome: Verification, wanted: Policy, *, signed=None, weights=None, now=NOW
) -> list[str]:
    found = check(certificate, outcome, wanted, now=now, signed=signed, weights=weights)
    return [str(c.name) for c in found if not c.passed]


MEASURES = [
    ({"measure": "advantage"}, lambda a: a.advantage),
    ({"measure": "mu"}, lambda a: a.mu),
    ({"measure": "success", "at": 0.5}, lambda a: a.success_at_prior["0.5"]),
    ({"measure": "tpr", "at": 0.01}, lambda a: a.tpr_at_fpr["0.01"]),
    ({"measure": "ppv", "at": [0.1, 0.001]}, lambda a: a.ppv_at_prior_and_fpr["0.1"]["0.001"]),
    ({"measure": "epsilon", "at": 1e-5}, lambda a: a.epsilon_at_delta["1e-05"]),
    ({"measure": "delta", "at": 1}, lambda a: a.delta_at_epsilon["1.0"]),
]


@pytest.mark.parametrize(("limit", "read"), MEASURES, ids=[str(limit["measure"]) for limit, _ in MEASURES])
def test_a_limit_holds_at_the_number_and_breaks_below_it(certificate, outcome, limit, read) -> None:
    value = read(certificate.assessments[0]).value
    assert failed(certificate, outcome, policy({**limit, "at_most": value})) == []
    (name,) = failed(certificate, outcome, policy({**limit, "at_most": value * (1 - 1e-9)}))
    assert name.startswith(f"worst-case: {limit['measure']}")


def test_a_secret_needs_its_conditions_accepted() -> None:
    declared = Declaration(subject="x", created="2026-11-22")
    asked = Questions(priors=(0.5,), secret_bits=(20.0,), guesses=(4,))
    stated = certify(Gaussian(2.0), declared, questions=asked)
    limit = {"measure": "secret", "at": [20, 4], "at_most": 0.01}
    own = ["secret-entropy", "secret-nowhere-else"]
    assert failed(stated, verify(stated), policy(limit, accept_conditions=["clipped", *own])) == []
    assert failed(stated, verify(stated), policy(limit, accept_conditions=["clipped", own[0]]))
    assert failed(stated, verify(stated), policy({**limit, "at": [19, 4]}, accept_conditions=["clipped", *own]))
    assert failed(stated, verify(stated), policy({"measure": "advantage", "at_most": 0.999})) == []


def test_bayes_security_is_limited_from_below(certificate, outcome) -> None:
    value = certificate.assessments[0].bayes_security.value
    assert value is not None
    assert failed(certificate, outcome, policy({"measure": "bayes_security", "at_least": value})) == []
    assert failed(certificate, outcome, policy({"measure": "bayes_security", "at_least": value * 1.001}))


def test_what_is_not_in_the_certificate_is_a_breach(certificate, outcome) -> None:
    limit = {"measure": "advantage", "at_most": 0.999}
    assert failed(certificate, outcome, policy({**limit, "adversary": "relaxed"}))
    assert failed(certificate, outcome, policy({**limit, "neighbouring": "replace"}))
    assert failed(certificate, outcome, policy({"measure": "tpr", "at": 0.02, "at_most": 0.9}))
    assert failed(certificate, outcome, policy(limit, relations=["replace"]))
    assert failed(certificate, outcome, policy(limit, ledger=True))


def test_the_claim_must_be_as_strong_as_the_policy_wants(certificate, outcome) -> None:
    weaker = certificate.assessments[0].model_copy(update={"claim": "estimate"})
    changed = certificate.model_copy(update={"assessments": [weaker, *certificate.assessments[1:]]})
    limit = {"measure": "advantage", "at_most": 0.999}
    assert failed(changed, outcome, policy(limit))
    assert failed(changed, outcome, policy({**limit, "claim": "estimate"})) == []
    assert failed(changed, outcome, policy({**limit, "claim": "any"})) == []
    assert failed(certificate, outcome, policy({**limit, "claim": "estimate"})) == []  # a bound is more
    assert failed(certificate, outcome, policy({**limit, "claim": "empirical"}))


def test_a_certificate_that_does_not_verify_breaches_every_policy(certificate) -> None:
    changed = certificate.model_copy(update={"headline_": said("Perfectly safe.")})
    names = failed(changed, verify(changed), policy({"measure": "advantage", "at_most": 0.999}))
    assert names == ["the certificate verifies"]


@pytest.mark.parametrize(
    ("now", "breached"),
    [("2026-11-22", False), ("2026-12-02", True), ("2026-10-01", True)],
    ids=["fresh", "too old", "from the future"],
)
def test_age(certificate, outcome, now: str, breached: bool) -> None:
    wanted = policy({"measure": "advantage", "at_most": 0.999}, max_age_days=30)
    names = failed(certificate, outcome, wanted, now=datetime.fromisoformat(now).replace(tzinfo=UTC))
    assert any("days old" in name for name in names) == breached


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (datetime(2026, 11, 1, 23, tzinfo=UTC), "created 2026-11-01, today"),
        (datetime(2026, 11, 2, 1, tzinfo=UTC), "created 2026-11-01, 1 day ago"),
        (datetime(2026, 11, 22, 12, tzinfo=UTC), "created 2026-11-01, 21 days ago"),
        (datetime(2026, 10, 31, 23, tzinfo=UTC), "created 2026-11-01, in the future"),
    ],
)
def test_the_age_is_told_in_whole_days(certificate, outcome, now, words) -> None:
    wanted = policy({"measure": "advantage", "at_most": 0.999}, max_age_days=30)
    assert words in [c.detail for c in check(certificate, outcome, wanted, now=now)]


def test_an_expired_certificate_is_a_breach_even_if_the_policy_names_no_age(certificate, outcome) -> None:
    wanted = policy({"measure": "advantage", "at_most": 0.999})
    assert failed(certificate, outcome, wanted, now=datetime(2027, 11, 1, tzinfo=UTC)) == [
        "the certificate has not expired"
    ]


@pytest.mark.parametrize(("signed", "breached"), [(True, False), (False, True), (None, True)])
def test_a_required_signature_must_have_been_checked(certificate, outcome, signed, breached: bool) -> None:
    wanted = policy({"measure": "advantage", "at_most": 0.999}, signature=True)
    assert bool(failed(certificate, outcome, wanted, signed=signed)) == breached


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "mapping"),
        ("schema: reticent.policy/1\nper: record\nlimits: []", "limits"),
        ("schema: reticent.policy/1\nper: record\nlimits: [{measure: advantage}]", "at_most"),
        ("schema: reticent.policy/1\nper: record\nlimits: [{measure: advantage, at_most: .nan}]", "at_most"),
        ("schema: reticent.policy/1\nper: record\nlimits: [{measure: tpr, at_most: 0.1}]", "needs 'at'"),
        ("schema: reticent.policy/1\nper: record\nlimits: [{measure: mu, at: 1, at_most: 0.1}]", "takes no 'at'"),
        ("schema: reticent.policy/1\nper: record\nlimits: [{measure: bayes_security, at_most: 0.1}]", "at_least"),
        ("schema: reticent.policy/1\nper: record\nlimits: [{measure: luck, at_most: 0.1}]", "measure"),
        ("schema: reticent.policy/1\nper: record\nsignatur: true\nlimits: [{measure: mu, at_most: 1}]", "signatur"),
        ("{{{", "YAML"),
        ("!!python/object/apply:os.system ['touch hacked']", "YAML"),
    ],
)
def test_a_policy_that_cannot_be_read_is_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(text)
    with pytest.raises(ArtifactError, match=complaint) as caught:
        load_policy(path)
    assert "\n" not in str(caught.value)


def test_hostile_names_are_inert_in_markdown_and_junit(certificate, outcome) -> None:
    checks = check(certificate, outcome, policy({"measure": "advantage", "at_most": 0.1}), now=NOW)
    checks.append(Check(HOSTILE, False, HOSTILE))
    suite = ElementTree.fromstring(gate_report.junit(certificate, checks))  # noqa: S314
    assert suite.tag == "testsuite"
    assert int(suite.get("failures", "")) == len(suite.findall("testcase/failure")) == 2
    assert suite.findall(".//script") == []
    text = gate_report.markdown(certificate, checks)
    assert text.count("\n## ") == 0
    for forbidden in ("<script", "\x00", "\x1b", "\u202e"):
        assert forbidden not in text
        assert forbidden not in gate_report.junit(certificate, checks)
    rows = [line for line in text.splitlines() if line.startswith("| **BREACH**")]
    assert all(line.replace("\\|", "").count("|") == 4 for line in rows)

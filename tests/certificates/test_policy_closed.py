"""The gate fails closed: what a policy does not allow is a breach, and what it cannot mean is an error."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from reticent.adversaries import Attribute, Membership, Mixed, Relaxed
from reticent.certificates.build import certify
from reticent.certificates.document.policy import MEASURED, Policy, load_policy
from reticent.certificates.document.schema import Certificate, Declaration
from reticent.certificates.gate import check
from reticent.certificates.verify import Verification, verify
from reticent.cli import main
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.errors import ArtifactError
from reticent.kernel.mechanisms import Gaussian
from tests.cli.calling import run

NOW = datetime(2026, 11, 22, tzinfo=UTC)
WEIGHTS = "cd" * 32
MOST = {"measure": "advantage", "at_most": 0.999}


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    """Under two relations; attackers with parameters of their own."""
    declared = Declaration(subject="a release", created="2026-11-01", weights_sha256=WEIGHTS)
    everybody = (WorstCase(), Mixed(1.0, dimension=1), Relaxed(dimension=2), Membership(), Attribute(0.5))
    return certify(Gaussian(2.0, dimension=3), declared, adversaries=everybody)


@pytest.fixture(scope="module")
def outcome(certificate: Certificate) -> Verification:
    return verify(certificate)


def policy(*limits: dict[str, Any], **more: Any) -> Policy:
    return Policy.model_validate({"schema": "reticent.policy/1", "per": "record", "limits": list(limits), **more})


@pytest.fixture
def breaches(certificate: Certificate, outcome: Verification) -> Any:
    def found(*limits: dict[str, Any], document: Certificate = certificate, compared: Any = None, **more: Any) -> Any:
        more = {"accept_conditions": ["clipped", "bounded-change"], **more}
        return [c for c in check(document, outcome, policy(*limits, **more), now=NOW, **compared or {}) if not c.passed]

    return found


def relation_of(check: Any) -> str:
    return str(check.name).rpartition("(")[2].rstrip(")")


class TestRelations:
    def test_a_limit_without_relation_holds_for_every_relation(self, certificate: Certificate, breaches: Any) -> None:
        worst = {a.neighbouring: a.advantage.value for a in certificate.assessments if a.adversary == "worst-case"}
        assert set(worst) == {"add-remove", "replace"}
        assert worst["add-remove"] < worst["replace"]
        (one,) = breaches({"measure": "advantage", "at_most": worst["add-remove"]}, relations=["add-remove"])
        assert relation_of(one) == "replace"
        assert breaches({"measure": "advantage", "at_most": worst["replace"]}) == []

    def test_in_whatever_order_the_document_has_them(self, certificate: Certificate, breaches: Any) -> None:
        turned = certificate.model_copy(update={"assessments": certificate.assessments[::-1]})
        worst = {a.neighbouring: a.advantage.value for a in certificate.assessments if a.adversary == "worst-case"}
        (one,) = breaches({"measure": "advantage", "at_most": worst["add-remove"]}, document=turned)
        assert relation_of(one) == "replace"

    def test_a_relation_that_must_be_there_and_is_not(self, breaches: Any) -> None:
        names = [str(c.name) for c in breaches(MOST, relations=["add-remove", "zero-out"])]
        assert names == ["the worst case under zero-out", "worst-case: advantage at most 0.999 (zero-out)"]

    def test_without_relations_the_attackers_own_must_be_there(self, certificate: Certificate, breaches: Any) -> None:
        kept = [a for a in certificate.assessments if a.neighbouring == "replace"]
        document = certificate.model_copy(update={"assessments": kept})
        assert [str(c.name) for c in breaches(MOST, document=document)] == [
            "the worst case under add-remove",
            "worst-case: advantage at most 0.999 (add-remove)",
        ]

    def test_the_worst_case_of_each_must_be_there(self, certificate: Certificate, breaches: Any) -> None:
        kept = [a for a in certificate.assessments if (a.adversary, a.neighbouring) != ("worst-case", "replace")]
        document = certificate.model_copy(update={"assessments": kept})
        limit = {**MOST, "adversary": "attribute", "neighbouring": "replace", "parameters": {"gradient_change": 0.5}}
        assert [str(c.name) for c in breaches(limit, document=document)] == ["the worst case under replace"]


class TestParameters:
    def test_other_parameters_do_not_count(self, breaches: Any) -> None:
        (one,) = breaches({**MOST, "adversary": "mixed"})
        assert str(one.detail) == "the certificate has no such assessment of mixed, only with other parameters"
        right = {"relaxed_probability": 1.0, "dimension": 1}
        assert breaches({**MOST, "adversary": "mixed", "parameters": right}) == []
        assert breaches({**MOST, "adversary": "mixed", "parameters": {"relaxed_probability": 0.9}})

    def test_what_is_not_named_has_its_default(self, breaches: Any) -> None:
        assert breaches({**MOST, "adversary": "relaxed"})
        assert breaches({**MOST, "adversary": "relaxed", "parameters": {"dimension": 2}}) == []
        assert breaches({**MOST, "adversary": "relaxed", "parameters": {"dimension": 2, "directions": MEASURED}})

    def test_a_number_is_no_measurement(self, breaches: Any) -> None:
        limit = {**MOST, "adversary": "attribute", "neighbouring": "replace"}
        assert breaches(limit)
        assert breaches({**limit, "parameters": {"gradient_change": MEASURED}})
        assert breaches({**limit, "parameters": {"gradient_change": 0.5}}) == []

    @pytest.mark.parametrize(
        "parameters", [{"relaxed_probabilit": 1.0}, {"relaxed_probability": MEASURED}, {"relaxed_probability": True}]
    )
    def test_parameters_that_mean_nothing(self, parameters: dict[str, Any]) -> None:
        with pytest.raises(ValueError, match="relaxed_probability"):
            policy({**MOST, "adversary": "mixed", "parameters": parameters})


def with_conditions(certificate: Certificate, claim: str, **statuses: str) -> Certificate:
    """The worst cases with other conditions."""
    conditions = [{"key": key.replace("_", "-"), "status": status} for key, status in statuses.items()]
    fields = [a.model_dump() | {"claim": claim, "conditions": conditions} for a in certificate.assessments]
    return certificate.model_copy(update={"assessments": [type(certificate.assessments[0])(**f) for f in fields]})


class TestConditions:
    def test_what_nobody_checked_must_be_accepted(self, breaches: Any) -> None:
        found = breaches({**MOST, "neighbouring": "add-remove"}, accept_conditions=[])
        (one,) = found
        assert re.fullmatch(
            r"is 0\.\d+, and rests on clipped \(declared\): the policy does not accept that", str(one.detail)
        )

    @pytest.mark.parametrize("status", ["declared", "assumed", "checked"])
    @pytest.mark.parametrize("claim", ["bound", "conditional", "any"])
    def test_a_conditional_bound_needs_each_condition_accepted(
        self, certificate: Certificate, breaches: Any, claim: str, status: str
    ) -> None:
        found = "bound" if status == "checked" else "conditional"
        document = with_conditions(certificate, found, fixed_length=status, clipped="declared")
        limit = {**MOST, "claim": claim}
        assert bool(breaches(limit, document=document)) == (status != "checked")
        assert bool(breaches(limit, document=document, accept_conditions=["fixed-length"]))
        assert breaches(limit, document=document, accept_conditions=["fixed-length", "clipped"]) == []

    def test_what_every_number_needs_is_not_asked_about(self, certificate: Certificate, breaches: Any) -> None:
        document = with_conditions(certificate, "bound", hidden_draws="assumed", real_numbers="assumed")
        assert breaches(MOST, document=document, accept_conditions=[]) == []

    def test_a_condition_that_nobody_knows_is_not_accepted(self, certificate: Certificate, breaches: Any) -> None:
        document = with_conditions(certificate, "bound", something_new="checked")
        assert "something-new" in str(breaches(MOST, document=document)[0].detail)

    @pytest.mark.parametrize("claim", ["estimate", "empirical"])
    def test_no_condition_makes_a_bound_of_an_estimate(
        self, certificate: Certificate, breaches: Any, claim: str
    ) -> None:
        document = with_conditions(certificate, claim)
        assert breaches(MOST, document=document)
        assert breaches({**MOST, "claim": "conditional"}, document=document)


class TestModel:
    def test_the_weights_must_have_been_compared(self, breaches: Any) -> None:
        assert breaches(MOST, weights=True, compared={"weights": True}) == []
        for weights in (None, False):
            (one,) = breaches(MOST, weights=True, compared={"weights": weights})
            assert one.name == "the model is the one that it names"

    def test_weights_that_differ_are_a_breach_even_if_nobody_asked(self, breaches: Any) -> None:
        assert breaches(MOST, compared={"weights": False})
        assert breaches(MOST, compared={"signed": False})

    def test_the_model_must_be_on_the_list(self, certificate: Certificate, breaches: Any) -> None:
        assert breaches(MOST, weights_sha256=["ab" * 32, WEIGHTS]) == []
        assert breaches(MOST, weights_sha256=["ab" * 32])
        unnamed = certificate.model_copy(
            update={"declared": certificate.declared.model_copy(update={"weights_sha256": None})}
        )
        assert breaches(MOST, weights_sha256=[WEIGHTS], document=unnamed)


LIMIT = "{measure: advantage, at_most: 0.1}"
MISTAKES = {
    "a warning that does not exist": (
        "forbid_warnings: [size-treated-as-publik]",
        "did you mean size-treated-as-public",
    ),
    "a condition that does not exist": ("accept_conditions: [clippd]", "clipped"),
    "a key that is nearly one": ("max_age_day: 3", "did you mean max_age_days"),
    "an age in base 60": ("max_age_days: 1:00", "several meanings"),
    "an age as a text": ("max_age_days: '30'", "max_age_days"),
    "an age that is true": ("max_age_days: true", "max_age_days"),
    "an age of nothing": ("max_age_days: 0", "max_age_days"),
    "yes": ("signature: yes", "signature"),
    "a number for yes": ("ledger: 1", "ledger"),
    "a key twice": ("ledger: true\nledger: false", "the key 'ledger' is repeated"),
    "a merge": ("<<: {ledger: false}", "merge key"),
    "an alias": ("ledger: &a true\nsignature: *a", "anchor"),
    "no relation": ("relations: [add-removes]", "relations"),
    "no digest": ("weights_sha256: [abc]", "weights_sha256"),
    "no digests": ("weights_sha256: []", "weights_sha256"),
}
LIMITS = {
    "success in percent": ("{measure: success, at: 0.5, at_most: 55}", "a number from 0 to 1, got 55"),
    "a guess below a blind one": ("{measure: success, at: 0.5, at_most: 0.4}", "must be at least 0.5"),
    "a TPR below the FPR": ("{measure: tpr, at: 0.01, at_most: 0.001}", "must be at least 0.01"),
    "a negative epsilon": ("{measure: epsilon, at: 1e-5, at_most: -1}", "a number from 0"),
    "an advantage above 1": ("{measure: advantage, at_most: 1.1}", "a number from 0 to 1"),
    "an advantage of all": ("{measure: advantage, at_most: 1}", "at_most of advantage must be below 1"),
    "any right guess": ("{measure: success, at: 0.5, at_most: 1.0}", "at_most of success must be below 1"),
    "no security": ("{measure: bayes_security, at_least: 0}", "at_least of bayes_security must be above 0"),
    "a security above 1": ("{measure: bayes_security, at_least: 1.1}", "a number from 0 to 1"),
    "infinite": ("{measure: mu, at_most: .inf}", "at_most"),
    "true": ("{measure: advantage, at_most: true}", "at_most"),
    "a text": ("{measure: advantage, at_most: '0.1'}", "at_most"),
    "a prior of 1": ("{measure: success, at: 1, at_most: 0.5}", "prior"),
    "an FPR above 1": ("{measure: tpr, at: 2, at_most: 0.5}", "fpr"),
    "a delta of 0": ("{measure: epsilon, at: 0, at_most: 0.5}", "delta"),
    "both ends": ("{measure: advantage, at_most: 0.5, at_least: 0.1}", "takes at_most only"),
    "nobody": ("{measure: advantage, at_most: 0.5, adversary: worstcase}", "did you mean worst-case"),
    "a measure that is nearly one": (
        "{measure: advantages, at_most: 0.5}",
        "(did you mean advantage?), got 'advantages'",
    ),
    "a relation that is nearly one": (
        "{measure: advantage, at_most: 0.5, neighbouring: add_remov}",
        "mean add-remove?",
    ),
    "no claim": ("{measure: advantage, at_most: 0.5, claim: bounds}", "claim"),
    "twice": ("{measure: advantage, at_most: 0.5, at_most: 1}", "is repeated"),
    "no parameter": ("{measure: advantage, at_most: 0.5, parameters: {dimension: 3}}", "parameter of worst-case"),
}


@pytest.mark.parametrize("case", [*MISTAKES, *LIMITS])
def test_a_mistake_in_a_policy_is_one_line_and_exit_code_2(
    case: str, certificate: Certificate, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    limit, more = (LIMITS[case][0], "") if case in LIMITS else (LIMIT, MISTAKES[case][0])
    path = tmp_path / "policy.yaml"
    path.write_text(f"schema: reticent.policy/1\nper: record\nlimits:\n  - {limit}\n{more}\n")
    code, out, err = run(capsys, "gate", "no such certificate", "--policy", path)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert ({**MISTAKES, **LIMITS})[case][1] in err


class TestCommand:
    @pytest.fixture
    def here(self, certificate: Certificate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "c.json").write_text(certificate.to_json())
        return tmp_path

    def gate(self, text: str, *more: str) -> int:
        Path("policy.yaml").write_text(
            f"schema: reticent.policy/1\nper: record\naccept_conditions: [clipped]\n{text}\n"
        )
        with pytest.raises(SystemExit) as end:
            main(["gate", "c.json", "--policy", "policy.yaml", *more])
        return int(end.value.code or 0)

    def test_it_says_what_verify_would_say(self, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.gate(f"limits: [{LIMIT.replace('0.1', '0.9')}]", "--json") == 0
        said = json.loads(capsys.readouterr().out)["reservations"]
        assert said[0].startswith("No signature was checked")
        assert said[1].startswith("Stop: can one person have several records? Nobody stated it.")
        assert said[2].startswith("The mechanism is declared")
        assert self.gate(f"limits: [{LIMIT.replace('0.1', '0.9')}]", "--markdown", "a.md", "--junit", "a.xml") == 0
        assert "! No signature was checked" in capsys.readouterr().out
        assert "No signature was checked" in Path("a.md").read_text()
        assert "No signature was checked" in Path("a.xml").read_text()

    def test_a_model_that_is_required_must_be_given(self, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
        required = f"limits: [{LIMIT.replace('0.1', '0.9')}]\nweights: true"
        assert self.gate(required) == 2
        assert "give --weights" in capsys.readouterr().err
        (here / "w").write_bytes(b"another model")
        assert self.gate(required, "--weights", "w") == 1
        assert self.gate(required, "--weights", "none there") == 2

    def test_a_pipe_is_no_policy(self, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
        import os

        os.mkfifo(here / "pipe")
        with pytest.raises(ArtifactError, match="not a plain file"):
            load_policy(here / "pipe")


class TestOutputs:
    """Nothing that exists is overwritten, but for an older report of the same kind."""

    @pytest.fixture
    def here(self, certificate: Certificate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "c.json").write_text(certificate.to_json())
        (tmp_path / "policy.yaml").write_text(
            "schema: reticent.policy/1\nper: record\naccept_conditions: [clipped]\n"
            "limits: [{measure: advantage, at_most: 0.999}]\n"
        )
        return tmp_path

    def gate(self, *more: str) -> int:
        with pytest.raises(SystemExit) as end:
            main(["gate", "c.json", "--policy", "policy.yaml", *more])
        return int(end.value.code or 0)

    @pytest.mark.parametrize("option", ["--markdown", "--junit"])
    @pytest.mark.parametrize("victim", ["key", "c.json", "policy.yaml", "link", "folder", "notes"])
    def test_a_foreign_file_stays(self, here: Path, option: str, victim: str) -> None:
        (here / "key").write_text("-----BEGIN PRIVATE KEY-----\n")
        (here / "notes").write_text('what the gate said:\n\n## Privacy gate: passed\n<testsuite name="privacy gate: x"')
        (here / "folder").mkdir()
        (here / "link").symlink_to("key")
        before = {p.name: p.read_bytes() for p in here.iterdir() if p.is_file()}
        assert self.gate(option, victim) == 2
        assert {p.name: p.read_bytes() for p in here.iterdir() if p.is_file()} == before

    @pytest.mark.parametrize("option", ["--markdown", "--junit"])
    def test_a_folder_that_is_missing_is_named_before_anything_is_derived(
        self, here: Path, option: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (here / "c.json").write_text("not looked at")
        assert self.gate(option, "none/x") == 2
        assert capsys.readouterr().err == "reticent: none/x: none is not a folder that can be written to\n"

    def test_an_older_report_is_replaced_by_one_of_its_kind_only(self, here: Path) -> None:
        assert self.gate("--markdown", "a", "--junit", "b") == 0
        (here / "a").write_text((here / "a").read_text() + "old")
        assert self.gate("--markdown", "a", "--junit", "b") == 0
        assert not (here / "a").read_text().endswith("old")
        assert self.gate("--markdown", "b") == 2
        assert self.gate("--junit", "a") == 2
        assert self.gate("--markdown", "c", "--junit", "c") == 2

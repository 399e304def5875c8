"""A sensitivity that a configuration asks for: recorded, kept with the run, and out of what is published."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from reticent.certificates.build import certify_run, public
from reticent.kernel.errors import ArtifactError, ParameterError
from reticent.kernel.proofs import Claim
from reticent.mechanisms.sensitivity import Scope
from reticent.sensitivity import SensitiveAttribute
from reticent.training import train
from reticent.training.rundir import SENSITIVITY, parse_sensitivity
from reticent.training.sensitive import AttributeHook
from tests.training.small import BASE, configured

pytestmark = pytest.mark.usefixtures("quick_documents")

MEASURED = BASE | {"noise_multiplier": 4.0, "batch_size": 32, "steps": 5, "randomness": "reproducible", "seed": 3}
SENSITIVE = {"sensitive": {"group": "mean texture", "scope": "audit-set", "records": 20}}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return train(configured(MEASURED | SENSITIVE), tmp_path_factory.mktemp("runs") / "with")


def test_the_record_lies_in_the_run_and_does_not_change_the_weights(run, tmp_path: Path) -> None:
    plain = train(configured(MEASURED), tmp_path / "without")
    assert plain.sensitivity() is None
    for name, tensor in plain.weights().items():
        assert torch.equal(tensor, run.weights()[name])
    record = run.sensitivity()
    assert json.loads((run.path / SENSITIVITY).read_text())["schema"] == "reticent.sensitivity/1"
    assert record.steps == 5
    assert record.scope is Scope.AUDIT_SET
    assert 0.0 < record.squared_change <= 4.0 * 5


def test_the_certificate_shows_it_inside_and_hides_it_outside(run) -> None:
    certificate = certify_run(run.ledger, run.sensitivity())
    (attribute,) = (a for a in certificate.assessments if a.adversary == "attribute")
    assert attribute.do_not_publish
    assert attribute.claim == Claim.ESTIMATE  # no budget was fixed beforehand
    assert f"assessments[{certificate.assessments.index(attribute)}]" in certificate.do_not_publish
    text = public(certificate).to_json()
    assert "which of two values the field has" not in text
    assert "attribute-affinity" not in text


def test_a_budget_fixed_in_advance_stops_the_run(run, tmp_path: Path) -> None:
    budget = 0.5 * run.sensitivity().mask_term
    config = configured(MEASURED, sensitive=SENSITIVE["sensitive"] | {"budget": budget})
    stopped = train(config, tmp_path / "run")
    assert 1 <= stopped.ledger.steps < 5
    assert stopped.sensitivity().mask_term <= budget


def test_a_budget_that_no_ledger_would_show_is_refused(tmp_path: Path) -> None:
    """Whether it ended the run or not: that shows something about records, and the configuration says so."""
    age = SensitiveAttribute.number(0, low=0.0, high=1.0, count=2)
    with pytest.raises(ParameterError, match=r"state sensitive\.budget in the configuration"):
        train(configured(MEASURED), tmp_path / "run", hooks=[AttributeHook(age, whole=True, budget=0.1)])


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema": "reticent.sensitivity/1", "steps": -1}', '{"schema": "x"}']
)
def test_a_broken_record_is_one_clear_error(text: str) -> None:
    with pytest.raises(ArtifactError, match=SENSITIVITY):
        parse_sensitivity(text, SENSITIVITY)


@pytest.mark.parametrize(("change", "word"), [({"records": None}, "records"), ({"scope": "whole-data"}, "records")])
def test_contradictory_settings_are_refused(change: dict, word: str) -> None:
    with pytest.raises(ArtifactError, match=word):
        configured(MEASURED | {"sensitive": SENSITIVE["sensitive"] | change})


def test_measuring_every_third_step_gives_a_larger_record(tmp_path) -> None:
    asked = {"group": "mean radius", "scope": "whole-data"}
    found = []
    for every in (1, 3):
        config = configured(MEASURED, sensitive={**asked, "every": every}, steps=4)
        found.append(train(config, tmp_path / str(every)).sensitivity())
    exact, sampled = found
    assert exact.mask_term < sampled.mask_term
    assert exact.squared_change < sampled.squared_change
    assert sampled.squared_change >= 2 * 4.0

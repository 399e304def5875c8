"""The final model only, in the trainer: the factor by brute force, what is checked, certified and refused.

Theorems: RETICENT:hidden-steps.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

import reticent as rt
from reticent.adversaries import FinalModel
from reticent.certificates.build import certify_run, public
from reticent.certificates.document.policy import Policy
from reticent.certificates.document.schema import Certificate
from reticent.certificates.gate import check
from reticent.certificates.verify import verify
from reticent.facts.hidden_steps import contraction
from reticent.kernel.adversaries.from_ledger import assess_seen
from reticent.kernel.errors import ArtifactError, ParameterError, UnsupportedError
from reticent.kernel.proofs import Claim, Status
from reticent.kernel.samplers import Poisson
from reticent.samplers import Cyclic
from reticent.training import train
from reticent.training.features import length_note, normalised
from reticent.training.hooks import StepHook
from reticent.training.setup import make_settings

pytestmark = pytest.mark.usefixtures("quick_documents")

WHOLE = {"sample_rate": 1.0, "batch_size": None, "steps": 60}
ASKED = {"epsilon": 2.0, "delta": 1e-5}
CYCLIC = {"sampler": "cyclic", "batch_size": 12, "steps": 25}


@pytest.fixture(scope="module")
def unit(dataset):
    return normalised(dataset, 1.0)


@pytest.fixture(scope="module")
def hidden(make_config):
    def make(**changes):
        settings = {
            "data": {"name": "breast-cancer", "normalise_features": True},
            "model": {"kind": "logistic"},
            "noise_multiplier": 5.0,
            "learning_rate": 1.0,
            "weight_decay": 0.05,
            "final_model": True,
            "randomness": "fresh",
        }
        return make_config(**{**settings, **WHOLE, **changes})

    return make


@pytest.fixture(scope="module")
def ledger(hidden, unit, tmp_path_factory):
    """Of a run that hides its steps."""
    return train(hidden(), tmp_path_factory.mktemp("hidden") / "run", dataset=unit).ledger


class Looks(StepHook):
    """A hook of somebody else's."""


def update(weights, rows, labels, clip, step, decay, divisor):
    """One update without noise of two logits under softmax, written out: nothing of the library."""
    scores = rows @ weights.T
    shares = np.exp(scores - scores.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    gradients = (shares - np.eye(weights.shape[0])[labels])[:, :, None] * rows[:, None, :]
    lengths = np.sqrt((gradients**2).sum((1, 2)))
    clipped = gradients * np.minimum(1.0, clip / lengths)[:, None, None]
    return weights - step * (clipped.sum(0) / divisor + decay * weights)


@pytest.mark.parametrize(
    ("step", "decay", "bias"), [(1.0, 0.05, False), (3.2, 0.05, False), (1.66, 0.05, True), (0.1, 1.0, True)]
)
def test_no_two_weights_part_faster_than_the_factor(step: float, decay: float, bias: bool) -> None:
    rng = np.random.default_rng(5)
    config = {"data": {"normalise_features": 1.0}, "model": {"bias": bias}}
    factor, most = contraction(config, step, decay, 8.0), 0.0
    for trial in range(300):
        rows = rng.normal(size=(9, 4))
        rows[: trial % 10] = rows[0]  # many records along one line bend the loss most
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        rows = np.hstack([rows, np.ones((9, 1))]) if bias else rows
        labels = rng.integers(0, 2, 9)
        one = rng.normal(size=(2, rows.shape[1])) * rng.choice([0.01, 1.0, 20.0])
        other = one + rng.normal(size=one.shape) * rng.choice([1e-4, 1.0])
        if trial % 2:
            other = one + 1e-3 * np.outer([1.0, -1.0], rows[0])
        clip = rng.choice([0.1, 2.0])
        ends = [update(w, rows, labels, clip, step, decay, 8.0) for w in (one, other)]
        most = max(most, np.linalg.norm(ends[0] - ends[1]) / np.linalg.norm(one - other))
    assert most <= factor * (1.0 + 1e-9)
    assert most >= 0.98 * factor


def test_steps_that_are_too_long_contract_nothing() -> None:
    config = {"data": {"normalise_features": 1.0}, "model": {"bias": False}}
    assert contraction(config, 3.9, 0.0, 1e9) == 1.0
    assert contraction(config, 4.1, 0.0, 1e9) is None
    assert contraction(config, 3.9, 0.1, 1e9) is None


def test_a_run_that_hides_its_steps_is_certified_so(ledger) -> None:
    assert ledger.diagnostics.clipped == ()
    assert ledger.contraction == pytest.approx(1.0 - 0.05, rel=1e-12, abs=0)
    assert (type(ledger.mechanism().sampler), ledger.divisor) == (Poisson, 60)
    document = public(certify_run(ledger))
    assert verify(document).accepted
    (last,) = (one for one in document.assessments if one.adversary == "final-model")
    assert last.claim == Claim.BOUND
    statuses = {one.key: one.status for one in last.conditions}
    known = ("contraction", "equal-updates", "final-model-only", "start-weights")
    assert {statuses[key] for key in known} == {Status.CHECKED}
    assert last.epsilon_at_delta["1e-05"].value < 0.9 * document.assessments[0].epsilon_at_delta["1e-05"].value
    limit = {"measure": "advantage", "at_most": last.advantage.value, "adversary": "final-model"}
    for parameters, passed in (({"contraction": "any"}, True), ({"contraction": 0.5}, False)):
        limits = [{**limit, "parameters": parameters}]
        policy = Policy.model_validate({"schema": "reticent.policy/1", "per": "record", "limits": limits})
        checks = check(document, verify(document), policy, now=datetime(2026, 11, 23, tzinfo=UTC))
        assert all(one.passed for one in checks) is passed


def test_a_target_for_who_sees_the_final_model_takes_less_noise(hidden, unit, tmp_path) -> None:
    worst, last = (
        hidden(**{**dict.fromkeys(WHOLE), **CYCLIC, "noise_multiplier": None, "target": {**ASKED, "adversary": who}})
        for who in ("worst-case", "final-model")
    )
    run = train(last, tmp_path / "run", dataset=unit)
    assert (type(run.ledger.mechanism().sampler), run.ledger.divisor) == (Cyclic, 12)
    noise = run.ledger.first.noise_multiplier
    assert noise < 0.8 * make_settings(worst, 60).noise_multiplier
    certificate = certify_run(run.ledger)
    assert verify(public(certificate)).accepted
    (found,) = (one for one in certificate.assessments if one.adversary == "final-model")
    assert found.epsilon_at_delta["1e-05"].value == pytest.approx(2.0, rel=1e-3, abs=0)


def test_a_target_for_the_final_model_needs_hidden_steps(hidden) -> None:
    target = {"advantage": 0.1, "adversary": "final-model"}
    with pytest.raises(ArtifactError, match="goes with final_model"):
        hidden(noise_multiplier=None, target=target, final_model=False)


def test_a_stated_factor_that_the_run_does_not_establish_is_refused(ledger) -> None:
    for factor, status in ((0.96, Status.CHECKED), (0.5, Status.DECLARED)):
        who = FinalModel(factor)
        found = assess_seen(who, ledger.mechanism(), who.relation, who.methods[0], ledger)
        assert {one.key: one.status for one in found.conditions}["contraction"] is status
    document = json.loads(certify_run(ledger).to_json())
    (last,) = (one for one in document["assessments"] if one["adversary"] == "final-model")
    last["parameters"]["contraction"] = 0.5
    for decay in (0.05, 0.5):
        document["ledger"]["config"]["weight_decay"] = decay
        assert not verify(Certificate.parse(document)).accepted


@pytest.mark.parametrize(
    "changes",
    [{}, {"momentum": 0.9}, {"optimiser": "adam"}, {"average_last": 0.5}],
    ids=lambda one: "".join(one),
)
def test_a_run_whose_updates_are_not_equal_declares_no_factor(hidden, unit, tmp_path, changes) -> None:
    """And one that nobody asked to hide its steps, or to hold to limits, does neither."""
    ledger = train(hidden(final_model=False, steps=3, **changes), tmp_path / "run", dataset=unit).ledger
    assert ledger.contraction is None
    if changes:
        with pytest.raises(UnsupportedError, match=next(iter(changes))):
            assess_seen(FinalModel(0.9), ledger.mechanism(), FinalModel.relation, FinalModel.methods[0], ledger)
    else:
        assert not {"final-model", "population"} & {one.adversary for one in certify_run(ledger).assessments}


def test_updates_that_do_not_contract_hide_nothing(ledger) -> None:
    others = {"momentum": 0.9, "trace": {"every": 1}, "learning_rate": 50.0, "model": {"kind": "mlp", "widths": [4]}}
    for name, value in others.items():
        assert ledger.model_copy(update={"config": {**ledger.config, name: value}}).contraction is None
    assert ledger.model_copy(update={"data": ledger.data.model_copy(update={"classes": 3})}).contraction is None


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"model": {"kind": "mlp", "widths": [4]}}, "Annamalai"),
        ({"model": {"kind": "convnet"}}, "Annamalai"),
        ({"momentum": 0.9}, "momentum"),
        ({"optimiser": "adam"}, "optimiser"),
        ({"clipping": "normalise"}, "clipping"),
        ({"average_last": 0.5}, "average_last"),
        ({"trace": {"every": 1}}, "trace"),
        ({"learning_rate_schedule": {"decay": "cosine"}}, "learning_rate_schedule"),
        ({"sample_rate": 0.5}, "drawn batches"),
        ({"sample_rate": None, "batch_size": 12, "sampler": "shuffled"}, "drawn batches"),
        ({"data": {"name": "breast-cancer"}}, "normalise_features"),
        ({"divisor": 60.0}, "divisor"),
        ({"records_per_user": 2}, "records_per_user"),
    ],
    ids=lambda x: next(iter(x)) if isinstance(x, dict) else x,
)
def test_what_shows_steps_or_parts_weights_is_refused(hidden, changes, says) -> None:
    with pytest.raises(ArtifactError, match=says):
        hidden(**changes)


def test_what_only_the_run_knows_is_refused_too(hidden, unit, tmp_path) -> None:
    labels = unit.labels.copy()
    labels[0] = 2
    longer = replace(unit, features=unit.features * 2.0)
    assert length_note(1.0) in longer.notes
    for settings, more, error, says in (
        ({}, {"dataset": replace(unit, labels=labels, classes=3)}, UnsupportedError, "three or more classes"),
        ({}, {"hooks": [Looks()]}, UnsupportedError, "no hooks"),
        ({}, {"checkpoint": tmp_path / "kept"}, UnsupportedError, "no checkpoint"),
        ({"learning_rate": 2.5}, {}, ParameterError, "smoothness"),
        ({}, {"dataset": longer}, ParameterError, "one length"),
    ):
        with pytest.raises(error, match=says):
            train(hidden(**settings), tmp_path / "run", **{"dataset": unit, **more})


def test_an_attacker_that_was_declared_and_cannot_be_answered_is_named() -> None:
    certificate = rt.certify(rt.dpsgd(noise_multiplier=2.0, sample_rate=0.1, steps=5), contraction=0.9).certificate
    assert "hidden steps" in certificate.skipped["final-model"]

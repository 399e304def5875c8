"""A ledger that contradicts itself is refused, also where the forger seals it again."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import reticent as rt
from reticent.calibration import EpsilonAtDelta, NoiseMultiplier, NoiseScale
from reticent.calibration.solve import calibrate
from reticent.certificates.build import certify_run, run_declaration
from reticent.certificates.document.ledger_rules import contradictions
from reticent.certificates.document.schema import Declaration, Edition
from reticent.certificates.document.targets import misses_its_target
from reticent.certificates.verify import verify
from reticent.cli import main
from reticent.facts import Fact, all_facts
from reticent.facts.base import Rule
from reticent.facts.plan import told
from reticent.kernel.errors import ArtifactError
from reticent.kernel.mechanisms import DPSGD, Ledger
from reticent.kernel.samplers import INDEPENDENT
from reticent.kernel.samplers.base import not_by_coins
from reticent.records import ledger as ledgers_of_reticent
from reticent.records.ledger import RunLedger
from reticent.records.publication import published
from tests.certificates.conftest import make_ledger
from tests.certificates.contradicting import (
    FORMS,
    LINEAR,
    RUNS,
    WATCHED,
    Change,
    biased,
    both,
    document_of,
    linear,
    of_a_linear_model,
    planned_for,
)
from tests.certificates.edits import read
from tests.certificates.forging import resealed, set_at
from tests.certificates.ledgers import elsewhere, poisson


def test_what_the_edits_begin_with_is_accepted() -> None:
    """One direction of a linear model, and a plan in numbers, are what the edits change."""
    share = {"kind": "one-direction", "dimension": 30, "known_share": 1.000001 / 4.0}
    for change in (
        of_a_linear_model(LINEAR),
        planned_for({"noise_multiplier": 0.1}),
        both(set_at("config.model", {"kind": "logistic", "bias": True}), set_at("gradients", share)),
    ):
        document = document_of(make_ledger())
        change(document)
        assert read(document, complete=True, sealed=True) is not None


@pytest.mark.parametrize("name", RUNS)
def test_a_run_that_contradicts_itself_is_refused(name: str) -> None:
    document = document_of(make_ledger())
    assert read(document, complete=True, sealed=True) is not None
    RUNS[name](document)
    assert read(document, complete=True, sealed=True) is None


OF_A_PUBLIC_ONE = [name for name in RUNS if not {"batches", "batch", "step", "steps", "early"} & set(name.split())]


@pytest.mark.parametrize("name", OF_A_PUBLIC_ONE)
def test_a_public_ledger_is_held_to_the_same_facts(name: str) -> None:
    """Without diagnostics that could give the edit away as well."""
    document = document_of(published(make_ledger()))
    assert read(document, complete=False, sealed=True) is not None
    RUNS[name](document)
    assert read(document, complete=False, sealed=True) is None


@pytest.mark.parametrize("name", FORMS)
def test_a_form_of_gradients_that_the_configuration_cannot_have_is_refused(name: str) -> None:
    document = document_of(linear())
    assert read(document, complete=True, sealed=True) is not None
    FORMS[name](document)
    assert read(document, complete=True, sealed=True) is None


def test_a_bias_beside_features_of_a_known_length_has_its_share() -> None:
    for change in (biased(0.04), both(biased(0.11), set_at("config.data.normalise_features", 3.0))):
        document = document_of(linear())
        change(document)
        assert read(document, complete=True, sealed=True) is not None


@pytest.mark.parametrize("name", WATCHED)
def test_a_watched_loop_that_contradicts_itself_is_refused(name: str) -> None:
    make, change = WATCHED[name]
    document = document_of(make())
    assert read(document, complete=True, sealed=True) is not None
    change(document)
    assert read(document, complete=True, sealed=True) is None


EDITS: dict[str, list[tuple[Callable[[], RunLedger], Change]]] = {
    "trained": [
        *((make_ledger, change) for change in RUNS.values()),
        *((linear, change) for change in FORMS.values()),
    ],
    "watched": [*WATCHED.values()],
}
RULES = [(kind, fact, rule) for kind in EDITS for fact in all_facts().values() for rule in getattr(fact, kind)]


@pytest.mark.parametrize(
    ("kind", "fact", "rule"), RULES, ids=[(rule.__doc__ or "").split("\n")[0] for *_, rule in RULES]
)
def test_each_rule_refuses_something_that_no_other_does(
    kind: str, fact: Fact, rule: Rule, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it one of the edits gets through."""
    assert rule.__doc__
    without = replace(fact, **{kind: tuple(one for one in getattr(fact, kind) if one is not rule)})
    monkeypatch.setattr(ledgers_of_reticent, "all_facts", lambda: {**all_facts(), fact.key: without})
    through = 0
    for make, change in EDITS[kind]:
        document = document_of(make())
        change(document)
        through += read(document, complete=True, sealed=True) is not None
    assert through


def test_what_was_edited_is_named_unless_the_forger_seals_it() -> None:
    for ledger in (make_ledger(), poisson()):
        changed = elsewhere(ledger, device="cuda")
        assert [where for where, _ in changed.contradictions()] == ["digest"]
        assert not list(changed.sealed().contradictions())
        assert [where for where, _ in ledger.model_copy(update={"digest": ""}).contradictions()] == ["digest"]


def test_certify_lint_and_the_mechanism_of_a_file_refuse_it(tmp_path) -> None:
    more = tuple(part.model_copy(update={"noise_multiplier": 30.0}) for part in make_ledger().segments)
    forged = make_ledger().model_copy(update={"segments": more})
    with pytest.raises(ArtifactError, match="contradicts itself"):
        certify_run(forged)
    (tmp_path / "ledger.json").write_text(forged.to_json())
    with pytest.raises(ArtifactError, match="contradicts itself"):
        rt.certify(tmp_path / "ledger.json")
    assert rt.lint(tmp_path / "ledger.json").worst == "error"
    watched = poisson().model_copy(update={"records_per_user": 2})
    with pytest.raises(ArtifactError, match="contradicts itself"):
        certify_run(watched)
    assert rt.lint(watched).worst == "error"


def test_the_declared_model_and_time_are_those_of_the_run() -> None:
    ledger, said = poisson(), {"subject": "a loop", "created": "2026-11-22"}
    assert not list(contradictions(ledger, Declaration(**said)))
    for more in ({"weights_sha256": "ab" * 32}, {"created": "2026-11-21"}):
        assert list(contradictions(ledger, Declaration(**{**said, **more})))


def test_verify_compares_a_ledger_with_what_is_declared() -> None:
    document = json.loads(certify_run(poisson()).to_json())
    assert verify(resealed(document)).accepted
    for name, said in (("weights_sha256", "ab" * 32), ("created", "2020-01-01")):
        changed = {**document, "declared": {**document["declared"], name: said}}
        found = verify(resealed(changed))
        assert [one.leaf for one in found.differences if found.refuses(one)] == [f"ledger.{name}"]


def test_the_command_says_first_that_a_fact_was_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(certify_run(poisson()).to_json())
    set_at("ledger.segments.0.noise_multiplier", 5.0)(document)
    (tmp_path / "c.json").write_text(json.dumps(document))
    with pytest.raises(SystemExit, match="1"):
        main(["verify", str(tmp_path / "c.json")])
    said = " ".join(capsys.readouterr().out.split())
    assert said.index("it is not that of the other facts") < said.index("headline is")


def with_target(noise: float, *stages: float) -> RunLedger:
    """Four steps, or two in each of the stages, whose noise is that of the first times a factor."""
    ledger = make_ledger(steps=2 + 2 * len(stages) if stages else 4, sample_rate=1.0)
    target = {"epsilon": 3.0, "delta": 1e-5, "adversary": "worst-case", "neighbouring": "add-remove"}
    config = {**ledger.config, "noise_multiplier": None, "target": target}
    config["schedule"] = [{"at": 2 + 2 * i, "noise_factor": factor} for i, factor in enumerate(stages)]
    steps = 2 if stages else 4
    ran = [
        ledger.first.model_copy(update={"steps": steps, "noise_multiplier": noise * factor})
        for factor in (1.0, *stages)
    ]
    return ledger.model_copy(update={"config": config, **told(ran, INDEPENDENT, "flat")}).sealed()


def test_a_target_asks_for_the_least_noise_and_no_more() -> None:
    least = calibrate(DPSGD(1.0, 1.0, 4), NoiseMultiplier(), EpsilonAtDelta(3.0, 1e-5)).value
    said = Declaration(subject="a run", created="2026-11-22")
    assert not list(contradictions(with_target(least), said))
    for factor in (2.0, 1.01, 1.00001, 0.8):
        assert "segments.0.noise_multiplier" in dict(contradictions(with_target(least * factor), said))


def test_a_target_of_stages_asks_for_the_least_noise_too() -> None:
    """Full batches of Gaussian noise: two steps at s and two at s / 2 show what four at s sqrt(4 / 10) show."""
    least = calibrate(DPSGD(1.0, 1.0, 4), NoiseMultiplier(), EpsilonAtDelta(3.0, 1e-5)).value * math.sqrt(10 / 4)
    found = dict(contradictions(with_target(least * 1.01, 0.5), Declaration(subject="a run", created="2026-11-22")))
    assert float(found["segments.0.noise_multiplier"].rpartition(" ")[2]) == pytest.approx(least, rel=1e-4, abs=0)
    release = Ledger((DPSGD(1.0, 1.0, 2), DPSGD(0.5, 1.0, 2)))
    kept = calibrate(release, NoiseScale(), EpsilonAtDelta(3.0, 1e-5)).value
    assert kept == pytest.approx(least, rel=1e-4, abs=0)
    assert not list(misses_its_target(with_target(kept, 0.5)))


def test_fair_batches_are_never_called_impossible() -> None:
    import numpy as np

    draw = np.random.default_rng(4)
    for rate in (0.001, 0.1, 0.5, 1.0):
        for records in (10, 455, 100_000):
            drawn = int(draw.binomial(records, rate, size=200).sum())
            assert not not_by_coins(drawn, 200 * records * rate, rate)
    assert not_by_coins(2 * 100 * 100, 100 * 100, 0.1)
    assert not_by_coins(0, 100 * 100, 0.1)


def test_a_public_ledger_with_something_private_is_refused() -> None:
    said = run_declaration(make_ledger())
    ledger = published(make_ledger())
    assert not list(contradictions(ledger, said, Edition.PUBLIC))
    for path, value in (
        ("data.name", "patients of ward 7"),
        ("data.test_size", 100),
        ("utility", {"test_accuracy": 0.9, "test_loss": None}),
        ("utility", {"test_accuracy": None, "test_loss": 0.25}),
        ("config.data.table", {"file_sha256": "ab" * 32, "derived": []}),
        ("data.notes", ["age"]),
        ("facts.read-aloud-to", "patients of ward 7"),
    ):
        document = document_of(ledger)
        set_at(path, value)(document)
        forged = RunLedger.model_validate(document).sealed()
        assert list(contradictions(forged, said, Edition.PUBLIC)), path

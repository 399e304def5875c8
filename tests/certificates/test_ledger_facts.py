"""A ledger that contradicts itself is refused, also where the forger seals it again."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest

import reticent as rt
from reticent.calibration import EpsilonAtDelta, NoiseMultiplier, NoiseScale
from reticent.calibration.solve import calibrate
from reticent.certificates.build import certify_run, run_declaration
from reticent.certificates.ledger_rules import STATED_RULES, contradictions
from reticent.certificates.schema import Declaration, Edition
from reticent.certificates.targets import misses_its_target
from reticent.certificates.verify import verify
from reticent.errors import ArtifactError
from reticent.mechanisms import DPSGD, Ledger
from reticent.records.ledger import RunLedger
from reticent.records.own_rules import RUN_RULES
from reticent.records.parts import StageRecord
from reticent.records.publication import published
from reticent.records.seen_rules import WATCH_RULES
from reticent.samplers.base import not_by_coins
from tests.certificates.conftest import make_ledger
from tests.certificates.edits import read
from tests.certificates.forging import resealed, set_at
from tests.certificates.ledgers import poisson, shuffled

Change = Callable[[dict[str, Any]], object]


def document_of(ledger: RunLedger) -> dict[str, Any]:
    return json.loads(json.dumps(ledger.model_dump(mode="json", by_alias=True)))


def stepped(steps: int) -> Change:
    """So many steps, in every place where the ledger counts them but the configuration."""

    def change(d: dict[str, Any]) -> None:
        d.update(steps=steps, planned_steps=steps)
        for name in ("batch_sizes", "clipped"):
            d["diagnostics"][name] = (d["diagnostics"][name] * steps)[:steps]

    return change


def both(*changes: Change) -> Change:
    return lambda d: [change(d) for change in changes]


def of_a_linear_model(model: dict[str, Any], **form: Any) -> Change:
    """Gradients along one direction, beside a model of the configuration."""
    known = {"kind": "one-direction", "dimension": 30, "features": "same", **form}
    tensors = [{"name": "weight", "shape": [2, 30]}]
    table = {"file": "a.csv", "file_sha256": "ab" * 32, "schema_sha256": "ab" * 32, "derived": []}
    return both(
        set_at("config.data.table", table),
        set_at("config.model", model),
        set_at("gradients", known),
        set_at("parameters", tensors),
        set_at("num_parameters", 60),
    )


def planned_for(later: dict[str, Any]) -> Change:
    """A run that stopped after half of its plan, before the plan changed noise or rate."""

    def change(d: dict[str, Any]) -> None:
        stepped(6)(d)
        d.update(planned_steps=12, warnings=[*d["warnings"], "stopped-early"])
        d["config"].update(steps=12, schedule=[{"at": 8, **later}])

    return change


LINEAR = {"kind": "logistic", "bias": False}
RUNS: dict[str, Change] = {
    "planned noise as text before steps": planned_for({"noise_multiplier": "0.1"}),
    "planned batch as text before steps": planned_for({"batch_size": "400"}),
    "a stage after the last": set_at("config.schedule", [{"at": 12, "noise_factor": 1.0}]),
    "a network with one direction": of_a_linear_model({"kind": "mlp", "widths": [8]}),
    "no model and one direction": of_a_linear_model(None),  # type: ignore[arg-type]
    "a model that no configuration has": set_at("config.model", {"kind": "downloaded"}),
    "a bias that the gradients do not have": of_a_linear_model({"kind": "logistic", "bias": True}),
    "tensors of another layer": both(
        of_a_linear_model(LINEAR, dimension=60),
        set_at("parameters", [{"name": "weight", "shape": [2, 60]}]),
        set_at("num_parameters", 120),
    ),
    "one direction of several views": both(
        of_a_linear_model(LINEAR), set_at("config.augmentation", {"times": 4, "flips": True})
    ),
    "the same features by a schema from records": both(
        of_a_linear_model(LINEAR),
        set_at("config.data.table", {"derived": True}),
        lambda d: d["warnings"].append("schema-from-records"),
    ),
    "a bias without a share": both(
        set_at("config.model", {"kind": "logistic", "bias": True}),
        set_at("gradients", {"kind": "one-direction", "dimension": 30, "known_share": 1e-9}),
    ),
    "another rate than was asked for": both(
        set_at("sample_rate", 0.001), set_at("expected_batch_size", 0.4), set_at("divisor", 0.4)
    ),
    "40 epochs and one step": both(set_at("config.epochs", 40), set_at("config.steps", None), stepped(1)),
    "fewer steps than were asked for": stepped(3),
    "records of a person that nobody states": set_at("records_per_user", 1),
    "fewer records of a person than stated": both(set_at("config.records_per_user", 3), set_at("records_per_user", 1)),
    "free text as a date": set_at("created", "last tuesday"),
    "a date that is none": set_at("created", "2026-13-45"),
    "noise that was not asked for": set_at("noise_multiplier", 30.0),
    "noise that nobody asked for": both(set_at("config.noise_multiplier", None), set_at("noise_multiplier", 30.0)),
    "a configuration without noise": lambda d: (d["config"].pop("noise_multiplier"), d.update(noise_multiplier=30.0)),
    "batch and rate both asked for": set_at("config.sample_rate", 0.25),
    "no sampler asked for": lambda d: (d["config"].pop("sampler"), d.update(sampler="fixed-size")),
    "steps beyond the plan": both(stepped(20), set_at("planned_steps", 12)),
    "stopped early without the warning": both(stepped(8), set_at("planned_steps", 12)),
    "another divisor": set_at("divisor", 50.0),
    "seeds of a fresh run": set_at("seeds.noise", 3),
    "another seed": set_at("seeds.initialisation", 8),
    "a setting that no configuration has": set_at("config.approved", "yes"),
    "a part of the data that no configuration has": set_at("config.data.folder", "/home"),
    "more coordinates than there are": set_at("num_parameters", 63),
    "batches of another rate": set_at("diagnostics.batch_sizes", [20] * 12),
    "a batch of more than all": set_at("diagnostics.batch_sizes", [401] + [100] * 11),
    "warning repeated": set_at("warnings", ["size-treated-as-public"] * 2),
    "records that were not kept": set_at("config.data.train_size", 200),
    "hostile version": set_at("versions.python", "<b>"),
    "a device of many lines": set_at("device", "cpu\nand more"),
}


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


def linear(**form: Any) -> dict[str, Any]:
    """A ledger of logistic regression without a bias, on records of a declared schema."""
    document = document_of(make_ledger())
    table = {"file": "a.csv", "file_sha256": "ab" * 32, "schema_sha256": "ab" * 32, "derived": []}
    document["config"] |= {"model": {"kind": "logistic", "bias": False}, "data": {"name": "own", "table": table}}
    document["parameters"] = [{"name": "weight", "shape": [2, 30]}]
    document["num_parameters"] = 60
    document["gradients"] = {"kind": "one-direction", "dimension": 30, "features": "same"} | form
    return document


def biased(share: float) -> Change:
    """A bias beside the weights, and what is said of its share."""
    return both(
        set_at("parameters", [{"name": "weight", "shape": [2, 30]}, {"name": "bias", "shape": [2]}]),
        set_at("num_parameters", 62),
        set_at("config.model.bias", True),
        set_at("gradients.known_share", share),
    )


FORMS: dict[str, Change] = {
    "a network": set_at("config.model", {"kind": "mlp", "widths": [8]}),
    "several views": set_at("config.augmentation", {"times": 2, "flips": True, "crop": 0}),
    "a bias in the configuration": set_at("config.model.bias", True),
    "a share without a bias": both(biased(0.5), set_at("config.model.bias", False)),
    "less than thirty columns leave to a bias": biased(0.03),
    "less than their length leaves to a bias": both(biased(0.09), set_at("config.data.normalise_features", 3.0)),
    "a bias beside features of any length": both(
        biased(0.5), set_at("config.data.features", {"kind": "random", "width": 30, "seed": 0})
    ),
    "records that were handed over": set_at("config.data", {"name": "own"}),
    "a schema that was read off the records": both(
        set_at("config.data.table.derived", ["age"]),
        set_at("warnings", ["size-treated-as-public", "schema-from-records"]),
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_form_of_gradients_that_the_configuration_cannot_have_is_refused(name: str) -> None:
    document = linear()
    assert read(document, complete=True, sealed=True) is not None
    FORMS[name](document)
    assert read(document, complete=True, sealed=True) is None


def test_a_bias_beside_features_of_a_known_length_has_its_share() -> None:
    for change in (biased(0.04), both(biased(0.11), set_at("config.data.normalise_features", 3.0))):
        document = linear()
        change(document)
        assert read(document, complete=True, sealed=True) is not None


WATCHED: dict[str, tuple[Callable[[], Any], Change]] = {
    "a million batches in an epoch": (shuffled, set_at("sampler.batches_per_epoch", 10**6)),
    "284 steps in one pass of 8 batches": (
        shuffled,
        both(
            set_at("segments.0.steps", 284),
            set_at("segments.0.passes", 1),
            set_at("tally.steps", 284),
            set_at("tally.exposures", 284),
            set_at("tally.mixed_passes", 284),
            set_at("tally.inverse_noise", 284 * 1.1**-2),
            set_at("tally.passes", 1),
            set_at("diagnostics.batch_sizes", [10] * 284),
            set_at("diagnostics.clipped", [0] * 284),
        ),
    ),
    "a segment with a higher rate than the sampler": (
        poisson,
        both(
            set_at("segments.0.sample_rate", 0.5),
            set_at("tally.coins", 6.0),
            set_at("diagnostics.batch_sizes", [30] * 12),
        ),
    ),
    "a segment with a rate and no coins": (
        shuffled,
        both(set_at("segments.0.sample_rate", 0.01), set_at("tally.coins", 0.18)),
    ),
    "poisson that nobody saw": (poisson, set_at("sampler.source", "unknown")),
    "unknown that somebody saw": (
        poisson,
        both(set_at("sampler.drawn", "unknown"), set_at("sampler.sample_rate", None)),
    ),
    "a seed without its fault": (poisson, set_at("randomness", "seeded with 0")),
    "a generator of the program without its fault": (poisson, set_at("randomness", "torch, generator of the program")),
    "secure where nobody looked": (shuffled, set_at("randomness", "secure generator")),
    "free text as a date": (poisson, set_at("created", "yesterday")),
    "ended early without its fault": (poisson, set_at("weights_sha256", None)),
    "more noise": (poisson, set_at("segments.0.noise_multiplier", 11.0)),
    "no second count": (poisson, lambda d: d.pop("tally")),
    "a lower rate": (poisson, set_at("sampler.sample_rate", 0.01)),
    "fewer records of a person": (shuffled, set_at("records_per_user", 1)),
    "records of a person left out": (shuffled, lambda d: d.pop("records_per_user")),
    "fewer passes": (shuffled, set_at("segments.0.passes", 1)),
    "faults removed": (shuffled, set_at("faults", [])),
    "a fault that the facts do not show": (poisson, lambda d: d["faults"].append("weighted-sampler")),
    "a fault that the loop saw, removed": (
        lambda: poisson(),
        lambda d: d["tally"].update(faults=1),
    ),
    "clipping known though nobody looked": (poisson, set_at("clipping.source", "unknown")),
    "norms out of order": (poisson, both(set_at("clipping.smallest", 2.0), set_at("faults.1", "changed-clip-norm"))),
    "one norm": (poisson, set_at("clipping.largest", None)),
    "batches of another rate": (poisson, set_at("diagnostics.batch_sizes", [60] * 12)),
    "more clipped than drawn": (poisson, set_at("diagnostics.clipped", [11] + [0] * 11)),
    "the size of the data left out": (
        poisson,
        both(set_at("sampler.dataset_size", None), lambda d: d["faults"].pop(0)),
    ),
    "more passes mixed than batches": (
        shuffled,
        both(set_at("segments.0.mixed_passes", 3), set_at("tally.mixed_passes", 54)),
    ),
    "a size that nobody sees": (
        lambda: shuffled(sampler={"drawn": "shuffled", "source": "declared", "name": "declared", "times_per_epoch": 1}),
        both(set_at("sampler.batch_size", 10), set_at("segments.0.passes", 3)),
    ),
    "a fixed size that somebody saw": (
        lambda: poisson(sampler={"drawn": "fixed-size", "source": "declared", "name": "declared", "sample_rate": 0.2}),
        both(set_at("sampler.source", "seen"), lambda d: d["faults"].remove("declared-not-seen")),
    ),
    "coins with passes": (poisson, set_at("sampler.times_per_epoch", 5)),
    "one direction, which no watch sees": (
        poisson,
        set_at("gradients", {"kind": "one-direction", "dimension": 11, "features": "same"}),
    ),
    "a fixed length, which no watch sees": (
        poisson,
        set_at("gradients", {"kind": "fixed", "dimension": 11, "features": "same", "normalised": True}),
    ),
    "a head where nobody saw clipping": (
        shuffled,
        set_at("gradients", {"kind": "linear-head", "dimension": 11, "features": "same"}),
    ),
    "a head that does not fit": (
        poisson,
        set_at("gradients", {"kind": "linear-head", "dimension": 10, "features": "same"}),
    ),
    "weights that were loaded, seen to be random": (
        poisson,
        set_at("start", {"weights": "loaded", "source": "seen", "commitment": "ab" * 32}),
    ),
    "random weights after 500 steps": (
        poisson,
        set_at("start", {"weights": "random", "source": "seen", "commitment": "ab" * 32, "trainer_step": 500}),
    ),
    "a chain without its first loop": (
        poisson,
        set_at("start", {"weights": "unknown", "source": "unknown", "commitment": "ab" * 32, "salt": "ab" * 32}),
    ),
    "names of many scripts": (poisson, set_at("optimiser.0", "DРOptimizer")),
}


@pytest.mark.parametrize("name", WATCHED)
def test_a_watched_loop_that_contradicts_itself_is_refused(name: str) -> None:
    make, change = WATCHED[name]
    document = document_of(make())
    assert read(document, complete=True, sealed=True) is not None
    change(document)
    assert read(document, complete=True, sealed=True) is None


def test_every_rule_names_its_facts_and_says_what_it_means() -> None:
    for rules in (RUN_RULES, WATCH_RULES, STATED_RULES):
        assert len({rule.means for rule in rules}) == len(rules)
        for rule in rules:
            assert rule.facts
            assert rule.means.endswith(".")


def test_what_was_edited_is_named_unless_the_forger_seals_it() -> None:
    for ledger in (make_ledger(), poisson()):
        changed = ledger.model_copy(update={"device": "cuda"})
        assert [where for where, _ in changed.contradictions()] == ["digest"]
        assert not list(changed.sealed().contradictions())
        assert [where for where, _ in ledger.model_copy(update={"digest": ""}).contradictions()] == ["digest"]


def test_certify_lint_and_the_mechanism_of_a_file_refuse_it(tmp_path) -> None:
    forged = make_ledger().model_copy(update={"noise_multiplier": 30.0})
    with pytest.raises(ArtifactError, match="contradicts itself"):
        certify_run(forged)
    (tmp_path / "ledger.json").write_text(forged.to_json())
    with pytest.raises(ArtifactError, match="contradicts itself"):
        rt.certify(tmp_path / "ledger.json")
    assert rt.lint(tmp_path / "ledger.json").worst == "error"
    watched = poisson().model_copy(update={"records_per_user": 2})
    with pytest.raises(ArtifactError, match="contradicts itself"):
        certify_watched(watched)
    assert rt.lint(watched).worst == "error"


def test_the_declared_model_and_time_are_those_of_the_run() -> None:
    ledger, said = poisson(), {"subject": "a loop", "created": "2026-11-22"}
    assert not list(contradictions(ledger, Declaration(**said)))
    for more in ({"weights_sha256": "ab" * 32}, {"created": "2026-11-21"}):
        assert list(contradictions(ledger, Declaration(**{**said, **more})))


def test_verify_compares_a_ledger_with_what_is_declared() -> None:
    document = json.loads(certify_watched(poisson()).to_json())
    assert verify(resealed(document)).accepted
    for name, said in (("weights_sha256", "ab" * 32), ("created", "2020-01-01")):
        changed = {**document, "declared": {**document["declared"], name: said}}
        found = verify(resealed(changed))
        assert [one.leaf for one in found.differences if found.refuses(one)] == [f"ledger.{name}"]


@pytest.mark.parametrize("stop", ["advantage=0.001", "epsilon=0.1@1e-05", "bayes_security=0.999", "never"])
def test_a_loop_that_stopped_at_a_risk_keeps_to_it(stop: str) -> None:
    said = Declaration(subject="a loop", created="2026-11-22")
    kept = poisson(planned={"steps": 12, "stop_at": "advantage=0.3"})
    assert not list(contradictions(kept, said))
    assert [where for where, _ in contradictions(poisson(planned={"steps": 12, "stop_at": stop}), said)] == [
        "planned.stop_at"
    ]


def with_target(noise: float, *stages: float) -> RunLedger:
    """Four steps, or two in each of the stages, whose noise is that of the first times a factor."""
    ledger = make_ledger(steps=2 + 2 * len(stages) if stages else 4, sample_rate=1.0)
    target = {"epsilon": 3.0, "delta": 1e-5, "adversary": "worst-case", "neighbouring": "add-remove"}
    config = {**ledger.config, "noise_multiplier": None, "target": target}
    config["schedule"] = [{"at": 2 + 2 * i, "noise_factor": factor} for i, factor in enumerate(stages)]
    alike = {"max_grad_norm": 1.0, "sample_rate": 1.0, "divisor": 400.0, "steps": 2}
    ran = tuple(StageRecord(noise_multiplier=noise * factor, **alike) for factor in (1.0, *stages)) if stages else ()
    return ledger.model_copy(update={"config": config, "noise_multiplier": noise, "stages": ran}).sealed()


def test_a_target_asks_for_the_least_noise_and_no_more() -> None:
    least = calibrate(DPSGD(1.0, 1.0, 4), NoiseMultiplier(), EpsilonAtDelta(3.0, 1e-5)).value
    said = Declaration(subject="a run", created="2026-11-22")
    assert not list(contradictions(with_target(least), said))
    for factor in (2.0, 1.01, 1.00001, 0.8):
        assert "noise_multiplier" in dict(contradictions(with_target(least * factor), said))


def test_a_target_of_stages_asks_for_the_least_noise_too() -> None:
    """Full batches of Gaussian noise: two steps at s and two at s / 2 show what four at s sqrt(4 / 10) show."""
    least = calibrate(DPSGD(1.0, 1.0, 4), NoiseMultiplier(), EpsilonAtDelta(3.0, 1e-5)).value * math.sqrt(10 / 4)
    found = dict(contradictions(with_target(least * 1.01, 0.5), Declaration(subject="a run", created="2026-11-22")))
    assert float(found["noise_multiplier"].rpartition(" ")[2]) == pytest.approx(least, rel=1e-4, abs=0)
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
        ("utility.test_accuracy", 0.9),
        ("utility.test_loss", 0.25),
        ("config.data.table", {"file_sha256": "ab" * 32, "derived": []}),
        ("data.notes", ["age"]),
    ):
        document = document_of(ledger)
        set_at(path, value)(document)
        forged = RunLedger.model_validate(document).sealed()
        assert list(contradictions(forged, said, Edition.PUBLIC)), path

"""Edits after which a ledger contradicts itself: of runs, of the form of their gradients, and of watched loops."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import reticent as rt
from reticent.kernel.mechanisms import DPSGD
from reticent.mechanisms.codec import mechanism_record
from reticent.records.ledger import RunLedger
from tests.certificates.conftest import make_ledger
from tests.certificates.forging import set_at
from tests.certificates.ledgers import chain, poisson, shuffled

Change = Callable[[dict[str, Any]], object]


def document_of(ledger: RunLedger) -> dict[str, Any]:
    return json.loads(json.dumps(ledger.model_dump(mode="json", by_alias=True)))


def stepped(steps: int) -> Change:
    """So many steps, in every place where the ledger counts them but the configuration."""

    def change(d: dict[str, Any]) -> None:
        d["segments"][0]["steps"] = d["facts"]["planned-steps"]["steps"] = steps
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
        d["facts"]["planned-steps"]["steps"] = 12
        d["config"].update(steps=12, schedule=[{"at": 8, **later}])

    return change


def best_of(noise: float) -> dict[str, Any]:
    """A selection among runs with this noise, as a ledger states it."""
    return json.loads(json.dumps(mechanism_record(rt.Selection(DPSGD(noise, 0.25, 12), rt.Geometric(3)))))


def less_noise_within_passes(d: dict[str, Any]) -> None:
    """A shuffled run, and a schedule whose second stage has hardly any noise."""
    passes = {"drawn": "shuffled", "name": "shuffled", "batches_per_epoch": 4, "times_per_epoch": 1}
    d["sampler"].update(passes)
    d["config"].update(sampler="shuffled", schedule=[{"at": 8, "noise_multiplier": 0.1}])
    d["segments"] = [{"noise_multiplier": 3.0, "steps": 8}, {"noise_multiplier": 0.1, "steps": 4}]


LINEAR = {"kind": "logistic", "bias": False}
NO_SIZE = {"name": None, "source": None, "dataset_size": None, "test_size": None, "feature_shape": [30], "classes": 2}
SELECTION = {"mechanism": best_of(3.0), "settings": 1, "score": "test"}
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
    ),
    "a bias without a share": both(
        set_at("config.model", {"kind": "logistic", "bias": True}),
        set_at("gradients", {"kind": "one-direction", "dimension": 30, "known_share": 1e-9}),
    ),
    "another rate than was asked for": both(set_at("sampler.sample_rate", 0.001), set_at("divisor", 0.4)),
    "40 epochs and one step": both(set_at("config.epochs", 40), set_at("config.steps", None), stepped(1)),
    "fewer steps than were asked for": stepped(3),
    "records of a person that nobody states": set_at("records_per_user", 1),
    "fewer records of a person than stated": both(set_at("config.records_per_user", 3), set_at("records_per_user", 1)),
    "free text as a date": set_at("created", "last tuesday"),
    "a date that is none": set_at("created", "2026-13-45"),
    "noise that was not asked for": set_at("segments.0.noise_multiplier", 30.0),
    "noise that nobody asked for": both(
        set_at("config.noise_multiplier", None), set_at("segments.0.noise_multiplier", 30.0)
    ),
    "a configuration without noise": lambda d: d["config"].pop("noise_multiplier"),
    "batch and rate both asked for": set_at("config.sample_rate", 0.25),
    "no sampler asked for": lambda d: (
        d["config"].pop("sampler"),
        d["sampler"].update(drawn="fixed-size", name="fixed-size"),
    ),
    "passes that were not asked for": both(
        set_at("sampler.drawn", "shuffled"),
        set_at("sampler.name", "shuffled"),
        set_at("sampler.batches_per_epoch", 4),
        set_at("sampler.times_per_epoch", 1),
    ),
    "less noise within passes": less_noise_within_passes,
    "a clip norm that was not asked for": both(set_at("clipping.smallest", 2.0), set_at("clipping.largest", 2.0)),
    "clipping that was not asked for": set_at("clipping.kind", "normalise"),
    "a generator that was not asked for": set_at("environment.randomness", "reproducible"),
    "an optimizer that was not asked for": set_at("environment.optimiser", ["adam"]),
    "steps beyond the plan": both(stepped(20), set_at("facts.planned-steps.steps", 12)),
    "a plan of steps that was not asked for": set_at("facts.planned-steps.steps", 20),
    "no plan of steps": lambda d: d.pop("facts"),
    "another divisor": set_at("divisor", 50.0),
    "seeds of a fresh run": set_at("environment.seeds.noise", 3),
    "another seed": set_at("environment.seeds.initialisation", 8),
    "a setting that no configuration has": set_at("config.approved", "yes"),
    "a part of the data that no configuration has": set_at("config.data.folder", "/home"),
    "more coordinates than there are": set_at("num_parameters", 63),
    "batches of another rate": set_at("diagnostics.batch_sizes", [20] * 12),
    "a batch of more than all": set_at("diagnostics.batch_sizes", [401] + [100] * 11),
    "no number of records": set_at("data", {**NO_SIZE, "commitment": "ab" * 32}),
    "a fault of a loop of somebody else": set_at("facts.unknown-sampler", "found"),
    "clients, where records were drawn": set_at("unit", "client"),
    "steps that are hidden by a model that cannot": set_at("config.final_model", True),
    "the best of runs with other noise": set_at("selection", {**SELECTION, "mechanism": best_of(30.0)}),
    "the best of runs with one seed": both(
        set_at("selection", SELECTION),
        set_at("config.randomness", "reproducible"),
        set_at("environment.randomness", "reproducible"),
        set_at("environment.seeds.sampling", 7),
        set_at("environment.seeds.noise", 7),
    ),
    "records that were not kept": set_at("config.data.train_size", 200),
    "hostile version": set_at("environment.versions.python", "<b>"),
    "a device of many lines": set_at("environment.device", "cpu\nand more"),
}


def linear(**form: Any) -> RunLedger:
    """A ledger of logistic regression without a bias, on records of a declared schema."""
    document = document_of(make_ledger())
    table = {"file": "a.csv", "file_sha256": "ab" * 32, "schema_sha256": "ab" * 32, "derived": []}
    document["config"] |= {"model": {"kind": "logistic", "bias": False}, "data": {"name": "own", "table": table}}
    document["parameters"] = [{"name": "weight", "shape": [2, 30]}]
    document["num_parameters"] = 60
    document["gradients"] = {"kind": "one-direction", "dimension": 30, "features": "same"} | form
    return RunLedger.model_validate(document).sealed()


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
    ),
}

WATCHED: dict[str, tuple[Callable[[], Any], Change]] = {
    "a million batches in an epoch": (shuffled, set_at("sampler.batches_per_epoch", 10**6)),
    "284 steps in one pass of 8 batches": (
        shuffled,
        both(
            set_at("segments.0.steps", 284),
            set_at("segments.0.passes", 1),
            set_at("diagnostics.batch_sizes", [10] * 284),
            set_at("diagnostics.clipped", [0] * 284),
        ),
    ),
    "a segment with a higher rate than the sampler": (
        poisson,
        both(
            set_at("segments.0.sample_rate", 0.5),
            set_at("diagnostics.batch_sizes", [30] * 12),
        ),
    ),
    "a segment with a rate and no coins": (shuffled, set_at("segments.0.sample_rate", 0.01)),
    "passes with a rate of coins": (shuffled, set_at("sampler.sample_rate", 0.01)),
    "the best of several loops": (shuffled, set_at("selection", SELECTION)),
    "a quality that no watch measures": (poisson, set_at("utility", {"test_accuracy": 0.9, "test_loss": 0.1})),
    "poisson that nobody saw": (poisson, set_at("sampler.source", "unknown")),
    "unknown that somebody saw": (
        poisson,
        both(set_at("sampler.drawn", "unknown"), set_at("sampler.sample_rate", None)),
    ),
    "a generator that nobody knows": (poisson, set_at("environment.randomness", "seeded with 0")),
    "noise of our trainer": (poisson, set_at("environment.randomness", "fresh")),
    "secure where nobody looked": (shuffled, set_at("environment.randomness", "secure generator")),
    "free text as a date": (poisson, set_at("created", "yesterday")),
    "a lower rate": (poisson, set_at("sampler.sample_rate", 0.01)),
    "fewer passes": (shuffled, set_at("segments.0.passes", 1)),
    "a fault that the facts do not show": (poisson, set_at("facts", {"weighted-sampler": "found"})),
    "a configuration": (poisson, set_at("config", {"noise_multiplier": 1.1})),
    "clipping known though nobody looked": (poisson, set_at("clipping.source", "unknown")),
    "a norm of some steps that no watch sees alone": (poisson, set_at("segments.0.max_grad_norm", 50.0)),
    "a divisor of some steps that no watch sees alone": (poisson, set_at("segments.0.divisor", 50.0)),
    "norms out of order": (poisson, set_at("clipping.smallest", 2.0)),
    "one norm": (poisson, set_at("clipping.largest", None)),
    "batches of another rate": (poisson, set_at("diagnostics.batch_sizes", [60] * 12)),
    "more clipped than drawn": (poisson, set_at("diagnostics.clipped", [11] + [0] * 11)),
    "the size of the data left out": (poisson, set_at("sampler.dataset_size", None)),
    "more passes mixed than batches": (shuffled, set_at("segments.0.mixed_passes", 3)),
    "a size that nobody sees": (
        lambda: shuffled(sampler={"drawn": "shuffled", "source": "declared", "name": "declared", "times_per_epoch": 1}),
        both(set_at("sampler.batch_size", 10), set_at("segments.0.passes", 3)),
    ),
    "a fixed size that somebody saw": (
        lambda: poisson(sampler={"drawn": "fixed-size", "source": "declared", "name": "declared", "sample_rate": 0.2}),
        set_at("sampler.source", "seen"),
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
    "a chain that does not meet": (chain, set_at("earlier.0.weights_sha256", "12" * 32)),
    "an earlier loop whose clipping nobody looked at": (chain, set_at("earlier.0.clipping.source", "unknown")),
    "an earlier loop with its diagnostics": (chain, lambda d: d["earlier"][0].update(diagnostics=d["diagnostics"])),
    "names of many scripts": (poisson, set_at("environment.optimiser.0", "DРOptimizer")),
}

"""A ledger that contradicts itself, or what is declared of it, is refused, also where the forger seals it again."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import reticent as rt
from reticent.calibration import EpsilonAtDelta, NoiseMultiplier, NoiseScale
from reticent.calibration.solve import calibrate
from reticent.certificates.build import certify_run, run_declaration
from reticent.certificates.document.ledger_rules import contradictions
from reticent.certificates.document.schema import Declaration, Edition
from reticent.certificates.document.targets import misses_its_target
from reticent.certificates.verify import verify
from reticent.facts import PERSONS, all_facts
from reticent.facts.base import Rule
from reticent.facts.plan import told
from reticent.kernel.errors import ArtifactError
from reticent.kernel.mechanisms import DPSGD, Ledger
from reticent.kernel.samplers import INDEPENDENT
from reticent.kernel.samplers.base import not_by_coins
from reticent.mechanisms.codec import mechanism_record
from reticent.records import ledger as ledgers_of_reticent
from reticent.records.ledger import RunLedger
from reticent.records.publication import published
from tests.certificates.conftest import make_ledger
from tests.certificates.edits import GONE, Edits, document_of, forged, parsed, read, resealed
from tests.certificates.ledgers import chain, elsewhere, poisson, shuffled
from tests.cli.calling import run

SAID = Declaration(subject="a run", created="2026-11-22")


def stepped(steps: int) -> Edits:
    """So many steps, in every place where the ledger counts them but the configuration."""

    def several(found: list[int]) -> list[int]:
        return (found * steps)[:steps]

    counts = {f"diagnostics.{name}": several for name in ("batch_sizes", "clipped")}
    return {"segments.0.steps": steps, "facts.planned-steps.steps": steps, **counts}


def planned_for(**later: Any) -> Edits:
    """A run that stopped after half of its plan, before the plan changed noise or rate."""
    plan = {"facts.planned-steps.steps": 12, "config.steps": 12, "config.schedule": [{"at": 8, **later}]}
    return stepped(6) | plan


def best_of(noise: float) -> dict[str, Any]:
    """A selection among runs with this noise, as a ledger states it."""
    chosen = json.loads(json.dumps(mechanism_record(rt.Selection(DPSGD(noise, 0.25, 12), rt.Geometric(3)))))
    return {"mechanism": chosen, "settings": 1, "score": "test"}


def shares_of_a_bias(share: float) -> Edits:
    """A bias beside the weights, and what is said of its share."""
    tensors = [{"name": "weight", "shape": [2, 30]}, {"name": "bias", "shape": [2]}]
    return {"parameters": tensors, "num_parameters": 62, "config.model.bias": True, "gradients.known_share": share}


@cache
def linear() -> RunLedger:
    """Logistic regression without a bias, on records of a declared schema: gradients along one direction."""
    table = {"file": "a.csv", "file_sha256": "ab" * 32, "schema_sha256": "ab" * 32, "derived": []}
    edits = {
        "config.model": {"kind": "logistic", "bias": False},
        "config.data": {"name": "own", "table": table},
        "parameters": [{"name": "weight", "shape": [2, 30]}],
        "num_parameters": 60,
        "gradients": {"kind": "one-direction", "dimension": 30, "features": "same"},
    }
    return RunLedger.model_validate(forged(document_of(make_ledger()), edits)).sealed()


def head(kind: str, dimension: int = 11, **more: Any) -> Edits:
    return {"gradients": {"kind": kind, "dimension": dimension, "features": "same", **more}}


def untold() -> RunLedger:
    """Passes whose batches nobody saw."""
    return shuffled(sampler={"drawn": "shuffled", "source": "declared", "name": "declared", "times_per_epoch": 1})


def fixed_size() -> RunLedger:
    return poisson(sampler={"drawn": "fixed-size", "source": "declared", "name": "declared", "sample_rate": 0.2})


IN_PASSES = {
    "sampler.drawn": "shuffled",
    "sampler.name": "shuffled",
    "sampler.batches_per_epoch": 4,
    "sampler.times_per_epoch": 1,
}
NOBODY = {"weights": "unknown", "source": "unknown", "commitment": "ab" * 32}
NO_SIZE = {"name": None, "source": None, "dataset_size": None, "test_size": None, "feature_shape": [30], "classes": 2}
LESS = [{"noise_multiplier": 3.0, "steps": 8}, {"noise_multiplier": 0.1, "steps": 4}]
LENGTH_3 = {"config.data.normalise_features": 3.0}
RANDOM = {"config.data.features": {"kind": "random", "width": 30, "seed": 0}}
NO_STEPS = {"config.epochs": 40, "config.steps": None}
REPEATED = {"environment.randomness": "reproducible"}
SEEDED = REPEATED | {f"environment.seeds.{name}": 7 for name in ("sampling", "noise")}
EDITS: dict[Callable[[], RunLedger], dict[str, Edits]] = {
    make_ledger: {
        "planned noise as text before steps": planned_for(noise_multiplier="0.1"),
        "planned batch as text before steps": planned_for(batch_size="400"),
        "a stage after the last": {"config.schedule": [{"at": 12, "noise_factor": 1.0}]},
        "a model that no configuration has": {"config.model": {"kind": "downloaded"}},
        "another rate than was asked for": {"sampler.sample_rate": 0.001, "divisor": 0.4},
        "40 epochs and one step": NO_STEPS | stepped(1),
        "fewer steps than were asked for": stepped(3),
        "records of a person that nobody states": {"records_per_user": 1},
        "fewer records of a person than stated": {"config.records_per_user": 3, "records_per_user": 1},
        "free text as a date": {"created": "last tuesday"},
        "a date that is none": {"created": "2026-13-45"},
        "noise that was not asked for": {"segments.0.noise_multiplier": 30.0},
        "noise that nobody asked for": {"config.noise_multiplier": None, "segments.0.noise_multiplier": 30.0},
        "a configuration without noise": {"config.noise_multiplier": GONE},
        "batch and rate both asked for": {"config.sample_rate": 0.25},
        "no sampler asked for": {"config.sampler": GONE, "sampler.drawn": "fixed-size", "sampler.name": "fixed-size"},
        "passes that were not asked for": IN_PASSES,
        "less noise within passes": {
            **IN_PASSES,
            "config.sampler": "shuffled",
            "config.schedule": [{"at": 8, "noise_multiplier": 0.1}],
            "segments": LESS,
        },
        "a clip norm that was not asked for": {"clipping.smallest": 2.0, "clipping.largest": 2.0},
        "clipping that was not asked for": {"clipping.kind": "normalise"},
        "a generator that was not asked for": REPEATED,
        "an optimizer that was not asked for": {"environment.optimiser": ["adam"]},
        "steps beyond the plan": {**stepped(20), "facts.planned-steps.steps": 12},
        "a plan of steps that was not asked for": {"facts.planned-steps.steps": 20},
        "no plan of steps": {"facts": GONE},
        "another divisor": {"divisor": 50.0},
        "seeds of a fresh run": {"environment.seeds.noise": 3},
        "another seed": {"environment.seeds.initialisation": 8},
        "a setting that no configuration has": {"config.approved": "yes"},
        "a part of the data that no configuration has": {"config.data.folder": "/home"},
        "more coordinates than there are": {"num_parameters": 63},
        "batches of another rate": {"diagnostics.batch_sizes": [20] * 12},
        "a batch of more than all": {"diagnostics.batch_sizes": [401] + [100] * 11},
        "no number of records": {"data": {**NO_SIZE, "commitment": "ab" * 32}},
        "a fault of a loop of somebody else": {"facts.unknown-sampler": "found"},
        "clients, where records were drawn": {"unit": "client"},
        "steps that are hidden by a model that cannot": {"config.final_model": True},
        "the best of runs with other noise": {"selection": best_of(30.0)},
        "the best of runs with one seed": {"selection": best_of(3.0), "config.randomness": "reproducible", **SEEDED},
        "records that were not kept": {"config.data.train_size": 200},
        "hostile version": {"environment.versions.python": "<b>"},
        "a device of many lines": {"environment.device": "cpu\nand more"},
    },
    linear: {
        "a network": {"config.model": {"kind": "mlp", "widths": [8]}},
        "no model": {"config.model": None},
        "several views": {"config.augmentation": {"times": 2, "flips": True, "crop": 0}},
        "a bias in the configuration": {"config.model.bias": True},
        "tensors of another layer": {
            "gradients.dimension": 60,
            "parameters.0.shape": [2, 60],
            "num_parameters": 120,
        },
        "a share without a bias": {**shares_of_a_bias(0.5), "config.model.bias": False},
        "hardly any share of a bias": shares_of_a_bias(1e-9),
        "less than thirty columns leave to a bias": shares_of_a_bias(0.03),
        "less than their length leaves to a bias": {**shares_of_a_bias(0.09), **LENGTH_3},
        "a bias beside features of any length": {**shares_of_a_bias(0.5), **RANDOM},
        "records that were handed over": {"config.data": {"name": "own"}},
        "a schema that was read off the records": {"config.data.table.derived": ["age"]},
        "a schema that is none": {"config.data.table": {"derived": True}},
    },
    shuffled: {
        "a million batches in an epoch": {"sampler.batches_per_epoch": 10**6},
        "284 steps in one pass of 8 batches": {
            "segments.0.steps": 284,
            "segments.0.passes": 1,
            "diagnostics.batch_sizes": [10] * 284,
            "diagnostics.clipped": [0] * 284,
        },
        "a segment with a rate and no coins": {"segments.0.sample_rate": 0.01},
        "passes with a rate of coins": {"sampler.sample_rate": 0.01},
        "the best of several loops": {"selection": best_of(3.0)},
        "secure where nobody looked": {"environment.randomness": "secure generator"},
        "fewer passes": {"segments.0.passes": 1},
        "more passes mixed than batches": {"segments.0.mixed_passes": 3},
        "a head where nobody saw clipping": head("linear-head"),
    },
    poisson: {
        "a segment with a higher rate": {"segments.0.sample_rate": 0.5, "diagnostics.batch_sizes": [30] * 12},
        "a quality that no watch measures": {"utility": {"test_accuracy": 0.9, "test_loss": 0.1}},
        "poisson that nobody saw": {"sampler.source": "unknown"},
        "unknown that somebody saw": {"sampler.drawn": "unknown", "sampler.sample_rate": None},
        "a generator that nobody knows": {"environment.randomness": "seeded with 0"},
        "noise of our trainer": {"environment.randomness": "fresh"},
        "free text as a date of a loop": {"created": "yesterday"},
        "a lower rate": {"sampler.sample_rate": 0.01},
        "a fault that the facts do not show": {"facts": {"weighted-sampler": "found"}},
        "a configuration": {"config": {"noise_multiplier": 1.1}},
        "clipping known though nobody looked": {"clipping.source": "unknown"},
        "a norm of some steps that no watch sees alone": {"segments.0.max_grad_norm": 50.0},
        "a divisor of some steps that no watch sees alone": {"segments.0.divisor": 50.0},
        "norms out of order": {"clipping.smallest": 2.0},
        "one norm": {"clipping.largest": None},
        "batches of another rate in a loop": {"diagnostics.batch_sizes": [60] * 12},
        "more clipped than drawn": {"diagnostics.clipped": [11] + [0] * 11},
        "the size of the data left out": {"sampler.dataset_size": None},
        "coins with passes": {"sampler.times_per_epoch": 5},
        "one direction, which no watch sees": head("one-direction"),
        "a fixed length, which no watch sees": head("fixed", normalised=True),
        "a head that does not fit": head("linear-head", 10),
        "weights that were loaded, seen to be random": {"start": {**NOBODY, "weights": "loaded", "source": "seen"}},
        "random weights after 500 steps": {
            "start": {**NOBODY, "weights": "random", "source": "seen", "trainer_step": 500}
        },
        "a chain without its first loop": {"start": {**NOBODY, "salt": "ab" * 32}},
        "names of many scripts": {"environment.optimiser.0": "DРOptimizer"},
    },
    untold: {"a size that nobody sees": {"sampler.batch_size": 10, "segments.0.passes": 3}},
    fixed_size: {"a fixed size that somebody saw": {"sampler.source": "seen"}},
    chain: {
        "a chain that does not meet": {"earlier.0.weights_sha256": "12" * 32},
        "an earlier loop whose clipping nobody looked at": {"earlier.0.clipping.source": "unknown"},
        "an earlier loop with its diagnostics": {
            "earlier.0.diagnostics": {"clipped": [0] * 12, "seconds": 0.5, "batch_sizes": [10] * 12}
        },
    },
}
ACCEPTED: list[tuple[Callable[[], RunLedger], Edits]] = [
    *((make, {}) for make in EDITS),
    (make_ledger, planned_for(noise_multiplier=0.1)),
    (linear, shares_of_a_bias(0.04)),
    (linear, {**shares_of_a_bias(0.11), **LENGTH_3}),
]
"""Beside the edits: what they begin with, and numbers that are as they must be."""
CASES = [pytest.param(make, edits, id=name) for make, rows in EDITS.items() for name, edits in rows.items()]


@pytest.mark.parametrize(("make", "edits"), CASES)
def test_a_ledger_that_contradicts_itself_is_refused(make: Callable[[], RunLedger], edits: Edits) -> None:
    assert read(forged(document_of(make()), edits), complete=True, sealed=True) is None


def test_what_the_edits_begin_with_is_accepted() -> None:
    for make, edits in ACCEPTED:
        assert read(forged(document_of(make()), edits), complete=True, sealed=True) is not None


def test_a_public_ledger_is_held_to_the_same_facts() -> None:
    """Without diagnostics that could give the edit away as well."""
    document = document_of(published(make_ledger()))
    assert read(document, complete=False, sealed=True) is not None
    tried = {name: one for name, one in EDITS[make_ledger].items() if not any("diagnostics" in path for path in one)}
    assert len(tried) > 30
    assert [name for name, one in tried.items() if read(forged(document, one), complete=False, sealed=True)] == []


def breaks(rule: Rule, ledger: RunLedger) -> bool:
    """Whether a ledger breaks a rule; what breaks off a rule is wrong."""
    try:
        return any(True for _ in rule(ledger))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return True


def test_each_rule_refuses_something_that_no_other_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it one of the edits gets through."""
    facts = all_facts()
    rules = [(kind, rule) for fact in facts.values() for kind in ("trained", "watched") for rule in getattr(fact, kind)]
    assert all(rule.__doc__ for _, rule in rules)
    bare = {key: replace(fact, trained=(), watched=()) for key, fact in facts.items()}
    monkeypatch.setattr(ledgers_of_reticent, "all_facts", lambda: bare)
    needed = set()
    for case in CASES:
        make, edits = case.values
        ledger = read(forged(document_of(make()), edits), complete=True, sealed=True)
        if ledger is not None:
            kind = "watched" if ledger.config is None else "trained"
            broken = [(one, rule) for one, rule in rules if one == kind and breaks(rule, ledger)]
            needed |= set(broken) if len(broken) == 1 else set()
    assert [(kind, rule.__doc__) for kind, rule in rules if (kind, rule) not in needed] == []


@pytest.mark.parametrize("error", [OverflowError, TypeError, ValueError, KeyError, AttributeError])
def test_a_rule_that_facts_break_off_is_broken(error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    """As a length of 1e300 that is squared, a fingerprint that is none, a text where a number stands."""

    def breaks_off(_: object) -> Any:
        raise error

    fact = replace(PERSONS, watched=(breaks_off,))
    monkeypatch.setattr(ledgers_of_reticent, "all_facts", lambda: {fact.key: fact})
    assert [where for where, _ in poisson().contradictions()] == [fact.key]


def test_what_was_edited_is_named_unless_the_forger_seals_it() -> None:
    for ledger in (make_ledger(), poisson()):
        changed = elsewhere(ledger, device="cuda")
        assert [where for where, _ in changed.contradictions()] == ["digest"]
        assert not list(changed.sealed().contradictions())
        assert [where for where, _ in ledger.model_copy(update={"digest": ""}).contradictions()] == ["digest"]


def test_certify_lint_and_the_mechanism_of_a_file_refuse_it(tmp_path: Path) -> None:
    edits = EDITS[make_ledger]["noise that was not asked for"]
    changed = parsed(forged(document_of(make_ledger()), edits))
    (tmp_path / "ledger.json").write_text(changed.to_json())
    for what in (changed, tmp_path / "ledger.json", poisson().model_copy(update={"records_per_user": 2})):
        with pytest.raises(ArtifactError, match="contradicts itself"):
            rt.certify(what)
        assert rt.lint(what).worst == "error"


@pytest.mark.parametrize("ledger", [make_ledger(), poisson()], ids=["run", "watch"])
@pytest.mark.parametrize(("ran", "fits"), [("2026-11-22T23:30:00-05:00", False), ("2026-11-23T01:00:00+14:00", True)])
def test_days_are_compared_where_it_is_the_same_time(ledger: RunLedger, ran: str, fits: bool) -> None:
    """Half past eleven at night in New York is the next day."""
    found = contradictions(ledger.model_copy(update={"created": ran}).sealed(), SAID)
    assert ("created" not in dict(found)) == fits


@pytest.mark.parametrize(("name", "said"), [("weights_sha256", "ab" * 32), ("created", "2020-01-01")])
def test_the_declared_model_and_time_are_those_of_the_run(name: str, said: str) -> None:
    assert not list(contradictions(poisson(), SAID))
    assert name in dict(contradictions(poisson(), SAID.model_copy(update={name: said})))
    document = document_of(certify_run(poisson()))
    assert verify(resealed(document)).accepted
    found = verify(resealed(forged(document, {f"declared.{name}": said})))
    assert [one.leaf for one in found.differences if found.refuses(one)] == [f"ledger.{name}"]


def test_the_command_says_first_that_a_fact_was_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = forged(document_of(certify_run(poisson())), {"ledger.segments.0.noise_multiplier": 5.0})
    (tmp_path / "c.json").write_text(json.dumps(document))
    code, out, _ = run(capsys, "verify", tmp_path / "c.json")
    said = " ".join(out.split())
    assert code == 1
    assert said.index("it is not that of the other facts") < said.index("headline is")


def with_target(noise: float, *stages: float) -> RunLedger:
    """Four steps, or two in each of the stages, whose noise is that of the first times a factor."""
    ledger = make_ledger(steps=2 + 2 * len(stages) if stages else 4, sample_rate=1.0)
    target = {"epsilon": 3.0, "delta": 1e-5, "adversary": "worst-case", "neighbouring": "add-remove"}
    config = {**ledger.config, "noise_multiplier": None, "target": target}
    config["schedule"] = [{"at": 2 + 2 * i, "noise_factor": factor} for i, factor in enumerate(stages)]
    first = ledger.first.model_copy(update={"steps": 2 if stages else 4})
    ran = [first.model_copy(update={"noise_multiplier": noise * factor}) for factor in (1.0, *stages)]
    return ledger.model_copy(update={"config": config, **told(ran, INDEPENDENT, "flat")}).sealed()


def test_a_target_asks_for_the_least_noise_and_no_more() -> None:
    """Of stages too: two full batches at s and two at s / 2 show what four at s sqrt(4 / 10) show."""
    target = EpsilonAtDelta(3.0, 1e-5)
    least = calibrate(DPSGD(1.0, 1.0, 4), NoiseMultiplier(), target).value
    assert not list(contradictions(with_target(least), SAID))
    for factor in (1.00001, 0.8):
        assert "segments.0.noise_multiplier" in dict(contradictions(with_target(least * factor), SAID))
    least *= math.sqrt(10 / 4)
    found = dict(contradictions(with_target(least * 1.01, 0.5), SAID))
    assert float(found["segments.0.noise_multiplier"].rpartition(" ")[2]) == pytest.approx(least, rel=1e-4, abs=0)
    kept = calibrate(Ledger((DPSGD(1.0, 1.0, 2), DPSGD(0.5, 1.0, 2))), NoiseScale(), target).value
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


@pytest.mark.parametrize(
    "edits",
    [
        {"data.name": "patients of ward 7"},
        {"data.test_size": 100},
        {"utility": {"test_accuracy": 0.9, "test_loss": None}},
        {"utility": {"test_accuracy": None, "test_loss": 0.25}},
        {"config.data.table": {"file_sha256": "ab" * 32, "derived": []}},
        {"data.notes": ["age"]},
        {"facts.read-aloud-to": "patients of ward 7"},
    ],
    ids=str,
)
def test_a_public_ledger_with_something_private_is_refused(edits: Edits) -> None:
    said, ledger = run_declaration(make_ledger()), published(make_ledger())
    assert not list(contradictions(ledger, said, Edition.PUBLIC))
    changed = RunLedger.model_validate(forged(document_of(ledger), edits)).sealed()
    assert list(contradictions(changed, said, Edition.PUBLIC))

"""A run that is cheap to certify, with everything a certificate can hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from reticent.certificates import check
from reticent.certificates.build import certify_run
from reticent.certificates.document.schema import Certificate, Declaration
from reticent.certificates.verify import Verification
from reticent.facts.plan import told
from reticent.facts.planned_steps import PLANNED_STEPS, PlannedSteps
from reticent.facts.steps import Randomness, Segment
from reticent.kernel.samplers import INDEPENDENT, Sampler
from reticent.mechanisms.sensitivity import Scope, SensitivityRecord
from reticent.records.ledger import RunLedger
from reticent.records.parts import DataRecord, Diagnostics, Environment, ParameterRecord, Seeds, Utility
from tests.conftest import as_users_get_it, derived_once


def make_ledger(steps: int = 12, sample_rate: float = 0.25, sampler: Sampler = INDEPENDENT) -> RunLedger:
    ran = Segment(
        noise_multiplier=3.0, steps=steps, sample_rate=sample_rate, max_grad_norm=1.0, divisor=400 * sample_rate
    )
    return RunLedger(
        created="2026-11-22T02:10:18+00:00",
        config={
            "data": {"name": "own", "split_seed": 0},
            "noise_multiplier": 3.0,
            "max_grad_norm": 1.0,
            "divisor": None,
            "sample_rate": None,
            "batch_size": round(400 * sample_rate),
            "steps": steps,
            "sampler": sampler.name,
            "optimiser": "sgd",
            "randomness": "fresh",
            "seed": 7,
        },
        data=DataRecord(
            name="letters",
            source="made up",
            content_hash="ab" * 32,
            salt="5a" * 32,
            dataset_size=400,
            test_size=100,
            feature_shape=(30,),
            classes=2,
            notes=("scaled",),
        ),
        **told([ran], sampler, "flat"),
        facts={PLANNED_STEPS.key: PlannedSteps(steps=steps)},
        num_parameters=62,
        parameters=(ParameterRecord(name="weight", shape=(2, 30)), ParameterRecord(name="bias", shape=(2,))),
        environment=Environment(
            optimiser=("sgd",),
            device="cpu",
            randomness=Randomness.FRESH,
            seeds=Seeds(initialisation=7, split=0, sampling=None, noise=None),
            versions={"python": "3.11.7", "numpy": "2.4.6"},
        ),
        utility=Utility(test_accuracy=0.9, test_loss=0.25),
        diagnostics=Diagnostics(
            batch_sizes=(round(400 * sample_rate),) * steps, clipped=(3,) * steps, train_accuracy=0.95, seconds=0.5
        ),
    ).sealed()


def in_stages() -> RunLedger:
    """Four steps, four with twice the noise, and four with half the batches."""
    ledger = make_ledger()
    ran = [ledger.first.model_copy(update={"steps": 4})]
    ran.append(ran[0].model_copy(update={"noise_multiplier": 6.0}))
    ran.append(ran[1].model_copy(update={"sample_rate": 0.125, "divisor": 50.0}))
    schedule = [{"at": 4, "noise_factor": 2.0}, {"at": 8, "batch_size": 50}]
    facts = {"config": {**ledger.config, "schedule": schedule}, **told(ran, INDEPENDENT, "flat")}
    sizes = ledger.diagnostics.model_copy(update={"batch_sizes": (100,) * 8 + (50,) * 4})
    return ledger.model_copy(update={**facts, "diagnostics": sizes}).sealed()


def make_sensitivity(steps: int = 12) -> SensitivityRecord:
    return SensitivityRecord(
        steps=steps,
        scope=Scope.WHOLE_DATA,
        squared_change=1.5,
        mask_term=0.4,
        largest_mask_term=0.05,
        published_squared_change=2.0,
        noise_multiplier=3.0,
    )


@pytest.fixture(scope="module", autouse=True)
def _quick(quick_documents: None) -> None:
    """Documents are derived and derived again here: how narrow their enclosures are is tested elsewhere."""


@pytest.fixture(scope="session")
def certificate() -> Certificate:
    """Complete: five attackers on a run, and one field from a private measurement."""
    declared = Declaration(
        subject="a run",
        created="2026-11-22",
        issuer="A clinic",
        purpose="triage",
        expires="2030-01-01",
        weights_sha256="cd" * 32,
    )
    as_users_get_it()  # nothing is: before the fixtures of a module
    with derived_once():
        return certify_run(make_ledger(), make_sensitivity(), declared)


@pytest.fixture(scope="module")
def verified_once() -> Iterator[None]:
    """For modules that verify what lies beside a document: the same document is derived again the first time only."""
    real, known = check.verify, {}

    def verify(document: Certificate, **more: Any) -> Verification:
        asked = document.to_json(), more.get("tolerance")
        if asked not in known:
            known[asked] = real(document, **more)
        return known[asked]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "verify", verify)
        yield


@pytest.fixture
def quick() -> None:
    """Modules here have it already."""

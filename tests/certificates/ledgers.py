"""Ledgers of watched loops, without torch: one as Opacus trains, one as a plain loop over shuffled batches does."""

from __future__ import annotations

from typing import Any

from reticent.facts.start_weights import start_at
from reticent.facts.steps import Generator, Source
from reticent.records.chain import continued
from reticent.records.ledger import RunLedger

PLAIN = {
    "schema": "reticent.ledger/2",
    "created": "2026-11-22T02:10:18+00:00",
    "num_parameters": 44,
    "weights_sha256": "cd" * 32,
}
WHERE = {"device": "cpu", "versions": {"python": "3.11.7", "torch": "2.13.0+cpu"}}


def sealed(document: dict[str, Any]) -> RunLedger:
    """The ledger with its digest, as the watch writes it. ``environment`` may be stated in part."""
    steps = sum(segment["steps"] for segment in document["segments"])
    diagnostics = {"clipped": [0] * steps, "seconds": 0.5, "batch_sizes": [10] * steps}
    whole = {**PLAIN, "diagnostics": diagnostics, **document, "environment": WHERE | document["environment"]}
    return RunLedger.model_validate(whole).sealed()


def poisson(**changes: Any) -> RunLedger:
    """Twelve steps of Opacus on 60 records."""
    return sealed(
        {
            "sampler": {
                "drawn": "poisson",
                "source": "seen",
                "name": "UniformWithReplacementSampler",
                "sample_rate": 1.0 / 6.0,
                "dataset_size": 60,
            },
            "clipping": {"kind": "flat", "source": "seen", "smallest": 1.0, "largest": 1.0},
            "segments": [{"noise_multiplier": 1.1, "steps": 12, "passes": 2}],
            "divisor": 10.0,
            "environment": {"optimiser": ["DPOptimizer", "SGD"], "randomness": "torch, default generator"},
            **changes,
        }
    )


def shuffled(**changes: Any) -> RunLedger:
    """Three passes of six batches over 60 records, in a loop that declares its noise."""
    return sealed(
        {
            "sampler": {
                "drawn": "shuffled",
                "source": "seen",
                "name": "RandomSampler",
                "batch_size": 10,
                "dataset_size": 60,
                "batches_per_epoch": 6,
                "times_per_epoch": 1,
                "drop_last": False,
            },
            "clipping": {"kind": "flat", "source": "declared", "smallest": 1.0, "largest": 1.0},
            "segments": [{"noise_multiplier": 1.1, "steps": 18, "passes": 3}],
            "divisor": None,
            "environment": {"optimiser": ["SGD"], "randomness": "not seen"},
            "records_per_user": 3,
            **changes,
        }
    )


def secure_loop() -> RunLedger:
    """The loop of ``poisson`` with noise that nobody can predict."""
    return elsewhere(poisson(), randomness=Generator.SECURE).sealed()


def chain() -> RunLedger:
    """The loop of ``poisson`` twice, the second time from the weights at which the first ended."""
    first = poisson()
    start, salt = start_at("cd" * 32, "unknown", Source.UNKNOWN)
    later = poisson(start=start, weights_sha256="ef" * 32)
    kept = later.diagnostics.model_copy(update={"start_salt": salt})
    return continued(first, later.model_copy(update={"diagnostics": kept}).sealed())


def elsewhere(ledger: RunLedger, **facts: Any) -> RunLedger:
    """With other facts of its environment, and the digest that it had."""
    return ledger.model_copy(update={"environment": ledger.environment.model_copy(update=facts)})

"""What the parts of a ledger say about each other: a ledger that contradicts itself is refused."""

from __future__ import annotations

import math
from collections.abc import Iterator

from reticent.certificate.schema import Edition
from reticent.mechanism import Sampler
from reticent.mechanism.run_ledger import PublicLedger, Randomness, RunWarning
from reticent.mechanism.watched_run import PublicWatchedRun

_ASKED_AND_DONE = {
    "noise_multiplier": "noise_multiplier",
    "max_grad_norm": "max_grad_norm",
    "sample_rate": "sample_rate",
    "divisor": "divisor",
    "sampler": "sampler",
    "randomness": "randomness",
    "optimiser": "optimiser",
    "steps": "planned_steps",
    "records_per_user": "records_per_user",
}


def demanded_warnings(ledger: PublicLedger) -> tuple[RunWarning, ...]:
    """The warnings that follow from the facts of the ledger, whether it lists them or not."""
    public_size = ledger.config.get("divisor") is None or ledger.config.get("sample_rate") is None
    cases = (
        (ledger.sampler is Sampler.SHUFFLED, RunWarning.SHUFFLED_NOT_POISSON),
        (ledger.sampler is Sampler.FIXED_SIZE, RunWarning.FIXED_SIZE_NOT_POISSON),
        (ledger.randomness is Randomness.REPRODUCIBLE, RunWarning.REPRODUCIBLE_NOISE),
        (not ledger.noisy, RunWarning.NO_NOISE),
        (public_size, RunWarning.SIZE_TREATED_AS_PUBLIC),
        (ledger.steps < ledger.planned_steps, RunWarning.STOPPED_EARLY),
        (_schema_from_records(ledger), RunWarning.SCHEMA_FROM_RECORDS),
    )
    return tuple(warning for applies, warning in cases if applies)


def _schema_from_records(ledger: PublicLedger) -> bool:
    data = ledger.config.get("data")
    table = data.get("table") if isinstance(data, dict) else None
    return isinstance(table, dict) and bool(table.get("derived"))


def contradictions(ledger: PublicLedger | PublicWatchedRun, edition: Edition) -> Iterator[tuple[str, str]]:
    """Pairs of a path inside the ledger and what is wrong there."""
    if isinstance(ledger, PublicWatchedRun):
        yield from ledger.contradictions()
        return
    whole = ledger.sample_rate * ledger.data.dataset_size
    if not math.isclose(ledger.expected_batch_size, whole, rel_tol=1e-9):
        yield "expected_batch_size", f"is not sample_rate times dataset_size, which is {whole:g}"
    if ledger.steps > ledger.planned_steps:
        yield "steps", f"exceeds the {ledger.planned_steps} planned"
    listed = sum(math.prod(parameter.shape) for parameter in ledger.parameters)
    if ledger.num_parameters > listed:
        yield "num_parameters", f"exceeds the {listed} coordinates listed under parameters"
    for asked, done in _ASKED_AND_DONE.items():
        wanted = ledger.config.get(asked)
        if wanted is not None and wanted != getattr(ledger, done):
            yield f"config.{asked}", f"is not what ran: {done} is {getattr(ledger, done)}"
    for warning in demanded_warnings(ledger):
        if warning not in ledger.warnings:
            yield "warnings", f"lacks {warning.value}, which the facts of the run demand"
    if len(set(ledger.warnings)) < len(ledger.warnings):
        yield "warnings", "repeats a warning"
    yield from _seeds(ledger, edition)


def _seeds(ledger: PublicLedger, edition: Edition) -> Iterator[tuple[str, str]]:
    seeds, kept = ledger.seeds, ledger.randomness is Randomness.REPRODUCIBLE
    shown = kept and edition is Edition.COMPLETE
    for name in ("sampling", "noise"):
        if (getattr(seeds, name) is not None) != shown:
            yield f"seeds.{name}", "is missing" if shown else "has no place here"
    if (seeds.initialisation is None) != (kept and edition is Edition.PUBLIC):
        yield "seeds.initialisation", "is missing" if seeds.initialisation is None else "has no place here"

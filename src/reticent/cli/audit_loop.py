"""``reticent audit-loop``: is somebody's own training loop the DP-SGD that it claims to be?"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reticent import _check
from reticent.cli._app import JSON, argument, command, option
from reticent.cli._progress import progress_bar
from reticent.cli._tables import print_json, say
from reticent.errors import ArtifactError, needing
from reticent.io import yaml
from reticent.mechanisms import DPSGD

if TYPE_CHECKING:
    from reticent.attacks.mechanics import MechanicsReport

SCHEMA = "reticent.loop-audit/1"
_LARGEST_CLAIM = 4096
_WHOLE = ("steps", "batch_size", "dataset_size")
_KEYS = ("noise_multiplier", "sample_rate", "max_grad_norm", *_WHOLE)
_WHAT = "New runs of the loop on chosen records were audited: this says nothing about a model that it released before."


@command(
    "audit-loop",
    argument("function", str, "MODULE:FUNCTION", "Called as function(model, data, claim)."),
    option("claim", Path, "YAML: " + ", ".join(_KEYS) + ".", required=True),
    option("significance", float, "Probability of accusing a correct loop, at most.", 0.001),
    option("workers", int, "Processes in which the loop runs.", 2),
    option("seed", int, "Seed of the audit's own choices.", 0),
    option("timeout", float, "Give up when no run has ended for this many seconds."),
    JSON,
)
def audit_loop(
    function: str, claim: Path, significance: float, workers: int, seed: int, timeout: float | None, json: bool
) -> None:
    """Run a training loop on records with chosen gradients and test what it releases. Exit code 1: claim refuted."""
    settings = read_claim(claim)
    with needing("auditing a loop", "train"):
        from reticent.attacks.loop import audit_loop, find_loop
    _check.seed(seed=seed)
    if timeout is not None:
        _check.positive(timeout=timeout)
    sys.path.insert(0, os.getcwd())
    loop = find_loop(function)
    with progress_bar("audit-loop") as bar:
        report = audit_loop(
            loop, settings, significance=significance, workers=workers, seed=seed, progress=bar, timeout=timeout
        )
    print_json(_document(function, report)) if json else _print(function, report)
    if report.accused:
        raise click.exceptions.Exit(1)


def read_claim(path: Path) -> DPSGD:
    """A flat YAML mapping of names to numbers; of rate, batch and data size any two are enough.

    Raises:
        ArtifactError: the file cannot be read, is no such mapping, or lacks a key.
        ParameterError: a number is outside its domain.
    """
    document = yaml.load_file(path, yaml.Limits(size=_LARGEST_CLAIM))
    if not isinstance(document, dict):
        raise ArtifactError(f"{path}: must be a mapping of names to numbers")
    for name, value in document.items():
        if name not in _KEYS:
            raise ArtifactError(f"{path}: {name[:60]!r} is not one of {', '.join(_KEYS)}")
        _check_number(path, name, value)
    return _claim(path, document)


def _check_number(path: Path, name: str, value: object) -> None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole and (name in _WHOLE or not isinstance(value, float)):
        kind = "a whole number" if name in _WHOLE else "a number"
        shown = value[:60] if isinstance(value, str) else "a list or mapping" if value else value
        raise ArtifactError(f"{path}: {name} must be {kind}, got {shown!r}")


def _claim(path: Path, given: dict[str, float]) -> DPSGD:
    for name in ("noise_multiplier", "steps"):
        if name not in given:
            raise ArtifactError(f"{path}: lacks {name}")
    rate, batch, size = (given.get(name) for name in ("sample_rate", "batch_size", "dataset_size"))
    if rate is None and batch and size:
        rate = batch / size
    if batch is None and rate and size:
        batch = max(1, round(rate * size))
    if size is None and batch and rate:
        size = round(batch / rate)
    if rate is None or batch is None or size is None:
        raise ArtifactError(f"{path}: needs two of sample_rate, batch_size and dataset_size")
    numbers = {**given, "sample_rate": rate, "batch_size": batch, "dataset_size": size}
    return DPSGD(**numbers)  # type: ignore[arg-type]


def _document(function: str, report: MechanicsReport) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "about": _WHAT,
        "function": function,
        "significance": report.significance,
        "refuted": report.accused,
        "p_value": report.adjusted_p_value,
        "likely_fault": report.likely,
        "checks": [
            {"name": check.name, "p_value": check.p_value, "finding": check.finding, "failed": check in report.failed}
            for check in report.checks
        ],
    }


def _print(function: str, report: MechanicsReport) -> None:
    say(_WHAT)
    say(*report.headlines)
    click.echo(f"{function}: {len(report.checks)} tests; a small p-value speaks against the claim\n p-value")
    for check in report.checks:
        failed = "FAILED " if check in report.failed else ""
        say(f"{check.p_value:8.2g} {failed}{check.name}: {check.finding}", indent=9)

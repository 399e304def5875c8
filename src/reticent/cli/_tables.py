"""How results look in a terminal, and strict JSON."""

from __future__ import annotations

import typer
from pydantic import BaseModel
from rich.console import Console
from rich.table import Table

from reticent.certificate.numbers import AssessmentRecord, Number, RiskDocument


def print_json(document: BaseModel) -> None:
    """Strict JSON on standard output and nothing else."""
    typer.echo(document.model_dump_json(by_alias=True, indent=2))


def print_risk(document: RiskDocument) -> None:
    """A table with one line per adversary, then what a reader must know."""
    console = Console()
    console.print(assessment_table(document.assessments))
    for record in document.assessments:
        for note in record.notes:
            console.print(f"[dim]{record.adversary}:[/dim] {note}", markup=True, highlight=False)
    for name, reason in document.skipped.items():
        console.print(f"{name} left out: {reason}", markup=False, highlight=False)


def assessment_table(records: list[AssessmentRecord]) -> Table:
    """Advantage, Bayes security, success, TPR, epsilon and mu of each adversary, with the claim."""
    first = records[0]
    table = Table(title="How much each attacker can learn (claimed values, safe side for bounds)", title_justify="left")
    table.add_column("adversary", no_wrap=True)
    table.add_column("neighbouring")
    table.add_column("claim")
    table.add_column("advantage", justify="right")
    table.add_column("Bayes security", justify="right")
    groups = (
        ("right guess at prior {}", first.success_at_prior),
        ("TPR at FPR {}", first.tpr_at_fpr),
        ("epsilon at delta {}", first.epsilon_at_delta),
    )
    for title, numbers in groups:
        for key in numbers:
            table.add_column(title.format(key), justify="right")
    table.add_column("mu", justify="right")
    for r in records:
        table.add_row(
            r.adversary,
            r.neighbouring,
            r.claim if r.method == "exact" else f"{r.claim} ({r.method})",
            shown(r.advantage),
            shown(r.bayes_security),
            *(shown(n) for group in (r.success_at_prior, r.tpr_at_fpr, r.epsilon_at_delta) for n in group.values()),
            shown(r.mu),
        )
    return table


def shown(number: Number) -> str:
    """Four significant digits; infinity where there is no finite value."""
    return "inf" if number.value is None else f"{number.value:.4g}"

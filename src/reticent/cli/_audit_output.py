"""How audits look in a terminal, and strict JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table

from reticent._text import digits, printable
from reticent.audit import AuditReport, ConfidenceInterval, Plan, ThresholdRule, Unit
from reticent.tradeoff import TradeOff


def strict_json(document: Mapping[str, object]) -> None:
    """Strict JSON on standard output and nothing else."""
    typer.echo(json.dumps(document, allow_nan=False, indent=2))


def print_audit(report: AuditReport) -> None:
    """Bounds, rates and verdicts, then what a reader must know."""
    console = Console(emoji=False)
    members, others = len(report.scores.member), len(report.scores.non_member)
    for key, lead in (("subject", "This audits "), ("release", "The release: ")):
        if key in report.scores.meta:
            console.print(f"{lead}{printable(report.scores.meta[key], 400)}.", markup=False, highlight=False)
    title = f"{printable(report.scores.meta.get('attack', 'scores'), 100)}: {members} members, {others} non-members"
    console.print(f"{title}; design: {report.scores.design}", markup=False, highlight=False)
    console.print(_bounds(report))
    console.print(_rates(report))
    for name, verdict in report.verdicts.items():
        console.print(f"{name}: {verdict.finding.upper()}. {verdict.reason}", markup=False, highlight=False)
    notes: dict[str, list[str]] = {}
    for bound in report.bounds:
        for note in bound.notes:
            notes.setdefault(note, []).append(bound.title)
    for note, about in notes.items():
        who = "" if len(about) == len(report.bounds) else f"{', '.join(about)}: "
        console.print(f"{who}{note}", style="dim", highlight=False, markup=False)


def write_page(
    path: Path, report: AuditReport, claims: Mapping[str, TradeOff], rule: ThresholdRule, *, private: bool
) -> None:
    """The report as a page, and where it lies on standard error."""
    from reticent.certificate.audit_page import write_audit_page  # matplotlib takes a while to import

    files = write_audit_page(path, report, claims, rule=rule, private=private)
    typer.echo(f"open {files.page}", err=True)


def print_plan(plan: Plan) -> None:
    """One or two sentences."""
    halves = "each included by a fair coin" if plan.unit is Unit.ONE_RUN else "half with the target and half without"
    typer.echo(f"{plan.needed} {plan.unit}, {halves}: power {plan.power:.3f} at confidence {plan.confidence:g}")
    if plan.level is not None:
        typer.echo(f"threshold rule: ranks:{plan.level:.4g}")


def _bounds(report: AuditReport) -> Table:
    table = Table(title=f"Lower bounds at confidence {report.confidence:g}", title_justify="left")
    table.add_column("quantity")
    table.add_column("at least", justify="right")
    table.add_column("perfect leakage would give", justify="right")
    table.add_column("by")
    for bound in report.bounds:
        table.add_row(bound.title, digits(bound.value, up=False), digits(bound.ceiling, up=True), bound.rule)
    return table


def _rates(report: AuditReport) -> Table:
    table = Table(title=f"The attack, with intervals at confidence {report.confidence:g}", title_justify="left")
    table.add_column("number")
    table.add_column("estimate", justify="right")
    table.add_column("interval", justify="right")
    table.add_column("by")
    table.add_row("AUC", *_cells(report.auc))
    if report.auc_asymptotic is not None:
        table.add_row("AUC, asymptotic", *_cells(report.auc_asymptotic))
    for fpr, interval in report.tpr.items():
        table.add_row(f"TPR at FPR {fpr:g}", *_cells(interval))
    return table


def _cells(interval: ConfidenceInterval) -> tuple[str, str, str]:
    ends = f"{digits(interval.lower, up=False)} to {digits(interval.upper, up=True)}"
    return f"{interval.value:.4g}", ends, interval.method

"""How results look in a terminal, and strict JSON."""

from __future__ import annotations

from collections.abc import Sequence

import typer
from pydantic import BaseModel
from rich.console import Console
from rich.table import Table

from reticent.certificate.numbers import AssessmentRecord, Number, RiskDocument


def print_json(document: BaseModel) -> None:
    """Strict JSON on standard output and nothing else."""
    typer.echo(document.model_dump_json(by_alias=True, indent=2))


def print_risk(document: RiskDocument) -> None:
    """One table per neighbouring relation, then what a reader must know."""
    console = Console()
    print_assessments(console, document.assessments)
    for line in (*_estimates(document.assessments), *_notes(document.assessments)):
        console.print(line, markup=False, highlight=False)
    for name, reason in document.skipped.items():
        console.print(f"{name} left out: {reason}", markup=False, highlight=False)


def print_assessments(console: Console, records: Sequence[AssessmentRecord], *, short: bool = False) -> None:
    """The records as tables, one for each relation: values of different relations must not be compared.

    Args:
        console: where to print.
        records: in the order in which to print them.
        short: one FPR, one delta and no Bayes security, for narrow terminals.
    """
    for relation in dict.fromkeys(record.neighbouring for record in records):
        console.print(_table(relation, [r for r in records if r.neighbouring == relation], short))


def _table(relation: str, records: list[AssessmentRecord], short: bool) -> Table:
    first = records[0]
    prior = next(iter(first.success_at_prior))
    fprs, deltas = list(first.tpr_at_fpr), list(first.epsilon_at_delta)
    if short:
        fprs, deltas = fprs[-2:-1] or fprs, deltas[-1:]
    table = Table(title=f"neighbouring data sets: {relation}", title_justify="left", box=None, padding=(0, 1, 0, 0))
    table.add_column("attacker", no_wrap=True)
    table.add_column("claim", no_wrap=True)
    headings = ["advan-\ntage", *([] if short else ["security"]), f"guess\n@{prior}"]
    headings += [f"TPR\n@{key}" for key in fprs] + [f"eps\n@{key}" for key in deltas]
    for heading in (*headings, "mu"):
        table.add_column(heading, justify="right", no_wrap=True)
    for r in records:
        numbers = [r.advantage, *([] if short else [r.bayes_security]), r.success_at_prior[prior]]
        numbers += [r.tpr_at_fpr[key] for key in fprs] + [r.epsilon_at_delta[key] for key in deltas] + [r.mu]
        how = "" if r.method == "exact" else f" ({r.method})"
        table.add_row(r.adversary + how, r.claim, *(shown(number) for number in numbers))
    return table


def _estimates(records: Sequence[AssessmentRecord]) -> list[str]:
    """mu where error rates are not tiny, for each relation in which it differs from mu."""
    lines = []
    for relation in dict.fromkeys(record.neighbouring for record in records):
        told: dict[str, list[str]] = {}
        for record in records:
            for rate, number in record.mu_at_rates_above.items():
                if record.neighbouring == relation and shown(number) != shown(record.mu):
                    told.setdefault(rate, []).append(f"{record.adversary} {shown(number)}")
        for rate, values in told.items():
            lines.append(f"mu at error rates above {float(rate):g} only, an estimate ({relation}): {', '.join(values)}")
    return lines


def _notes(records: Sequence[AssessmentRecord]) -> list[str]:
    """Each note once, after the adversaries that it is about unless it is about all."""
    notes: dict[str, dict[str, None]] = {}
    for record in records:
        for note in record.notes:
            notes.setdefault(note, {})[record.adversary] = None
    everybody = len({record.adversary for record in records})
    return [note if len(names) == everybody else f"{', '.join(names)}: {note}" for note, names in notes.items()]


def shown(number: Number) -> str:
    """Four significant digits; infinity where there is no finite value."""
    return "inf" if number.value is None else f"{number.value:.4g}"

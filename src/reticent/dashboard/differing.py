"""What differs between two settings, or two certificates: a summary, and every line that differs, folded."""

from __future__ import annotations

from typing import Any

from dash import html

from reticent.certificates.declared_text import inert
from reticent.certificates.page import document_in
from reticent.dashboard.pieces import table
from reticent.verbs import Differ, Differences
from reticent.verbs.table import shown


def compared(a: tuple[str, str], b: tuple[str, str]) -> list[Any]:
    """Two certificates, each the text and the name of its file.

    Raises:
        ArtifactError: one is no certificate.
    """
    first, second = (a[1], b[1]) if a[1] != b[1] else (f"A: {a[1]}", f"B: {b[1]}")
    found = Differ(a=document_in(a[0], first), b=document_in(b[0], second)).answer()
    told = [html.P("Neither certificate is checked here: Open does that, one by one.", className="quiet")]
    return [*told, *differences(found, first, second)] if found.rows() else differences(found, first, second)


def differences(found: Differences, a: str = "A", b: str = "B") -> list[Any]:
    """The numbers of each attacker that differ, and then everything else; ``a`` and ``b`` are what both are called."""
    if not found.rows():
        return [html.P(f"{a} and {b} say the same.", className="good")]
    learnt = [row for row in zip(found.summary.rows(), found.summary.learnt, strict=True) if row[1].more != "same"]
    numbers = []
    for row, one in learnt:
        x, y, gap = (shown(cell, up) for cell, up in list(zip(row, found.summary.ways(row), strict=True))[3:6])
        who = [one.number, html.Small(f"{one.attacker}, {one.neighbouring}, {row[-1]}")]
        more = {"a": a, "b": b}[one.more]
        numbers.append((who, [*(html.Td(cell, className="n") for cell in (x, y, gap)), html.Td(more)]))
    every = [(inert(name), (html.Td(one), html.Td(other))) for name, one, other in found.rows()]
    folded = html.Summary(f"Every line that differs: {len(every)}")
    return [
        *([table(("", a, b, "difference", "more is learnt from"), numbers)] if numbers else []),
        html.Details([folded, table(("what differs", a, b), every)]),
    ]

"""Two certificates side by side: every fact, number and sentence that differs."""

from __future__ import annotations

from typing import Any

from dash import html

from reticent.adversaries import ADVERSARIES
from reticent.certificates.declared_text import inert
from reticent.certificates.facts import facts
from reticent.certificates.page import document_in
from reticent.certificates.schema import Certificate
from reticent.certificates.sentences import even_guess, percent
from reticent.dashboard.pieces import table
from reticent.verbs.side_by_side import Differences, certified


def compared(a: tuple[str, str], b: tuple[str, str]) -> list[Any]:
    """Two files, each its text and its name, as a table.

    Raises:
        ArtifactError: one is no certificate.
    """
    first, second = (a[1], b[1]) if a[1] != b[1] else (f"A: {a[1]}", f"B: {b[1]}")
    certificates = document_in(a[0], first), document_in(b[0], second)
    rows = Differences((first, second), *map(certified, certificates)).rows()
    if not rows:
        return [html.P(f"{first} and {second} say the same.", className="good")]
    body = [(inert(name), (html.Td(one), html.Td(other))) for name, one, other in rows]
    told = f"{len(rows)} lines differ. Neither certificate is checked here: Open does that, one by one."
    return [
        html.Ul([html.Li(line) for line in summary(*certificates)]),
        html.P(told, className="quiet"),
        html.Details([html.Summary("Every line that differs"), table(("what changed", first, second), body)]),
    ]


def summary(a: Certificate, b: Certificate) -> list[str]:
    """What differs, in few words: the answers of the worst case, and what was run."""
    one, other = _in_short(a), _in_short(b)
    found = [f"{name}: {one[name]}, then {other[name]}." for name in one if one[name] != other.get(name, one[name])]
    return [inert(line, 600) for line in found] or ["What was run and the answers of the worst case are the same."]


def _in_short(certificate: Certificate) -> dict[str, str]:
    worst = [one for one in certificate.assessments if ADVERSARIES[one.adversary].strongest]
    answers = {f"Right guesses at most, {one.neighbouring}": str(percent(even_guess(one), up=True)) for one in worst}
    return answers | {f"{before}{name}": str(value) for before, (name, value) in facts(certificate)}

"""Two certificates side by side: every fact, number and sentence that differs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dash import html

from reticent.adversaries import ADVERSARIES
from reticent.certificates.declared_text import inert
from reticent.certificates.facts import declarations, facts
from reticent.certificates.page import document_in
from reticent.certificates.schema import Certificate, CertifiedAssessment
from reticent.certificates.sentences import even_guess, percent
from reticent.dashboard.pieces import table
from reticent.proofs import Claim
from reticent.risk.report import MEASURES
from reticent.text import digits

_MISSING = "not there"


def differences(a: Certificate, b: Certificate) -> list[tuple[str, str, str]]:
    """What differs, with what each says; facts first, then attacker by attacker."""
    one, other = _lines(a), _lines(b)
    names = [*one, *(name for name in other if name not in one)]
    rows = [(name, one.get(name, _MISSING), other.get(name, _MISSING)) for name in names]
    return [row for row in rows if row[1] != row[2]]


def _lines(certificate: Certificate) -> dict[str, str]:
    """Everything that people read, by name."""
    said = [(name.capitalize(), text or "not said") for name, text in declarations(certificate)]
    found = {"created": certificate.declared.created, **dict(said)}
    found.update({f"{before}{label}": str(value) for before, (label, value) in facts(certificate)})
    found["written by reticent"], found["headline"] = certificate.reticent_version, certificate.headline
    found.update({f"left out: {name}": str(reason) for name, reason in certificate.skipped.items()})
    verdicts = {True: "passed", False: "failed"}
    found.update({f"policy: {one.name}": verdicts[one.passed] for one in certificate.requirements or ()})
    found["warnings"] = ", ".join(one.name for one in certificate.warnings) or "none"
    for record in certificate.assessments:
        found.update(_of_attacker(record))
    return {name: inert(str(text), 600) for name, text in found.items()}


def _of_attacker(record: CertifiedAssessment) -> Iterator[tuple[str, str]]:
    who = f"{record.label}, {record.neighbouring}"
    yield f"{who}: claim", record.claim
    yield f"{who}: sentence", str(record.sentence)
    for name, one in MEASURES.items():
        for at in one.stated(record):
            value = one.of(record, *at).value
            up = (name != "bayes_security") if Claim(record.claim).proven else None
            yield f"{who}: {one.at(*at)}", "infinite" if value is None else digits(value, up=up)
    for needed in record.conditions:
        yield f"{who}: {needed.key}", needed.status.value


def compared(a: tuple[str, str], b: tuple[str, str]) -> list[Any]:
    """Two files, each its text and its name, as a table.

    Raises:
        ArtifactError: one is no certificate.
    """
    first, second = (a[1], b[1]) if a[1] != b[1] else (f"A: {a[1]}", f"B: {b[1]}")
    certificates = document_in(a[0], first), document_in(b[0], second)
    rows = differences(*certificates)
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

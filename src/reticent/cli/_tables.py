"""How results look in a terminal, and strict JSON."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import click
from pydantic import BaseModel

from reticent.proofs import Claim, conditions_by_whom
from reticent.risk import blind_guess
from reticent.risk.report import MEASURES, AssessmentRecord, ConditionRecord, Number, Questions, RiskDocument
from reticent.text import Column, by_whom, digits, printable, table, wrapped

ON_REQUEST = ("ppv", "delta")
"""Measures that are in every document, and in a table where somebody asks."""
_SMALL, _WIDE = 40, 100  # characters: what a line may be, whatever the terminal


def print_json(document: BaseModel) -> None:
    """Strict JSON on standard output and nothing else."""
    click.echo(document.model_dump_json(by_alias=True, indent=2))


def say(line: str, indent: int = 0) -> None:
    """A sentence, wrapped at the width of the terminal between words; lines after the first are indented."""
    click.echo("\n".join(wrapped(printable(line), _width(), indent)))


def print_table(title: str, names: Sequence[Column], numbers: Sequence[Column]) -> None:
    """Rows with names on the left; columns that do not fit follow in a further block. Nothing is cut."""
    click.echo("\n".join([title, *table(names, numbers, _width())]))


def _width() -> int:
    return min(max(shutil.get_terminal_size().columns, _SMALL), _WIDE)


def print_risk(document: RiskDocument, more: Collection[str] = ()) -> None:
    """One table per neighbouring relation, then what a reader must know; ``more`` as for ``print_assessments``."""
    print_assessments(document.assessments, more=more)
    for line in (
        *_infinite(document.assessments),
        *_estimates(document.assessments),
        *by_whom((r.adversary, r.notes) for r in document.assessments),
    ):
        say(line)
    print_conditions([(r.adversary, r.conditions) for r in document.assessments])
    print_further(document.assessments)
    for name, reason in document.skipped.items():
        say(f"{name} left out: {reason}")


def print_conditions(owned: Sequence[tuple[str, Sequence[ConditionRecord]]]) -> None:
    """What the numbers rest on, first what nobody looked at; an attacker is named where not all need it."""
    click.echo("What the numbers rest on:")
    for line in conditions_by_whom((name, [one.known for one in own]) for name, own in owned):
        say(line, indent=2)


def print_further(records: Sequence[AssessmentRecord]) -> None:
    """What the guesses of a secret reach with the model and without, and what these numbers need besides."""
    one = MEASURES["secret"]
    for record in records:
        for at in one.stated(record):
            bits, guesses = map(float, at)
            what = f"a secret of {bits:g} bits in {guesses:g} guess{'es' if guesses > 1 else ''}"
            found = shown(one.of(record, *at), up=True)
            say(f"{record.label}: {what}: at most {found}; {shown(blind_guess(bits, guesses))} without the model")
    needed = [record.also_needed[one.field] for record in records if one.field in record.also_needed]
    if needed:
        click.echo("What this needs besides:")
        for line in conditions_by_whom([("", [found.known for found in needed[0]])]):
            say(line, indent=2)


def print_assessments(records: Sequence[AssessmentRecord], *, short: bool = False, more: Collection[str] = ()) -> None:
    """The records as tables, one for each relation: values of different relations must not be compared.

    Args:
        records: in the order in which to print them.
        short: one FPR, no Bayes security, and of the priors and deltas those that `reticent risk` shows.
        more: measures of ``ON_REQUEST`` that were asked for.
    """
    for relation in dict.fromkeys(record.neighbouring for record in records):
        _print_relation(relation, [r for r in records if r.neighbouring == relation], short, more)


def _print_relation(relation: str, records: list[AssessmentRecord], short: bool, more: Collection[str]) -> None:
    how = ["" if r.method == "exact" else f" ({r.method})" for r in records]
    names = [("attacker", [r.label + way for r, way in zip(records, how, strict=True)])]
    names.append(("claim", [r.claim for r in records]))
    bounds = [Claim(r.claim).proven for r in records]
    numbers = []
    for name, at in _asked(records, short, more):
        one = MEASURES[name]
        cells = [
            shown(one.of(r, *at), up=name != "bayes_security" if b else None) if at in one.stated(r) else "-"
            for r, b in zip(records, bounds, strict=True)
        ]
        numbers.append((one.at(*at).replace("@", "\n@"), cells))
    print_table(f"neighbouring data sets: {relation}", names, numbers)


def _asked(
    records: list[AssessmentRecord], short: bool, more: Collection[str]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The columns: names of measures, with the places at which they are read."""
    usual = Questions()
    for name, one in MEASURES.items():
        if not one.places:
            yield from [] if short and name == "bayes_security" else [(name, ())]
            continue
        places = max((one.stated(r) for r in records), key=len) if name in more or name not in ON_REQUEST else []
        known = [tuple(map(repr, at)) for at in one.asked(usual)]
        if short and name == "tpr":
            places = places[-2:-1] or places
        elif short and places:
            last = places[0] if name == "success" else places[-1]
            places = [at for at in places if at in known] or [last]
        yield from ((name, at) for at in places)


def _infinite(records: Sequence[AssessmentRecord]) -> list[str]:
    """Why an epsilon is infinite, once for each delta and reason."""
    reasons: dict[str, dict[str, None]] = {}
    for record in records:
        for delta, number in record.epsilon_at_delta.items():
            if number.value is None:
                why = f"epsilon is inf at delta {float(delta):g}: {_reason(number)}"
                reasons.setdefault(why, {})[record.adversary] = None
    return [f"{', '.join(names)}: {why}" for why, names in reasons.items()]


def _reason(number: Number) -> str:
    if number.lower is None:
        return "what gives the record away has a larger probability than delta, and no epsilon covers that."
    least = digits(number.lower, up=False)
    return f"none is proven, as the numerical bound on delta stays above it; epsilon is at least {least}."


def _estimates(records: Sequence[AssessmentRecord]) -> list[str]:
    """mu where error rates are not tiny, for each relation in which it differs from mu."""
    lines = []
    for relation in dict.fromkeys(record.neighbouring for record in records):
        found: dict[str, list[str]] = {}
        for record in records:
            for rate, number in record.mu_at_rates_above.items():
                if record.neighbouring == relation and shown(number) != shown(record.mu):
                    found.setdefault(rate, []).append(f"{record.adversary} {shown(number)}")
        for rate, values in found.items():
            lines.append(f"mu at error rates above {float(rate):g} only, an estimate ({relation}): {', '.join(values)}")
    return lines


def shown(number: Any, *, up: bool | None = None) -> str:
    """Four significant digits, a bound on its safe side (see ``digits``); infinity where there is no finite value."""
    value = number.value if isinstance(number, Number) else number
    return "inf" if value is None else digits(value, up=up)

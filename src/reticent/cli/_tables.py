"""How results look in a terminal, and strict JSON."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import click

from reticent.adversaries.report import AssessmentRecord, ConditionRecord, Number, RiskDocument
from reticent.kernel.proofs import Claim, conditions_by_whom
from reticent.kernel.risk.questions import MEASURES, Measure, Questions
from reticent.kernel.text import Column, by_whom, digits, printable, table, wrapped
from reticent.verbs.table import in_json

ON_REQUEST = ("ppv", "delta")
"""Measures that are in every document, and in a table where somebody asks."""
_UNNAMED = ("exact", "proven")
"""Methods that a table does not name: beside an estimate, "proven" would read as its claim."""
_SMALL, _WIDE = 40, 100  # characters: what a line may be, whatever the terminal


def print_json(document: Mapping[str, Any]) -> None:
    """Strict JSON on standard output and nothing else."""
    click.echo(in_json(document))


def say_warnings(warnings: Mapping[str, str]) -> None:
    """The warnings of a ledger, one after the other."""
    say(*(f"! {name}: {text}" for name, text in warnings.items()))


def say(*lines: str, indent: int = 0) -> None:
    """Sentences, each wrapped at the width of the terminal between words; its lines after the first are indented."""
    for line in lines:
        click.echo("\n".join(wrapped(printable(line), _width(), indent)))


def print_table(title: str, names: Sequence[Column], numbers: Sequence[Column]) -> None:
    """Rows with names on the left; columns that do not fit follow in a further block. Nothing is cut."""
    click.echo("\n".join([title, *table(names, numbers, _width())]))


def _width() -> int:
    return min(max(shutil.get_terminal_size().columns, _SMALL), _WIDE)


def print_risk(document: RiskDocument, more: Collection[str] = (), *, full: bool) -> None:
    """One table per neighbouring relation, then what a reader must know.

    Args:
        more: as for ``print_assessments``.
        full: every number, note and condition; otherwise those that a reader of epsilon knows or needs.
    """
    records = document.assessments
    print_assessments(records, more=more, full=full)
    if "ppv" in more:
        say("accused rightly: if people are independent of each other, and nobody is known to be likelier")
    say(*_infinite(records), *(_estimates(records) if full else ()), *_notes(records, full))
    owned = [(r.adversary, r.conditions) for r in records]
    if full:
        print_conditions(owned)
    else:
        _print_open(records)
    print_further(records)
    for name, reason in document.skipped.items():
        say(f"{name} left out: {reason}")


def print_conditions(owned: Sequence[tuple[str, Sequence[ConditionRecord]]]) -> None:
    """What the numbers rest on, first what nobody looked at; an attacker is named where not all need it."""
    click.echo("What the numbers rest on:")
    say(*conditions_by_whom((name, [one.known for one in own]) for name, own in owned), indent=2)


def _print_open(records: Sequence[AssessmentRecord]) -> None:
    """The conditions that make a claim conditional, how many more there are, and where they are shown."""
    owned = [(r.adversary, [one.known for one in r.conditions]) for r in records]
    shown_here = conditions_by_whom((name, [one for one in own if one.weakens]) for name, own in owned)
    say(*shown_here, indent=2)
    rest = len({one for _, own in owned for one in own if not one.weakens})
    more = f"{rest} {'more ' if shown_here else ''}condition{'s' * (rest > 1)}" if rest else "no other condition"
    say(f"The numbers rest on {more}. --full lists all, and more numbers.")


def _notes(records: Sequence[AssessmentRecord], full: bool) -> list[str]:
    """All notes, or those of numbers that are not proven."""
    return by_whom((r.adversary, r.notes if full or not Claim(r.claim).proven else []) for r in records)


def print_further(records: Sequence[AssessmentRecord]) -> None:
    """What is guessed or recovered with the model and without, and what these numbers need besides."""
    several = len({record.neighbouring for record in records}) > 1
    for name, what in _FURTHER.items():
        one = MEASURES[name]
        for record in records:
            who = f"{record.label} ({record.neighbouring})" if several else record.label
            for at in one.stated(record):
                where = [float(place) for place in at]
                found, blind = shown(one.of(record, *at), up=True), shown(one.blind(*where))
                say(f"{who}: {what(*where)}: at most {found}; {blind} without the model")
        needed = [record.also_needed[one.field] for record in records if one.field in record.also_needed]
        if needed:
            click.echo("What this needs besides:")
            say(*conditions_by_whom([("", [found.known for found in needed[0]])]), indent=2)


def _secret(bits: float, guesses: float) -> str:
    return f"a secret of {bits:g} bits in {guesses:g} guess{'es' if guesses > 1 else ''}"


_FURTHER: dict[str, Callable[..., str]] = {
    "secret": _secret,
    "recovered": lambda baseline: f"recovered where the best guess has {baseline:g}",
}
"""What people are told besides the tables, where somebody asked."""


def print_assessments(
    records: Sequence[AssessmentRecord], *, more: Collection[str] = (), full: bool = False, usual: bool = False
) -> None:
    """The records as tables, one for each relation: values of different relations must not be compared.

    Args:
        more: measures of ``ON_REQUEST`` that were asked for.
        full: every number; otherwise epsilon, right guesses and what an attacker finds, in words.
        usual: of the places those that `reticent risk` shows by default.
    """
    for relation in dict.fromkeys(record.neighbouring for record in records):
        own = [r for r in records if r.neighbouring == relation]
        asked = _every(own, more) if full else _few(own, more, usual)
        _print_relation(relation, own, list(asked), full)


def _print_relation(
    relation: str, records: list[AssessmentRecord], asked: Sequence[tuple[str, tuple[str, ...]]], full: bool
) -> None:
    how = ["" if r.method in _UNNAMED else f" ({r.method})" for r in records]
    names = [("attacker", [r.label + way for r, way in zip(records, how, strict=True)])]
    names.append(("claim", [r.claim for r in records]))
    numbers = [(_heading(name, at, full), [_cell(r, name, at, full) for r in records]) for name, at in asked]
    print_table(f"neighbouring data sets: {relation}", names, numbers)


def _heading(name: str, at: tuple[str, ...], full: bool) -> str:
    one, places = MEASURES[name], [float(place) for place in at]
    if name == "mu":
        return "mu at\nevery rate"
    if full or name not in ("epsilon", "success", "tpr", "ppv"):
        return one.at(*at).replace("@", "\n@")
    if name == "epsilon":
        return f"epsilon at\ndelta {at[0]}"
    if name == "success":
        return f"right guesses\n({_percent(max(places[0], 1.0 - places[0]))} blind)"
    if name == "tpr":
        return f"found at {_percent(places[0])}\nfalse alarms"
    return f"accused rightly at {_percent(places[1])}\nfalse alarms ({_percent(places[0])} blind)"


def _cell(record: AssessmentRecord, name: str, at: tuple[str, ...], full: bool) -> str:
    one, proven = MEASURES[name], Claim(record.claim).proven
    if at not in one.stated(record):
        return "-"
    number, up = one.of(record, *at), name != "bayes_security" if proven else None
    if full or name not in ("success", "tpr", "ppv") or number.value is None:
        return shown(number, up=up)
    return _percent(number.value, up)


def _percent(share: float, up: bool | None = None) -> str:
    return f"{digits(100.0 * share, up=up)}%"


def _every(records: list[AssessmentRecord], more: Collection[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for name, one in MEASURES.items():
        if name in more or name not in ON_REQUEST:
            yield from ((name, at) for at in _stated(records, one))


def _few(records: list[AssessmentRecord], more: Collection[str], usual: bool) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The columns for people; of the places only the usual ones, where some of these are there."""
    wanted = ("epsilon", "delta", "success", "tpr", "ppv", *_FURTHER)
    for name in (name for name in wanted if name in more or name not in ON_REQUEST):
        one = MEASURES[name]
        places = _stated(records, one)
        known = [at for at in places if usual and tuple(map(float, at)) in one.asked(Questions())]
        yield from ((name, at) for at in known or places)


def _stated(records: list[AssessmentRecord], one: Measure) -> list[tuple[str, ...]]:
    """The places of a measure, of those who have it."""
    return max((one.stated(record) for record in records), key=len)


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
                    found.setdefault(rate, []).append(f"{record.adversary} {shown(number, up=True)}")
        for rate, values in found.items():
            lines.append(f"mu at error rates above {float(rate):g} only, an estimate ({relation}): {', '.join(values)}")
    return lines


def shown(number: Any, *, up: bool | None = None) -> str:
    """Four significant digits, a bound on its safe side (see ``digits``); infinity where there is no finite value."""
    value = number.value if isinstance(number, Number) else number
    return "inf" if value is None else digits(value, up=up)

"""The tables for specialists: every number of the document, one row for all attackers who share it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from reticent.adversaries.report import AssessmentRecord, Number
from reticent.certificates.document.schema import Certificate, CertifiedAssessment
from reticent.certificates.document.sentences import one_in, percent, share
from reticent.kernel.messages import Figure, Message, said
from reticent.kernel.proofs import Claim
from reticent.kernel.risk.questions import MEASURES
from reticent.kernel.text import digits

Shown = Message | Figure
"""What stands in a cell."""
Names = tuple[Message, ...]
"""Attackers who share something."""


@dataclass(frozen=True, slots=True)
class NumberTable:
    """One question, one small table: rows of (attackers, cells).

    Attributes:
        title: the question.
        columns: headings of the cells.
        rows: attackers, and one cell for each column.
        blind: what is reached without the model, for each column; empty where that means nothing.
    """

    title: Message
    columns: tuple[Shown, ...]
    rows: tuple[tuple[Names, tuple[Shown, ...]], ...]
    blind: tuple[Figure, ...] = ()


@dataclass(frozen=True, slots=True)
class _Kind:
    """How the table of a measure is headed: by the last of its places; one table for each place before it."""

    column: Callable[[float], Figure]
    blind: Callable[[float], float] | None = None


def plain(x: float) -> Figure:
    """A small number without an exponent: 0.000001."""
    return Figure(f"{Decimal(repr(x)).normalize():f}")


_ALONE = ("advantage", "bayes_security", "mu")
"""Numbers that need no place."""
_KINDS: dict[str, _Kind] = {
    "success": _Kind(percent, lambda prior: max(prior, 1.0 - prior)),
    "tpr": _Kind(percent, lambda fpr: fpr),
    "ppv": _Kind(percent),
    "epsilon": _Kind(plain),
    "delta": _Kind(plain),
}


def tables(certificate: Certificate) -> list[NumberTable]:
    """One table for the numbers that need no place, and those for each measure that is read at places.

    An attacker whose curve is that of another has its numbers, as the appendix says, and no row.
    """
    records = _different(certificate.assessments)
    alone = [[MEASURES[name].of(record) for name in _ALONE] for record in records]
    columns = tuple(Message(f"column.{name}") for name in _ALONE)
    found = [NumberTable(Message("table.whole"), columns, _merged(records, alone))]
    for name, kind in _KINDS.items():
        apart: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
        for at in _in_order(MEASURES[name].stated(records[0])):
            apart.setdefault(at[:-1], []).append(at)
        found += [_table(records, name, kind, before, places) for before, places in apart.items()]
    return found


def _table(
    records: Sequence[CertifiedAssessment],
    name: str,
    kind: _Kind,
    before: tuple[str, ...],
    places: Sequence[tuple[str, ...]],
) -> NumberTable:
    """The numbers of one measure, whose places agree in all but the last."""
    rows = [[MEASURES[name].of(record, *at) for at in places] for record in records]
    last = [float(at[-1]) for at in places]
    title, blind = Message(f"table.{name}"), kind.blind
    if before:
        prior = float(before[0])
        title, blind = title.given(prior=one_in(prior)), lambda _: prior
    shown = tuple(Figure(digits(blind(x))) for x in last) if blind is not None else ()
    return NumberTable(title, tuple(map(kind.column, last)), _merged(records, rows), shown)


def _different(records: Sequence[CertifiedAssessment]) -> list[CertifiedAssessment]:
    """The first of all who share a relation, a curve and a claim."""
    found: list[CertifiedAssessment] = []
    for one in records:
        if not any(repeats(one, other) for other in found):
            found.append(one)
    return found


def repeats(one: CertifiedAssessment, other: CertifiedAssessment) -> bool:
    """Whether two attackers have the same numbers."""
    return (one.neighbouring, one.curve, one.claim) == (other.neighbouring, other.curve, other.claim)


_FURTHER = {"secret": ("bits", "guesses"), "recovered": ()}
"""Measures that a certificate has where somebody asked, with the headings of the places that the page shows."""


def further(certificate: Certificate) -> dict[str, NumberTable]:
    """By measure, what is reached with the model and without, where somebody asked for it."""
    usual, found = certificate.assessments[0].neighbouring, {}
    for name, places in _FURTHER.items():
        one = MEASURES[name]
        rows: list[tuple[Names, tuple[Shown, ...]]] = []
        for record in certificate.assessments:
            for at in _in_order(one.stated(record)):
                if _bettered(certificate, record, name, at):
                    continue
                where = [float(place) for place in at]
                known = one.of(record, *at).value
                reached = Message("share.at-most", share=share(1.0 if known is None else known, up=True))
                shown = [Figure(f"{x:g}") for x in where[: len(places)]]
                rows.append(((named(record, usual),), (*shown, share(one.blind(*where)), reached)))
        if rows:
            columns = tuple(Message(f"column.{heading}") for heading in (*places, "without", "with"))
            found[name] = NumberTable(Message(f"page.{name}"), columns, tuple(rows))
    return found


def _bettered(certificate: Certificate, record: CertifiedAssessment, name: str, at: tuple[str, ...]) -> bool:
    """Whether the same attacker reaches less by the other question: both limits are of one probability."""
    one = MEASURES[name]
    same = (other for other in certificate.assessments if (other.label, other.claim) == (record.label, record.claim))
    reached = [one.of(other, *at).value for other in same if at in one.stated(other)]
    return one.of(record, *at).value != min((x for x in reached if x is not None), default=None)


def _in_order(places: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Places by their numbers; a document has them by their texts."""
    return sorted(places, key=lambda at: tuple(map(float, at)))


def _merged(
    records: Sequence[CertifiedAssessment], rows: Sequence[Sequence[Number]]
) -> tuple[tuple[Names, tuple[Shown, ...]], ...]:
    """One row for all attackers of one relation who have the same numbers."""
    found: dict[tuple[str, str, tuple[Shown, ...]], list[CertifiedAssessment]] = {}
    for record, numbers in zip(records, rows, strict=True):
        cells = tuple(_number(number, _way(record, number)) for number in numbers)
        found.setdefault((record.neighbouring, record.claim, cells), []).append(record)
    usual = records[0].neighbouring
    return tuple((tuple(named(record, usual) for record in same), cells) for (_, _, cells), same in found.items())


def _way(record: CertifiedAssessment, number: Number) -> bool | None:
    """Which way the digits of a bound are rounded: a security down, all else up."""
    return number is not record.bayes_security if Claim(record.claim).proven else None


def _number(number: Number, up: bool | None) -> Shown:
    """The claimed value; the enclosure follows where it is wider than a thousandth of the value."""
    value = _shown(number.value, up)
    if number.lower is None and number.upper is None:
        return value if number.value is None else Message("number.alone", value=value)
    if number.lower is not None and number.upper is not None and number.upper - number.lower <= 1e-3 * number.upper:
        return value
    ends = {"lower": _shown(number.lower, False), "upper": _shown(number.upper, True)}
    return Message("number.enclosed", value=value, **ends)


def enclosed(cell: Shown) -> bool:
    """Whether a cell shows the ends of an enclosure."""
    return isinstance(cell, Message) and cell.key == "number.enclosed"


def _shown(x: float | None, up: bool | None) -> Shown:
    return Message("number.none") if x is None else Figure(digits(x, up=up))


def named(record: AssessmentRecord, usual: str | None = None) -> Message:
    """An attacker with the parameters that a table shows, and with the question where that is not the usual one."""
    more = record.label.removeprefix(record.adversary)
    name = Message(f"name.{record.adversary}", more=more)
    name = name if name.known else said(record.label)
    if usual in (None, record.neighbouring):
        return name
    return Message("name.asked", name=name, question=Message(f"short.{record.neighbouring}"))

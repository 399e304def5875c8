"""The tables for specialists: every number of the document, one row for all attackers who share it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reticent.certificates.schema import Certificate, CertifiedAssessment
from reticent.certificates.sentences import percent, share
from reticent.proofs import Claim
from reticent.risk import blind_guess
from reticent.risk.report import MEASURES, Number
from reticent.text import digits


@dataclass(frozen=True, slots=True)
class NumberTable:
    """One question, one small table: rows of (attackers, cells).

    Attributes:
        title: the question.
        columns: headings of the cells.
        rows: attackers, and one cell for each column.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]


_BY_PLACE: dict[str, tuple[str, Callable[..., str]]] = {
    "success": ("Right guess, by prior", percent),
    "tpr": ("TPR, by FPR", "{:g}".format),
    "ppv": ("Accusations that are right (PPV), by prior and FPR", "{:g}, {:g}".format),
    "epsilon": ("ε, by δ", "{:g}".format),
    "delta": ("δ, by ε", "{:g}".format),
}


TITLES = tuple(title for title, _ in _BY_PLACE.values())
"""Titles of the tables whose numbers are read at places."""


def tables(certificate: Certificate) -> list[NumberTable]:
    """One table for the numbers that need no place, and one for each measure that is read at places."""
    records = certificate.assessments
    alone = [[MEASURES[name].of(record) for name in ("advantage", "bayes_security", "mu")] for record in records]
    found = [NumberTable("In one number", ("advantage", "Bayes security", "μ"), _merged(records, alone))]
    for name, (title, label) in _BY_PLACE.items():
        one = MEASURES[name]
        places = _in_order(one.stated(records[0]))
        rows = [[one.of(record, *at) for at in places] for record in records]
        headings = tuple(label(*map(float, at)) for at in places)
        found += [NumberTable(title, headings, _merged(records, rows))] if places else []
    return found


def secrets(certificate: Certificate) -> NumberTable | None:
    """What guesses of a secret reach, where somebody asked for it."""
    one, found = MEASURES["secret"], []
    usual = certificate.assessments[0].neighbouring
    for record in certificate.assessments:
        for at in _in_order(one.stated(record)):
            bits, guesses = map(float, at)
            known = one.of(record, *at).value
            reached = f"at most {share(1.0 if known is None else known, up=True)}"
            cells = (f"{bits:g}", f"{guesses:g}", share(blind_guess(bits, guesses)), reached)
            found.append((record.label + relation_suffix(record, usual), cells))
    columns = ("bits", "guesses", "without the model", "with the model")
    return NumberTable("A secret in one person's records", columns, tuple(found)) if found else None


def _in_order(places: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Places by their numbers; a document has them by their texts."""
    return sorted(places, key=lambda at: tuple(map(float, at)))


def _merged(
    records: Sequence[CertifiedAssessment], rows: Sequence[Sequence[Number]]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """One row for all attackers of one relation who have the same numbers."""
    found: dict[tuple[str, str, tuple[str, ...]], list[CertifiedAssessment]] = {}
    for record, numbers in zip(records, rows, strict=True):
        cells = tuple(_number(number, _way(record, number)) for number in numbers)
        found.setdefault((record.neighbouring, record.claim, cells), []).append(record)
    usual = records[0].neighbouring
    return tuple(
        (", ".join(record.label for record in same) + relation_suffix(same[0], usual), cells)
        for (_, _, cells), same in found.items()
    )


def _way(record: CertifiedAssessment, number: Number) -> bool | None:
    """Which way the digits of a bound are rounded: a security down, all else up."""
    return number is not record.bayes_security if Claim(record.claim).proven else None


def _number(number: Number, up: bool | None) -> str:
    """The claimed value; the enclosure follows where it is wider than a thousandth of the value."""
    value = _shown(number.value, up)
    if number.lower is None and number.upper is None:
        return value if number.value is None else f"{value} (no enclosure)"
    if number.lower is not None and number.upper is not None and number.upper - number.lower <= 1e-3 * number.upper:
        return value
    return f"{value} [{_shown(number.lower, False)}, {_shown(number.upper, True)}]"


def _shown(x: float | None, up: bool | None) -> str:
    return "no finite value" if x is None else digits(x, up=up)


def relation_suffix(record: CertifiedAssessment, usual: str) -> str:
    """What follows the name of an attacker where the relation is not the usual one of the page."""
    return "" if record.neighbouring == usual else f" ({record.neighbouring})"

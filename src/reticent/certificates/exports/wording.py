"""What every export says, and how its text is written."""

from __future__ import annotations

import re
from collections.abc import Iterator

from reticent.certificates.document.numbers import further
from reticent.certificates.document.schema import Certificate
from reticent.certificates.document.sentences import STOP, Protected, persons
from reticent.certificates.page import words
from reticent.certificates.page.facts import unsupported
from reticent.kernel.mechanisms.units import Unit


def plain(text: str) -> str:
    """Text that Markdown, also with formulas and mentions, shows as it is written."""
    return re.sub(r"([\\`*_{}\[\]<>#|~!&$@])", r"\\\1", " ".join(text.split()))


def unit_in_words(records: Protected) -> str:
    """Whom the numbers protect."""
    if isinstance(records, Unit):
        return "one client, with all of its records"
    if records is None:
        return "one record"
    return f"one person, with up to {records} records" if records > 1 else "one person, who has one record"


def reserved(certificate: Certificate) -> Iterator[str]:
    """What a reader must know before any number."""
    if certificate.ledger is None:
        yield unsupported(certificate)
    if not certificate.signatures:
        yield "Nobody signed the certificate: its author may have declared anything."
    if persons(certificate.mechanism) is None:
        yield " ".join(map(str, STOP))
    yield from (f"Warning: {one.text}" for one in certificate.warnings)


_AVERAGES = {
    "recovered": "That is on average over what the records could hold. It is no limit for one particular record. "
    "One guess counts; more guesses need a baseline of their own."
}
"""What a measure is besides, where its number alone would say more."""


def asked(certificate: Certificate) -> Iterator[str]:
    """What is reached with the model and without, where somebody asked for it, and what that needs besides."""
    for name, table in further(certificate).items():
        for who, cells in table.rows:
            found = ", ".join(f"{heading} {cell}" for heading, cell in zip(table.columns, cells, strict=True))
            yield f"{table.title} {', '.join(map(str, who))}: {found}"
        if name in _AVERAGES:
            yield _AVERAGES[name]
        for status, lines in words.needed(certificate, name).items():
            yield from (f"This needs, {status}: {line}" for line, _ in lines)

"""``differences``: who learns more from which of two runs or certificates, and every fact and number that differs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from reticent.adversaries.report import AssessmentRecord, Number, Record
from reticent.certificates.check import read_document
from reticent.certificates.document.declared_text import inert
from reticent.certificates.document.rounding import leaves
from reticent.certificates.document.schema import Certificate, CertifiedAssessment
from reticent.certificates.page.facts import declarations, facts
from reticent.kernel.adversaries import Method
from reticent.kernel.adversaries.base import ALL
from reticent.kernel.errors import ArtifactError
from reticent.kernel.keywords import hinting
from reticent.kernel.pairs import Neighbouring
from reticent.kernel.proofs import Claim
from reticent.kernel.risk.questions import MEASURES
from reticent.kernel.text import digits, wrapped
from reticent.mechanisms.codec import mechanism_record
from reticent.verbs.grids import names_of
from reticent.verbs.names import ATTACKERS, Attackers, Who
from reticent.verbs.releases import WHAT, Release
from reticent.verbs.request import asked
from reticent.verbs.risks import Asking, Assess
from reticent.verbs.table import Cell, Table

_MISSING = "not there"
_LONGEST = 600
_OF_THE_FILE = {"digest", "diagnostics", "salt", "seeds"}
"""Parts of a ledger that differ between any two, or that nobody else should read."""


@dataclass(frozen=True)
class Side:
    """One of two.

    Attributes:
        facts: what is said of it but for the attackers, by name.
        records: the attackers.
    """

    facts: Mapping[str, str]
    records: Sequence[AssessmentRecord]

    def lines(self) -> dict[str, str]:
        """Everything that people read, by name."""
        found = dict(self.facts)
        for record in self.records:
            found.update(_of_attacker(record))
        return {name: inert(text, _LONGEST) for name, text in found.items()}


class Learnt(Record):
    """One number of one attacker on both sides.

    Attributes:
        more: from which side more is learnt, by the number that is claimed.
        apart: whether the enclosures say so, too: they do not meet.
    """

    attacker: str
    neighbouring: str
    claims: tuple[str, str]
    number: str
    a: Number
    b: Number
    more: Literal["a", "b", "same"]
    apart: bool


class Difference(Record):
    """What both sides say of one thing."""

    what: str
    a: str
    b: str


class Compared(Record):
    """What ``reticent compare A B --json`` prints."""

    schema_: str = Field(default="reticent.differences/1", alias="schema")
    a: str
    b: str
    summary: list[Learnt]
    differences: list[Difference]


class Summary(Table):
    """Advantage and epsilon of each attacker that both sides have.

    Attributes:
        names: of both.
        learnt: number by number.
    """

    _leading = 3

    def __init__(self, names: tuple[str, str], learnt: Sequence[Learnt]) -> None:
        self.names, self.learnt = names, tuple(learnt)

    def title(self) -> str:
        return "A is {}, B is {}".format(*self.names)

    def columns(self) -> tuple[str, ...]:
        return ("attacker", "neighbouring", "number", "A", "B", "B - A", "more from", "claim")

    def rows(self) -> list[tuple[Cell, ...]]:
        """One row for each number; the difference of two infinite ones is nothing that can be said."""
        found: list[tuple[Cell, ...]] = []
        for one in self.learnt:
            a, b = one.a.most, one.b.most
            difference = None if math.isinf(a) and math.isinf(b) else b - a
            more = "same" if one.more == "same" else one.more.upper() + " by its bound" * (not one.apart)
            claim = " / ".join(dict.fromkeys(one.claims))
            found.append((one.attacker, one.neighbouring, one.number, a, b, difference, more, claim))
        return found

    def ways(self, row: tuple[Cell, ...]) -> list[bool | None]:
        """Both numbers are rounded as their claims need it; a difference of bounds is no bound."""
        up = True if all(Claim(claim).proven for claim in str(row[-1]).split(" / ")) else None
        return [None, None, None, up, up, None, None, None]


class Differences(Table):
    """Two runs or certificates side by side: the summary, and whatever they do not say alike.

    Attributes:
        summary: who learns more from which.
    """

    def __init__(self, names: tuple[str, str], a: Side, b: Side) -> None:
        self.summary = Summary(names, [*_learnt(a.records, b.records)])
        one, other = a.lines(), b.lines()
        every = ((name, one.get(name, _MISSING), other.get(name, _MISSING)) for name in dict.fromkeys([*one, *other]))
        self._rows = [row for row in every if row[1] != row[2]]
        self._records = (*a.records, *b.records)

    def theorems(self) -> list[str]:
        return [key for one in self._records for key in one.theorems]

    @cached_property
    def document(self) -> Compared:
        """Both tables, every number with its enclosure."""
        a, b = self.summary.names
        rows = [Difference(what=what, a=one, b=other) for what, one, other in self._rows]
        return Compared(a=a, b=b, summary=list(self.summary.learnt), differences=rows)

    def title(self) -> str:
        return f"{len(self._rows) or 'no'} difference{'s' * (len(self._rows) != 1)}"

    def columns(self) -> tuple[str, ...]:
        return ("what", "A", "B")

    def rows(self) -> Sequence[tuple[str, str, str]]:
        """Facts first, then attacker by attacker."""
        return self._rows

    def __repr__(self) -> str:
        lines = [self.title(), *(f"{what}: {a} | {b}" for what, a, b in self._rows)]
        return "\n".join([repr(self.summary), *(part for line in lines for part in wrapped(line, indent=2))])

    def _repr_html_(self) -> str:
        return self.summary._repr_html_() + super()._repr_html_()


@dataclass(frozen=True, kw_only=True)
class Differ(Asking):
    """Who learns more from which of two releases, and what differs."""

    verb = "differences"
    a: Any = asked(WHAT, "A run, a ledger, a certificate, a mechanism or an event, or the path of one.")
    b: Any = asked(WHAT, "The other.")
    adversary: Attackers = asked(ATTACKERS, "Who attacks; default: all.", Attackers.of(ALL))

    def answer(self, progress: Callable[[str], None] | None = None) -> Differences:
        """Two certificates as they are stated, if nothing else is asked; of all others the numbers are computed.

        Raises:
            ArtifactError, ParameterError, UnsupportedError: as for ``assess``.
        """
        first, second = names_of([self.a, self.b])
        asked = [one for one in fields(type(self)) if one.name not in ("a", "b")]
        as_stated = all(getattr(self, one.name) == one.default for one in asked)
        stated = [one for one in map(_certificate_of, (self.a, self.b)) if one is not None] if as_stated else []
        certificates = len(stated) == 2
        sides = map(certified, stated) if certificates else [self._answered(one) for one in (self.a, self.b)]
        return Differences((first, second), *sides)

    def _answered(self, what: Any) -> Side:
        found = Assess.about(Release.of(what), self).answer()
        ledger = found.request.release.ledger
        known = _plain(mechanism_record(found.mechanism)) | _left_out(found.document.skipped)
        if isinstance(ledger, BaseModel):
            known |= _plain(ledger.model_dump(mode="json"), "ledger")
        return Side(known, found.document.assessments)


@hinting
def differences(
    a: Any,
    b: Any,
    adversary: Who | Sequence[Who] | None = None,
    *,
    neighbouring: Neighbouring | str | None = None,
    method: Method | str | None = None,
    delta: float | Sequence[float] | None = None,
) -> Differences:
    """Who learns more from which of two releases, and every fact, number and condition that differs.

    Args:
        a, b: whatever ``assess`` takes, certificates and their pages included. Two certificates are compared as they
            are stated, if nothing is asked: nobody verifies them here. Of all others the numbers are computed.
        adversary: as for ``assess``; None means everybody who can be answered.
        neighbouring, method: as for ``assess``.
        delta: deltas, in (0, 1], at which epsilon is compared; None means 1e-5.

    Raises:
        ArtifactError, ParameterError, UnsupportedError: as for ``assess``.

    Example:
        >>> import reticent as rt
        >>> found = rt.differences(rt.Gaussian(2.0), rt.Gaussian(4.0), "worst-case")
        >>> [row[-2] for row in found.summary.rows()]
        ['A', 'A']
    """
    return Differ.of(a=a, b=b, adversary=adversary, neighbouring=neighbouring, method=method, delta=delta).answer()


def certified(certificate: Certificate) -> Side:
    """What a certificate states."""
    said = [(name.capitalize(), text or "not said") for name, text in declarations(certificate)]
    found = {"created": certificate.declared.created, **dict(said)}
    found.update({f"{before}{label}": str(value) for before, (label, value) in facts(certificate)})
    found["written by reticent"], found["headline"] = certificate.reticent_version, certificate.headline
    found.update(_left_out(certificate.skipped))
    verdicts = {True: "passed", False: "failed"}
    found.update({f"policy: {one.name}": verdicts[one.passed] for one in certificate.requirements})
    found["warnings"] = ", ".join(one.name for one in certificate.warnings) or "none"
    return Side(found, certificate.assessments)


def _certificate_of(what: Any) -> Certificate | None:
    """The certificate that ``what`` is, holds, or names by its path; None where it is something else."""
    found = getattr(what, "certificate", what)
    if isinstance(found, Certificate) or not isinstance(what, (str, Path)):
        return found if isinstance(found, Certificate) else None
    try:
        return read_document(Path(what))[0]
    except ArtifactError:
        return None


def _left_out(skipped: Mapping[str, Any]) -> dict[str, str]:
    return {f"left out: {name}": str(reason) for name, reason in skipped.items()}


def _plain(document: Any, *before: str) -> dict[str, str]:
    """Each leaf of JSON data by its path, but for what tells nobody anything."""
    found = {path: value for path, value in leaves(document).items() if not _OF_THE_FILE & set(path)}
    return {".".join((*before, *path)): "not stated" if x is None else str(x) for path, x in found.items()}


def _of_attacker(record: AssessmentRecord) -> Iterator[tuple[str, str]]:
    who = f"{record.label}, {record.neighbouring}"
    yield f"{who}: claim", record.claim
    if isinstance(record, CertifiedAssessment):
        yield f"{who}: sentence", str(record.sentence)
    for name, one in MEASURES.items():
        for at in one.stated(record):
            value = one.of(record, *at).value
            up = (name != "bayes_security") if Claim(record.claim).proven else None
            yield f"{who}: {one.at(*at)}", "infinite" if value is None else digits(value, up=up)
    for needed in record.conditions:
        yield f"{who}: {needed.key}", needed.status.value


def _learnt(a: Sequence[AssessmentRecord], b: Sequence[AssessmentRecord]) -> Iterator[Learnt]:
    others = {(one.label, one.neighbouring): one for one in b}
    pairs = [(one, others[key]) for one in a if (key := (one.label, one.neighbouring)) in others]
    for one, other in pairs:
        for measure in (MEASURES["advantage"], MEASURES["epsilon"]):
            for at in (at for at in measure.stated(one) if at in measure.stated(other)):
                first, second = measure.of(one, *at), measure.of(other, *at)
                x, y = first.most, second.most
                yield Learnt(
                    attacker=one.label,
                    neighbouring=one.neighbouring,
                    claims=(one.claim, other.claim),
                    number=measure.at(*at),
                    a=first,
                    b=second,
                    more="same" if x == y else "a" if x > y else "b",
                    apart=_above(first, second) or _above(second, first),
                )


def _above(one: Number, other: Number) -> bool:
    """Whether all of an enclosure lies above another."""
    return one.lower is not None and other.upper is not None and one.lower > other.upper

"""What ``reticent gate`` says: plain text, Markdown, JSON, and JUnit XML for build servers."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pydantic import Field

from reticent.adversaries.report import Record
from reticent.certificates.document.declared_text import LONGEST, inert
from reticent.certificates.document.requirements import Check
from reticent.certificates.document.schema import Certificate
from reticent.kernel.text import printable

_SPECIAL = str.maketrans(
    {character: f"\\{character}" for character in "\\`*_{}[]()#!|~"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
)
_LINKS = re.compile(
    r"[@#]|:(?=//|\w+:)|www(?=\.)|\b[A-Z]\w*-(?=\d)|[!$&~%](?=\d)|\b[0-9a-f]{6}(?=[0-9a-f]{1,34}\b)", re.IGNORECASE
)
"""What a place that shows Markdown makes links of with what follows: addresses, people, issues and commits."""
_APART = str.maketrans({"\x00": "&#8203;"})
"""A blank without width keeps both apart."""

MARKDOWN_MARK = "## Privacy gate:"
_SUITE = "privacy gate: "
JUNIT_MARK = f'<testsuite name="{_SUITE}'
"""How our own reports begin: only a file that does may be replaced by a new one."""


class Requirement(Record):
    """One requirement of a policy."""

    name: str
    passed: bool
    detail: str


class GateReport(Record):
    """What ``reticent gate --json`` prints of one certificate; of several, each has its ``file``."""

    schema_: str = Field(default="reticent.gate/1", alias="schema")
    file: str = Field(default="", exclude_if=lambda name: not name)
    passed: bool
    subject: str | None
    headline: str | None
    requirements: list[Requirement]
    reservations: list[str]


class GateReports(Record):
    """What ``reticent gate --json`` prints of several certificates; ``unread`` could not be looked at."""

    schema_: str = Field(default="reticent.gates/1", alias="schema")
    passed: bool
    certificates: list[GateReport]
    unread: list[str]


def plain(certificate: Certificate | None, checks: Sequence[Check], reservations: Sequence[str] = ()) -> list[str]:
    """The verdict, the headline, a line for each requirement and reservation; text of the issuer is inert.

    Here and below ``certificate`` is None where it cannot be read or derived.
    """
    return [
        f"Privacy gate: {_verdict(checks)}",
        *_about(certificate, printable, inert),
        *(f"{'pass  ' if c.passed else 'BREACH'}  {inert(c.name)}: {inert(c.detail)}" for c in checks),
        *(f"! {inert(line)}" for line in reservations),
    ]


def markdown(certificate: Certificate | None, checks: Sequence[Check], reservations: Sequence[str] = ()) -> str:
    """A heading, the headline, a table and reservations; foreign text cannot break out of its cell."""
    lines = [
        f"{MARKDOWN_MARK} {_verdict(checks)}",
        "",
        *(part for line in _about(certificate, lambda text: _cell(text, 2000), _cell) for part in (line, "")),
        "| | requirement | found |",
        "|---|---|---|",
        *(f"| {'pass' if c.passed else '**BREACH**'} | {_cell(c.name)} | {_cell(c.detail)} |" for c in checks),
        *([""] if reservations else []),
        *(f"- {_cell(line)}" for line in reservations),
    ]
    return "\n".join(lines) + "\n"


def document(certificate: Certificate | None, checks: Sequence[Check], reservations: Sequence[str] = ()) -> GateReport:
    """Whether it passed, each requirement, and what a reader must know besides."""
    return GateReport(
        passed=all(check.passed for check in checks),
        subject=None if certificate is None else certificate.declared.subject,
        headline=None if certificate is None else str(certificate.headline),
        requirements=[Requirement(name=str(c.name), passed=c.passed, detail=str(c.detail)) for c in checks],
        reservations=list(reservations),
    )


def junit(certificate: Certificate | None, checks: Sequence[Check], reservations: Sequence[str] = ()) -> str:
    """One test case for each requirement; a breach is a failure, and reservations are its output."""
    return _xml(_suite(certificate, checks, reservations))


def _suite(
    certificate: Certificate | None, checks: Sequence[Check], reservations: Sequence[str], file: str = ""
) -> ElementTree.Element:
    breaches = sum(not check.passed for check in checks)
    about = "a document that cannot be checked"
    if certificate is not None:
        about = f'{"declared to be " * certificate.subject_given}of "{inert(certificate.declared.subject)}"'
    suite = ElementTree.Element(
        "testsuite",
        name=f"{_SUITE}{about}",
        tests=str(len(checks)),
        failures=str(breaches),
        errors="0",
        skipped="0",
    )
    if file:
        suite.set("file", file)
    for check in checks:
        case = ElementTree.SubElement(suite, "testcase", classname="reticent.gate", name=inert(check.name))
        if not check.passed:
            ElementTree.SubElement(case, "failure", message=inert(check.detail)).text = inert(check.detail)
    if reservations:
        ElementTree.SubElement(suite, "system-out").text = "\n".join(inert(line) for line in reservations)
    return suite


def _xml(root: ElementTree.Element) -> str:
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


@dataclass(frozen=True)
class Judged:
    """One of many certificates.

    Attributes:
        name: of its file.
        certificate: None where it cannot be read or derived.
        checks: each requirement.
        reservations: what a reader must know besides.
        read: whether there was a file that could be looked at.
    """

    name: str
    certificate: Certificate | None
    checks: Sequence[Check]
    reservations: Sequence[str] = ()
    read: bool = True

    @property
    def exit_code(self) -> int:
        """0 where it passes, 1 where it breaches, 2 where nothing could be looked at."""
        return 2 if not self.read else 0 if all(check.passed for check in self.checks) else 1


@dataclass(frozen=True)
class Reports:
    """What is said of certificates, in each form."""

    plain: list[str]
    markdown: str
    document: GateReport | GateReports
    junit: str


def of_one(judged: Judged) -> Reports:
    """Every requirement of one certificate."""
    each = judged.certificate, judged.checks, judged.reservations
    return Reports(plain(*each), markdown(*each), document(*each), junit(*each))


def of_many(judged: Sequence[Judged]) -> Reports:
    """A line for each and its breaches, each reservation once, and how many passed; the other forms have everything."""
    lines, texts, suites = [], [], ElementTree.Element("testsuites")
    for one in judged:
        each = one.certificate, one.checks, one.reservations
        lines.append(f"{inert(one.name)}: {_verdict(one.checks) if one.read else 'cannot be read'}")
        lines += [f"BREACH  {inert(c.name)}: {inert(c.detail)}" for c in one.checks if not c.passed]
        texts.append(markdown(*each).replace("\n", f"\n\n{_cell(one.name)}\n", 1))
        suites.append(_suite(*each, file=inert(one.name)))
    passed = sum(one.exit_code == 0 for one in judged)
    lines += dict.fromkeys(f"! {inert(line)}" for one in judged for line in one.reservations)
    each_document = [
        document(one.certificate, one.checks, one.reservations).model_copy(update={"file": one.name}) for one in judged
    ]
    unread = [one.name for one in judged if not one.read]
    found = GateReports(passed=passed == len(judged), certificates=each_document, unread=unread)
    return Reports([*lines, f"{passed} of {len(judged)} passed"], "\n".join(texts), found, _xml(suites))


def _about(certificate: Certificate | None, safe: Callable[[str], str], foreign: Callable[[str], str]) -> Iterator[str]:
    """What the certificate says first, and what it is of."""
    if certificate is not None:
        yield safe(certificate.headline)
        whose = "The issuer declares the subject" if certificate.subject_given else "The subject is"
        yield f'{whose} "{foreign(certificate.declared.subject)}".'


def _verdict(checks: Sequence[Check]) -> str:
    breaches = sum(not check.passed for check in checks)
    return "passed" if breaches == 0 else f"{breaches} of {len(checks)} requirements breached"


def _cell(text: object, longest: int = LONGEST) -> str:
    return _LINKS.sub("\\g<0>\x00", inert(text, longest)).translate(_SPECIAL | _APART)

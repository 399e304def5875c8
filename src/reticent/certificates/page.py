"""The certificate as one HTML file: no script, no external request, everything escaped, the document inside.

The page is a pure function of the document that it embeds, so ``verify`` renders it again and compares.
"""

from __future__ import annotations

import hashlib
import html
import json
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from reticent.adversaries import ADVERSARIES, WorstCase
from reticent.certificates import answers, drawing, facts, words
from reticent.certificates.numbers import relation_suffix, secrets, tables
from reticent.certificates.schema import Certificate, Edition
from reticent.certificates.sentences import about, percent, persons, resting, wanted
from reticent.certificates.sentences import answers as answered
from reticent.certificates.signature import false_signatures
from reticent.errors import ArtifactError
from reticent.io.strict import loads
from reticent.text import printable

_OPEN, _CLOSE = '<template id="certificate">', "</template>"
FILE_NAMES = {Edition.COMPLETE: "certificate.json", Edition.PUBLIC: "certificate.public.json"}


def render_html(certificate: Certificate) -> str:
    """The page of exactly this document; give ``public(certificate)`` for a page to hand on.

    All text in the document is escaped and safe to show.
    """
    records = persons(certificate.mechanism)
    worst = [record for record in certificate.assessments if record.adversary == WorstCase.name]
    usual = certificate.assessments[0].neighbouring
    names = [record.label + relation_suffix(record, usual) for record in certificate.assessments]
    return template("certificate.html.j2").render(
        c=certificate,
        private=bool(certificate.do_not_publish),
        answers=answered(worst, records),
        resting=resting(worst, records),
        groups=answers.groups(certificate),
        columns=answers.columns(certificate),
        place=answers.place,
        left_out=[
            (n, kind.title, certificate.skipped[n]) for n, kind in ADVERSARIES.items() if n in certificate.skipped
        ],
        words=words,
        persons=records,
        about=lambda text: about(text, records),
        wanted=lambda record: wanted(record, records),
        not_covered=words.not_covered(certificate),
        people=words.people(certificate),
        conditions=words.conditions(certificate),
        drawn=any(one.key == "hidden-draws" for one in certificate.assessments[0].conditions),
        lines=drawing.lines(certificate.assessments, names),
        curves=drawing,
        tables=tables(certificate),
        secrets=secrets(certificate),
        of_secrets=words.of_secrets(certificate),
        notes=[(words.of_clients(certificate, note), who) for note, who in _notes(certificate)],
        declarations=facts.declarations(certificate),
        facts=facts.facts(certificate),
        commitment=facts.commitment(certificate),
        accuracy=facts.accuracy(certificate) is not None,
        signers=[] if false_signatures(certificate) else [one.keyid for one in certificate.signatures],
        theorems=[(key, certificate.theorems[key]) for key in sorted(certificate.theorems)],
        file_name=FILE_NAMES[certificate.edition],
        file_hash=hashlib.sha256(certificate.to_json().encode()).hexdigest(),
        data=Markup(_OPEN + html.escape(_compact(certificate)) + _CLOSE),  # noqa: S704
    )


@cache
def template(name: str) -> Template:
    """A page of this package; whatever it is given is made inert and escaped."""
    environment = Environment(
        loader=PackageLoader("reticent.certificates", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_inert,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["percent"] = percent
    return environment.get_template(name)


def is_page(text: str) -> bool:
    """Whether a file is a page and not a JSON document."""
    return text.lstrip()[:1] == "<"


def embedded(text: str, where: str) -> Certificate:
    """The document that a page holds as data.

    Raises:
        ArtifactError: there is none, or more than one.
    """
    parts = text.split(_OPEN)
    if len(parts) != 2 or _CLOSE not in parts[1]:
        raise ArtifactError(f"{where}: not a certificate page: it embeds no document, or several")
    return Certificate.parse(loads(html.unescape(parts[1].split(_CLOSE)[0]), where), where)


def first_difference(page: str, certificate: Certificate) -> str | None:
    """Where a page differs from what its document renders to, in one line, or None where it does not."""
    again = render_html(certificate)
    if page == again:
        return None
    at = next((i for i, (a, b) in enumerate(zip(page, again, strict=False)) if a != b), min(len(page), len(again)))
    shown = [printable(text[max(0, at - 20) : at + 30]) for text in (page, again)]
    return f"line {page.count(chr(10), 0, at) + 1}: the page shows {shown[0]!r}, the document renders to {shown[1]!r}"


def _compact(certificate: Certificate) -> str:
    """The document as JSON with sorted keys and no spaces."""
    document = certificate.model_dump(mode="json", by_alias=True)
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _inert(value: Any) -> Any:
    """Foreign text is made inert before it is escaped; markup of our own passes."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _notes(certificate: Certificate) -> list[tuple[str, str]]:
    """Each note once, with the attackers that it is about."""
    found: dict[str, list[str]] = {}
    for record in certificate.assessments:
        for note in record.notes:
            names = found.setdefault(note, [])
            if record.adversary not in names:
                names.append(record.adversary)
    everybody = {record.adversary for record in certificate.assessments}
    return [(note, "all attackers" if set(names) == everybody else ", ".join(names)) for note, names in found.items()]

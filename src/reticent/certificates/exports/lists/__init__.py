"""Lists that officers fill, from the lines of a certificate alone.

A list is one file of this folder: places of a text, what is quoted from there, which of ``ANSWERS`` the certificate
gives, and what it leaves to the issuer. A place where it says nothing has an empty cell.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from reticent.certificates.document.schema import Certificate
from reticent.certificates.exports.lists.answers import ANSWERS
from reticent.certificates.exports.wording import plain, reserved
from reticent.certificates.page.page import template

NOTHING = "The certificate says nothing here."
ADVICE = (
    "Filled from a certificate. This is no legal advice, and no certification under Article 42 of the GDPR. What "
    "stands under Certificate is taken from its document, with who vouches for it; what stands under Issuer is still "
    "to be answered."
)
SIGNED = ("Answered by", "Function", "Date", "Signature")
"""What stands empty at the end."""


@dataclass(frozen=True, slots=True)
class Row:
    """One place of a list.

    Attributes:
        where: number or heading of the place.
        says: what is quoted from there; empty where nothing is.
        found: lines of the certificate.
        yours: what the issuer has to answer; empty where nothing is left.
    """

    where: str
    says: str
    found: tuple[str, ...]
    yours: str


@dataclass(frozen=True, slots=True)
class Filled:
    """A list with the answers of one certificate.

    Attributes:
        title: of the list.
        about: which edition of which text is quoted.
        source: where the text is.
        rows: in the order of the text.
    """

    title: str
    about: str
    source: str
    rows: tuple[Row, ...]


@cache
def lists() -> tuple[str, ...]:
    """The names of all lists."""
    folder = files(__name__)
    return tuple(sorted(one.name.removesuffix(".toml") for one in folder.iterdir() if one.name.endswith(".toml")))


def filled(certificate: Certificate, name: str) -> Filled:
    """The list of this name, with what the certificate says."""
    stated = tomllib.loads(files(__name__).joinpath(f"{name}.toml").read_text("utf-8"))

    def rows() -> Iterator[Row]:
        for one in stated["row"]:
            lines = (line for answer in one.get("answers", ()) for line in ANSWERS[answer](certificate))
            yield Row(one["where"], one.get("says", ""), tuple(lines), one.get("yours", ""))

    return Filled(stated["title"], stated["about"], stated["source"], tuple(rows()))


def markdown(certificate: Certificate, name: str) -> str:
    """The list as Markdown: a section for each place."""
    found = filled(certificate, name)

    def lines() -> Iterator[str]:
        yield from (f"# {plain(found.title)}", plain(found.about), f"<{found.source}>", ADVICE)
        yield f"Certificate of: {plain(certificate.declared.subject)}"
        yield "\n".join(f"- {plain(line)}" for line in reserved(certificate))
        for row in found.rows:
            yield f"## {plain(row.where)}"
            if row.says:
                yield f"> {plain(row.says)}"
            yield "**Certificate**"
            yield "\n".join(f"- {plain(line)}" for line in row.found or (NOTHING,))
            if row.yours:
                yield f"**Issuer**: {plain(row.yours)}"
                yield "…"
        yield "\n".join(f"- {one}: …" for one in SIGNED)

    return "\n\n".join(lines()) + "\n"


def page(certificate: Certificate, name: str) -> str:
    """The list as one HTML file, without a script: a table with an empty cell wherever the issuer has to answer."""
    found = filled(certificate, name)
    said = {"list": found, "c": certificate, "nothing": NOTHING, "advice": ADVICE, "signed": SIGNED}
    return template("list.html.j2").render(**said, reserved=reserved(certificate))

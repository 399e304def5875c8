"""The certificate as one HTML file: no script, no external request, everything escaped, the document inside.

The page is a pure function of the document that it embeds, so ``verify`` renders it again and compares.
"""

from __future__ import annotations

import hashlib
import html
import re
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template, TemplateError
from markupsafe import Markup, escape

from reticent.certificates.document import numbers
from reticent.certificates.document.numbers import named
from reticent.certificates.document.schema import Certificate, Edition
from reticent.certificates.document.sentences import (
    CERTAIN,
    EVEN,
    STOP,
    asked_about,
    even_guess,
    known,
    limited,
    percent,
    persons,
    resting,
    wanted,
    whom,
)
from reticent.certificates.document.sentences import answers as answered
from reticent.certificates.document.signature import false_signatures
from reticent.certificates.page import answers, drawing, facts, verdicts, words
from reticent.certificates.page.language import ENGLISH, Speaker, language_of
from reticent.io.strict import loads
from reticent.kernel.adversaries import WorstCase
from reticent.kernel.errors import ArtifactError
from reticent.kernel.mechanisms.units import Unit
from reticent.kernel.messages import Figure, Message
from reticent.kernel.text import owners, printable
from reticent.languages import Language, languages

_OPEN, _CLOSE = '<template id="certificate">', "</template>"
FILE_NAMES = {Edition.COMPLETE: "certificate.json", Edition.PUBLIC: "certificate.public.json"}


_OWN = re.compile(
    r"(?<=<!--signed-->).*?(?=<!--/signed-->)|(?<=<code>)[0-9a-f]{64}(?=</code></p></section>)"
    r"|(?<=\(SHA-256 )[0-9a-f]{16}(?=…\))",
    re.DOTALL,
)
"""What a page says of itself: who signed it, and the digest of its file, whole or the beginning."""
_FOOT = 60
"""Characters of the subject at the foot of a sheet."""
_LANGUAGE = re.compile(r'\s*<!doctype html>\s*<html lang="([a-z-]{2,12})">')


def render_html(certificate: Certificate, language: Language | None = None) -> str:
    """The page of exactly this document; give ``public(certificate)`` for a page to hand on.

    All text in the document is escaped and safe to show.

    Args:
        language: of the page, English by default; what the issuer wrote is never translated.
    """
    return _rendered(certificate, _content(certificate), language or language_of(ENGLISH))


def paged(certificate: Certificate) -> Certificate:
    """The document with digests of its pages, sealed anew: a browser that cannot render a page can compare it so."""
    return certificate.model_copy(update={"pages": page_digests(certificate)}).sealed()


def page_digests(certificate: Certificate) -> dict[str, str]:
    """By language, the digest of the page of exactly this document."""
    content = _content(certificate)
    return {code: page_digest(_rendered(certificate, content, language_of(code))) for code in sorted(languages())}


def _rendered(certificate: Certificate, content: dict[str, Any], language: Language) -> str:
    return template("certificate.html.j2").render(**content, **_spoken(certificate, language))


def page_digest(page: str) -> str:
    """SHA-256 of a page without what depends on its own digest: the data, the digests of its file, and who signed."""
    before, _, rest = page.partition(_OPEN)
    return hashlib.sha256(_OWN.sub("", before + rest.partition(_CLOSE)[2]).encode()).hexdigest()


def said_of_signers(language: Language, count: int, short: Markup, whole: Markup) -> list[Markup]:
    """What a page says of its signatures, in three places.

    Args:
        count: of signatures.
        short, whole: the ids of the keys, cut and in full.
    """
    keys = {"short_keys": short, "long_keys": whole}
    said = template("signed.html.j2").render(count=count, **keys, _=Speaker(language).text, code=_code)
    return [Markup(line) for line in said.splitlines()]  # noqa: S704


def _content(certificate: Certificate) -> dict[str, Any]:
    """What the page shows; its template asks the rooms of words for the rest."""
    records, text = persons(certificate.mechanism), certificate.to_json()
    worst = [record for record in certificate.assessments if record.adversary == WorstCase.name]
    usual = certificate.assessments[0].neighbouring
    names = [named(record, usual) for record in certificate.assessments]
    recorded = certificate.ledger is not None
    return {
        "c": certificate,
        "answers": [
            (percent(even_guess(one), up=True), asked_about(one.neighbouring, records), says)
            for one, says in zip(worst, answered(worst, records), strict=True)
        ],
        "no_limit": answers.NO_LIMIT,
        "resting": resting(worst, records),
        "limited": limited(worst),
        "first_limited": limited(worst[:1]),
        "table": answers,
        "verdicts": verdicts,
        "replaced": next(
            (percent(even_guess(one), up=True) for one in worst if one.neighbouring == "replace"), CERTAIN
        ),
        "certain": CERTAIN,
        "quoted": certificate.subject_given or any(said for name, said in facts.declarations(certificate)[1:]),
        "half": EVEN,
        "figure": Figure,
        "everything": Message("knows.all").about(whom(records)),
        "words": words,
        "persons": records,
        "whom": whom(records),
        "unit": "client" if isinstance(records, Unit) else "person",
        "done": "run" if recorded or certificate.declared.releases else "planned",
        "band": _band(certificate),
        "decision": _decision(certificate),
        "stop": STOP,
        "lines": drawing.lines(certificate.assessments, names),
        "curves": drawing,
        "numbers": numbers,
        "notes": [(words.of_clients(certificate, note), who) for note, who in _notes(certificate)],
        "facts": facts,
        "file_name": FILE_NAMES[certificate.edition],
        "file_hash": hashlib.sha256(text.encode()).hexdigest(),
        "data": Markup(_OPEN + html.escape(text) + _CLOSE),  # noqa: S704
    }


def _band(certificate: Certificate) -> list[Message]:
    """What stands across the top of a page that shows no ledger."""
    cited = certificate.declared.releases
    if certificate.ledger is not None:
        return []
    if not cited:
        return [Message("page.band.plan")]
    return [Message("page.band.several" if None in cited else "page.band.recorded"), Message("page.band.ask")]


def _decision(certificate: Certificate) -> Message | None:
    """What the policy of the issuer says."""
    policy = certificate.policy
    if policy is None:
        return None
    if not all(one.passed for one in certificate.requirements):
        return Message("page.acceptable.no")
    remains = policy.signature or policy.weights or policy.weights_sha256 or policy.max_age_days
    return Message("page.acceptable.if" if remains else "page.acceptable.yes")


def _spoken(certificate: Certificate, language: Language) -> dict[str, Any]:
    """How the page speaks: ``_`` says the message with a key, ``say`` one that was made elsewhere."""
    speaker, signers, declared = Speaker(language), _signers(certificate), certificate.declared
    short, whole = (Markup(", ").join(_code(one) for one in ids) for ids in ([f"{s[:16]}…" for s in signers], signers))
    said = said_of_signers(language, len(signers), short, whole)
    moments = {"date": declared.created, "expires": declared.expires}
    dates = {name: speaker.date(moment) for name, moment in moments.items() if moment is not None}
    return {
        "language": language.code,
        "_": speaker.text,
        "say": speaker.say,
        "strong": lambda share: Markup("<strong>{}</strong>").format(speaker.say(share)),
        "code": _code,
        "known": known,
        "wanted": wanted,
        "dated": speaker.text("dated.expires" if declared.expires else "dated", **dates),
        "footer": _footer(certificate, speaker),
        "version": escape(printable(certificate.reticent_version)),
        "signed": [Markup(f"<!--signed-->{line}<!--/signed-->") for line in said],  # noqa: S704
    }


def _footer(certificate: Certificate, speaker: Speaker) -> Markup:
    """A rule of CSS that writes the subject and the fingerprint at the foot of each printed sheet."""
    named = certificate.declared.weights_sha256
    model = html.unescape(speaker.text("page.fingerprint"))
    model += f" {named[:16]}…" if named else f": {html.unescape(speaker.text('page.not-stated'))}"
    text = f"{printable(certificate.declared.subject, _FOOT)} · {model}"
    return Markup(f'@page {{ @bottom-left {{ content: "{_css(text)}"; }} }}')  # noqa: S704


def _css(text: str) -> str:
    """A text inside the quotes of CSS: letters and digits, and the number of each other character."""
    return "".join(one if one.isascii() and one.isalnum() else f"\\{ord(one):06x}" for one in text)


def _signers(certificate: Certificate) -> list[str]:
    """Ids of the keys that signed; none where a signature is false."""
    return [] if false_signatures(certificate) else [one.keyid for one in certificate.signatures]


def _code(text: str) -> Markup:
    return Markup("<code>{}</code>").format(printable(text))


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


def document_in(text: str, where: str) -> Certificate:
    """The document in the text of a page, or of a JSON file.

    Raises:
        ArtifactError: there is none.
    """
    return embedded(text, where) if is_page(text) else Certificate.parse(loads(text, where), where)


def page_language(page: str) -> str:
    """The code of the language that a page says it is in; English where it says none."""
    found = _LANGUAGE.match(page)
    return found[1] if found else ENGLISH


def first_difference(page: str, certificate: Certificate) -> str | None:
    """Where a page differs from what its document renders to in its language, in one line, or None where nowhere."""
    code = page_language(page)
    if code not in languages():
        return f"line 2: the page is in the language {code!r}, of which this version has no catalogue"
    try:
        again = render_html(certificate, language_of(code))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, TemplateError) as error:
        return f"the document has no page ({printable(error, 200)})"  # a forger wrote it: verify says what is wrong
    if page == again:
        return None
    at = next((i for i, (a, b) in enumerate(zip(page, again, strict=False)) if a != b), min(len(page), len(again)))
    shown = [printable(text[max(0, at - 20) : at + 30]) for text in (page, again)]
    return f"line {page.count(chr(10), 0, at) + 1}: the page shows {shown[0]!r}, the document renders to {shown[1]!r}"


def _inert(value: Any) -> Any:
    """Foreign text is made inert before it is escaped; markup of our own passes."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _notes(certificate: Certificate) -> list[tuple[Message, tuple[Message, ...]]]:
    """Each note once, with the attackers that it is about."""
    whose = owners((record.adversary, record.notes) for record in certificate.assessments)
    kinds = {name: (Message(f"name.{name}", more=""),) for names in whose.values() for name in names}
    everybody = (Message("all-attackers"),)
    return [(note, tuple(one for name in names for one in kinds[name]) or everybody) for note, names in whose.items()]

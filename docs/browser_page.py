"""What the page that checks certificates in a browser compares: sentences in each language, and styles.

``docs/pages.py`` writes both into ``templates/verify.html``.
"""

from __future__ import annotations

import hashlib
import json
import re
from importlib.resources import files

from reticent import __version__
from reticent.certificates.answers import NO_LIMIT
from reticent.certificates.catalogue import PLACEHOLDER, languages
from reticent.certificates.language import ENGLISH, English, language_of
from reticent.certificates.sentences import RESTING, Protected, about, asked_about
from reticent.mechanisms import Neighbouring
from reticent.mechanisms.units import Unit

PEOPLE: tuple[Protected, ...] = (None, 1, 2)
"""Who may be protected: one record, or one or several records of a person."""

ANSWERS = (
    "Asked {question}, an attacker is right at most {share} of the time, if both answers are equally likely "
    "beforehand. Without the model: {blind}.",
    "An attacker can become all but certain {question}. This release hides next to nothing.",
    "Nothing is proven that keeps an attacker from being all but certain {question}.",
    *RESTING.values(),
)
"""What stands at the top of a page."""
STRENGTHS = ("at most {share}", "about {share}", "measured {share}")

_LISTED = re.compile(r"^const LANGUAGES = .*;$", re.MULTILINE)
_STYLES = re.compile(r"^const STYLES = (.*);$", re.MULTILINE)


def filled(page: str, style: str) -> str:
    """The page with what it compares in each language, from the catalogues, and with the style of certificates.

    Args:
        page: as it was; styles of other versions stay.
        style: digest of that of this version.
    """
    known = {code: _compared(language_of(code)) for code in languages() if code != ENGLISH.code}
    line = f"const LANGUAGES = {json.dumps(known, ensure_ascii=False)};"
    page = _LISTED.sub(lambda found: line, page)
    return _STYLES.sub(lambda found: f"const STYLES = {json.dumps(json.loads(found[1]) | {__version__: style})};", page)


def style_of_certificates() -> str:
    """Digest of the style of a page without its last rule, the foot of a sheet, as ``verify.html`` reads it."""
    text = (files("reticent.certificates") / "templates" / "certificate.css").read_text()
    return hashlib.sha256(text.strip().encode()).hexdigest()


def questions() -> list[str]:
    """What the worst case is asked, in the words of a headline."""
    return [asked_about(one, people) for one in (Neighbouring.ADD_REMOVE, Neighbouring.REPLACE) for people in PEOPLE]


def _compared(language: English) -> list[tuple[str, str]]:
    """The sentences at the top, and the strength of a number, in English and in the language."""
    every = dict.fromkeys(asked for question in questions() for asked in (question, about(question, Unit.CLIENT)))
    found = [(strength, language.text(strength, share="{share}")) for strength in (STRENGTHS[0], NO_LIMIT)]
    for answer in ANSWERS:
        kept = {name: f"{{{name}}}" for name in PLACEHOLDER.findall(answer)}
        if "question" not in kept:
            both = dict.fromkeys((answer, about(answer, Unit.CLIENT)))
            found += [(text, language.said(text)) for text in both]
            continue
        for question in every:
            english = answer.replace("{question}", question)
            found.append((english, language.text(answer, **{**kept, "question": question})))
    return found

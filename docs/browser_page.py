"""What the page that checks certificates in a browser says of a document and compares, in each language.

``docs/pages.py`` writes it into ``templates/verify.html``: the words of a headline, and what a page says of its
signatures. All else of a page is compared by digest. It writes the style sheet of certificates there too, so that
both pages look alike.
"""

from __future__ import annotations

import json
import re
from importlib.resources import files

from markupsafe import Markup

from reticent.certificates.page.language import language_of
from reticent.certificates.page.page import said_of_signers
from reticent.languages import PLACE, languages

_LISTED = re.compile(r"^const (SIGNED|WORDS) = .*;$", re.MULTILINE)
_STYLED = re.compile(
    r"(/\* certificate\.css, written here by docs/pages\.py \*/\n).*?(?=/\* and what this page has besides \*/)",
    re.DOTALL,
)
_SAID = ("headline", "answer.", "asked.", "resting.", "number.")
"""Keys of what a headline is made of begin so."""


def filled(page: str) -> str:
    """The page in the style of certificates, with what is said of signatures and the words of headlines."""
    keys = Markup("{short}"), Markup("{long}")
    signed = {code: [said_of_signers(language_of(code), count, *keys) for count in range(3)] for code in languages()}
    known = {"SIGNED": signed, "WORDS": {code: _words(code) for code in languages()}}
    style = (files("reticent.certificates") / "templates" / "certificate.css").read_text(encoding="utf-8")
    page = _STYLED.sub(lambda found: found[1] + style, page)
    return _LISTED.sub(lambda found: f"const {found[1]} = {json.dumps(known[found[1]], ensure_ascii=False)};", page)


def _words(code: str) -> dict[str, dict[str, str]]:
    language = language_of(code)
    words = {key: forms[0] for key, forms in language.words.items() if key.startswith(_SAID)}
    places = {place for text in words.values() for place in PLACE.findall(text)}
    return {
        "words": words,
        "forms": {f"{whom} {word}": said for (whom, word), said in language.forms.items() if word in places},
    }

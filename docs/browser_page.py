"""What the page that checks certificates in a browser compares: what a page says of its signatures, in each language.

``docs/pages.py`` writes it into ``templates/verify.html``; all else is compared by digest.
"""

from __future__ import annotations

import json
import re

from markupsafe import Markup

from reticent.certificates.catalogue import languages
from reticent.certificates.language import language_of
from reticent.certificates.page import said_of_signers

_LISTED = re.compile(r"^const SIGNED = .*;$", re.MULTILINE)


def filled(page: str) -> str:
    """The page with what is said of no signature, one, and several."""
    keys = Markup("{short}"), Markup("{long}")
    known = {code: [said_of_signers(language_of(code), count, *keys) for count in range(3)] for code in languages()}
    line = f"const SIGNED = {json.dumps(known, ensure_ascii=False)};"
    return _LISTED.sub(lambda found: line, page)

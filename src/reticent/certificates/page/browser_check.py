"""A page that checks certificates in any browser, offline: signature, digest, and that text and data agree.

It derives nothing: whether the numbers follow from what was run is for ``verify`` alone, and the page says so.
``docs/pages.py`` writes it.
"""

from __future__ import annotations

from importlib.resources import files

BROWSER_MARK = "<title>Check a privacy certificate</title>"
"""How the page begins: only a file that holds this may be replaced by it."""


def browser_checker() -> bytes:
    """The page, as it is shipped and as the documentation shows it."""
    return (files("reticent.certificates") / "templates" / "verify.html").read_bytes()

"""A file as what was released: read strictly once, then kept in the settings as a short JSON text."""

from __future__ import annotations

import json
from typing import Any

from reticent.errors import ParameterError
from reticent.io.strict import loads
from reticent.mechanisms import Mechanism
from reticent.mechanisms.codec import mechanism_of
from reticent.mechanisms.selection import singles_of
from reticent.verbs.releases import Release

MOST_STEPS = 10**9
"""Counts above this are not computed here: they would keep the server busy for minutes."""
_NONE = "a file that says what was released: choose a ledger, a certificate or a DpEvent"


def release_of(text: str) -> Mechanism:
    """The mechanism that the settings hold as JSON.

    Raises:
        ParameterError: no file was chosen, or it counts beyond all use.
        ArtifactError: the text describes no mechanism.
    """
    if not text:
        raise ParameterError("file", "", _NONE)
    document = loads(text, "the settings")
    if not isinstance(document, dict):
        raise ParameterError("file", text[:60], _NONE)
    release = mechanism_of(document)
    for part in singles_of(release):
        if part.steps > MOST_STEPS:
            raise ParameterError("steps", part.steps, "a whole number up to a billion")
    return release


def as_text(release: Mechanism) -> str:
    """The mechanism as the settings keep it; what is not stated is left out."""
    return json.dumps(Release(release).written(), separators=(",", ":"))


def release_in(document: Any, name: str) -> Mechanism:
    """What a file says was released: a ledger, a certificate, a mechanism as ``risk --json`` shows it, or a DpEvent.

    Raises:
        ArtifactError: it says nothing of the kind, or a ledger contradicts itself.
        UnsupportedError: an event has no counterpart here.
    """
    inner = document.get("mechanism") if isinstance(document, dict) else None
    return Release.of(inner if isinstance(inner, dict) else document, name).mechanism

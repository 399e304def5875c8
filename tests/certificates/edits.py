"""What a forger does to a document: edits at paths, and a digest made anew."""

from __future__ import annotations

import copy
import json
import random
from dataclasses import dataclass
from typing import Any

from reticent.certificates.document.schema import Certificate, content_hash
from reticent.certificates.verify import verify
from reticent.kernel.errors import ReticentError
from reticent.records.ledger import RunLedger

Document = dict[str, Any]
Edits = dict[str, Any]
"""By path, such as ``ledger.data.name``: the value to write; a function that makes it from what is there; ``GONE``."""
GONE: Any = object()
WORDS = ("", "poisson", "shuffled", "seen", "unknown", "flat", "fresh", "secure generator", "linear-head", "x")


@dataclass(frozen=True)
class Edit:
    """A path inside a document, and what is written there, or made of what is there, or that it is taken away."""

    path: tuple[str, ...]
    value: Any
    drop: bool = False

    def on(self, document: Document) -> None:
        here: Any = document
        for part in self.path[:-1]:
            here = here[int(part)] if isinstance(here, list) else here[part]
        last = int(self.path[-1]) if isinstance(here, list) else self.path[-1]
        if self.drop:
            del here[last]
        else:
            here[last] = self.value(here[last]) if callable(self.value) else self.value


def document_of(written: Certificate | RunLedger) -> Document:
    return json.loads(written.to_json())


def forged(document: Document, edits: Edits) -> Document:
    """A copy with all edits."""
    changed = copy.deepcopy(document)
    for path, value in edits.items():
        Edit(tuple(path.split(".")), value, drop=value is GONE).on(changed)
    return changed


def resealed(document: Document) -> Certificate:
    draft = Certificate.parse(document)
    return draft.model_copy(update={"content_sha256": content_hash(draft)})


def refused(document: Document) -> bool:
    """Whether a certificate, sealed again by the forger, is refused in one way or the other."""
    try:
        return not verify(resealed(document)).accepted
    except ReticentError:
        return True


def other_value(value: Any, choice: random.Random) -> Any:
    if isinstance(value, bool) or value is None:
        return choice.choice([not value, 1, choice.uniform(0.0, 50.0), choice.choice(WORDS)])
    if isinstance(value, int):
        return max(0, choice.choice([value + choice.choice((-1, 1)), int(value * choice.uniform(0.0, 4.0)), 10**6, 1]))
    if isinstance(value, float):
        return choice.choice(
            [value * choice.uniform(0.01, 100.0), value * 1.001, value * 2.0, value / 2.0, -value, 1.0]
        )
    if isinstance(value, str):
        return choice.choice([*WORDS, value[:-1], value + "0", value + "\u202e", value.swapcase()])
    return []


def edited(document: Document, edits: list[Edit]) -> Document:
    """A copy with the edits, one after the other, as far as they still find their place."""
    changed = copy.deepcopy(document)
    for edit in edits:
        try:
            edit.on(changed)
        except (KeyError, IndexError, TypeError, ValueError):
            continue
    return changed


def read(document: Document) -> RunLedger | None:
    """The ledger that a document is, where a mechanism follows from it."""
    ledger = parsed(document)
    try:
        return None if ledger is None or ledger.mechanism() is None else ledger
    except (ReticentError, ValueError, OverflowError):
        return None


def parsed(ledger: Document) -> RunLedger | None:
    """The ledger that a document is, whatever its facts say of each other."""
    try:
        return RunLedger.model_validate(ledger)
    except ValueError:
        return None

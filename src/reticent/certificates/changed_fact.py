"""Which fact of a ledger was changed after it was sealed: found by trying what it can have been."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

from pydantic import BaseModel

from reticent.certificates.rounding import Path
from reticent.records.ledger import RunLedger, digest_of

_MOST = 200
"""Values that are tried."""
_LARGEST = 50_000
"""Values of a document beyond which nothing is tried: each trial computes the digest of the whole ledger."""


def changed_fact(ledger: RunLedger, stated: Mapping[Path, Any]) -> tuple[str, Any] | None:
    """The one fact that was changed and what it was, if the digest agrees with it; None where no trial finds it.

    Args:
        ledger: whose digest is not that of its facts.
        stated: every value of the document by its path: a fact may be stated elsewhere under the same name.
    """
    if len(stated) > _LARGEST:
        return None
    for tried, (where, value, other) in enumerate(_variants(ledger, stated)):
        if tried == _MOST:
            break
        if digest_of(other) == ledger.digest:
            return ".".join(where), value.value if isinstance(value, Enum) else value
    return None


def _variants(part: BaseModel, stated: Mapping[Path, Any]) -> Iterator[tuple[Path, Any, BaseModel]]:
    """With one fact as it can have been: its path, its value then, and the whole with it."""
    for name in type(part).model_fields:
        if name != "digest":
            for where, value, new in _others(name, getattr(part, name), stated):
                yield (name, *where), value, part.model_copy(update={name: new})


def _others(name: str, now: Any, stated: Mapping[Path, Any]) -> Iterator[tuple[Path, Any, Any]]:
    if isinstance(now, BaseModel):
        yield from _variants(now, stated)
    elif isinstance(now, tuple):
        for at, one in enumerate(now):
            for where, value, new in _others(name, one, stated):
                yield (str(at), *where), value, (*now[:at], new, *now[at + 1 :])
    elif isinstance(now, Enum):
        yield from (((), other, other) for other in type(now) if other is not now)
    elif isinstance(now, bool):
        yield (), not now, not now
    elif isinstance(now, (str, int, float)):
        kinds = (float, int) if isinstance(now, float) else (type(now),)
        alike = (x for path, x in stated.items() if path[-1] == name and type(x) in kinds)
        yield from (((), value, value) for value in dict.fromkeys(alike) if value != now)

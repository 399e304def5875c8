"""Which fact of a ledger was changed after it was sealed: found by trying what it can have been."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

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
    for tried, (name, value) in enumerate(_candidates(ledger, stated)):
        if tried == _MOST:
            break
        if digest_of(ledger.model_copy(update={name: value})) == ledger.digest:
            return name, value.value if isinstance(value, Enum) else value
    return None


def _candidates(ledger: RunLedger, stated: Mapping[Path, Any]) -> Iterator[tuple[str, Any]]:
    for name in type(ledger).model_fields:
        now = getattr(ledger, name)
        if isinstance(now, Enum):
            yield from ((name, other) for other in type(now) if other is not now)
        elif isinstance(now, bool):
            yield name, not now
        elif name != "digest" and isinstance(now, (str, int, float)):
            kinds = (float, int) if isinstance(now, float) else (type(now),)
            alike = (x for path, x in stated.items() if path[-1] == name and type(x) in kinds)
            yield from ((name, value) for value in dict.fromkeys(alike) if value != now)
